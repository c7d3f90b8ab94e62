"""Golden lives: what two commits write of the same events, compared byte for byte.

``python -m tests.golden against COMMIT``
    Folds the lives with COMMIT and with this working tree, on this machine; each with its own ``tests/golden``.
``python -m tests.golden fold LIVES TAPES``
    Folds every life in one directory; leaves its tape in the other. This is what ``against`` runs in both trees.
``python -m tests.golden write [--life NAME …]``
    Writes the committed files again: digests and the state; or the digests of these lives alone. Only where what is
    published may change, and the comparison has shown how: never of a life of a version of the method that is released.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden import comparing, lives, random_lives, recorded, stages, state
from tests.golden.records import Life, read_life, read_tape, write_life, write_tape


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    against = commands.add_parser("against", help="fold the lives with another commit and with this tree")
    against.add_argument("base", metavar="COMMIT")
    against.add_argument("--life", action="append", default=[], help="only this one; may be repeated")
    against.add_argument("--long", action="store_true", help="a longer random life as well")
    against.add_argument("--any-moments", action="store_true", help="feeds may be published at other moments")
    fold = commands.add_parser("fold", help="fold every life of a directory")
    fold.add_argument("lives", type=Path)
    fold.add_argument("tapes", type=Path)
    write = commands.add_parser("write", help="write the committed files again")
    write.add_argument("--life", action="append", default=[], help="only this one; may be repeated")
    given = parser.parse_args(arguments)
    if given.command == "fold":
        return _fold(given.lives, given.tapes)
    if given.command == "write":
        return _write_some(given.life) if given.life else _write()
    return _against(given.base, _chosen(given.life, long=given.long), moments=not given.any_moments)


def _makers(*, long: bool) -> dict[str, Callable[[], Life]]:
    named = os.environ.get("STREAM_PEER_DATA")
    of_data = lives.data_lives(Path(named)) if named and Path(named).is_dir() else {}
    if not of_data:
        _say("no data sets: STREAM_PEER_DATA names no directory")
    return {**lives.lives(), **of_data, **({"longer": random_lives.longer} if long else {})}


def _chosen(names: Sequence[str], *, long: bool) -> list[Life]:
    makers = _makers(long=long or "longer" in names)
    return [makers[name]() for name in (names or makers)]


def _fold(inputs: Path, outputs: Path) -> int:
    for path in sorted(inputs.glob("*.jsonl")):
        life = read_life(path)
        write_tape(life, stages.fold(life), outputs)
    return 0


def _write() -> int:
    made = _chosen([], long=False)
    if not {*lives.data_names()} <= {life.name for life in made}:
        return 2
    recorded.write({life.name: recorded.record_of(life, stages.fold(life), stages.order_free) for life in made})
    state.write(stages.question_changelogs(random_lives.short()))
    return 0


def _write_some(names: Sequence[str]) -> int:
    """Write again what is committed of these lives, and leave the others."""
    made = {
        life.name: recorded.record_of(life, stages.fold(life), stages.order_free) for life in _chosen(names, long=False)
    }
    known = recorded.read()
    if known.pop("machine") != recorded.machine():
        _say("the others were recorded on another machine: write them all")
        return 2
    recorded.write({**known, **made})
    return 0


def _against(base: str, chosen: Sequence[Life], *, moments: bool) -> int:
    with TemporaryDirectory() as name, _checked_out(base, Path(name) / "base") as tree:
        if not (tree / "tests" / "golden" / "__main__.py").exists():
            _say(f"{base} has no tests/golden")
            return 2
        inputs = _directory(name, "lives")
        for life in chosen:
            write_life(life, inputs)
        tapes = {tree: _directory(name, "tapes-base"), lives.REPOSITORY: _directory(name, "tapes-here")}
        running = [_folding(where, inputs, tape) for where, tape in tapes.items()]
        codes = [process.wait() for process in running]
        if any(codes):
            _say("one of the commits cannot fold these lives")
            return 2
        old, new = tapes.values()
        differing = [life.name for life in chosen if _compared(life, old, new, moments=moments)]
        _say(f"{len(chosen) - len(differing)} of {len(chosen)} lives are equal")
        return int(bool(differing))


def _compared(life: Life, old: Path, new: Path, *, moments: bool) -> bool:
    """Say how the tapes of a life differ, and whether they do."""
    base, here = (read_tape(directory / f"{life.name}.jsonl") for directory in (old, new))
    found = comparing.differences(base, here, life, stages.order_free, moments=moments)
    if not found:
        _say(f"{life.name}: equal; {len(life.sent)} records sent, {len(here.written)} written")
        return False
    first = found[0]
    kinds = sorted({difference.kind for difference in found})
    _say(f"{life.name}: record {first.after} is the first after which something differs ({first.kind})\n{first.text}")
    _say(f"  {len(found)} keys or looks differ in all, of {', '.join(kinds)}")
    return True


def _folding(tree: Path, inputs: Path, outputs: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.golden", "fold", str(inputs), str(outputs)]
    return subprocess.Popen(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)})


@contextmanager
def _checked_out(commit: str, where: Path) -> Iterator[Path]:
    """A working tree of a commit."""
    git = ["git", "-C", str(lives.REPOSITORY), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(where), commit], check=True)
    try:
        yield where
    finally:
        subprocess.run([*git, "remove", "--force", str(where)], check=True)


def _directory(*parts: str) -> Path:
    path = Path(*parts)
    path.mkdir()
    return path


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

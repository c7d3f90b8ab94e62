"""Signs of how simple the package is: its size, what a round passes through, how deep imports go, words of docs.

``python -m benchmarks.house [TREE]``, with the signs of commit 66ed76e beside. TREE is another checkout, of which only
what can be read from files is counted; ``--words`` counts those of docs alone. These are signs, not goals: no file is
cut or joined to meet one.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "stream_peer"
QUESTIONS = 800
FEW_SEEN = 300
"""Rounds before these are not counted: feeds have few experts then."""

BEFORE: Mapping[str, str] = {
    "files of the package, without lab": "373",
    "code lines of it": "31,192",
    "code lines of lab": "–",
    "code lines of tests a line of the package": "1.45",
    "calls a round, 50 experts, without numerics": "264",
    "files a round passes, without numerics": "35",
    "imports, share of code lines": "12.8%",
    "longest chain of imports inside a room": "20",
    "words of docs": "34,412",
}
"""At commit 66ed76e, the last one before the rooms."""

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Lines with code: no blank ones, comments, docstrings or texts below a constant."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = {line for token in tokens if token.type not in _NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    return len(found - {line for node in ast.walk(ast.parse(text)) for line in _text_lines(node)})


def _text_lines(node: ast.AST) -> Iterable[int]:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return _lines(node) if is_text else ()


def _lines(node: Any) -> range:
    return range(node.lineno, node.end_lineno + 1)


def import_lines(text: str) -> int:
    """Lines that import."""
    nodes = ast.walk(ast.parse(text))
    return sum(len(_lines(node)) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def sources(folder: Path) -> dict[str, str]:
    """The text of every Python file below a folder, by module's name from the folder's parent."""
    files = sorted(folder.rglob("*.py"))
    names = [
        ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__") for file in files
    ]
    return {name: file.read_text(encoding="utf-8") for name, file in zip(names, files, strict=True)}


def room_of(module: str) -> str:
    """The first name below the package."""
    return module.split(".")[1] if "." in module else ""


def longest_chain(modules: Mapping[str, str]) -> Sequence[str]:
    """The most modules of one room of which each imports the next; modules that import each other count once."""
    imports = {
        name: {found for found in _imported(text, modules) if _beside(found, name)} for name, text in modules.items()
    }
    circle = _circles(imports)

    @cache
    def chain(of: frozenset[str]) -> tuple[str, ...]:
        below = {circle[found] for name in of for found in imports[name]} - {of}
        return (" = ".join(sorted(of)), *max(map(chain, sorted(below, key=sorted)), key=len, default=()))

    return max(map(chain, circle.values()), key=len, default=())


def _beside(one: str, other: str) -> bool:
    return one != other and room_of(one) == room_of(other) != ""


def _imported(text: str, modules: Mapping[str, str]) -> Iterator[str]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield from (found for found in ([full] if full in modules else [node.module]) if found in modules)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)


def _circles(imports: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """For each module those that it imports and that import it, itself included."""
    reached = {name: _reached(name, imports) for name in imports}
    return {name: frozenset({name, *(one for one in reached[name] if name in reached[one])}) for name in imports}


def _reached(start: str, imports: Mapping[str, set[str]]) -> set[str]:
    found, left = set[str](), [start]
    while left:
        new = imports[left.pop()] - found
        found |= new
        left += new
    return found


def words_of_docs(tree: Path, *, generated: bool = False) -> int:
    """Words of the pages that people write, or of those that a generator or a benchmark writes.

    A word has a letter or a digit: bars of tables and dashes are none.
    """
    pages = [tree / "README.md", *(tree / "docs").rglob("*.md")]
    chosen = (page for page in pages if bool({"generated", "measured", "reference"} & set(page.parts)) is generated)
    return sum(len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8"))) for page in chosen)


def round_calls() -> tuple[int, int]:
    """Calls of Python functions, and files, that the median round of 50 experts passes outside of `numerics`."""
    from benchmarks.engine import NOW, log_of
    from benchmarks.workload import Workload
    from stream_peer.events.topics import FEED_LOG, FORECAST_EVENTS
    from stream_peer.feeds.stage import FeedStage
    from stream_peer.log.stage import Effects, LogRecord
    from stream_peer.questions.stage import QuestionStage
    from stream_peer.settings.feed.document import load_document

    settings = load_document({"defaults": {"history": True}})
    messages = Workload(QUESTIONS, as_messages=True).partition(0, 1)
    effects = Effects()
    questions = QuestionStage(
        topic=FORECAST_EVENTS, partition=0, partitions=1, feed_log_partitions=1, settings=settings
    )
    for number, message in enumerate(messages):
        questions.step(LogRecord(number, NOW, *message[1:]), effects)
    stage, found = FeedStage(topic=FEED_LOG, partition=0, settings=settings), list[tuple[int, int]]()
    for number, record in enumerate(log_of(effects.outputs)[0]):
        called = _called(lambda record=record: stage.step(record, Effects()))  # type: ignore[misc]
        if number >= FEW_SEEN and b'"type":"round"' in (record.value or b""):
            found.append((len(called), len(set(called))))
    return round(median(calls for calls, _ in found)), round(median(files for _, files in found))


def _called(step: Any) -> list[str]:
    """The file of each call of a Python function of the package outside of `numerics`."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and f"/{PACKAGE}/" in file and "/numerics/" not in file:
            called.append(file)

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    return called


def signs(tree: Path, *, measured: bool) -> dict[str, str]:
    """The table: a sign's name and what it is of a tree."""
    everything, tests = sources(tree / PACKAGE), sources(tree / "tests")
    package = {name: text for name, text in everything.items() if room_of(name) != "lab"}
    code = sum(map(code_lines, package.values()))
    lab = sum(code_lines(text) for name, text in everything.items() if name not in package)
    calls, files = map(str, round_calls()) if measured else ("–", "–")
    found = (
        str(len(package)),
        f"{code:,}",
        f"{lab:,}",
        f"{sum(map(code_lines, tests.values())) / (code + lab):.2f}",
        calls,
        files,
        f"{sum(map(import_lines, package.values())) / code:.1%}",
        str(len(longest_chain(package))),
        f"{words_of_docs(tree):,}",
    )
    return dict(zip(BEFORE, found, strict=True))


def main() -> None:
    """Print the table."""
    if sys.argv[1:] == ["--words"]:
        written, generated = words_of_docs(ROOT), words_of_docs(ROOT, generated=True)
        print(f"{written:,} words of pages that people write (24,000 at most), {generated:,} of generated ones")
        return
    tree = Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT
    width = max(map(len, BEFORE))
    print(f"{'sign':{width}} {'66ed76e':>9} {'now':>9}")
    for name, value in signs(tree, measured=tree == ROOT).items():
        print(f"{name:{width}} {BEFORE[name]:>9} {value:>9}")
    chain = longest_chain({name: text for name, text in sources(tree / PACKAGE).items() if room_of(name) != "lab"})
    print("\nthe longest chain:", " → ".join(chain).replace(f"{PACKAGE}.", ""))


if __name__ == "__main__":
    main()

"""Files that follow from the code: schemas of all events, the tables of the reference, formulas, state machines.

``python docs/generate.py`` writes them, ``--check`` says whether any differs. They are committed, so that a reader
finds them without installing anything, and a change of a contract shows in its review.
"""

import sys

from docs.generator import ROOT, files, message_schemas, tables

WHOLE = (message_schemas.DIRECTORY, tables.DIRECTORY)
"""Directories that hold nothing else."""


def main(arguments: list[str]) -> int:
    """Write what differs; with ``--check`` only name it."""
    made = files()
    differing = [path for path, text in made.items() if _content(path) != text]
    kept = {str(p.relative_to(ROOT)) for folder in WHOLE for p in (ROOT / folder).glob("*.*")}
    superfluous = sorted(kept - set(made))
    if arguments == ["--check"]:
        for path in [*differing, *superfluous]:
            sys.stderr.write(f"{path} is not what docs/generate.py makes: run `make generated`\n")
        return 1 if differing or superfluous else 0
    for path in differing:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(made[path], encoding="utf-8")
    for path in superfluous:
        (ROOT / path).unlink()
    return 0


def _content(path: str) -> str | None:
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

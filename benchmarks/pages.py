"""Pages into which benchmarks write what they measured."""

from collections.abc import Sequence
from pathlib import Path

START, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write(file: Path, lines: Sequence[str]) -> None:
    """Put the tables between the marks of a page."""
    text = file.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    file.write_text("\n".join([before + START, *lines, END + after]), encoding="utf-8")

"""Pages into which benchmarks write what they measured."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stream_peer.serve.pages.parts import PictureSize, drawn, style_sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_VARIABLES = re.compile(r"((--[\w-]+): #[0-9a-f]{6};)")


def marks(name: str = "measured") -> tuple[str, str]:
    """Lines of a page between which a table stands."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def in_markdown(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> list[str]:
    """Lines of a table in Markdown, whose columns are numbers but for the first ``words``."""
    sides = ["---" if place < words else "---:" for place in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, sides, *rows)]


def write(file: Path, lines: Sequence[str], name: str = "measured") -> None:
    """Put the tables between the marks of a page."""
    begin, end = marks(name)
    text = file.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    file.write_text("\n".join([before + begin, *lines, end + after]), encoding="utf-8")


def draw(file: Path, paint: Callable[["Axes"], None], size: PictureSize) -> None:
    """Write a picture that follows the reader's light or dark scheme."""
    file.write_text(_both_schemes(drawn(paint, size, salt=file.stem), size), encoding="utf-8")


def _both_schemes(svg: str, size: PictureSize) -> str:
    light, dark = style_sheet().split("@media", 1)
    used = {*re.findall(r"var\((--[\w-]+)\)", svg), "--card"}
    day, night = (
        " ".join(found for found, name in _VARIABLES.findall(text) if name in used)
        for text in (light, dark.split("\n}", 1)[0])
    )
    style = f"<style>svg {{ {day} }} @media (prefers-color-scheme: dark) {{ svg {{ {night} }} }}</style>"
    box = f'width="{size.width}" height="{size.height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif"'
    card = '<rect width="100%" height="100%" fill="var(--card)"/>'
    return svg.replace("<svg", head, 1).replace(' aria-hidden="true">', f">{style}{card}", 1)

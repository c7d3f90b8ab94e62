"""The picture of docs/sizing.md: ``python -m benchmarks.soak_chart SAMPLES.json docs/measured/soak.svg``.

``SAMPLES.json`` is what ``benchmarks.soak --samples`` writes.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_peer.serve.pages.parts import INK, MUTED, SERIES_COLOURS, PictureSize, drawn, quiet, style_sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = PictureSize(1080, 380)
_VARIABLES = re.compile(r"((--[\w-]+): #[0-9a-f]{6};)")


def both_schemes(svg: str) -> str:
    """The picture as a file of its own that follows the reader's light or dark scheme."""
    light, dark = style_sheet().split("@media", 1)
    used = {*re.findall(r"var\((--[\w-]+)\)", svg), "--card"}
    day, night = (
        " ".join(found for found, name in _VARIABLES.findall(text) if name in used)
        for text in (light, dark.split("\n}", 1)[0])
    )
    style = f"<style>svg {{ {day} }} @media (prefers-color-scheme: dark) {{ svg {{ {night} }} }}</style>"
    size = f'width="{SIZE.width}" height="{SIZE.height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif"'
    card = '<rect width="100%" height="100%" fill="var(--card)"/>'
    return svg.replace("<svg", head, 1).replace(' aria-hidden="true">', f">{style}{card}", 1)


def paint(axes: "Axes", lines: Sequence[dict[str, Any]]) -> None:
    """Memory above the start and state, over questions; a mark where one process ends and the next begins."""
    quiet(axes)
    base = lines[0]["rss"]
    again = next((n for n, line in enumerate(lines) if n and not line["events"]), len(lines))
    curves = {
        "memory above the start": [(line["rss"] - base) / 1e6 for line in lines],
        "state, compacted": [line["state"] / 1e6 for line in lines],
    }
    numbers = [line["number"] / 1000 for line in lines]
    for colour, (name, values) in zip(SERIES_COLOURS, curves.items(), strict=False):
        axes.plot(numbers[:again], values[:again], color=colour, linewidth=2)
        axes.plot(numbers[again:], values[again:], color=colour, linewidth=2)
        axes.annotate(name, (numbers[-1], values[-1]), (0, 8), textcoords="offset points", ha="right", color=colour)
    if again < len(lines):
        axes.axvline(numbers[again], color=MUTED, linewidth=1, linestyle=(0, (4, 4)))
        axes.annotate(
            "killed; another process goes on", (numbers[again], 0), (6, 8), textcoords="offset points", color=INK
        )
    axes.set_ylim(0, 1.12 * max(max(values) for values in curves.values()))
    axes.set_xlabel("thousand questions opened and closed", color=INK)
    axes.set_ylabel("MB", color=INK)


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    lines = json.loads(options.samples.read_text(encoding="utf-8"))["lines"]
    svg = drawn(lambda axes: paint(axes, lines), SIZE, salt="soak")
    options.picture.write_text(both_schemes(svg), encoding="utf-8")


if __name__ == "__main__":
    main()

"""The picture of docs/sizing.md: ``python -m benchmarks.soak_chart SAMPLES.json docs/measured/soak.svg``.

``SAMPLES.json`` is what ``benchmarks.soak --samples`` writes.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pages import draw
from stream_peer.serve.pages.parts import INK, MUTED, SERIES_COLOURS, PictureSize, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = PictureSize(1080, 380)


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
    draw(options.picture, lambda axes: paint(axes, lines), SIZE)


if __name__ == "__main__":
    main()

"""Which colour is which line: as a list below, or as a table with the newest values beside."""

from collections.abc import Sequence

import numpy as np

from helm.dashboards.pictures.answers import Line
from helm.dashboards.pictures.canvas import CHARACTER, LINE, MUTED, SMALL, Box, Canvas, fitting
from helm.dashboards.pictures.units import shown

_LIST_LINES = 3


def _entry_width(lines: Sequence[Line], width: float) -> float:
    longest = max((len(line.name) for line in lines), default=1)
    return min(width, CHARACTER * longest + 0.35)


def legend_lines(lines: Sequence[Line], width: float) -> int:
    """How many lines of text a list below takes; what has no room in the most that it may take is left out."""
    across = max(1, int(width / _entry_width(lines, width)))
    return max(1, min(_LIST_LINES, -(-len(lines) // across)))


def draw_list_legend(canvas: Canvas, box: Box, lines: Sequence[Line]) -> None:
    """Names beside and below one another."""
    each = _entry_width(lines, box.width)
    across = max(1, int(box.width / each))
    room = across * legend_lines(lines, box.width)
    entries = [(line.name, line.colour) for line in lines]
    if len(entries) > room:
        entries = [*entries[: room - 1], (f"and {len(lines) - room + 1} more", "")]
    for place, (name, colour) in enumerate(entries):
        down, right = divmod(place, across)
        cell = Box(box.left + right * each, box.top + 0.04 + down * LINE, each, LINE)
        _entry(canvas, cell, name, colour)


def draw_table_legend(canvas: Canvas, box: Box, lines: Sequence[Line], unit: str) -> None:
    """Names with their newest values, the largest first."""
    rows = sorted(lines, key=lambda line: -np.nan_to_num(line.last, nan=-np.inf))
    room = int(box.height / LINE) - 1
    head = Box(box.left, box.top, box.width, LINE)
    canvas.text(head, "last", size=SMALL, color=MUTED, ha="right")
    for place, line in enumerate(rows[: room if len(rows) <= room else room - 1], 1):
        cell = Box(box.left + 0.1, box.top + place * LINE, box.width - 0.1, LINE)
        _entry(canvas, cell._replace(width=cell.width - 0.5), line.name, line.colour)
        canvas.text(cell, shown(line.last, unit), size=SMALL, ha="right")
    if len(rows) > room:
        last = Box(box.left + 0.1, box.top + room * LINE, box.width, LINE)
        canvas.text(last, f"and {len(rows) - room + 1} more", size=SMALL, color=MUTED)


def _entry(canvas: Canvas, cell: Box, name: str, colour: str) -> None:
    if colour:
        canvas.swatch(Box(cell.left, cell.top + LINE / 2 - 0.02, 0.14, 0.04), colour)
    canvas.text(cell._replace(left=cell.left + 0.19), fitting(name, cell.width - 0.22), size=SMALL)

"""Pictures over time: lines, stacked areas and bands of states, with their axes and legends."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.ticker import FuncFormatter, MaxNLocator

from helm.dashboards.pictures.answers import NAMED, Answer, Line, Span, defaults, lines_of, state
from helm.dashboards.pictures.canvas import CHARACTER, GRID, LINE, MUTED, SMALL, Box, Canvas, fitting
from helm.dashboards.pictures.units import axis_name, scale, shown, tick

_LIST_LINES = 3


def draw_lines(canvas: Canvas, box: Box, panel: Mapping[str, Any], answers: Sequence[Answer], span: Span) -> None:
    """Lines or stacked areas, with axes and a legend."""
    times = np.arange(span.start, span.end + span.step / 2, span.step)
    lines = lines_of(panel, answers, times.tolist(), span.step)
    style, right = defaults(panel), panel["options"]["legend"]["placement"] == "right"
    legend_height = 0.0 if right else _legend_lines(lines, box.width) * LINE + 0.06
    legend_width = min(2.6, box.width * 0.4) if right else 0.0
    plot = box.inside(0.72, 0.06, legend_width + 0.12, legend_height + 0.36)
    axes = canvas.axes(plot)
    _draw_series(axes, lines, times, stacked=style["custom"].get("stacking", {}).get("mode") == "normal")
    _style_values(axes, style)
    _style_times(axes, span, plot.width)
    if right:
        side = Box(box.left + box.width - legend_width, box.top, legend_width, box.height)
        _draw_table_legend(canvas, side, lines, style["unit"])
    else:
        low = Box(box.left, box.top + box.height - legend_height, box.width, legend_height)
        _draw_list_legend(canvas, low, lines)


def _draw_series(axes: Axes, lines: Sequence[Line], times: Any, *, stacked: bool) -> None:
    if stacked:
        base = np.zeros(len(times))
        known = np.any([~np.isnan(line.values) for line in lines], axis=0).tolist()
        for line in lines:
            top = base + np.nan_to_num(line.values)
            axes.fill_between(times, base, top, where=known, color=line.colour, alpha=0.75, linewidth=0)
            base = top
        return
    for line in lines:
        alone = "." if np.count_nonzero(~np.isnan(line.values)) < 2 else ""
        axes.plot(times, line.values, "--" if line.dashed else "-", color=line.colour, linewidth=1.3, marker=alone)


def _style_values(axes: Axes, style: Mapping[str, Any]) -> None:
    unit, custom = style["unit"], style["custom"]
    low, high = axes.get_ylim()
    if style.get("min") is not None:
        low, high = style["min"], high + 0.05 * (high - style["min"])
    high = max(high, custom.get("axisSoftMax", high)) if style.get("max") is None else style["max"]
    if high - low < 1e-9 * max(1.0, abs(high)):
        high = low + 1.0
    axes.set_ylim(low, high)
    for step in _marks(style):
        if low <= step["value"] <= high:
            axes.axhline(step["value"], color=NAMED[step["color"]], linewidth=0.8, linestyle=(0, (5, 4)))
    size = scale(max(abs(low), abs(high)), unit)
    places = MaxNLocator(nbins=5, integer=unit == "short" and high - low > 4).tick_values(low / size, high / size)
    axes.set_yticks([place * size for place in places if low <= place * size <= high])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, unit)))
    axes.set_ylabel(axis_name(unit, custom.get("axisLabel", "")), fontsize=SMALL, color=MUTED)
    _quiet(axes)


def _marks(style: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Values that a panel marks by a line across."""
    if style["custom"].get("thresholdsStyle", {}).get("mode") != "dashed":
        return []
    return [step for step in style["thresholds"]["steps"] if step["value"] is not None]


def draw_states(canvas: Canvas, box: Box, panel: Mapping[str, Any], answers: Sequence[Answer], span: Span) -> None:
    """A band for each series, coloured by state, and the words of the colours."""
    times = np.arange(span.start, span.end + span.step / 2, span.step)
    lines = lines_of(panel, answers, times.tolist(), span.step)
    style = defaults(panel)
    room = max(1, int((box.height - 0.55) / 0.13))
    lines = lines[:room]
    margin = min(2.4, CHARACTER * max(len(line.name) for line in lines) + 0.15)
    plot = box.inside(margin, 0.04, 0.12, 0.36 + LINE)
    axes = canvas.axes(plot._replace(height=min(plot.height, 0.45 * len(lines))))
    said: dict[str, str] = {}
    for place, line in enumerate(lines):
        said.update(_band(axes, place, line, times, style))
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks(range(len(lines)))
    axes.set_yticklabels([fitting(line.name, margin - 0.1) for line in lines])
    _quiet(axes)
    axes.grid(visible=False)
    _style_times(axes, span, plot.width)
    legend = [Line(word, np.zeros(1), colour) for word, colour in said.items()]
    _draw_list_legend(canvas, Box(box.left, box.top + box.height - LINE - 0.04, box.width, LINE), legend)


def _band(axes: Axes, place: int, line: Line, times: Any, style: Mapping[str, Any]) -> dict[str, str]:
    """Draw one band; its states and their colours."""
    said, start = {}, 0
    step = times[1] - times[0]
    for at in range(1, len(times) + 1):
        if at < len(times) and (
            line.values[at] == line.values[start] or (np.isnan(line.values[at]) and np.isnan(line.values[start]))
        ):
            continue
        found = None if np.isnan(line.values[start]) else state(style, float(line.values[start]))
        if found:
            word, colour = found
            axes.barh(place, (at - start) * step, left=times[start], height=0.8, color=to_rgba(colour, 0.85))
            said[word] = colour
        start = at
    return said


def _style_times(axes: Axes, span: Span, width: float) -> None:
    """Ticks with the time of day, as many as there is room for."""
    axes.set_xlim(span.start, span.end)
    count = max(2, min(7, int(width / 0.8)))
    places = np.linspace(span.start, span.end, count + 1)[:-1] + (span.end - span.start) / (2 * count)
    layout = "%H:%M" if span.end - span.start > 1800 else "%H:%M:%S"
    axes.set_xticks(places.tolist())
    axes.set_xticklabels([datetime.fromtimestamp(place, UTC).strftime(layout) for place in places])
    axes.set_xlabel("time, UTC", fontsize=SMALL, color=MUTED, labelpad=1)


def _quiet(axes: Axes) -> None:
    """Take away what only makes noise."""
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(side == "bottom")
        axes.spines[side].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=SMALL, colors=MUTED, length=2, width=0.6)


def _entry_width(lines: Sequence[Line], width: float) -> float:
    longest = max((len(line.name) for line in lines), default=1)
    return min(width, CHARACTER * longest + 0.35)


def _legend_lines(lines: Sequence[Line], width: float) -> int:
    """How many lines of text a list below takes; what has no room in the most that it may take is left out."""
    across = max(1, int(width / _entry_width(lines, width)))
    return max(1, min(_LIST_LINES, -(-len(lines) // across)))


def _draw_list_legend(canvas: Canvas, box: Box, lines: Sequence[Line]) -> None:
    """Names beside and below one another."""
    each = _entry_width(lines, box.width)
    across = max(1, int(box.width / each))
    room = across * _legend_lines(lines, box.width)
    entries = [(line.name, line.colour) for line in lines]
    if len(entries) > room:
        entries = [*entries[: room - 1], (f"and {len(lines) - room + 1} more", "")]
    for place, (name, colour) in enumerate(entries):
        down, right = divmod(place, across)
        cell = Box(box.left + right * each, box.top + 0.04 + down * LINE, each, LINE)
        _entry(canvas, cell, name, colour)


def _draw_table_legend(canvas: Canvas, box: Box, lines: Sequence[Line], unit: str) -> None:
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

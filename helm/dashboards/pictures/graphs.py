"""Lines and stacked areas over time."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from helm.dashboards.pictures.answers import NAMED, Answer, Line, Span, defaults, lines_of
from helm.dashboards.pictures.axes import quiet, style_times
from helm.dashboards.pictures.canvas import LINE, MUTED, SMALL, Box, Canvas
from helm.dashboards.pictures.legends import draw_list_legend, draw_table_legend, legend_lines
from helm.dashboards.pictures.units import axis_name, scale, tick


def draw_lines(canvas: Canvas, box: Box, panel: Mapping[str, Any], answers: Sequence[Answer], span: Span) -> None:
    """Lines or stacked areas, with axes and a legend."""
    times = np.arange(span.start, span.end + span.step / 2, span.step)
    lines = lines_of(panel, answers, times.tolist(), span.step)
    style, right = defaults(panel), panel["options"]["legend"]["placement"] == "right"
    legend_height = 0.0 if right else legend_lines(lines, box.width) * LINE + 0.06
    legend_width = min(2.6, box.width * 0.4) if right else 0.0
    plot = box.inside(0.72, 0.06, legend_width + 0.12, legend_height + 0.36)
    axes = canvas.axes(plot)
    _draw_series(axes, lines, times, stacked=style["custom"].get("stacking", {}).get("mode") == "normal")
    _style_values(axes, style)
    style_times(axes, span, plot.width)
    if right:
        side = Box(box.left + box.width - legend_width, box.top, legend_width, box.height)
        draw_table_legend(canvas, side, lines, style["unit"])
    else:
        low = Box(box.left, box.top + box.height - legend_height, box.width, legend_height)
        draw_list_legend(canvas, low, lines)


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
    quiet(axes)


def _marks(style: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Values that a panel marks by a line across."""
    if style["custom"].get("thresholdsStyle", {}).get("mode") != "dashed":
        return []
    return [step for step in style["thresholds"]["steps"] if step["value"] is not None]

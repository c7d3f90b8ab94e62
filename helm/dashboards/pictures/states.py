"""Bands of states over time."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from helm.dashboards.pictures.answers import Answer, Line, Span, defaults, lines_of, state
from helm.dashboards.pictures.axes import quiet, style_times
from helm.dashboards.pictures.canvas import CHARACTER, LINE, Box, Canvas, fitting
from helm.dashboards.pictures.legends import draw_list_legend


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
    quiet(axes)
    axes.grid(visible=False)
    style_times(axes, span, plot.width)
    legend = [Line(word, np.zeros(1), colour) for word, colour in said.items()]
    draw_list_legend(canvas, Box(box.left, box.top + box.height - LINE - 0.04, box.width, LINE), legend)


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

"""Axes that say when, and else make no noise."""

from datetime import UTC, datetime

import numpy as np
from matplotlib.axes import Axes

from helm.dashboards.pictures.answers import Span
from helm.dashboards.pictures.canvas import GRID, MUTED, SMALL


def style_times(axes: Axes, span: Span, width: float) -> None:
    """Ticks with the time of day, as many as there is room for."""
    axes.set_xlim(span.start, span.end)
    count = max(2, min(7, int(width / 0.8)))
    places = np.linspace(span.start, span.end, count + 1)[:-1] + (span.end - span.start) / (2 * count)
    layout = "%H:%M" if span.end - span.start > 1800 else "%H:%M:%S"
    axes.set_xticks(places.tolist())
    axes.set_xticklabels([datetime.fromtimestamp(place, UTC).strftime(layout) for place in places])
    axes.set_xlabel("time, UTC", fontsize=SMALL, color=MUTED, labelpad=1)


def quiet(axes: Axes) -> None:
    """Take away what only makes noise."""
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(side == "bottom")
        axes.spines[side].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=SMALL, colors=MUTED, length=2, width=0.6)

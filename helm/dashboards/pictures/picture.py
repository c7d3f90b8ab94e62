"""Pictures of dashboards, drawn from the answers to their queries: each panel where its grid has it.

Nobody has opened these dashboards in Grafana to make them. They show what the queries answer, and that panels, legends
and axes have the room that they need; Grafana's own drawing looks different.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

from helm.dashboards.pictures.answers import Answer, Series, Span
from helm.dashboards.pictures.canvas import NORMAL, Canvas
from helm.dashboards.pictures.graphs import draw_lines, draw_states
from helm.dashboards.pictures.newest import draw_nothing, draw_numbers, draw_table
from helm.dashboards.reading import Query, panels, queries

Ask = Callable[[Query], Sequence[Series]]
_RESOLUTION = 100
_COLOURS = 128


def picture(dashboard: Mapping[str, Any], ask: Ask, span: Span) -> Figure:
    """Draw a dashboard; ``ask`` answers its queries."""
    shown = list(dashboard["panels"])
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in shown)
    moments = [datetime.fromtimestamp(moment, UTC).strftime("%d %b %Y %H:%M:%S") for moment in (span.start, span.end)]
    canvas = Canvas(dashboard["title"], f"{moments[0]} to {moments[1]} UTC", rows)
    for panel in shown:
        if panel["type"] == "row":
            canvas.text(canvas.place(panel["gridPos"]).inside(0.06, 0, 0, 0), panel["title"], size=NORMAL + 1)
    for panel in panels(dashboard):
        box = canvas.frame(canvas.place(panel["gridPos"]), panel["title"])
        answers = [Answer(query, ask(query)) for query in queries(panel)]
        if not any(answer.series for answer in answers):
            draw_nothing(canvas, box, panel)
        elif panel["type"] == "stat":
            draw_numbers(canvas, box, panel, answers)
        elif panel["type"] == "table":
            draw_table(canvas, box, panel, answers)
        elif panel["type"] == "state-timeline":
            draw_states(canvas, box, panel, answers, span)
        else:
            draw_lines(canvas, box, panel, answers, span)
    return canvas.figure


def png(figure: Figure) -> bytes:
    """A picture as a small file: few colours are enough for lines and text."""
    raw, small = io.BytesIO(), io.BytesIO()
    figure.savefig(raw, format="png", dpi=_RESOLUTION)
    with Image.open(raw) as image:
        reduced = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    reduced.save(small, format="PNG", optimize=True)
    return small.getvalue()

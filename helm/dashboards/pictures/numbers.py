"""Large numbers, and what a panel says if it has none."""

from collections.abc import Mapping, Sequence
from typing import Any

from helm.dashboards.pictures.answers import NAMED, Answer, defaults, named, state
from helm.dashboards.pictures.canvas import CHARACTER, LARGE, MUTED, SMALL, Box, Canvas, fitting
from helm.dashboards.pictures.units import shown


def draw_nothing(canvas: Canvas, box: Box, panel: Mapping[str, Any]) -> None:
    """Say what a panel says without data."""
    canvas.text(box, defaults(panel).get("noValue", "no data"), color=MUTED, ha="center")


def draw_numbers(canvas: Canvas, box: Box, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """Each series as a large number, with its name if there are several."""
    found = [(named(answer, one), one.points[-1][1]) for answer in answers for one in answer.series]
    most = max(1, int(box.width / 0.85))
    cells, left_out = (found, 0) if len(found) <= most else (found[: most - 1], len(found) - most + 1)
    texts = [(name, *_number(panel, value)) for name, value in cells]
    if left_out:
        texts.append(("", f"and {left_out} more", MUTED))
    width = box.width / len(texts)
    for place, (name, text, colour) in enumerate(texts):
        cell = Box(box.left + place * width, box.top, width, box.height)
        size = min(LARGE, SMALL * (width - 0.1) / (CHARACTER * max(len(text), 1)))
        canvas.text(cell.inside(0, 0, 0, 0.16), text, size=size, color=colour, ha="center", weight="bold")
        canvas.text(
            cell._replace(top=box.top + box.height - 0.2, height=0.2),
            fitting(name, width - 0.05),
            size=SMALL,
            color=MUTED,
            ha="center",
        )


def _number(panel: Mapping[str, Any], value: float) -> tuple[str, str]:
    style = defaults(panel)
    named_state = state(style, value)
    if named_state:
        return named_state
    reached = [
        step["color"] for step in style["thresholds"]["steps"] if step["value"] is None or value >= step["value"]
    ]
    return shown(value, style["unit"], style.get("decimals")), NAMED[reached[-1]]

"""Pictures of the newest values: large numbers, tables, and what a panel says if it has none."""

from collections.abc import Mapping, Sequence
from functools import partial
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


def draw_table(canvas: Canvas, box: Box, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """Rows joined by their labels, sorted and named as the panel says."""
    organized = panel["transformations"][-1]["options"]
    names = organized["renameByName"]
    columns = [*filter(partial(_is_there, answers), sorted(names, key=organized["indexByName"].__getitem__))]
    labels = [column for column in columns if not column.startswith("Value")]
    body = _sorted(panel, names, _joined(labels, answers))
    styles = _column_styles(panel)
    widths = _widths(box.width, columns, names, body)
    room = max(1, int(box.height / 0.2) - 1)
    left = box.left
    for column, width in zip(columns, widths, strict=True):
        style, is_label = styles.get(names[column], {}), column in labels
        side = "left" if is_label else "right"
        head = Box(left, box.top, width - 0.12, 0.2)
        canvas.text(head, fitting(names[column], width), size=SMALL, color=MUTED, ha=side, weight="bold")
        for place, row in enumerate(body[:room], 1):
            cell = Box(left, box.top + place * 0.2, width - 0.12, 0.2)
            _cell(canvas, cell, row.get(column), style, side)
        left += width
    if len(body) > room:
        canvas.text(
            Box(box.left, box.top - 0.26, box.width, 0.2), f"{len(body)} rows", size=SMALL, color=MUTED, ha="right"
        )


def _is_there(answers: Sequence[Answer], column: str) -> bool:
    """Whether a column is of values, or a label that some series has."""
    return column.startswith("Value") or any(column in one.labels for answer in answers for one in answer.series)


def _joined(labels: Sequence[str], answers: Sequence[Answer]) -> list[dict[str, Any]]:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for answer in answers:
        field = f"Value #{answer.query.ref}" if len(answers) > 1 else "Value"
        for one in answer.series:
            key = tuple(one.labels.get(label, "") for label in labels)
            found.setdefault(key, dict(zip(labels, key, strict=True)))[field] = one.points[-1][1]
    return list(found.values())


def _sorted(panel: Mapping[str, Any], names: Mapping[str, str], body: list[dict[str, Any]]) -> list[dict[str, Any]]:
    order = panel["options"]["sortBy"][0]
    column = next(field for field, name in names.items() if name == order["displayName"])
    known = [row for row in body if column in row]
    known.sort(key=lambda row: row[column], reverse=bool(order.get("desc")))
    return known + [row for row in body if column not in row]


def _column_styles(panel: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        override["matcher"]["options"]: {setting["id"]: setting.get("value") for setting in override["properties"]}
        for override in panel["fieldConfig"].get("overrides") or ()
    }


def _widths(
    width: float, columns: Sequence[str], names: Mapping[str, str], body: Sequence[Mapping[str, Any]]
) -> list[float]:
    wanted = []
    for column in columns:
        texts = [str(row.get(column, "")) for row in body] if not column.startswith("Value") else ["0" * 9]
        wanted.append(max(len(names[column]), 6, *map(len, texts or [""])) * CHARACTER + 0.2)
    return [one * width / sum(wanted) for one in wanted]


def _cell(canvas: Canvas, cell: Box, value: Any, style: Mapping[str, Any], side: str) -> None:
    if isinstance(value, str):
        canvas.text(cell, fitting(value, cell.width), size=SMALL, ha=side)
        return
    if value is None:
        return
    word = state(style, value) if "mappings" in style else None
    if word:
        canvas.swatch(Box(cell.left + 0.04, cell.top + 0.02, cell.width, cell.height - 0.04), word[1])
        canvas.text(cell, word[0], size=SMALL, ha="right", color="white")
        return
    text = shown(value, style.get("unit", "none"), style.get("decimals"))
    canvas.text(cell, text, size=SMALL, ha=side)

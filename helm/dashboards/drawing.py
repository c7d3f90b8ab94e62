"""What stands inside a panel's frame: lines, large numbers, bands of states, tables."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.ticker import FuncFormatter, MaxNLocator

from helm.dashboards.canvas import CHARACTER, GRID, INK, LARGE, LINE, MUTED, SMALL, Box, Canvas, fitting
from helm.dashboards.reading import Query
from helm.dashboards.units import axis_name, scale, shown, tick

COLOURS = (
    "#3b7dd8", "#e07b39", "#3f9e5a", "#c9423f", "#8661c1", "#8c6d4f", "#d46aa5", "#6b7280", "#b3a125", "#2aa5b8",
    "#1d4f91", "#9c4a12", "#1f6b3a", "#8a1f1d", "#553a8a", "#5d4530", "#99346e", "#3d434d", "#7a6c0e", "#12707f",
)  # fmt: skip
NAMED = {
    "green": "#3f9e5a", "blue": "#3b7dd8", "yellow": "#d9b310", "orange": "#e07b39", "red": "#c9423f",
    "purple": "#8661c1", "text": INK,
}  # fmt: skip
_LIST_LINES = 3


class Series(Protocol):
    """A series of an answer."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def points(self) -> Sequence[tuple[float, float]]:
        """Unix time and value."""


class Answer(NamedTuple):
    """A query, and what it was answered."""

    query: Query
    series: Sequence[Series]


class Span(NamedTuple):
    """The time that is shown, in Unix seconds, and how far two neighbouring points lie apart."""

    start: float
    end: float
    step: float


class Line(NamedTuple):
    """A named series on the common times; NaN where it has no value."""

    name: str
    values: np.ndarray[Any, np.dtype[np.float64]]
    colour: str
    dashed: bool = False

    @property
    def last(self) -> float:
        """Its newest value."""
        known = self.values[~np.isnan(self.values)]
        return float(known[-1]) if len(known) else float("nan")


def named(answer: Answer, series: Series) -> str:
    """What a legend calls a series."""
    labels = series.labels
    if answer.query.legend == "__auto":
        return ", ".join(labels.values())
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found.group(1), ""), answer.query.legend).strip()


def defaults(panel: Mapping[str, Any]) -> dict[str, Any]:
    """How a panel shows values unless a column says otherwise."""
    found: dict[str, Any] = panel["fieldConfig"]["defaults"]
    return found


def draw_nothing(canvas: Canvas, box: Box, panel: Mapping[str, Any]) -> None:
    """Say what a panel says without data."""
    canvas.text(box, defaults(panel).get("noValue", "no data"), color=MUTED, ha="center")


# --- numbers ---


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


def state(style: Mapping[str, Any], value: float) -> tuple[str, str] | None:
    """The word and colour that a value stands for; None if it is just a number."""
    for mapping in style.get("mappings") or ():
        found = mapping["options"].get(f"{value:g}")
        if found:
            return found["text"], NAMED[found["color"]]
    return None


# --- lines ---


def lines_of(panel: Mapping[str, Any], answers: Sequence[Answer], times: Sequence[float], step: float) -> list[Line]:
    """All series of a panel on common times, each with a colour of its own."""
    dashed = [
        re.compile(override["matcher"]["options"].strip("/"))
        for override in panel["fieldConfig"].get("overrides") or ()
        if any(setting["id"] == "custom.lineStyle" for setting in override["properties"])
    ]
    found = [(named(answer, one), one) for answer in answers for one in answer.series]
    made = []
    for place, (name, one) in enumerate(found):
        values = np.full(len(times), np.nan)
        for moment, value in one.points:
            values[min(len(times) - 1, round((moment - times[0]) / step))] = value
        colour = COLOURS[place % len(COLOURS)]
        made.append(Line(name, values, colour, any(pattern.search(name) for pattern in dashed)))
    return made


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
    style_times(axes, span, plot.width)
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
    size = scale(max(abs(low), abs(high)), unit)
    places = MaxNLocator(nbins=5, integer=unit == "short" and high - low > 4).tick_values(low / size, high / size)
    axes.set_yticks([place * size for place in places if low <= place * size <= high])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, unit)))
    axes.set_ylabel(axis_name(unit, custom.get("axisLabel", "")), fontsize=SMALL, color=MUTED)
    quiet(axes)


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


# --- legends ---


def _entry_width(lines: Sequence[Line], width: float) -> float:
    longest = max((len(line.name) for line in lines), default=1)
    return min(width, CHARACTER * longest + 0.35)


def _legend_lines(lines: Sequence[Line], width: float) -> int:
    across = max(1, int(width / _entry_width(lines, width)))
    return max(1, min(_LIST_LINES, -(-len(lines) // across)))


def _draw_list_legend(canvas: Canvas, box: Box, lines: Sequence[Line]) -> None:
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


# --- states ---


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


# --- tables ---


def draw_table(canvas: Canvas, box: Box, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """Rows joined by their labels, sorted and named as the panel says."""
    organized = panel["transformations"][-1]["options"]
    names = organized["renameByName"]
    columns = sorted(names, key=organized["indexByName"].__getitem__)
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

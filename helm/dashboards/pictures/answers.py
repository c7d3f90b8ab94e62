"""What a panel is drawn from: its queries with their answers, as lines on common times, and states by their numbers."""

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from helm.dashboards.pictures.canvas import INK
from helm.dashboards.reading import Query

COLOURS = (
    "#3b7dd8", "#e07b39", "#3f9e5a", "#c9423f", "#8661c1", "#8c6d4f", "#d46aa5", "#6b7280", "#b3a125", "#2aa5b8",
    "#1d4f91", "#9c4a12", "#1f6b3a", "#8a1f1d", "#553a8a", "#5d4530", "#99346e", "#3d434d", "#7a6c0e", "#12707f",
    "#8fb8ec", "#f2b58c", "#8fcfa2", "#e88f8d", "#bda5e0", "#c2a88f", "#ecaacd", "#aab0bb", "#ddd07a", "#86d3de",
)  # fmt: skip
_PLAIN = 10
NAMED = {
    "green": "#3f9e5a", "blue": "#3b7dd8", "yellow": "#d9b310", "orange": "#e07b39", "red": "#c9423f",
    "purple": "#8661c1", "light-blue": "#8fb8ec", "dark-yellow": "#a8860c", "light-purple": "#bda5e0", "text": INK,
}  # fmt: skip


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


def state(style: Mapping[str, Any], value: float) -> tuple[str, str] | None:
    """The word and colour that a value stands for; None if it is just a number."""
    for mapping in style.get("mappings") or ():
        found = mapping["options"].get(f"{value:g}")
        if found:
            return found["text"], NAMED[found["color"]]
    return None


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name that hangs on the name, unless another of them has it and some are left.

    Examples
    --------
    >>> colours_of(["econ", "sport"])["econ"] == colours_of(["arts", "econ"])["econ"]
    True
    """
    found, known = dict[str, str](), sorted(set(names))
    palette = COLOURS[:_PLAIN] if len(known) <= _PLAIN else COLOURS  # the darker ones only where there are many
    for name in known:
        first = zlib.crc32(name.encode())
        ordered = [palette[(first + place) % len(palette)] for place in range(len(palette))]
        free = (colour for colour in ordered if colour not in found.values())
        found[name] = next(free, ordered[0])
    return found


def lines_of(panel: Mapping[str, Any], answers: Sequence[Answer], times: Sequence[float], step: float) -> list[Line]:
    """All series of a panel on common times, each in the colour of its name: a feed has the same in every panel."""
    dashed = [
        re.compile(override["matcher"]["options"].strip("/"))
        for override in panel["fieldConfig"].get("overrides") or ()
        if any(setting["id"] == "custom.lineStyle" for setting in override["properties"])
    ]
    found = [(named(answer, one), one) for answer in answers for one in answer.series]
    colours, made = colours_of(name for name, _ in found), []
    for name, one in found:
        values = np.full(len(times), np.nan)
        for moment, value in one.points:
            values[min(len(times) - 1, round((moment - times[0]) / step))] = value
        made.append(Line(name, values, colours[name], any(pattern.search(name) for pattern in dashed)))
    return made

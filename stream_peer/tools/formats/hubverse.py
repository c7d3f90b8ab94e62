"""A hub of models (Hubverse): model output as quantiles or cdf, and target data; CSV or Parquet.

====================================  =================================================================================
model output                          meaning
====================================  =================================================================================
``model_id``                          the expert; without it the name of the file's directory
``reference_date``, ``origin_date``, ``forecast_date``  when the forecast was made, at 00:00 UTC
``target_end_date``, ``target_date``  the day that is forecast; without it ``reference_date`` + 7 days * ``horizon``
``output_type``                       ``quantile`` and ``cdf``; rows of other types are counted and left out
``output_type_id``                    the level of a quantile; the value at which a cdf stands
``value``                             the value of a quantile; the level of a cdf
all others                            what the task is: ``target``, ``location``, …; ``horizon`` is not part of it
====================================  =================================================================================

====================================  =================================================================================
target data                           meaning
====================================  =================================================================================
``observation`` or ``oracle_value``   what was observed; of oracle output rows of type ``cdf`` and ``pmf`` are ignored
``target_end_date``, ``target_date``, ``date``  on which day
``as_of``                             of several versions of an observation the last one is the outcome
all others                            must be equal in a task that has such a column
====================================  =================================================================================

A task becomes a question by a threshold: will the observation be above it? A cdf has a question at each of its values,
quantiles at each ``--threshold``: a value, or a multiple of the last observation before the forecast (``1.5x``); by
default ``1x``: will it rise? The probability is read off the quantiles by linear interpolation; beyond the outermost
ones it is half of what they leave. A question closes at the end of the day that it asks for; its outcome is known
seven days later.
"""

import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set
from datetime import timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from stream_peer.errors import RejectedEvent, UnreadableFileError
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.tools.formats.adapter import Adapter, FormatOptions, one_source
from stream_peer.tools.formats.gathered import Gathered
from stream_peer.tools.formats.sources import ImportSource, ImportSources, SourceRow
from stream_peer.tools.formats.values import Unused, finite, identity, moment_of

_MADE = ("reference_date", "origin_date", "forecast_date")
_ASKED = ("target_end_date", "target_date")
_OBSERVED_ON = (*_ASKED, "date")
_OBSERVED = ("observation", "oracle_value")
_NOT_OF_TASK = frozenset(
    (*_MADE, *_OBSERVED_ON, *_OBSERVED, "model_id", "horizon", "output_type", "output_type_id", "value", "as_of")
)
_DAY: Milliseconds = timedelta(days=1) // timedelta(milliseconds=1)
_WEEK = 7 * _DAY
_TYPES = ("quantile", "cdf")

Task = tuple[tuple[str, str], ...]
"""What is forecast, apart from the day: columns and their values."""


class Threshold(NamedTuple):
    """A value, or a multiple of the last observation before."""

    number: float
    is_multiple: bool


class Series:
    """What was observed, by task and day.

    Parameters
    ----------
    columns : set of str
        Those of model output: others do not tell tasks apart.
    """

    def __init__(self, columns: Set[str]) -> None:
        self._of_models = columns
        self._values: dict[Task, dict[Milliseconds, tuple[Milliseconds, float]]] = {}
        self._days: dict[Task, list[Milliseconds]] = {}
        self._columns: frozenset[str] = frozenset()

    def add(self, row: SourceRow) -> None:
        """Take up an observation; the last version of it counts."""
        if str(row.get("output_type")) in ("cdf", "pmf"):
            return
        day = moment_of(_first(row, _OBSERVED_ON), "target_end_date")
        version = 0 if row.get("as_of") is None else moment_of(row.get("as_of"), "as_of")
        task = tuple((name, value) for name, value in _task(row) if name in self._of_models)
        self._columns = frozenset(name for name, _ in task)
        versions = self._values.setdefault(task, {})
        if version >= versions.get(day, (version, 0.0))[0]:
            versions[day] = version, finite(_first(row, _OBSERVED), "observation")
        self._days.clear()

    def on(self, task: Task, day: Milliseconds) -> float | None:
        """What was observed on a day."""
        found = self._values.get(self._of(task), {}).get(day)
        return None if found is None else found[1]

    def before(self, task: Task, day: Milliseconds) -> float | None:
        """The last observation before a day."""
        own = self._of(task)
        if own not in self._days:
            self._days[own] = sorted(self._values.get(own, {}))
        days = self._days[own]
        place = bisect_left(days, day)
        return None if place == 0 else self._values[own][days[place - 1]][1]

    def _of(self, task: Task) -> Task:
        """The task as far as target data tells of it: it may lack columns that model output has."""
        return tuple((name, value) for name, value in task if name in self._columns)


class _Distribution(NamedTuple):
    """What a model says of a task on a day: levels by value, both in increasing order."""

    model: str
    made: Milliseconds
    day: Milliseconds
    kind: str
    task: Task
    values: Sequence[float]
    levels: Sequence[float]


def read_hubverse(sources: ImportSources, gathered: Gathered, options: FormatOptions) -> None:
    """Gather target data, then the distributions of models, each once all of its rows are read."""
    thresholds = [read_threshold(text) for text in options.thresholds or ("1x",)]
    observed = [source for source in sources.all if sources.columns(source) & set(_OBSERVED)]
    of_models = [
        source
        for source in one_source(sources, "model output", "output_type", "output_type_id", "value")
        if source not in observed
    ]
    series = Series(frozenset().union(*map(sources.columns, of_models)))
    for source in observed:
        gathered.each(sources.rows(source), series.add)
    with _Rows() as rows:
        for source in of_models:
            gathered.each(sources.rows(source), partial(rows.add, source=source))
        for one in rows.distributions():
            gathered.attempt(f"{one.model} of {to_iso(one.made)[:10]}", _ask, one, thresholds, series, gathered)


def read_threshold(text: str) -> Threshold:
    """A threshold of the command line.

    Raises
    ------
    UnreadableFileError
        If it is none.

    Examples
    --------
    >>> read_threshold("1.5x"), read_threshold("200")
    (Threshold(number=1.5, is_multiple=True), Threshold(number=200.0, is_multiple=False))
    """
    try:
        return Threshold(finite(text.removesuffix("x"), "threshold"), text.endswith("x"))
    except RejectedEvent as refusal:
        msg = f"--threshold {text}: a value such as 200, or a multiple of the last observation such as 1.5x"
        raise UnreadableFileError(msg) from refusal


def above(threshold: float, values: Sequence[float], levels: Sequence[float]) -> float:
    """The probability that a model gives to more than ``threshold``, by its quantiles.

    Linear between quantiles. Beyond the outermost ones half of what they leave.

    Examples
    --------
    >>> above(15.0, [10.0, 20.0], [0.25, 0.75]), above(30.0, [10.0, 20.0], [0.25, 0.75])
    (0.5, 0.125)
    """
    place = bisect_right(values, threshold)
    if place == 0:
        return 1.0 - levels[0] / 2
    if place == len(values):
        return (1.0 - levels[-1]) / (1 if threshold == values[-1] else 2)
    low, high = values[place - 1], values[place]
    share = (threshold - low) / (high - low)
    return 1.0 - (levels[place - 1] + share * (levels[place] - levels[place - 1]))


def _ask(one: _Distribution, thresholds: Sequence[Threshold], series: Series, gathered: Gathered) -> None:
    """A forecast for each question that the task becomes."""
    observed = series.on(one.task, one.day)
    for threshold, probability in _said(one, thresholds, series):
        question = _question(one, threshold)
        closes = one.day + _DAY
        gathered.forecast(question, one.model, probability, one.made)
        gathered.question(question, closes=closes)
        if observed is not None:
            gathered.outcome(question, int(observed > threshold), resolved=closes + _WEEK, closed=closes)


def _said(one: _Distribution, thresholds: Sequence[Threshold], series: Series) -> Iterator[tuple[float, float]]:
    """Thresholds, and the probability of more than each."""
    if one.kind == "cdf":
        yield from ((value, 1.0 - level) for value, level in zip(one.values, one.levels, strict=True))
        return
    last = series.before(one.task, one.made)
    for threshold in thresholds:
        if threshold.is_multiple and last is None:
            day = to_iso(one.made)[:10]
            msg = f"nothing was observed before {day} of {_named(one.task)}: give --threshold a value"
            raise RejectedEvent(Unused.NO_THRESHOLD, message=msg)
        value = threshold.number * (last or 0.0) if threshold.is_multiple else threshold.number
        yield value, above(value, one.values, one.levels)


def _question(one: _Distribution, threshold: float) -> str:
    return f"{_named(one.task)} {to_iso(one.day)[:10]} > {threshold:.10g}".lstrip()


def _named(task: Task) -> str:
    return " ".join(value for _, value in task)


def _task(row: SourceRow) -> Task:
    others = ((name, row.get(name)) for name in row.fields if name not in _NOT_OF_TASK)
    return tuple(sorted((name, identity(value, name)) for name, value in others if value is not None))


def _first(row: SourceRow, names: Sequence[str]) -> Any:
    return next((row.get(name) for name in names if row.get(name) is not None), None)


class _Rows:
    """Rows of model output in a temporary file, so that those of one distribution need not stand together."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("")
        self._file.execute(
            "CREATE TABLE said (model TEXT, made INTEGER, day INTEGER, kind TEXT, task TEXT, value REAL, level REAL)"
        )

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, row: SourceRow, source: ImportSource) -> None:
        """Keep a row, if it is one of a quantile or of a cdf."""
        kind = str(row.get("output_type"))
        if kind not in _TYPES:
            raise RejectedEvent(Unused.NOT_YES_NO, message=f"output_type is {kind}, not quantile or cdf")
        made = moment_of(_first(row, _MADE), "reference_date")
        named, value = finite(row.get("output_type_id"), "output_type_id"), finite(row.get("value"), "value")
        level, at = (named, value) if kind == "quantile" else (value, named)
        if not 0.0 <= level <= 1.0:
            raise RejectedEvent("probability-range", message=f"a level is {level}, not within 0..1")
        model = row.get("model_id")
        model = source.path.parent.name if model is None else identity(model, "model_id")
        said = (model, made, _day(row, made), kind, json.dumps(_task(row)), at, level)
        self._file.execute("INSERT INTO said VALUES (?, ?, ?, ?, ?, ?, ?)", said)

    def distributions(self) -> Iterator[_Distribution]:
        """What models say, in order of time."""
        rows = self._file.execute("SELECT * FROM said ORDER BY made, day, task, kind, model, value, level")
        for (model, made, day, kind, task), some in groupby(rows, key=itemgetter(0, 1, 2, 3, 4)):
            values, levels = zip(*((value, level) for *_, value, level in some), strict=True)
            known: Task = tuple((name, text) for name, text in json.loads(task))
            yield _Distribution(model, made, day, kind, known, values, levels)


def _day(row: SourceRow, made: Milliseconds) -> Milliseconds:
    stated = _first(row, _ASKED)
    if stated is not None:
        return moment_of(stated, "target_end_date")
    return made + round(finite(row.get("horizon"), "horizon")) * _WEEK


HUBVERSE = Adapter("model output of a hub (quantiles or cdf), and its target data", read_hubverse, ("thresholds",))

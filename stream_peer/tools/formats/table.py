"""A table of forecasts: CSV, Parquet or JSON lines, whose columns are found by their names or named.

================  ====================================================================================================
role              columns that are looked for
================  ====================================================================================================
``question``      ``question``, ``question_id``, ``market``, ``market_id``, ``task``, ``item``
``expert``        ``expert``, ``expert_id``, ``forecaster``, ``user``, ``user_id``, ``model``, ``model_id``
``probability``   ``probability``, ``forecast``, ``prediction``, ``prob``, ``p``, ``probability_yes``
``time``          ``time``, ``at``, ``timestamp``, ``date``, ``datetime``, ``created_at``, ``forecast_date``
``outcome``       ``outcome``, ``resolution``, ``resolved_to``, ``truth``; optional: yes, no, 0, 1, annulled or nothing
``opens``         ``opens``, ``opens_at``, ``open_time``; optional: when the question opens
``closes``        ``closes``, ``closes_at``, ``close_time``; optional: when it closes
``resolved``      ``resolved``, ``resolved_at``, ``resolution_time``; optional: when its outcome was known
``option``        ``option``, ``choice``; optional: what the probability is of; the outcome names an option
``threshold``     ``threshold``; optional: the probability is that of at most this; the outcome is a value
================  ====================================================================================================

A row with an option or a threshold is about a part of its question. A file without experts and probabilities describes
questions. An outcome without ``resolved`` counts as known when the question closes, or else at its last forecast.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stream_peer.errors import RejectedEvent
from stream_peer.events.groups import Value, limit_of, option_id, outcomes_of, threshold_id, value_of
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds
from stream_peer.tools.formats.adapter import Adapter, Columns, FormatOptions, check_named
from stream_peer.tools.formats.gathered import ANNULLED, Gathered
from stream_peer.tools.formats.sources import ImportSources, SourceRow
from stream_peer.tools.formats.values import identity, moment_of, moment_or_none, probability

ROLES = {
    "question": ("question", "question_id", "market", "market_id", "task", "item"),
    "expert": ("expert", "expert_id", "forecaster", "user", "user_id", "model", "model_id"),
    "probability": ("probability", "forecast", "prediction", "prob", "p", "probability_yes"),
    "time": ("time", "at", "timestamp", "date", "datetime", "created_at", "forecast_date"),
    "outcome": ("outcome", "resolution", "resolved_to", "truth"),
    "opens": ("opens", "opens_at", "open_time"),
    "closes": ("closes", "closes_at", "close_time"),
    "resolved": ("resolved", "resolved_at", "resolution_time"),
    "option": ("option", "choice"),
    "threshold": ("threshold",),
}
_FORECASTS = ("question", "expert", "probability", "time")
_ANNULLED = frozenset((ANNULLED, "annulled", "ambiguous", "void", "cancelled"))


class _Described(NamedTuple):
    """What a row says of a question: where it stands, when it opens, closes and is resolved, and its outcome."""

    place: str
    times: Mapping[str, Milliseconds | None]
    outcome: Any


class _Groups:
    """Parts of questions with options or thresholds, and what is said of these; told when all rows are read."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, None]] = {}
        self._described: dict[str, _Described] = {}

    def part(self, question: str, row: SourceRow, columns: Columns) -> str:
        """The id of the question that a row is about."""
        option, threshold = (columns.get(row, role) for role in ("option", "threshold"))
        if option is None and threshold is None:
            return question
        if option is not None:
            part = option_id(question, identity(option, "option"))
        else:
            part = threshold_id(question, _value(threshold))
        self._parts.setdefault(question, {})[part] = None
        return part

    def describe(self, question: str, described: _Described) -> None:
        """Keep what is said of a question, the last outcome of several."""
        known = self._described.get(question)
        if known is None or described.outcome is not None or known.outcome is None:
            self._described[question] = described

    def tell(self, gathered: Gathered) -> None:
        """Say of the parts what is known of their questions."""
        for question, described in self._described.items():
            parts = list(self._parts.get(question, ()))
            gathered.attempt(described.place, _tell, question, parts, described, gathered)


def _value(said: Any) -> Value:
    try:
        return value_of(said if isinstance(said, float | int) else str(said).strip())
    except (ValueError, OverflowError):
        msg = f"{str(said)[:100]!r} is neither a number nor a time in ISO 8601"
        raise RejectedEvent(Reason.WRONG_TYPE, field="threshold", message=msg) from None


def _tell(question: str, parts: Sequence[str], described: _Described, gathered: Gathered) -> None:
    """What is known of a question, or of each of its parts."""
    times, outcome = described.times, described.outcome
    for part in parts or [question]:
        if times["opens"] is not None or times["closes"] is not None:
            gathered.question(part, opens=times["opens"], closes=times["closes"])
    if outcome is None:
        return
    spelt = ANNULLED if str(outcome).strip().lower() in _ANNULLED else outcome
    of_parts: Mapping[str, Any] = dict.fromkeys(parts or [question], spelt)
    if parts and spelt != ANNULLED:
        said = identity(outcome, "outcome") if limit_of(parts[0]) is None else _value(outcome)
        try:
            of_parts = outcomes_of(parts, said)
        except ValueError as error:
            raise RejectedEvent(Reason.OUTCOME_UNKNOWN, field="outcome", message=str(error)) from None
    for part, of_part in of_parts.items():
        gathered.outcome(part, of_part, resolved=times["resolved"])


def read_table(sources: ImportSources, gathered: Gathered, options: FormatOptions) -> None:
    """Gather forecasts, and what the rows say of their questions."""
    check_named(options.columns, sources)
    groups = _Groups()
    for source in sources.all:
        columns = Columns(ROLES, options.columns, sources.columns(source), source.name)
        describes = columns.has("question", "outcome") and not (columns.has("expert") or columns.has("probability"))
        if not describes and not columns.has(*_FORECASTS):
            raise columns.missing(*_FORECASTS)

        def take(row: SourceRow, columns: Columns = columns, *, describes: bool = describes) -> None:
            question = identity(columns.get(row, "question"), "question")
            part = groups.part(question, row, columns)
            if not describes:
                gathered.forecast(
                    part,
                    identity(columns.get(row, "expert"), "expert"),
                    probability(columns.get(row, "probability"), options.unit),
                    moment_of(columns.get(row, "time")),
                )
            described = _described(row, columns)
            if describes or part != question:
                groups.describe(question, described)
            else:
                _tell(question, (), described, gathered)

        gathered.each(sources.rows(source), take)
    groups.tell(gathered)


def describe(row: SourceRow, columns: Columns, gathered: Gathered) -> None:
    """Take up what a row says of its question: its times and its outcome."""
    _tell(identity(columns.get(row, "question"), "question"), (), _described(row, columns), gathered)


def _described(row: SourceRow, columns: Columns) -> _Described:
    times = {role: moment_or_none(columns.get(row, role), role) for role in ("opens", "closes", "resolved")}
    return _Described(row.place, times, columns.get(row, "outcome"))


TABLE = Adapter(
    "a table of forecasts with columns for question, expert, probability and time, and perhaps outcome",
    read_table,
    ("columns", "unit"),
)

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
================  ====================================================================================================

A file without experts and probabilities describes questions. An outcome without ``resolved`` counts as known when the
question closes, or else at its last forecast.
"""

from typing import Any

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
}
_FORECASTS = ("question", "expert", "probability", "time")
_ANNULLED = frozenset((ANNULLED, "annulled", "ambiguous", "void", "cancelled"))


def read_table(sources: ImportSources, gathered: Gathered, options: FormatOptions) -> None:
    """Gather forecasts, and what the rows say of their questions."""
    check_named(options.columns, sources)
    for source in sources.all:
        columns = Columns(ROLES, options.columns, sources.columns(source), source.name)
        describes = columns.has("question", "outcome") and not (columns.has("expert") or columns.has("probability"))
        if not describes and not columns.has(*_FORECASTS):
            raise columns.missing(*_FORECASTS)

        def take(row: SourceRow, columns: Columns = columns, *, describes: bool = describes) -> None:
            if not describes:
                gathered.forecast(
                    identity(columns.get(row, "question"), "question"),
                    identity(columns.get(row, "expert"), "expert"),
                    probability(columns.get(row, "probability"), options.unit),
                    moment_of(columns.get(row, "time")),
                )
            describe(row, columns, gathered)

        gathered.each(sources.rows(source), take)


def describe(row: SourceRow, columns: Columns, gathered: Gathered) -> None:
    """Take up what a row says of its question: its times and its outcome."""
    question = identity(columns.get(row, "question"), "question")
    times = {role: moment_or_none(columns.get(row, role), role) for role in ("opens", "closes", "resolved")}
    outcome: Any = columns.get(row, "outcome")
    if outcome is not None:
        spelt = ANNULLED if str(outcome).strip().lower() in _ANNULLED else outcome
        gathered.outcome(question, spelt, resolved=times["resolved"])
    if times["opens"] is not None or times["closes"] is not None:
        gathered.question(question, opens=times["opens"], closes=times["closes"])


TABLE = Adapter(
    "a table of forecasts with columns for question, expert, probability and time, and perhaps outcome",
    read_table,
    ("columns", "unit"),
)

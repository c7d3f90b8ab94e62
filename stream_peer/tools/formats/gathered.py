"""What an import has gathered of its files, and the events that it makes of them, in order of time.

Forecasts lie in a temporary file, whatever their order was, so memory grows with the number of questions only.
"""

import heapq
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import Resolution, decode
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.tools.formats.sources import SourceRow
from stream_peer.tools.formats.values import Unused

MOST_AT_ONCE = 1_000
"""So many forecasts are in one event at most: with the longest ids, half of the largest event."""
_TOGETHER = 10_000

_encode = msgspec.json.Encoder().encode
_ASKED, _FORECAST, _TOLD = range(3)
"""Of one moment a question comes first, and an outcome last."""

ANNULLED = "annulled"


class RefusedRow(msgspec.Struct, frozen=True):
    """A row that is not used."""

    place: str
    reason: str
    message: str


class _Question(msgspec.Struct):
    opens: Milliseconds | None = None
    closes: Milliseconds | None = None
    outcome: Any = None
    resolved: Milliseconds | None = None
    closed: Milliseconds | None = None


class _Span(NamedTuple):
    """The first and last forecast of a question, and how many there are; withdrawals apart."""

    first: Milliseconds
    last: Milliseconds
    forecasts: int


class ImportedEvent(NamedTuple):
    """An event of an import: its time, its order within one moment, the question that is its key, and its payload."""

    at: Milliseconds
    rank: int
    question: str
    payload: bytes


class Gathered:
    """Questions, forecasts and outcomes of files. A context manager, for its temporary file.

    Parameters
    ----------
    feed : str
        The feed of all events.
    names : mapping of str to str
        Other ids for questions, by those of the files.
    refused : callable, optional
        Gets each row that is not used.
    """

    def __init__(
        self, feed: str, names: Mapping[str, str] | None = None, refused: Callable[[RefusedRow], object] | None = None
    ) -> None:
        self.feed = feed
        self.rows = 0
        self.events = 0
        self.repeated = 0
        self.first_refused: dict[str, RefusedRow] = {}
        self.reasons: Counter[str] = Counter()
        self.experts: set[str] = set()
        self._names = names or {}
        self._refused = refused
        self._questions: dict[str, _Question] = {}
        self._waiting: list[tuple[Milliseconds, str, str, float | None]] = []
        self._file = sqlite3.connect("")  # a temporary file, gone when it is closed
        self._file.execute("CREATE TABLE forecast (at INTEGER, question TEXT, expert TEXT, probability REAL)")

    def __enter__(self) -> "Gathered":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def each(self, rows: Iterable[SourceRow], take: Callable[[SourceRow], None]) -> None:
        """Take rows one by one; of one that is refused, the reason is counted."""
        for row in rows:
            self.rows += 1
            if row.fault:
                self.refuse(row.place, RejectedEvent(Unused.UNREADABLE, message=row.fault))
            else:
                self.attempt(row.place, take, row)

    def attempt(self, place: str, take: Callable[..., None], *what: Any) -> None:
        """Take something of a place; if it is refused, the reason is counted."""
        try:
            take(*what)
        except RejectedEvent as refusal:
            self.refuse(place, refusal)

    def refuse(self, place: str, refusal: RejectedEvent) -> None:
        """Count something that is not used."""
        row = RefusedRow(place, str(refusal.reason), refusal.message)
        self.reasons[row.reason] += 1
        self.first_refused.setdefault(row.reason, row)
        if self._refused is not None:
            self._refused(row)

    def forecast(self, question: str, expert: str, probability: float | None, at: Milliseconds) -> None:
        """Somebody's forecast; None: it is withdrawn, unless there is another one of the same moment.

        Raises
        ------
        RejectedEvent
            If the service would not take it.
        """
        question = self._names.get(question, question)
        decode(self._payload("forecast", question, at, expert_id=expert, probability=probability))
        self._question(question)
        self.experts.add(expert)
        self._waiting.append((at, question, expert, probability))
        if len(self._waiting) >= _TOGETHER:
            self._store()

    def question(self, question: str, *, opens: Milliseconds | None = None, closes: Milliseconds | None = None) -> None:
        """When a question opens and closes, as far as it is known."""
        known = self._question(self._names.get(question, question))
        known.opens = known.opens if opens is None else opens
        known.closes = known.closes if closes is None else closes

    def outcome(
        self,
        question: str,
        outcome: Any,
        *,
        resolved: Milliseconds | None = None,
        closed: Milliseconds | None = None,
    ) -> None:
        """The outcome of a question, in any spelling of the events, or ``ANNULLED``.

        ``resolved``: when it was known; without it when the question closes, else at its last forecast.

        Raises
        ------
        RejectedEvent
            If it is no outcome.
        """
        question = self._names.get(question, question)
        value = None if outcome == ANNULLED else outcome
        event = decode(self._payload("resolution", question, resolved or 0, outcome=value))
        if isinstance(event, Resolution):
            value = None if event.verdict == "annulled" else event.verdict
        known = self._question(question)
        known.outcome = ANNULLED if value is None else value
        known.resolved = known.resolved if resolved is None else resolved
        known.closed = known.closed if closed is None else closed

    @property
    def counts(self) -> dict[str, int]:
        """How many questions, outcomes and forecasts there are; questions without forecasts are not counted."""
        known = [self._questions[question] for question in self._spans]
        return {
            "questions": len(known),
            "outcomes": sum(one.outcome is not None for one in known),
            "experts": len(self.experts),
            "forecasts": sum(span.forecasts for span in self._spans.values()),
        }

    @property
    def unasked(self) -> int:
        """How many questions nobody forecast."""
        return len(self._questions) - len(self._spans)

    def timed(self) -> Iterator[ImportedEvent]:
        """The events in order of time."""
        asked = sorted(self._asked(), key=itemgetter(0, 2))
        told = sorted(self._told(), key=itemgetter(0, 2))
        self.events = self.repeated = 0
        for event in heapq.merge(asked, self._forecasts(), told, key=itemgetter(0, 1)):
            self.events += 1
            yield event

    def _asked(self) -> Iterator[ImportedEvent]:
        """A question that states nothing is not described: it opens with its first forecast."""
        for question, span in self._spans.items():
            known = self._questions[question]
            if known.opens is None and known.closes is None:
                continue
            opens = span.first if known.opens is None else known.opens
            times = {"opens_at": to_iso(opens)}
            if known.closes is not None:
                times["closes_at"] = to_iso(known.closes)
            at = min(opens, span.first)
            yield ImportedEvent(at, _ASKED, question, self._payload("question", question, at, **times))

    def _told(self) -> Iterator[ImportedEvent]:
        for question, span in self._spans.items():
            known = self._questions[question]
            if known.outcome is None:
                continue
            at = next(at for at in (known.resolved, known.closed, known.closes, span.last) if at is not None)
            fields: dict[str, Any] = {"outcome": None if known.outcome == ANNULLED else known.outcome}
            if known.closed is not None:
                fields["closed_at"] = to_iso(known.closed)
            yield ImportedEvent(at, _TOLD, question, self._payload("resolution", question, at, **fields))

    def _forecasts(self) -> Iterator[ImportedEvent]:
        """Forecasts of one question at one moment are one event; of one expert the last of them counts."""
        in_order = "SELECT * FROM forecast ORDER BY at, question, probability IS NOT NULL, rowid"
        for (at, question), some in groupby(self._file.execute(in_order), key=itemgetter(0, 1)):
            known = self._questions[question]
            end = min((t for t in (known.resolved, known.closed, known.closes) if t is not None), default=at + 1)
            found: dict[str, float | None] = {}
            for _, _, expert, probability in some:
                self.repeated += found.get(expert) is not None
                if probability is not None or at < end:
                    found[expert] = probability
            experts = iter(found.items())
            while part := dict(islice(experts, MOST_AT_ONCE)):
                yield ImportedEvent(at, _FORECAST, question, self._said(question, at, part))

    def _said(self, question: str, at: Milliseconds, forecasts: Mapping[str, float | None]) -> bytes:
        if len(forecasts) > 1:
            return self._payload("forecasts", question, at, forecasts=forecasts)
        [(expert, probability)] = forecasts.items()
        return self._payload("forecast", question, at, expert_id=expert, probability=probability)

    def _payload(self, kind: str, question: str, at: Milliseconds, **fields: Any) -> bytes:
        try:
            return _encode({"type": kind, "question_id": question, "feed": self.feed, "at": to_iso(at), **fields})
        except UnicodeEncodeError as error:
            raise RejectedEvent(Unused.UNREADABLE, message=f"it is no text in UTF-8: {error.reason}") from None

    @cached_property
    def _spans(self) -> dict[str, "_Span"]:
        """Of each question that somebody forecast; once all is gathered."""
        self._store()
        spans = "SELECT question, MIN(at), MAX(at), COUNT(*) FROM forecast WHERE probability IS NOT NULL GROUP BY 1"
        return {question: _Span(*span) for question, *span in self._file.execute(spans)}

    def _question(self, question: str) -> _Question:
        return self._questions.setdefault(question, _Question())

    def _store(self) -> None:
        self._file.executemany("INSERT INTO forecast VALUES (?, ?, ?, ?)", self._waiting)
        self._waiting.clear()


def question_names(rows: Sequence[SourceRow]) -> dict[str, str]:
    """Other ids for questions, from rows with ``from`` and ``to``."""
    return {str(row.get("from")): str(row.get("to")) for row in rows if row.get("from") and row.get("to")}

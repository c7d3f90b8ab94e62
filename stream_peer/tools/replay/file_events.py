"""Events of files before they are folded: their times, their feed, their order, and which outcomes are revealed."""

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np

from stream_peer.events.incoming import with_usual_times
from stream_peer.events.times import NEVER, Milliseconds, to_iso, to_milliseconds
from stream_peer.log.draws import draw
from stream_peer.tools.replay.files import FileLine


class FileEvent(NamedTuple):
    """A line of a file: its payload, and as much of it as is needed to place it in time; nothing of a bad line.

    ``stated`` is its ``at``, and ``at`` the same, or the opening of a question that has none; ``end`` is the latest
    moment that it names.
    """

    place: str
    payload: bytes
    kind: str = ""
    question_id: str | None = None
    at: Milliseconds | None = None
    closes_at: Milliseconds | None = None
    closed_at: Milliseconds | None = None
    stated: Milliseconds | None = None

    @property
    def end(self) -> Milliseconds | None:
        """The latest moment that the event names."""
        return max((at for at in (self.at, self.closes_at, self.closed_at) if at is not None), default=None)


class TimedEvent(NamedTuple):
    """An event and its record time: the largest moment stated up to it."""

    time: Milliseconds
    event: FileEvent


class _Fields(msgspec.Struct):
    type: str = ""
    question_id: str | None = None
    at: datetime | None = None
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    closed_at: datetime | None = None


_decode_fields = msgspec.json.Decoder(_Fields).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def file_event(line: FileLine) -> FileEvent:
    """Place a line in time; a line that cannot be understood is kept as it is, to be refused with its reason."""
    try:
        fields = _fields(line.payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return FileEvent(line.place, line.payload)
    return FileEvent(
        line.place,
        line.payload,
        fields.type,
        fields.question_id,
        _milliseconds(fields.at or fields.opens_at),
        _milliseconds(fields.closes_at),
        _milliseconds(fields.closed_at),
        _milliseconds(fields.at),
    )


class FileOrder(NamedTuple):
    """How the lines of a file stood.

    Attributes
    ----------
    moved : int
        How many stood below a line of a later time, if the lines were put in order of time; 0 if they stayed.
    behind : tuple of str
        Places of the forecasts below the outcome of their question that state a time before it.
    """

    moved: int = 0
    behind: tuple[str, ...] = ()


MANY = 0.5
"""If more than this share of the questions, of the forecasts or of the outcomes stand below lines of later times, the
order of a file is not that in which they came: it may be sorted by expert or by question, or have its outcomes last."""

_FORECASTS = frozenset(("forecast", "forecasts"))
_RANK = {"question": 0, "resolution": 2}
"""Of one moment a question comes first, and an outcome last: no forecast is mixed by weights that know it."""


def _fields(payload: bytes) -> _Fields:
    try:
        return _decode_fields(payload)
    except msgspec.ValidationError:
        return _decode_fields(with_usual_times(payload))


def merged_by_time(
    files: Sequence[Iterable[FileLine]], horizon: Milliseconds
) -> tuple[list[FileEvent], list[FileOrder]]:
    """Events of all files in one order, by time; and how it came about in each file."""
    ordered = [in_time_order([file_event(line) for line in lines], horizon) for lines in files]
    streams = [timed(events, horizon) for events, _ in ordered]
    return [one.event for one in heapq.merge(*streams, key=lambda one: one.time)], [order for _, order in ordered]


def in_time_order(events: list[FileEvent], horizon: Milliseconds) -> tuple[list[FileEvent], FileOrder]:
    """The events of a file in the order in which they came, and how they stood.

    A file in which few lines stand below lines of later times is a record of what came when: it stays as it is, and
    those few come late. Any other is sorted by the times that its lines state. There a line that states no time, or one
    far from all others, stays behind the line above it.
    """
    events = _believed(events, horizon)
    lines, late = Counter(_kind(event) for event in events), Counter(_late(events))
    if not any(late[kind] > MANY * lines[kind] for kind in late):
        return events, FileOrder(0, _behind(events))
    keys = list(_keys(events))
    in_order = [events[place] for place in sorted(range(len(events)), key=keys.__getitem__)]
    return in_order, FileOrder(late.total(), _behind(events))


def _kind(event: FileEvent) -> str:
    return "forecast" if event.kind in _FORECASTS else event.kind


def _believed(events: list[FileEvent], horizon: Milliseconds) -> list[FileEvent]:
    """The events; those whose times lie in another age than most, more than ``horizon`` from them, state none here."""
    moments = np.sort(np.array([event.at for event in events if event.at is not None], dtype=np.int64))
    ages = np.split(moments, np.flatnonzero(np.diff(moments) > horizon) + 1)
    if len(ages) == 1:
        return events
    age = max(ages, key=len)
    first, last = int(age[0]), int(age[-1])
    return [
        event if event.at is None or first <= event.at <= last else event._replace(at=None, stated=None)
        for event in events
    ]


def _late(events: Iterable[FileEvent]) -> Iterator[str]:
    """The kinds of the lines that stand below a line of a later time, one by one.

    Nothing is late below a question that states only when it opens: it may have been there long before.
    """
    latest = -NEVER
    for event in events:
        if event.at is not None and event.at < latest:
            yield _kind(event)
        if event.stated is not None:
            latest = max(latest, event.stated)


def _behind(events: Iterable[FileEvent]) -> tuple[str, ...]:
    """Places of the forecasts below an outcome of their question that state a time before it."""
    told: dict[str | None, Milliseconds] = {}
    behind = []
    for event in events:
        if event.kind == "resolution" and event.at is not None:
            told[event.question_id] = event.at
        elif event.kind in _FORECASTS and event.at is not None and event.at < told.get(event.question_id, event.at):
            behind.append(event.place)
    return tuple(behind)


def _keys(events: Iterable[FileEvent]) -> Iterator[tuple[int, Milliseconds, int]]:
    """By which the events of a file are sorted: their times, and of equal times what comes first.

    No line passes a reset or the end of a feed, which state no time.
    """
    key = (0, -NEVER, 0)
    for event in events:
        if event.kind == "feed":
            key = (key[0] + 1, -NEVER, 0)
        elif event.at is not None:
            key = (key[0], event.at, _RANK.get(event.kind, 1))
        yield key


def timed(events: Iterable[FileEvent], horizon: Milliseconds) -> Iterator[TimedEvent]:
    """Events with their record times. A moment more than ``horizon`` ahead of all before it moves nothing.

    Events before the first that states a moment get that moment.
    """
    now: Milliseconds | None = None
    early: list[FileEvent] = []
    for event in events:
        if event.at is not None and (now is None or now < event.at <= now + horizon):
            now = event.at
        early.append(event)
        if now is not None:
            yield from (TimedEvent(now, waiting) for waiting in early)
            early.clear()
    yield from (TimedEvent(0, waiting) for waiting in early)


def last_event_time(events: Sequence[FileEvent], horizon: Milliseconds) -> Milliseconds:
    """The last moment that the events know of, closes included; 0 if they know none."""
    ends = ((time, event.end) for time, event in timed(events, horizon))
    return max((end for time, end in ends if end is not None and end <= time + horizon), default=0)


def in_feed(events: Iterable[FileEvent], feed: str) -> list[FileEvent]:
    """Events as if all of them belonged to one feed."""
    return [_with(event, feed=feed) if event.kind else event for event in events]


class RevealedShare(NamedTuple):
    """The questions whose outcomes are revealed: a share of them, drawn by ``seed``. None: the draw without a seed."""

    share: float
    seed: int | None = None


def reveal(events: Sequence[FileEvent], told_of: RevealedShare) -> list[FileEvent]:
    """Keep the outcomes of a share of the questions, each told the moment its question closes; drop all others.

    So it is known right after its question's last round was scored, and before any round of a later boundary is. A
    hash of seed and question id decides, so of one seed a larger share holds all outcomes of a smaller one.
    """
    purpose = "reveal" if told_of.seed is None else f"reveal {told_of.seed}"
    closes = {event.question_id: event.closes_at for event in events if event.closes_at is not None}
    outcomes = {event.question_id: event for event in events if event.kind == "resolution"}
    told = []
    for question_id, event in outcomes.items():
        if question_id is not None and draw(b"", "", question_id, 0, purpose) < told_of.share:
            close = next((at for at in (closes.get(question_id), event.closed_at, event.at) if at is not None), 0)
            told.append(
                TimedEvent(close, _with(event, at=to_iso(close), closed_at=None)._replace(at=close, stated=close))
            )
    told.sort(key=lambda one: (one.time, one.event.question_id or ""))
    others = timed((event for event in events if event.kind != "resolution"), 1 << 60)
    return [one.event for one in heapq.merge(others, told, key=lambda one: one.time)]


def shuffle(events: Iterable[FileEvent], seed: int) -> list[FileEvent]:
    """Interleave the questions at random; each question's events stay in their order."""
    queues: dict[str | None, list[FileEvent]] = defaultdict(list)
    for event in events:
        queues[event.question_id].append(event)
    order = [question_id for question_id, queue in queues.items() for _ in queue]
    random.Random(seed).shuffle(order)  # noqa: S311 - an order to try, not a secret
    iterators = {question_id: iter(queue) for question_id, queue in queues.items()}
    return [next(iterators[question_id]) for question_id in order]


def _with(event: FileEvent, **changes: Any) -> FileEvent:
    try:
        fields = {**_decode_object(event.payload), **changes}
    except msgspec.MsgspecError:
        return event
    return event._replace(payload=msgspec.json.encode(fields))


def _milliseconds(moment: datetime | None) -> Milliseconds | None:
    return None if moment is None else to_milliseconds(moment)

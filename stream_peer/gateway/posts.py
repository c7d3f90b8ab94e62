"""The events of a post: one, or one a line. Each is checked as a worker does, and signed as its producer."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import (
    MAX_EVENT_BYTES,
    Forecast,
    Forecasts,
    GroupForecast,
    GroupResolution,
    PartialForecasts,
    Question,
    Resolution,
    advice_on,
    decode,
)
from stream_peer.events.rejections import Reason
from stream_peer.kafka.client.write import SignedRecord
from stream_peer.log.producers import Producers, SignedEvent
from stream_peer.log.signatures import prefixed

MOST_LINES = 10_000
"""Of a post: each has a result in the answer."""

_STATUSES: Mapping[str, int] = {
    Reason.EMPTY: 400,
    Reason.NOT_JSON: 400,
    Reason.TOO_LARGE: 413,
    Reason.PRODUCER_UNKNOWN: 403,
    Reason.PRODUCER_FORBIDDEN: 403,
}
_ID_DIGITS = 32


class LineResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a line. A refused one has ``reason``, ``field`` and ``detail`` as a dead letter has them."""

    line: int
    status: int
    event_id: str | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    field: str | msgspec.UnsetType = msgspec.UNSET
    detail: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_refused(self) -> bool:
        """Whether the event is not used."""
        return self.reason is not msgspec.UNSET


class Post(NamedTuple):
    """The records to write, and a result for each line."""

    records: list[SignedRecord]
    results: list[LineResult]

    @property
    def refused(self) -> Sequence[LineResult]:
        """The results of lines that are refused."""
        return [result for result in self.results if result.is_refused]


class Door:
    """Takes the events of posts.

    Parameters
    ----------
    producers : Producers
        Who may say what.
    topic : str
        Physical name of the topic that the records are for: signatures cover it.
    """

    def __init__(self, producers: Producers, topic: str) -> None:
        self._producers = producers
        self._topic = topic

    def read(self, lines: Mapping[int, bytes], producer: str, key: str | None) -> Post:
        """Check the events of a post by line; those that may be written are signed.

        With an idempotency ``key`` each gets the event id that the same line of the same post always gets.
        """
        records, results = list[SignedRecord](), list[LineResult]()
        for line, payload in lines.items():
            try:
                record, event_id = self._record(
                    payload, producer, None if key is None else _event_id(producer, key, line)
                )
            except RejectedEvent as rejection:
                results.append(_refused(line, rejection, payload))
            else:
                records.append(record)
                results.append(LineResult(line=line, status=202, event_id=event_id or msgspec.UNSET))
        return Post(records, results)

    def _record(self, payload: bytes, producer: str, event_id: str | None) -> tuple[SignedRecord, str | None]:
        event = _decoded(payload)
        self._producers.check_named(producer, event)
        if event_id is not None and event.event_id is None:
            payload = _with_event_id(payload, event_id)
        key = event.question_id.encode()
        header = self._producers.header(producer, self._topic, key, payload)
        if header is None:
            raise RejectedEvent(Reason.PRODUCER_UNKNOWN, message=f"producers_file names no producer {producer!r}")
        return SignedRecord(key, payload, header), event.event_id or event_id


def numbered_lines(body: bytes) -> dict[int, bytes]:
    r"""The lines that are not blank, by their numbers.

    Examples
    --------
    >>> numbered_lines(b'{"a": 1}\r\n\n{"b": 2}\n')
    {1: b'{"a": 1}', 3: b'{"b": 2}'}
    """
    return {number: text for number, line in enumerate(body.split(b"\n"), 1) if (text := line.strip())}


def _decoded(payload: bytes) -> SignedEvent:
    """The event of a producer. A batch is refused as a whole: the client can correct it at once.

    Raises
    ------
    RejectedEvent
    """
    event = decode(payload)
    if isinstance(event, PartialForecasts):
        raise event.rejection()
    if not isinstance(event, Forecast | GroupForecast | Forecasts | Question | Resolution | GroupResolution):
        message = f"{event.__struct_config__.tag} cannot be posted: it is no event of a producer"
        raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=message)
    return event


def _event_id(producer: str, key: str, line: int) -> str:
    named = prefixed((producer.encode(), key.encode(), str(line).encode()))
    return hashlib.sha256(named).hexdigest()[:_ID_DIGITS]


def _with_event_id(payload: bytes, event_id: str) -> bytes:
    """The event with an id as its first field.

    Raises
    ------
    RejectedEvent
        If it is too long with it.
    """
    before, brace, rest = payload.partition(b"{")
    named = b'%s%s"event_id":"%s",%s' % (before, brace, event_id.encode(), rest)
    if len(named) > MAX_EVENT_BYTES:
        message = f"with its event_id the message is longer than {MAX_EVENT_BYTES:,} bytes"
        raise RejectedEvent(Reason.TOO_LARGE, message=message)
    return named


def _refused(line: int, rejection: RejectedEvent, payload: bytes) -> LineResult:
    return LineResult(
        line=line,
        status=_STATUSES.get(rejection.reason, 422),
        reason=str(rejection.reason),
        field=rejection.field or msgspec.UNSET,
        detail=rejection.message + advice_on(rejection.reason, payload),
    )

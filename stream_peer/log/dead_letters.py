"""Dead letters: refused records, unchanged, with the reason in headers; and how to read them."""

from typing import NamedTuple

from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.incoming import advice_on
from stream_peer.log.stage import Effects, Headers, LogRecord, Output, Record, headers_size

MAX_PAYLOAD = 65_536
MAX_HEADERS = 262_144

REASON_HEADER = "stream-peer-reason"
_PREFIX = "__streams.errors."
_MAX_MESSAGE = 1_000


def shown_by(bootstrap: str, topic: str) -> str:
    """The command that shows the newest dead letters, with their reasons."""
    return f"kcat -b {bootstrap} -t {topic} -C -o -5 -e -f '%h\\n%s\\n\\n'"


def dead_letter(record: Record, topic: str, partition: int, rejection: RejectedEvent) -> Output:
    """The dead letter of a refused record.

    Key and payload are the original ones, both capped at 64 KB; the original headers (left out only if they exceed
    256 KB) are followed by what was wrong and where the record stands.

    Parameters
    ----------
    record : Record
        What was refused.
    topic : str
        Physical name of the topic that it was read from.
    partition : int
        Its partition.
    rejection : RejectedEvent
        Why.
    """
    named = {
        "exception": type(rejection).__qualname__,
        "message": rejection.message[:_MAX_MESSAGE],
        "topic": topic,
        "partition": str(partition),
        "offset": str(record.offset),
    }
    original = tuple(record.headers or ())
    if headers_size(original) > MAX_HEADERS:
        original = ()
    headers = [(_PREFIX + name, text.encode(errors="replace")) for name, text in named.items()]
    headers.append((REASON_HEADER, str(rejection.reason).encode()))
    return Output(
        topics.DEAD_LETTERS,
        key=None if record.key is None else record.key[:MAX_PAYLOAD],
        value=None if record.value is None else record.value[:MAX_PAYLOAD],
        timestamp=record.timestamp,
        headers=(*original, *headers),
    )


def bare(record: Record) -> LogRecord:
    """The record without key, payload and headers: what a dead letter may hold if it names an erased expert."""
    return LogRecord(record.offset, record.timestamp, None, None)


def refuse(record: Record, topic: str, partition: int, rejection: RejectedEvent, effects: Effects) -> None:
    """Add a record's dead letter to the effects, and count it by reason."""
    effects.outputs.append(dead_letter(record, topic, partition, rejection))
    effects.counts["dead-letter", str(rejection.reason)] += 1


class Refusal(NamedTuple):
    """From the headers of a dead letter: the reason, and the offset of the refused record (-1: not given)."""

    reason: str
    message: str
    offset: int


def refusal_of(headers: Headers, value: bytes | None = None) -> Refusal:
    """Read the headers of a dead letter. Ours come last, so of equal names the last counts.

    With its ``value`` the message says what may help.

    Examples
    --------
    >>> refusal_of([("trace", b"1"), ("stream-peer-reason", b"not-json"), ("__streams.errors.offset", b"17")])
    Refusal(reason='not-json', message='', offset=17)
    """
    named = {name: (value or b"").decode("utf-8", "replace") for name, value in headers}
    offset = named.get(_PREFIX + "offset", "")
    reason = named.get(REASON_HEADER, "unknown")
    return Refusal(
        reason,
        named.get(_PREFIX + "message", "") + advice_on(reason, value),
        int(offset) if offset.isdecimal() else -1,
    )

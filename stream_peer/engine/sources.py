"""Which input record caused a record: the header that says it, and the highest one seen of each source partition."""

from collections.abc import Iterable, Iterator

import msgspec

from stream_peer.engine.stage import Headers
from stream_peer.events import topics
from stream_peer.events.feed_log import Source

SOURCE_HEADER = "stream-peer-src"

_decode = msgspec.json.Decoder(Source).decode
_encode = msgspec.json.Encoder().encode


def source_header(source: Source) -> tuple[str, bytes]:
    """The header of a forwarded or broadcast record."""
    return SOURCE_HEADER, _encode(source)


def source_of(headers: Headers) -> Source | None:
    """The source that a record names; None if it names none, or none of ours."""
    for name, value in headers:
        if name == SOURCE_HEADER:
            try:
                source = _decode(value)
            except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
                return None
            return source if source.topic in topics.INPUTS else None
    return None


def is_broadcast(headers: Headers) -> bool:
    """Whether a record says that it was caused by a control event."""
    source = source_of(headers)
    return source is not None and source.topic == topics.CONTROL_EVENTS


class Seen:
    """The highest source met of each source partition: what is not above it is a repeat."""

    __slots__ = ("_highest",)

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self._highest = {source.place: source for source in sources}

    def add(self, source: Source) -> bool:
        """Note a source; False if it, or a later one of its partition, was seen before."""
        highest = self._highest.get(source.place)
        if highest is not None and source.position <= highest.position:
            return False
        self._highest[source.place] = source
        return True

    def __iter__(self) -> Iterator[Source]:
        """In a fixed order."""
        return iter(self._highest[place] for place in sorted(self._highest))

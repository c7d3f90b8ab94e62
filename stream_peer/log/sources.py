"""Which input record caused a record: the header that says it, and the highest one seen of each source partition."""

from collections.abc import Iterable, Iterator

import msgspec

from stream_peer.events import topics
from stream_peer.events.feed_log import Source
from stream_peer.log.stage import Headers

SOURCE_HEADER = "stream-peer-src"
MARKERS = "signatures-from-here"
"""Stands for the topic in the sources of markers, whose numbers are not offsets."""
_TOPICS = (*topics.INPUTS, MARKERS)

_decode = msgspec.json.Decoder(Source).decode
_encode = msgspec.json.Encoder().encode


def source_header(source: Source) -> tuple[str, bytes]:
    """The header of a forwarded or broadcast record."""
    return SOURCE_HEADER, _encode(source)


def source_of(headers: Headers) -> Source | None:
    """The source in a record's headers; None if there is none, or it names no topic of the service."""
    for name, value in headers:
        if name == SOURCE_HEADER:
            try:
                source = _decode(value)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
                return None
            return source if source.topic in _TOPICS else None
    return None


def is_broadcast(headers: Headers) -> bool:
    """Whether a record says that it was caused by a control event."""
    source = source_of(headers)
    return source is not None and source.topic == topics.CONTROL_EVENTS


class DedupWatermarks:
    """The highest source seen of each source partition: a source that is not above it is a repeat.

    A source of another topic generation is new, whatever its offset; sources of a former one are repeats.
    Generation 0 is that of releases which do not tell topics apart: its sources are taken for the present topic's.
    """

    __slots__ = ("_former", "_highest")

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self._highest: dict[tuple[str, int], Source] = {}
        self._former: dict[tuple[str, int], tuple[int, ...]] = {}
        for source in sources:
            self.add(source)

    def add(self, source: Source) -> bool:
        """Note a source; False if it, or a later one of its partition, was seen before."""
        place = source.place
        highest = self._highest.get(place)
        if highest is not None and source.generation != highest.generation:
            return self._add_of_another(source, highest)
        if highest is not None and source.position <= highest.position:
            return False
        self._highest[place] = source
        return True

    def _add_of_another(self, source: Source, highest: Source) -> bool:
        place, former = source.place, self._former.get(source.place, ())
        if not source.generation:
            return self.add(Source(*place, highest.generation, source.offset, source.index))
        if source.generation in former:
            return False
        if highest.generation:
            self._former[place] = (*former, highest.generation)
        self._highest[place] = source
        return True

    def of(self, *names: str) -> "DedupWatermarks":
        """The sources seen of some topics."""
        return DedupWatermarks(source for source in self if source.topic in names)

    def is_ahead_of(self, source: Source) -> bool:
        """Whether a later source of the same partition of the same topic was seen."""
        highest = self._highest.get(source.place)
        return highest is not None and highest.generation == source.generation and highest.position > source.position

    def generations(self, topic: str) -> dict[int, int]:
        """The present generation of each partition of a topic."""
        return {place[1]: source.generation for place, source in self._highest.items() if place[0] == topic}

    def __iter__(self) -> Iterator[Source]:
        """Sources from which the same watermarks can be made: of a partition, the present generation last."""
        for place in sorted(self._highest):
            yield from (Source(*place, generation, 0, 0) for generation in self._former.get(place, ()))
            yield self._highest[place]

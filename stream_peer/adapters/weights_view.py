"""The newest weights of every feed, read from the compacted topic by anyone, without a group."""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple, Self

import msgspec
from aiokafka import TopicPartition

from stream_peer.adapters.reading import kafka_errors, onlooker, partitions_of, read_to_end
from stream_peer.events import topics
from stream_peer.events.output_parts import joined_groups
from stream_peer.events.outputs import Weights
from stream_peer.settings import Settings

_POLL_MILLISECONDS = 500
WHOLE = -1
_PART_KEY = re.compile(r"([^/]+)/([0-9]{1,9})")
_decode = msgspec.json.Decoder(Weights).decode


class NewestWeights:
    """Folds records of the weights topic: the last of each feed, put together if it came in parts."""

    def __init__(self) -> None:
        self.by_feed: dict[str, Weights] = {}
        self._parts: dict[str, dict[int, Weights]] = {}
        self._counts: dict[str, int] = {}

    def add(self, value: bytes | None, key: bytes | None = None) -> Weights | None:
        """Take a record; return the weights of its feed if they are now complete and newer than before."""
        if value is None:
            self._end(TombstoneKey.of(key or b""))
            return None
        weights, count = _decode(value), 1
        if weights.parts is not msgspec.UNSET and weights.part is not msgspec.UNSET:
            parts = {n: p for n, p in self._parts.get(weights.feed, {}).items() if p.revision == weights.revision}
            parts[weights.part] = weights
            self._parts[weights.feed] = parts
            if len(parts) < weights.parts:
                return None
            weights, count = joined_parts([parts[n] for n in sorted(parts)]), len(parts)
        return self._newer(weights, count)

    def _end(self, key: "TombstoneKey") -> None:
        if key.ends(self._counts.get(key.feed, 0)):
            self.by_feed.pop(key.feed, None)
            self._counts.pop(key.feed, None)
        self._parts.get(key.feed, {}).pop(key.part, None)

    def _newer(self, weights: Weights, count: int) -> Weights | None:
        known = self.by_feed.get(weights.feed)
        if known is not None and known.revision >= weights.revision:
            return None
        self.by_feed[weights.feed], self._counts[weights.feed] = weights, count
        return weights


class TombstoneKey(NamedTuple):
    """Which record a tombstone ends: the whole one of a feed, or the part of that number of one in parts.

    The keys of a feed lie in several partitions, which are read in any order: a tombstone of a former feed may come
    after the records of a new one of its name. It never ends those, if only records under its own key are ended.
    """

    feed: str
    part: int

    @classmethod
    def of(cls, key: bytes) -> Self:
        """Of a record's key: ``feed``, or ``feed/part``. Any other key is a feed's that does not exist."""
        text = key.decode(errors="replace")
        found = _PART_KEY.fullmatch(text)
        return cls(text, WHOLE) if found is None else cls(found[1], int(found[2]))

    def ends(self, parts: int) -> bool:
        """Whether it ends a record that came in so many parts."""
        return parts == 1 if self.part == WHOLE else 1 < parts > self.part


async def read_newest(settings: Settings) -> dict[str, Weights]:
    """The newest weights of every feed, as they stand now.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be read.
    """
    async with onlooker(settings) as consumer:
        return (await _read_all(consumer, settings)).by_feed


async def follow(settings: Settings, feed: str) -> AsyncIterator[Weights]:
    """The newest weights of a feed, then each newer one as it comes, for ever.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be read.
    """
    async with onlooker(settings) as consumer:
        newest = await _read_all(consumer, settings)
        if feed in newest.by_feed:
            yield newest.by_feed[feed]
        while True:
            for records in (await _poll(consumer, settings)).values():
                for record in records:
                    weights = newest.add(record.value, record.key)
                    if weights is not None and weights.feed == feed:
                        yield weights


async def _read_all(consumer: Any, settings: Settings) -> NewestWeights:
    newest = NewestWeights()
    async for records in read_to_end(consumer, await partitions_of(settings, settings.topic(topics.WEIGHTS))):
        for record in records:
            newest.add(record.value, record.key)
    return newest


async def _poll(consumer: Any, settings: Settings) -> dict[TopicPartition, list[Any]]:
    with kafka_errors(settings):
        found: dict[TopicPartition, list[Any]] = await consumer.getmany(timeout_ms=_POLL_MILLISECONDS)
        return found


def joined_parts(parts: Sequence[Weights]) -> Weights:
    """The whole record of its parts in order; a record that came whole is its only part."""
    if len(parts) == 1 and parts[0].parts is msgspec.UNSET:
        return parts[0]
    experts = [expert for part in parts for expert in part.experts]
    groups = joined_groups(parts)
    return msgspec.structs.replace(parts[0], experts=experts, groups=groups, part=msgspec.UNSET, parts=msgspec.UNSET)

"""The newest ``weights`` and ``error-rates`` of every feed, kept as the bytes that were published.

A worker follows both topics for its HTTP answers; commands read them once, or follow one feed. What was published is
decoded when somebody asks for it, and the last few that were asked for stay decoded: a worker keeps the records of all
feeds, and hardly ever is it asked for more than a few of them.
"""

import asyncio
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import mode
import msgspec
import structlog

from stream_peer.errors import StreamPeerError
from stream_peer.events import topics
from stream_peer.events.outputs import (
    Certificate,
    ErrorRates,
    ErrorRateSummary,
    MixedGroup,
    TrustState,
    Weights,
    joined_parts,
)
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, poll, read_to_end
from stream_peer.settings.process import Settings

MOST_BYTES = 256_000_000
"""Of records that are kept; beyond it those of the feeds that changed longest ago are evicted."""
_DECODED = 4  # of 10,000 experts, 4 MB each


class _Place(msgspec.Struct, frozen=True):
    """What says where a record belongs."""

    feed: str
    revision: int


class FeedHead(msgspec.Struct, frozen=True, kw_only=True):
    """What ``weights`` say of a feed, but for its experts."""

    feed: str
    revision: int
    at: str
    settings: str
    status: TrustState
    status_reasons: list[str]
    questions: float
    resolved: float
    error_rate: ErrorRateSummary
    certificate: Certificate | None
    part: int = 0
    parts: int = 1


class _Part(NamedTuple):
    """The last record of a key; ``value`` is empty if it was evicted."""

    revision: int
    parts: int
    part: int
    value: bytes


class _Kept(NamedTuple):
    revision: int
    parts: tuple[bytes, ...]


_place_of = msgspec.json.Decoder(_Place).decode
_head_of = msgspec.json.Decoder(FeedHead).decode
_weights_of = msgspec.json.Decoder(Weights).decode
_group_of = msgspec.json.Decoder(MixedGroup).decode
_rates_of = msgspec.json.Decoder(ErrorRates).decode


class FeedRecords:
    """Folds both topics. Of each feed the record of the highest revision is kept, once all of its parts are there.

    The keys of a feed lie in several partitions, which are read in any order. So of each key the last record counts, as
    compaction has it, and a tombstone ends the record of its own key alone.

    Parameters
    ----------
    most_bytes : int
        That may be kept. Beyond it a feed is listed all the same, without its weights.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._heads: dict[str, FeedHead] = {}
        self._weights: OrderedDict[str, _Kept] = OrderedDict()
        self._rates: dict[str, _Kept] = {}
        self._feed_of: dict[bytes, str] = {}
        self._parts: dict[str, dict[bytes, _Part]] = {}
        self._decoded: OrderedDict[tuple[str, int], Weights] = OrderedDict()
        self._sorted: list[str] | None = []

    # --- folding ---

    def add_weights(self, key: bytes, value: bytes | None) -> None:
        """Take a record of ``weights``; None: there is no such feed any more.

        Raises
        ------
        msgspec.DecodeError
            If it is none.
        """
        if value is None:
            self._end(key)
            return
        head = _head_of(value)
        parts = self._parts.setdefault(head.feed, {})
        if key in parts and parts[key].revision > head.revision:
            return  # an equal one is newer all the same: after a failed audit it is published again
        self._feed_of[key] = head.feed
        parts[key] = _Part(head.revision, head.parts, head.part, value)
        known = self._heads.get(head.feed)
        whole = _record_of(head, parts.values())
        if len(whole) == head.parts and (known is None or known.revision <= head.revision):
            self._keep(head, whole)

    def add_error_rates(self, key: bytes, value: bytes | None) -> None:
        """Take a record of ``error-rates``; None: there is no such feed any more.

        Raises
        ------
        msgspec.DecodeError
            If it is none.
        """
        if value is None:
            self._rates.pop(key.decode(errors="replace"), None)
            return
        place = _place_of(value)
        known = self._rates.get(place.feed)
        if known is None or known.revision <= place.revision:
            self._rates[place.feed] = _Kept(place.revision, (value,))

    def _keep(self, head: FeedHead, values: tuple[bytes, ...]) -> None:
        feed = head.feed
        if feed not in self._heads:
            self._sorted = None
        self._heads[feed] = head
        self._forget_record(feed)
        self._weights[feed] = _Kept(head.revision, values)
        self._bytes += sum(map(len, values))
        while self._bytes > self._most and len(self._weights) > 1:
            oldest = next(iter(self._weights))
            self._forget_record(oldest)
            for key, part in self._parts[oldest].items():
                if part.revision <= self._heads[oldest].revision:
                    self._parts[oldest][key] = part._replace(value=b"")

    def _forget_record(self, feed: str) -> None:
        kept = self._weights.pop(feed, None)
        if kept is not None:
            self._bytes -= sum(map(len, kept.parts))
            self._decoded.pop((feed, kept.revision), None)

    def _end(self, key: bytes) -> None:
        feed = self._feed_of.pop(key, None)
        if feed is None:
            return
        ended, head = self._parts[feed].pop(key), self._heads.get(feed)
        if not self._parts[feed]:
            del self._parts[feed]
        if head is not None and ended.revision >= head.revision:
            del self._heads[feed]
            self._sorted = None
            self._forget_record(feed)

    # --- reading ---

    def feeds(self) -> list[str]:
        """Names of all feeds, sorted."""
        if self._sorted is None:
            self._sorted = sorted(self._heads)
        return self._sorted

    def heads(self) -> Mapping[str, FeedHead]:
        """What is known of each feed, but for its experts."""
        return self._heads

    def revisions(self, feed: str) -> tuple[int, int]:
        """Revisions of the feed's ``weights`` and ``error-rates``; -1: there is none."""
        head, rates = self._heads.get(feed), self._rates.get(feed)
        return -1 if head is None else head.revision, -1 if rates is None else rates.revision

    def weights(self, feed: str) -> Weights | None:
        """The newest weights of a feed, put together of its parts; None if they are not kept."""
        kept = self._weights.get(feed)
        if kept is None:
            return None
        place = (feed, kept.revision)
        found = self._decoded.get(place)
        if found is None:
            found = self._decoded[place] = joined_parts([_weights_of(part) for part in kept.parts])
            if len(self._decoded) > _DECODED:
                self._decoded.popitem(last=False)
        self._decoded.move_to_end(place)
        return found

    def error_rates(self, feed: str) -> ErrorRates | None:
        """The newest error rates of a feed; None if there are none."""
        kept = self._rates.get(feed)
        return None if kept is None else _rates_of(kept.parts[0])


def _is_of(part: _Part, head: FeedHead) -> bool:
    return (part.revision, part.parts) == (head.revision, head.parts)


def _record_of(head: FeedHead, parts: Iterable[_Part]) -> tuple[bytes, ...]:
    """What is there of a record, in order."""
    return tuple(part.value for part in sorted(part for part in parts if part.value and _is_of(part, head)))


log = structlog.get_logger(__name__)

_FETCH = {
    "fetch_max_bytes": 4_000_000,
    "max_partition_fetch_bytes": 1_000_000,  # a larger record still comes
    "max_poll_records": 100,
    # People and scrapes ask for what is read here: the broker gathers it, which spares the worker most of the fetches.
    "fetch_min_bytes": 100_000,
    "fetch_max_wait_ms": 250,
}
_SLICE_BYTES = 500_000  # that are looked at before the event loop gets its turn
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


class FeedFollower(mode.Service):  # type: ignore[misc] # mode is skipped by the type checker
    """Reads ``weights`` and ``error-rates`` without a group, from their starts and then on and on.

    HTTP answers with its error, and it retries; the worker folds without it.

    Parameters
    ----------
    settings : Settings
        Names the brokers and the topics.

    Attributes
    ----------
    records : FeedRecords
        What was read.
    not_ready_reason : str
        Why it has not yet read all that there was when it began; empty: it has.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.records = FeedRecords()
        self.not_ready_reason = ""
        self._settings = settings
        self._adders: dict[str, Callable[[bytes, bytes | None], None]] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._told: str | None = None
        self._is_over = threading.Event()
        self._restart()

    def _restart(self) -> None:
        self.not_ready_reason = "what was published of feeds is still being read"
        self.records = FeedRecords()
        self._positions = {}
        self._adders = {
            self._settings.topic(topics.WEIGHTS): self.records.add_weights,
            self._settings.topic(topics.ERROR_RATES): self.records.add_error_rates,
        }

    async def on_start(self) -> None:
        """Begin to read, beside everything else, in a thread that does not keep the process from ending."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._follow, args=(loop,), name="feed-follower", daemon=True).start()

    async def on_stop(self) -> None:
        """Have the thread end after its next look at the topics."""
        self._is_over.set()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        pause = _PAUSE_SECONDS
        while not self._is_over.is_set():
            before = dict(self._positions)
            try:
                self._read(loop)
            except StreamPeerError as error:
                self._report_error(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is no reason to end a worker
                self._report_error(repr(error))
            pause = _PAUSE_SECONDS if self._positions != before else min(2 * pause, _LONGEST_PAUSE_SECONDS)
            self._is_over.wait(pause)

    def _report_error(self, reason: str) -> None:
        """Log the error once, and answer requests for feeds with it until everything is read."""
        if self.not_ready_reason:
            self.not_ready_reason = reason
        if reason != self._told:
            log.warning("feeds_not_followed", reason=reason)
            self._told = reason

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with groupless_reader(self._settings, **_FETCH) as consumer:
            places = [place for topic in self._adders for place in partitions_of(consumer, topic)]
            ends = self._take_up(consumer, places)
            while not self._is_over.is_set():
                for place, records in poll(consumer).items():
                    # Answers are given from these records in the loop, so it is the loop that adds to them.
                    asyncio.run_coroutine_threadsafe(self._add(place, records), loop).result()
                if self.not_ready_reason and all(consumer.position(place) >= end for place, end in ends.items()):
                    self._caught_up()

    def _take_up(self, consumer: Any, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Go on where it was, or begin if there is nothing to go on from; where each partition ends now."""
        consumer.assign(places)
        ends: Mapping[TopicPartition, int] = consumer.end_offsets(places)
        starts = consumer.beginning_offsets(places)
        if any(self._positions.get(place, end) > end for place, end in ends.items()):
            self._restart()  # a topic was recreated
        for place in places:
            self._positions[place] = max(self._positions.get(place, 0), starts[place])
            consumer.seek(place, self._positions[place])
        return ends

    async def _add(self, place: TopicPartition, records: Sequence[Any]) -> None:
        add, size = self._adders[place.topic], 0
        for record in records:
            try:
                add(record.key or b"", record.value)
            except msgspec.DecodeError as error:
                where = {"topic": place.topic, "partition": place.partition, "offset": record.offset}
                log.warning("feed_record_unreadable", **where, reason=str(error))
            size += len(record.value or b"")
            if size > _SLICE_BYTES:
                size = 0
                await asyncio.sleep(0)
        self._positions[place] = records[-1].offset + 1

    def _caught_up(self) -> None:
        self.not_ready_reason = ""
        self._told = None
        log.info("feeds_followed", feeds=len(self.records.feeds()))


def read_newest(settings: Settings) -> dict[str, Weights]:
    """The newest weights of every feed, as they stand now.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be read.
    """
    with groupless_reader(settings) as consumer:
        records = _read_all(consumer, settings)
    return {feed: weights for feed in records.feeds() if (weights := records.weights(feed)) is not None}


def follow(settings: Settings, feed: str) -> Iterator[Weights]:
    """The newest weights of a feed, then each newer one as it comes, for ever.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be read.
    """
    with groupless_reader(settings) as consumer:
        records = _read_all(consumer, settings)
        newest = records.weights(feed)
        if newest is not None:
            yield newest
        while True:
            for found in poll(consumer).values():
                yield from news_of(feed, records, found)


def news_of(feed: str, records: FeedRecords, found: Iterable[Any]) -> Iterator[Weights]:
    """Add what was found of the topic; each weights of the feed that thereby become the newest."""
    for record in found:
        before, _ = records.revisions(feed)
        records.add_weights(record.key or b"", record.value)
        newest = records.weights(feed)
        if newest is not None and newest.revision != before:
            yield newest


def read_group(settings: Settings, group: str) -> MixedGroup | None:
    """The newest record of a group of questions; None if there is none.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If it cannot be read.
    """
    with groupless_reader(settings) as consumer:
        return _read_group(consumer, settings, group)


def follow_group(settings: Settings, group: str) -> Iterator[MixedGroup]:
    """The newest record of a group of questions, then each newer one as it comes, for ever.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be read.
    """
    with groupless_reader(settings) as consumer:
        newest = _read_group(consumer, settings, group)
        if newest is not None:
            yield newest
        while True:
            for found in poll(consumer).values():
                yield from _of_group(group, found)


def _read_group(consumer: Any, settings: Settings, group: str) -> MixedGroup | None:
    places = partitions_of(consumer, settings.topic(topics.MIXED_GROUPS))
    newest = None
    for found in read_to_end(consumer, places):
        for record in found:
            if record.key == group.encode():
                newest = None if record.value is None else _group_of(record.value)
    return newest


def _of_group(group: str, found: Iterable[Any]) -> Iterator[MixedGroup]:
    key = group.encode()
    return (_group_of(record.value) for record in found if record.key == key and record.value is not None)


def _read_all(consumer: Any, settings: Settings) -> FeedRecords:
    records = FeedRecords(most_bytes=sys.maxsize)
    for found in read_to_end(consumer, partitions_of(consumer, settings.topic(topics.WEIGHTS))):
        for record in found:
            records.add_weights(record.key or b"", record.value)
    return records

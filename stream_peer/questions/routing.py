"""Where records of the question stage go, and which source they name."""

from collections.abc import Callable, Iterable

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, GroupChanged, Source, encode_feed_log
from stream_peer.events.groups import group_id_of, home_of, limit_of
from stream_peer.events.incoming import ExpertControl, FeedControl, FeedImport, SettingsControl, SignaturesFromHere
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds
from stream_peer.log.signatures import Signatures
from stream_peer.log.sources import MARKERS, source_of
from stream_peer.log.stage import Headers, Output, Record, headers_size

MAX_FORWARDED_BYTES = 1_040_000
"""Largest size of key, value and headers: what a broker accepts as one record, less its overhead."""

_MAX_HOMES = 10_000
_MAX_FEEDS = 10_000
_MOST_CONTROL_PARTITIONS = 1024
_CONTROLS = (SettingsControl, ExpertControl, FeedControl, FeedImport)


class Routes:
    """Finds the partition of each record that one partition of ``forecast-events`` causes, and numbers them.

    Attributes
    ----------
    deleted : dict of str to int
        Feeds that were deleted, and when the last time: their records say it (``feeds/deletions.py`` tells why).
    groups : dict of (str, str) to None
        Feeds and groups of whose parts a record has caused others.
    """

    __slots__ = (
        "_feeds",
        "_homes",
        "_index",
        "_offset",
        "_signatures",
        "deleted",
        "feed_log_partitions",
        "generation",
        "groups",
        "partition",
        "partitions",
    )

    def __init__(
        self, partition: int, partitions: int, feed_log_partitions: int, generation: int, signatures: Signatures
    ) -> None:
        self.partition = partition
        self.partitions = partitions
        self.feed_log_partitions = feed_log_partitions
        self.generation = generation
        self._signatures = signatures
        self.deleted: dict[str, Milliseconds] = {}
        self._homes: dict[str, int] = {}
        self._feeds: dict[str, tuple[bytes, int]] = {}
        self.groups: dict[tuple[str, str], None] = {}
        self._offset = -1
        self._index = 0

    def is_foreign(self, question_id: str) -> bool:
        """Whether murmur2 of a question's id gives another partition."""
        return home_of(question_id, self.partitions) != self.partition

    def is_elsewhere(self, question_id: str, headers: Headers) -> bool:
        """Whether an event must be forwarded: its question has another partition, and it was not forwarded before."""
        return self._home(question_id) != self.partition and source_of(headers) is None

    def is_likely(self, source: Source, event_type: type) -> bool:
        """Whether an event of this type, read here, can have that source: controls are broadcast, others forwarded."""
        if event_type is SignaturesFromHere:
            return source.topic == MARKERS
        if event_type in _CONTROLS:
            return source.topic == topics.CONTROL_EVENTS and 0 <= source.partition < _MOST_CONTROL_PARTITIONS
        elsewhere = source.partition != self.partition and 0 <= source.partition < self.partitions
        return source.topic == topics.FORECAST_EVENTS and elsewhere

    def begin_topic(self, generation: int) -> None:
        """The topic was recreated: offsets begin at 0 again, and sources name the new generation."""
        self.generation = generation
        self._offset = -1
        self._index = 0

    def begin(self, record: Record) -> None:
        """The next sources are those of records that ``record`` causes."""
        if record.offset != self._offset:
            self._offset = record.offset
            self._index = 0

    def next_source(self) -> Source:
        """The source of the next record that it causes."""
        self._index += 1
        return Source(topics.FORECAST_EVENTS, self.partition, self.generation, self._offset, self._index - 1)

    def forwarded(self, question_id: str, record: Record) -> Output:
        """The record for the partition of its question: unchanged, with its source, signed.

        Raises
        ------
        RejectedEvent
            If it is too large for that. It may have come in compressed, so that its broker never saw its size.
        """
        self.begin(record)
        home = self._home(question_id)
        sent = Output(topics.FORECAST_EVENTS, record.key, record.value, record.timestamp, home, record.headers)
        signed = self._signatures.signed(sent, self.next_source())
        size = len(record.key or b"") + len(record.value or b"") + headers_size(signed.headers)
        if size > MAX_FORWARDED_BYTES:
            msg = f"with key and headers it has {size:,} bytes and cannot be forwarded to the partition of its question"
            raise RejectedEvent(Reason.RECORD_TOO_LARGE, message=msg)
        return signed

    def changed_groups(self, parts_of: Callable[[str], Iterable[str]], record: Record) -> list[Output]:
        """A record for each group of whose parts ``record`` has caused others: it comes behind them."""
        groups, self.groups = self.groups, {}
        written = []
        for feed, group in groups:
            options = sum(limit_of(part) is None for part in parts_of(group))
            changed = GroupChanged(src=self.next_source(), feed=feed, group_id=group, options=options)
            written.append(self.to_feed_log(changed, encode_feed_log(changed), record))
        return written

    def to_feed_log(self, feed_record: FeedLogRecord, value: bytes, record: Record) -> Output:
        """An encoded record for the partition of its feed."""
        feed = feed_record.feed
        group = group_id_of(getattr(feed_record, "question_id", ""))
        if group is not None:
            self.groups[feed, group] = None
        place = self._feeds.get(feed)
        if place is None:
            if len(self._feeds) >= _MAX_FEEDS:
                self._feeds.clear()
            place = self._feeds[feed] = feed.encode(), partition_of(feed, self.feed_log_partitions)
        if self.deleted and (at := self.deleted.get(feed)):
            value = encode_feed_log(msgspec.structs.replace(feed_record, deleted_at=at))
        return Output(topics.FEED_LOG, place[0], value, record.timestamp, place[1])

    def _home(self, question_id: str) -> int:
        home = self._homes.get(question_id)
        if home is None:
            if len(self._homes) >= _MAX_HOMES:
                self._homes.clear()
            home = self._homes[question_id] = home_of(question_id, self.partitions)
        return home

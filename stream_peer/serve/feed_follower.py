"""Follows the published records of all feeds, so that any worker can answer for any of them."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mode
import msgspec
import structlog

from stream_peer.errors import StreamPeerError
from stream_peer.events import topics
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, poll
from stream_peer.serve.feed_records import FeedRecords
from stream_peer.settings.process import Settings

log = structlog.get_logger(__name__)

_FETCH = {
    "fetch_max_bytes": 4_000_000,
    "max_partition_fetch_bytes": 1_000_000,  # a larger record still comes
    "max_poll_records": 100,
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

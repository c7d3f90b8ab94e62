"""Follows the published records of all feeds, so that any worker can answer for any of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mode
import msgspec
import structlog

from stream_peer.errors import StreamPeerError
from stream_peer.events import topics
from stream_peer.kafka.client.reading import TopicPartition, kafka_errors, onlooker, partitions_of
from stream_peer.serve.feed_records import FeedRecords
from stream_peer.settings.process import Settings

log = structlog.get_logger(__name__)

_POLL_MILLISECONDS = 500
_FETCH = {"fetch_max_bytes": 4_000_000, "max_partition_fetch_bytes": 1_000_000}  # a larger record still comes
_SLICE_BYTES = 500_000  # that are looked at before the event loop gets its turn
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


class FeedFollower(mode.Service):  # type: ignore[misc] # mode is skipped by the type checker
    """Reads ``weights`` and ``error-rates`` without a group, from their starts and then on and on.

    What goes wrong with it is told to whoever asks for feeds, and is tried again: the worker does its work without it.

    Parameters
    ----------
    settings : Settings
        Names the brokers and the topics.

    Attributes
    ----------
    records : FeedRecords
        What was read.
    obstacle : str
        Why it has not yet read all that there was when it began; empty: it has.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.records = FeedRecords()
        self.obstacle = ""
        self._settings = settings
        self._adders: dict[str, Callable[[bytes, bytes | None], None]] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._told: str | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.obstacle = "what was published of feeds is still being read"
        self.records = FeedRecords()
        self._positions = {}
        self._adders = {
            self._settings.topic(topics.WEIGHTS): self.records.add_weights,
            self._settings.topic(topics.ERROR_RATES): self.records.add_error_rates,
        }

    async def on_start(self) -> None:
        """Begin to read, beside everything else."""
        self.add_future(self._follow())

    async def _follow(self) -> None:
        pause = _PAUSE_SECONDS
        while not self.should_stop:
            before = dict(self._positions)
            try:
                await self._read()
            except StreamPeerError as error:
                self._trouble(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is no reason to end a worker
                self._trouble(repr(error))
            pause = _PAUSE_SECONDS if self._positions != before else min(2 * pause, _LONGEST_PAUSE_SECONDS)
            await self.sleep(pause)

    def _trouble(self, reason: str) -> None:
        """Say what is wrong: in the log once, and to whoever asks as long as not everything was read."""
        if self.obstacle:
            self.obstacle = reason
        if reason != self._told:
            log.warning("feeds_not_followed", reason=reason)
            self._told = reason

    async def _read(self) -> None:
        places = [place for topic in self._adders for place in await partitions_of(self._settings, topic)]
        async with onlooker(self._settings, **_FETCH) as consumer:
            with kafka_errors(self._settings):
                ends = await self._take_up(consumer, places)
                while not self.should_stop:
                    found = await consumer.getmany(timeout_ms=_POLL_MILLISECONDS, max_records=100)
                    for place, records in found.items():
                        await self._add(place, records)
                    if self.obstacle and await _has_read(consumer, ends):
                        self._caught_up()

    async def _take_up(self, consumer: Any, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Go on where it was, or begin if there is nothing to go on from; where each partition ends now."""
        consumer.assign(places)
        ends: Mapping[TopicPartition, int] = await consumer.end_offsets(places)
        starts = await consumer.beginning_offsets(places)
        if any(self._positions.get(place, end) > end for place, end in ends.items()):
            self._begin_anew()  # a topic was made anew
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
        self.obstacle = ""
        self._told = None
        log.info("feeds_followed", feeds=len(self.records.feeds()))


async def _has_read(consumer: Any, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether it is past these ends."""
    return all([await consumer.position(place) >= end for place, end in ends.items()])

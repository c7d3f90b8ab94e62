"""Reads a partition from its start beside the consumer of the app: what a refold folds."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from stream_peer.errors import StateError
from stream_peer.kafka.client.log_ends import high_watermarks
from stream_peer.kafka.client.security import ISOLATION
from stream_peer.log.stage import Record

_FETCH_BYTES = 1_048_576  # what waits while records are folded; a larger record still comes
_POLL_MILLISECONDS = 500


class LogReader:
    """Makes a consumer without a group for each reading.

    Parameters
    ----------
    options : mapping
        ``bootstrap_servers`` and the security of aiokafka's clients.
    check_crcs : bool
        The embedded broker writes none for its control records.
    """

    def __init__(self, options: Mapping[str, Any], *, check_crcs: bool = True) -> None:
        self._options = {**options, "check_crcs": check_crcs}

    @asynccontextmanager
    async def reading(self, tp: Any, up_to: int | None, first: int = 0) -> AsyncIterator["LogReading"]:
        """Read a partition from ``first``, or from its start, up to ``up_to``, included; closed in every case.

        Without ``up_to`` it is read to where it ends now.

        Raises
        ------
        StateError
            If the log ends before ``up_to``.
        """
        place = TopicPartition(tp.topic, tp.partition)
        consumer = AIOKafkaConsumer(
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_bytes=_FETCH_BYTES,
            max_partition_fetch_bytes=_FETCH_BYTES,
            isolation_level=ISOLATION,
            **self._options,
        )
        try:
            await consumer.start()
            consumer.assign([place])
            begin = (await consumer.beginning_offsets([place]))[place]
            end = (await high_watermarks(consumer, [place]))[place]
            if up_to is None:  # what an open transaction holds back is no part of the log yet
                up_to = (await consumer.end_offsets([place]))[place] - 1
            if end <= up_to:
                msg = f"{tp.topic}-{tp.partition} ends at {end}, but was folded up to {up_to}: it was recreated"
                raise StateError(msg)
            first = min(max(first, begin), end)
            consumer.seek(place, first)
            yield LogReading(consumer, place, begin, first, up_to)
        finally:
            await asyncio.shield(asyncio.ensure_future(consumer.stop()))


class LogReading:
    """One reading of a partition. ``begin``: the first offset that the broker still has."""

    def __init__(self, consumer: Any, place: TopicPartition, begin: int, first: int, up_to: int) -> None:
        self.begin = begin
        self._consumer = consumer
        self._place = place
        self._up_to = up_to
        self._next = first

    async def batch(self) -> Sequence[Record]:
        """The next records, in order; none: that was all. Waits as long as it takes."""
        while self._next <= self._up_to:
            found = await self._consumer.getmany(self._place, timeout_ms=_POLL_MILLISECONDS)
            self._next = await self._consumer.position(self._place)
            records = [record for record in found.get(self._place, ()) if record.offset <= self._up_to]
            if records:
                return records
        return ()

"""Batches of one partition that wait to be folded: checked for order and for gaps in offsets, and bounded."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import structlog

from stream_peer.events.times import Milliseconds
from stream_peer.kafka.worker.port import BatchSource, Delivery, TopicPartition, WorkerContext
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Record

log = structlog.get_logger(__name__)


class OffsetGap(NamedTuple):
    """Offsets that no record was read for: from ``want`` up to ``first``, not included."""

    want: int
    first: int


def report_lost(tp: TopicPartition, offset: int, records: int, observer: Observer) -> None:
    """Say that so many records from ``offset`` on were gone before they were read."""
    log.error("input_lost", topic=tp.topic, partition=tp.partition, offset=offset, records=records)
    observer.input_lost(tp.topic, tp.partition, records)


class GapChecker:
    """Finds out in the background what gaps in offsets are: the broker's answer waits for fetches under way.

    A gap is a marker of a transaction or compaction, unless the log begins behind it: then records are lost.

    Parameters
    ----------
    tp : TopicPartition
        Whose log it is.
    source : BatchSource
    context : WorkerContext
    wake : callable
        Called when records are found to be lost.

    Attributes
    ----------
    reached : int
        Up to here losses are reported; each is reported once.
    """

    def __init__(
        self, tp: TopicPartition, source: BatchSource, context: WorkerContext, wake: Callable[[], None]
    ) -> None:
        self.reached = 0
        self._tp = tp
        self._source = source
        self._context = context
        self._wake = wake
        self._gaps: list[OffsetGap] = []
        self._lost = 0
        self._task: asyncio.Task[None] | None = None

    def explain(self, gap: OffsetGap) -> None:
        """Find out whether records were lost."""
        self._gaps.append(gap)
        if self._task is None or self._task.done():
            self._task = self._context.start(self._report)

    def stop(self) -> None:
        """End the search: the partition is not owned any more."""
        if self._task is not None:
            self._task.cancel()

    def take_lost(self) -> int:
        """Records found to be lost since the last call."""
        lost, self._lost = self._lost, 0
        return lost

    def compare(self, gap: OffsetGap, begin: int) -> None:
        """Report what of a gap lies before ``begin``, the log's start."""
        want, end = max(gap.want, self.reached), min(gap.first, begin)
        if end > want:
            report_lost(self._tp, want, end - want, self._context.observer)
            self.reached = end
            self._lost += end - want
            self._wake()

    async def _report(self) -> None:
        while self._gaps:
            gaps, self._gaps = self._gaps, []
            begin = await self._source.log_start(self._tp)
            for gap in gaps:
                self.compare(gap, begin)


ROOM = 20_000
"""Records that are gathered at most while a batch waits for acknowledgement."""


class PendingBatch(NamedTuple):
    """Records of one message that are still to be folded. ``delivery`` is acknowledged when all were."""

    delivery: Delivery
    records: Sequence[Record]


class Inbox:
    """What was read and not folded.

    While its partition does something that takes long, batches for which there is no room are dropped, and read
    again afterwards: the consumer that delivers them serves other partitions too.

    Parameters
    ----------
    tp : TopicPartition
        Whose records.
    want : int
        The offset that comes next.
    explain : callable
        Receives each gap that is proven to hold no record that could still be read.
    """

    def __init__(
        self,
        tp: TopicPartition,
        want: int,
        source: BatchSource,
        explain: Callable[[OffsetGap], None],
    ) -> None:
        self.want = want
        self.filled = asyncio.Event()
        self._tp = tp
        self._source = source
        self._explain = explain
        self._portions: deque[PendingBatch] = deque()
        self._size = 0
        self._room = asyncio.Event()
        self._passed = self._stopped = False
        self.lengthy = False

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._portions)

    @property
    def oldest(self) -> Milliseconds | None:
        """The time of the record that is taken next; None: nothing waits."""
        return self._portions[0].records[0].timestamp if self._portions else None

    async def put(self, delivery: Delivery) -> None:
        """Check the order of a batch and gather it; wait while there is no room, but not for what takes long."""
        await self._wait_for_room()  # a rebuild that has ended since let the batch before it go on without
        records = None if self._must_pass() else self._in_order(delivery)
        if records is None:
            self._source.forget(delivery)
            return
        self._source.accept(delivery)
        self.want = records[-1].offset + 1
        self._portions.append(PendingBatch(delivery, records))
        self._size += len(records)
        self.filled.set()
        await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        while self._size > ROOM and not (self.lengthy or self._stopped):
            self._room.clear()
            await self._room.wait()

    def _in_order(self, delivery: Delivery) -> Sequence[Record] | None:
        """Those of the records that are wanted; None: they were read before, or others are missing before them."""
        records = delivery.records
        first, want = records[0].offset, self.want
        if records[-1].offset < want:
            return None
        if first < want:
            return [record for record in records if record.offset >= want]
        if first > want:
            if not self._source.admits(self._tp, want, first):
                return None
            self._explain(OffsetGap(want, first))
        return records

    def _must_pass(self) -> bool:
        full = self.lengthy and self._size > ROOM
        self._passed = self._passed or full
        return full or self._stopped

    def take(self) -> PendingBatch:
        """The portion that comes next."""
        return self._portions.popleft()

    def put_back(self, portion: PendingBatch) -> None:
        """What of it was not folded."""
        self._portions.appendleft(portion)

    def folded(self, records: int) -> None:
        """So many records of it need no room any more."""
        self._size -= records
        self._room.set()

    def skip(self, end: int) -> None:
        """Want nothing before ``end``: it is gone."""
        self.want = max(self.want, end)

    def leave(self, reached: int) -> None:
        """Drop everything: the next owner of the partition reads from ``reached``."""
        for portion in self._portions:
            self._source.forget(portion.delivery)
        self._portions.clear()
        self._size = 0
        self.want = reached
        self._room.set()

    def stop(self) -> None:
        """Accept no more batches, and end every wait for room."""
        self._stopped = True
        self._room.set()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Work during which `put` does not wait for room: it drops what does not fit."""
        self.lengthy = True
        self._room.set()
        try:
            yield
        finally:
            self.lengthy = False
        if self._passed:
            self._passed = False
            self._source.read_again(self._tp, self.want)

"""Batches of one partition that wait to be folded: checked for order and for gaps in offsets, and bounded."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import structlog

from stream_peer.events.times import Milliseconds
from stream_peer.kafka.worker.port import Delivery, Source, TopicPartition, WorkerContext
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Record

log = structlog.get_logger(__name__)


class OrderProof:
    """Whether nothing lies between the offset that is wanted and the one that came.

    A fetch after a seek to ``want`` that begins at ``first`` proves it for this pair: aborted records, markers of
    transactions, retention and compaction leave such gaps. The seek is asked for here and done by the fetch loop, in
    which no other fetch is in flight; one begun elsewhere could take records from the new position and prove a lie.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked: dict[TopicPartition, int] = {}
        self._sought: dict[TopicPartition, int] = {}
        self._proofs: dict[TopicPartition, tuple[int, int]] = {}
        self._last: dict[TopicPartition, tuple[int, float]] = {}

    def admits(self, tp: TopicPartition, want: int, first: int) -> bool:
        """Whether it is proven; otherwise ask for a seek, at most every half second for the same offset."""
        if self._proofs.get(tp) == (want, first):
            return True
        last_want, at = self._last.get(tp, (-1, 0.0))
        if last_want != want or self._clock() - at > _ASK_AGAIN_SECONDS:
            self._last[tp] = (want, self._clock())
            self._asked[tp] = want
        return False

    def ask(self, tp: TopicPartition, want: int) -> None:
        """Ask for a seek."""
        self._asked[tp] = want

    def asked(self, assignment: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Seeks to do now, of assigned partitions."""
        mine = set(assignment)
        asked = {tp: want for tp, want in self._asked.items() if tp in mine}
        self._asked.clear()
        return asked

    def sought(self, places: Mapping[TopicPartition, int]) -> None:
        """Remember seeks that are done: whatever is fetched from now on begins there, or behind."""
        self._sought.update(places)

    def found_nothing(self, tp: TopicPartition, want: int) -> bool:
        """Whether no record has come since a seek to ``want``."""
        return self._sought.get(tp) == want

    def fetched(self, tp: TopicPartition, first: int) -> None:
        """Remember where the first fetch after a seek began."""
        want = self._sought.pop(tp, None)
        if want is not None:
            self._proofs[tp] = (want, first)

    def clear(self) -> None:
        """Forget everything: the consumer's positions were reset."""
        for known in (self._asked, self._sought, self._proofs, self._last):
            known.clear()


class OffsetGap(NamedTuple):
    """Offsets that no record was read for: from ``want`` up to ``first``, not included."""

    want: int
    first: int


def report_lost(tp: TopicPartition, offset: int, records: int, observer: Observer) -> None:
    """Say that so many records from ``offset`` on were gone before they were read."""
    log.error("input_lost", topic=tp.topic, partition=tp.partition, offset=offset, records=records)
    observer.input_lost(tp.topic, tp.partition, records)


class GapChecker:
    """Finds out in the background what gaps in offsets are: the broker's answer waits for fetches under way."""

    def __init__(self, tp: TopicPartition, source: Source, context: WorkerContext) -> None:
        self._tp = tp
        self._source = source
        self._context = context
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

    async def _report(self) -> None:
        """A gap is a marker of a transaction or compaction, unless the log begins behind it: then records are lost."""
        while self._gaps:
            gaps, self._gaps = self._gaps, []
            begin = await self._source.log_start(self._tp)
            for want, first in gaps:
                lost = min(begin, first) - want
                if lost > 0:
                    report_lost(self._tp, want, lost, self._context.observer)
                    self._lost += lost


_ASK_AGAIN_SECONDS = 0.5

ROOM = 20_000
"""Records that are gathered at most while a batch waits for acknowledgement."""


class PendingBatch(NamedTuple):
    """Records of one message that are still to be folded. ``delivery`` is acknowledged when all were."""

    delivery: Delivery
    records: Sequence[Record]


class ArrivalSample(NamedTuple):
    """A record that was read, and how old it looked when it came, in seconds of our clock."""

    offset: int
    age: float


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
    wall : callable
        The time of day.
    """

    def __init__(
        self,
        tp: TopicPartition,
        want: int,
        source: Source,
        explain: Callable[[OffsetGap], None],
        wall: Callable[[], Milliseconds],
    ) -> None:
        self.want = want
        self.filled = asyncio.Event()
        self._tp = tp
        self._source = source
        self._explain = explain
        self._wall = wall
        self._portions: deque[PendingBatch] = deque()
        self._size = 0
        self._room = asyncio.Event()
        self._passed = self._stopped = False
        self.lengthy = False
        self._sample: ArrivalSample | None = None

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._portions)

    @property
    def oldest(self) -> Milliseconds | None:
        """The time of the record that is taken next; None: nothing waits."""
        return self._portions[0].records[0].timestamp if self._portions else None

    def take_sample(self) -> ArrivalSample | None:
        """The first record that came since the last call; None: nothing came."""
        sample, self._sample = self._sample, None
        return sample

    async def put(self, delivery: Delivery) -> None:
        """Check the order of a batch and gather it; wait while there is no room, but not for what takes long."""
        records = None if self._must_pass() else self._in_order(delivery)
        if records is None:
            self._source.forget(delivery)
            return
        self._source.accept(delivery)
        if self._sample is None:
            self._sample = ArrivalSample(records[0].offset, (self._wall() - records[0].timestamp) / 1000)
        self.want = records[-1].offset + 1
        self._portions.append(PendingBatch(delivery, records))
        self._size += len(records)
        self.filled.set()
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

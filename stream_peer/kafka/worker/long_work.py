"""What takes long beside the work of a partition, done in slices: rebuilds and audits.

A rebuild folds the partition's log from its start. An audit compares, once an hour, a partition's state with what it
follows from.
"""

import asyncio
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import structlog

from stream_peer.kafka.worker.port import TopicPartition, WorkerContext
from stream_peer.log.driver import NeedsLog, Write
from stream_peer.log.stage import PublishingStage, Record

log = structlog.get_logger(__name__)

AUDIT_EVERY_SECONDS = 3600.0

AUDIT_PAUSE_SECONDS = 0.03
"""Between two slices while nothing else is to be done: a third of the time at most goes into an audit."""

_AUDIT_SLICE_SECONDS = 0.01
_GOLDEN_RATIO = 0.6180339887  # its multiples, modulo 1, lie far apart: no two partitions are audited at a time

_REBUILD_SLICE_SECONDS = 0.002  # of folding before everything else goes on: a round waits for some of them at most
_GIVES_WAY = 3  # times as long as it worked, if others are busy: so it takes a quarter of the time at least
_IDLE_SECONDS = 0.0001  # of a turn of the event loop in which nobody else works


class RebuildProgress(NamedTuple):
    """Records of the log that a rebuild has folded, of how many; ``total`` 0: it waits for its turn."""

    done: int
    total: int


Work: TypeAlias = Generator[NeedsLog | Write, Sequence[Record] | None, None]


async def supply(
    work: Work, need: NeedsLog, tp: TopicPartition, context: WorkerContext, tell: Callable[[RebuildProgress], None]
) -> int:
    """Supply a driver with the log that it needs, all but its end; return how many records the log had lost.

    Parameters
    ----------
    work : generator
        The driver's. The stage is as it was, if this is cancelled.
    need : NeedsLog
    tp : TopicPartition
        Whose log it is.
    tell : callable
        Called at the start and after each slice with how far it is.
    """
    async with context.rebuilds, context.logs.reading(tp, need.up_to) as reading:
        begin = reading.begin
        total = max(0, need.up_to + 1 - begin)
        log.info("rebuild_begins", topic=tp.topic, partition=tp.partition, up_to=need.up_to, records=total)
        tell(RebuildProgress(0, total))
        while records := await reading.batch():
            start = 0
            while start < len(records):
                async with context.turn:
                    began = context.runtime.now()
                    start = _fold(work, records, start, context.runtime.now)
                tell(RebuildProgress(records[start - 1].offset + 1 - begin, total))
                await _give_way(_GIVES_WAY * (context.runtime.now() - began), context.runtime.now)
        return begin


async def _give_way(seconds: float, clock: Callable[[], float]) -> None:
    """Let everything else work until nothing has anything to do, for a bounded time."""
    now = clock()
    until, is_idle = now + seconds, False
    while not is_idle and now <= until:
        before = now
        await asyncio.sleep(0)
        now = clock()
        is_idle = now - before < _IDLE_SECONDS


def _fold(work: Work, records: Sequence[Record], start: int, clock: Callable[[], float]) -> int:
    """Fold records for a bounded time; return the index of the first that was not."""
    until = clock() + _REBUILD_SLICE_SECONDS
    for index in range(start, len(records)):
        work.send((records[index],))
        if clock() > until:
            return index + 1
    return len(records)


def advance(pieces: Iterator[None], seconds: float, clock: Callable[[], float]) -> tuple[int, bool]:
    """Do pieces of work for a bounded time; (how many those were, whether there may be more)."""
    until, done = clock() + seconds, 0
    for _ in pieces:
        done += 1
        if clock() > until:
            return done, True
    return done, False


class Audits:
    """When a partition is audited, and how far that is.

    The first audit comes within an hour of the start; recovery itself computes sums from the ledger.
    """

    def __init__(self, partition: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due = clock() + AUDIT_EVERY_SECONDS * (1.0 + (partition * _GOLDEN_RATIO) % 1.0) / 2.0
        self._pieces: Iterator[None] | None = None
        self._compared = 0

    @property
    def under_way(self) -> bool:
        """Whether an audit has begun and not ended."""
        return self._pieces is not None

    def work(self, stage: PublishingStage[Any]) -> bool | None:
        """Go on with the audit that is due, for a bounded time; if that ends it, say whether everything agrees.

        None: nothing is due, it goes on, or there is nothing to compare.
        """
        if self._pieces is None:
            if self._clock() < self._due:
                return None
            self._due = self._clock() + AUDIT_EVERY_SECONDS
            self._pieces, self._compared = stage.audit(), 0
        compared, goes_on = advance(self._pieces, _AUDIT_SLICE_SECONDS, self._clock)
        self._compared += compared
        if goes_on:
            return None
        self._pieces = None
        return not stage.needs_rebuild if self._compared or stage.needs_rebuild else None

    def give_up(self) -> None:
        """The state is another now."""
        self._pieces = None

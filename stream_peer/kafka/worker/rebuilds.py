"""A rebuild: the partition's log is folded from its start, beside everything else that the worker does."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeAlias

import structlog

from stream_peer.kafka.worker.port import TopicPartition, WorkerContext
from stream_peer.log.driver import NeedsLog, Write
from stream_peer.log.stage import Record

log = structlog.get_logger(__name__)

_SLICE_SECONDS = 0.05  # of folding before the event loop and the other partitions get their turn


class RebuildProgress(NamedTuple):
    """Records of the log that a rebuild has folded, of how many; ``total`` 0: it waits for its turn."""

    done: int
    total: int


Work: TypeAlias = Generator[NeedsLog | Write, Sequence[Record] | None, None]


async def supply(
    work: Work, need: NeedsLog, tp: TopicPartition, context: WorkerContext, tell: Callable[[RebuildProgress], None]
) -> tuple[int, NeedsLog | Write]:
    """Supply a driver with the log that it needs; return how many records the log had lost, and what it yields next.

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
                    start = _fold(work, records, start, context.runtime.now)
                    await asyncio.sleep(0)
                tell(RebuildProgress(records[start - 1].offset + 1 - begin, total))
        return begin, work.send(())


def _fold(work: Work, records: Sequence[Record], start: int, clock: Callable[[], float]) -> int:
    """Fold records for a bounded time; return the index of the first that was not."""
    until = clock() + _SLICE_SECONDS
    for index in range(start, len(records)):
        work.send((records[index],))
        if clock() > until:
            return index + 1
    return len(records)

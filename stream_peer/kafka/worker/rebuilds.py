"""A rebuild: the partition's log is folded from its start, beside everything else that the worker does."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import structlog

from stream_peer.kafka.worker.port import TopicPartition, WorkerContext
from stream_peer.log import driver
from stream_peer.log.stage import Output, Published, Record

log = structlog.get_logger(__name__)

_SLICE_SECONDS = 0.05  # of folding before the event loop and the other partitions get their turn


class Progress(NamedTuple):
    """Records of the log that a rebuild has folded, of how many; ``total`` 0: it waits for its turn."""

    done: int
    total: int


class Rebuilt(NamedTuple):
    """Records that the log had lost at its start, and corrections to be written before the next step."""

    lost: int
    corrections: Iterator[Output]


async def carry_out(
    stage: Published[Any], applied: int, tp: TopicPartition, context: WorkerContext, tell: Callable[[Progress], None]
) -> Rebuilt:
    """Carry out the rebuild that is due.

    Parameters
    ----------
    stage : Published
        Stepped up to ``applied``. As it was, if this is cancelled.
    applied : int
        The last offset that was stepped.
    tp : TP
        Whose log it is.
    tell : callable
        Told at the start and after each slice how far it is.
    """
    async with context.refolds:
        steps = driver.rebuild(stage, applied)
        need = next(steps)
        async with context.logs.reading(tp, need.up_to) as reading:
            begin = reading.begin
            total = max(0, need.up_to + 1 - begin)
            log.info("refold_begins", topic=tp.topic, partition=tp.partition, up_to=need.up_to, records=total)
            tell(Progress(0, total))
            while records := await reading.batch():
                start = 0
                while start < len(records):
                    async with context.turn:
                        start = _fold(steps, records, start, context.runtime.now)
                        await asyncio.sleep(0)
                    tell(Progress(records[start - 1].offset + 1 - begin, total))
        return Rebuilt(begin, driver.end(steps))


def _fold(steps: driver.Rebuild, records: Sequence[Record], start: int, clock: Callable[[], float]) -> int:
    """Fold records for a bounded time; return the index of the first that was not."""
    until = clock() + _SLICE_SECONDS
    for index in range(start, len(records)):
        steps.send((records[index],))
        if clock() > until:
            return index + 1
    return len(records)

"""A refold: the partition's log is folded anew from its start, beside everything else that the worker does."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from stream_peer.kafka.worker.port import TopicPartition, WorkerContext
from stream_peer.log.driver import Steps, answer, rebuild
from stream_peer.log.stage import Record, Stage

log = structlog.get_logger(__name__)

_SLICE_SECONDS = 0.05  # of folding before the event loop and the other partitions get their turn


class Progress(NamedTuple):
    """Records of the log that were folded anew, of how many; ``total`` 0: it waits for its turn."""

    done: int
    total: int


async def refold(
    stage: Stage, applied: int, tp: TopicPartition, context: WorkerContext, tell: Callable[[Progress], None]
) -> int:
    """Carry out the refold that is due; return how many records the log had lost at its start.

    Parameters
    ----------
    stage : Stage
        Stepped up to ``applied``. As it was, if this is cancelled.
    applied : int
        The last offset that was stepped.
    tp : TP
        Whose log it is.
    tell : callable
        Told at the start and after each slice how far it is.
    """
    async with context.refolds:
        steps = rebuild(stage, applied)
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
        answer(steps, ())
    return begin


def _fold(steps: Steps, records: Sequence[Record], start: int, clock: Callable[[], float]) -> int:
    """Fold records for a bounded time; return the index of the first that was not."""
    until = clock() + _SLICE_SECONDS
    for index in range(start, len(records)):
        steps.send((records[index],))
        if clock() > until:
            return index + 1
    return len(records)

"""``stream-peer worker`` that waits for the test: before it folds, before or in a rebuild, or in its snapshot.

``python -m tests.integration.support.gated_worker``. The environment names a directory (``GATES``): while it holds a
file ``fold``, ``connect``, ``rebuild`` or ``snapshot``, the worker waits at that place and leaves a file
``fold.reached`` and the like. Portions and slices are small, so that there is a middle.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from stream_peer.cli import main
from stream_peer.kafka.worker import state_writer
from stream_peer.kafka.worker.faust_bridge import LogReader, LogReading
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.state_writer import StateWriter

_PORTION = 100
_SLICE_BYTES = 20_000


async def passed(place: str) -> None:
    """Wait while the gate is closed."""
    gates = Path(os.environ["GATES"])
    while (gates / place).exists():
        (gates / f"{place}.reached").touch()
        await asyncio.sleep(0.02)


def gate() -> None:
    """Put the gates in."""
    handle, batch, append = OwnedPartition._handle, LogReading.batch, StateWriter._append
    reading = LogReader.reading
    slices: Counter[int] = Counter()
    waiting: list[Any] = []  # records of the one log that is read at a time

    async def gated_handle(self: OwnedPartition) -> None:
        await passed("fold")
        await handle(self)

    @asynccontextmanager
    async def gated_reading(self: LogReader, *place: Any) -> AsyncIterator[LogReading]:
        await passed("connect")
        async with reading(self, *place) as opened:
            yield opened

    async def gated_batch(self: LogReading) -> Any:
        if waiting:
            await passed("rebuild")
        else:
            waiting.extend(await batch(self))
        portion = waiting[:_PORTION]
        del waiting[:_PORTION]
        return portion

    async def gated_append(self: StateWriter, partition: int, rows: Any, context: Any) -> None:
        await append(self, partition, rows, context)
        slices[partition] = 0 if len(rows) == 1 else slices[partition] + 1  # alone is the head
        if slices[partition] > 1:
            await passed("snapshot")

    state_writer._SLICE_BYTES = _SLICE_BYTES
    OwnedPartition._handle = gated_handle  # type: ignore[method-assign]  # on purpose
    LogReader.reading = gated_reading  # type: ignore[assignment]  # on purpose
    LogReading.batch = gated_batch  # type: ignore[method-assign]  # on purpose
    StateWriter._append = gated_append  # type: ignore[method-assign]  # on purpose


if __name__ == "__main__":
    gate()
    main(["worker"])

"""A partition's snapshots to its changelog: entries in slices, each acknowledged, then the head."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from stream_peer.kafka.worker.port import WorkerContext
from stream_peer.log.changelog import ChangelogRow, Writer
from stream_peer.log.stage import Snapshot

BETWEEN_ENTRIES_AND_HEAD = "between-entries-and-head"
BETWEEN_SLICES = "between-slices"

_SLICE_BYTES = 8_000_000  # in memory until they are acknowledged, which must be within the batch deadline
_SLICE_SECONDS = 0.05  # of making rows before the event loop gets its turn


class SnapshotSize(NamedTuple):
    """What a snapshot came to."""

    rows: int
    bytes: int


class StateWriter(NamedTuple):
    """Where a partition's state goes."""

    topic: str
    rows: Writer

    async def write(
        self, partition: int, snapshot: Snapshot, applied: int, context: WorkerContext, tell: Callable[[], None]
    ) -> SnapshotSize:
        """Make a snapshot durable; cut short anywhere, it counts for nothing.

        ``tell`` is called between its slices: a snapshot of many takes long.
        """
        count = size = 0
        for rows in _slices(self.rows.entry_rows(snapshot, applied), context.runtime.now):
            if count:
                tell()
                context.fault(BETWEEN_SLICES)
            await self._append(partition, rows, context)
            count += len(rows)
            size += _size(rows)
        context.fault(BETWEEN_ENTRIES_AND_HEAD)
        head = self.rows.head_row(snapshot, applied)
        await self._append(partition, [head], context)
        self.rows.committed(snapshot, applied)
        return SnapshotSize(count + 1, size + _size([head]))

    async def _append(self, partition: int, rows: list[ChangelogRow], context: WorkerContext) -> None:
        at = context.runtime.wall()
        for base, count, _ in await context.producer.append(self.topic, partition, rows, at):
            self.rows.appended(base, count)
        await asyncio.sleep(0)


def _slices(rows: Iterable[ChangelogRow], clock: Callable[[], float]) -> Iterator[list[ChangelogRow]]:
    """Rows, as many at a time as may be in memory and are made without holding up the event loop."""
    part: list[ChangelogRow] = []
    size, until = 0, clock() + _SLICE_SECONDS
    for row in rows:
        part.append(row)
        size += _size([row])
        if size >= _SLICE_BYTES or clock() > until:
            yield part
            part, size, until = [], 0, clock() + _SLICE_SECONDS
    if part:
        yield part


def _size(rows: Iterable[ChangelogRow]) -> int:
    return sum(len(row.key) + len(row.value or b"") for row in rows)

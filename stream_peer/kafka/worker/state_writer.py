"""A partition's snapshots to its changelog: entries in slices, each acknowledged, then the head."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import structlog

from stream_peer.kafka.worker.port import TopicPartition, WorkerContext
from stream_peer.log.changelog import ChangelogRow, LateTokenError, Writer, token_row
from stream_peer.log.stage import Snapshot

log = structlog.get_logger(__name__)

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

        Raises
        ------
        ForeignWriterError
            If another worker writes to the changelog partition.
        """
        try:
            return await self._write(partition, snapshot, applied, context, tell)
        except LateTokenError as error:
            await self._fence_again(partition, context, error)
            return await self._write(partition, snapshot, applied, context, tell)

    async def look_behind(self, partition: int, end: int, context: WorkerContext) -> None:
        """Look at what came late, if the changelog partition ends at ``end``. No append is under way."""
        if end > self.rows.expected:
            try:
                await self._pass_over(partition, end, context)
            except LateTokenError as error:
                await self._fence_again(partition, context, error)

    async def _write(
        self, partition: int, snapshot: Snapshot, applied: int, context: WorkerContext, tell: Callable[[], None]
    ) -> SnapshotSize:
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
            if base > self.rows.expected:
                await self._pass_over(partition, base, context)
            self.rows.appended(base, count)
        await asyncio.sleep(0)

    async def _fence_again(self, partition: int, context: WorkerContext, error: LateTokenError) -> None:
        """Write another fencing token. If the lease allows it, the late one is a former owner's.

        Once in a term: two workers of two groups would take the partition from each other for ever.
        """
        if self.rows.is_fenced_again:
            raise error
        name = context.runtime.fresh_id()
        rows, at = [token_row(partition, name)], context.runtime.wall()
        ((offset, *_),) = await context.producer.append(self.topic, partition, rows, at)
        if offset < 0:
            raise error
        if offset > self.rows.expected:
            with contextlib.suppress(LateTokenError):  # it lies before the token that was just written
                await self._pass_over(partition, offset, context)
        self.rows.fence_again(name, offset)

    async def _pass_over(self, partition: int, end: int, context: WorkerContext) -> None:
        """Look at what lies between our rows: a former owner's came late, or another one has taken over."""
        place, keys, count = TopicPartition(self.topic, partition), dict[bytes, None](), 0
        async with context.logs.reading(place, end - 1, self.rows.expected) as reading:
            while records := await reading.batch():
                keys.update(dict.fromkeys(record.key or b"" for record in records))
                count += len(records)
        log.info("late_state", topic=place.topic, partition=place.partition, offset=end, records=count)
        self.rows.passed(keys, end)


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

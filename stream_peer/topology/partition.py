"""One owned input partition: everything that touches its state happens in one task, in one order.

Records come in batches, are checked for order and gathered while the last ones wait for acknowledgement; then: step
through the stage, outputs acknowledged, state entries acknowledged, head acknowledged, messages acknowledged.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import structlog

from stream_peer.engine.observer import Observer
from stream_peer.engine.stage import Effects, Output, Record, Snapshot, Stage
from stream_peer.engine.state_log import Row, Writer
from stream_peer.settings import SnapshotEvery
from stream_peer.topology.producer import Appended
from stream_peer.topology.watchdog import now

log = structlog.get_logger(__name__)

ROOM = 20_000
"""Records that are gathered at most while a batch waits for acknowledgement."""

_SLICE_SECONDS = 0.05  # of stepping before outputs are written and the event loop gets its turn
_SLICE_OUTPUTS = 20_000
_STRIDE = 64  # records between looks at the clock
_IDLE_SECONDS = 5.0

BETWEEN_ENTRIES_AND_HEAD = "between-entries-and-head"


class Producing(Protocol):
    """What a partition needs of the producer."""

    async def send(self, outputs: Sequence[Output]) -> None:
        """Write outputs and wait for all acknowledgements."""

    async def append(self, topic: str, partition: int, rows: Sequence[Row], timestamp: int) -> list[Appended]:
        """Write rows and say where they were put."""


class Source(Protocol):
    """What a partition needs of the consumer."""

    def admits(self, tp: Any, want: int, first: int) -> bool:
        """Whether it is proven that nothing lies between; else a seek to ``want`` is asked for."""

    def accept(self, message: Any) -> None:
        """Queue a message that will be acknowledged, in the order of the log."""

    def forget(self, message: Any) -> None:
        """Let go of a message that will never be acknowledged."""

    async def log_start(self, tp: Any) -> int:
        """The first offset that the broker still has."""


class Surroundings(NamedTuple):
    """What all partitions of a worker share. ``turn`` is held while one of them steps through records."""

    producer: Producing
    observer: Observer
    every: SnapshotEvery
    fail: Callable[[BaseException], None]
    fault: Callable[[str], None]
    turn: asyncio.Lock


class Portion(NamedTuple):
    """Records of one message that are still to be folded. ``event`` is acknowledged when all were."""

    event: Any
    records: Sequence[Record]


class StateWriter(NamedTuple):
    """Where a partition's state goes."""

    topic: str
    rows: Writer


class Hole(NamedTuple):
    """Offsets that no record was read for: from ``want`` up to ``first``, not included."""

    want: int
    first: int


class Beginning(NamedTuple):
    """Where a partition's fold begins: the last input offset that its state covers, and the one that it wants next."""

    applied: int
    want: int


class OwnedPartition:
    """One partition while this worker owns it.

    Parameters
    ----------
    place : (stage_name, tp)
        Which stage, and the topic partition that it folds.
    stage : Stage
        Recovered already.
    begin : Beginning
        What its state covers, and what comes next.
    writer : StateWriter or None
        None: a stage without state, whose messages are acknowledged as soon as their outputs are.
    draining : callable
        Whether Faust waits for work to end: then every batch is followed by a snapshot.
    """

    def __init__(
        self,
        place: tuple[str, Any],
        stage: Stage,
        begin: Beginning,
        writer: StateWriter | None,
        source: Source,
        around: Surroundings,
        draining: Callable[[], bool],
    ) -> None:
        self.stage_name, self.tp = place
        self.stage = stage
        self.applied, self.want = begin
        self._first = begin.want
        self._recovered = begin.applied >= 0
        self._writer = writer
        self._source = source
        self._around = around
        self._draining = draining
        self._inbox: deque[Portion] = deque()
        self._size = 0
        self._open: list[Any] = []
        self._since = now()
        self._records = self._bytes = 0
        self._fresh = True
        self._busy = False
        self._published: dict[str, float] = {}
        self._holes: list[Hole] = []
        self._explaining: asyncio.Task[None] | None = None
        self._stopped = False
        self._wake, self._room, self._rested = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work."""
        self._around.observer.owned(self.stage_name, self.tp.partition, self.stage)
        self._task = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        """Drop what is not acknowledged: the next owner reads it again."""
        for task in (self._task, self._explaining):
            if task is not None:
                task.cancel()
        self._stopped = True
        self._room.set()
        self._rested.set()
        self._around.observer.released(self.stage_name, self.tp.partition)

    @property
    def reached(self) -> int:
        """The first input offset that is not folded yet."""
        return max(self.applied + 1, self._first)

    @property
    def has_state(self) -> bool:
        """Whether its place in the log is its own, not the group's."""
        return self._writer is not None

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is under way, everything is in the snapshot."""
        return not (self._inbox or self._records or self._busy)

    async def rest(self) -> None:
        """Wait until it is idle, or no longer ours."""
        while not (self.idle or self._stopped):
            self._rested.clear()
            self._wake.set()
            await self._rested.wait()

    def leave_rest(self) -> None:
        """Let go of what is not folded yet: whoever owns the partition next reads it again."""
        for portion in self._inbox:
            self._source.forget(portion.event.message)
        self._inbox.clear()
        self._size = 0
        self.want = self.reached
        self._room.set()

    async def put(self, event: Any) -> None:
        """Check the order of a batch and gather it; wait while there is no room."""
        records: Sequence[Record] = event.value
        first, last = records[0].offset, records[-1].offset
        want = self.want
        if last < want:  # read again
            self._source.forget(event.message)
            return
        if first > want:
            if not self._source.admits(self.tp, want, first):
                self._source.forget(event.message)
                return
            self._explain(Hole(want, first))
        elif first < want:
            records = [record for record in records if record.offset >= want]
        self._source.accept(event.message)
        self.want = last + 1
        self._inbox.append(Portion(event, records))
        self._size += len(records)
        self._wake.set()
        while self._size > ROOM:
            self._room.clear()
            await self._room.wait()

    def _explain(self, hole: Hole) -> None:
        """Find out in the background whether records were lost: the broker's answer waits for fetches under way."""
        if self._recovered:
            self._holes.append(hole)
            if self._explaining is None or self._explaining.done():
                self._explaining = asyncio.ensure_future(self._report_lost())

    async def _report_lost(self) -> None:
        """Holes are markers of transactions or compaction, unless the log begins behind them."""
        while self._holes:
            holes, self._holes = self._holes, []
            begin = await self._source.log_start(self.tp)
            for want, first in holes:
                lost = min(begin, first) - want
                if lost > 0:
                    log.error("input_lost", topic=self.tp.topic, partition=self.tp.partition, offset=want, records=lost)
                    self._around.observer.input_lost(self.tp.topic, self.tp.partition, lost)

    async def _run(self) -> None:
        try:
            while True:
                await self._wait()
                self._busy = True
                if self._inbox:
                    await self._handle()
                if self._snapshot_due():
                    await self._snapshot()
                self._busy = False
                self._rested.set()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, the state may be half changed: end the process
            self._around.fail(error)

    async def _wait(self) -> None:
        """Until there are records, or a snapshot or a publication is due."""
        if not self._inbox and not self._snapshot_due():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._until_due())
        self._wake.clear()

    def _until_due(self) -> float:
        if not self._records:
            return _IDLE_SECONDS
        return max(0.001, self._since + self._around.every.seconds - now())

    async def _handle(self) -> None:
        effects = Effects()
        async with self._around.turn:
            began = time.perf_counter()
            finished, count = self._step(effects)
            self._publish_due(effects)
            await asyncio.sleep(0)  # else many busy partitions would follow each other and hold up everything else
        await self._around.producer.send(effects.outputs)
        if not self._records:
            self._since = now()
        self._open.extend(finished)
        self._records += count
        seconds = time.perf_counter() - began
        self._around.observer.folded(self.stage_name, self.tp.partition, count, seconds, effects, self.applied)

    def _step(self, effects: Effects) -> tuple[list[Any], int]:
        """Fold what is there, for a bounded time; return the events that are done with and the number of records."""
        until = time.perf_counter() + _SLICE_SECONDS
        finished: list[Any] = []
        count = 0
        while self._inbox:
            event, records = self._inbox.popleft()
            done = self._step_portion(records, effects, until)
            count += done
            if done < len(records):
                self._inbox.appendleft(Portion(event, records[done:]))
                break
            finished.append(event)
        self._size -= count
        self._room.set()
        return finished, count

    def _step_portion(self, records: Sequence[Record], effects: Effects, until: float) -> int:
        step = self.stage.step
        for start in range(0, len(records), _STRIDE):
            if time.perf_counter() > until or len(effects.outputs) > _SLICE_OUTPUTS:
                return start
            for record in records[start : start + _STRIDE]:
                step(record, effects)
                self._bytes += len(record.value or b"")
            self.applied = record.offset
        return len(records)

    def _publish_due(self, effects: Effects) -> None:
        changed = self.stage.changed_feeds()
        if not changed:
            return
        at = now()
        due = [feed for feed, every in changed.items() if at - self._published.get(feed, 0.0) >= every / 1000]
        if due:
            self.stage.publish(effects, due)
            self._published.update(dict.fromkeys(due, at))

    def _snapshot_due(self) -> bool:
        """Whether state is to be written; in the middle of a long message too, else a restart would begin it anew."""
        if self._writer is None:
            return bool(self._open)
        if not self._records:
            return self._fresh and self._writer.rows.must_rewrite
        every = self._around.every
        enough = self._records >= every.records or self._bytes >= every.bytes
        return enough or self._fresh or self._draining() or now() - self._since >= every.seconds

    async def _snapshot(self) -> None:
        """Make the state durable, then acknowledge the messages that it covers wholly."""
        began = time.perf_counter()
        effects = Effects()
        self.stage.publish(effects, None)
        await self._around.producer.send(effects.outputs)
        snapshot = self.stage.snapshot()
        if self._writer is not None:
            rows = await self._write(self._writer, snapshot, self.applied)
            size = sum(len(row.key) + len(row.value or b"") for row in rows)
            seconds = time.perf_counter() - began
            self._around.observer.snapshotted(self.stage_name, self.tp.partition, len(rows), size, seconds)
        events, self._open = self._open, []
        self._since, self._records, self._bytes, self._fresh = now(), 0, 0, False
        for event in events:
            event.ack()

    async def _write(self, writer: StateWriter, snapshot: Snapshot, applied: int) -> list[Row]:
        entries = writer.rows.entry_rows(snapshot, applied)
        await self._append(writer, entries)
        self._around.fault(BETWEEN_ENTRIES_AND_HEAD)
        head = writer.rows.head_row(snapshot, applied)
        await self._append(writer, [head])
        writer.rows.committed(snapshot, applied)
        return [*entries, head]

    async def _append(self, writer: StateWriter, rows: list[Row]) -> None:
        at = time.time_ns() // 1_000_000
        for base, count in await self._around.producer.append(writer.topic, self.tp.partition, rows, at):
            writer.rows.appended(base, count)

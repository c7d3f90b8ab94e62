"""One owned input partition: everything that touches its state happens in one task, in one order.

Records come in batches, are checked for order and gathered while the last ones wait for acknowledgement; then: step
through the stage, outputs acknowledged, state entries acknowledged, head acknowledged, messages acknowledged.

Two things take long: a rebuild, and the snapshot of a large state. Nobody waits for them. Other partitions go on, in a
rebuild also the other feeds of this one. It is given up at once when it is revoked: what was not finished does not
count, the next owner does it again.
"""

import asyncio
import contextlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import structlog

from stream_peer.errors import LeaseEndedError, UnsignedStateError
from stream_peer.events.times import Milliseconds
from stream_peer.kafka.worker.inbox import ROOM, GapChecker, Inbox, OffsetGap, PendingBatch, report_lost
from stream_peer.kafka.worker.long_work import AUDIT_PAUSE_SECONDS, Audits, RebuildProgress, Work, advance, supply
from stream_peer.kafka.worker.port import BatchSource, Delivery, TopicPartition, WorkerContext
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.log.changelog import OUTLIVES
from stream_peer.log.driver import Checkpoint, Driver, NeedsLog, Write
from stream_peer.log.stage import Effects, Marked, Output, PublishingStage, Stage

log = structlog.get_logger(__name__)

_SLICE_SECONDS = 0.05  # of stepping before outputs are written and the event loop gets its turn
_SLICE_OUTPUTS = 20_000  # of one write: in memory until they are acknowledged
_IDLE_SECONDS = 5.0
_PUBLISH_SECONDS = 1.0  # between looks whether feeds are to be published, while another one is rebuilt
LOOK_SECONDS = 60.0
"""Between two looks of an idle owner at the end of its changelog."""
_WAITS_FOR_ITS_TURN = RebuildProgress(0, 0)
_WITHOUT_FORMER = "the topic was recreated, and holds nothing of what came before: that is gone from the state"


class StartPosition(NamedTuple):
    """Where a partition's fold begins: the last input offset that its state covers, and the one that it wants next.

    ``must_checkpoint``: write this position to the changelog before anything is folded. ``first``: the first
    offset that is still in the log.
    """

    applied: int
    want: int
    must_checkpoint: bool = False
    first: int = 0


class OwnedPartition:
    """One partition while this worker owns it.

    Parameters
    ----------
    place : (stage_name, tp)
        Which stage, and the topic partition that it folds.
    stage : Stage
        Recovered already.
    begin : StartPosition
        What its state covers, and what comes next.
    writer : StateWriter or None
        None: a stage without state, whose messages are acknowledged as soon as their outputs are.
    draining : callable
        Whether Faust waits for work to end: then every batch is followed by a snapshot.

    Attributes
    ----------
    waiting : float or None
        For how many seconds it has waited for the end of an open transaction; None: it does not.
    """

    def __init__(
        self,
        place: tuple[str, TopicPartition],
        stage: Stage,
        begin: StartPosition,
        writer: StateWriter | None,
        source: BatchSource,
        context: WorkerContext,
        draining: Callable[[], bool],
    ) -> None:
        self.stage_name, self.tp = place
        self.stage = stage
        self._first = max(begin.want, begin.first)
        self._driver = Driver(
            stage, begin.applied, context.every, context.runtime.now, must_checkpoint=begin.must_checkpoint
        )
        self._writer = writer
        self._source = source
        self._context = context
        self._now = context.runtime.now
        self._draining = draining
        self._gaps = GapChecker(self.tp, source, context, self._wake)
        self._inbox = Inbox(self.tp, self._first, source, self._gaps.explain)
        self._open: list[Delivery] = []
        self._busy = False
        self.counting = False
        self.waiting: float | None = None
        self._passed = 0
        self._progress: RebuildProgress | None = None
        self._advances = 0
        self._audits = Audits(self.tp.partition, self._now)
        self._looks_at = self._now() + LOOK_SECONDS
        self._look: asyncio.Task[None] | None = None
        self._supply: asyncio.Task[None] | None = None
        self._changelog_end: int | None = None
        self._stopped = False
        self._rested = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._gone = 0
        if begin.want and not begin.must_checkpoint:  # else it never read what is gone, or a rebuild reports it
            self._gone = begin.first
            self._gaps.compare(OffsetGap(begin.want, self._first), begin.first)

    def start(self) -> None:
        """Begin to work."""
        self.counting = True
        self._task = self._context.start(self._run)

    def stop(self) -> None:
        """Drop what is not acknowledged: the next owner reads it again."""
        self._halt()
        self._forget()
        self._context.observer.released(self.stage_name, self.tp.partition)

    def _halt(self) -> None:
        for task in (self._task, self._look, self._supply):
            if task is not None:
                task.cancel()
        self._gaps.stop()
        self._stopped = True
        self._inbox.stop()
        self._rested.set()

    # What others may know.

    @property
    def want(self) -> int:
        """The input offset that is to be read next."""
        return self._inbox.want

    @property
    def reached(self) -> int:
        """The first input offset that is not folded yet."""
        return max(self._driver.applied + 1, self._first)

    @property
    def covered(self) -> int:
        """The first input offset that the durable state does not cover, of those that are still there."""
        return max(self._driver.covered + 1, self._gone)

    @property
    def has_state(self) -> bool:
        """Whether its place in the log is its own, not the group's."""
        return self._writer is not None

    @property
    def oldest(self) -> Milliseconds | None:
        """The time of the oldest record that was read and is not folded yet; None: there is none."""
        return self._inbox.oldest

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is under way, everything is in the snapshot."""
        return not (self.counting or self._inbox or self._driver.records or self._busy or self._driver.needs_rebuild)

    @property
    def rebuilding(self) -> RebuildProgress | None:
        """How far a rebuild is that is under way or due, or a fold of what was lost; None: there is none."""
        if self._progress or self._driver.needs_rebuild:
            return self._progress or _WAITS_FOR_ITS_TURN
        whole_at = self._writer.rows.origin.whole_at if self._writer else 0
        reached = max(self.reached, self._passed)
        return RebuildProgress(reached, whole_at) if reached < whole_at else None

    @property
    def progress_token(self) -> Hashable:
        """Something else whenever work has progressed: each write that is acknowledged counts, of state too."""
        durable = self._writer and self._writer.rows.expected
        return id(self), self._driver.applied, self._progress, self._advances, durable

    def pass_over(self, end: int) -> None:
        """No record lies between what was folded and ``end``: none is left, or there was none."""
        if end > self._passed:
            self._passed = end
            self._gaps.explain(OffsetGap(self.want, end))

    # Letting go.

    async def rest(self) -> None:
        """Wait until it is idle, or no longer ours."""
        while not (self.idle or self._stopped):
            self._rested.clear()
            self._inbox.filled.set()
            await self._rested.wait()

    def leave_rest(self) -> None:
        """Drop what is not folded yet: the next owner of the partition reads it again."""
        self._inbox.leave(self.reached)

    def give_up_rebuild(self) -> None:
        """End at once if a rebuild is due or under way, or sums are still counted: the durable state is what it was."""
        if (self.counting or self._driver.needs_rebuild) and not self._stopped:
            self._give_up()

    def give_up_snapshot(self) -> None:
        """End at once if the snapshot under way is one of many slices: without its head it counts for nothing."""
        if self._inbox.lengthy and not self._stopped:
            self._give_up()

    def _give_up(self) -> None:
        log.info("work_given_up", topic=self.tp.topic, partition=self.tp.partition, offset=self._driver.covered)
        self._halt()
        self._forget()

    def _forget(self) -> None:
        """Have nothing wait for batches that are not acknowledged."""
        self.leave_rest()
        for event in self._open:
            self._source.forget(event)
        self._open.clear()

    async def put(self, event: Delivery) -> None:
        """Check the order of a batch and gather it; wait while there is no room, but not for what takes long."""
        await self._inbox.put(event)

    def _wake(self) -> None:
        self._inbox.filled.set()

    # Working.

    async def _run(self) -> None:
        try:
            await self._work_on()
        except LeaseEndedError as error:  # a join follows, and ends what is left
            log.warning("partition_lost", topic=self.tp.topic, partition=self.tp.partition, reason=str(error))
            self._give_up()

    async def _work_on(self) -> None:
        await self._find_marker()
        await self._count()
        while not self._stopped:
            await self._wait()
            self._busy = True
            await self._work()
            self._busy = False
            self._rested.set()

    async def _find_marker(self) -> None:
        """Refuse a state from before signatures, unless the log ahead holds what lets it go on."""
        stage = self.stage
        if not isinstance(stage, Marked) or not stage.needs_marker:
            return
        with self._inbox.paused():
            async with self._context.logs.reading(self.tp, None, self.reached) as reading:
                while records := await reading.batch():
                    self._advances += 1
                    if any(map(stage.is_marker, records)):
                        log.info("marker_found", topic=self.tp.topic, partition=self.tp.partition)
                        return
        raise UnsignedStateError(self.tp.topic, self.tp.partition)

    async def _count(self) -> None:
        """Have the stage compute what its loading left, which takes long if there is much of it."""
        if (stage := self._driver.publishing) is not None:
            pieces, goes_on = stage.recount(), True
            with self._inbox.paused():
                while goes_on:
                    async with self._context.turn:
                        _, goes_on = advance(pieces, _SLICE_SECONDS, self._now)
                        await asyncio.sleep(0)
                    self._advances += 1
        self.counting = False
        self._context.observer.owned(self.stage_name, self.tp.partition, self.stage)
        if self._writer is not None:
            self._tell_size(self._writer)

    async def _work(self) -> None:
        """Whatever is to be done now. Nothing is made durable between a record that calls for a rebuild and its end."""
        if self._inbox and not self._driver.needs_rebuild:
            await self._handle()
        if (stage := self._driver.publishing) is not None:
            self._audit(stage)
            while self._driver.needs_rebuild and not self._stopped:
                await self._rebuild(stage)
        if lost := self._gaps.take_lost():
            self._take_note_of_lost(lost)
        if self._checkpoint_due() and not self._stopped:
            await self._checkpoint()
        if self._writer is not None and not self._stopped:
            await self._look_behind(self._writer)

    async def _look_behind(self, writer: StateWriter) -> None:
        """Look whether a former owner's record came late to the changelog: between appends nothing else shows it.

        The broker is asked in the background: its answer waits for fetches under way, and for brokers that are away.
        """
        if (end := self._changelog_end) is not None:
            self._changelog_end = None
            await writer.look_behind(self.tp.partition, end, self._context)
        is_looking = self._look is not None and not self._look.done()
        if not (is_looking or self._inbox or self._draining()) and self._now() >= self._looks_at:
            self._looks_at = self._now() + LOOK_SECONDS
            self._look = self._context.start(lambda: self._find_end(writer))

    async def _find_end(self, writer: StateWriter) -> None:
        end = await self._source.end_now(TopicPartition(writer.topic, self.tp.partition))
        if end > writer.rows.expected:
            self._changelog_end = end
            self._wake()

    def _take_note_of_lost(self, records: int) -> None:
        """Let the state cover the records that are gone: the next owner of the partition does not report them again."""
        if self._driver.publishing is not None:
            self._driver.publishing.lost(records)
        if self._writer is not None and not self._inbox:  # else what comes behind the gap is about to be folded
            self._inbox.skip(self._gaps.reached)
            self._driver.pass_over(self._gaps.reached)

    async def _wait(self) -> None:
        """Until there are records, or a rebuild, a snapshot, a publication or a piece of an audit is due."""
        if not (self._inbox or self._driver.needs_rebuild or self._checkpoint_due()):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._inbox.filled.wait(), self._until_due())
        self._inbox.filled.clear()

    def _until_due(self) -> float:
        idle = AUDIT_PAUSE_SECONDS if self._audits.under_way else _IDLE_SECONDS
        return min(idle, max(0.001, self._driver.seconds_left)) if self._driver.records else idle

    async def _handle(self) -> None:
        effects = Effects()
        async with self._context.turn:
            began = self._now()
            finished, count = self._step(effects)
            goes_on = True
            while goes_on:
                goes_on = self._driver.go_on()
                await asyncio.sleep(0)  # else many busy partitions would follow each other and hold up all else
            self._driver.publish_due(effects)
        self._open.extend(finished)
        self._context.notices.note(effects.warnings)
        self._context.notices.note_refused(effects.counts)
        self._context.notices.note_unused(effects.of_feeds)
        self._context.notices.note_unknown(effects.unknown_fields)
        self._context.notices.note_busy(effects.busy_experts)
        await self._send(effects.outputs)
        self._driver.written(count)
        seconds = self._now() - began
        self._context.observer.folded(self.stage_name, self.tp.partition, count, seconds, effects)

    @property
    def _may_take(self) -> bool:
        """Whether a record may be folded. In a rebuild they are kept until its end."""
        is_full = self._driver.needs_rebuild and self._driver.records >= ROOM
        return bool(self._inbox) and self._driver.may_step and not is_full

    def _step(self, effects: Effects) -> tuple[list[Delivery], int]:
        """Fold what is there, for a bounded time; return the events that are done with and the number of records."""
        until = self._now() + _SLICE_SECONDS
        self._driver.catch_up(effects, until)
        finished: list[Delivery] = []
        count = 0
        while self._may_take:
            event, records = self._inbox.take()
            done = self._driver.take(records, effects, until)
            count += done
            if done < len(records):
                self._inbox.put_back(PendingBatch(event, records[done:]))
                break
            finished.append(event)
        self._inbox.folded(count)
        return finished, count

    # What takes long.

    def _audit(self, stage: PublishingStage[Any]) -> None:
        """A piece of the audit, if one is due."""
        if self._draining() or self._driver.needs_rebuild:
            return
        agrees = self._audits.work(stage)
        if agrees is not None:
            self._context.observer.audited(self.stage_name, agrees)
            if not agrees:
                log.error("audit_failed", topic=self.tp.topic, partition=self.tp.partition, offset=self._driver.applied)

    async def _rebuild(self, feeds: PublishingStage[Any]) -> None:
        """Carry out what the driver asks for until the state agrees with its log, then fold what waited for that."""
        if self._draining():
            self._give_up()
            return
        self._audits.give_up()
        if self._writer is not None and self._writer.rows.origin.whole_at == OUTLIVES:
            log.warning(
                "rebuild_of_new_topic", topic=self.tp.topic, partition=self.tp.partition, reason=_WITHOUT_FORMER
            )
        began = self._now()
        work = self._driver.rebuild()
        item: NeedsLog | Write | None = next(work, None)
        with self._inbox.paused():
            while item is not None:
                if isinstance(item, NeedsLog):
                    lost = await self._supplied(work, item)
                    item = work.send(())
                    self._gaps.take_lost()  # the log's start, of which the rebuild knows, lies behind them
                    if lost and not isinstance(item, NeedsLog):  # once, of what was adopted
                        report_lost(self.tp, 0, lost, self._context.observer)
                        feeds.lost(lost)
                else:
                    await self._write(item.outputs)
                    item = next(work, None)
            self._progress = None
        seconds = round(self._now() - began, 1)
        log.info("rebuild_ends", topic=self.tp.topic, partition=self.tp.partition, seconds=seconds)
        self._context.observer.rebuilt(self.stage_name, self.tp.partition)
        while not (self._driver.may_step or self._driver.needs_rebuild):
            await self._handle()

    async def _supplied(self, work: Work, need: NeedsLog) -> int:
        """Have the log folded; meanwhile go on with the feeds that are not rebuilt, as long as memory allows.

        Nothing is made durable before the end, so what comes of them repeats if that is not reached.
        """
        lost: int | None = None

        async def fold() -> None:
            nonlocal lost
            lost = await supply(work, need, self.tp, self._context, self._rebuilt_up_to)
            self._wake()

        self._supply = self._context.start(fold)
        while lost is None:
            if not self._may_take:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._inbox.filled.wait(), _PUBLISH_SECONDS)
            self._inbox.filled.clear()
            await self._handle()
        return lost

    async def _write(self, outputs: Iterator[Output]) -> None:
        """Write outputs, as many at a time as are made without holding up the event loop."""
        while some := _some(outputs, self._now):
            await self._send(some)
            await asyncio.sleep(0)

    async def _send(self, outputs: list[Output]) -> None:
        await self._context.producer.send(outputs)
        self._advances += 1

    def _rebuilt_up_to(self, progress: RebuildProgress) -> None:
        self._progress = progress
        self._context.observer.rebuilding(self.stage_name, self.tp.partition, *progress)

    def _checkpoint_due(self) -> bool:
        if self._writer is None:
            return bool(self._open)
        return self._driver.checkpoint_due(now=self._draining(), rewrite=self._writer.rows.must_rewrite)

    async def _checkpoint(self) -> None:
        """Make the state durable, then acknowledge the messages that it covers wholly."""
        began = self._now()
        for item in self._driver.checkpoint():
            if isinstance(item, Write):
                await self._write(item.outputs)
            elif self._writer is not None:
                await self._make_durable(self._writer, item, began)
        events, self._open = self._open, []
        for event in events:
            event.ack()

    async def _make_durable(self, writer: StateWriter, state: Checkpoint, began: float) -> None:
        with contextlib.ExitStack() as stack:

            def goes_on() -> None:
                if not self._inbox.lengthy:
                    stack.enter_context(self._inbox.paused())

            if state.is_whole:
                goes_on()
                snapshot = await self._context.runtime.aside(state.take)  # meanwhile nothing changes it
            else:
                snapshot = state.take()
            written = await writer.write(self.tp.partition, snapshot, state.applied, self._context, goes_on)
        seconds = self._now() - began
        self._context.observer.snapshotted(self.stage_name, self.tp.partition, *written, seconds)
        self._tell_size(writer)

    def _tell_size(self, writer: StateWriter) -> None:
        self._context.observer.stored(self.stage_name, self.tp.partition, *writer.rows.size)


def _some(outputs: Iterator[Output], clock: Callable[[], float]) -> list[Output]:
    """The next outputs, made for a bounded time; none: that was all."""
    some: list[Output] = []
    until = clock() + _SLICE_SECONDS
    for output in outputs:
        some.append(output)
        if clock() > until or len(some) >= _SLICE_OUTPUTS:
            break
    return some

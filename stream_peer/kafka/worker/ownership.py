"""Which partitions this worker owns: fencing tokens on assignment, state in recovery, snapshots before a revocation."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import structlog
from structlog.contextvars import bound_contextvars

from stream_peer.errors import StateError
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import Delivery, Source, TopicPartition, WorkerContext
from stream_peer.kafka.worker.recreated import (
    Choice,
    Finding,
    InputLog,
    Known,
    begin,
    decide,
    examine,
    examine_sources,
    incarnation_of,
)
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.log.changelog import NOTHING_APPLIED, Fold, Writer, claim_row
from stream_peer.log.stage import Record, Stage

log = structlog.get_logger(__name__)


class Claim(NamedTuple):
    """The owner's id for one partition, and where in the changelog it stands."""

    id: str
    offset: int


class StageInput(NamedTuple):
    """A stage and the topic that it folds; ``changelog`` None: the stage has no state."""

    stage_name: str
    topic: str
    changelog: str | None
    make_stage: Callable[[int], Stage]


class StagePartitions:
    """Folds, claims and owned partitions of one stage. ``on_recreated``: what to do if its topics were recreated."""

    def __init__(self, stage_input: StageInput, context: WorkerContext, on_recreated: Choice = "stop") -> None:
        self.input = stage_input
        self._on_recreated = on_recreated
        self.folds: dict[int, Fold] = {}
        self.claims: dict[int, Claim] = {}
        self.partitions: dict[int, OwnedPartition] = {}
        self._context = context

    def assigned(self, assigned: Iterable[TopicPartition]) -> list[int]:
        """Partitions of this stage's input among the assigned ones."""
        return sorted(tp.partition for tp in assigned if tp.topic == self.input.topic)

    async def claim(self, partitions: list[int]) -> None:
        """Take over the changelog partitions. What others append from here on does not count."""
        self.folds = {partition: fold for partition, fold in self.folds.items() if partition in partitions}
        changelog = self.input.changelog
        if changelog is not None:
            claims = await asyncio.gather(*(self._claim(changelog, partition) for partition in partitions))
            self.claims = dict(zip(partitions, claims, strict=True))

    async def _claim(self, changelog: str, partition: int) -> Claim:
        name = self._context.runtime.fresh_id()
        rows = [claim_row(partition, name)]
        at = self._context.runtime.wall()
        ((offset, _),) = await self._context.producer.append(changelog, partition, rows, at)
        return Claim(name, offset)

    def drop(self) -> None:
        """Stop the partitions' tasks and forget the claims."""
        for partition in self.partitions.values():
            partition.stop()
        self.partitions = {}
        self.claims = {}

    def may_own(self, partition: int) -> bool:
        """Whether recovery has met the claim of this assignment."""
        if self.input.changelog is None:
            return True
        claim, fold = self.claims.get(partition), self.folds.get(partition)
        return claim is not None and fold is not None and fold.next > claim.offset

    def own(self, logs: Mapping[TopicPartition, InputLog], source: Source, draining: Callable[[], bool]) -> None:
        """Make the objects of partitions out of what was recovered.

        Raises
        ------
        RecreatedTopicError
            If a topic was recreated, and the choice is to stop then.
        """
        tps = [tp for tp in logs if tp.partition not in self.partitions and self.may_own(tp.partition)]
        findings = self._findings({tp: logs[tp] for tp in tps})
        decide(findings, self._on_recreated)
        for tp in tps:
            # The partition's task begins in this context: whatever is logged in it, by libraries too, says where.
            with bound_contextvars(stage=self.input.stage_name, topic=tp.topic, partition=tp.partition):
                stage = self.input.make_stage(tp.partition)
                start, writer = self._begin(tp, stage, logs[tp], findings.get(tp))
                place = self.input.stage_name, tp
                owned = OwnedPartition(place, stage, start, writer, source, self._context, draining)
                self.partitions[tp.partition] = owned
                owned.start()

    def _findings(self, logs: Mapping[TopicPartition, InputLog]) -> dict[TopicPartition, Finding]:
        changelog = self.input.changelog
        if changelog is None:
            return {}
        examined = {tp: examine(tp, changelog, self._recovered(tp.partition), found) for tp, found in logs.items()}
        return {tp: finding for tp, finding in examined.items() if finding is not None}

    def _recovered(self, partition: int) -> Known:
        fold, claim = self.folds[partition], self.claims[partition]
        if fold.claim != claim.id:
            msg = f"{self.input.changelog}-{partition}: another worker's claim is later than ours"
            raise StateError(msg)
        return Known(fold.recovered(), fold.origin)

    def _begin(
        self, tp: TopicPartition, stage: Stage, found: InputLog, finding: Finding | None
    ) -> tuple[StartPosition, StateWriter | None]:
        if self.input.changelog is None:
            stage.reincarnate(incarnation_of(found.topic_id), 0, keep=True)
            return StartPosition(NOTHING_APPLIED, found.begin), None
        known = self._recovered(tp.partition)
        start = begin(stage, known, found, finding, self._on_recreated)
        fold, claim = self.folds[tp.partition], self.claims[tp.partition]
        expected = max(claim.offset + 1, fold.next)
        writer = Writer(fold, tp.partition, claim.id, expected, start.origin)
        entries = len(known.recovered.entries)
        log.info("partition_owned", offset=start.applied, entries=entries, ignored=fold.foreign)
        return StartPosition(start.applied, start.want, start.must_settle), StateWriter(self.input.changelog, writer)


_DRAIN_SECONDS = 1.0  # of folding what waits, when the group or the process lets go of a partition
_SNAPSHOT_SECONDS = 3.0  # of writing a large state


class Ownership:
    """All partitions of one app.

    Parameters
    ----------
    keepers : iterable of StagePartitions
        One for each stage of the app.
    fail : callable
        Ends the process: an error in recovery would otherwise be logged by Faust and forgotten.
    topic_ids : callable
        Asks the broker for the ids of topics.
    on_recreated : str
        What to do if a topic was recreated.
    """

    def __init__(
        self,
        keepers: Iterable[StagePartitions],
        fail: Callable[[BaseException], None],
        topic_ids: Callable[[Iterable[str]], Awaitable[Mapping[str, str]]],
        on_recreated: Choice = "stop",
    ) -> None:
        self.keepers = {keeper.input.topic: keeper for keeper in keepers}
        self.fail = fail
        self._topic_ids = topic_ids
        self._on_recreated = on_recreated
        self._by_changelog = {keeper.input.changelog: keeper for keeper in self.keepers.values()}
        self._draining = 0

    def has_stage(self, stage_name: str) -> bool:
        """Whether it is the app of this stage."""
        return any(keeper.input.stage_name == stage_name for keeper in self.keepers.values())

    def partitions(self) -> Iterator[OwnedPartition]:
        """All owned partitions."""
        for keeper in self.keepers.values():
            yield from list(keeper.partitions.values())

    def owned(self, tp: TopicPartition) -> OwnedPartition | None:
        """An input partition, if it is one and owned."""
        keeper = self.keepers.get(tp.topic)
        return None if keeper is None else keeper.partitions.get(tp.partition)

    def is_draining(self) -> bool:
        """Whether Faust waits for work to end."""
        return self._draining > 0

    async def put(self, delivery: Delivery, source: Source) -> None:
        """Hand a batch to its partition. Without one it came between the end of recovery and the seek: drop it."""
        owned = self.owned(delivery.tp)
        if owned is None:
            source.forget(delivery)
        else:
            await owned.put(delivery)

    async def claim(self, assigned: Iterable[TopicPartition]) -> None:
        """Drop what was owned and claim what was assigned; before Faust recovers."""
        self.drop()
        assigned = list(assigned)
        for keeper in self.keepers.values():
            await keeper.claim(keeper.assigned(assigned))

    def drop(self) -> None:
        """Stop all partitions."""
        for keeper in self.keepers.values():
            keeper.drop()

    def recover(self, changelog: str, partition: int, records: Iterable[Record]) -> None:
        """Read changelog records that Faust fetched."""
        fold = self._by_changelog[changelog].folds.setdefault(partition, Fold())
        for record in records:
            fold.add(record.offset, record.key or b"", record.value)

    def recovered_up_to(self, changelog: str, partition: int) -> int:
        """The last changelog offset that is known, so that recovery reads on from there; -1: none."""
        fold = self._by_changelog[changelog].folds.get(partition)
        return fold.next - 1 if fold else -1

    def claimed_up_to(self, changelog: str, partition: int) -> int | None:
        """The changelog offset behind our claim; None: there is no claim, or the broker did not say where it is."""
        keeper = self._by_changelog.get(changelog)
        claim = None if keeper is None else keeper.claims.get(partition)
        return None if claim is None or claim.offset < 0 else claim.offset + 1

    def stage_name_of(self, changelog: str) -> str:
        """Which stage keeps its state in a changelog."""
        return self._by_changelog[changelog].input.stage_name

    def take_over(
        self, assignment: Iterable[TopicPartition], logs: Mapping[TopicPartition, InputLog], source: Source
    ) -> dict[TopicPartition, OwnedPartition]:
        """Own every assigned partition whose recovery has met our claim.

        No await may come between reading the claims and making the partitions: a rebalance would begin there, and
        a partition would live on under a claim that is no longer ours.

        Parameters
        ----------
        assignment : iterable of TP
            What the group gave us.
        logs : mapping
            What the broker says of each input partition. One that it was not asked about came in between: its own
            assignment asks.

        Raises
        ------
        RecreatedTopicError
            If a topic was recreated, and the choice is to stop then.
        """
        assigned = set(assignment)
        for topic, keeper in self.keepers.items():
            mine = {tp: found for tp, found in logs.items() if tp in assigned and tp.topic == topic}
            keeper.own(mine, source, self.is_draining)
        owned = {partition.tp: partition for partition in self.partitions()}
        return {tp: partition for tp, partition in owned.items() if tp in assigned}

    async def topic_ids(self) -> Mapping[str, str]:
        """The broker's ids of the inputs, as far as there are any."""
        return await self._topic_ids(self.keepers)

    def examine_controls(self, ids: Mapping[str, str]) -> None:
        """Look whether control-events were recreated: they leave no state but their traces in the feed-log.

        Raises
        ------
        RecreatedTopicError
            If so, and the choice is to stop then.
        """
        keeper = next((keeper for keeper in self.keepers.values() if keeper.input.changelog is None), None)
        if keeper is None or keeper.input.topic not in ids:
            return
        topic = keeper.input.topic
        met = [partition.stage.incarnations() for partition in self.partitions()]
        decide(examine_sources(topic, ids[topic], met), self._on_recreated)

    @contextlib.asynccontextmanager
    async def drained(self) -> AsyncIterator[None]:
        """Flush all snapshots; inside, every further batch is followed by a snapshot of its own."""
        self._draining += 1
        try:
            await self._flush()
            yield
        finally:
            self._draining -= 1

    async def _flush(self) -> None:
        for _ in range(3):  # events that agents hold already get to their partitions
            await asyncio.sleep(0)
        partitions = list(self.partitions())
        for partition in partitions:
            partition.give_up_refold()
        resting = asyncio.gather(*(partition.rest() for partition in partitions))
        if not await _ends_within(_DRAIN_SECONDS, resting):  # a rebalance does not wait for a partition that catches up
            for partition in partitions:
                partition.leave_rest()
        if not await _ends_within(_SNAPSHOT_SECONDS, resting):
            for partition in partitions:
                partition.give_up_snapshot()
        await resting


async def _ends_within(seconds: float, work: "asyncio.Future[list[None]]") -> bool:
    """Whether the work ends soon enough; it goes on if not."""
    try:
        await asyncio.wait_for(asyncio.shield(work), seconds)
    except TimeoutError:
        return False
    return True

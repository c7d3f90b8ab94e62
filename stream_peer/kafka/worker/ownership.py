"""Which partitions this worker owns: fencing tokens on assignment, state in recovery, snapshots before a revocation."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import structlog
from structlog.contextvars import bound_contextvars

from stream_peer.errors import StateError
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import (
    Assigned,
    BatchSource,
    Delivery,
    GroupMember,
    LogBounds,
    Producing,
    StartPlace,
    TopicPartition,
    Unread,
    WorkerContext,
)
from stream_peer.kafka.worker.recreated import (
    Choice,
    InputLog,
    Known,
    Recreation,
    begin,
    decide,
    examine,
    examine_sources,
    is_former,
    topic_generation,
)
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.log.changelog import NOTHING_APPLIED, ChangelogReader, Writer, token_row
from stream_peer.log.stage import PublishingStage, Record, Stage, Stateful

log = structlog.get_logger(__name__)


QUESTION, FEED, CONTROL = "question", "feed", "control"
"""Names of the stages."""


class FencingToken(NamedTuple):
    """The owner's id for one partition, and where in the changelog it stands."""

    id: str
    offset: int


class StageInput(NamedTuple):
    """A stage and the topic that it folds; ``changelog`` None: the stage has no state.

    ``begins_at_end``: without a state it begins where the log ends.
    """

    stage_name: str
    topic: str
    changelog: str | None
    make_stage: Callable[[int], Stage]
    begins_at_end: bool = False


class StagePartitions:
    """Readers, fencing tokens and owned partitions of one stage.

    ``on_recreated``: what to do if its topics were recreated.
    """

    def __init__(self, stage_input: StageInput, context: WorkerContext, on_recreated: Choice = "stop") -> None:
        self.input = stage_input
        self._on_recreated = on_recreated
        self.readers: dict[int, ChangelogReader] = {}
        self.tokens: dict[int, FencingToken] = {}
        self.partitions: dict[int, OwnedPartition] = {}
        self._context = context

    def assigned(self, assigned: Iterable[TopicPartition]) -> list[int]:
        """Partitions of this stage's input among the assigned ones."""
        return sorted(tp.partition for tp in assigned if tp.topic == self.input.topic)

    async def fence(self, partitions: list[int]) -> None:
        """Take over the changelog partitions. What others append from here on does not count."""
        self.readers = {partition: reader for partition, reader in self.readers.items() if partition in partitions}
        changelog = self.input.changelog
        if changelog is not None:
            tokens = await asyncio.gather(*(self._fence(changelog, partition) for partition in partitions))
            self.tokens = dict(zip(partitions, tokens, strict=True))

    async def _fence(self, changelog: str, partition: int) -> FencingToken:
        name = self._context.runtime.fresh_id()
        rows = [token_row(partition, name)]
        at = self._context.runtime.wall()
        ((offset, *_),) = await self._context.producer.append(changelog, partition, rows, at)
        return FencingToken(name, offset)

    def end(self) -> None:
        """Stop the partitions' tasks and drop the fencing tokens."""
        for partition in self.partitions.values():
            partition.stop()
        self.partitions = {}
        self.tokens = {}

    def may_own(self, partition: int) -> bool:
        """Whether recovery has met the fencing token of this assignment."""
        if self.input.changelog is None:
            return True
        token, reader = self.tokens.get(partition), self.readers.get(partition)
        return token is not None and reader is not None and reader.next > token.offset

    def input_log(self, topic_id: str, bounds: LogBounds) -> InputLog:
        """One partition of the input, with the place where it begins without a state.

        That place is never left open: batches that came before recovery ended were dropped. A stage without state
        begins at the group's offset, unless that is of a former topic of this name. What is committed later is new,
        wherever it stands.
        """
        first, end, committed, committed_of = bounds
        if self.input.changelog is None:
            if committed is None or committed > end.high or is_former(committed_of, topic_id):
                begin = first
            else:
                begin = committed
        else:
            begin = end.stable if self.input.begins_at_end else 0
        return InputLog(topic_id, first, end.high, committed, begin, end.stable)

    def own(self, logs: Mapping[TopicPartition, InputLog], source: BatchSource, draining: Callable[[], bool]) -> None:
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

    def _findings(self, logs: Mapping[TopicPartition, InputLog]) -> dict[TopicPartition, Recreation]:
        changelog = self.input.changelog
        if changelog is None:
            return {}
        examined = {tp: examine(tp, changelog, self._recovered(tp.partition), found) for tp, found in logs.items()}
        return {tp: finding for tp, finding in examined.items() if finding is not None}

    def _recovered(self, partition: int) -> Known:
        reader, token = self.readers[partition], self.tokens[partition]
        if reader.token != token.id:
            msg = f"{self.input.changelog}-{partition}: another worker's fencing token is later than ours"
            raise StateError(msg)
        return Known(reader.recovered(), reader.origin)

    def _begin(
        self, tp: TopicPartition, stage: Stage, found: InputLog, finding: Recreation | None
    ) -> tuple[StartPosition, StateWriter | None]:
        if self.input.changelog is None or not isinstance(stage, Stateful):
            stage.begin_topic(topic_generation(found.topic_id), 0, keep=True)
            return StartPosition(NOTHING_APPLIED, found.begin, first=found.first), None
        known = self._recovered(tp.partition)
        start = begin(stage, known, found, finding, self._on_recreated)
        reader, token = self.readers[tp.partition], self.tokens[tp.partition]
        expected = max(token.offset + 1, reader.next)
        writer = Writer(reader, tp.partition, token.id, expected, start.origin)
        entries = len(known.recovered.entries)
        log.info("partition_owned", offset=start.applied, entries=entries, ignored=reader.fenced_out)
        # Of offsets that are gone, the group's offset shows which held no record: it is ahead of the state only where
        # an owner found none, as behind the end of a transaction.
        passed = 0 if start.must_checkpoint else min(found.committed or 0, found.first)
        position = StartPosition(start.applied, max(start.want, passed), start.must_checkpoint, found.first)
        return position, StateWriter(self.input.changelog, writer)


_DRAIN_SECONDS = 1.0  # of folding what waits, before a partition is given to another owner
_SNAPSHOT_SECONDS = 3.0  # of writing a large state


class Ownership:
    """All partitions of one app: the port's listener.

    Parameters
    ----------
    stages : iterable of StagePartitions
        One for each stage of the app.
    fail : callable
        Ends the process.
    producer : Producing
        Asks the broker for the ids of topics, and knows whether the lease holds.
    on_recreated : str
        What to do if a topic was recreated.
    """

    def __init__(
        self,
        stages: Iterable[StagePartitions],
        fail: Callable[[BaseException], None],
        producer: Producing,
        on_recreated: Choice = "stop",
    ) -> None:
        self.stages = {stage.input.topic: stage for stage in stages}
        self.failed = fail
        self._producer = producer
        self._on_recreated = on_recreated
        self._by_changelog = {stage.input.changelog: stage for stage in self.stages.values()}
        self._draining = 0

    def has_stage(self, stage_name: str) -> bool:
        """Whether it is the app of this stage."""
        return any(stage.input.stage_name == stage_name for stage in self.stages.values())

    def partitions(self) -> Iterator[OwnedPartition]:
        """All owned partitions."""
        for stage in self.stages.values():
            yield from list(stage.partitions.values())

    def inputs_among(self, assigned: Iterable[TopicPartition]) -> int:
        """How many of these are partitions of its inputs."""
        return sum(tp.topic in self.stages for tp in assigned)

    def owned(self, tp: TopicPartition) -> OwnedPartition | None:
        """An input partition, if it is one and owned."""
        stage = self.stages.get(tp.topic)
        return None if stage is None else stage.partitions.get(tp.partition)

    def is_draining(self) -> bool:
        """Whether the partitions are about to be revoked: every batch is then followed by a snapshot."""
        return self._draining > 0

    # What the port calls.

    async def assigned(self, tps: Iterable[TopicPartition]) -> None:
        """Release what was owned, and write fencing tokens for what was assigned."""
        self.lost()
        assigned = list(tps)
        for stage in self.stages.values():
            await stage.fence(stage.assigned(assigned))

    def unread(self, changelog: TopicPartition) -> Unread:
        """What recovery is to read: from what is known up to our fencing token; nothing later counts.

        Without a fencing token, or if the broker did not say where it is: up to the changelog's end.
        """
        stage = self._by_changelog.get(changelog.topic)
        if stage is None:
            return Unread(0, None)
        reader, token = stage.readers.get(changelog.partition), stage.tokens.get(changelog.partition)
        return Unread(reader.next if reader else 0, None if token is None or token.offset < 0 else token.offset + 1)

    def recover(self, changelog: TopicPartition, records: Iterable[Record]) -> None:
        """Read records of a changelog."""
        reader = self._by_changelog[changelog.topic].readers.setdefault(changelog.partition, ChangelogReader())
        for record in records:
            reader.add(record.offset, record.key or b"", record.value, record.headers)

    async def recovered(self, source: Assigned) -> Mapping[TopicPartition, StartPlace]:
        """Own what was recovered, and start each partition behind its head, not at the group's offset.

        Raises
        ------
        RecreatedTopicError
            If a topic was recreated, and the choice is to stop then.
        LeaseEndedError
            If others own the partitions by now: what they have written makes topics seem recreated.
        StateError
            If a log became shorter meanwhile, or another worker's fencing token is later than ours.
        """
        ids = await self._producer.topic_ids(self.stages)
        inputs = sorted(tp for tp in source.assignment() if tp.topic in self.stages)
        bounds = await source.bounds(inputs) if inputs else {}
        logs = {tp: self.stages[tp.topic].input_log(ids.get(tp.topic, ""), found) for tp, found in bounds.items()}
        await self._producer.hold()  # so no other worker has written since recovery began to read
        owned = self.take_over(source.assignment(), logs, source)
        for tp, partition in owned.items():
            if tp in logs and partition.want > logs[tp].end:
                raise _shorter(tp, partition.want, logs[tp].end)
        self.examine_controls(ids)
        return {tp: StartPlace(each.want, each.covered if each.has_state else None) for tp, each in owned.items()}

    async def deliver(self, delivery: Delivery, source: BatchSource) -> None:
        """Hand a batch to its partition. Without one it came between the end of recovery and the seek: drop it.

        A log that became shorter ends the process: the client would read it from its start, as if read before.
        """
        owned = self.owned(delivery.tp)
        if owned is None:
            source.forget(delivery)
        elif delivery.end is not None and owned.want > delivery.end.high:
            self.failed(_shorter(delivery.tp, owned.want, delivery.end.high))
        else:
            await owned.put(delivery)

    async def revoked(self) -> Mapping[TopicPartition, int]:
        """Write the last snapshots, then stop all partitions."""
        self._draining += 1
        try:
            await self._flush()
        finally:
            self._draining -= 1
        covered = {partition.tp: partition.covered for partition in self.partitions() if partition.has_state}
        self.lost()
        return covered

    def lost(self) -> None:
        """Stop all partitions."""
        for stage in self.stages.values():
            stage.end()

    # What the worker asks.

    def stage_name_of(self, changelog: str) -> str:
        """Which stage keeps its state in a changelog."""
        return self._by_changelog[changelog].input.stage_name

    def take_over(
        self, assignment: Iterable[TopicPartition], logs: Mapping[TopicPartition, InputLog], source: BatchSource
    ) -> dict[TopicPartition, OwnedPartition]:
        """Own every assigned partition whose recovery has met our fencing token.

        No await may come between reading the tokens and making the partitions: a rebalance would begin there, and
        a partition would live on under a token that is no longer ours.

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
        for topic, stage in self.stages.items():
            mine = {tp: found for tp, found in logs.items() if tp in assigned and tp.topic == topic}
            stage.own(mine, source, self.is_draining)
        owned = {partition.tp: partition for partition in self.partitions()}
        return {tp: partition for tp, partition in owned.items() if tp in assigned}

    def examine_controls(self, ids: Mapping[str, str]) -> None:
        """Look whether control-events were recreated: they leave no state but their traces in the feed-log.

        Raises
        ------
        RecreatedTopicError
            If so, and the choice is to stop then.
        """
        stage = next((stage for stage in self.stages.values() if stage.input.changelog is None), None)
        if stage is None or stage.input.topic not in ids:
            return
        topic = stage.input.topic
        owned = (partition.stage for partition in self.partitions())
        met = [each.generations() for each in owned if isinstance(each, PublishingStage)]
        decide(examine_sources(topic, ids[topic], met), self._on_recreated)

    async def _flush(self) -> None:
        for _ in range(3):  # batches that are on their way already get to their partitions
            await asyncio.sleep(0)
        partitions = list(self.partitions())
        for partition in partitions:
            partition.give_up_rebuild()
        resting = asyncio.gather(*(partition.rest() for partition in partitions))
        if not await _ends_within(_DRAIN_SECONDS, resting):  # a rebalance does not wait for a partition that catches up
            for partition in partitions:
                partition.leave_rest()
        if not await _ends_within(_SNAPSHOT_SECONDS, resting):
            for partition in partitions:
                partition.give_up_snapshot()
        await resting


def _shorter(tp: TopicPartition, want: int, end: int) -> StateError:
    """A log that became shorter while it was read: the next start finds out what became of it."""
    return StateError(f"{tp.topic}-{tp.partition} ends at {end}, but {want - 1} was read: it was recreated")


class RunningApp(NamedTuple):
    """An app of this worker: its client in a consumer group, and the partitions that it owns."""

    member: GroupMember
    ownership: Ownership


async def _ends_within(seconds: float, work: "asyncio.Future[list[None]]") -> bool:
    """Whether the work ends soon enough; it goes on if not."""
    try:
        await asyncio.wait_for(asyncio.shield(work), seconds)
    except TimeoutError:
        return False
    return True

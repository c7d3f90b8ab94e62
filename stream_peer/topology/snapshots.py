"""Which partitions this worker owns: claims on assignment, folds in recovery, snapshots while Faust waits."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import structlog

from stream_peer.engine.stage import Stage
from stream_peer.engine.state_log import NOTHING_APPLIED, Fold, Writer, claim_row
from stream_peer.errors import StateError
from stream_peer.topology.partition import Beginning, OwnedPartition
from stream_peer.topology.state_writer import StateWriter
from stream_peer.topology.surroundings import Source, Surroundings

log = structlog.get_logger(__name__)

_DRAIN_SECONDS = 1.0  # of folding what waits, when the group or the process lets go of a partition
_SNAPSHOT_SECONDS = 3.0  # of writing a large state


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


class Keeper:
    """Folds, claims and owned partitions of one stage."""

    def __init__(self, stage_input: StageInput, around: Surroundings) -> None:
        self.input = stage_input
        self.folds: dict[int, Fold] = {}
        self.claims: dict[int, Claim] = {}
        self.partitions: dict[int, OwnedPartition] = {}
        self._around = around

    def assigned(self, assigned: Iterable[Any]) -> list[int]:
        """Partitions of this stage's input among the assigned ones."""
        return sorted(tp.partition for tp in assigned if tp.topic == self.input.topic)

    async def claim(self, partitions: list[int]) -> None:
        """Take over the changelog partitions. What others append from here on does not count."""
        for lost in set(self.folds) - set(partitions):
            del self.folds[lost]
        changelog = self.input.changelog
        if changelog is not None:
            claims = await asyncio.gather(*(self._claim(changelog, partition) for partition in partitions))
            self.claims = dict(zip(partitions, claims, strict=True))

    async def _claim(self, changelog: str, partition: int) -> Claim:
        name = uuid.uuid4().hex[:12]
        rows = [claim_row(partition, name)]
        at = time.time_ns() // 1_000_000
        ((offset, _),) = await self._around.producer.append(changelog, partition, rows, at)
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

    def own(self, tp: Any, start: int | None, source: Source, draining: Callable[[], bool]) -> OwnedPartition:
        """Make the partition's object out of what was recovered. ``start`` is where to begin without a state."""
        stage = self.input.make_stage(tp.partition)
        applied, writer = NOTHING_APPLIED, None
        if self.input.changelog is not None:
            applied, writer = self._recover(tp.partition, stage, self.input.changelog)
        want = start if applied == NOTHING_APPLIED and start is not None else applied + 1
        begin = Beginning(applied, want)
        owned = OwnedPartition((self.input.stage_name, tp), stage, begin, writer, source, self._around, draining)
        self.partitions[tp.partition] = owned
        owned.start()
        return owned

    def _recover(self, partition: int, stage: Stage, changelog: str) -> tuple[int, StateWriter]:
        fold, claim = self.folds[partition], self.claims[partition]
        if fold.claim != claim.id:
            msg = f"{changelog}-{partition}: another worker's claim is later than ours"
            raise StateError(msg)
        recovered = fold.recovered()
        stage.load(recovered.head, recovered.entries)
        writer = Writer(fold, partition, claim.id, max(claim.offset + 1, fold.next))
        log.info(
            "partition_owned",
            stage=self.input.stage_name,
            partition=partition,
            applied=recovered.applied,
            entries=len(recovered.entries),
            ignored=fold.foreign,
        )
        return recovered.applied, StateWriter(changelog, writer)


class Ownership:
    """All partitions of one app.

    Parameters
    ----------
    keepers : iterable of Keeper
        One for each stage of the app.
    fail : callable
        Ends the process: an error in recovery would otherwise be logged by Faust and forgotten.
    """

    def __init__(self, keepers: Iterable[Keeper], fail: Callable[[BaseException], None]) -> None:
        self.keepers = {keeper.input.topic: keeper for keeper in keepers}
        self.fail = fail
        self._by_changelog = {keeper.input.changelog: keeper for keeper in self.keepers.values()}
        self._draining = 0

    def partitions(self) -> Iterator[OwnedPartition]:
        """All owned partitions."""
        for keeper in self.keepers.values():
            yield from list(keeper.partitions.values())

    def is_draining(self) -> bool:
        """Whether Faust waits for work to end."""
        return self._draining > 0

    async def put(self, event: Any, source: Source) -> None:
        """Hand a batch to its partition. Without one it came between the end of recovery and the seek: drop it."""
        message = event.message
        owned = self.keepers[message.topic].partitions.get(message.partition)
        if owned is None:
            source.forget(message)
        else:
            await owned.put(event)

    async def claim(self, assigned: Iterable[Any]) -> None:
        """Drop what was owned and claim what was assigned; before Faust recovers."""
        self.drop()
        assigned = list(assigned)
        for keeper in self.keepers.values():
            await keeper.claim(keeper.assigned(assigned))

    def drop(self) -> None:
        """Stop all partitions."""
        for keeper in self.keepers.values():
            keeper.drop()

    def recover(self, changelog: str, partition: int, records: Iterable[Any]) -> None:
        """Read changelog records that Faust fetched."""
        fold = self._by_changelog[changelog].folds.setdefault(partition, Fold())
        for record in records:
            fold.add(record.offset, record.key, record.value)

    def recovered_up_to(self, changelog: str, partition: int) -> int:
        """The last changelog offset that is known, so that recovery reads on from there; -1: none."""
        fold = self._by_changelog[changelog].folds.get(partition)
        return fold.next - 1 if fold else -1

    def stage_name_of(self, changelog: str) -> str:
        """Which stage keeps its state in a changelog."""
        return self._by_changelog[changelog].input.stage_name

    def take_over(
        self, assignment: Iterable[Any], starts: Mapping[Any, int], source: Source
    ) -> dict[Any, OwnedPartition]:
        """Own every assigned partition whose recovery has met our claim.

        No await may come between reading the claims and making the partitions: a rebalance would begin there, and
        a partition would live on under a claim that is no longer ours.

        Parameters
        ----------
        assignment : iterable of TP
            What the group gave us.
        starts : mapping
            Offset to begin at for partitions that have no state.
        """
        owned: dict[Any, OwnedPartition] = {}
        for tp in assignment:
            keeper = self.keepers.get(tp.topic)
            if keeper is None or not keeper.may_own(tp.partition):
                continue
            known = keeper.partitions.get(tp.partition)
            owned[tp] = known or keeper.own(tp, starts.get(tp), source, self.is_draining)
        return owned

    @contextlib.asynccontextmanager
    async def drained(self) -> Any:
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
        if not await _ends_within(_DRAIN_SECONDS, resting):  # a rebalance does not wait for whoever catches up
            for partition in partitions:
                partition.leave_rest()
        if not await _ends_within(_SNAPSHOT_SECONDS, resting):
            for partition in partitions:
                partition.give_up_snapshot()
        await resting


async def _ends_within(seconds: float, work: "asyncio.Future[Any]") -> bool:
    """Whether the work ends soon enough; it goes on if not."""
    try:
        await asyncio.wait_for(asyncio.shield(work), seconds)
    except TimeoutError:
        return False
    return True

"""What one stage owns: its claims, what recovery folded of its changelog, and the partitions that come of both."""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import structlog
from structlog.contextvars import bound_contextvars

from stream_peer.errors import StateError
from stream_peer.kafka.worker.partition import Beginning, OwnedPartition
from stream_peer.kafka.worker.recreated import Choice, Finding, InputLog, Known, begin, decide, examine, incarnation_of
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.kafka.worker.surroundings import Source, Surroundings
from stream_peer.log.changelog import NOTHING_APPLIED, Fold, Writer, claim_row
from stream_peer.log.stage import Stage

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


class Keeper:
    """Folds, claims and owned partitions of one stage. ``on_recreated``: what to do if its topics were made anew."""

    def __init__(self, stage_input: StageInput, around: Surroundings, on_recreated: Choice = "stop") -> None:
        self.input = stage_input
        self._on_recreated = on_recreated
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

    def own(self, logs: Mapping[Any, InputLog], source: Source, draining: Callable[[], bool]) -> None:
        """Make the objects of partitions out of what was recovered.

        Raises
        ------
        RecreatedTopicError
            If a topic was made anew, and the choice is to stop then.
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
                owned = OwnedPartition(place, stage, start, writer, source, self._around, draining)
                self.partitions[tp.partition] = owned
                owned.start()

    def _findings(self, logs: Mapping[Any, InputLog]) -> dict[Any, Finding]:
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
        self, tp: Any, stage: Stage, found: InputLog, finding: Finding | None
    ) -> tuple[Beginning, StateWriter | None]:
        if self.input.changelog is None:
            stage.reincarnate(incarnation_of(found.topic_id), 0, keep=True)
            return Beginning(NOTHING_APPLIED, found.begin), None
        known = self._recovered(tp.partition)
        start = begin(stage, known, found, finding, self._on_recreated)
        fold, claim = self.folds[tp.partition], self.claims[tp.partition]
        expected = max(claim.offset + 1, fold.next)
        writer = Writer(fold, tp.partition, claim.id, expected, start.origin)
        entries = len(known.recovered.entries)
        log.info("partition_owned", offset=start.applied, entries=entries, ignored=fold.foreign)
        return Beginning(start.applied, start.want, start.must_settle), StateWriter(self.input.changelog, writer)

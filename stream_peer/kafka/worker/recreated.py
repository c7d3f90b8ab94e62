"""Topics that were deleted and recreated under a state that was folded from the former ones: noticing, and what then.

Before 2.8 brokers give no ids to topics; then only a log that ends before what the state covers is noticed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import structlog

from stream_peer.errors import RecreatedTopicError
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.log.changelog import NOTHING_APPLIED, OUTLIVES, LogOrigin, Recovered
from stream_peer.log.stage import PublishingStage, Stateful

log = structlog.get_logger(__name__)

_ID_BITS_LEFT_OUT = 128 - 53

Choice = Literal["stop", "keep", "rebuild"]
"""What to do: see the setting ``on_recreated``."""


class InputLog(NamedTuple):
    """One partition of an input as the broker describes it when it is assigned.

    Attributes
    ----------
    topic_id : str
        Empty if the broker gives none.
    first, end : int
        The first offset that is still there, and the one after the last.
    committed : int or None
        The group's offset.
    begin : int
        Where a partition without a state begins.
    stable : int or None
        The last stable offset, up to which committed records can be read now; None: it is the end.
    """

    topic_id: str
    first: int
    end: int
    committed: int | None = None
    begin: int = 0
    stable: int | None = None

    @property
    def readable(self) -> int:
        """The offset up to which all that can be read now has been read."""
        return self.end if self.stable is None else self.stable


def topic_generation(topic_id: str) -> int:
    """The number by which sources tell a topic from its predecessors; 0 if the broker gives no ids.

    53 bits of a random id: exact in every JSON reader, and unlikely enough to come twice.
    """
    return int(topic_id.replace("-", ""), 16) >> _ID_BITS_LEFT_OUT if topic_id else 0


def is_former(topic_id: str, present: str) -> bool:
    """Whether an id is that of a former topic of the same name; an empty one tells nothing."""
    return "" not in (topic_id, present) and topic_id != present


class Recreation(NamedTuple):
    """A topic that was recreated, and what shows it.

    ``state_is_lost``: it is the changelog, not the input. ``is_stateless``: nothing is folded from the topic itself.
    """

    topic: str
    partition: int
    evidence: str
    state_is_lost: bool = False
    is_stateless: bool = False


def examine(tp: TopicPartition, changelog: str, known: "Known", found: InputLog) -> Recreation | None:
    """What shows that the input of a state, or its changelog, was recreated; None if nothing does."""
    recovered, origin = known
    if recovered.head is None:
        if not found.committed:
            return None
        read = f"{tp.topic}-{tp.partition} up to offset {found.committed - 1}"
        return Recreation(changelog, tp.partition, f"holds no state, though its group has read {read}", True)  # noqa: FBT003
    if is_former(origin.topic_id, found.topic_id):
        evidence = f"has the id {found.topic_id}, and the state was folded from {origin.topic_id}"
        return Recreation(tp.topic, tp.partition, f"{evidence}, up to offset {recovered.applied}")
    if recovered.applied + 1 > found.end:
        evidence = f"ends at offset {found.end}, and the state covers offset {recovered.applied}"
        return Recreation(tp.topic, tp.partition, evidence)
    return None


def examine_sources(topic: str, topic_id: str, met: Iterable[Mapping[int, int]]) -> dict[TopicPartition, Recreation]:
    """What shows that a topic without state was recreated: the feed-log has met records of a former one.

    ``met``: by partition of the topic, the generation met last; 0 tells nothing.
    """
    present = topic_generation(topic_id)
    former = sorted({partition for each in met for partition, last in each.items() if last not in (0, present)})
    evidence = f"has the id {topic_id}, and the last event that was folded came from a topic of another"
    return {
        TopicPartition(topic, partition): Recreation(topic, partition, evidence, is_stateless=True)
        for partition in former
    }


_KEPT = "keep what is known, and go on with the new topic from its start"
_DROPPED = "drop what is known, and fold the new topic from its start"
_FOLDED = "fold what {} still holds, from its start"
_HEARD = "hear what the new topic says, from its start; settings in force stay until it names others"


def decide(findings: Mapping[TopicPartition, Recreation], choice: Choice) -> None:
    """Refuse, or say in one line for each topic what will be done.

    Raises
    ------
    RecreatedTopicError
        If the choice is to stop; names the first topic, what was found, and the choices.
    """
    by_topic: dict[str, list[tuple[TopicPartition, Recreation]]] = {}
    for tp, finding in findings.items():
        by_topic.setdefault(finding.topic, []).append((tp, finding))
    for topic, found in by_topic.items():
        if choice == "stop":
            raise RecreatedTopicError(_refusal(topic, found))
        log.warning(
            "topic_recreated",
            topic=topic,
            partitions=[tp.partition for tp, _ in found],
            found=found[0][1].evidence,
            choice=choice,
            action=_action(found[0], choice),
        )


def _action(found: tuple[TopicPartition, Recreation], choice: Choice) -> str:
    tp, finding = found
    if finding.state_is_lost:
        return _FOLDED.format(tp.topic)
    if finding.is_stateless:
        return _HEARD
    return _KEPT if choice == "keep" else _DROPPED


def _refusal(topic: str, found: Sequence[tuple[TopicPartition, Recreation]]) -> str:
    _, finding = found[0]
    what = f"topic {topic} was deleted and recreated: partition {finding.partition} {finding.evidence}"
    if finding.state_is_lost or finding.is_stateless:
        choices = f"on_recreated: keep or rebuild will both {_action(found[0], 'keep')}"
    else:
        choices = f"on_recreated: keep will {_KEPT}; rebuild will {_DROPPED}"
    return f"{what}; {choices}; stop (in force) leaves everything as it is"


class Known(NamedTuple):
    """What a changelog says of a partition, and the log that it speaks of."""

    recovered: Recovered
    origin: LogOrigin


class Begin(NamedTuple):
    """How the fold of a partition begins.

    Attributes
    ----------
    origin : LogOrigin
        The log that is folded from here on.
    applied, want : int
        The last offset that counts as covered, and the one that is read next.
    must_checkpoint : bool
        Write this start to the changelog before anything is read: it must not be decided twice.
    """

    origin: LogOrigin
    applied: int
    want: int
    must_checkpoint: bool = False


def begin(stage: Stateful, known: Known, found: InputLog, finding: Recreation | None, choice: Choice) -> Begin:
    """Load into a stage what was recovered, as far as it is still valid; return where its partition begins."""
    if known.recovered.head is None:
        return _begin_first(stage, found, finding)
    if finding is not None:
        return _begin_recreated(stage, known, found, choice)
    recovered, origin = known
    stage.load(recovered.head, recovered.entries)
    if isinstance(stage, PublishingStage):
        stage.rebase(origin.base)
    origin = origin._replace(topic_id=found.topic_id or origin.topic_id)
    return Begin(origin, recovered.applied, recovered.applied + 1)


def _begin_first(stage: Stateful, found: InputLog, finding: Recreation | None) -> Begin:
    """Without a state: it never was, or it was lost."""
    stage.begin_topic(topic_generation(found.topic_id), 0, keep=True)
    if finding is not None:
        origin = LogOrigin(found.topic_id, whole_at=found.readable)
        if not isinstance(stage, PublishingStage):
            return Begin(origin, NOTHING_APPLIED, NOTHING_APPLIED + 1)
        stage.rebuild_all()
        covered = min(found.committed or 0, found.end) - 1
        return Begin(origin, covered, covered + 1, must_checkpoint=True)
    if found.begin > found.first:
        log.warning("input_skipped", records=found.begin - found.first, reason="start is latest, and there is no state")
    origin = LogOrigin(found.topic_id)
    return Begin(origin, found.begin - 1, found.begin, must_checkpoint=found.begin > 0)


def _begin_recreated(stage: Stateful, known: Known, found: InputLog, choice: Choice) -> Begin:
    """At the start of a log that took the place of the one that the state was folded from."""
    recovered, origin = known
    keeps = choice == "keep"
    stage.load(recovered.head, recovered.entries)
    published = stage if isinstance(stage, PublishingStage) else None
    if keeps and published is not None and published.needs_rebuild:
        msg = "the state is of another release and could only be rebuilt from a topic that is gone: on_recreated"
        raise RecreatedTopicError(f"{msg}: rebuild, or start the former release")
    successor = origin.successor(found.topic_id, recovered.applied, whole_at=OUTLIVES if keeps else found.readable)
    if published is not None:
        successor = successor._replace(base=max(successor.base, published.revision + 1))
    stage.begin_topic(topic_generation(found.topic_id) or successor.base, successor.base, keep=keeps)
    return Begin(successor, NOTHING_APPLIED, 0, must_checkpoint=True)

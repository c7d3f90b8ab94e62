"""What must be true of every deployment, whatever broke: compared with the bare folds of the logs as they ended.

Nothing of the driver, the ownership or the changelog's writer is used here.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from stream_peer.events import topics
from stream_peer.events.feed_log import read_feed_log
from stream_peer.feeds.outputs import newest_outputs
from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.log.changelog import ChangelogReader
from stream_peer.log.driver import fold_and_publish, pump
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.questions.stage import QuestionStage
from tests.simulation.deployment import CHANGELOGS, SECRET, Deployment


class _Revision(msgspec.Struct):
    revision: int


def problems(deployment: Deployment) -> Iterator[str]:
    """What is wrong; nothing, if all promises were kept."""
    yield from deployment.loop.errors
    published = _published(deployment)
    for partition in range(deployment.plan.partitions):
        yield from _of_question_stage(deployment, partition)
    for partition in range(deployment.plan.feed_log_partitions):
        yield from _of_feed_stage(deployment, partition, published)


def _log(deployment: Deployment, topic: str, partition: int) -> Sequence[LogRecord]:
    return deployment.broker.logs[TopicPartition(topic, partition)].archive


def _of_question_stage(deployment: Deployment, partition: int) -> Iterator[str]:
    plan = deployment.plan
    effects, stage = (
        Effects(),
        QuestionStage(
            topic=topics.FORECAST_EVENTS,
            partition=partition,
            partitions=plan.partitions,
            feed_log_partitions=plan.feed_log_partitions,
            secret=SECRET,
        ),
    )
    log = _log(deployment, topics.FORECAST_EVENTS, partition)
    for record in log:
        stage.step(record, effects)
    expected = [output.value for output in effects.outputs if output.topic == topics.FEED_LOG]
    written = [
        record.value
        for number in range(plan.feed_log_partitions)
        for record in _log(deployment, topics.FEED_LOG, number)
        if _comes_from(record, partition)
    ]
    if lost := [value for value in expected if value not in written]:
        yield f"question partition {partition}: {len(lost)} records are not in the feed-log: {lost[0]!r}"
    if foreign := [value for value in written if value not in expected]:
        yield f"question partition {partition}: {len(foreign)} records in the feed-log are wrong: {foreign[0]!r}"
    yield from _state(deployment, topics.FORECAST_EVENTS, partition, stage, log)


def _comes_from(record: LogRecord, partition: int) -> bool:
    source = read_feed_log(record.value).src
    return (source.topic, source.partition) == (topics.FORECAST_EVENTS, partition)


class _Said:
    """What the bare fold of one partition of the feed-log says, when it publishes after every record."""

    def __init__(self, log: Sequence[LogRecord], partition: int) -> None:
        self.stage = FeedStage(topic=topics.FEED_LOG, partition=partition, secret=SECRET)
        self.revisions: dict[tuple[str, bytes | None, int], set[bytes]] = {}
        self.last: dict[tuple[str, bytes | None], set[bytes | None]] = {}
        for number, record in enumerate(log, 1):
            effects = Effects()
            before = log[:number]
            pump(fold_and_publish(self.stage, record, effects, always=True), lambda _: before)  # noqa: B023 - at once
            for output in effects.outputs:
                if output.topic not in (topics.DEAD_LETTERS, topics.FEED_LOG):
                    self._take(output)
                    self.last[output.topic, output.key] = {output.value}
            self._take_shown(record)

    def publishes(self, topic: str, key: bytes | None, value: bytes | None) -> bool:
        """Whether the last record of a key is this partition's: a question may have moved to another one."""
        if topic not in topics.KEYED_BY_QUESTION or value is None:
            return True
        said = msgspec.json.decode(value)
        return self.stage.hand_overs.publishes(said["feed"], said["question"])

    def _take_shown(self, record: LogRecord) -> None:
        """Of a question something else is shown: its feed is said with this revision, if it was to be said anyway."""
        for name, feed in self.stage.feeds.by_name.items():
            known = topics.WEIGHTS, name.encode(), record.offset
            if feed.path_state.revision == record.offset and known not in self.revisions:
                for output in newest_outputs(feed):
                    self._take(output)
                    self.last.setdefault((output.topic, output.key), set()).add(output.value)

    def _take(self, output: Output) -> None:
        if output.value is not None:
            place = output.topic, output.key, _revision(output.value)
            self.revisions.setdefault(place, set()).add(output.value)


def _of_feed_stage(deployment: Deployment, partition: int, published: Sequence[Output]) -> Iterator[str]:
    log = _log(deployment, topics.FEED_LOG, partition)
    said = _Said(log, partition)
    for output in published:
        if output.value is None or msgspec.json.decode(output.value)["feed"] not in said.stage.feeds.by_name:
            continue
        revision = _revision(output.value)
        known = said.revisions.get((output.topic, output.key, revision))
        if known is None:
            yield f"{output.topic} {output.key!r}: revision {revision} follows from no log"
        elif output.value not in known:
            yield f"{output.topic} {output.key!r}: revision {revision} has other bytes"
    newest = {(output.topic, output.key): output.value for output in published}
    for (topic, key), values in said.last.items():
        if newest.get((topic, key)) not in values and all(said.publishes(topic, key, value) for value in values):
            yield f"{topic} {key!r}: its last record is not that of its newest revision"
    yield from _state(deployment, topics.FEED_LOG, partition, said.stage, log)


def _revision(value: bytes) -> int:
    return msgspec.json.decode(value, type=_Revision).revision


def _published(deployment: Deployment) -> list[Output]:
    """All outputs, a partition after the other: what is keyed alike is in its order."""
    found = []
    for tp, log in deployment.broker.logs.items():
        if tp.topic in (*topics.KEYED_BY_FEED, *topics.KEYED_BY_QUESTION):
            found += [Output(tp.topic, record.key, record.value, record.timestamp) for record in log.archive]
    return found


def _state(
    deployment: Deployment, topic: str, partition: int, stage: FeedStage | QuestionStage, log: Sequence[LogRecord]
) -> Iterator[str]:
    """The durable state is that of the bare fold, and covers the whole log."""
    reader = ChangelogReader()
    for record in deployment.broker.logs[TopicPartition(CHANGELOGS[topic], partition)].records:
        reader.add(record.offset, record.key or b"", record.value)
    found, snapshot, scrubbed = reader.recovered(), stage.snapshot(), stage.snapshot()  # the second without erased ids
    end = log[-1].offset if log else -1
    if found.applied != end:
        yield f"{topic}-{partition}: durable state covers {found.applied}, and the log ends with {end}"
    elif log and found.head is not None and _facts(found.head) not in map(_facts, (snapshot.head, scrubbed.head)):
        yield f"{topic}-{partition}: the durable head is not that of the log"
    elif log and _lasting(found.entries) != _lasting(snapshot.entries):
        yield f"{topic}-{partition}: the durable state is not that of the log"


def _lasting(entries: Mapping[bytes, bytes | None]) -> dict[bytes, bytes]:
    """What is stored, but for hand-overs: those that are written leave the state with the next snapshot."""
    return {key: value for key, value in entries.items() if value is not None and not key.startswith(b"o/")}


def _facts(head: bytes) -> object:
    """What stands in a head besides the schema of feeds: after an upgrade it is written with the next record."""
    facts = msgspec.msgpack.decode(head)
    return facts[1:] if isinstance(facts, list) else facts

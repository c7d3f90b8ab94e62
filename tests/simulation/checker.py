"""What must be true of every deployment, whatever broke: compared with the bare folds of the logs as they ended.

Nothing of the driver, the ownership or the changelog's writer is used here. ``Watch`` has what must hold meanwhile.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TypeVar

import msgspec

from stream_peer.errors import StateError
from stream_peer.events import topics
from stream_peer.events.feed_log import read_feed_log
from stream_peer.events.groups import group_id_of
from stream_peer.feeds.outputs import newest_outputs
from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.recreated import topic_generation
from stream_peer.log.changelog import ChangelogReader
from stream_peer.log.driver import fold_and_publish, pump
from stream_peer.log.stage import Effects, LogRecord, Output, Stage
from stream_peer.questions.stage import QuestionStage
from tests.simulation.deployment import Deployment
from tests.simulation.plan import CHANGELOGS, SMALL

_Stage = TypeVar("_Stage", bound=Stage)


class _Revision(msgspec.Struct):
    revision: int
    feed: str


_decode_revision = msgspec.json.Decoder(_Revision).decode


def problems(deployment: Deployment) -> Iterator[str]:
    """What is wrong; nothing, if all promises were kept."""
    yield from deployment.loop.errors
    yield from deployment.watch.problems
    yield from (f"a worker ended by itself: {error}" for error in deployment.errors)
    published, refused, questions = _published(deployment), Effects(), list[QuestionStage]()
    for partition in range(deployment.plan.partitions):
        yield from _of_question_stage(deployment, partition, refused, questions)
    control = _begun(deployment, topics.CONTROL_EVENTS, deployment.control_stage(0))
    for record in _log(deployment, topics.CONTROL_EVENTS, 0):
        control.step(record, refused)
    saids = []
    for partition in range(deployment.plan.feed_log_partitions):
        log = _log(deployment, topics.FEED_LOG, partition)
        saids.append(_Said(log, deployment.feed_stage(partition), refused))
        end = log[-1].offset if log else -1
        yield from _state(deployment, TopicPartition(topics.FEED_LOG, partition), saids[-1].stage, end)
    for said in saids:
        yield from _of_feed_stage(said, published, _begun_again(saids, loses=bool(deployment.lost)))
        yield from _of_deletions(deployment, said.stage, questions) if not deployment.lost else ()
    yield from _of_dead_letters(deployment, refused)
    yield from _of_losses(deployment)


def _log(deployment: Deployment, topic: str, partition: int) -> Sequence[LogRecord]:
    return deployment.broker.logs[TopicPartition(topic, partition)].archive


def _begun(deployment: Deployment, topic: str, stage: _Stage) -> _Stage:
    """A stage at the start of a topic, by whose id its sources tell it from a former one."""
    stage.begin_topic(topic_generation(deployment.broker.topic_ids[topic]), 0, keep=True)
    return stage


def _of_deletions(deployment: Deployment, stage: FeedStage, questions: Sequence[QuestionStage]) -> Iterator[str]:
    """A feed has rounds of the questions that the question stage has, unless they left a ledger or were cleared."""
    controls = [json.loads(record.value or b"") for record in _log(deployment, topics.CONTROL_EVENTS, 0)]
    loses = any("reset" in control or "excluded" in control or "forget" in control for control in controls)
    for name, feed in stage.feeds.by_name.items():
        kept = {question for question, entry in feed.ledger.entries.items() if entry.rounds}
        known = {
            question.id
            for partition in questions
            for question in partition._live.values()
            if any(emitted.feed == name for emitted in question.emitted.values())
        }
        stubs = {question for partition in questions for question in partition._store.stubs}
        if foreign := kept - known - stubs:
            yield f"{name} has {min(foreign)}, which the question stage has not, or has in another feed"
        if not loses and feed.settings.ledger_max > SMALL and (missing := known - kept):
            yield f"{name} has no round of {min(missing)}, which the question stage has"


def _of_question_stage(
    deployment: Deployment, partition: int, refused: Effects, questions: list[QuestionStage]
) -> Iterator[str]:
    plan = deployment.plan
    whole = _log(deployment, topics.FORECAST_EVENTS, partition)
    gone = deployment.lost.get(TopicPartition(topics.FORECAST_EVENTS, partition), range(0))
    log = [record for record in whole if record.offset not in gone] if gone else whole
    effects, stage = Effects(), _begun(deployment, topics.FORECAST_EVENTS, deployment.question_stage(partition))
    for record in log:
        stage.step(record, effects)
    questions.append(stage)
    expected = _to_feed_log(effects)
    refused.outputs += effects.outputs
    allowed = {*expected, *_to_feed_log(_folded_before(deployment, partition, whole, gone))}
    written = [
        record.value
        for number in range(plan.feed_log_partitions)
        for record in _log(deployment, topics.FEED_LOG, number)
        if _comes_from(record, partition)
    ]
    if lost := [value for value in expected if value not in written]:
        yield f"question partition {partition}: {len(lost)} records are not in the feed-log: {lost[0]!r}"
    if foreign := [value for value in written if value not in allowed]:
        yield f"question partition {partition}: {len(foreign)} records in the feed-log are wrong: {foreign[0]!r}"
    last = whole[-1].offset if whole else -1
    tp = TopicPartition(topics.FORECAST_EVENTS, partition)
    # Where only the end of a transaction is gone, the group may have passed over it before.
    passes = gone and not any(record.offset in gone for record in whole) and deployment.watch.durable(tp) == last
    yield from _state(deployment, tp, stage, last if passes else max(last, gone.stop - 1))


def _to_feed_log(effects: Effects) -> list[bytes | None]:
    return [output.value for output in effects.outputs if output.topic == topics.FEED_LOG]


def _folded_before(deployment: Deployment, partition: int, log: Sequence[LogRecord], gone: range) -> Effects:
    """What records caused that were folded perhaps, and lost before durable state covered them."""
    effects, stage = Effects(), _begun(deployment, topics.FORECAST_EVENTS, deployment.question_stage(partition))
    for record in log if gone else ():
        stage.step(record, effects)
    return effects


def _of_dead_letters(deployment: Deployment, refused: Effects) -> Iterator[str]:
    """Each record that was refused has a dead letter, perhaps more than one; nothing else has."""
    written = {
        (record.key, record.value, tuple(record.headers))
        for tp, log in deployment.broker.logs.items()
        if tp.topic == topics.DEAD_LETTERS
        for record in log.archive
    }
    outputs = [output for output in refused.outputs if output.topic == topics.DEAD_LETTERS]
    expected = {(output.key, output.value, tuple(output.headers)) for output in outputs}
    if lost := expected - written:
        yield f"{len(lost)} dead letters are missing: {min(lost)!r}"
    if not deployment.lost and (foreign := written - expected):
        yield f"{len(foreign)} dead letters follow from no log: {min(foreign)!r}"


def _of_losses(deployment: Deployment) -> Iterator[str]:
    """A worker that comes behind records that are gone says so, if state says that the partition begins before them."""
    for tp, gone in deployment.lost.items():
        if gone.start == 0:  # no state: for all that a worker can know, the log has begun there ever since
            continue
        records = sum(record.offset in gone for record in deployment.broker.logs[tp].archive)
        if deployment.watch.lost[tp] < records:
            yield f"{tp.topic}-{tp.partition}: {records} records are gone, {deployment.watch.lost[tp]} were reported"


def _comes_from(record: LogRecord, partition: int) -> bool:
    source = read_feed_log(record.value).src
    return (source.topic, source.partition) == (topics.FORECAST_EVENTS, partition)


class _Said:
    """What the bare fold of one partition of the feed-log says, when it publishes after every record."""

    def __init__(self, log: Sequence[LogRecord], stage: FeedStage, refused: Effects) -> None:
        self.stage = stage
        self.revisions: dict[tuple[str, bytes | None, int], set[bytes]] = {}
        self.last: dict[tuple[str, bytes | None], set[bytes | None]] = {}
        self.last_of_feeds: dict[tuple[str, bytes | None], dict[str, bytes | None]] = {}
        self.ended: set[tuple[str, bytes | None]] = set()
        self._places: dict[str, set[tuple[str, bytes | None]]] = {}
        for number, record in enumerate(log, 1):
            effects = Effects()
            before = log[:number]
            feeds, deleted = set(self.stage.feeds.by_name), dict(self.stage.feeds.deletions.at)
            pump(fold_and_publish(self.stage, record, effects, always=True), lambda _: before)  # noqa: B023 - at once
            for name, _ in self.stage.feeds.deletions.at.items() - deleted.items():  # perhaps it begins again at once
                self.ended |= self._places.pop(name, set())
            for name in feeds.difference(self.stage.feeds.by_name):  # its last question left it
                self._places.pop(name, None)
            for output in effects.outputs:
                if output.topic == topics.DEAD_LETTERS:
                    refused.outputs.append(output)
                elif output.topic != topics.FEED_LOG:
                    self._take(output)
                    self.last[output.topic, output.key] = {output.value}
                    if output.value is None and self._is_gone(record.key, output.key):
                        self.ended.add((output.topic, output.key))
            self._take_shown(record)

    def publishes(self, topic: str, key: bytes | None, value: bytes | None) -> bool:
        """Whether the last record of a key is this partition's: a question may have moved to another one."""
        if topic in topics.KEYED_BY_FEED or value is None:
            return True
        said = msgspec.json.decode(value)
        feed = said["feed"]
        if feed not in self.stage.feeds.by_name:  # it was deleted, and knew the question no more
            return False
        questions = self._parts(feed, said["group"]) if topic in topics.KEYED_BY_GROUP else [said["question"]]
        publishes = self.stage.hand_overs.publishes
        return all(publishes(feed, one) and not self._came_and_left(feed, one) for one in questions)

    def _parts(self, feed: str, group: str) -> set[str]:
        """Parts of a group that the feed has or had."""
        moved = (question for name, question in self.stage.hand_overs._holdings if name == feed)
        known = self.stage.feeds.by_name[feed].ledger.groups.get(group, ())
        return {*known, *(question for question in moved if group_id_of(question) == group)}

    def shows(self, topic: str, key: bytes | None) -> bool:
        """Whether a feed of this partition has the question of a key, and publishes it."""
        values = self.last.get((topic, key), ())
        return any(value is not None and self.publishes(topic, key, value) for value in values)

    def _is_gone(self, feed: bytes | None, key: bytes | None) -> bool:
        """Whether a feed was deleted before a question was handed over to it: all it says of it is that it is gone."""
        held, of, name = self.stage.hand_overs, (feed or b"").decode(), (key or b"").decode()
        gone = (question for feed_of, question in held._holdings if feed_of == of and held.is_gone(of, question))
        return any(name in (question, group_id_of(question)) for question in gone)

    def _came_and_left(self, name: str, question: str) -> bool:
        """Whether a question may have left a small ledger before it was handed over: nothing more is said of it."""
        feed = self.stage.feeds.by_name.get(name)
        has_left = feed is not None and feed.settings.ledger_max == SMALL and question not in feed.ledger.entries
        return has_left and (name, question) in self.stage.hand_overs._holdings

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
            said = _decode_revision(output.value)
            self.revisions.setdefault((output.topic, output.key, said.revision), set()).add(output.value)
            self._places.setdefault(said.feed, set()).add((output.topic, output.key))
            self.last_of_feeds.setdefault((output.topic, output.key), {})[said.feed] = output.value


def _begun_again(saids: Sequence[_Said], *, loses: bool) -> dict[tuple[str, bytes | None], set[bytes | None]]:
    """Keys of questions whose feed was deleted, and that events put into a feed of another partition, as new ones.

    Nothing orders what the two feeds say; what either says is in order, and one of them says the last record. The same
    is true of a question whose move was lost from the input after it was in the feed-log: the question stage goes on
    with the former feed, perhaps of the same partition.
    """
    ended = {place for said in saids for place in (said.last if loses else said.ended)}
    begun = {place for place in ended if any(said.shows(*place) for said in saids)}
    by_feed = {place: [said.last_of_feeds.get(place, {}).values() for said in saids if loses] for place in begun}
    return {place: set().union(*by_feed[place], *(said.last.get(place, ()) for said in saids)) for place in begun}


def _of_feed_stage(
    said: _Said, published: Sequence[Output], begun_again: Mapping[tuple[str, bytes | None], Set[bytes | None]]
) -> Iterator[str]:
    for output in published:
        if output.value is None or (found := _decode_revision(output.value)).feed not in said.stage.feeds.by_name:
            continue
        revision = found.revision
        known = said.revisions.get((output.topic, output.key, revision))
        if known is None:
            yield f"{output.topic} {output.key!r}: revision {revision} follows from no log"
        elif output.value not in known:
            yield f"{output.topic} {output.key!r}: revision {revision} has other bytes"
    newest = {(output.topic, output.key): output.value for output in published}
    own = newest | _own(said, published, begun_again.keys())
    for (topic, key), values in said.last.items():
        allowed = begun_again.get((topic, key), values)
        is_own = own.get((topic, key)) in allowed or ((topic, key) in begun_again and None in values)
        if is_own and newest.get((topic, key)) in allowed:
            continue  # of two feeds a tombstone does not tell whose it is
        if all(said.publishes(topic, key, value) for value in values):
            yield f"{topic} {key!r}: its last record is not that of its newest revision"


def _own(
    said: _Said, published: Sequence[Output], places: Set[tuple[str, bytes | None]]
) -> dict[tuple[str, bytes | None], bytes | None]:
    """Of keys that two partitions publish: the last record of this one's feeds."""
    of_places = ((output.topic, output.key, output.value) for output in published if output.value is not None)
    own = {
        (topic, key): value
        for topic, key, value in of_places
        if (topic, key) in places and _decode_revision(value).feed in said.stage.feeds.by_name
    }
    return dict.fromkeys(places) | own


def _published(deployment: Deployment) -> list[Output]:
    """All outputs, a partition after the other: what is keyed alike is in its order."""
    found = []
    for tp, log in deployment.broker.logs.items():
        if tp.topic in topics.OF_FEEDS:
            found += [Output(tp.topic, record.key, record.value, record.timestamp) for record in log.archive]
    return found


def _state(deployment: Deployment, tp: TopicPartition, stage: FeedStage | QuestionStage, end: int) -> Iterator[str]:
    """The durable state is that of the bare fold, and covers the whole log."""
    reader = ChangelogReader()
    for record in deployment.broker.logs[TopicPartition(CHANGELOGS[tp.topic], tp.partition)].records:
        reader.add(record.offset, record.key or b"", record.value, record.headers)
    try:
        found = reader.recovered()
    except StateError as error:
        yield f"{tp.topic}-{tp.partition}: the durable state cannot be read: {error}"
        return
    snapshot, scrubbed = stage.snapshot(), stage.snapshot()  # the second without erased ids
    if found.applied != end:
        yield f"{tp.topic}-{tp.partition}: durable state covers {found.applied}, and the log ends with {end}"
    elif found.head is not None:
        schema, facts = _facts(found.head)
        if facts not in (_facts(snapshot.head)[1], _facts(scrubbed.head)[1]):
            yield f"{tp.topic}-{tp.partition}: the durable head is not that of the log"
        elif _lasting(found.entries) != _lasting(deployment.stored_by(schema, snapshot.entries)):
            yield f"{tp.topic}-{tp.partition}: the durable state is not that of the log"


def _lasting(entries: Mapping[bytes, bytes | None]) -> dict[bytes, bytes]:
    """What is stored, but for hand-overs: those that are written leave the state with the next snapshot."""
    return {key: value for key, value in entries.items() if value is not None and not key.startswith(b"o/")}


def _facts(head: bytes) -> tuple[int, object]:
    """The schema of a head of feeds, and what stands in it besides: after an upgrade a record must come first."""
    facts = msgspec.msgpack.decode(head)
    return (facts[0], facts[1:]) if isinstance(facts, list) else (0, facts)

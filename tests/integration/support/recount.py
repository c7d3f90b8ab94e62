"""Everything that a deployment should have said, recomputed from its two logs, against what it said and what it keeps.

The question stage is folded over each partition of forecast-events, the feed stage over each partition of feed-log,
which says also what of feed-log the feed stage wrote, and from which it is rebuilt; nothing of a worker is used.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, get_args

import msgspec

from stream_peer.events import topics
from stream_peer.events.feed_log import SettingsChanged, Source, decode_feed_log
from stream_peer.events.outputs import output_headers
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.driver import fold_and_publish, pump
from stream_peer.log.sources import source_of
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.questions.stage import QuestionStage
from tests.integration.support.client import Message
from tests.integration.support.service import SECRET, DeadLetter, Service, Stage


class Said(NamedTuple):
    """A record without its place in the log."""

    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int | None


class Line(NamedTuple):
    """What revisions grow along: those of a question that moved to another feed start anew."""

    topic: str
    feed: str
    key: bytes


class Published(NamedTuple):
    """A revision of an output."""

    line: Line
    revision: int


class _Head(msgspec.Struct):
    feed: str
    revision: int
    settings: str


_head = msgspec.json.Decoder(_Head).decode


class _AllSaid(NamedTuple):
    """Everything published, and of each feed the revisions at which weights and error rates were."""

    outputs: dict[Published, bytes]
    revisions: set[tuple[str, int]]


class Recount:
    """One deployment, read once everything is processed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.events = _by_partition(service.read(topics.FORECAST_EVENTS))
        self.log = _by_partition(service.read(topics.FEED_LOG))
        self._states = {stage: service.kafka.states(service.settings.changelog(stage)) for stage in get_args(Stage)}
        self.repeats = 0
        self._signatures = service.signatures()

    def check(self) -> None:
        """Fail at the first thing that is lost, doubled or different."""
        expected: dict[Source, Said] = {}
        self._check_question_stage(expected)
        self._check_feed_stage(expected)
        self._check_feed_log(expected)

    # --- forecast-events → feed-log ---

    def _check_question_stage(self, expected: dict[Source, Said]) -> None:
        forwards: set[Source] = set()
        letters: dict[tuple[int, int], Output] = {}
        for partition, records in self.events.items():
            stage = self._question_stage(partition)
            for record in records:
                effects = Effects()
                stage.step(_log_record(record), effects)
                for output in effects.outputs:
                    self._expect(output, expected, forwards, letters, (partition, record.offset))
            state = stage.snapshot()
            self._check_state("question", partition, dict(state.entries), state.head)
        self._check_forwards(forwards)
        self._check_letters(letters)

    def _question_stage(self, partition: int) -> QuestionStage:
        shape = self._service.shape
        topic = self._service.topic(topics.FORECAST_EVENTS)
        stage = QuestionStage(
            topic=topic,
            partition=partition,
            partitions=shape.questions,
            feed_log_partitions=shape.feeds,
            signatures=self._signatures,
        )
        stage.begin_topic(self._service.kafka.generation(topic), 0, keep=True)
        return stage

    def _expect(
        self,
        output: Output,
        expected: dict[Source, Said],
        forwards: set[Source],
        letters: dict[tuple[int, int], Output],
        place: tuple[int, int],
    ) -> None:
        if output.topic == topics.FEED_LOG:
            self._expect_in_feed_log(output, expected)
        elif output.topic == topics.FORECAST_EVENTS:
            source = source_of(output.headers) or Source("", 0, 0, 0, 0)
            forwards.add(source)
        else:
            letters[place] = output

    def _expect_in_feed_log(self, output: Output, expected: dict[Source, Said]) -> None:
        source = decode_feed_log(output.value or b"").src
        assert source not in expected, f"two records of one cause: {source}"
        partition = partition_of((output.key or b"").decode(), self._service.shape.feeds)
        expected[source] = Said(partition, output.key, output.value, output.timestamp)

    def _check_feed_log(self, expected: dict[Source, Said]) -> None:
        """The feed-log, repeats removed, is what both stages give; repeats are equal bytes, and in order."""
        found: dict[Source, Said] = {}
        reached: dict[tuple[int, str, int], tuple[int, int]] = {}
        for message in (message for records in self.log.values() for message in records):
            record = decode_feed_log(message.value or b"")
            if isinstance(record, SettingsChanged):
                continue
            source, said = record.src, Said(message.partition, message.key, message.value, message.timestamp)
            assert found.setdefault(source, said) == said, f"{source} was said in two ways"
            line = (message.partition or 0, *source.place)
            if source.position > reached.get(line, (-1, -1)):
                reached[line] = source.position
            else:
                self.repeats += 1
        assert found.keys() == expected.keys(), _difference(found, expected)
        wrong = [source for source in expected if found[source] != expected[source]]
        assert not wrong, f"{len(wrong)} feed-log records differ, first {wrong[0]}"

    def _check_forwards(self, forwards: set[Source]) -> None:
        arrived = {source_of(m.headers) for records in self.events.values() for m in records} - {None}
        own = {source for source in arrived if source and source.topic == topics.FORECAST_EVENTS}
        assert own == forwards, _difference(own, forwards)

    def _check_letters(self, letters: dict[tuple[int, int], Output]) -> None:
        topic = self._service.topic(topics.FORECAST_EVENTS)
        found: dict[tuple[int, int], DeadLetter] = {
            (partition, offset): letter
            for (source, partition, offset), letter in self._service.dead_letters().items()
            if source == topic
        }
        assert found.keys() == letters.keys(), _difference(found, letters)
        for place, letter in found.items():
            assert (letter.message.key, letter.message.value or b"") == (
                letters[place].key,
                letters[place].value or b"",
            )

    # --- feed-log → outputs ---

    def _check_feed_stage(self, expected: dict[Source, Said]) -> None:
        said = self._said()
        made: dict[Published, bytes] = {}
        for partition, records in self.log.items():
            stage = FeedStage(topic=self._service.topic(topics.FEED_LOG), partition=partition, secret=SECRET.encode())
            effects = Effects()
            log = [_log_record(record) for record in records]
            for record in log:
                pump(fold_and_publish(stage, record, effects), partial(_all_of, log))
                # Which revisions are published depends on timing; a hand-over gives a revision, and no news.
                feeds = [feed for name, feed in stage.feeds.by_name.items() if (name, record.offset) in said.revisions]
                for feed in feeds:
                    stage.feeds.publisher.changed(feed)
                if feeds:
                    stage.publish(effects)
            stage.publish(effects)
            for output in effects.outputs:
                if output.topic == topics.FEED_LOG:
                    self._expect_in_feed_log(output, expected)
                elif output.topic != topics.DEAD_LETTERS and output.value is not None:
                    made.update([_published(output)])
            assert stage.agrees()
            state = stage.snapshot()
            self._check_state("feed", partition, dict(state.entries), state.head)
        self._check_outputs(said.outputs, made)

    def _said(self) -> "_AllSaid":
        outputs: dict[Published, bytes] = {}
        for topic in topics.OF_FEEDS:
            for message in self._service.read(topic):
                if message.value is None:  # of a feed or a question that ended
                    continue
                place, value = _published(Output(topic, message.key, message.value, 0))
                assert message.headers == output_headers(_head(value).settings), f"{place} has other headers"
                assert outputs.setdefault(place, value) == value, f"{place} was published in two ways"
        of_feeds = {(p.line.feed, p.revision) for p in outputs if p.line.topic in topics.KEYED_BY_FEED}
        return _AllSaid(outputs, of_feeds)

    def _check_outputs(self, said: dict[Published, bytes], made: dict[Published, bytes]) -> None:
        """Every published revision is what the log gives; none is missing that had to be published."""
        wrong = [place for place, value in said.items() if made.get(place) != value]
        assert not wrong, (
            f"{len(wrong)} of {len(said)} outputs are not what the log gives, such as {wrong[0]}:\n"
            f"{said[wrong[0]]!r}, in place of\n{made.get(wrong[0])!r}"
        )
        assert _newest(said) == _newest(made), _difference(_newest(said).items(), _newest(made).items())
        missing = {place for place in made if place.line.topic not in topics.KEYED_BY_FEED} - said.keys()
        assert not missing, f"{len(missing)} revisions were never published, such as {next(iter(missing))}"

    # --- what is kept ---

    def _check_state(self, stage: Stage, partition: int, entries: dict[bytes, bytes | None], head: bytes) -> None:
        """State in the changelog, read as a new owner reads it, is that of the recomputed stage."""
        recovered = self._states[stage][partition].recovered()
        kept = {key: value for key, value in entries.items() if value is not None}
        # Hand-overs that are written leave the state with the next snapshot.
        found = {key: value for key, value in recovered.entries.items() if stage == "question" or key[:2] != b"o/"}
        assert found.keys() == kept.keys(), _difference(found, kept)
        wrong = [key for key, value in kept.items() if found[key] != value]
        assert not wrong, f"{stage}-{partition}: {len(wrong)} of {len(kept)} entries differ, first {wrong[0]!r}"
        assert recovered.head == head, f"{stage}-{partition}: {recovered.head!r} is not {head!r}"


def _by_partition(messages: list[Message]) -> dict[int, list[Message]]:
    found: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        found[message.partition or 0].append(message)
    return dict(found)


def _all_of(log: Sequence[LogRecord], _up_to: int) -> Sequence[LogRecord]:
    """What a rebuild reads: it leaves out what is later."""
    return log


def _log_record(message: Message) -> LogRecord:
    return LogRecord(message.offset, message.timestamp or 0, message.key, message.value, message.headers)


def _published(output: Output) -> tuple[Published, bytes]:
    value = output.value or b""
    head = _head(value)
    return Published(Line(output.topic, head.feed, output.key or b""), head.revision), value


def _newest(outputs: Iterable[Published]) -> dict[Line, int]:
    newest: dict[Line, int] = {}
    for line, revision in outputs:
        newest[line] = max(revision, newest.get(line, revision))
    return newest


def _difference(found: Any, expected: Any) -> str:
    def some(names: Any) -> Iterator[str]:
        return (repr(name) for name, _ in zip(names, range(5), strict=False))

    lost, strange = set(expected) - set(found), set(found) - set(expected)
    return f"{len(lost)} lost ({', '.join(some(lost))}), {len(strange)} too many ({', '.join(some(strange))})"

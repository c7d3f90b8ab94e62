"""A feed is deleted while its questions are under way: in whatever order partitions read it, it ends as they all do.

The deletion goes to the feed-log and to every partition of ``forecast-events``. Hypothesis says which record arrives
next, and which stage reads next.
"""

from collections import defaultdict, deque

from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from tests.hypothesis_profiles import examples
from tests.unit.questions.question_log import HOUR, T0, delete, forecast, question, signed, tick

PARTITIONS = 2
EXPERTS = ("ann", "bob", "cyd", "dan")
CLOSE = T0 + 2 * HOUR
Place = tuple[str, int]
QUESTIONS = [(topics.FORECAST_EVENTS, partition) for partition in range(PARTITIONS)]
CONTROLS, FEEDS = (topics.CONTROL_EVENTS, 0), (topics.FEED_LOG, 0)
PLACES = (*QUESTIONS, CONTROLS, FEEDS)
HOMES = {name: partition_of(name, PARTITIONS) for name in map(str, range(20))}
FIRST, SECOND = ([name for name, home in HOMES.items() if home == partition] for partition in range(PARTITIONS))


class World:
    """The logs, what is on its way to them, and the stage that reads each."""

    def __init__(self) -> None:
        self.logs: dict[Place, list[LogRecord]] = defaultdict(list)
        self.coming: dict[Place, deque[Output]] = defaultdict(deque)
        self.read: dict[Place, int] = defaultdict(int)
        self.published: dict[bytes | None, bytes | None] = {}
        self.now = T0
        self.questions = [
            QuestionStage(topic="f", partition=partition, partitions=PARTITIONS, feed_log_partitions=1)
            for partition in range(PARTITIONS)
        ]
        self.feeds = FeedStage(topic="l", partition=0, secret=b"secret")
        control = ControlStage(topic="c", partition=0, forecast_partitions=PARTITIONS, feed_log_partitions=1)
        stages: tuple[QuestionStage | ControlStage | FeedStage, ...] = (*self.questions, control, self.feeds)
        self.stages = dict(zip(PLACES, stages, strict=True))

    def send(self, value: bytes, question_id: str = "") -> None:
        """An event is on its way to its log."""
        topic, partition = (topics.FORECAST_EVENTS, HOMES[question_id]) if question_id else CONTROLS
        self._send(Output(topic, b"key", value, self.now, partition))

    def _send(self, output: Output) -> None:
        if output.topic in (topics.FORECAST_EVENTS, topics.FEED_LOG):
            self.coming[output.topic, output.partition or 0].append(output)
        elif output.topic == topics.CONTROL_EVENTS:
            self.coming[CONTROLS].append(output)
        elif output.topic == topics.MIXED_FORECASTS:
            self.published[output.key] = output.value

    def arrive(self, place: Place) -> None:
        """The next record is appended to a log."""
        if self.coming[place]:
            output, log = self.coming[place].popleft(), self.logs[place]
            self.now += 1
            # Inputs have the broker's time, the feed-log that of what caused the record.
            at = output.timestamp if place == FEEDS else self.now
            log.append(LogRecord(len(log), at, output.key, output.value, output.headers))

    def fold(self, place: Place) -> None:
        """A stage reads the next record."""
        if self.read[place] < len(self.logs[place]):
            effects = Effects()
            self.stages[place].step(self.logs[place][self.read[place]], effects)
            self.read[place] += 1
            for output in effects.outputs:
                self._send(output)

    def pass_to(self, moment: int) -> None:
        """Time passes: every partition gets a tick."""
        self.now = max(self.now, moment)
        for partition in range(PARTITIONS):
            value = tick(moment)
            headers = signed(value, key=b"key", partition=partition)
            self._send(Output(topics.FORECAST_EVENTS, b"key", value, moment, partition, headers))

    def settle(self) -> None:
        """Everything arrives and is read."""
        for _ in range(200):
            for place in PLACES:
                self.arrive(place)
                self.fold(place)


def asked(world: World, question_id: str) -> None:
    world.send(question(question_id=question_id, feed="red", opens_at=T0, closes_at=CLOSE), question_id)
    for number, expert in enumerate(EXPERTS):
        world.send(forecast(expert, 0.2 + number / 5, T0 + HOUR, question_id=question_id), question_id)


@options(max_examples=examples(120), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(PLACES)), max_size=60), st.booleans())
def test_a_feed_has_the_questions_that_its_partitions_kept_whatever_is_read_first(
    steps: list[tuple[bool, Place]], begins_settled: bool
) -> None:
    world = World()
    for question_id in (FIRST[0], SECOND[0]):
        asked(world, question_id)
    world.pass_to(CLOSE + HOUR)
    if begins_settled:
        world.settle()
    world.send(delete("red"))
    world.send(forecast("ann", 0.9, CLOSE, question_id=FIRST[0]), FIRST[0])  # a correction of what is being deleted
    for question_id in (FIRST[1], SECOND[1]):
        asked(world, question_id)
    world.pass_to(CLOSE + 2 * HOUR)
    for is_arrival, place in steps:
        (world.arrive if is_arrival else world.fold)(place)
    world.settle()

    kept = {name for stage in world.questions for name, one in stage._live.items() if one.emitted}
    feed = world.feeds.feeds.by_name.get("red")
    entries = {} if feed is None else feed.ledger.entries
    assert {name for name, entry in entries.items() if entry.rounds} == kept
    assert {(key or b"").decode() for key, value in world.published.items() if value is not None} == kept

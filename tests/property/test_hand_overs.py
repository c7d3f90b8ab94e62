"""A question that moves is published by one feed at a time, whoever lags or is killed: its last record is the newest.

Each feed has a partition of its own, folded by an owner with the driver and durable state of a worker. Hypothesis says
which owner goes on and which is killed, in the middle of a checkpoint as well.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.feed_log import (
    FeedLogRecord,
    HandedOver,
    QuestionArrived,
    QuestionMoved,
    Source,
    encode_feed_log,
    read_feed_log,
)
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.driver import Driver, Write
from stream_peer.log.stage import Effects, LogRecord, Output
from tests.feed_histories import START, Changelog, changed, round_of, withdrawn
from tests.hypothesis_profiles import examples

FEEDS = ("red", "green", "blue")
FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
SRC = Source(topics.FORECAST_EVENTS, 0, 0, 0, 0)


class Every(NamedTuple):
    records: int = 3
    bytes: int = 10**9
    seconds: float = 1e9


class Owner:
    """The owner of a partition, until it is killed."""

    def __init__(self, world: "World", partition: int) -> None:
        self.world, self.partition = world, partition
        self.stage = FeedStage(topic=topics.FEED_LOG, partition=partition, secret=b"secret")
        changelog = world.changelogs[partition]
        self.stage.load(changelog.head, changelog.entries)
        self.driver = Driver(self.stage, world.applied[partition], Every(), lambda: 0.0)

    def fold(self, number: int) -> None:
        log = self.world.logs[self.partition]
        effects = Effects()
        records = log[self.driver.applied + 1 :][:number]
        self.driver.written(self.driver.take(records, effects, 1.0))
        self.world.write(effects.outputs)

    def checkpoint(self) -> Iterator[None]:
        """Step by step: the owner may be killed after each."""
        if self.driver.checkpoint_due(now=False, rewrite=False):
            for item in self.driver.checkpoint():
                if isinstance(item, Write):
                    self.world.write(item.outputs)
                else:
                    self.world.changelogs[self.partition].take(self.stage)
                    self.world.applied[self.partition] = item.applied
                yield


class World:
    """The feed-log, one partition a feed, and what is published of the question."""

    def __init__(self) -> None:
        self.logs: list[list[LogRecord]] = [[] for _ in FEEDS]
        self.changelogs = [Changelog() for _ in FEEDS]
        self.applied = [-1 for _ in FEEDS]
        self.published: list[Output] = []
        self.owners = [Owner(self, partition) for partition in range(len(FEEDS))]
        self._sources = 0

    def tell(self, event: FeedLogRecord) -> None:
        """A record of the question stage."""
        source = msgspec.structs.replace(SRC, offset=self._sources)
        self._sources += 1
        self._append(event.feed, encode_feed_log(msgspec.structs.replace(event, src=source)))

    def _append(self, feed: str, value: bytes) -> None:
        log = self.logs[FEEDS.index(feed)]
        log.append(LogRecord(len(log), START + 1000 * self._sources, feed.encode(), value))

    def write(self, outputs: Iterator[Output] | list[Output]) -> None:
        for output in outputs:
            if output.topic == topics.FEED_LOG:
                self._append((output.key or b"").decode(), output.value or b"")
            elif (output.topic, output.key) == (topics.MIXED_FORECASTS, b"q"):
                self.published.append(output)

    def pass_time(self, seconds: int) -> None:
        """The log's time goes on by itself."""
        self._sources += seconds

    def kill(self, partition: int) -> None:
        self.owners[partition] = Owner(self, partition)

    def settle(self) -> None:
        """Everybody goes on until nothing is left to do."""
        for _ in range(4 * len(FEEDS) + 40):
            for owner in self.owners:
                owner.fold(100)
                for _ in owner.checkpoint():
                    pass

    def said(self) -> list[tuple[str, str]]:
        """Feed and state of each record of the question; none of it for a tombstone."""
        return [
            ("", "") if output.value is None else (said["feed"], said["state"])
            for output in self.published
            for said in (msgspec.json.decode(output.value or b"{}"),)
        ]


def move(world: World, number: int, before: str, after: str) -> None:
    """As the question stage tells it."""
    world.tell(QuestionMoved(src=SRC, feed=before, question_id="q", move=number, to=after))
    world.tell(QuestionArrived(src=SRC, feed=after, question_id="q", move=number, origin=before))
    world.tell(withdrawn("q", feed=before))


MOVES = st.lists(st.sampled_from(FEEDS), min_size=1, max_size=6)
STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from((0, 0, 1, 2, 3, 4))), max_size=25)


@options(max_examples=examples(150), deadline=None)
@given(MOVES, st.lists(STEPS, min_size=7, max_size=7))
def test_one_feed_at_a_time_publishes_a_question_and_the_last_record_is_of_the_last_feed(
    moves: list[str], steps: list[list[tuple[int, int, int]]]
) -> None:
    world, feed, path = World(), "red", ["red"]
    world.tell(round_of("q", FORECASTS, feed=feed))
    for number, (after, pauses) in enumerate(zip([*moves, ""], steps, strict=False), 1):
        for partition, records, killed in pauses:
            world.owners[partition].fold(records)
            for step, _ in enumerate(world.owners[partition].checkpoint(), 1):
                if step == killed:
                    break
            if killed:
                world.kill(partition)
        if after and after != feed:
            move(world, len(path), feed, after)
            world.tell(round_of("q", {**FORECASTS, "eve": number / 10}, feed=after))
            feed = after
            path.append(feed)
    world.settle()

    said = [found for found, _ in world.said()]
    assert world.said()[-1] == (feed, "scored")
    turns = [found for number, found in enumerate(said) if number == 0 or said[number - 1] != found]
    behind = iter(path)  # a feed that the question left before it was handed over says nothing
    assert all(turn in behind for turn in turns)


@options(max_examples=examples(30), deadline=None)
@given(STEPS)
def test_a_feed_that_is_deleted_says_nothing_of_a_question_that_left_it(steps: list[tuple[int, int, int]]) -> None:
    world = World()
    world.tell(round_of("q", FORECASTS, feed="red"))
    move(world, 1, "red", "green")
    world.tell(round_of("q", FORECASTS, feed="green"))
    world.tell(changed("red", delete=True))
    for partition, records, _ in steps:
        world.owners[partition].fold(records)
        for _ in world.owners[partition].checkpoint():
            pass
    world.settle()

    assert ("", "") not in world.said()
    assert world.said()[-1] == ("green", "scored")


def test_a_feed_that_has_no_round_of_a_question_says_that_it_has_none() -> None:
    world = World()
    world.tell(round_of("q", FORECASTS, feed="red"))
    move(world, 1, "red", "green")
    world.settle()

    assert world.said() == [("red", "scored"), ("green", "withdrawn")]


def test_a_question_that_is_handed_over_to_a_feed_that_was_deleted_is_gone() -> None:
    world = World()
    world.tell(round_of("q", FORECASTS, feed="red"))
    world.tell(round_of("other", FORECASTS, feed="green"))
    move(world, 1, "red", "green")
    world.tell(changed("green", delete=True))
    world.owners[1].fold(100)
    world.settle()

    assert world.said() == [("red", "scored"), ("", "")]


def test_without_a_hand_over_a_feed_publishes_after_six_hours() -> None:
    world = World()
    world.tell(QuestionArrived(src=SRC, feed="green", question_id="q", move=1, origin="red"))
    world.tell(round_of("q", FORECASTS, feed="green"))
    world.settle()
    before = world.said()
    world.pass_time(6 * 3_600)
    world.tell(round_of("other", FORECASTS, feed="green"))
    world.settle()

    assert before == []
    assert world.said()[0] == ("green", "scored")


def test_a_hand_over_is_written_once_though_its_writer_is_killed() -> None:
    world = World()
    world.tell(round_of("q", FORECASTS, feed="red"))
    move(world, 1, "red", "green")
    world.owners[0].fold(100)
    for step, _ in enumerate(world.owners[0].checkpoint()):
        if step == 1:  # the state is durable, the hand-over is not written
            break
    world.kill(0)
    world.settle()
    world.kill(0)
    world.settle()

    handed = [record for record in world.logs[1] if isinstance(read_feed_log(record.value), HandedOver)]
    assert world.said()[-1] == ("green", "withdrawn")
    assert {read_feed_log(record.value).src for record in handed} == {Source(topics.FEED_LOG, 0, 0, 1, 0)}

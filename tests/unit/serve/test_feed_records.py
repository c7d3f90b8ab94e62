"""Of each feed the newest whole record is kept, and a worker follows the topics of them through every fault."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import combinations
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import pytest
from kafka import TopicPartition

from stream_peer.errors import BrokerUnavailableError
from stream_peer.events.outputs import Weights, encode_output
from stream_peer.serve import feed_records
from stream_peer.serve.feed_records import FeedFollower, FeedRecords, news_of
from stream_peer.settings.process import Settings
from tests.feed_outputs import part, rates_of, weights


def add(records: FeedRecords, newest: Weights) -> None:
    records.add_weights(newest.feed.encode(), encode_output(newest))


def test_the_highest_revision_is_kept_whatever_comes_later() -> None:
    records = FeedRecords()

    for newest in (weights(3, "a"), weights(5, "b"), weights(4, "c"), weights(1, feed="sport")):
        add(records, newest)

    assert records.weights("econ") == weights(5, "b")
    assert records.feeds() == ["econ", "sport"]
    assert records.revisions("econ") == (5, -1)
    assert records.weights("none") is None


def test_what_is_said_anew_under_the_same_revision_is_newer() -> None:
    """As after an audit that failed: the feed was folded anew from the same log."""
    records = FeedRecords()
    for newest in (weights(5, "b"), weights(5, "c")):
        add(records, newest)
        assert records.weights("econ") == newest

    for number, name in enumerate("ab"):
        records.add_weights(b"econ/%d" % number, part(weights(6), number, 2, name))
    assert records.weights("econ") == weights(6, "a", "b")
    records.add_weights(b"econ/0", part(weights(6), 0, 2, "c"))
    records.add_weights(b"econ/1", part(weights(6), 1, 2, "d"))
    assert records.weights("econ") == weights(6, "c", "d")


def test_parts_count_when_the_last_is_there_and_the_former_record_until_then() -> None:
    records = FeedRecords()
    add(records, weights(3, "a"))

    records.add_weights(b"econ/1", part(weights(5), 1, 2, "c"))
    before = records.weights("econ")
    records.add_weights(b"econ/0", part(weights(4), 0, 2, "old"))
    records.add_weights(b"econ/0", part(weights(5), 0, 2, "b"))

    assert before == weights(3, "a")
    assert records.weights("econ") == weights(5, "b", "c")


def test_parts_of_two_revisions_are_never_put_together() -> None:
    records = FeedRecords()

    records.add_weights(b"econ/0", part(weights(5), 0, 2, "old"))
    records.add_weights(b"econ/1", part(weights(6), 1, 2, "d"))
    assert records.weights("econ") is None
    records.add_weights(b"econ/0", part(weights(6), 0, 2, "c"))

    assert records.weights("econ") == weights(6, "c", "d")


@pytest.mark.parametrize("key", [b"econ/0", b"econ/1"])
def test_a_tombstone_ends_a_feed_and_a_new_one_of_its_name_may_come(key: bytes) -> None:
    records = FeedRecords()
    records.add_weights(b"econ/0", part(weights(5), 0, 2, "a"))
    records.add_weights(b"econ/1", part(weights(5), 1, 2, "b"))
    records.add_error_rates(b"econ", encode_output(rates_of(weights(5))))

    records.add_weights(key, None)
    records.add_error_rates(b"econ", None)
    ended = records.feeds(), records.weights("econ"), records.error_rates("econ")
    add(records, weights(9, "c"))

    assert ended == ([], None, None)
    assert records.weights("econ") == weights(9, "c")


@pytest.mark.parametrize("key", [b"econ", b"econ/0", b"econ/2", b"econ/x", b"econ/", b"econ/" + b"9" * 5000, b"\xff"])
def test_a_tombstone_of_a_former_feed_that_comes_late_ends_nothing_else(key: bytes) -> None:
    """Keys lie in several partitions, each read in an order of its own."""
    in_parts, whole = FeedRecords(), FeedRecords()
    in_parts.add_weights(b"econ/0", part(weights(9), 0, 2, "a"))
    in_parts.add_weights(b"econ/1", part(weights(9), 1, 2, "b"))
    add(whole, weights(9, "a"))

    for records in (in_parts, whole):
        records.add_weights(key, None)

    assert (in_parts.weights("econ") is None) == (key == b"econ/0")
    assert (whole.weights("econ") is None) == (key == b"econ")


def test_a_part_that_was_ended_is_not_waited_with() -> None:
    records = FeedRecords()
    records.add_weights(b"econ/0", part(weights(5), 0, 2, "a"))
    records.add_weights(b"econ/0", None)
    records.add_weights(b"econ/1", part(weights(5), 1, 2, "b"))

    assert records.feeds() == []


def test_a_deletion_and_another_feed_of_the_name_that_a_restart_repeats_are_read_in_any_order() -> None:
    """Each part has a key and a partition of its own."""
    logs = []
    for number, names in enumerate(("ac", "bd")):
        former, new = (part(weights(revision), number, 2, name) for revision, name in zip((5, 9), names, strict=True))
        logs.append([(b"econ/%d" % number, value) for value in (former, None, new, None, new)])

    for places in combinations(range(10), 5):
        records, partitions = FeedRecords(), [iter(log) for log in logs]
        for place in range(10):
            records.add_weights(*next(partitions[place in places]))

        assert records.weights("econ") == weights(9, "c", "d")
        assert records.feeds() == ["econ"]


def test_a_feed_that_was_evicted_comes_back_with_its_next_record_in_parts() -> None:
    records = FeedRecords(most_bytes=1)
    for number, name in enumerate("ab"):
        records.add_weights(b"econ/%d" % number, part(weights(5), number, 2, name))
    add(records, weights(1, feed="sport"))
    records.add_weights(b"econ/0", part(weights(6), 0, 2, "c"))
    add(records, weights(2, feed="sport"))
    waiting = records.weights("econ"), records.heads()["econ"].revision
    records.add_weights(b"econ/1", part(weights(6), 1, 2, "d"))

    assert waiting == (None, 5)
    assert records.weights("econ") == weights(6, "c", "d")
    records.add_weights(b"econ/1", None)
    assert records.feeds() == ["sport"]


def test_error_rates_are_the_newest() -> None:
    records = FeedRecords()
    for revision in (2, 7, 4):
        records.add_error_rates(b"econ", encode_output(rates_of(weights(revision))))

    assert records.error_rates("econ") == rates_of(weights(7))
    assert records.revisions("econ") == (-1, 7)


def test_the_feeds_that_changed_longest_ago_are_let_go_when_there_are_too_many_bytes() -> None:
    size = len(encode_output(weights(1, "a", feed="f0")))
    records = FeedRecords(most_bytes=2 * size)

    for number in (0, 1, 2):
        add(records, weights(1, "a", feed=f"f{number}"))
    gone = records.weights("f0")
    add(records, weights(2, "a", feed="f0"))

    assert gone is None
    assert records.feeds() == ["f0", "f1", "f2"]
    assert (records.weights("f1"), records.heads()["f1"].questions) == (None, 1)
    assert records.weights("f0") == weights(2, "a", feed="f0")


def test_a_record_larger_than_all_that_may_be_kept_is_kept_alone() -> None:
    records = FeedRecords(most_bytes=10)
    add(records, weights(1, "a"))

    assert records.weights("econ") == weights(1, "a")


def test_what_is_asked_for_again_is_not_decoded_again() -> None:
    records = FeedRecords()
    add(records, weights(1, "a"))

    assert records.weights("econ") is records.weights("econ")
    add(records, weights(2, "b"))
    assert records.weights("econ") == weights(2, "b")


def test_what_is_no_record_is_refused() -> None:
    records = FeedRecords()
    for add_one in (records.add_weights, records.add_error_rates):
        with pytest.raises(msgspec.DecodeError):
            add_one(b"econ", b"{}")
    assert records.feeds() == []


class Record(NamedTuple):
    key: bytes
    value: bytes | None


def test_followers_are_told_of_each_newer_record_of_their_feed_once_it_is_whole() -> None:
    records = FeedRecords()
    records.add_weights(b"econ", encode_output(weights(3, "a")))
    found = [
        Record(b"econ", encode_output(weights(2, "b"))),
        Record(b"sport", encode_output(weights(9, "c", feed="sport"))),
        Record(b"econ/1", part(weights(5), 1, 2, "e")),
        Record(b"econ/0", part(weights(5), 0, 2, "d")),
        Record(b"econ/0", None),
        Record(b"econ", encode_output(weights(7, "f"))),
    ]

    told = list(news_of("econ", records, found))

    assert told == [weights(5, "d", "e"), weights(7, "f")]


class Broker:
    """Two topics of a partition each, whose records a test writes; away while it is told to be."""

    def __init__(self) -> None:
        self.logs: dict[str, list[tuple[bytes, bytes | None]]] = {"weights": [], "error-rates": []}
        self.is_away = False
        self.reads = 0
        self._positions: dict[TopicPartition, int] = {}

    def partitions_of(self, _consumer: object, topic: str) -> list[TopicPartition]:
        if self.is_away:
            msg = "No broker answers."
            raise BrokerUnavailableError(msg)
        return [TopicPartition(topic, 0)]

    @contextmanager
    def groupless_reader(self, _settings: Settings, **_options: Any) -> Iterator["Broker"]:
        yield self

    def assign(self, _places: Any) -> None:
        self.reads += 1

    def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: len(self.logs[place.topic]) for place in places}

    def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 0)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._positions[place] = offset

    def position(self, place: TopicPartition) -> int:
        return self._positions[place]

    def poll(self, _consumer: object) -> dict[TopicPartition, list[Any]]:
        time.sleep(0)
        if self.is_away:
            msg = "gone"
            raise ConnectionError(msg)
        found = {}
        for place, start in self._positions.items():
            records = self.logs[place.topic][start : start + 2]
            if records:
                self._positions[place] += len(records)
                found[place] = [
                    SimpleNamespace(offset=start + n, key=key, value=value) for n, (key, value) in enumerate(records)
                ]
        return found


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(feed_records, "partitions_of", made.partitions_of)
    monkeypatch.setattr(feed_records, "groupless_reader", made.groupless_reader)
    monkeypatch.setattr(feed_records, "poll", made.poll)
    monkeypatch.setattr(feed_records, "_PAUSE_SECONDS", 0.001)
    return made


@asynccontextmanager
async def following() -> AsyncIterator[FeedFollower]:
    follower = FeedFollower(Settings())
    await follower.start()
    try:
        yield follower
    finally:
        await follower.stop()


async def until(what: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not what():  # noqa: ASYNC110 - whoever follows tells nobody
            await asyncio.sleep(0)


async def test_it_says_that_it_has_read_all_only_when_it_has(broker: Broker) -> None:
    broker.logs["weights"] = [(b"econ", encode_output(weights(n, "a"))) for n in range(9)]
    broker.logs["error-rates"] = [(b"econ", encode_output(rates_of(weights(8))))]
    assert FeedFollower(Settings()).not_ready_reason

    async with following() as follower:
        await until(lambda: not follower.not_ready_reason)

        assert follower.records.revisions("econ") == (8, 8)


async def test_empty_topics_are_read_at_once_and_what_comes_then_is_followed(broker: Broker) -> None:
    async with following() as follower:
        await until(lambda: not follower.not_ready_reason)
        assert follower.records.feeds() == []
        broker.logs["weights"].append((b"econ", encode_output(weights(1, "a"))))
        await until(lambda: follower.records.feeds() == ["econ"])
        broker.logs["weights"].append((b"econ", None))
        await until(lambda: follower.records.feeds() == [])


async def test_a_broker_that_is_away_is_waited_for_and_told_of(broker: Broker) -> None:
    broker.is_away = True
    async with following() as follower:
        await until(lambda: follower.not_ready_reason == "No broker answers.")
        broker.is_away = False
        await until(lambda: not follower.not_ready_reason)


async def test_after_an_error_it_goes_on_where_it_was_and_answers_meanwhile(broker: Broker) -> None:
    broker.logs["weights"].append((b"econ", encode_output(weights(1, "a"))))
    async with following() as follower:
        await until(lambda: not follower.not_ready_reason)
        broker.is_away = True
        await until(lambda: broker.reads == 1 and follower._told)
        meanwhile = follower.not_ready_reason, follower.records.feeds()
        broker.is_away = False
        broker.logs["weights"].append((b"econ", encode_output(weights(2, "a"))))
        await until(lambda: follower.records.revisions("econ")[0] == 2)

    assert meanwhile == ("", ["econ"])
    assert broker.reads == 2


async def test_a_topic_that_was_made_anew_is_read_from_its_start(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.logs["weights"] = [(b"old", encode_output(weights(n, "a", feed="old"))) for n in range(5)]
    async with following() as follower:
        await until(lambda: not follower.not_ready_reason)
        broker.is_away = True
        await until(lambda: follower._told)
        broker.logs["weights"] = [(b"new", encode_output(weights(1, "a", feed="new")))]
        begun: list[str] = []
        begin = follower._restart

        def noted() -> None:
            begin()
            begun.append(follower.not_ready_reason)

        monkeypatch.setattr(follower, "_restart", noted)
        broker.is_away = False
        await until(lambda: follower.records.feeds() == ["new"])
        await until(lambda: not follower.not_ready_reason)

    assert all(begun)  # until it has read it again, nobody is told that there is no feed
    assert begun


async def test_what_is_no_record_is_passed_over(broker: Broker) -> None:
    broker.logs["weights"] = [(b"econ", b"\xff"), (b"econ", b"{}"), (b"econ", encode_output(weights(1, "a")))]
    async with following() as follower:
        await until(lambda: not follower.not_ready_reason)

        assert follower.records.feeds() == ["econ"]

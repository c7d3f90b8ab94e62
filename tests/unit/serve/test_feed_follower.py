"""Following the topics of all feeds, on a log that is played."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition

from stream_peer.errors import BrokerUnavailableError
from stream_peer.events.outputs import encode_output
from stream_peer.serve import feed_records
from stream_peer.serve.feed_records import FeedFollower
from stream_peer.settings.process import Settings
from tests.feed_outputs import rates_of, weights


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

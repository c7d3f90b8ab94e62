"""Lag, and the end of a log that is a marker or a loss."""

from typing import Any

import pytest

from stream_peer.topology.lag import Lags
from stream_peer.topology.partition import Beginning, OwnedPartition
from tests.unit.topology.fakes import FakeEvent, FakeProducer, FakeSource, Place, SumStage, records, surroundings


class Clock:
    at = 100.0

    def __call__(self) -> float:
        return self.at


class Reader:
    """A consumer at a position in a log that ends at 10."""

    def __init__(self, position: int) -> None:
        self.at = position
        self.again: list[int] = []

    def highwater(self, tp: Any) -> int:
        return 10

    async def position(self, tp: Any) -> int:
        return self.at

    def read_again(self, tp: Any, want: int) -> None:
        self.again.append(want)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def partition(reached: int) -> OwnedPartition:
    around, _ = surroundings(FakeProducer())
    place = ("question", Place("forecast-events", 0))
    begin = Beginning(reached - 1, reached)
    return OwnedPartition(place, SumStage(), begin, None, FakeSource(), around, lambda: False)


async def test_what_the_consumer_has_not_fetched_or_the_partition_not_folded_is_lag(clock: Clock) -> None:
    lags = Lags(clock)
    waiting = await partition(8)
    busy = await partition(8)
    await busy.put(FakeEvent(records(8, 9)))
    reader = Reader(8)

    assert await lags.of(waiting, reader) == 2
    assert await lags.of(busy, Reader(10)) == 2
    assert await lags.of(await partition(10), Reader(10)) == 0
    assert reader.again == []


async def test_the_end_that_the_consumer_is_past_is_read_again_and_then_known_to_be_a_marker(clock: Clock) -> None:
    lags, reader, waiting = Lags(clock), Reader(10), await partition(9)

    first = await lags.of(waiting, reader)
    clock.at += 6
    later = await lags.of(waiting, reader)

    assert (first, later) == (1, 0)
    assert reader.again == [9]


async def test_a_loss_is_looked_for_again_and_again(clock: Clock) -> None:
    lags, reader, waiting = Lags(clock), Reader(10), await partition(7)

    for _ in range(5):
        await lags.of(waiting, reader)
        clock.at += 6

    assert reader.again == [7, 7, 7]


async def test_what_waits_is_as_old_as_its_first_record_and_the_first_that_came_is_told_once() -> None:
    waiting = await partition(8)
    assert (waiting.oldest, waiting.take_heard()) == (None, None)

    await waiting.put(FakeEvent(records(8, 9)))
    await waiting.put(FakeEvent(records(10, 12)))

    first = records(8, 8)[0]
    assert waiting.oldest == first.timestamp
    heard = waiting.take_heard()
    assert heard is not None
    assert heard.offset == 8
    assert waiting.take_heard() is None

"""Lag, and the end of a log that is a marker or a loss."""

from typing import Any

import pytest

from stream_peer.kafka.worker.long_work import RebuildProgress
from stream_peer.kafka.worker.monitor import Lag, Lags
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import LogEnd, TopicPartition
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.log.changelog import ChangelogReader, LogOrigin, Writer
from tests.unit.clock import Clock
from tests.unit.kafka.worker.fakes import FakeEvent, FakeProducer, FakeSource, SumStage, records, surroundings

END = LogEnd(12, 10)  # behind 10 lies a transaction that is still open


class Reader:
    """A consumer at a position in a log that ends at 10, as far as it is committed."""

    def __init__(self, position: int) -> None:
        self.at = position
        self.again: list[int] = []
        self.passed: list[int] = []
        self.sought: int | None = None

    def log_end(self, tp: Any) -> LogEnd:
        return END

    async def position_of(self, tp: Any) -> int:
        return self.at

    def read_again(self, tp: Any, want: int) -> None:
        self.again.append(want)

    def found_nothing(self, tp: Any, want: int) -> bool:
        return self.sought == want

    def pass_over(self, tp: Any, end: int) -> None:
        self.passed.append(end)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def partition(reached: int, origin: LogOrigin | None = None) -> OwnedPartition:
    around, _ = surroundings(FakeProducer())
    writer = None if origin is None else StateWriter("changelog", Writer(ChangelogReader(), 0, "us", 0, origin))
    place = ("question", TopicPartition("forecast-events", 0))
    begin = StartPosition(reached - 1, reached)
    return OwnedPartition(place, SumStage(), begin, writer, FakeSource(), around, lambda: False)


async def test_what_the_consumer_has_not_fetched_or_the_partition_not_folded_is_lag(clock: Clock) -> None:
    lags = Lags(clock)
    waiting = await partition(8)
    busy = await partition(8)
    await busy.put(FakeEvent(records(8, 9)))
    reader = Reader(8)

    assert await lags.of(waiting, END, reader) == Lag(2, 8)
    assert await lags.of(busy, END, Reader(10)) == Lag(2)
    assert await lags.of(await partition(10), END, Reader(10)) == Lag(0)
    assert await lags.of(waiting, None, reader) == Lag(0)
    assert reader.again == []


async def test_reading_through_aborted_records_is_progress_although_none_of_them_comes(clock: Clock) -> None:
    lags, waiting = Lags(clock), await partition(2)

    looks = [await lags.of(waiting, END, Reader(position)) for position in (2, 6)]

    assert looks == [Lag(8, 2), Lag(8, 6)]


async def test_the_end_that_the_consumer_is_past_is_read_again_and_then_known_to_hold_no_record(clock: Clock) -> None:
    lags, reader, waiting = Lags(clock), Reader(10), await partition(9)

    first = await lags.of(waiting, END, reader)
    reader.sought = 9
    looks = [(await lags.of(waiting, END, reader)).records for _ in range(3)]

    assert (first.records, looks) == (1, [1, 0, 0])
    assert reader.again == [9]
    assert set(reader.passed) == {10}


async def test_the_group_gets_no_offset_for_a_partition_without_a_state(clock: Clock) -> None:
    lags, reader = Lags(clock), Reader(10)
    nothing_folded = await partition(0, LogOrigin())

    reader.sought = 0
    looks = [(await lags.of(nothing_folded, END, reader)).records for _ in range(3)]

    assert (looks[-1], reader.passed) == (0, [])


async def test_a_state_is_whole_although_its_log_ends_in_aborted_records(clock: Clock) -> None:
    lags, reader = Lags(clock), Reader(10)
    folding = await partition(7, LogOrigin(whole_at=10))
    before = folding.rebuilding

    reader.sought = 7
    for _ in range(2):
        await lags.of(folding, END, reader)

    assert (before, folding.rebuilding) == (RebuildProgress(7, 10), None)


async def test_an_end_that_was_never_read_again_is_given_up_as_lag_but_is_not_passed_over(clock: Clock) -> None:
    lags, reader, waiting = Lags(clock), Reader(10), await partition(9)

    first = await lags.of(waiting, END, reader)
    clock.at += 6
    later = await lags.of(waiting, END, reader)

    assert (first.records, later.records) == (1, 0)
    assert (reader.again, reader.passed) == ([9], [])


async def test_a_loss_is_looked_for_again_and_again(clock: Clock) -> None:
    lags, reader, waiting = Lags(clock), Reader(10), await partition(7)

    for _ in range(5):
        await lags.of(waiting, END, reader)
        clock.at += 6

    assert reader.again == [7, 7, 7]


async def test_what_waits_is_as_old_as_its_first_record() -> None:
    waiting = await partition(8)
    before = waiting.oldest

    await waiting.put(FakeEvent(records(8, 9)))
    await waiting.put(FakeEvent(records(10, 12)))

    assert (before, waiting.oldest) == (None, records(8, 8)[0].timestamp)

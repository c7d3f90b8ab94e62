"""A log read from its start: how far, and that its consumer is closed in every case."""

import asyncio
from typing import Any

import pytest
from aiokafka import TopicPartition, errors
from aiokafka.consumer.fetcher import READ_UNCOMMITTED

from stream_peer.errors import BrokerUnavailableError, StateError
from stream_peer.kafka.worker.faust_bridge import LogReader, LogReading
from stream_peer.log.stage import LogRecord
from tests.unit.kafka.worker.fakes import records

HERE = TopicPartition("feed-log", 3)
PLACE = TopicPartition("feed-log", 3)


class Fetcher:
    """aiokafka's fetcher, asked as one that reads uncommitted records, where the last record is not committed yet."""

    async def end_offsets(self, places: list[TopicPartition], timeout_ms: int | None) -> dict[TopicPartition, int]:
        return {PLACE: 10 if self.__dict__["_isolation_level"] == READ_UNCOMMITTED else 9}


class Consumer:
    """aiokafka's consumer of a log from 2 to 9, whose last three offsets hold a marker, a record and a marker."""

    made: "list[Consumer]" = []  # noqa: RUF012 - emptied by the fixture
    away: "list[type[Exception]]" = []  # noqa: RUF012 - what its next questions get in place of an answer

    def __init__(self, **options: Any) -> None:
        self.options = options
        self._fetcher = Fetcher()
        self.log: list[LogRecord] = [*records(2, 6), *records(8, 8)]
        self.at, self.end = 0, 10
        self.started = self.stopped = False
        self.fails: BaseException | None = None
        Consumer.made.append(self)

    async def start(self) -> None:
        await self.asked()
        self.started = True

    async def asked(self) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise self.away.pop()

    async def stop(self) -> None:
        await asyncio.sleep(0)
        self.stopped = True

    def assign(self, places: list[TopicPartition]) -> None:
        assert places == [PLACE]

    async def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        await self.asked()
        return {PLACE: 2}

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {PLACE: 9}  # the last record is not committed yet

    def seek(self, place: TopicPartition, offset: int) -> None:
        self.at = offset

    async def getmany(self, place: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[LogRecord]]:
        if self.fails is not None:
            raise self.fails
        found = [record for record in self.log if record.offset >= self.at][:2]
        self.at = found[-1].offset + 1 if found else self.end
        return {PLACE: found} if found else {}

    async def position(self, place: TopicPartition) -> int:
        return self.at


@pytest.fixture(autouse=True)
def _consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    Consumer.made, Consumer.away = [], []
    monkeypatch.setattr("stream_peer.kafka.worker.faust_bridge._ASK_AGAIN_SECONDS", 0)
    monkeypatch.setattr("stream_peer.kafka.worker.faust_bridge.AIOKafkaConsumer", Consumer)


async def all_of(reading: LogReading) -> list[int]:
    offsets: list[int] = []
    while batch := await reading.batch():
        offsets += [record.offset for record in batch]
    return offsets


@pytest.mark.parametrize(
    ("up_to", "offsets"), [(5, [2, 3, 4, 5]), (7, [2, 3, 4, 5, 6]), (9, [2, 3, 4, 5, 6, 8]), (1, [])]
)
async def test_a_log_is_read_up_to_an_offset_whether_it_holds_a_record_or_not(up_to: int, offsets: list[int]) -> None:
    async with LogReader({"bootstrap_servers": "here"}).reading(HERE, up_to) as reading:
        begin, found = reading.begin, await all_of(reading)

    (consumer,) = Consumer.made
    assert begin == 2
    assert found == offsets
    assert consumer.options["bootstrap_servers"] == "here"
    assert consumer.options["isolation_level"] == "read_committed"
    assert "group_id" not in consumer.options
    assert consumer.stopped


@pytest.mark.parametrize(("first", "offsets"), [(0, [2, 3, 4, 5, 6, 8]), (5, [5, 6, 8]), (9, []), (30, [])])
async def test_a_log_is_read_from_an_offset_to_where_it_ends_now(first: int, offsets: list[int]) -> None:
    async with LogReader({}).reading(HERE, None, first) as reading:
        assert await all_of(reading) == offsets


@pytest.mark.parametrize("error", [errors.KafkaConnectionError, errors.KafkaTimeoutError])
async def test_a_reading_that_begins_while_brokers_are_away_waits_for_them(error: type[Exception]) -> None:
    Consumer.away = [error] * 3

    async with LogReader({}).reading(HERE, 9) as reading:
        assert await all_of(reading) == [2, 3, 4, 5, 6, 8]


async def test_a_reading_gives_up_when_brokers_are_away_for_longer_than_the_patience() -> None:
    Consumer.away = [errors.KafkaConnectionError] * 1_000_000

    with pytest.raises(BrokerUnavailableError) as caught:
        async with LogReader({}, patience=0.01).reading(HERE, 9):
            pass

    assert str(caught.value) == "feed-log-3 could not be read for 0.01 s (broker_patience)"
    assert Consumer.made[0].stopped


async def test_a_log_that_ends_before_what_was_folded_is_not_read() -> None:
    with pytest.raises(StateError, match="ends at 10, but was folded up to 10"):
        async with LogReader({}).reading(HERE, 10):
            pass

    assert Consumer.made[0].stopped


async def test_the_consumer_is_closed_after_an_error_and_when_cancelled_twice() -> None:
    async def read(fails: BaseException | None) -> None:
        async with LogReader({}).reading(HERE, 9) as reading:
            Consumer.made[-1].fails = fails
            await reading.batch()
            await asyncio.Event().wait()

    with pytest.raises(ConnectionError):
        await read(ConnectionError())
    task = asyncio.ensure_future(read(None))
    while len(Consumer.made) < 2 or Consumer.made[-1].at < 4:  # noqa: ASYNC110 - until it reads
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert [consumer.stopped for consumer in Consumer.made] == [True, True]

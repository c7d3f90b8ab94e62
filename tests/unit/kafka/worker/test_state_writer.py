"""Snapshots as they go to a changelog: in slices, the head last, and worth nothing without it."""

import asyncio
from collections.abc import Sequence

import pytest

from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import Appended, TopicPartition
from stream_peer.kafka.worker.state_writer import BETWEEN_SLICES, StateWriter
from stream_peer.log.changelog import ChangelogReader, ChangelogRow, Writer, token_row
from stream_peer.log.stage import LogRecord, Snapshot
from tests.unit.kafka.worker.fakes import FakeEvent, FakeProducer, FakeSource, SumStage, eventually, surroundings

STATE = {b"k/%d" % number: b"x" for number in range(3)}


class Slow(FakeProducer):
    """Acknowledges an append when it is permitted to."""

    def __init__(self, permits: int = 1_000) -> None:
        super().__init__()
        self.permits = asyncio.Semaphore(permits)
        self.appends: list[int] = []
        self.changelog.append(token_row(3, "me"))

    async def append(self, topic: str, partition: int, rows: Sequence[ChangelogRow], timestamp: int) -> list[Appended]:
        self.appends.append(len(rows))
        await self.permits.acquire()
        return await super().append(topic, partition, rows, timestamp)

    def stored(self) -> ChangelogReader:
        fold = ChangelogReader()
        for offset, row in enumerate(self.changelog):
            fold.add(offset, *row)
        return fold


def writer_to(producer: Slow) -> StateWriter:
    return StateWriter("changelog", Writer(producer.stored(), 3, "me", 1))


@pytest.mark.parametrize(("limit", "appends"), [(1, [1, 1, 1, 1]), (2, [2, 1, 1]), (3, [3, 1])])
async def test_no_more_rows_are_under_way_than_a_slice_holds(
    limit: int, appends: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.state_writer._SLICE_BYTES", limit)
    monkeypatch.setattr("stream_peer.kafka.worker.state_writer._SLICE_SECONDS", 3600.0)
    monkeypatch.setattr("stream_peer.kafka.worker.state_writer._size", len)
    producer = Slow()
    around, _ = surroundings(producer)

    written = await writer_to(producer).write(3, Snapshot(STATE, b"head"), 5, around, lambda: None)

    assert producer.appends == appends
    assert written.rows == 4
    assert producer.stored().recovered() == (5, b"head", STATE)


async def test_the_moments_between_slices_are_told_and_tests_may_break_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.state_writer._SLICE_BYTES", 1)
    producer, seen, told = Slow(), list[str](), list[int]()
    around, _ = surroundings(producer, fault=seen.append)

    await writer_to(producer).write(3, Snapshot(STATE, b"head"), 5, around, lambda: told.append(1))

    assert len(told) == seen.count(BETWEEN_SLICES) == 2


async def test_a_large_snapshot_given_up_between_slices_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.state_writer._SLICE_BYTES", 1)
    producer, source = Slow(4), FakeSource()
    around, _ = surroundings(producer)
    place = ("question", TopicPartition("forecast-events", 3))
    partition = OwnedPartition(
        place, SumStage(), StartPosition(-1, 0), writer_to(producer), source, around, lambda: True
    )
    partition.start()
    first = FakeEvent([LogRecord(number, 0, b"%d" % number, b"") for number in range(3)])
    await partition.put(first)
    await partition.rest()
    second = FakeEvent([LogRecord(number, 0, b"%d" % (number - 3), b"") for number in range(3, 6)])

    await partition.put(second)
    partition.give_up_snapshot()
    await eventually(lambda: len(producer.appends) == 5)
    before = partition.progress_token
    producer.permits.release()
    await eventually(lambda: len(producer.appends) == 6)
    after = partition.progress_token
    partition.give_up_snapshot()
    await partition.rest()
    partition.stop()

    assert first.acked
    assert after != before
    assert source.forgotten == [second]
    assert producer.stored().recovered() == (2, b"head", {b"k/%d" % number: b"1" for number in range(3)})

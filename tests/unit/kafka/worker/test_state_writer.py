"""Snapshots as they go to a changelog: in slices, the head last, and worth nothing without it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from stream_peer.errors import ForeignWriterError
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import Appended, TopicPartition
from stream_peer.kafka.worker.state_writer import BETWEEN_SLICES, StateWriter
from stream_peer.log.changelog import ChangelogReader, ChangelogRow, StateRecord, Writer, token_row
from stream_peer.log.stage import LogRecord, Snapshot
from tests.unit.kafka.worker.fakes import (
    FakeEvent,
    FakeLogs,
    FakeProducer,
    FakeReading,
    FakeSource,
    SumStage,
    eventually,
    surroundings,
)

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


class Interrupted(Slow):
    """Before each append rows of others may come; and its changelog can be read."""

    def __init__(self, *late: Sequence[ChangelogRow]) -> None:
        super().__init__()
        self.late = list(late)

    async def append(self, topic: str, partition: int, rows: Sequence[ChangelogRow], timestamp: int) -> list[Appended]:
        self.changelog += self.late.pop(0) if self.late else ()
        return await super().append(topic, partition, rows, timestamp)

    @contextlib.asynccontextmanager
    async def reading(self, tp: TopicPartition, up_to: int | None, first: int = 0) -> AsyncIterator[FakeReading]:
        records = [LogRecord(offset, 0, *row) for offset, row in enumerate(self.changelog)]
        async with FakeLogs(records).reading(tp, up_to, first) as reading:
            yield reading

    async def write(self, writer: StateWriter) -> None:
        around, _ = surroundings(self)
        await writer.write(3, Snapshot(STATE, b"head"), 5, around._replace(logs=self), lambda: None)


TOKEN = token_row(3, "former")
ROW = ChangelogRow(b"3/k/1", msgspec.msgpack.encode(StateRecord("former", 2, b"y")))


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


@pytest.mark.parametrize("late", [[[ROW]], [[], [ROW]], [[TOKEN]], [[], [TOKEN]], [[ROW, TOKEN, ROW], [ROW], [ROW]]])
async def test_what_a_former_owner_sent_and_comes_late_does_not_count_and_is_outlived(
    late: list[list[ChangelogRow]],
) -> None:
    producer = Interrupted(*late)
    writer = writer_to(producer)

    await producer.write(writer)
    while writer.rows.must_rewrite:
        await producer.write(writer)

    last = {row.key: offset for offset, row in enumerate(producer.changelog)}
    compacted = ChangelogReader()
    for offset, row in enumerate(producer.changelog):
        if last[row.key] == offset:
            compacted.add(offset, *row)
    assert producer.stored().recovered() == compacted.recovered() == (5, b"head", STATE)


async def test_a_second_late_token_ends_the_owner_since_another_one_is_alive() -> None:
    producer = Interrupted([TOKEN], [TOKEN], [TOKEN])

    with pytest.raises(ForeignWriterError, match="another writer is at work"):
        await producer.write(writer_to(producer))


async def test_of_late_records_an_owner_keeps_each_key_once(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Interrupted()
    around, _ = surroundings(producer)
    writer, kept = writer_to(producer), list[bytes]()
    monkeypatch.setattr(writer.rows, "passed", lambda keys, _end: kept.extend(keys))
    producer.changelog += [ROW] * 5

    await writer.look_behind(3, len(producer.changelog), around._replace(logs=producer))

    assert kept == [ROW.key]


async def test_an_idle_owner_looks_for_what_came_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.partition.LOOK_SECONDS", 0.0)
    producer, source = Interrupted(), FakeSource()
    around, _ = surroundings(producer)
    around = around._replace(logs=producer)
    writer = writer_to(producer)
    await writer.write(3, Snapshot(STATE, b"head"), 5, around, lambda: None)
    producer.changelog.append(ROW)
    source.end = len(producer.changelog)

    place = ("question", TopicPartition("forecast-events", 3))
    partition = OwnedPartition(place, SumStage(), StartPosition(5, 6), writer, source, around, lambda: False)
    partition.start()
    await partition.put(FakeEvent([LogRecord(6, 0, b"9", b"")]))
    await eventually(lambda: [row.key for row in producer.changelog[-2:]] == [b"3/k/1", b"3/head"])
    partition.stop()

    assert producer.stored().recovered().entries == {**STATE, b"k/9": b"1"}


async def test_no_second_look_begins_while_one_waits_for_brokers_and_it_ends_with_the_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.partition.LOOK_SECONDS", 0.0)
    producer, source, stage = Slow(), FakeSource(), SumStage()
    around, errors = surroundings(producer)
    place = ("question", TopicPartition("forecast-events", 3))
    partition = OwnedPartition(place, stage, StartPosition(-1, 0), writer_to(producer), source, around, lambda: False)
    source.answers.clear()

    partition.start()
    for offset in range(3):
        await partition.put(FakeEvent([LogRecord(offset, 0, b"a", b"")]))
        await eventually(lambda: stage.offsets[-1:] == [partition.want - 1] and not partition._busy)
    looks = source.looks
    partition.stop()
    await eventually(lambda: not source.looks)

    assert looks == 1
    assert errors == []

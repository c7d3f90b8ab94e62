"""One owned partition with fakes for Kafka and Faust: the order of reads and the order of writes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from stream_peer.errors import ForeignWriterError, UnsignedStateError
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.state_writer import BETWEEN_ENTRIES_AND_HEAD, StateWriter
from stream_peer.log.changelog import ChangelogReader, ChangelogRow, StateRecord, Writer, token_row
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Effects, LogRecord, Record
from stream_peer.settings.process import SnapshotEvery
from tests.unit.kafka.worker.fakes import (
    LONG,
    MARKER,
    FakeEvent,
    FakeLogs,
    FakeProducer,
    FakeSource,
    RebuildingStage,
    SumStage,
    Telling,
    UnsignedStage,
    eventually,
    no_fault,
    records,
    surroundings,
)

FROM_THE_START = StartPosition(-1, 0)


class Bench:
    """A partition and everything around it."""

    def __init__(
        self,
        *,
        begin: StartPosition = FROM_THE_START,
        every: SnapshotEvery | None = None,
        state: bool = True,
        fault: Callable[[str], None] = no_fault,
        observer: Any = None,
        logs: FakeLogs | None = None,
    ) -> None:
        self.producer, self.source, self.stage = FakeProducer(), FakeSource(), RebuildingStage()
        around, self.errors = surroundings(
            self.producer, fault=fault, every=every or LONG, observer=observer, logs=logs
        )
        fold = ChangelogReader()
        self.producer.changelog.append(token_row(3, "me"))
        fold.add(0, *token_row(3, "me"))
        self.writer = Writer(fold, 3, "me", 1)
        writer = StateWriter("changelog", self.writer) if state else None
        self.draining = False
        place = ("question", TopicPartition("forecast-events", 3))
        self.partition = OwnedPartition(place, self.stage, begin, writer, self.source, around, lambda: self.draining)
        self.partition.start()

    def event(self, first: int, last: int) -> FakeEvent:
        return FakeEvent(records(first, last), self.producer.written)

    async def put(self, first: int, last: int) -> FakeEvent:
        event = self.event(first, last)
        await self.partition.put(event)
        return event


@pytest.fixture
async def bench() -> AsyncIterator[Callable[..., Bench]]:
    """Make benches whose partitions are stopped at the end."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(**options))
        return made[-1]

    yield make
    for each in made:
        each.partition.stop()


async def test_outputs_come_before_entries_before_the_head_before_the_acknowledgement(
    bench: Callable[..., Bench],
) -> None:
    here = bench()

    await here.put(0, 1)
    await here.partition.rest()

    assert here.producer.written == [
        ("output", b"a"),
        ("output", b"a"),
        ("row", b"3/k/a"),
        ("row", b"3/head"),
        ("ack", 1),
    ]


async def test_each_acknowledged_write_moves_the_marker_that_the_watchdog_looks_at(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = bench()
    before: list[object] = []

    async def note() -> None:
        before.append(here.partition.progress_token)

    monkeypatch.setattr(here.producer.gate, "wait", note)
    await here.put(0, 1)
    await here.partition.rest()

    outputs, entries, head = before
    assert len({outputs, entries, head, here.partition.progress_token}) == 4


async def test_the_first_batch_after_recovery_is_snapshotted_at_once_and_later_ones_when_due(
    bench: Callable[..., Bench],
) -> None:
    here = bench()

    first = await here.put(0, 1)
    await eventually(lambda: first.acked)
    second = await here.put(2, 3)
    await eventually(lambda: here.stage.offsets == [0, 1, 2, 3] and not here.partition._busy)

    assert not second.acked


@pytest.mark.parametrize("every", [SnapshotEvery(seconds=3600, records=2), SnapshotEvery(seconds=0.001)])
async def test_a_snapshot_is_due_by_records_or_by_time(bench: Callable[..., Bench], every: SnapshotEvery) -> None:
    here = bench(every=every)
    await here.put(0, 0)

    later = await here.put(1, 2)

    await eventually(lambda: later.acked)


class Sizes(Observer):
    """An observer that remembers how large states were."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int, int]] = []

    def stored(self, stage_name: str, partition: int, records: int, bytes_: int) -> None:
        self.told.append((stage_name, partition, records, bytes_))


async def test_the_size_of_the_state_is_told_when_it_is_taken_over_and_with_every_snapshot(
    bench: Callable[..., Bench],
) -> None:
    sizes = Sizes()
    here = bench(observer=sizes)

    await here.put(0, 1)
    await here.partition.rest()

    assert sizes.told == [("question", 3, 0, 0), ("question", 3, 2, len(b"2") + len(b"head"))]


async def test_a_long_message_is_snapshotted_on_its_way_and_acknowledged_at_its_end(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_peer.log.driver._MOST_OUTPUTS", 0)
    monkeypatch.setattr("stream_peer.log.driver._STRIDE", 1)
    here = bench(every=SnapshotEvery(seconds=3600, records=1))

    await here.put(0, 4)
    await here.partition.rest()

    heads = [index for index, (_, what) in enumerate(here.producer.written) if what == b"3/head"]
    assert len(heads) > 1
    assert here.producer.written[-1] == ("ack", 4)


async def test_what_is_left_is_not_folded_and_comes_again(bench: Callable[..., Bench]) -> None:
    here = bench()
    await here.put(0, 1)
    await here.partition.rest()
    here.producer.gate.clear()
    await here.put(2, 3)
    await eventually(lambda: here.stage.offsets[-1] == 3)
    left = await here.put(4, 6)

    here.draining = True
    here.partition.leave_rest()
    here.producer.gate.set()
    await here.partition.rest()

    assert here.source.forgotten == [left.message]
    assert here.stage.offsets == [0, 1, 2, 3]
    assert here.partition.want == here.partition.reached == 4


async def test_while_draining_every_batch_is_followed_by_a_snapshot(bench: Callable[..., Bench]) -> None:
    here = bench()
    first = await here.put(0, 1)
    await eventually(lambda: first.acked)
    here.draining = True

    later = await here.put(2, 3)

    await eventually(lambda: later.acked)


async def test_what_arrives_while_a_batch_waits_for_acknowledgement_is_folded_as_one(
    bench: Callable[..., Bench],
) -> None:
    here = bench(every=SnapshotEvery(seconds=3600, records=5))
    first = await here.put(0, 0)
    await eventually(lambda: first.acked)
    here.producer.gate.clear()
    await here.put(1, 1)
    await eventually(lambda: here.stage.offsets[-1] == 1)
    gathered = [await here.put(2, 2), await here.put(3, 5)]
    here.producer.written.clear()

    here.producer.gate.set()
    await eventually(lambda: all(event.acked for event in gathered))

    assert [kind for kind, _ in here.producer.written] == ["output"] * 5 + ["row"] * 2 + ["ack"] * 3


async def test_records_read_again_are_forgotten_and_overlaps_are_cut(bench: Callable[..., Bench]) -> None:
    here = bench(begin=StartPosition(9, 10))

    known = await here.put(5, 9)
    await here.put(8, 12)
    await here.partition.rest()

    assert here.source.forgotten == [known]
    assert here.stage.offsets == [10, 11, 12]


async def test_a_batch_above_what_is_wanted_is_refused_until_it_is_proven_that_nothing_lies_between(
    bench: Callable[..., Bench],
) -> None:
    here = bench()
    await here.put(0, 4)

    refused = await here.put(7, 8)
    here.source.proofs.add((5, 7))
    await here.put(7, 8)
    await here.partition.rest()

    assert here.source.forgotten == [refused]
    assert refused not in here.source.accepted
    assert here.source.asked == [5, 5]
    assert here.stage.offsets == [0, 1, 2, 3, 4, 7, 8]


async def test_a_log_that_begins_behind_what_is_wanted_is_reported_as_lost_input() -> None:
    told = Telling()
    source, producer = FakeSource(start=20), FakeProducer()
    source.proofs.add((10, 20))
    around, _ = surroundings(producer, observer=told)
    place = ("question", TopicPartition("forecast-events", 3))
    partition = OwnedPartition(place, SumStage(), StartPosition(9, 10), None, source, around, lambda: False)
    partition.start()

    await partition.put(FakeEvent(records(20, 21)))
    await eventually(lambda: told.lost)
    partition.stop()

    assert told.lost == [10]


async def test_input_that_went_while_nobody_read_is_reported_at_the_assignment_and_covered_at_once(
    bench: Callable[..., Bench],
) -> None:
    told = Telling()

    here = bench(begin=StartPosition(9, 10, first=17), observer=told)
    covered = here.partition.covered
    await eventually(lambda: here.producer.written)
    here.draining = True
    await here.put(17, 18)
    await here.partition.rest()

    assert (told.lost, here.stage.lost_records) == ([7], [7])
    assert (covered, here.producer.written[0]) == (17, ("row", b"3/head"))
    assert (here.stage.offsets, here.source.asked) == ([17, 18], [])


async def test_input_that_went_from_an_idle_partition_is_reported_without_a_record_behind_it(
    bench: Callable[..., Bench],
) -> None:
    told = Telling()
    here = bench(begin=StartPosition(9, 10), observer=told)
    here.source.start = 17

    for _ in range(3):
        here.partition.pass_over(17)
    await eventually(lambda: here.partition.covered == 17)

    assert (told.lost, here.stage.lost_records) == ([7], [7])
    assert (here.partition.want, here.partition.reached) == (17, 17)


async def test_a_partition_without_a_state_reports_what_goes_after_it_was_assigned_and_not_what_went_before(
    bench: Callable[..., Bench],
) -> None:
    told = Telling()
    here = bench(begin=StartPosition(-1, 0, first=4), observer=told)
    here.source.start = 6

    here.partition.pass_over(6)
    await eventually(lambda: here.partition.covered == 6)

    assert told.lost == [2]


async def test_the_end_of_a_transaction_is_no_lost_input(bench: Callable[..., Bench]) -> None:
    told = Telling()
    here = bench(begin=StartPosition(9, 10), observer=told)
    here.source.start = 10

    here.partition.pass_over(11)
    here.source.proofs.add((10, 11))
    await here.put(11, 11)
    await here.partition.rest()

    assert (told.lost, here.stage.offsets) == ([], [11])


async def test_finding_out_about_a_hole_keeps_nobody_waiting(bench: Callable[..., Bench]) -> None:
    here = bench(begin=StartPosition(9, 10))
    here.source.proofs.add((10, 12))
    here.source.answers.clear()

    event = await here.put(12, 13)
    await eventually(lambda: event.acked)

    assert here.stage.offsets == [12, 13]


async def test_a_partition_without_state_begins_where_it_is_told_and_acknowledges_after_its_outputs(
    bench: Callable[..., Bench],
) -> None:
    here = bench(state=False, begin=StartPosition(-1, 40))

    await here.put(40, 40)
    await here.partition.rest()

    assert here.producer.written == [("output", b"a"), ("ack", 40)]


async def test_a_second_later_fencing_token_in_the_changelog_ends_the_process_without_acknowledging(
    bench: Callable[..., Bench],
) -> None:
    here = bench(logs=FakeLogs([LogRecord(1, 0, *token_row(3, "other"))]))
    here.writer.fence_again("me", 0)
    here.producer.foreign = 1

    event = await here.put(0, 1)
    await eventually(lambda: here.errors)

    assert isinstance(here.errors[0], ForeignWriterError)
    assert not event.acked


async def test_a_record_of_a_former_owner_that_comes_late_is_passed_and_its_key_written_again_at_once(
    bench: Callable[..., Bench],
) -> None:
    late = ChangelogRow(b"3/k/b", msgspec.msgpack.encode(StateRecord("former", 7, b"1")))
    here = bench(logs=FakeLogs([LogRecord(1, 0, *late)]))
    here.producer.foreign = 1

    event = await here.put(0, 1)
    await eventually(lambda: ("row", b"3/k/b") in here.producer.written)
    await here.partition.rest()

    assert not here.errors
    assert event.acked
    assert here.producer.written[-2:] == [("row", b"3/k/b"), ("row", b"3/head")]


async def test_the_fault_point_lies_between_entries_and_head(bench: Callable[..., Bench]) -> None:
    seen: list[tuple[str, list[bytes]]] = []
    here: Bench

    def fault(place: str) -> None:
        seen.append((place, [row.key for row in here.producer.changelog]))

    here = bench(fault=fault)

    await here.put(0, 0)
    await here.partition.rest()

    assert seen == [(BETWEEN_ENTRIES_AND_HEAD, [b"3/claim/me", b"3/k/a"])]


async def test_a_changed_feed_is_published_when_due_and_before_every_head(bench: Callable[..., Bench]) -> None:
    here = bench(every=SnapshotEvery(seconds=3600, records=2))
    first = await here.put(0, 0)
    await eventually(lambda: first.acked)
    here.producer.written.clear()

    here.stage.changed = {"econ": 1_000}
    await here.put(1, 1)
    await eventually(lambda: ("output", b"econ") in here.producer.written)
    here.stage.changed = {"econ": 3_600_000}
    last = await here.put(2, 2)
    await eventually(lambda: last.acked)

    assert here.producer.written == [
        ("output", b"a"),
        ("output", b"econ"),
        ("output", b"a"),
        ("output", b"econ"),
        ("row", b"3/k/a"),
        ("row", b"3/head"),
        ("ack", 1),
        ("ack", 2),
    ]


async def test_a_stopped_partition_acknowledges_nothing_more_and_keeps_nobody_waiting(
    bench: Callable[..., Bench],
) -> None:
    here = bench()
    here.producer.gate.clear()
    event = await here.put(0, 1)
    await eventually(lambda: here.stage.offsets == [0, 1])

    here.partition.stop()
    here.producer.gate.set()
    await here.partition.rest()

    assert not event.acked


class NotingStage(SumStage):
    """Notes each step."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__()
        self.notes = notes

    def step(self, record: Record, effects: Effects) -> None:
        self.notes.append("step")
        super().step(record, effects)


async def test_everything_else_gets_a_turn_between_two_busy_partitions() -> None:
    notes: list[str] = []
    around, _ = surroundings(FakeProducer())
    partitions = [
        OwnedPartition(
            ("question", TopicPartition("forecast-events", number)),
            NotingStage(notes),
            FROM_THE_START,
            None,
            FakeSource(),
            around,
            lambda: False,
        )
        for number in range(3)
    ]
    for partition in partitions:
        partition.start()
        await partition.put(FakeEvent(records(0, 0)))
    while notes.count("step") < 3:
        notes.append("turn")
        await asyncio.sleep(0)
    for partition in partitions:
        partition.stop()

    between = "".join(note[0] for note in notes).strip("t").split("s")
    assert all(between[1:-1])


async def owning_unsigned(log: list[Record], *, applied: int) -> tuple[OwnedPartition, list[BaseException]]:
    """A partition whose state is from before signatures, once it has looked at its log."""
    logs = FakeLogs(log)
    around, errors = surroundings(FakeProducer(), logs=logs)
    place = ("question", TopicPartition("forecast-events", 3))
    begin = StartPosition(applied, applied + 1)
    partition = OwnedPartition(place, UnsignedStage(), begin, None, FakeSource(), around, lambda: False)
    partition.start()
    await eventually(lambda: errors or not partition.counting)
    partition.stop()
    assert logs.closed == 1
    return partition, errors


async def test_a_state_from_before_signatures_is_refused_and_the_way_back_is_named() -> None:
    before = [*records(0, 4, key=MARKER), *records(5, 9)]

    _, (error,) = await owning_unsigned([*before], applied=4)

    assert isinstance(error, UnsignedStateError)
    assert error.exit_code == 78
    assert "stream-peer repair 3" in str(error)


async def test_a_state_from_before_signatures_goes_on_if_a_marker_lies_ahead() -> None:
    partition, errors = await owning_unsigned([*records(0, 8), *records(9, 9, key=MARKER)], applied=4)

    assert errors == []
    assert partition.want == 5

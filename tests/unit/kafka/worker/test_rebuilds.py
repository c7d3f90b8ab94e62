"""A partition that folds its log anew: what waits for it, what does not, and what remains if it is cut short."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.worker.inbox import Inbox
from stream_peer.kafka.worker.long_work import RebuildProgress
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.process import SystemRuntime
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.log.changelog import ChangelogReader, Writer, token_row
from stream_peer.log.stage import Blank, LogRecord, Output, Snapshot
from stream_peer.settings.process import SnapshotEvery
from tests.feed_histories import log_of, round_of, settings
from tests.unit.kafka.worker.fakes import (
    MEANING,
    FakeEvent,
    FakeLogs,
    FakeProducer,
    FakeSource,
    RebuildingStage,
    Telling,
    eventually,
    records,
    surroundings,
)

HERE = TopicPartition("feed-log", 3)
FROM_THE_START = StartPosition(-1, 0)


def change(offset: int) -> LogRecord:
    return LogRecord(offset, 1_000 + offset, MEANING, b"{}")


def log_with_change(at: int, length: int) -> list[LogRecord]:
    return [change(offset) if offset == at else records(offset, offset)[0] for offset in range(length)]


class Bench:
    """A partition of a log of nine records, of which number 4 changes the meaning of all."""

    def __init__(self, *, begin: StartPosition = FROM_THE_START) -> None:
        self.log = log_with_change(4, 9)
        self.producer, self.source, self.stage = FakeProducer(), FakeSource(), RebuildingStage()
        self.logs, self.observer = FakeLogs(self.log), Telling()
        every = SnapshotEvery(seconds=3600.0, records=1)
        self.around, self.errors = surroundings(self.producer, every=every, observer=self.observer, logs=self.logs)
        self.fold = ChangelogReader()
        self.producer.changelog.append(token_row(3, "me"))
        self.fold.add(0, *token_row(3, "me"))
        self.draining = False
        writer = StateWriter("changelog", Writer(self.fold, 3, "me", 1))
        self.partition = OwnedPartition(
            ("feed", HERE), self.stage, begin, writer, self.source, self.around, lambda: self.draining
        )

    async def put(self, first: int, last: int) -> FakeEvent:
        event = FakeEvent(self.log[first : last + 1], self.producer.written)
        await self.partition.put(event)
        return event

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.producer.written]

    def stored(self) -> ChangelogReader:
        fold = ChangelogReader()
        for offset, row in enumerate(self.producer.changelog):
            fold.add(offset, *row)
        return fold


@pytest.fixture
async def bench() -> AsyncIterator[Callable[..., Bench]]:
    """Make benches whose partitions are stopped at the end."""
    made: list[Bench] = []

    def make(*, start: bool = True, **options: Any) -> Bench:
        made.append(Bench(**options))
        if start:
            made[-1].partition.start()
        return made[-1]

    yield make
    for each in made:
        each.partition.stop()
        assert each.errors == []


async def test_stepping_stops_after_the_record_that_changes_meaning_and_goes_on_when_the_log_was_folded_anew(
    bench: Callable[..., Bench],
) -> None:
    here = bench()
    here.logs.gate.clear()

    event = await here.put(0, 8)
    await eventually(lambda: here.logs.opened)
    stepped, written = list(here.stage.offsets), here.kinds()
    here.logs.gate.set()
    await here.partition.rest()

    assert stepped == [0, 1, 2, 3, 4]
    assert written == ["output"] * 5
    assert here.stage.offsets == list(range(9))
    assert [blank.offsets for blank in here.stage.rebuilds] == [[0, 1, 2, 3, 4]]
    assert here.stage.counts == {b"a": 4 * 2 + 4, MEANING: 2}
    assert event.acked


async def test_a_rebuild_tells_its_progress_and_ends_with_what_is_newest_and_a_snapshot(
    bench: Callable[..., Bench],
) -> None:
    here = bench()

    await here.put(0, 4)
    await here.partition.rest()

    assert here.observer.rebuilds == [(0, 5), (2, 5), (4, 5), (5, 5)]
    assert here.observer.ended == 1
    assert here.producer.written[5:] == [
        ("output", b"econ"),
        ("row", b"3/k/a"),
        ("row", b"3/k/" + MEANING),
        ("row", b"3/head"),
        ("ack", 4),
    ]
    assert here.logs.closed == 1


async def test_corrections_of_a_rebuild_are_written_some_at_a_time_before_feeds_are_published(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.partition._SLICE_OUTPUTS", 2)
    here = bench()
    here.stage.corrections = [Output("peer-losses", b"q%d" % number, b"", 0) for number in range(5)]

    await here.put(0, 4)
    await here.partition.rest()

    keys = [key for kind, key in here.producer.written if kind == "output"]
    assert keys[5:] == [b"q0", b"q1", b"q2", b"q3", b"q4", b"econ"]


async def test_while_it_lasts_nothing_is_acknowledged_and_the_partition_says_how_far_it_is(
    bench: Callable[..., Bench],
) -> None:
    here = bench()
    here.logs.gate.clear()
    event = await here.put(0, 8)

    await eventually(lambda: here.partition.rebuilding == RebuildProgress(0, 5))

    assert not event.acked
    assert not here.partition.idle
    assert here.partition.reached == 5
    assert here.partition.covered == 0
    assert here.stored().applied == -1


async def test_what_the_stage_asks_for_after_loading_comes_before_any_record(bench: Callable[..., Bench]) -> None:
    here = bench(begin=StartPosition(6, 7), start=False)
    here.stage.needs_rebuild = True

    here.partition.start()
    event = await here.put(7, 8)
    await here.partition.rest()

    assert [blank.offsets[-1] for blank in here.stage.rebuilds] == [6]
    assert here.stage.counts == {b"a": 6 + 2, MEANING: 1}
    assert event.acked


async def test_everybody_else_gets_turns_while_the_stage_says_what_is_to_be_stored(
    bench: Callable[..., Bench],
) -> None:
    here = bench()
    turned = threading.Event()
    snapshot = here.stage.snapshot

    def slow() -> Snapshot:
        assert turned.wait(5), "the event loop stood still"
        return snapshot()

    here.stage.snapshot = slow  # type: ignore[method-assign]  # a stage with a large state
    await here.put(0, 4)
    await eventually(lambda: here.observer.ended)
    asyncio.get_running_loop().call_later(0, turned.set)
    await here.partition.rest()

    assert here.stored().applied == 4


async def test_state_folded_anew_is_not_stored_under_an_offset_that_the_head_covers_already(
    bench: Callable[..., Bench],
) -> None:
    """Cut short, part of it would be taken for the whole."""
    here = bench(begin=StartPosition(6, 7), start=False)
    here.stage.needs_rebuild = True

    here.partition.start()
    await here.partition.rest()
    before = here.kinds()
    here.draining = True
    await here.put(7, 7)
    await here.partition.rest()

    assert before == ["output"]
    assert here.stored().applied == 7
    assert here.kinds().count("row") == 3


async def test_batches_without_room_are_read_again_later_and_keep_nobody_waiting(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.inbox.ROOM", 1)
    here = bench()
    here.logs.gate.clear()
    await here.put(0, 4)
    await eventually(lambda: here.logs.opened)

    kept = await here.put(5, 6)
    passed = [await here.put(7, 7), await here.put(8, 8)]
    asked_meanwhile = list(here.source.asked)
    here.logs.gate.set()
    await here.partition.rest()

    assert here.source.forgotten == passed
    assert asked_meanwhile == []
    assert here.source.again == [7]
    assert here.partition.want == 7
    assert kept.acked


async def test_who_waits_for_room_when_a_rebuild_begins_waits_no_longer(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.inbox.ROOM", 2)
    here = bench()
    here.logs.gate.clear()

    await asyncio.wait_for(here.put(0, 8), 5)

    assert here.stage.offsets == [0, 1, 2, 3, 4]


async def test_behind_a_batch_that_waits_no_longer_the_next_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.inbox.ROOM", 1)
    inbox = Inbox(HERE, 0, FakeSource(), lambda _: None)
    with inbox.paused():
        await inbox.put(FakeEvent(records(0, 2), []))

    behind = asyncio.ensure_future(inbox.put(FakeEvent(records(3, 3), [])))
    await asyncio.sleep(0)
    wanted = inbox.want
    inbox.take()
    inbox.folded(3)
    await behind

    assert (wanted, inbox.want) == (3, 4)


async def test_told_to_stop_it_gives_up_at_once_and_nothing_of_it_is_stored(bench: Callable[..., Bench]) -> None:
    here = bench()
    first = await here.put(0, 2)
    await eventually(lambda: first.acked)
    here.logs.gate.clear()
    held = await here.put(3, 4)
    waiting = await here.put(5, 8)
    await eventually(lambda: here.logs.opened)

    here.draining = True
    here.partition.give_up_rebuild()
    await here.partition.rest()
    await eventually(lambda: here.logs.closed)

    assert here.stored().applied == 2
    assert here.partition.covered == 3
    assert sorted(event.offset for event in here.source.forgotten) == [4, 8]
    assert not held.acked
    assert not waiting.acked


async def test_a_rebuild_that_becomes_due_while_faust_waits_for_work_to_end_is_left_to_the_next_owner(
    bench: Callable[..., Bench],
) -> None:
    here = bench()
    here.draining = True

    event = await here.put(0, 8)
    await here.partition.rest()

    assert here.logs.opened == 0
    assert here.source.forgotten == [event]
    assert here.stored().applied == -1


async def test_a_stopped_partition_takes_no_batch(bench: Callable[..., Bench]) -> None:
    here = bench()
    here.partition.stop()

    event = await here.put(0, 8)

    assert here.source.forgotten == [event]
    assert here.source.accepted == []


async def test_a_log_without_its_start_is_folded_as_far_as_it_is_there_and_the_rest_is_reported(
    bench: Callable[..., Bench],
) -> None:
    here = bench(begin=StartPosition(3, 4))
    del here.logs.log[:2]

    await here.put(4, 4)
    await here.partition.rest()

    assert here.stage.counts == {b"a": 4, MEANING: 2}
    assert here.stage.lost_records == [2]
    assert here.observer.lost == [2]
    assert here.observer.rebuilds[-1] == (3, 3)


async def test_one_log_is_folded_anew_at_a_time(bench: Callable[..., Bench]) -> None:
    first, second = bench(), bench()
    second.partition._context = second.around._replace(rebuilds=first.around.rebuilds)
    first.logs.gate.clear()
    await first.put(0, 8)
    await eventually(lambda: first.logs.opened == 1)

    await second.put(0, 8)
    await eventually(lambda: second.stage.needs_rebuild)
    waiting = second.partition.rebuilding
    first.logs.gate.set()
    await second.partition.rest()

    assert waiting == RebuildProgress(0, 0)
    assert [blank.offsets[-1] for blank in second.stage.rebuilds] == [4]


async def test_work_on_it_moves_the_marker_that_the_watchdog_looks_at(bench: Callable[..., Bench]) -> None:
    here = bench()
    here.logs.gate.clear()
    await here.put(0, 8)
    await eventually(lambda: here.partition.rebuilding == RebuildProgress(0, 5))
    before = here.partition.progress_token

    still = here.partition.progress_token
    here.logs.gate.set()
    await eventually(lambda: here.observer.rebuilds[-1] != (0, 5))

    assert still == before
    assert here.partition.progress_token != before


async def test_everybody_else_gets_a_turn_between_two_slices(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.long_work._REBUILD_SLICE_SECONDS", 0.0)
    here = bench()
    turns = 0

    await here.put(0, 8)
    while here.observer.ended == 0:
        turns += 1
        await asyncio.sleep(0)

    assert here.observer.rebuilds == [(done, 5) for done in range(6)]
    assert turns >= 5


async def test_records_lost_by_retention_are_told_to_the_stage() -> None:
    stage, source, observer = RebuildingStage(), FakeSource(start=20), Telling()
    source.proofs.add((10, 20))
    around, _ = surroundings(FakeProducer(), observer=observer)
    partition = OwnedPartition(("feed", HERE), stage, StartPosition(9, 10), None, source, around, lambda: False)
    partition.start()

    await partition.put(FakeEvent(records(20, 21)))
    await eventually(lambda: stage.lost_records)
    partition.stop()

    assert stage.lost_records == [10]
    assert observer.lost == [10]


async def test_what_loading_left_to_be_counted_comes_before_the_first_record_and_before_the_stage_is_shown(
    bench: Callable[..., Bench],
) -> None:
    here = bench(start=False)
    seen: list[str] = []

    def pieces() -> Iterator[None]:
        for _ in range(3):
            seen.append("piece")
            yield

    here.stage.recount = pieces  # type: ignore[method-assign]  # a stage that loaded much
    here.observer.owned = lambda *_: seen.append("owned")  # type: ignore[method-assign]  # to be told when
    here.partition.start()
    before = here.partition.counting, here.partition.idle

    await here.put(0, 3)
    await here.partition.rest()

    assert before == (True, False)
    assert seen == ["piece"] * 3 + ["owned"]
    assert not here.partition.counting
    assert here.stage.offsets == [0, 1, 2, 3]


async def test_a_partition_that_is_taken_away_while_it_counts_gives_up(bench: Callable[..., Bench]) -> None:
    here = bench(start=False)

    def endless() -> Iterator[None]:
        while True:
            yield

    here.stage.recount = endless  # type: ignore[method-assign]  # a stage that loaded too much
    here.partition.start()
    event = await here.put(0, 3)

    here.partition.give_up_rebuild()
    await here.partition.rest()

    assert here.source.forgotten == [event]
    assert here.stage.offsets == []


async def test_while_a_feed_is_rebuilt_others_of_its_partition_are_published_and_its_own_records_wait() -> None:
    forecasts = {"ann": 0.9, "bob": 0.7, "cyd": 0.2}
    archive = [round_of(f"old-{number}", forecasts, feed="large") for number in range(6)]
    live = [round_of("of-large", forecasts, feed="large"), round_of("of-small", forecasts, feed="small")]
    log = log_of([*archive, settings({"feeds": {"large": {"loss": "log"}}}), *live, settings({}), live[1]])
    producer, logs, observer = FakeProducer(), FakeLogs(log), Telling()
    logs.gate.clear()
    around, errors = surroundings(producer, observer=observer, logs=logs)
    stage = FeedStage(topic="feed-log", partition=3, secret=b"secret")
    partition = OwnedPartition(("feed", HERE), stage, FROM_THE_START, None, FakeSource(), around, lambda: False)
    partition.start()

    event = FakeEvent(log, producer.written)
    await partition.put(event)
    await eventually(lambda: ("output", b"of-small") in producer.written)
    meanwhile = list(producer.written)
    logs.gate.set()
    await partition.rest()
    partition.stop()

    assert observer.rebuilds[0] == (0, 7)
    assert ("output", b"small") in meanwhile
    assert ("output", b"of-large") not in meanwhile
    assert ("ack", len(log) - 1) not in meanwhile
    assert ("output", b"of-large") in producer.written
    assert observer.ended == 2  # the second settings, which wait for the first rebuild, call for another one
    assert event.acked
    assert errors == []


async def test_a_rebuild_leaves_three_quarters_of_the_time_to_others_that_are_busy(bench: Callable[..., Bench]) -> None:
    here, seconds, turns = bench(start=False), 0.0, 0
    runtime = SystemRuntime()
    runtime.now = lambda: seconds  # time passes where somebody works
    here.partition._context = here.around._replace(runtime=runtime)
    here.partition.start()

    async def be_busy() -> None:
        nonlocal seconds, turns
        while here.observer.ended == 0:
            seconds, turns = seconds + 0.001, turns + bool(here.observer.rebuilds)
            await asyncio.sleep(0)

    def fold(record: LogRecord, _effects: object) -> None:
        nonlocal seconds
        seconds += 0.01

    blank = here.stage.blank

    def slow() -> Blank[RebuildingStage]:
        made = blank()
        made.fold.step = fold  # type: ignore[method-assign,assignment]  # a feed of many experts
        return made

    here.stage.blank = slow  # type: ignore[method-assign]
    busy = asyncio.ensure_future(be_busy())
    await here.put(0, 4)
    await here.partition.rest()
    await busy

    assert turns >= 5 * 30

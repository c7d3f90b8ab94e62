"""Audits: when they come, how they give way, and what follows if something does not agree."""

import pytest
from structlog.testing import capture_logs

from stream_peer.kafka.worker.long_work import AUDIT_EVERY_SECONDS, Audits
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.log.changelog import ChangelogReader, Writer, token_row
from tests.unit.clock import Clock
from tests.unit.kafka.worker.fakes import (
    FakeEvent,
    FakeLogs,
    FakeProducer,
    FakeSource,
    RebuildingStage,
    SumStage,
    Telling,
    eventually,
    records,
    surroundings,
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def _one_piece_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.long_work._AUDIT_SLICE_SECONDS", -1.0)


def test_the_first_audits_of_partitions_lie_apart_and_within_the_first_hour() -> None:
    clock, starts = Clock(), dict[int, float]()
    audits = {partition: Audits(partition, clock) for partition in range(16)}
    stage = RebuildingStage()
    stage.pieces = [True]
    for minute in range(61):
        clock.at = 1_000.0 + 60 * minute
        for partition, audit in audits.items():
            if audit.work(stage):
                starts.setdefault(partition, clock.at)

    assert len(starts) == 16
    assert min(starts.values()) >= 1_000.0 + AUDIT_EVERY_SECONDS / 2
    assert len(set(starts.values())) > 12


@pytest.mark.usefixtures("_one_piece_a_slice")
def test_an_audit_goes_on_piece_by_piece_and_comes_again_after_an_hour(clock: Clock) -> None:
    audits, stage = Audits(0, clock), RebuildingStage()
    stage.pieces = [True, True, True]

    before = audits.work(stage)
    clock.at += AUDIT_EVERY_SECONDS
    results = [audits.work(stage) for _ in range(4)]
    again = [audits.work(stage) for _ in range(2)]
    clock.at += AUDIT_EVERY_SECONDS
    audits.work(stage)

    assert before is None
    assert results == [None, None, None, True]
    assert again == [None, None]
    assert audits.under_way


def test_of_a_stage_with_nothing_to_compare_nothing_is_said(clock: Clock) -> None:
    audits = Audits(0, clock)
    clock.at += AUDIT_EVERY_SECONDS

    assert audits.work(RebuildingStage()) is None
    assert not audits.under_way


@pytest.mark.usefixtures("_one_piece_a_slice")
def test_an_audit_of_a_state_that_is_another_now_is_given_up(clock: Clock) -> None:
    audits, stage = Audits(0, clock), RebuildingStage()
    stage.pieces = [True, True]
    clock.at += AUDIT_EVERY_SECONDS
    audits.work(stage)

    audits.give_up()

    assert not audits.under_way
    assert audits.work(stage) is None


def owned(stage: SumStage, observer: Telling, logs: FakeLogs) -> OwnedPartition:
    producer, fold = FakeProducer(), ChangelogReader()
    producer.changelog.append(token_row(3, "me"))
    fold.add(0, *token_row(3, "me"))
    around, _ = surroundings(producer, observer=observer, logs=logs)
    writer = StateWriter("changelog", Writer(fold, 3, "me", 1))
    return OwnedPartition(
        ("feed", TopicPartition("feed-log", 3)),
        stage,
        StartPosition(-1, 0),
        writer,
        FakeSource(),
        around,
        lambda: False,
    )


@pytest.mark.usefixtures("_one_piece_a_slice")
async def test_an_audit_ends_while_a_partition_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.long_work.AUDIT_EVERY_SECONDS", 0.0)
    monkeypatch.setattr("stream_peer.kafka.worker.partition.AUDIT_PAUSE_SECONDS", 0.0)
    stage, observer = RebuildingStage(), Telling()
    stage.pieces = [True, True]
    partition = owned(stage, observer, FakeLogs([]))

    partition.start()
    await partition.put(FakeEvent(records(0, 0)))
    await eventually(lambda: observer.audits)
    partition.stop()

    assert observer.audits[0] is True


async def test_a_state_that_does_not_agree_is_an_error_and_folded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.kafka.worker.long_work.AUDIT_EVERY_SECONDS", 0.0)
    stage, observer, log = RebuildingStage(), Telling(), records(0, 3)
    stage.pieces = [True, False]
    partition = owned(stage, observer, FakeLogs(log))

    with capture_logs() as logs:
        partition.start()
        await partition.put(FakeEvent(log))
        await eventually(lambda: observer.ended)
        partition.stop()

    failed = [entry for entry in logs if entry["event"] == "audit_failed"]
    assert observer.audits[0] is False
    assert stage.rebuilds[0].offsets[-1] == 3
    assert stage.counts == {b"a": 4}
    assert failed[0]["log_level"] == "error"
    assert failed[0]["offset"] == 3

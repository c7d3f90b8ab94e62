"""What is promised of the driver: rebuilds are whole or leave no trace, however their log comes."""

from collections.abc import Sequence

import pytest

from stream_peer.log.driver import (
    Checkpoint,
    Driver,
    NeedsLog,
    Write,
    answer,
    fold,
    fold_and_publish,
    publish_before,
    pump,
    rebuild,
)
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.settings.process import SnapshotEvery
from tests.unit.clock import Clock
from tests.unit.kafka.worker.fakes import MEANING, RebuildingStage

LOG = [LogRecord(n, n, key, b"1") for n, key in enumerate([b"a", b"b", MEANING, b"a", MEANING, b"c"])]


def counted(log: Sequence[LogRecord]) -> tuple[RebuildingStage, Effects]:
    stage, effects = RebuildingStage(), Effects()
    for record in log:
        pump(fold_and_publish(stage, record, effects), lambda up_to: LOG[: up_to + 1])
    return stage, effects


def test_each_record_is_folded_and_each_rebuild_carried_out_before_the_next() -> None:
    stage, _ = counted(LOG)
    assert [blank.offsets for blank in stage.rebuilds] == [[0, 1, 2], [0, 1, 2, 3, 4]]
    assert stage.counts[b"a"] == 8


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_rebuild_is_the_same_whatever_the_portions_in_which_its_log_comes(size: int) -> None:
    stage = RebuildingStage()
    took(driven(stage, Clock(0.0)), LOG)
    steps = rebuild(stage, 2)
    next(steps)
    for start in range(0, len(LOG), size):
        steps.send(LOG[start : start + size])
    assert answer(steps, ()) is None
    assert stage.counts == counted(LOG[:3])[0].counts


def test_a_rebuild_that_is_stopped_leaves_the_stage_as_it_was() -> None:
    stage = RebuildingStage()
    took(driven(stage, Clock(0.0)), LOG)
    before = dict(stage.counts)
    steps = rebuild(stage, 2)
    next(steps)
    steps.send(LOG[:2])
    steps.close()
    assert (dict(stage.counts), stage.needs_rebuild) == (before, True)


def test_nothing_is_folded_behind_a_record_that_calls_for_a_rebuild() -> None:
    assert driven(RebuildingStage(), Clock(0.0)).take(LOG, Effects(), until=1.0) == 3
    assert driven(RebuildingStage(), Clock(0.0)).take(LOG[:2], Effects(), until=1.0) == 2


@pytest.mark.parametrize(
    ("always", "published"), [(False, [[], [b"q", b"econ"]]), (True, [[b"econ"], [b"q", b"econ"]])]
)
def test_corrections_and_changed_feeds_are_published_after_a_rebuild_and_feeds_always_if_asked(
    always: bool, published: list[list[bytes]]
) -> None:
    found = []
    for record in (LOG[0], LOG[2]):
        stage, effects = RebuildingStage(), Effects()
        stage.changed = {"econ": 1_000}
        stage.corrections = [Output("peer-losses", b"q", b"", 0)]
        pump(fold_and_publish(stage, record, effects, always=always), lambda up_to: LOG[: up_to + 1])
        found.append([output.key for output in effects.outputs[1:]])
    assert found == published


def test_records_of_other_keys_are_not_folded_and_nothing_is_published() -> None:
    stage = RebuildingStage()
    stage.changed = {"econ": 1_000}
    for record in LOG[:2]:
        pump(fold(stage, record, {b"b"}), lambda up_to: LOG[: up_to + 1])
    assert (stage.offsets, stage.changed) == ([1], {"econ": 1_000})


# --- an owner's driver ---


EVERY = SnapshotEvery(seconds=10, records=4, bytes=1_000)


def driven(stage: RebuildingStage, clock: Clock, applied: int = -1) -> Driver:
    return Driver(stage, applied, EVERY, clock)


def took(driver: Driver, log: Sequence[LogRecord]) -> Effects:
    effects = Effects()
    driver.written(driver.take(log, effects, until=1e9))
    return effects


def test_a_checkpoint_is_outputs_then_state_and_covers_the_log_only_when_both_are_durable() -> None:
    driver = driven(stage := RebuildingStage(), Clock(0.0))
    took(driver, LOG[:2])
    stage.changed = {"econ": 1_000}
    seen = [(type(item), driver.covered, driver.records) for item in driver.checkpoint()]
    assert seen == [(Write, -1, 2), (Checkpoint, -1, 2)]
    assert (driver.covered, driver.records) == (1, 0)


def test_a_checkpoint_that_is_stopped_covers_nothing() -> None:
    driver = driven(RebuildingStage(), Clock(0.0))
    took(driver, LOG[:2])
    steps = driver.checkpoint()
    next(steps), next(steps)
    steps.close()
    assert (driver.covered, driver.records) == (-1, 2)


def test_a_checkpoint_is_due_after_so_many_records_so_many_bytes_or_so_many_seconds() -> None:
    clock = Clock(0.0)
    driver = driven(RebuildingStage(), clock)
    list(driver.checkpoint())
    due = []
    for record, moment in [(LOG[0], 0.0), (LOG[1], 9.9), (LOG[3], 10.0)]:
        clock.at = moment
        took(driver, [record])
        due.append(driver.checkpoint_due(now=False, rewrite=False))
    list(driver.checkpoint())
    took(driver, [LOG[0]] * 4)
    many = driver.checkpoint_due(now=False, rewrite=False)
    list(driver.checkpoint())
    took(driver, [LOG[0]._replace(value=b"x" * 1_000)])
    assert (due, many, driver.checkpoint_due(now=False, rewrite=False)) == ([False, False, True], True, True)


def test_rebuilt_state_is_not_made_durable_under_an_offset_that_is_covered_already() -> None:
    driver = driven(stage := RebuildingStage(), Clock(0.0), applied=2)
    stage.needs_rebuild = True
    steps = driver.rebuild()
    assert next(steps) == NeedsLog(2)
    steps.send(LOG[:3])
    assert [type(item) for item in (steps.send(()), *steps)] == [Write, Write]
    due = [driver.checkpoint_due(now=True, rewrite=True)]
    took(driver, LOG[3:4])
    due.append(driver.checkpoint_due(now=False, rewrite=False))
    assert due == [False, True]


def test_a_feed_is_published_at_most_once_in_its_interval() -> None:
    clock = Clock(0.0)
    clock.at = 100.0
    driver = driven(stage := RebuildingStage(), clock)
    published = []
    for moment in (100.0, 100.9, 101.0):
        clock.at, effects = moment, Effects()
        stage.changed = {"econ": 1_000}
        driver.publish_due(effects)
        published.append(len(effects.outputs))
    assert published == [1, 0, 1]


def test_a_replay_publishes_before_a_record_of_a_later_time_and_none_of_the_same_or_an_earlier_one() -> None:
    stage, latest, published = RebuildingStage(), -1, []
    for time in (5, 5, 4, 6):
        stage.changed, effects = {"econ": 1_000}, Effects()
        latest = publish_before(stage, LogRecord(0, time, b"a", b"1"), latest, effects)
        published.append((len(effects.outputs), latest))
    assert published == [(1, 5), (0, 5), (0, 5), (1, 6)]

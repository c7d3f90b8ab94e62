"""What is promised of the driver: rebuilds are whole or leave no trace, however their log comes."""

from collections.abc import Sequence

import pytest

from stream_peer.log.driver import Publish, answer, fold, fold_portion, pump, rebuild
from stream_peer.log.stage import Effects, LogRecord
from tests.unit.kafka.worker.fakes import MEANING, RefoldingStage

LOG = [LogRecord(n, n, key, b"1") for n, key in enumerate([b"a", b"b", MEANING, b"a", MEANING, b"c"])]


def counted(log: Sequence[LogRecord]) -> tuple[RefoldingStage, Effects]:
    stage, effects = RefoldingStage(), Effects()
    for record in log:
        pump(fold(stage, record, effects), lambda up_to: LOG[: up_to + 1])
    return stage, effects


def test_each_record_is_folded_and_each_rebuild_carried_out_before_the_next() -> None:
    stage, _ = counted(LOG)
    assert stage.refolds == [2, 4]
    assert stage.counts[b"a"] == 8


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_rebuild_is_the_same_whatever_the_portions_in_which_its_log_comes(size: int) -> None:
    stage = RefoldingStage()
    fold_portion(stage, LOG, Effects())
    steps = rebuild(stage, 2)
    next(steps)
    for start in range(0, len(LOG), size):
        steps.send(LOG[start : start + size])
    assert answer(steps, ()) is None
    assert stage.counts == counted(LOG[:3])[0].counts


def test_a_rebuild_that_is_stopped_leaves_the_stage_as_it_was() -> None:
    stage = RefoldingStage()
    fold_portion(stage, LOG, Effects())
    before = dict(stage.counts)
    steps = rebuild(stage, 2)
    next(steps)
    steps.send(LOG[:2])
    steps.close()
    assert (dict(stage.counts), stage.must_refold) == (before, True)


def test_nothing_is_folded_behind_a_record_that_calls_for_a_rebuild() -> None:
    stage = RefoldingStage()
    assert fold_portion(stage, LOG, Effects()) == 3
    assert fold_portion(RefoldingStage(), LOG[:2], Effects()) == 2


@pytest.mark.parametrize(
    ("publish", "published"), [(Publish.NOTHING, [0, 0]), (Publish.REBUILDS, [0, 1]), (Publish.RECORDS, [1, 1])]
)
def test_feeds_are_published_after_what_the_pump_asks_for(publish: Publish, published: list[int]) -> None:
    found = []
    for log in (LOG[:1], LOG[2:3]):
        stage, effects = RefoldingStage(), Effects()
        stage.changed = {"econ": 1_000}
        pump(fold(stage, log[0], effects, publish), lambda up_to: LOG[: up_to + 1])
        found.append(0 if stage.changed else 1)
    assert found == published

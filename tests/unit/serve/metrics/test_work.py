"""Gauges of the worker and its partitions: what they show, and when they end."""

from typing import Any

import msgspec
import pytest

from stream_peer.log.stage import Effects, LogRecord
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.metrics.observer import Owned, WorkCollector
from tests.feed_histories import folded, log_of, settings
from tests.unit.questions.question_log import signed
from tests.unit.serve.metrics.scraping import FeedsOnly, of

DAY = 86_400_000
NEW_YEAR = 1_767_225_600_000


class Hands:
    """A clock that is set by hand."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class Answers:
    """Health that a test decides."""

    def __init__(self, *, live: bool, ready: bool) -> None:
        self._answers = {"live": live, "ready": ready}

    def live(self) -> tuple[bool, str]:
        return self._answers["live"], "because"

    def ready(self) -> tuple[bool, str]:
        return self._answers["ready"], "because"


def shown(collector: WorkCollector, name: str) -> list[tuple[dict[str, str], float]]:
    (family,) = (family for family in collector.collect() if family.name == f"stream_peer_{name}")
    return [(dict(sample.labels), sample.value) for sample in family.samples]


def owning(**known: Any) -> WorkCollector:
    collector = WorkCollector(None, None, clock=Hands(500.0), wall=Hands(NEW_YEAR / 1000))
    collector.owned["question", 3] = Owned(FeedsOnly({}), **known)
    return collector


@pytest.mark.parametrize(
    ("lag", "oldest", "expected"),
    [
        (0, None, [0.0]),
        (0, NEW_YEAR - 5000, [0.0]),
        (7, NEW_YEAR - 90_000, [90.0]),
        (7, NEW_YEAR + 3000, [0.0]),
        (7, None, []),
        (None, None, []),
    ],
)
def test_lag_in_seconds_is_the_age_of_the_oldest_record_never_negative_and_unknown_until_it_was_read(
    lag: int | None, oldest: int | None, expected: list[float]
) -> None:
    place = {"topic": "forecast-events", "partition": "3"}
    assert shown(owning(lag=lag, oldest=oldest), "lag_seconds") == [(place, value) for value in expected]


def test_a_snapshot_is_as_old_as_the_first_record_that_it_does_not_cover() -> None:
    metrics, hands = Metrics(), Hands(100.0)
    metrics._work.clock = hands
    metrics.owned("question", 0, FeedsOnly({}))
    metrics.stored("question", 0, 5, 700)

    def age() -> list[float]:
        return [value for _, value in of(metrics, "snapshot_age_seconds")]

    assert age() == [0.0]
    metrics.folded("question", 0, 3, 0.1, Effects())
    hands.at += 4
    metrics.folded("question", 0, 3, 0.1, Effects())
    hands.at += 2
    assert age() == [6.0]
    metrics.snapshotted("question", 0, 1, 10, 0.1)
    hands.at += 60
    assert age() == [0.0]


def test_a_stage_without_state_has_no_gauges_of_state() -> None:
    metrics = Metrics()
    metrics.owned("control", 0, FeedsOnly({}))
    metrics.folded("control", 0, 3, 0.1, Effects())
    for name in ("snapshot_age_seconds", "state_records", "state_bytes"):
        assert list(of(metrics, name)) == []


def test_state_has_a_size_as_long_as_it_is_owned() -> None:
    metrics = Metrics()
    metrics.stored("feed", 1, 9, 9)
    metrics.owned("feed", 1, FeedsOnly({}))
    metrics.stored("feed", 1, 5, 700)
    place = {"stage": "feed", "partition": "1"}
    assert list(of(metrics, "state_records")) == [(place, 5.0)]
    assert list(of(metrics, "state_bytes")) == [(place, 700.0)]

    metrics.released("feed", 1)

    assert list(of(metrics, "state_records")) == list(of(metrics, "state_bytes")) == []


def asked(stage: QuestionStage, offset: int, **event: Any) -> None:
    stage.step(LogRecord(offset, NEW_YEAR, b"q", msgspec.json.encode({"question_id": "q", **event})), Effects())


def test_questions_are_open_while_a_round_is_to_come_and_the_earliest_deadline_is_theirs() -> None:
    stage = QuestionStage(topic="t", partition=0, partitions=1, feed_log_partitions=1)
    metrics = Metrics()
    metrics.owned("question", 0, stage)
    place = {"partition": "0"}
    assert list(of(metrics, "open_questions")) == [(place, 0.0)]
    assert list(of(metrics, "oldest_deadline_timestamp_seconds")) == []

    asked(stage, 0, type="question", opens_at="2026-01-01T00:00:00Z", closes_at="2026-01-01T06:00:00Z")
    (deadline,) = (value for _, value in of(metrics, "oldest_deadline_timestamp_seconds"))
    assert list(of(metrics, "open_questions")) == [(place, 1.0)]
    assert NEW_YEAR / 1000 < deadline <= NEW_YEAR / 1000 + 7 * 3600

    tick = msgspec.json.encode({"type": "tick", "now": "2026-01-02T00:00:00Z"})
    stage.step(LogRecord(1, NEW_YEAR + DAY, b"key", tick, signed(tick)), Effects())
    assert list(of(metrics, "open_questions")) == [(place, 0.0)]
    assert list(of(metrics, "oldest_deadline_timestamp_seconds")) == []


def test_health_is_one_or_zero_and_not_said_where_nobody_knows() -> None:
    metrics = Metrics(Answers(live=True, ready=False))
    assert (list(of(metrics, "live")), list(of(metrics, "ready"))) == ([({}, 1.0)], [({}, 0.0)])
    assert list(of(Metrics(), "ready")) == []


def test_settings_are_named_as_partitions_know_them_each_once() -> None:
    metrics = Metrics(settings_hash="0a1b2c3d")
    feeds = [folded(log_of([settings(document)]))[0] for document in ({}, {}, {"defaults": {"top_experts": 5}})]
    for partition, stage in enumerate(feeds):
        metrics.owned("feed", partition, stage)
    metrics.owned("control", 0, ControlStage(topic="t", partition=0, forecast_partitions=1, feed_log_partitions=1))

    found = sorted((labels["kind"], labels["hash"]) for labels, _ in of(metrics, "settings_info"))

    assert found == sorted([("process", "0a1b2c3d"), *{("feeds", stage.settings_hash) for stage in feeds}])
    metrics.owned("question", 0, QuestionStage(topic="t", partition=0, partitions=1, feed_log_partitions=1))
    assert len(list(of(metrics, "settings_info"))) == 3  # with the built-in ones, as the first two
    assert len(found) == 3


def test_recovery_that_a_rebalance_took_away_leaves_no_series() -> None:
    metrics = Metrics()
    metrics.recovering("feed", 0, 200)
    metrics.rebalanced()
    assert list(of(metrics, "recovery_remaining_records")) == []
    assert list(of(metrics, "rebalances_total")) == [({}, 1.0)]


def test_what_is_told_of_a_partition_after_its_release_is_not_shown() -> None:
    metrics = Metrics()
    metrics.owned("feed", 0, FeedsOnly({}))
    metrics.released("feed", 0)
    metrics.lag("feed", 0, 3, None)
    metrics.stored("feed", 0, 3, 30)
    metrics.folded("feed", 0, 3, 0.1, Effects())
    for name in ("lag_records", "lag_seconds", "state_records", "snapshot_age_seconds"):
        assert list(of(metrics, name)) == []


def test_our_clock_is_told_as_long_as_it_is_known() -> None:
    metrics = Metrics()
    assert list(of(metrics, "clock_skew_seconds")) == []
    metrics.skewed(-2.5)
    assert list(of(metrics, "clock_skew_seconds")) == [({}, -2.5)]
    metrics.skewed(None)
    assert list(of(metrics, "clock_skew_seconds")) == []

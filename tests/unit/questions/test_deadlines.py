"""What passes the time of a partition, and what is due then."""

import pytest

from stream_peer.events.feed_log import Round
from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    SECOND,
    T0,
    Partition,
    forecast,
    opened,
    question,
    reasons,
    stage,
    tick,
)


@pytest.mark.case("C13")
def test_one_event_from_the_far_future_closes_nothing() -> None:
    partition = opened()

    in_2099 = partition.send(forecast("eve", 0.5, 4_070_908_800_000, "other"))
    in_2030 = partition.send(forecast("eve", 0.5, T0 + 4 * 365 * DAY, "other"))

    assert reasons(in_2099) == ["time-range"]
    assert in_2030 == []
    assert partition.stage.clock == T0 + HOUR


def test_the_clock_follows_stated_times_up_to_the_skew() -> None:
    partition = Partition(now=T0)

    partition.send(forecast("ann", 0.5, T0 + 300 * SECOND), forecast("ann", 0.5, T0 + 301 * SECOND))
    partition.send(question(opens_at=T0 + DAY))

    assert partition.stage.clock == T0 + 300 * SECOND


def test_a_tick_ahead_of_its_record_is_ignored() -> None:
    partition = opened()

    caused = partition.send(tick(CLOSE + GRACE), now=CLOSE - DAY)

    assert caused == []
    assert partition.stage.clock == T0 + HOUR
    assert partition.count("tick-ahead") == 1


@pytest.mark.case("C33")
def test_deadlines_missed_while_down_are_met_once_after_the_first_tick() -> None:
    partition = opened()
    for name in ("r", "s"):
        partition.send(question(name, opens_at=T0, closes_at=CLOSE), forecast("ann", 0.4, T0 + HOUR, name))
    partition.restart(stage())

    deadline = partition.stage.deadline()
    met = partition.pass_to(CLOSE + 3 * DAY)
    again = partition.pass_to(CLOSE + 4 * DAY)

    assert deadline == CLOSE + GRACE + 60 * SECOND
    assert [(record.question_id, record.boundary) for record in met if isinstance(record, Round)] == [
        ("q", CLOSE),
        ("r", CLOSE),
        ("s", CLOSE),
    ]
    assert again == []
    assert partition.stage.deadline() is None


@pytest.mark.case("C33")
@pytest.mark.parametrize("at", [T0 + HOUR, T0 - HOUR, CLOSE - HOUR])
def test_the_first_forecast_of_a_question_whose_times_were_stated_calls_for_ticks(at: int) -> None:
    partition = Partition()
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    before = partition.stage.deadline()

    partition.send(forecast("ann", 0.4, at), now=at)

    assert before is None
    assert partition.stage.deadline() == CLOSE + GRACE + 60 * SECOND


def test_a_historical_feed_asks_for_no_ticks() -> None:
    partition = opened(history=True)

    assert partition.stage.deadline() is None

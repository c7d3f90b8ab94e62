"""From when a forecast counts, and for how long, however late it or a copy of it comes."""

import pytest

from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    book,
    closed,
    event,
    forecast,
    opened,
    question,
    reasons,
    resolution,
    stage,
)

# --- when a forecast counts from ---


@pytest.mark.case("C11")
def test_a_backdated_forecast_counts_from_the_limit_before_it_arrived() -> None:
    partition = closed(backdate_limit="1h")

    partition.send(forecast("ann", 0.99, T0 + HOUR), now=CLOSE + 2 * HOUR)

    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2}}
    assert partition.count("late") == 1


@pytest.mark.case("C08", "C11")
@pytest.mark.parametrize("late_forecasts", ["move", "refuse"])
def test_a_late_correction_is_moved_and_counted_or_refused_as_the_setting_says(late_forecasts: str) -> None:
    partition = closed(backdate_limit="1h", late_forecasts=late_forecasts)
    many = event("forecasts", question_id="q", at=T0 + HOUR, forecasts={"ann": 0.99, "bob": 0.98})

    partition.send(forecast("ann", 0.98, T0 + HOUR, feed="sport"), many, now=CLOSE + 2 * HOUR)
    partition.restart(stage(book(backdate_limit="1h", late_forecasts=late_forecasts)))

    refused = late_forecasts == "refuse"
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2}}
    assert (partition.count("late"), partition.count("dead-letter", "late")) == ((0, 2) if refused else (3, 0))
    history = partition.stage._live["q"].history
    assert len(history) == (2 if refused else 5)
    assert history.stated("ann") == ([] if refused else [(T0 + HOUR, CLOSE + HOUR)] * 2)
    assert partition.stage._live["q"].other_feed is None or not refused


@pytest.mark.case("C11")
def test_the_refusal_of_a_late_forecast_names_both_times_and_the_limit() -> None:
    partition = closed(backdate_limit="1h", late_forecasts="refuse")

    (refused,) = partition.send(forecast("ann", 0.99, T0 + HOUR), now=CLOSE + 2 * HOUR)

    message = dict(refused.headers)["__streams.errors.message"].decode()
    assert message == (
        "at is 2026-03-01T13:00:00Z, and it arrived at 2026-03-03T14:00:00Z, 2 days, 1:00:00 later"
        " (backdate_limit is 1:00:00); late_forecasts is refuse"
    )


@pytest.mark.case("C11")
def test_of_a_resolved_question_only_a_historical_feed_takes_forecasts_of_the_past() -> None:
    live, historical = (closed(late_forecasts="refuse", history=history) for history in (False, True))
    for partition in (live, historical):
        partition.send(resolution(1, CLOSE), now=CLOSE + HOUR)
        partition.send(forecast("ann", 0.99, CLOSE), now=CLOSE + HOUR + 1)

    assert reasons(live.effects.outputs[-1:]) == ["late"]
    assert b"resolved" in dict(live.effects.outputs[-1].headers)["__streams.errors.message"]
    assert live.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2}}
    assert historical.told.forecasts() == {CLOSE: {"ann": 0.99, "bob": 0.2}}


def test_a_late_forecast_that_is_refused_begins_no_question_and_moves_no_clock() -> None:
    partition = Partition(late_forecasts="refuse", backdate_limit="1h")

    refused = partition.send(forecast("ann", 0.5, T0 - 2 * HOUR))

    assert reasons(refused) == ["late"]
    assert partition.stage.snapshot().entries == {}
    assert partition.stage.clock == 0


# --- forecasts that grow old ---


def test_a_forecast_stands_until_it_is_as_old_as_forecast_for() -> None:
    partition = Partition(round_every="1d", forecast_for="2d")
    partition.send(question(feed="econ", opens_at=T0, closes_at=T0 + 4 * DAY))
    partition.send(forecast("ann", 0.7, T0 + 1), forecast("bob", 0.2, T0), now=T0 + 1)

    partition.pass_to(T0 + 5 * DAY)

    assert partition.told.forecasts() == {T0 + DAY: {"ann": 0.7, "bob": 0.2}, T0 + 2 * DAY: {"ann": 0.7}}


def test_a_forecast_held_until_the_opening_grows_old_from_when_it_was_made() -> None:
    partition = Partition(round_every="1d", forecast_for="2d")
    partition.send(question(opens_at=T0 + DAY, closes_at=T0 + 3 * DAY))
    partition.send(forecast("ann", 0.7, T0), forecast("bob", 0.2, T0 + DAY), now=T0 + DAY)

    partition.pass_to(T0 + 4 * DAY)

    assert partition.told.forecasts() == {T0 + 2 * DAY: {"bob": 0.2}}


def test_forecasts_that_are_too_old_make_no_quorum() -> None:
    partition = Partition(round_every="30d", forecast_for="2h", quorum=2)
    partition.send(question(opens_at=T0, closes_at=CLOSE))
    partition.send(forecast("ann", 0.7, T0))
    partition.send(forecast("bob", 0.2, T0 + 2 * HOUR), now=T0 + 2 * HOUR)
    partition.send(forecast("ann", 0.6, T0 + 3 * HOUR), now=T0 + 3 * HOUR)

    partition.pass_to(T0 + DAY)

    assert partition.told.forecasts() == {T0 + 3 * HOUR: {"ann": 0.6, "bob": 0.2}}


def test_a_question_keeps_the_forecast_for_of_its_first_round() -> None:
    partition = opened(round_every="1d", forecast_for="1d")
    partition.apply({"defaults": {"round_every": "1d", "forecast_for": "1d"}})
    partition.pass_to(T0 + DAY + GRACE)
    partition.restart(stage())

    partition.now += 1
    partition.apply({"defaults": {"round_every": "1d"}})
    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + DAY]


@pytest.mark.case("C11")
def test_stated_and_effective_time_of_a_moved_forecast_are_both_kept() -> None:
    partition = opened(backdate_limit="1h")

    partition.send(forecast("ann", 0.9, T0 + 2 * HOUR), now=T0 + DAY)
    partition.restart(stage(book(backdate_limit="1h")))

    history = partition.stage._live["q"].history
    assert history.stated("ann") == [(T0 + 2 * HOUR, T0 + DAY - HOUR)]


@pytest.mark.case("C11")
def test_a_forecast_after_the_resolution_counts_from_its_arrival() -> None:
    partition = closed()
    partition.send(resolution(1, CLOSE), now=CLOSE + HOUR)

    partition.send(
        forecast(
            "ann",
            0.99,
            T0 + 2 * HOUR,
        ),
        now=CLOSE + 2 * HOUR,
    )

    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2}}
    assert partition.count("late") == 1


def test_in_a_historical_feed_forecasts_count_from_when_they_were_stated() -> None:
    partition = closed(history=True)
    partition.send(resolution(1, CLOSE), now=CLOSE + 400 * DAY)

    partition.send(forecast("ann", 0.99, T0 + 2 * HOUR))

    assert partition.told.forecasts() == {CLOSE: {"ann": 0.99, "bob": 0.2}}
    assert partition.count("late") == 0


# --- what is delivered again, days later ---


@pytest.mark.parametrize("again", [None, 0.7])
def test_a_withdrawal_or_forecast_that_is_delivered_again_after_days_changes_nothing(again: float | None) -> None:
    day = T0 - T0 % DAY
    partition = Partition(round_every="1d")
    partition.send(question(feed="econ", opens_at=day, closes_at=day + 10 * DAY, at=day), now=day + HOUR)
    first = forecast("ann", again, day + 2 * DAY + 3 * HOUR)
    partition.send(forecast("bob", 0.2, day + HOUR), forecast("ann", 0.9, day + HOUR))
    partition.send(first, now=day + 2 * DAY + 3 * HOUR)
    partition.send(forecast("ann", 0.4, day + 3 * DAY + 6 * HOUR), now=day + 3 * DAY + 6 * HOUR)
    partition.pass_to(day + 6 * DAY)
    before = partition.told.rounds

    caused = partition.send(first, now=day + 6 * DAY + HOUR)
    partition.pass_to(day + 11 * DAY)

    assert caused == []
    assert (partition.count("late"), partition.count("repeated")) == (0, 1)
    assert before.items() <= partition.told.rounds.items()
    assert partition.told.forecasts()[day + 7 * DAY] == {"ann": 0.4, "bob": 0.2}


def test_what_is_late_and_older_than_what_was_said_since_is_not_used_and_all_else_is() -> None:
    partition = opened(backdate_limit="1h")

    partition.send(forecast("bob", 0.3, T0 + 5 * HOUR), now=T0 + 5 * HOUR)
    partition.send(forecast("bob", 0.9, T0 + 3 * HOUR), now=T0 + 20 * HOUR)
    partition.send(forecast("ann", 0.8, T0 + 2 * HOUR), forecast("ann", 0.6, T0 + 3 * HOUR))
    partition.pass_to(CLOSE + GRACE)

    assert (partition.count("overtaken"), partition.count("late")) == (1, 2)
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.6, "bob": 0.3}}


def test_a_queue_that_was_down_for_longer_than_the_limit_loses_nothing() -> None:
    partition = Partition(round_every="6h")
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE, at=T0))

    for hour in (1, 2, 3):
        partition.send(forecast("ann", hour / 10, T0 + hour * HOUR), now=T0 + 30 * HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert partition.count("late") == 3
    assert partition.told.forecasts() == {T0 + hour * HOUR: {"ann": 0.3} for hour in range(6, 49, 6)}

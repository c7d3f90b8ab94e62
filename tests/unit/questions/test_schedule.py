from typing import Any

import pytest

from stream_peer.events.feed_log import OutcomeRevealed, QuestionArrived, QuestionMoved, Round, RoundWithdrawn
from stream_peer.questions.schedule import Terms, close_of, regular_boundaries
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    book,
    closed,
    forecast,
    opened,
    question,
    records,
    resolution,
    stage,
)


def test_intervals_double_after_every_eight_boundaries_and_end_after_thirty_two() -> None:
    boundaries = regular_boundaries(100, 10_000, 10)

    steps = [later - earlier for earlier, later in zip([100, *boundaries], boundaries, strict=False)]
    assert steps == [10] * 8 + [20] * 8 + [40] * 8 + [80] * 8


def test_the_close_is_no_regular_boundary() -> None:
    assert regular_boundaries(0, 30, 10) == [10, 20]


def test_without_an_interval_there_is_no_regular_boundary() -> None:
    assert regular_boundaries(0, 10_000, None) == []


def test_the_earliest_of_what_may_end_a_question_ends_it() -> None:
    assert close_of(opens=100, stated=None, cut=None, max_open=50) == 150
    assert close_of(opens=100, stated=140, cut=120, max_open=50) == 120
    assert close_of(opens=None, stated=None, cut=120, max_open=50) == 120
    assert close_of(opens=None, stated=None, cut=None, max_open=50) is None


def test_terms_are_those_of_the_settings() -> None:
    assert Terms.of(FeedSettings(quorum=3, grace=5, round_every=7, max_open=9)) == Terms(7, 3, 5, 9)


@pytest.mark.case("C06")
def test_extending_the_close_reopens_a_question() -> None:
    partition = closed()

    partition.send(question(closes_at=CLOSE + DAY, at=CLOSE + HOUR), now=CLOSE + HOUR)
    reopened = partition.told.forecasts()
    partition.send(forecast("ann", 0.9, CLOSE + 2 * HOUR), now=CLOSE + 2 * HOUR)
    partition.pass_to(CLOSE + DAY + GRACE)

    assert reopened == {}
    assert partition.told.forecasts() == {CLOSE + DAY: {"ann": 0.9, "bob": 0.2}}


@pytest.mark.case("C06")
def test_a_close_before_the_opening_leaves_no_rounds_and_is_counted() -> None:
    partition = closed()

    partition.send(question(closes_at=T0 - DAY))

    assert partition.told.rounds == {}
    assert partition.count("contradictory-times") == 1


@pytest.mark.case("C06")
def test_contradictory_times_are_one_warning_a_question_whatever_restarts_in_between() -> None:
    partition = opened()
    partition.send(question(closes_at=T0 - DAY))
    partition.restart(stage())
    partition.send(question(closes_at=T0 - 2 * DAY), resolution(1, T0 - DAY))

    assert [(code, feed, name) for code, feed, name, _ in partition.effects.warnings] == [
        ("contradictory-times", "econ", "q")
    ]
    assert "lies before opens_at" in partition.effects.warnings[0].message
    assert partition.count("contradictory-times") == 3


@pytest.mark.case("C06")
def test_missing_times_are_one_warning_once_the_defaults_show_in_a_round() -> None:
    partition = Partition(round_every="1d")
    partition.send(question(feed="econ", at=T0), forecast("ann", 0.7, T0))
    silent = list(partition.effects.warnings)

    partition.pass_to(T0 + DAY + GRACE)
    partition.pass_to(T0 + 3 * DAY + GRACE)

    assert silent == []
    assert [warned.code for warned in partition.effects.warnings] == ["missing-times"]


@pytest.mark.case("C06")
def test_a_close_stated_after_the_resolution_does_not_reopen_the_question() -> None:
    partition = closed()
    partition.send(resolution(1, CLOSE + HOUR), now=CLOSE + HOUR)

    partition.send(question(closes_at=CLOSE + 9 * DAY, at=CLOSE + 2 * HOUR), now=CLOSE + 2 * HOUR)
    partition.send(forecast("ann", 0.9, CLOSE + 3 * HOUR), now=CLOSE + 3 * HOUR)
    partition.pass_to(CLOSE + 10 * DAY)

    assert partition.told.forecasts() == {CLOSE + HOUR: {"ann": 0.7, "bob": 0.2}}
    assert "the resolution counts" in partition.effects.warnings[0].message


@pytest.mark.case("C06")
def test_a_close_beyond_max_open_ends_the_question_at_max_open() -> None:
    partition = opened(max_open="1d")

    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + DAY]
    assert "max_open" in partition.effects.warnings[0].message


@pytest.mark.case("C06")
def test_closes_and_openings_that_move_both_ways_leave_the_rounds_of_the_last_times() -> None:
    moved, straight = opened(round_every="12h"), opened(round_every="12h")
    moved.pass_to(CLOSE + GRACE)

    edits: list[dict[str, Any]] = [
        {"closes_at": CLOSE - DAY},
        {"closes_at": CLOSE + DAY},
        {"opens_at": T0 + 3 * HOUR},
        {"opens_at": CLOSE + 2 * DAY},
        {"opens_at": T0, "closes_at": CLOSE},
    ]
    for hour, times in enumerate(edits):
        moved.send(question(at=CLOSE + hour * HOUR, **times), now=CLOSE + hour * HOUR)
        moved.restart(stage(book(round_every="12h")))
    for one in (moved, straight):
        one.pass_to(CLOSE + 4 * DAY)

    assert moved.told.rounds == straight.told.rounds


@pytest.mark.case("C07")
def test_while_a_question_is_not_open_nothing_of_it_is_seen_and_a_restart_opens_nothing() -> None:
    partition = Partition(round_every="1d")
    partition.send(question(feed="econ", opens_at=T0 + 40 * DAY, closes_at=T0 + 42 * DAY, at=T0))
    partition.send(forecast("ann", 0.1, T0), forecast("ann", 0.3, T0 + HOUR), now=T0 + HOUR)

    before = partition.pass_to(T0 + 39 * DAY)
    partition.restart(stage(book(round_every="1d")))
    partition.send(question(opens_at=T0 + 41 * DAY, at=T0 + DAY))
    partition.pass_to(T0 + 43 * DAY)

    assert before == []
    assert partition.told.forecasts() == {T0 + 42 * DAY: {"ann": 0.3}}


@pytest.mark.case("C07")
def test_a_forecast_from_before_the_opening_takes_effect_when_it_opens() -> None:
    partition = Partition()
    partition.send(forecast("ann", 0.1, T0), forecast("ann", 0.3, T0 + 1), forecast("bob", 0.6, T0))
    partition.send(question(opens_at=T0 + DAY, closes_at=CLOSE))

    before = partition.pass_to(T0 + DAY)
    partition.pass_to(CLOSE + GRACE)

    assert before == []
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.3, "bob": 0.6}}


@pytest.mark.case("C07")
def test_moving_the_opening_moves_the_rounds() -> None:
    partition = opened(round_every="1d")
    partition.pass_to(T0 + DAY + GRACE)

    partition.send(question(opens_at=T0 + 6 * HOUR))
    partition.pass_to(T0 + DAY + 12 * HOUR)

    assert list(partition.told.forecasts()) == [T0 + DAY + 6 * HOUR]


def test_the_latest_stated_edit_wins_whatever_the_order_of_arrival() -> None:
    partition = Partition(now=CLOSE)
    partition.send(
        forecast("ann", 0.7, T0 + DAY),
        question(opens_at=T0, closes_at=T0 + 30 * HOUR, at=T0 + 2 * HOUR),
        question(closes_at=CLOSE, at=T0 + HOUR),
        question(feed="econ", at=T0),
    )

    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.rounds) == [("econ", "q", T0 + 30 * HOUR)]


def test_a_moved_question_is_withdrawn_in_the_old_feed_and_emitted_in_the_new() -> None:
    partition = closed()
    partition.send(resolution(1, CLOSE))

    moved = records(partition.send(question(feed="sport", at=CLOSE)))

    assert [(type(record), record.feed) for record in moved] == [
        (QuestionMoved, "econ"),
        (QuestionArrived, "sport"),
        (RoundWithdrawn, "econ"),
        (Round, "sport"),
        (OutcomeRevealed, "econ"),
        (OutcomeRevealed, "sport"),
    ]
    assert partition.told.outcomes == {("econ", "q"): "open", ("sport", "q"): 1}


@pytest.mark.parametrize("retracted", [1, "open", None])
def test_rounds_of_a_moved_question_say_that_an_outcome_was_known_before_be_it_retracted_since(retracted: Any) -> None:
    partition = closed()
    partition.send(resolution(1, CLOSE), resolution(retracted, CLOSE))
    partition.restart(stage())

    moved = records(partition.send(question(feed="sport", at=CLOSE)))

    assert [record.after_outcome for record in moved if isinstance(record, Round)] == [True]


def test_a_round_of_forecasts_that_came_after_the_resolution_is_not_scored() -> None:
    partition = Partition(history=True, now=CLOSE)
    partition.send(question(at=T0, opens_at=T0, closes_at=CLOSE), resolution(1, CLOSE))

    partition.send(forecast("late", 1.0, T0 + HOUR))
    partition.pass_to(CLOSE + GRACE)

    assert [record.after_outcome for record in finals(partition)] == [True]


def test_a_final_round_is_emitted_without_what_came_after_the_resolution_first() -> None:
    partition = Partition(history=True, now=CLOSE)
    partition.send(question(at=T0, opens_at=T0, closes_at=CLOSE), forecast("ann", 0.6, T0), resolution(1, CLOSE))

    partition.send(forecast("late", 1.0, T0 + HOUR), forecast("ann", 1.0, T0 + HOUR))
    partition.restart(stage(book(history=True)))
    partition.pass_to(CLOSE + GRACE)

    first, second = finals(partition)
    assert (first.experts, first.probabilities, first.after_outcome) == (["ann"], [0.6], False)
    assert (second.experts, second.probabilities) == (["ann", "late"], [1.0, 1.0])


def finals(partition: Partition) -> list[Round]:
    return [record for record in partition.records if isinstance(record, Round) and record.final]


@pytest.mark.case("C14")
def test_a_moved_question_has_the_boundaries_of_its_new_feed_although_the_old_one_had_rounds() -> None:
    partition = Partition(stage(load_document({"feeds": {"econ": {"round_every": "12h"}}})))
    partition.send(forecast("ann", 0.7, T0), question(opens_at=T0, closes_at=CLOSE, at=T0))
    partition.pass_to(CLOSE + GRACE)
    before = [boundary - T0 for _, _, boundary in partition.told.rounds]

    partition.send(question(feed="econ", at=T0))  # as if it had come first

    assert before == [2 * DAY]
    assert [(feed, boundary - T0) for feed, _, boundary in sorted(partition.told.rounds)] == [
        ("econ", 12 * HOUR),
        ("econ", 24 * HOUR),
        ("econ", 36 * HOUR),
        ("econ", 48 * HOUR),
    ]


def test_the_feed_that_a_question_event_names_goes_before_those_of_forecasts() -> None:
    partition = Partition()
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE, at=T0))

    partition.send(forecast("ann", 0.7, T0 + HOUR, feed="sport"), now=T0 + HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.rounds) == [("econ", "q", CLOSE)]


def test_among_forecasts_the_latest_stated_feed_wins() -> None:
    partition = Partition(now=T0 + 3 * HOUR)
    partition.send(
        forecast("ann", 0.7, T0 + 2 * HOUR, feed="sport"),
        forecast("bob", 0.7, T0 + HOUR, feed="econ"),
        question(closes_at=CLOSE),
    )

    partition.pass_to(CLOSE + GRACE)

    assert [feed for feed, _, _ in partition.told.rounds] == ["sport"]

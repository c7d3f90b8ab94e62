"""What outcomes do to a question: they cut, withdraw, are told once, and what is provisional closes nothing."""

import pytest

from stream_peer.events.feed_log import OutcomeRevealed, ProvisionalOutcome, Round
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
    records,
    resolution,
    stage,
)

# --- truth ---


@pytest.mark.case("C01")
def test_a_resolution_cuts_in_the_past() -> None:
    partition, only_early = Partition(round_every="100d"), Partition(round_every="100d")
    for hour in range(1, 11):
        at = T0 + hour * HOUR
        for one in (partition, only_early) if hour <= 5 else (partition,):
            one.send(forecast(f"e{hour % 3}", hour / 20, at), now=at)

    for one in (partition, only_early):
        one.send(question(opens_at=T0, closes_at=T0 + 8 * HOUR, at=T0), now=T0 + 11 * HOUR)
        one.send(resolution("yes", T0 + 11 * HOUR, closed_at=T0 + 5 * HOUR))

    assert partition.told.rounds == only_early.told.rounds
    assert partition.told.forecasts() == {T0 + 5 * HOUR: {"e1": 0.2, "e2": 0.25, "e0": 0.15}}
    assert partition.told.outcomes == {("default", "q"): 1}


def test_an_outcome_is_told_after_the_final_round() -> None:
    partition = opened()

    partition.send(resolution(0, T0 + DAY), now=T0 + DAY)
    told = partition.pass_to(T0 + DAY + GRACE)

    assert [type(record) for record in told] == [Round, OutcomeRevealed]
    assert [record.src.index for record in told] == [0, 1]


def test_an_outcome_is_told_again_only_if_it_changes() -> None:
    partition = closed()

    first = records(partition.send(resolution("Yes ", CLOSE)))
    same = records(partition.send(resolution(True, CLOSE)))
    annulled = records(partition.send(resolution(None, CLOSE)))

    assert [record.outcome for record in first if isinstance(record, OutcomeRevealed)] == [1]
    assert same == []
    assert [record.outcome for record in annulled if isinstance(record, OutcomeRevealed)] == ["annulled"]


def test_a_retracted_resolution_restores_the_close() -> None:
    partition = opened()
    partition.send(resolution(1, T0 + DAY), now=T0 + DAY)
    partition.pass_to(T0 + DAY + GRACE)

    retracted = records(partition.send(resolution("open", T0 + DAY + HOUR), now=T0 + DAY + HOUR))
    partition.pass_to(CLOSE + GRACE)

    assert [record.__class__.__name__ for record in retracted] == ["RoundWithdrawn", "OutcomeRevealed"]
    assert partition.told.outcomes == {("econ", "q"): "open"}
    assert list(partition.told.forecasts()) == [CLOSE]


def test_an_older_resolution_does_not_replace_a_newer_one() -> None:
    partition = closed()

    partition.send(resolution(1, CLOSE), resolution(0, CLOSE - 1))

    assert partition.told.outcomes == {("econ", "q"): 1}


def test_a_resolution_before_its_question_is_kept_and_counted() -> None:
    partition = Partition(now=CLOSE)

    alone = partition.send(resolution(1, CLOSE))
    partition.send(question(opens_at=T0, closes_at=CLOSE, at=T0))
    partition.pass_to(CLOSE + GRACE)
    late = records(partition.send(event("forecast", question_id="q", expert_id="a", probability=0.5, at=CLOSE)))

    assert alone == []
    assert partition.count("unknown-question") == 1
    assert partition.told.outcomes == {}
    assert late == []


def test_the_outcome_of_an_unknown_question_is_told_once_a_round_was_emitted() -> None:
    partition = Partition(history=True, now=CLOSE)
    partition.send(resolution(1, CLOSE))
    partition.send(question(opens_at=T0, closes_at=CLOSE))

    partition.send(forecast("ann", 0.7, T0))
    partition.pass_to(CLOSE + GRACE)

    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7}}
    assert partition.told.outcomes == {("default", "q"): 1}


def test_a_resolution_before_the_opening_leaves_no_rounds() -> None:
    partition = closed()

    partition.send(resolution(1, CLOSE, closed_at=T0 - HOUR))

    assert partition.told.rounds == {}


# --- provisional outcomes ---


def provisionals(partition: Partition) -> list[object]:
    return [record.outcome for record in partition.records if isinstance(record, ProvisionalOutcome)]


def test_a_provisional_resolution_closes_nothing_and_is_told_once_there_is_a_round() -> None:
    partition = opened(round_every="1d")

    before = partition.send(resolution(1, T0 + 2 * HOUR, provisional=True), now=T0 + 2 * HOUR)
    partition.pass_to(T0 + DAY + GRACE)
    partition.restart(stage(book(round_every="1d")))
    partition.send(forecast("ann", 0.9, T0 + 30 * HOUR), now=T0 + 30 * HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert before == []
    assert provisionals(partition) == [1]
    assert partition.told.outcomes == {}
    assert partition.told.forecasts() == {T0 + DAY: {"ann": 0.7, "bob": 0.2}, CLOSE: {"ann": 0.9, "bob": 0.2}}
    assert partition.count("late") == 0


@pytest.mark.parametrize("order", [1, -1])
def test_any_other_resolution_ends_a_provisional_one_in_whatever_order_they_come(order: int) -> None:
    partition = closed()
    provisional = resolution(0, CLOSE + HOUR, provisional=True)

    partition.send(*[provisional, resolution(1, CLOSE + 2 * HOUR)][::order], now=CLOSE + 3 * HOUR)

    assert partition.told.outcomes == {("econ", "q"): 1}
    assert provisionals(partition)[-1:] == (["open"] if order == 1 else [])


def test_of_provisional_resolutions_the_last_stated_counts_and_open_takes_it_back() -> None:
    partition = closed()

    for outcome, hours in ((1, 3), (0, 2), (None, 4), ("open", 5)):
        partition.send(resolution(outcome, CLOSE + hours * HOUR, provisional=True), now=CLOSE + 6 * HOUR)

    assert provisionals(partition) == [1, "annulled", "open"]


def test_a_provisional_outcome_goes_to_the_feed_that_the_question_goes_to() -> None:
    partition = closed()
    partition.send(resolution(1, CLOSE + HOUR, provisional=True), now=CLOSE + HOUR)

    partition.send(question(feed="sport", at=CLOSE + HOUR))

    told = [(one.feed, one.outcome) for one in partition.records if isinstance(one, ProvisionalOutcome)]
    assert told == [("econ", 1), ("econ", "open"), ("sport", 1)]


def test_of_a_question_that_is_a_stub_a_provisional_outcome_is_told_too_until_it_has_another() -> None:
    partition = closed(history_for="1d")
    partition.pass_to(CLOSE + 3 * DAY)

    partition.send(resolution(1, CLOSE + 3 * DAY, provisional=True))
    partition.send(resolution(0, CLOSE + 4 * DAY), now=CLOSE + 4 * DAY)
    partition.send(resolution(1, CLOSE + 5 * DAY, provisional=True), now=CLOSE + 5 * DAY)

    assert provisionals(partition) == [1]
    assert partition.told.outcomes == {("econ", "q"): 0}

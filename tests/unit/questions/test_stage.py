from typing import Any

import msgspec
import pytest

from stream_peer.errors import StateError
from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, ProvisionalOutcome, Round, RoundWithdrawn, Source
from stream_peer.events.partitioning import partition_of
from stream_peer.log.origins import SOURCE_HEADER, source_header
from stream_peer.log.signatures import MAC_HEADER, Signatures
from stream_peer.log.stage import Headers, LogRecord, Output
from stream_peer.questions.store import decode_head
from stream_peer.settings.feed.document import load_document
from tests.unit.questions.question_log import (
    DAY,
    GRACE,
    HOUR,
    SECOND,
    T0,
    Partition,
    book,
    broadcast,
    event,
    forecast,
    forget,
    question,
    records,
    resolution,
    settings_event,
    signed,
    stage,
    tick,
)

CLOSE = T0 + 2 * DAY


def opened(**defaults: Any) -> Partition:
    """A partition with one question, open for two days, and forecasts of two experts."""
    partition = Partition(**defaults)
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    partition.send(forecast("ann", 0.7, T0 + HOUR), forecast("bob", 0.2, T0 + HOUR), now=T0 + HOUR)
    return partition


def closed(**defaults: Any) -> Partition:
    """The same after its close."""
    partition = opened(**defaults)
    partition.pass_to(CLOSE + GRACE)
    return partition


def reasons(outputs: list[Output]) -> list[str]:
    return [dict(output.headers)["stream-peer-reason"].decode() for output in outputs]


# --- rounds ---


def test_a_round_is_emitted_once_its_boundary_and_the_grace_have_passed() -> None:
    partition = opened()

    too_early = partition.pass_to(CLOSE + GRACE - 1)
    in_time = partition.pass_to(CLOSE + GRACE)
    afterwards = partition.pass_to(CLOSE + 2 * GRACE)

    assert too_early == afterwards == []
    assert in_time == [
        Round(
            src=Source("forecast-events", 0, 0, 4, 0),
            feed="econ",
            question_id="q",
            boundary=CLOSE,
            final=True,
            experts=["ann", "bob"],
            probabilities=[0.7, 0.2],
        )
    ]


def test_a_round_goes_to_the_partition_of_its_feed_with_the_time_of_its_cause() -> None:
    partition = opened()

    (output,) = partition.send(tick(CLOSE + GRACE), now=CLOSE + DAY)

    assert output.topic == topics.FEED_LOG
    assert output.key == b"econ"
    assert output.partition == partition_of("econ", 4)
    assert output.timestamp == CLOSE + DAY


def test_boundaries_come_every_round_every_and_at_the_close() -> None:
    partition = opened(round_every="18h")

    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + 18 * HOUR, T0 + 36 * HOUR, CLOSE]


def test_the_quorum_makes_a_boundary_of_its_own() -> None:
    partition = opened(quorum=3)

    partition.send(forecast("cyd", 0.5, T0 + 5 * HOUR), now=T0 + 5 * HOUR)
    partition.pass_to(T0 + 6 * HOUR)

    assert partition.told.forecasts() == {T0 + 5 * HOUR: {"ann": 0.7, "bob": 0.2, "cyd": 0.5}}


def test_an_earlier_quorum_found_late_replaces_the_one_emitted() -> None:
    partition = opened(quorum=3)
    partition.send(forecast("cyd", 0.5, T0 + 5 * HOUR), now=T0 + 5 * HOUR)
    partition.pass_to(T0 + 6 * HOUR)

    partition.send(forecast("dee", 0.4, T0 + 3 * HOUR))

    assert partition.told.forecasts() == {T0 + 3 * HOUR: {"ann": 0.7, "bob": 0.2, "dee": 0.4}}


def test_a_withdrawn_forecast_is_absent() -> None:
    partition = opened()

    partition.send(forecast("ann", None, T0 + 2 * HOUR), now=T0 + 2 * HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert partition.told.forecasts() == {CLOSE: {"bob": 0.2}}


def test_nothing_is_emitted_where_nobody_stands_and_a_round_that_loses_everybody_is_withdrawn() -> None:
    partition = Partition()
    partition.send(question(opens_at=T0, closes_at=CLOSE))
    empty = partition.pass_to(CLOSE + GRACE)
    partition.send(forecast("ann", 0.7, CLOSE - HOUR))

    emptied = records(partition.send(forecast("ann", None, CLOSE - HOUR)))

    assert empty == []
    assert [type(record) for record in emptied] == [RoundWithdrawn]
    assert partition.told.rounds == {}


def test_many_forecasts_of_one_message_are_the_same_as_one_each() -> None:
    one_each = opened()
    together = Partition()
    together.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    many = event("forecasts", question_id="q", at=T0 + HOUR, forecasts={"bob": 0.2, "ann": 0.7})
    together.send(many, now=T0 + HOUR)

    one_each.pass_to(CLOSE + GRACE)
    together.pass_to(CLOSE + GRACE)

    assert one_each.told.rounds == together.told.rounds


def test_a_forecast_may_come_before_its_question() -> None:
    partition = Partition()
    partition.send(forecast("ann", 0.7, T0))

    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), now=T0 + HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert partition.told.rounds == {("econ", "q", CLOSE): (True, 1.0, {"ann": 0.7})}


def test_without_a_stated_opening_the_first_forecast_opens() -> None:
    partition = Partition(round_every="1d")
    partition.send(forecast("ann", 0.7, T0 - 2 * HOUR), forecast("bob", 0.4, T0 - 3 * HOUR))

    partition.pass_to(T0 + DAY)

    assert partition.told.forecasts() == {T0 + 21 * HOUR: {"ann": 0.7, "bob": 0.4}}


def test_the_weight_of_a_question_is_in_its_rounds() -> None:
    partition = closed()

    (changed,) = records(partition.send(question(weight=0.25)))

    assert isinstance(changed, Round)
    assert changed.weight == 0.25


@pytest.mark.case("C27")
def test_a_round_over_the_limit_of_the_broker_is_split_by_expert() -> None:
    partition = Partition()
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    names = [f"{number:0200d}" for number in range(9_000)]
    for start in range(0, 9_000, 3_000):
        many = dict.fromkeys(names[start : start + 3_000], 0.25)
        partition.send(event("forecasts", question_id="q", at=T0, forecasts=many))

    outputs = partition.send(tick(CLOSE + GRACE), now=CLOSE + GRACE)

    rounds = [record for record in records(outputs) if isinstance(record, Round)]
    assert [name for record in rounds for name in record.experts] == names
    assert [(record.part, record.parts, record.src.index) for record in rounds] == [(0, 3, 0), (1, 3, 1), (2, 3, 2)]
    assert all(len(output.value or b"") <= 900_000 for output in outputs)
    assert all(record.final for record in rounds)


# --- schedule edits ---


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


# --- the clock ---


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


# --- settings ---


def test_settings_apply_from_their_place_on() -> None:
    partition = opened()

    partition.apply({"defaults": {"round_every": "1d"}})
    partition.restart(stage())
    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + DAY, CLOSE]


def test_a_question_keeps_the_terms_of_its_first_round() -> None:
    partition = opened()
    partition.apply({"defaults": {"round_every": "1d"}})
    partition.pass_to(T0 + DAY + GRACE)

    partition.now += 1
    partition.apply({"defaults": {"round_every": "5h", "grace": "1h", "max_open": "25h", "quorum": 1}})
    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + DAY, CLOSE]


@pytest.mark.case("C14")
def test_a_question_whose_feed_is_learnt_late_has_the_terms_of_its_feed_as_if_it_had_been_known_at_once() -> None:
    document = {"defaults": {"round_every": "1d"}, "feeds": {"econ": {"round_every": "18h"}}}
    late, at_once = Partition(stage()), Partition(stage())
    opening, named = question(opens_at=T0, closes_at=CLOSE, at=T0), question(feed="econ", at=T0)
    for partition, first in ((late, [opening]), (at_once, [opening, named])):
        partition.apply(document)
        partition.send(*first, forecast("ann", 0.7, T0))
        partition.pass_to(T0 + DAY + GRACE)
    under_default_terms = list(late.told.rounds)

    late.send(named)
    for partition in (late, at_once):
        partition.restart(stage())
        partition.pass_to(CLOSE + GRACE)

    assert under_default_terms == [("default", "q", T0 + DAY)]
    assert late.told.rounds == at_once.told.rounds
    assert list(at_once.told.forecasts()) == [T0 + 18 * HOUR, T0 + 36 * HOUR, CLOSE]


def test_settings_that_make_a_boundary_due_emit_it_at_once() -> None:
    partition = opened()
    partition.pass_to(T0 + DAY)

    caused = records(partition.apply({"feeds": {"econ": {"round_every": "12h"}}}))

    assert [record.boundary for record in caused if isinstance(record, Round)] == [T0 + 12 * HOUR]


def test_faulty_settings_are_refused_and_change_nothing() -> None:
    partition = opened()

    refused = partition.apply({"defaults": {"round_every": "often"}})

    assert reasons(refused) == ["settings-invalid"]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("trace", b"1")],
        [(SOURCE_HEADER, b"control-events")],
        [source_header(Source(topics.CONTROL_EVENTS, 0, 0, 17, 0))],
        signed(b"something else", Source(topics.CONTROL_EVENTS, 0, 0, 17, 0)),
        signed(settings_event({"defaults": {"round_every": "1d"}}), Source(topics.FORECAST_EVENTS, 3, 0, 17, 0)),
    ],
)
def test_settings_that_did_not_come_by_control_events_are_refused_and_change_nothing(headers: Headers) -> None:
    partition = opened()

    refused = partition.send(settings_event({"defaults": {"round_every": "1d"}}), headers=headers)
    partition.pass_to(CLOSE + GRACE)

    assert reasons(refused) == ["unexpected-type"]
    assert b"stream-peer settings apply" in dict(refused[0].headers)["__streams.errors.message"]
    assert list(partition.told.forecasts()) == [CLOSE]


def test_a_repeated_broadcast_of_settings_is_a_duplicate() -> None:
    partition = Partition()

    for _ in range(2):
        partition.send(settings_event({}), source=broadcast(7))

    assert partition.count("event", "settings") == partition.count("duplicate") == 1


# --- refusals, forwarding, repeats ---


def test_times_before_2000_are_taken_in_a_historical_feed_alone() -> None:
    nineties = 800_000_000_000
    partition = Partition(now=T0)
    partition.apply({"feeds": {"old": {"history": True}}})

    live, old = (
        partition.send(
            question(name, feed=feed, opens_at=nineties, closes_at=nineties + DAY),
            *(forecast(e, 0.7, nineties + HOUR, name) for e in "abc"),
            resolution(1, nineties + 2 * DAY, name),
        )
        for name, feed in (("p", "live"), ("q", "old"))
    )

    assert reasons(live) == ["time-range"] * 5
    assert {output.topic for output in old} == {topics.FEED_LOG}
    assert [type(record) for record in records(old)].count(OutcomeRevealed) == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        (b"\xff", "not-json"),
        (b'{"type":"poll"}', "unknown-type"),
        (event("feed", feed="econ", reset=True), "unexpected-type"),
        (forecast("ann", 70, T0), "probability-range"),
        (resolution(0.49, T0), "outcome-unknown"),
        (forecast("ann", 0.5, 1_000_000), "time-range"),
        (question(closes_at=T0 + 11 * 365 * DAY), "time-range"),
        (event("tick", now=12), "time-range"),
    ],
)
def test_bad_input_becomes_a_dead_letter_and_leaves_no_trace(value: bytes | None, reason: str) -> None:
    partition = Partition()

    refused = partition.send(value)

    assert reasons(refused) == [reason]
    assert partition.count("dead-letter", reason) == 1
    assert partition.stage.snapshot().entries == {}


@pytest.mark.case("C24")
def test_a_key_that_is_not_utf8_is_refused() -> None:
    partition = Partition()
    bad = forecast("ann", 0.5, T0)

    partition.stage.step(_record(0, b"\x00\xff\x85", bad), partition.effects)
    partition.stage.step(_record(1, "é".encode() * 4096, bad), partition.effects)

    assert reasons(partition.effects.outputs) == ["key-not-utf8"]
    assert list(partition.stage.snapshot().entries) == [b"q/q"]


@pytest.mark.case("C25")
def test_an_event_on_the_wrong_partition_is_forwarded_once_and_untouched() -> None:
    home = partition_of("q", 8)
    wrong = Partition(stage(partition=(home + 1) % 8, partitions=8))
    right = Partition(stage(partition=home, partitions=8))
    value = forecast("ann", 0.7, T0)

    (forwarded,) = wrong.send(value, headers=[("trace", b"1")])
    right.send(forwarded.value, headers=forwarded.headers)
    right.send(forwarded.value, headers=forwarded.headers)

    assert forwarded.topic == topics.FORECAST_EVENTS
    assert (forwarded.key, forwarded.value, forwarded.partition) == (b"key", value, home)
    assert forwarded.headers[0] == ("trace", b"1")
    assert wrong.count("forwarded") == 1
    assert wrong.stage.clock == 0
    assert right.count("event", "forecast") == right.count("duplicate") == 1


@pytest.mark.case("C25")
def test_a_forwarded_event_is_never_forwarded_again() -> None:
    home = partition_of("q", 8)
    wrong = Partition(stage(partition=(home + 1) % 8, partitions=8), number=(home + 1) % 8)

    kept = wrong.send(forecast("ann", 0.7, T0), source=Source(topics.FORECAST_EVENTS, (home + 2) % 8, 0, 17, 0))
    next_one = wrong.send(forecast("ann", 0.8, T0))

    assert kept == []
    assert [output.topic for output in next_one] == [topics.FORECAST_EVENTS]
    assert wrong.count("event", "forecast") == 1


def test_a_record_that_a_mirror_copied_with_its_headers_is_an_ordinary_one() -> None:
    """Of a forwarded event at its home, and at the wrong partition, from where it is forwarded as any other."""
    home = partition_of("q", 8)
    away = (home + 1) % 8
    there = Signatures((b"", b"of this topic"), "cluster", "former topic")
    value, source = forecast("ann", 0.7, T0), Source(topics.FORECAST_EVENTS, away, 0, 10**12, 0)
    copied = there.signed(Output(topics.FORECAST_EVENTS, b"key", value, 0, home, (("trace", b"1"),)), source).headers
    at_home, astray = (Partition(stage(partition=number, partitions=8), number=number) for number in (home, away))

    for probability in (0.7, 0.8):
        at_home.send(forecast("ann", probability, T0), headers=copied)
    (forwarded,) = astray.send(value, headers=copied)

    assert at_home.count("event", "forecast") == at_home.count("unsigned", "event") == 2
    assert at_home.count("duplicate") == 0
    assert len(at_home.effects.warnings) == 1
    assert [name for name, _ in forwarded.headers] == ["trace", SOURCE_HEADER, MAC_HEADER]
    assert at_home.send(forwarded.value, headers=forwarded.headers) == []
    assert at_home.count("event", "forecast") == 3


def test_headers_of_ours_without_a_signature_are_one_warning_an_hour() -> None:
    partition = Partition()
    forged = [source_header(Source(topics.FORECAST_EVENTS, 3, 0, 17, 0))]

    for minutes in (0, 1, 59, 60, 61):
        partition.send(forecast("ann", 0.5, T0), headers=forged, now=T0 + minutes * 60 * SECOND)

    assert [(warning.code, warning.feed) for warning in partition.effects.warnings] == [("unsigned-record", "")] * 2
    assert "prod.forecast-events-0, offset 0" in partition.effects.warnings[0].message


@pytest.mark.parametrize("headers", [(), (("trace", b"1"),), signed(b"another value")])
def test_a_tick_of_anybody_else_is_refused_and_moves_no_clock(headers: Headers) -> None:
    partition = opened()
    before = partition.stage.clock

    value = tick(CLOSE + GRACE)
    partition.stage.step(LogRecord(9, CLOSE + DAY, b"key", value, headers), partition.effects)

    assert reasons(partition.effects.outputs) == ["unexpected-type"]
    assert partition.count("unsigned", "tick") == 1
    assert partition.stage.clock == before


def test_what_was_seen_is_remembered_over_a_restart() -> None:
    home = partition_of("q", 8)
    partition = Partition(stage(partition=home, partitions=8), number=home)
    source = Source(topics.FORECAST_EVENTS, (home + 1) % 8, 0, 17, 0)
    partition.send(forecast("ann", 0.7, T0), source=source)

    partition.restart(stage(partition=home, partitions=8))
    partition.send(forecast("ann", 0.7, T0), source=source)

    assert partition.count("duplicate") == 1


@pytest.mark.parametrize(
    "source",
    [
        Source(topics.CONTROL_EVENTS, 0, 9, 10**9, 0),
        Source(topics.FORECAST_EVENTS, 0, 9, 10**9, 0),
        Source(topics.FORECAST_EVENTS, 64, 9, 10**9, 0),
        Source(topics.FORECAST_EVENTS, -1, 9, 10**9, 0),
    ],
)
def test_a_source_that_no_forecast_can_have_hides_nothing_and_is_not_kept(source: Source) -> None:
    partition = Partition()

    for probability in (0.7, 0.8):
        partition.send(forecast("ann", probability, T0), source=source)
    partition.send(settings_event({}), source=broadcast(7))

    assert partition.count("event", "forecast") == 2
    assert partition.count("event", "settings") == 1
    assert decode_head(partition.stage.snapshot().head).seen == [Source(topics.CONTROL_EVENTS, 0, 0, 7, 0)]


def test_settings_and_ticks_are_never_forwarded() -> None:
    partition = Partition(stage(partition=5, partitions=8), number=5)

    caused = [*partition.apply({}), *partition.send(tick(T0))]

    assert caused == []
    assert partition.count("event", "settings") == partition.count("event", "tick") == 1


# --- state ---


def test_the_history_goes_after_its_time_and_a_stub_finds_the_feed_of_a_late_resolution() -> None:
    partition = closed()
    partition.restart(stage())
    partition.pass_to(CLOSE + GRACE + 31 * DAY)
    partition.restart(stage())

    stored = partition.stored[b"q/q"]
    told = records(partition.send(resolution("no", CLOSE + 400 * DAY), now=CLOSE + 400 * DAY))
    partition.restart(stage())
    corrected = records(partition.send(resolution("yes", CLOSE + 401 * DAY), now=CLOSE + 401 * DAY))

    assert len(stored) < 100
    assert [(record.feed, record.outcome) for record in told if isinstance(record, OutcomeRevealed)] == [("econ", 0)]
    assert [record.outcome for record in corrected if isinstance(record, OutcomeRevealed)] == [1]


@pytest.mark.case("C34")
def test_a_stub_goes_when_no_outcome_can_matter_any_more() -> None:
    partition = closed(ledger_for="100d", retract_for="10d")
    since = CLOSE + GRACE + 31 * DAY
    partition.pass_to(since)
    partition.restart(stage(book(ledger_for="100d", retract_for="10d")))

    in_time = partition.send(resolution(1, since + 100 * DAY - 1), now=since + 100 * DAY - 1)
    partition.restart(stage(book(ledger_for="100d", retract_for="10d")))
    partition.pass_to(since + 110 * DAY - 1)
    too_late = partition.send(resolution("open", since + 110 * DAY - 1), now=since + 110 * DAY - 1)
    unknown = partition.count("unknown-question")
    partition.pass_to(since + 300 * DAY)
    partition.restart(stage(book(ledger_for="100d", retract_for="10d")))

    assert [record.outcome for record in records(in_time) if isinstance(record, OutcomeRevealed)] == [1]
    assert too_late == []
    assert unknown == 1
    assert partition.stored == {}
    assert len(partition.stage._store.stubs) == 0


def test_a_question_that_comes_again_after_its_stub_has_ended_is_as_if_new() -> None:
    partition = closed(ledger_for="10d")
    partition.pass_to(CLOSE + GRACE + 31 * DAY)
    again = CLOSE + GRACE + 41 * DAY
    partition.pass_to(again)
    before = partition.told.rounds

    partition.send(question(feed="econ", opens_at=again, closes_at=again + DAY), now=again)
    partition.restart(stage(book(ledger_for="10d")))
    partition.send(forecast("ann", 0.4, again + HOUR), now=again + HOUR)
    partition.pass_to(again + DAY + GRACE)

    assert partition.count("too-late") == 0
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2}, again + DAY: {"ann": 0.4}}
    assert before.items() <= partition.told.rounds.items()
    assert list(partition.stored) == [b"q/q"]


def test_other_settings_change_how_long_stubs_stay() -> None:
    partition = closed(ledger_for="10d")
    since = CLOSE + GRACE + 31 * DAY
    partition.pass_to(since)

    partition.apply({"feeds": {"econ": {"ledger_for": "50d"}}})
    partition.pass_to(since + 49 * DAY)
    told = partition.send(resolution(1, since), now=since + 49 * DAY)

    assert len(records(told)) == 1


@pytest.mark.case("C34")
def test_stubs_of_the_release_before_count_from_when_they_were_first_met() -> None:
    partition = closed(ledger_for="10d")
    since = CLOSE + GRACE + 31 * DAY
    partition.pass_to(since)
    partition.restart(stage())
    feed, truth, told, _ = msgspec.msgpack.decode(partition.stored[b"q/q"])[1:]
    partition.stored[b"q/q"] = msgspec.msgpack.encode(["s", feed, truth, told])
    head = {**msgspec.msgpack.decode(partition.stage.snapshot().head), "stubs_since": None}

    settings = book(ledger_for="10d")
    partition.stage = stage(settings)
    partition.stage.load(msgspec.msgpack.encode(head), partition.stored)
    partition.pass_to(since + 5 * DAY)
    partition.restart(stage(settings))
    partition.pass_to(since + 10 * DAY - 1)
    still = partition.stage._store.stub("q", partition.stage.clock)
    partition.pass_to(since + 10 * DAY)

    assert still is not None
    assert partition.stage._store.stub("q", partition.stage.clock) is None


def test_forecasts_on_a_stub_are_counted_as_too_late() -> None:
    partition = closed()
    partition.pass_to(CLOSE + GRACE + 31 * DAY)

    caused = partition.send(forecast("ann", 0.5, CLOSE), question(closes_at=CLOSE + DAY))

    assert caused == []
    assert partition.count("too-late") == 2


@pytest.mark.case("C34")
def test_a_question_without_rounds_leaves_nothing_behind() -> None:
    partition = Partition()
    partition.send(question(opens_at=T0, closes_at=CLOSE))
    partition.restart(stage())

    partition.pass_to(CLOSE + 31 * DAY)
    partition.restart(stage())

    assert partition.stored == {}


def test_an_expert_keeps_sixty_four_entries_and_those_of_emitted_rounds() -> None:
    partition = opened(round_every="1h", history=True)

    for minute in range(1, 200):
        at = T0 + HOUR + minute * 60 * SECOND
        partition.send(forecast("ann", minute / 200, at), now=at)
    before = partition.told.rounds
    partition.send(question(weight=0.5))

    entries = partition.stage._live["q"].history
    assert len(entries) == 64 + 1
    assert partition.count("history-trimmed") == 200 - 64
    assert [count for _, count in partition.effects.busy_experts.items()] == [200 - 64]
    assert {key: content[2] for key, content in before.items()} == {
        key: content[2] for key, content in partition.told.rounds.items()
    }


def test_snapshots_hold_what_changed_since_the_last_one() -> None:
    partition = opened()
    partition.send(question("other", opens_at=T0))

    first = partition.stage.snapshot()
    partition.send(forecast("ann", 0.5, T0 + HOUR))
    second = partition.stage.snapshot()

    assert set(first.entries) == {b"q/q", b"q/other"}
    assert set(second.entries) == {b"q/q"}
    assert partition.stage.snapshot().entries == {}


@pytest.mark.case("C27")
def test_a_question_of_twenty_thousand_experts_is_stored_in_pieces_below_the_limit() -> None:
    partition = Partition()
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    names = [f"expert-{number:05d}" for number in range(20_000)]
    partition.send(event("forecasts", question_id="q", at=T0, forecasts=dict.fromkeys(names[:5_000], 0.25)))
    partition.restart(stage())
    for start in range(5_000, 20_000, 5_000):
        many = dict.fromkeys(names[start : start + 5_000], 0.25)
        partition.send(event("forecasts", question_id="q", at=T0, forecasts=many))
        partition.restart(stage())
    partition.send(forecast("expert-00007", 0.75, T0 + HOUR), now=T0 + HOUR)
    touched = partition.stage.snapshot()
    partition.stored.update({key: value for key, value in touched.entries.items() if value is not None})
    partition.restart(stage())

    partition.pass_to(CLOSE + GRACE)

    assert max(map(len, partition.stored.values())) < 380_000
    assert len(touched.entries) == 2
    assert partition.told.forecasts()[CLOSE] == {**dict.fromkeys(names, 0.25), "expert-00007": 0.75}
    assert len({key for key in partition.stored if key.startswith(b"c/")}) == 8


@pytest.mark.case("C29")
def test_where_the_topic_was_made_anew_state_goes_on_and_sources_name_the_new_topic() -> None:
    partition = closed()
    partition.restart(stage())
    partition.stage.reincarnate(77, 0, keep=True)
    last, partition.offset = partition.offset - 1, 0

    told = [*partition.send(resolution(1, CLOSE), resolution(0, CLOSE)), *partition.send(resolution(None, CLOSE))]
    partition.offset = last
    same_offset = partition.send(resolution(1, CLOSE))
    partition.restart(stage())
    later = partition.send(resolution(0, CLOSE))

    sources = [record.src for record in records([*told, *same_offset, *later])]
    assert [source.incarnation for source in sources] == [77] * 5
    assert [(source.offset, source.index) for source in sources] == [(0, 0), (1, 0), (2, 0), (last, 0), (last + 1, 0)]


@pytest.mark.case("C29")
def test_numbering_begins_again_where_an_offset_of_the_new_topic_is_the_last_of_the_former() -> None:
    partition = closed()
    partition.send(resolution(1, CLOSE))

    partition.stage.reincarnate(77, 0, keep=True)
    partition.offset -= 1
    (told,) = records(partition.send(resolution(0, CLOSE)))

    assert (told.src.incarnation, told.src.offset, told.src.index) == (77, partition.offset - 1, 0)


@pytest.mark.case("C29")
def test_where_state_is_dropped_with_the_topic_what_it_cannot_tell_stays() -> None:
    partition = Partition()
    partition.apply({"defaults": {"round_every": "1d"}})
    partition.control(forget("zoe"))
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), forecast("ann", 0.7, T0))
    partition.send(question("old", feed="econ", opens_at=T0, closes_at=T0), forecast("ann", 0.7, T0, "old"))
    partition.pass_to(T0 + 40 * DAY)
    partition.send(question("new", feed="econ", opens_at=T0, closes_at=T0 + 50 * DAY))
    partition.restart(stage())
    held = set(partition.stored)

    partition.stage.reincarnate(77, 0, keep=False)
    gone = partition.stage.snapshot()
    partition.stored.clear()
    partition.stage = stage()
    partition.stage.load(gone.head, {})
    clock = partition.stage.clock
    refused = partition.send(forecast("zoe", 0.7, T0, feed="econ"), now=T0)
    partition.send(forecast("ann", 0.4, T0, feed="econ"))
    partition.pass_to(T0 + DAY + GRACE)

    assert gone.entries == dict.fromkeys(held)
    assert len(held) == 3
    assert clock == 0
    assert reasons(refused) == ["forgotten"]
    assert partition.told.forecasts()[T0 + DAY] == {"ann": 0.4}
    assert partition.records[-1].src.incarnation == 77


def test_state_of_another_schema_or_torn_state_is_an_error_that_says_so() -> None:
    snapshot = opened().stage.snapshot()

    with pytest.raises(StateError, match="head"):
        stage().load(b"\xc1", {})
    with pytest.raises(StateError, match="schema 3"):
        stage().load(msgspec.msgpack.encode({**msgspec.msgpack.decode(snapshot.head), "schema": 3}), {})
    with pytest.raises(StateError, match="question 'q'"):
        stage().load(snapshot.head, {b"q/q": b"\x01"})


def test_named_feeds_have_settings_of_their_own() -> None:
    book = load_document({"feeds": {"econ": {"round_every": "1d"}}})
    partition = Partition(stage(book))
    for name, feed in (("q", "econ"), ("r", "sport")):
        partition.send(question(name, feed=feed, opens_at=T0), forecast("ann", 0.5, T0, name))

    partition.pass_to(T0 + DAY + GRACE)

    assert [key[1] for key in partition.told.rounds] == ["q"]


def _record(offset: int, key: bytes, value: bytes) -> LogRecord:
    return LogRecord(offset, T0, key, value)


# --- messages of many forecasts, of which some cannot be used ---


def test_of_a_message_the_forecasts_that_can_be_used_count_and_one_dead_letter_names_the_others() -> None:
    partition = opened()
    panel: dict[str, Any] = {"gfs": 0.2, "ecmwf": 0.4, "arpege": 0.3, "icon": "missing", "llama": 1.5, "": 0.1}
    message = event("forecasts", question_id="q", at=T0 + HOUR, forecasts=panel)

    (letter,) = partition.send(message)
    partition.pass_to(CLOSE + GRACE)

    assert reasons([letter]) == ["wrong-type"]
    assert letter.value == message
    assert dict(letter.headers)["__streams.errors.message"].decode() == (
        "3 of 6 forecasts cannot be used; 'icon' \"missing\": Expected `float | null`, got `str`; 'llama' 1.5: "
        "Expected `float` <= 1.0 (percent? convert at the source); '' 0.1: the expert's id has 0 bytes, not 1 to 256"
    )
    used = {"gfs": 0.2, "ecmwf": 0.4, "arpege": 0.3}
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2, **used}}
    assert (partition.count("event", "forecasts"), partition.count("dead-letter", "wrong-type")) == (1, 1)


def test_of_many_entries_that_cannot_be_used_the_first_are_named_and_the_rest_counted() -> None:
    partition = opened()
    panel: dict[str, Any] = {"good": 0.5, **{f"bad{number}": 2 for number in range(30)}}

    (letter,) = partition.send(event("forecasts", question_id="q", at=T0 + HOUR, forecasts=panel))

    message = dict(letter.headers)["__streams.errors.message"].decode()
    assert message.startswith("30 of 31 forecasts cannot be used; 'bad0' 2: ")
    assert message.endswith("; and 22 more")


def test_a_message_of_which_nothing_can_be_used_or_whose_question_is_elsewhere_is_told_of_once() -> None:
    one, other = Partition(stage(partition=0, partitions=2)), Partition(stage(partition=1, partitions=2), number=1)
    bad = event("forecasts", question_id="q", at=T0, forecasts={"a": "x", "b": []})
    mixed = event("forecasts", question_id="q", at=T0, forecasts={"a": "x", "b": 0.5})

    told = [reasons(partition.send(bad)) for partition in (one, other)]
    outputs = [partition.send(mixed) for partition in (one, other)]

    assert told == [["wrong-type"], ["wrong-type"]]
    assert sorted(output.topic for sent in outputs for output in sent) == [topics.DEAD_LETTERS, topics.FORECAST_EVENTS]


def test_a_dead_letter_of_some_entries_tells_nothing_of_who_is_forgotten() -> None:
    partition = opened()
    partition.control(forget("zoe"))
    panel: dict[str, Any] = {"gfs": 0.2, "icon": "missing", "zoe": 0.5}

    letters = partition.send(event("forecasts", question_id="q", at=T0 + HOUR, forecasts=panel))

    assert reasons(letters) == ["wrong-type", "forgotten"]
    assert all((letter.key, letter.value) == (None, None) for letter in letters)
    assert b"icon" not in dict(letters[0].headers)["__streams.errors.message"]


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


# --- fields that a type does not have ---


def test_fields_that_a_type_does_not_have_are_accepted_and_counted_by_name_and_feed() -> None:
    partition = opened()

    partition.send(
        resolution(1, T0 + 2 * HOUR, preliminary=True),
        forecast("cyd", 0.5, T0 + HOUR, "other", feed="sport", confidence=3, source={"a": [1]}),
        forecast("cyd", 0.5, T0 + HOUR, "other", confidence=3),
    )

    assert partition.stage._live["q"].resolved
    assert partition.effects.unknown_fields == {
        ("econ", "resolution.preliminary"): 1,
        ("sport", "forecast.confidence"): 2,
        ("sport", "forecast.source"): 1,
    }

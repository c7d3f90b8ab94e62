"""Groups of questions: their events count as if each part had its own, wherever they arrive and whoever takes over."""

from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.groups import home_of
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import Milliseconds
from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    book,
    event,
    forecast,
    question,
    reasons,
    resolution,
    stage,
)


def group_forecast(expert: str, at: Milliseconds, group: str = "chair", **said: Any) -> bytes:
    return event("forecast", question_id=group, expert_id=expert, at=at, **said)


def became(said: object, at: Milliseconds, **more: Any) -> bytes:
    """The resolution of a group: null and "open" are outcomes, a text is an option, anything else a value."""
    if said is None or said == "open":
        return resolution(said, at, "chair", **more)
    return event(
        "resolution", question_id="chair", at=at, **{"option" if isinstance(said, str) else "value": said}, **more
    )


def elected(**defaults: Any) -> Partition:
    """Two experts on a question with three options, after its close."""
    partition = Partition(**defaults)
    partition.send(question("chair", feed="econ", opens_at=T0, closes_at=CLOSE, options=["Ada", "Bo", "Cy"]))
    partition.send(
        group_forecast("ann", T0 + HOUR, options={"Ada": 0.5, "Bo": 0.3, "Cy": 0.2}),
        group_forecast("bob", T0 + HOUR, options={"Ada": 0.7, "Bo": 0.1}),
        now=T0 + HOUR,
    )
    partition.pass_to(CLOSE + GRACE)
    return partition


def test_each_option_is_a_question_with_the_forecasts_and_schedule_of_its_group() -> None:
    partition = elected(round_every=None)

    assert partition.told.rounds == {
        ("econ", "chair::=Ada", CLOSE): (True, 1.0, {"ann": 0.5, "bob": 0.7}),
        ("econ", "chair::=Bo", CLOSE): (True, 1.0, {"ann": 0.3, "bob": 0.1}),
        ("econ", "chair::=Cy", CLOSE): (True, 1.0, {"ann": 0.2}),
    }


def test_a_group_is_what_its_parts_sent_one_by_one_are() -> None:
    one_by_one = Partition(round_every=None)
    for name in ("Ada", "Bo", "Cy"):
        one_by_one.send(question(f"chair::={name}", feed="econ", opens_at=T0, closes_at=CLOSE))
    for name, ann, bob in (("Ada", 0.5, 0.7), ("Bo", 0.3, 0.1), ("Cy", 0.2, None)):
        one_by_one.send(forecast("ann", ann, T0 + HOUR, f"chair::={name}"), now=T0 + HOUR)
        if bob is not None:
            one_by_one.send(forecast("bob", bob, T0 + HOUR, f"chair::={name}"))
    one_by_one.pass_to(CLOSE + GRACE)

    assert elected(round_every=None).told.rounds == one_by_one.told.rounds


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("Bo", {"Ada": 0, "Bo": 1, "Cy": 0}),
        ("Ada", {"Ada": 1, "Bo": 0, "Cy": 0}),
        (None, dict.fromkeys(("Ada", "Bo", "Cy"), "annulled")),
    ],
)
def test_the_outcome_of_a_group_is_one_of_each_option(outcome: object, told: dict[str, object]) -> None:
    partition = elected()

    partition.send(became(outcome, CLOSE))

    assert partition.told.outcomes == {("econ", f"chair::={name}"): one for name, one in told.items()}


def test_a_resolution_of_a_group_can_be_replaced_and_retracted() -> None:
    partition = elected()

    partition.send(became("Bo", CLOSE), became("Cy", CLOSE + 1))
    replaced = dict(partition.told.outcomes)
    partition.send(became("open", CLOSE + 2))

    assert [replaced["econ", f"chair::={name}"] for name in ("Ada", "Bo", "Cy")] == [0, 0, 1]
    assert set(partition.told.outcomes.values()) == {"open"}


@pytest.mark.parametrize(
    "said", [{"option": "Dee"}, {"option": "ada"}, {"value": 1}, {"outcome": 1}, {"outcome": "no"}, {"outcome": 0.49}]
)
def test_an_outcome_that_is_none_of_the_options_is_refused_and_changes_nothing(said: dict[str, object]) -> None:
    partition = elected()

    refused = partition.send(event("resolution", question_id="chair", at=CLOSE, **said))

    assert reasons(refused) == ["outcome-unknown"]
    assert partition.told.outcomes == {}


@pytest.mark.parametrize(
    ("cdf", "outcome", "told"),
    [
        ({"2": 0.1, "2.50": 0.4, "3": 0.9}, 2.5, {"2": 0, "2.5": 1, "3": 1}),
        ({"2": 0.1, "2.50": 0.4, "3": 0.9}, 7, {"2": 0, "2.5": 0, "3": 0}),
        ({"-1e3": 0.2, "0": 0.2}, -1000, {"-1000": 1, "0": 1}),
        ({"2026-06-30": 0.3, "2026-12-31": 0.8}, "2026-07-01T00:00Z", {"2026-06-30": 0, "2026-12-31": 1}),
    ],
)
def test_a_value_is_compared_with_each_threshold(
    cdf: dict[str, float], outcome: object, told: dict[str, object]
) -> None:
    partition = Partition()
    partition.send(question("cpi", opens_at=T0, closes_at=CLOSE), group_forecast("ann", T0, "cpi", cdf=cdf))
    partition.pass_to(T0 + HOUR)

    partition.send(event("resolution", question_id="cpi", value=outcome, at=T0 + HOUR))
    partition.pass_to(T0 + HOUR + GRACE)

    assert partition.told.outcomes == {("default", f"cpi::<={one}"): said for one, said in told.items()}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"value": "2026-07-01"}, "outcome-unknown"),
        ({"option": "2"}, "outcome-unknown"),
        ({"value": "nan"}, "wrong-type"),
        ({"value": True}, "wrong-type"),
        ({"value": "high"}, "wrong-type"),
        ({"value": 2, "option": "2"}, "contradictory"),
        ({}, "missing-field"),
    ],
)
def test_what_cannot_be_compared_with_the_thresholds_is_refused(said: dict[str, Any], reason: str) -> None:
    partition = Partition()
    partition.send(group_forecast("ann", T0, "cpi", cdf={"2": 0.1}))

    assert reasons(partition.send(event("resolution", question_id="cpi", at=T0, **said))) == [reason]
    assert not partition.told.outcomes


def test_an_option_that_comes_later_has_the_schedule_of_the_others() -> None:
    partition = Partition(round_every=None)
    partition.send(question("chair", feed="econ", opens_at=T0, closes_at=CLOSE, weight=0.5, options=["Ada"]))

    partition.send(group_forecast("ann", T0 + HOUR, options={"Ada": 0.6, "Bo": 0.4}), now=T0 + HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert partition.told.rounds["econ", "chair::=Bo", CLOSE] == (True, 0.5, {"ann": 0.4})


def test_an_option_that_comes_after_the_resolution_is_too_late() -> None:
    partition = elected()
    partition.send(became("Bo", CLOSE))

    partition.send(group_forecast("ann", CLOSE, options={"Dee": 0.6}))

    assert partition.count("too-late") == 1
    assert partition.stage.plan_of("chair::=Dee") is None


def test_a_question_event_of_a_known_group_moves_all_its_parts() -> None:
    partition = elected(round_every=None)

    partition.send(question("chair", closes_at=T0 + DAY, at=CLOSE + GRACE))

    assert {boundary for _, _, boundary in partition.told.rounds} == {T0 + DAY}


@pytest.mark.parametrize("wait", [0, 40 * DAY])
def test_the_next_owner_knows_the_group_alive_or_as_stubs(wait: Milliseconds) -> None:
    partition = elected(history_for="30d")
    partition.pass_to(CLOSE + GRACE + wait)
    partition.restart(stage(book(history_for="30d")))

    partition.send(became("Bo", CLOSE))

    assert partition.told.outcomes == {
        ("econ", "chair::=Ada"): 0,
        ("econ", "chair::=Bo"): 1,
        ("econ", "chair::=Cy"): 0,
    }


def test_a_group_whose_questions_are_gone_is_no_group() -> None:
    settings = {"history_for": "1d", "ledger_for": "10d", "retract_for": "10d"}
    partition = elected(**settings)
    partition.pass_to(CLOSE + 3 * DAY)
    partition.pass_to(CLOSE + 30 * DAY)

    assert reasons(partition.send(became("Bo", CLOSE))) == ["outcome-unknown"]


def test_events_of_a_group_and_of_its_parts_are_forwarded_to_the_partition_of_the_group() -> None:
    home = partition_of("chair", 8)
    other = next(number for number in range(8) if number != home)
    partition = Partition(stage(partition=other, partitions=8), number=other)

    outputs = partition.send(
        group_forecast("ann", T0, options={"Ada": 0.5}),
        forecast("ann", 0.5, T0, "chair::=Ada"),
        question("chair", options=["Ada"]),
        became("Ada", T0),
    )

    assert [(output.topic, output.partition) for output in outputs] == [(topics.FORECAST_EVENTS, home)] * 4
    assert home_of("chair::=Ada", 8) == home_of("chair::<=2", 8) == home


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"options": {"Ada": 50}}, "probability-range"),
        ({"options": {}}, "wrong-type"),
        ({"options": {str(n): 0.0 for n in range(201)}}, "wrong-type"),
        ({"options": {"a" * 256: 0.5}}, "id-length"),
        ({"options": {"a": 0.5}, "cdf": {"1": 0.5}}, "contradictory"),
        ({"cdf": {"1": 0.5, "2": 0.4}}, "contradictory"),
        ({"cdf": {"1": 0.5, "1.0": 0.5}}, "contradictory"),
        ({"cdf": {"1": 0.5, "2026-01-01": 0.6}}, "contradictory"),
        ({"cdf": {"high": 0.5}}, "wrong-type"),
        ({"options": {"a": 0.5}, "group": "chair::=b"}, "contradictory"),
    ],
)
def test_forecasts_that_make_no_sense_are_refused(said: dict[str, Any], reason: str) -> None:
    partition = Partition()

    assert reasons(partition.send(group_forecast("ann", T0, **said))) == [reason]
    assert partition.stage.open_questions == 0


def test_a_forecast_with_a_probability_is_of_one_question_whatever_else_it_has() -> None:
    partition = Partition()

    partition.send(forecast("ann", 0.5, T0, options={"Ada": 0.5}))

    assert partition.stage.plan_of("q") is not None
    assert partition.effects.unknown_fields == {("default", "forecast.options"): 1}


def test_a_forecast_of_a_group_may_have_unknown_fields_and_any_form_of_time() -> None:
    partition = Partition()

    sent = event("forecast", question_id="chair", expert_id="ann", options={"Ada": 0.5}, note="x")
    partition.send(sent[:-1] + b',"at":"2026-03-01 12:00"}')

    assert partition.stage.plan_of("chair::=Ada") is not None
    assert partition.effects.unknown_fields == {("default", "forecast.note"): 1}


def test_a_group_is_named_once_behind_all_that_a_record_causes_of_its_parts() -> None:
    partition = elected(round_every=None)
    partition.send(question("lone", feed="econ", opens_at=T0, closes_at=CLOSE), now=CLOSE)
    partition.send(forecast("ann", 0.5, CLOSE - 1, "lone"), became("Bo", CLOSE))
    partition.send(question("chair", feed="other", at=CLOSE + GRACE))

    told = [(type(one).__name__, one.feed, getattr(one, "group_id", None)) for one in partition.records]

    groups = [(place, *one[1:]) for place, one in enumerate(told) if one[0] == "GroupChanged"]
    assert [one[1:] for one in groups] == [("econ", "chair")] * 2 + [("econ", "chair"), ("other", "chair")]
    assert [told[place - 1][0] for place, *_ in groups] == [
        "Round",
        "OutcomeRevealed",
        "OutcomeRevealed",
        "GroupChanged",
    ]

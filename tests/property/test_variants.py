"""The promises of the feed stage under every variant of the mathematics."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.feed_log import ExpertChanged
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from tests.feed_histories import Changelog, expert, folded, log_of, newest, outcome, round_of, stage
from tests.feed_variants import LEARNERS, OF_THE_PATH, OF_THE_SUMS, VARIANTS, Event, Settings, crowd
from tests.hypothesis_profiles import examples
from tests.property.test_feed_stage import by_revision
from tests.property.test_feed_stage_twin import histories, with_controls

every_variant = pytest.mark.parametrize("chosen", VARIANTS.values(), ids=VARIANTS)
every_one_of_the_sums = pytest.mark.parametrize("chosen", OF_THE_SUMS.values(), ids=OF_THE_SUMS)


def after(events: list[Event], chosen: Settings) -> FeedStage:
    return folded(log_of(events), stage(**chosen))[0]


def experts(feed_stage: FeedStage) -> list[Any]:
    return feed_stage.views()["f"].weights.experts


def check_weights(feed_stage: FeedStage) -> None:
    weights = feed_stage.views()["f"].weights
    for kind in ("mix", "select"):
        values = [getattr(expert, kind) for expert in weights.experts]
        assert all(math.isfinite(value) and value >= 0.0 for value in values)
        assert not values or sum(values) == pytest.approx(1.0, abs=1e-9)
    assert 0.0 <= weights.error_rate.low <= weights.error_rate.high <= 0.5
    assert sum(value for value in (weights.mixer.mean, weights.mixer.peer)) <= 1.0 + 1e-9


@settings(max_examples=examples(100))
@given(st.one_of(histories, with_controls), st.sampled_from(list(VARIANTS)))
def test_weights_are_finite_and_sum_to_1_and_the_ledger_gives_the_sums(
    history: list[Event | ExpertChanged], name: str
) -> None:
    """Whoever is in teams or excluded."""
    feed_stage = stage(**VARIANTS[name])

    for record in log_of(history):
        feed_stage.step(record, Effects())
        if feed_stage.views():
            check_weights(feed_stage)

    assert feed_stage.agrees()


OWN_GROUP = [name for name, chosen in VARIANTS.items() if "group-a" in str(chosen) or "everybody" in str(chosen)]
APART = {name: chosen for name, chosen in VARIANTS.items() if name not in [*OWN_GROUP, "paper"]}


@pytest.mark.parametrize("chosen", APART.values(), ids=APART)
def test_nobody_is_scored_against_what_its_team_says(chosen: Settings) -> None:
    """Whatever the others of a team forecast, a member's own reference answer is the same."""
    team = [expert(f"e{k}", team="red") for k in (0, 3, 4)]
    history = [*team, *crowd(15)]
    asked = {f"e{k}": (0.55, 0.3, 0.8, 0.6, 0.7, 0.45, 0.6)[k] for k in range(7)}

    said = [own_answers(history, asked | {"e3": p, "e4": p}, chosen) for p in (0.01, 0.99)]

    assert [answers["e0"] for answers in said[0]] == [answers["e0"] for answers in said[1]]
    assert said[0] != said[1]


def own_answers(
    history: list[Event | ExpertChanged], asked: dict[str, float], chosen: Settings
) -> list[dict[str, int]]:
    """Own reference answers to six questions with the same forecasts, for which groups may be drawn anew."""
    questions = [f"asked {number}" for number in range(6)]
    _, effects = folded(log_of([*history, *(round_of(question, asked) for question in questions)]), stage(**chosen))
    scored = newest(effects.outputs, topics.PEER_LOSSES)
    return [{row["id"]: row["reference_answer"] for row in scored[q]["experts"]} for q in questions]


@every_variant
def test_a_crowd_gets_weights_that_sum_to_1(chosen: Settings) -> None:
    feed_stage = after(crowd(30), chosen)

    check_weights(feed_stage)
    assert len(experts(feed_stage)) == 10


@every_variant
def test_an_outcome_that_is_taken_back_leaves_sums_and_selection_as_if_it_had_never_come(chosen: Settings) -> None:
    """Fixed share, too, since it learns from reference answers only."""
    history = crowd(20)
    before = after(history, chosen)

    there_and_back = after([*history, outcome("q18", 1), outcome("q18", 0), outcome("q18", "open")], chosen)

    assert there_and_back.feeds.feed("f").buckets.sums.equals(before.feeds.feed("f").buckets.sums)
    assert [(e.id, e.select, e.peer_loss) for e in experts(there_and_back)] == [
        (e.id, e.select, e.peer_loss) for e in experts(before)
    ]


@pytest.mark.parametrize("chosen", [s for n, s in OF_THE_PATH.items() if "share" not in n])
def test_mixers_at_their_own_forecast_take_an_outcome_back_as_well(chosen: Settings) -> None:
    history = [event for event in crowd(20) if hasattr(event, "boundary")]  # without outcomes the safety net rests
    before = after(history, chosen)

    there_and_back = after([*history, outcome("q18", "annulled"), outcome("q18", "open")], chosen)

    expected = [pytest.approx(expert.mix, abs=1e-9) for expert in experts(before)]
    assert [expert.mix for expert in experts(there_and_back)] == expected


@every_variant
def test_bytes_do_not_depend_on_the_moments_of_publishing(chosen: Settings) -> None:
    log = log_of(crowd(12))
    feed_stage, every_record = stage(**chosen), Effects()
    for record in log:
        feed_stage.step(record, every_record)
        feed_stage.publish(every_record)

    _, at_the_end = folded(log, stage(**chosen))

    known = by_revision(every_record.outputs)
    assert by_revision(at_the_end.outputs).items() <= known.items()


@every_one_of_the_sums
def test_a_restart_changes_no_bytes(chosen: Settings) -> None:
    log = log_of(crowd(14))
    first, changelog = stage(**chosen), Changelog()
    _, before = folded(log[:15], first)
    changelog.take(first)
    _, plain = folded(log[15:], first)

    _, restarted = folded(log[15:], changelog.restored(**chosen))

    assert before.outputs
    assert by_revision(restarted.outputs) == by_revision(plain.outputs)


@pytest.mark.case("C17")
@every_variant
@pytest.mark.parametrize("answer", [0, 1])
def test_what_all_experts_agree_on_is_published_as_the_answer(answer: int, chosen: Settings) -> None:
    history = crowd(15)
    agreed = {f"e{k}": 0.05 + 0.04 * k + 0.5 * answer for k in range(10)}

    _, effects = folded(log_of([*history, round_of("asked", agreed)]), stage(**chosen))

    asked = newest(effects.outputs, topics.REFERENCE_ANSWERS)["asked"]
    assert (asked["reference_answer"], asked["tie"], asked["yes"]) == (answer, False, 10 * answer)


@pytest.mark.case("C15")
@every_variant
@pytest.mark.parametrize("present", [1, 2, 3])
def test_few_experts_divide_by_nothing_and_the_state_says_whether_they_count(present: int, chosen: Settings) -> None:
    """With three, in groups, a group may be empty. Then the round does not count, as with one or two experts."""
    history = [round_of(f"q{k}", {f"e{(k + i) % 9}": 0.1 + 0.3 * i for i in range(present)}) for k in range(30)]
    unresolved = [round_of(f"r{k}", {f"e{k % 9}": 0.9}) for k in range(3)]

    feed_stage, effects = folded(log_of([*history, *unresolved, outcome("r0", 1)]), stage(**chosen))

    states = [row["state"] for key, row in newest(effects.outputs, topics.REFERENCE_ANSWERS).items() if key[0] == "q"]
    weights = feed_stage.views()["f"].weights
    check_weights(feed_stage)
    assert weights.questions == states.count("scored") + 1
    assert set(states) <= {"scored", "low-evidence"}
    assert "scored" not in states or present == 3
    grouped = chosen.get("method", {}).get("against") in ("group-a", "other-group") or "preset" in chosen
    assert present < 3 or ("low-evidence" in states) == grouped


@pytest.mark.parametrize("chosen", LEARNERS.values(), ids=LEARNERS)
def test_the_learner_changes_selection_and_nothing_else(chosen: Settings) -> None:
    history = crowd(25)
    built_in, other = experts(after(history, {})), experts(after(history, chosen))

    assert [e.select for e in built_in] != [e.select for e in other]
    assert [(e.mix, e.peer_loss, e.questions) for e in built_in] == [(e.mix, e.peer_loss, e.questions) for e in other]

"""Shadows beside a feed: against a slow twin, through retractions, restarts and changes of settings, bit for bit."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, Round
from stream_peer.feeds.columns import FEED, UNIT
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, Output
from tests.feed_histories import Changelog, folded, log_of, newest, outcome, round_of, stage
from tests.feed_histories import settings as settings_event
from tests.hypothesis_profiles import examples
from tests.property.test_feed_stage_twin import (
    Control,
    Event,
    coin,
    follow,
    histories,
    long_history,
    near,
    with_controls,
)
from tests.slow_shadows import SlowShadows

SHADOWS: list[dict[str, Any]] = [
    {"name": "as-live"},
    {"name": "eager", "mixer": {"peer_rate": 60.0, "uniform_share": 0.1}},
    {"name": "plain", "stretch": False},
    {"name": "truthful", "mixer": {"truth_rate": 50.0, "prior_mean": 0.1, "prior_peer": 0.2, "prior_truth_slow": 0.6}},
    {"name": "bold", "mixer": {"nominal_error_rate": 0.1}, "stretch": True},
]
lists_of_shadows = st.lists(st.sampled_from(SHADOWS), max_size=3, unique_by=lambda shadow: str(shadow["name"]))
changes = st.builds(lambda chosen: settings_event({"defaults": {"shadows": chosen}}), lists_of_shadows)
with_changes = st.lists(
    st.one_of(*[with_controls.map(lambda events: events[:3])] * 3, changes.map(lambda event: [event])),
    min_size=4,
    max_size=12,
).map(lambda parts: [event for part in parts for event in part])


def compare(history: Sequence[Event | Control]) -> None:
    """Fold a history twice, and compare what shadows say of each round at once and how they did at the end."""
    fast, twin = stage(vote_rule="half", shadows=SHADOWS), SlowShadows(coin, {s["name"]: s for s in SHADOWS})
    for record, event in zip(log_of(history), history, strict=True):
        effects = Effects()
        fast.step(record, effects)
        follow(twin, event)
        if isinstance(event, Round) and event.question_id in newest(effects.outputs, topics.MIXED_FORECASTS):
            told = newest(effects.outputs, topics.MIXED_FORECASTS)[event.question_id]["shadows"]
            latest = max(twin.questions[event.question_id].rounds, default=0)
            expected = twin.others.get((event.question_id, latest), {})
            assert {name: (said["mix"], said["stretched"]) for name, said in told.items()} == {
                name: (near(mix), near(stretched)) for name, (mix, stretched) in expected.items()
            }
    for view in fast.views().values():
        for scores in view.weights.shadows or ():
            check_scores(msgspec.to_builtins(scores), twin.record(scores.name))


def check_scores(scores: dict[str, Any], record: Sequence[float]) -> None:
    questions, squared, live_squared, log, live_log, mix_squared, live_mix_squared = record
    assert scores["questions"] == near(questions)
    assert scores["regret"] == near(squared - live_squared)
    means = {"brier": squared, "live_brier": live_squared, "log_score": log, "live_log_score": live_log}
    for name, total in (means | {"mix_brier": mix_squared, "live_mix_brier": live_mix_squared}).items():
        assert scores[name] == near(total / questions if questions else None), name


@settings(max_examples=examples(40), deadline=None)
@given(with_controls)
def test_shadows_say_and_score_what_their_formulas_say_after_any_history(history: list[Event | Control]) -> None:
    compare(history)


@pytest.mark.parametrize("misleading", [False, True])
def test_shadows_say_and_score_what_their_formulas_say_after_many_questions(misleading: bool) -> None:
    compare(long_history(60, misleading=misleading))


@settings(max_examples=examples(60), deadline=None)
@given(with_changes, st.data())
def test_sums_and_bytes_are_the_same_after_a_restart_at_any_record(
    history: list[FeedLogRecord], data: st.DataObject
) -> None:
    log = log_of(history)
    cut = data.draw(st.integers(0, len(log)))
    through, all_said = folded(log, stage(shadows=SHADOWS[:2]))

    changelog = Changelog()
    before, said = folded(log[:cut], stage(shadows=SHADOWS[:2]))
    changelog.take(before)
    after, said_after = folded(log[cut:], changelog.restored(shadows=SHADOWS[:2]), log[:cut])

    assert through.agrees()
    assert after.agrees()
    assert last([*said.outputs, *said_after.outputs]) == last(all_said.outputs)
    assert shadow_sums(after) == shadow_sums(through)


@settings(max_examples=examples(40), deadline=None)
@given(histories, st.integers(2, 5))
def test_with_memory_shadows_are_forgotten_as_everything_else_is(history: list[Event], memory: int) -> None:
    chosen = {"memory": memory, "shadows": SHADOWS}
    changelog = Changelog()
    through, _ = folded(log_of(history), stage(**chosen))
    changelog.take(through)

    assert through.agrees()
    assert shadow_sums(changelog.restored(**chosen)) == shadow_sums(through)
    for name, view in through.views().items():
        evaluated = float(through.feeds.feed(name).buckets.sums.feed[FEED.at("evaluated")]) * UNIT
        for scores in view.weights.shadows or ():  # they were there all along
            assert scores.questions == near(evaluated)


@settings(max_examples=examples(40), deadline=None)
@given(histories)
def test_outcomes_that_are_taken_back_leave_nothing(history: list[Event]) -> None:
    questions = sorted({event.question_id for event in history})

    emptied, _ = folded(
        log_of([*history, *(outcome(question, "open") for question in questions)]), stage(shadows=SHADOWS)
    )

    assert shadow_sums(emptied) == {}
    assert emptied.agrees()


@settings(max_examples=examples(40), deadline=None)
@given(histories)
def test_shadows_change_nothing_else(history: list[Event]) -> None:
    _, without = folded(log_of(history), stage())
    _, beside = folded(log_of(history), stage(shadows=SHADOWS))

    assert [b"shadows" in (output.value or b"") for output in without.outputs] == [False] * len(without.outputs)
    assert [stripped(output) for output in beside.outputs] == [stripped(output) for output in without.outputs]


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.floats(0.0, 1.0), min_size=1), min_size=1, max_size=12))
def test_until_an_outcome_is_known_a_shadow_says_what_its_settings_would_say_live(said: list[dict[str, float]]) -> None:
    history = log_of([round_of(f"q{number}", forecasts) for number, forecasts in enumerate(said)])
    _, beside = folded(history, stage(shadows=SHADOWS))

    for shadow in SHADOWS:
        _, alone = folded(history, stage(mixer=shadow.get("mixer", {}), stretch=shadow.get("stretch", True)))
        live = newest(alone.outputs, topics.MIXED_FORECASTS)
        for question, record in newest(beside.outputs, topics.MIXED_FORECASTS).items():
            told = record["shadows"][shadow["name"]]
            assert told == {name: pytest.approx(live[question][name], abs=1e-11) for name in ("mix", "stretched")}


def last(outputs: Sequence[Output]) -> dict[tuple[str, bytes | None], bytes | None]:
    return {(output.topic, output.key): output.value for output in outputs}


def stripped(output: Output) -> object:
    value = msgspec.json.decode(output.value or b"null")
    (value.get("scored") or {}).pop("shadows", None)
    return output._replace(value=b"", headers=()), {k: v for k, v in value.items() if k not in ("shadows", "settings")}


def shadow_sums(feed_stage: FeedStage) -> dict[int, list[int]]:
    feed = feed_stage.feeds.feed("f")
    return {shadow: columns.tolist() for shadow, columns in sorted(feed.buckets.sums.shadows.items()) if columns.any()}

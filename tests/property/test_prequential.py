"""Mixing weights, and the order of things: a mixer forecasts a question before it sees what came of it."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, OutcomeRevealed, Round
from stream_peer.log.stage import Effects
from stream_peer.tools.replay.file_events import RevealedShare
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.feed_histories import expert, log_of, newest, outcome, round_of, stage
from tests.hypothesis_profiles import examples
from tests.unit.tools.replay.file_lines import lines, season

EXPERTS = [f"e{number}" for number in range(6)]
FORECASTS = ("mix", "stretched", "mean", "median", "logit_mean", "selected")
QUESTIONS = (Round, OutcomeRevealed)
Said = dict[str, dict[str, Any]]
unhurried = settings(deadline=None, max_examples=examples(25))


def history(seed: int, questions: int = 30) -> list[FeedLogRecord]:
    """Rounds of some of the experts, the later ones the better, and outcomes some rounds after their own."""
    rng, events = random.Random(seed), list[FeedLogRecord]()
    told: dict[int, list[FeedLogRecord]] = {}
    for number in range(questions):
        y = rng.randrange(2)
        said = {
            name: min(max(0.5 + (0.4 if rng.random() < 0.5 + 0.08 * place else -0.4) * (2 * y - 1), 0.02), 0.98)
            for place, name in enumerate(EXPERTS)
            if rng.random() < 0.8
        }
        events.append(round_of(f"q{number}", said or {EXPERTS[0]: 0.5}, boundary=number + 1))
        told.setdefault(number + rng.randrange(4), []).append(outcome(f"q{number}", 1 if y else 0))
        events += told.pop(number, [])
    return events


def published(events: Sequence[FeedLogRecord]) -> Said:
    """The forecasts of each question, as they were published with its round; no later record says otherwise."""
    feed_stage, first, last = stage(), Said(), Said()
    for record in log_of(events):
        effects = Effects()
        feed_stage.step(record, effects)
        found = newest(effects.outputs, topics.MIXED_FORECASTS)
        last |= found
        first = found | first
    forecasts = {name: {key: said[key] for key in FORECASTS} for name, said in first.items()}
    assert forecasts == {name: {key: said[key] for key in FORECASTS} for name, said in last.items()}
    return forecasts


def otherwise(events: Sequence[FeedLogRecord], question: str) -> list[FeedLogRecord]:
    """The same with the other outcome of one question."""
    return [
        outcome(question, 0 if event.outcome == 1 else 1)
        if isinstance(event, OutcomeRevealed) and event.question_id == question
        else event
        for event in events
    ]


def foreseen(events: Sequence[FeedLogRecord], order: Sequence[FeedLogRecord], questions: Sequence[str]) -> set[str]:
    """Whose outcome moves a forecast that, by ``order``, was made before it was told."""
    plain, found = published(events), set()
    for name in questions:
        told = next(k for k, e in enumerate(order) if isinstance(e, OutcomeRevealed) and e.question_id == name)
        before = [event.question_id for event in order[:told] if isinstance(event, Round)]
        moved = published(otherwise(events, name))
        found |= {name} if any(plain[earlier] != moved[earlier] for earlier in before) else set()
    return found


@unhurried
@given(seed=st.integers(0, 10**6), number=st.integers(0, 26))
def test_no_forecast_knows_an_outcome_that_is_told_after_it(seed: int, number: int) -> None:
    events = history(seed)

    assert foreseen(events, events, [f"q{number}"]) == set()


def test_outcomes_told_too_early_are_found() -> None:
    """With all outcomes moved before the later rounds, whatever should have come after a round in between moves it.

    Not the round of its own question: that is scored without its question's evidence, even if this came first.
    """
    events = history(5)
    early = [*events[:8], *(e for e in events[8:] if isinstance(e, OutcomeRevealed))]
    swapped = [*early, *(e for e in events[8:] if isinstance(e, Round))]
    names = [f"q{number}" for number in range(10, 20)]
    places = {(type(event), event.question_id): k for k, event in enumerate(events) if isinstance(event, QUESTIONS)}
    late = {n for n in names if places[OutcomeRevealed, n] > places[Round, f"q{int(n[1:]) + 1}"]}

    assert foreseen(events, events, names) == set()
    assert foreseen(swapped, events, names) == late
    assert len(late) > 4


@pytest.mark.parametrize("hidden", ["q005", "q020", "q039"])
def test_an_outcome_told_right_after_the_close_moves_nothing_that_was_said_of_its_question(hidden: str) -> None:
    """In a replay that reveals everything, and in one in which that one is not in the file."""
    document = {"defaults": {"round_every": None}}
    options = ReplayOptions(document, reveal=RevealedShare(1.0, 0))
    kept = [value for value in season() if not (b"resolution" in value and hidden.encode() in value)]
    everything, without = (replay([lines(values)], options).history.feeds["econ"] for values in (season(), kept))

    told, untold = everything.forecasts[hidden], without.forecasts[hidden]

    assert (told.outcome is None, untold.outcome) == (False, None)
    assert all(getattr(told, name) == getattr(untold, name) for name in FORECASTS)
    later = [name for name in everything.forecasts if name > hidden]
    assert not later or any(everything.forecasts[name].mix != without.forecasts[name].mix for name in later)


def mixes(events: Sequence[FeedLogRecord]) -> Mapping[str, float]:
    """Published mixing weights at the end."""
    feed_stage = stage()
    for record in log_of(events):
        feed_stage.step(record, Effects())
    return {row.id: row.mix for row in feed_stage.views()["f"].weights.experts}


@unhurried
@given(seed=st.integers(0, 10**6), out=st.sampled_from(EXPERTS))
def test_mixing_weights_sum_to_one_and_leave_out_who_is_excluded(seed: int, out: str) -> None:
    events = history(seed)

    everybody, others = mixes(events), mixes([*events, expert(out, excluded=True)])

    assert sum(everybody.values()) == pytest.approx(1.0, abs=1e-9)
    assert sum(others.values()) == pytest.approx(1.0, abs=1e-9)
    assert out not in others
    assert min(everybody.values()) >= 0.0


@unhurried
@given(seed=st.integers(0, 10**6), out=st.sampled_from(EXPERTS), excluded=st.booleans())
def test_who_is_absent_or_excluded_has_no_part_in_a_forecast(seed: int, out: str, excluded: bool) -> None:
    """Whatever an excluded expert says, the mix is that of a round without it, made of the forecasts of those there."""
    events, said = history(seed), {name: 0.3 + 0.1 * place for place, name in enumerate(EXPERTS)}
    before = [*events, expert(out, excluded=True)] if excluded else events
    without = {name: p for name, p in said.items() if name != out}

    quiet = published([*before, round_of("last", without, boundary=99)])["last"]

    assert min(without.values()) <= quiet["mix"] <= max(without.values())
    if excluded:
        loud = published([*before, round_of("last", said | {out: 0.99}, boundary=99)])["last"]
        assert loud == quiet


@unhurried
@given(seed=st.integers(0, 10**6), names=st.permutations(EXPERTS))
def test_mixing_weights_go_with_the_expert_and_not_with_its_place(seed: int, names: list[str]) -> None:
    renamed = dict(zip(EXPERTS, names, strict=True))
    events = history(seed)
    other = [
        round_of(
            event.question_id,
            {renamed[name]: p for name, p in zip(event.experts, event.probabilities, strict=True)},
            boundary=number,
        )
        if isinstance(event, Round)
        else event
        for number, event in enumerate(events)
    ]
    same = [
        round_of(event.question_id, dict(zip(event.experts, event.probabilities, strict=True)), boundary=number)
        if isinstance(event, Round)
        else event
        for number, event in enumerate(events)
    ]

    plain, moved = mixes(same), mixes(other)

    assert moved == pytest.approx({renamed[name]: weight for name, weight in plain.items()}, abs=1e-9)

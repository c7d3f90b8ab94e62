"""Drift of a feed: found within some hundred questions, by a stage that reads nothing but its log."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.alarms.drift import MOST_EXPERTS, Drift, ExpertDrift, Look, RateDrift, look_for_drift
from stream_peer.feeds.alarms.recent import Window
from stream_peer.feeds.columns import FEED, RULE_PART, SCALE, rule_span
from stream_peer.feeds.stage import FeedStage
from stream_peer.numerics.arguments import FloatArray, IntArray
from stream_peer.numerics.dependence.followers import CrowdSums
from tests.feed_histories import (
    Changelog,
    carry_out_rebuilds,
    expert,
    folded,
    log_of,
    newest,
    outcome,
    round_of,
    settings,
    stage,
)
from tests.unit.numerics.drift_worlds import moments, steady, votes_and_answers

ERRORS = [0.15, 0.15, 0.2, 0.2, 0.25, 0.25, 0.3, 0.3, 0.3, 0.35, 0.35, 0.4]
WEAK = [0.318] * 12
WEAKER = [0.443] * 12


def rounds(seed: int, errors: FloatArray, *, resolved: bool = False) -> Iterator[FeedLogRecord]:
    """Questions of experts who say .8 or .2, and are wrong that often."""
    generator = np.random.default_rng(seed)
    outcomes = generator.random(len(errors)) < 0.5
    wrong = generator.random(errors.shape) < errors
    for number, (happened, who_errs) in enumerate(zip(outcomes.tolist(), wrong, strict=True)):
        says = {f"e{place:02}": 0.8 if happened != errs else 0.2 for place, errs in enumerate(who_errs.tolist())}
        yield round_of(f"q{number:05}", says)
        if resolved:
            yield outcome(f"q{number:05}", 1 if happened else 0)


def with_step(before: Sequence[float], now: Sequence[float], at: int, n_questions: int) -> FloatArray:
    errors = steady(list(before), n_questions)
    errors[at:] = now
    return errors


def drift_of(feed_stage: FeedStage) -> Drift:
    return feed_stage.feeds.by_name["f"].path_state.drift


def published(events: Iterator[FeedLogRecord]) -> dict[str, object]:
    _, effects = folded(log_of(events))
    return dict(newest(effects.outputs, "weights")["f"])


def test_a_step_of_the_error_rate_is_published() -> None:
    found = published(rounds(1, with_step(WEAK, WEAKER, 300, 500)))["drift"]

    assert isinstance(found, dict)
    rate = found["error_rate"]
    assert rate["before"] < 0.2 < rate["now"]
    assert rate["z"] > 4.0
    assert 170 <= rate["since_questions"] <= 230
    assert rate["by"] == "agreement"


def test_an_expert_who_gets_worse_is_named() -> None:
    worse = [0.5, *ERRORS[1:]]

    found = published(rounds(5, with_step(ERRORS, worse, 300, 525)))["drift"]

    assert isinstance(found, dict)
    assert found["n_experts"] == 1
    (named,) = found["experts"]
    assert named["id"] == "e00"
    assert named["now"] < 0.7 < named["before"]
    assert named["z"] < 0.0


def test_a_steady_feed_says_nothing_of_drift() -> None:
    assert "drift" not in published(rounds(2, steady(ERRORS, 1000)))


def test_outcomes_tell_what_agreement_cannot() -> None:
    """Everybody errs on the same questions: their agreement stays, and more answers are wrong."""
    generator = np.random.default_rng(9)
    shocks = generator.random(600) < np.where(np.arange(600) < 300, 0.05, 0.4)
    errors = np.where(shocks[:, None], 1.0 - 0.2, 0.2) * np.ones((600, 12))

    feed_stage = stage()
    folded(log_of(rounds(3, errors, resolved=True)), feed_stage)

    found = drift_of(feed_stage).error_rate
    assert found is not None
    assert found.by == "outcomes"
    assert found.before < 0.15
    assert found.now > 0.3


def test_an_alarm_ends_when_the_window_and_the_past_are_alike_again() -> None:
    """Most of the past is new by then, so that the published rate is no more unlike that of the window."""
    feed_stage = stage()
    log = log_of(rounds(2, with_step(WEAK, WEAKER, 200, 1300)))

    folded(log[:600], feed_stage)
    during = drift_of(feed_stage)
    folded(log[600:], feed_stage)

    assert during.error_rate is not None
    assert drift_of(feed_stage) == Drift()


def test_with_memory_the_past_is_not_compared_with() -> None:
    log = list(rounds(1, with_step([0.25] * 12, [0.45] * 12, 150, 675)))
    forgetting, remembering = stage(memory=300), stage()

    for feed_stage in (forgetting, remembering):
        folded(log_of(log), feed_stage)

    assert drift_of(forgetting).error_rate is None
    assert drift_of(remembering).error_rate is not None


def test_an_alarm_is_news_if_it_is_another_than_before() -> None:
    """By numbers alone it is not: they are of another look each time."""
    risen, fallen = (RateDrift(0.1, 0.3, 90, z, "agreement") for z in (5.0, -5.0))
    expert_of = [ExpertDrift(place, 0.8, 0.5, 100, -5.0) for place in (2, 5)]

    assert Drift(risen).alarms == Drift(msgspec.structs.replace(risen, z=6.0)).alarms
    others = [Drift(), Drift(risen), Drift(fallen), Drift(risen, 1, expert_of[:1]), Drift(risen, 2, expert_of)]
    assert len({found.alarms for found in others}) == len(others)


def test_a_reset_ends_the_alarm() -> None:
    feed_stage = stage()
    folded(log_of(rounds(1, with_step(WEAK, WEAKER, 300, 500))), feed_stage)
    feed = feed_stage.feeds.by_name["f"]
    assert feed.path_state.drift != Drift()

    feed.reset()

    assert feed.path_state.drift == Drift()


def test_an_excluded_expert_is_not_named() -> None:
    worse = [0.5, *ERRORS[1:]]
    log = [*rounds(5, with_step(ERRORS, worse, 300, 525)), expert("e00", excluded=True)]

    assert "drift" not in published(iter(log))


@pytest.mark.parametrize("at", [110, 170, 199])
def test_a_restart_goes_on_as_if_there_was_none(at: int) -> None:
    log = log_of(rounds(1, with_step([0.25] * 12, [0.45] * 12, 100, 225), resolved=True))
    at_once, first = stage(), stage()
    folded(log, at_once)
    folded(log[: 2 * at], first)
    changelog = Changelog()
    changelog.take(first)

    second = changelog.restored()
    folded(log[2 * at :], second)

    assert drift_of(second) == drift_of(at_once)
    assert drift_of(second).error_rate is not None


def test_a_rebuild_finds_the_same() -> None:
    log = log_of([settings({}), *rounds(1, with_step(WEAK, WEAKER, 300, 500))])
    feed_stage = stage()
    folded(log, feed_stage)
    before = drift_of(feed_stage)

    feed_stage.feeds.due.add("f")
    carry_out_rebuilds(feed_stage, log)

    assert drift_of(feed_stage) == before


# --- one look ---


def window_of(errors: FloatArray, seed: int = 1) -> Window:
    votes, answers = votes_and_answers(np.random.default_rng(seed), errors)
    pair, rest = moments(votes, answers)
    parts: IntArray = np.zeros((len(errors), len(RULE_PART)), np.int64)
    numbers = np.stack([np.ones(len(errors)), np.ones(len(errors)), pair, rest, pair * pair, rest * rest, pair * rest])
    parts[:, : len(numbers)] = np.rint(numbers.T * SCALE).astype(np.int64)
    n_questions = len(errors)
    return Window(
        ordinals=np.arange(n_questions),
        counts=np.ones(n_questions, np.bool_),
        votes=votes,
        answers=answers,
        rules=np.zeros(n_questions, np.int64),
        parts=parts,
        voters=np.count_nonzero(votes, axis=1),
        agreement=(votes * answers).sum(axis=1, dtype=np.int64),
        scatter=np.zeros(n_questions),
        crowd=CrowdSums(*np.zeros((8, votes.shape[1]))),
    )


def look_at(window: Window, **changes: Any) -> Look:
    past = [0] * FEED.size
    past[rule_span(0)] = window.parts.sum(axis=0)
    return Look(window, 0, 0, past)._replace(**changes)


def test_an_alarm_comes_at_its_limit_and_stays_till_well_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    window = window_of(with_step(WEAK, WEAKER, 300, 500))
    sure = look_for_drift(look_at(window), Drift()).error_rate
    assert sure is not None
    monkeypatch.setattr("stream_peer.feeds.alarms.drift.RATE_LIMIT", abs(sure.z) * 1.1)

    assert look_for_drift(look_at(window), Drift()).error_rate is None
    assert look_for_drift(look_at(window), Drift(error_rate=sure)).error_rate == sure


def test_questions_under_another_vote_rule_are_left_out() -> None:
    window = window_of(with_step(WEAK, WEAKER, 300, 500))
    rules = np.where(np.arange(500) < 300, 0, 1)

    assert look_for_drift(look_at(window._replace(rules=rules), rule=1, past=None), Drift()) == Drift()


def test_groups_that_score_their_own_members_tell_no_rate() -> None:
    window = window_of(with_step(WEAK, WEAKER, 300, 500))

    assert look_for_drift(look_at(window, leaves_one_out=False), Drift()).error_rate is None


def test_of_many_experts_each_has_its_turn() -> None:
    """With 600 there are three parts: the changed one, place 7, is in the second."""
    errors = steady([0.3] * 600, 500)
    errors[250:, 7] = 0.95
    window = window_of(errors)

    looks = [look_for_drift(look_at(window, number=number), Drift()) for number in range(3)]
    later = look_for_drift(look_at(window, number=2), looks[1])

    assert [[one.place for one in found.experts] for found in looks] == [[], [7], []]
    assert later == looks[1]


def test_those_that_changed_most_are_named() -> None:
    """Of 24 who lie from the middle on, twenty are named, and all are counted."""
    errors = steady([0.25] * 250, 500)
    errors[250:, :24] = 0.75

    found = look_for_drift(look_at(window_of(errors)), Drift())

    assert found.n_experts == 24
    assert len(found.experts) == MOST_EXPERTS
    sizes = [abs(one.z) for one in found.experts]
    assert sizes == sorted(sizes, reverse=True)


def test_experts_who_go_take_their_alarms_along() -> None:
    alarms = [ExpertDrift(place, 0.8, 0.5, 100, -5.0) for place in (2, 5)]
    found = Drift(RateDrift(0.1, 0.3, 90, 5.0, "agreement"), 2, alarms)

    without = found.without({0: 0, 5: 3})

    assert (without.n_experts, [one.place for one in without.experts]) == (1, [3])
    assert without.error_rate == found.error_rate

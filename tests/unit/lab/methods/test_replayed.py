"""Methods of a replay: who is asked, how often it errs, and whom to follow, each in its place."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from stream_peer.feeds.columns import FEED, SCALE
from stream_peer.feeds.facts import ScoringInputs
from stream_peer.feeds.methods.group_answers import group_moments
from stream_peer.feeds.methods.method import NO_ANSWERS, Chance, Method, OwnAnswers, Situation
from stream_peer.feeds.methods.rate_sums import RateSums
from stream_peer.feeds.reading.weights import ExpertWeights, Mixing
from stream_peer.lab.formulas.learners import ada_hedge_rate, mixability_gap
from stream_peer.lab.formulas.three_references import ThreeReferenceClassSums, ThreeReferenceSums
from stream_peer.lab.formulas.two_groups import EqualGroupSums
from stream_peer.lab.methods.replayed import chosen_answers, n_groups, replayed_method, round_gap
from stream_peer.numerics.answers import votes
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import ErrorRate
from stream_peer.numerics.error_rates.groups import TwoGroupSums
from stream_peer.numerics.error_rates.truth import TruthSums
from stream_peer.numerics.learners import hedge, hedge_rate
from stream_peer.settings.feed.model import FeedSettings, MethodSettings
from tests.feed_variants import GROUPS, RATES, Settings

FORECASTS = np.array([0.9, 0.4, 0.4, 0.2, 0.8])
UNIFORM = np.full(5, 0.2)


def method(**chosen: Any) -> MethodSettings:
    return MethodSettings(**chosen)


def chance(groups: list[int] | None = None, *, flip: bool = False) -> Chance:
    return Chance(np.array(groups or [0] * 5), (0, 1, 0), flip)


def asked(
    chosen: MethodSettings,
    drawn: Chance | None = None,
    select: FloatArray = UNIFORM,
    thresholds: FloatArray | None = None,
) -> OwnAnswers:
    """What the experts are scored against where the answer of a tie is 0."""
    weights = ExpertWeights(select, UNIFORM, UNIFORM, UNIFORM)
    mixing = Mixing((1.0, 0.0, 0.0, 0.0), 0.0)
    under = ScoringInputs(weights, mixing, 0.0, 0, thresholds, 0.1, 0.1, 1, stretch=False, coin=0, ticket=0.5)
    cast = votes(FORECASTS, thresholds)
    return chosen_answers(cast, (5, 0), FORECASTS, replace(under, chance=drawn or chance()), chosen)


def answers(chosen: MethodSettings, drawn: Chance | None = None, select: FloatArray = UNIFORM) -> list[int]:
    found: list[int] = asked(chosen, drawn, select).answers.tolist()
    return found


def replayed(chosen: MethodSettings) -> Method:
    return replayed_method(FeedSettings(method=chosen))


# --- who is asked ---


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, [0, 1, 1, 1, 0]),  # a tie among the others of the three that say no, who lean to yes
        ({"reference": "mean"}, [0, 1, 1, 1, 0]),
        ({"reference": "product"}, [0, 1, 1, 1, 0]),
        ({"against": "everybody", "error_rate": "outcomes"}, [0] * 5),
        ({"against": "everybody", "error_rate": "outcomes", "reference": "mean"}, [1] * 5),
    ],
)
def test_the_answer_of_all_others_or_of_everybody_by_any_rule(chosen: dict[str, Any], expected: list[int]) -> None:
    assert answers(method(**chosen)) == expected


def test_a_weighted_majority_hears_experts_by_their_selection_weights() -> None:
    follows_the_first = np.array([0.9, 0.025, 0.025, 0.025, 0.025])

    assert answers(method(reference="weighted"), select=follows_the_first) == [0, 1, 1, 1, 1]


def test_one_who_has_all_weight_is_answered_by_the_side_on_which_the_others_lean() -> None:
    alone = np.array([1.0, 0.0, 0.0, 0.0, 0.0])

    others = asked(method(reference="weighted"), select=alone)

    assert (others.answers.tolist(), others.ties.tolist()) == ([0, 1, 1, 1, 1], [True, False, False, False, False])


def test_own_medians_decide_what_is_a_vote_where_the_vote_rule_says_so() -> None:
    thresholds = np.array([0.95, 0.3, 0.3, 0.1, 0.7])

    found = asked(method(reference="weighted"), thresholds=thresholds)

    assert found.answers.tolist() == [1] * 5


def test_group_a_answers_everybody_and_each_group_the_other() -> None:
    drawn = chance([0, 1, 1, 1, 0])

    assert answers(method(**GROUPS, error_rate="two-groups"), drawn) == [1] * 5
    of_others = method(against="other-group", groups="redrawn", error_rate="two-groups")
    assert answers(of_others, drawn) == [0, 1, 1, 1, 0]


def test_of_three_groups_the_second_answers_the_first_and_the_first_all_others() -> None:
    drawn = chance([0, 1, 1, 2, 0])
    of_others = method(against="other-group", groups="redrawn", error_rate="three-references")

    found = asked(of_others, drawn)

    assert found.answers.tolist() == [0, 1, 1, 1, 0]
    assert group_moments(found.coded, 3) == (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.case("C15")
@pytest.mark.parametrize(
    ("groups", "against", "given", "answer"),
    [
        ([1] * 5, "group-a", False, 0),  # nobody in A: its coin
        ([0] * 5, "group-a", True, 0),
        ([1] * 5, "other-group", False, 0),
        ([0] * 5, "other-group", False, 1),  # nobody in B, whose coin shows 1
    ],
)
def test_an_empty_group_gives_no_answer_and_no_error(groups: list[int], against: str, given: bool, answer: int) -> None:
    chosen = method(against=against, groups="redrawn", error_rate="two-groups")

    found = asked(chosen, chance(groups))

    assert (found.given, found.answers.tolist()) == (given, [answer] * 5)
    assert group_moments(found.coded, 2) is None


def test_turned_answers_are_turned_for_all_and_what_the_groups_said_is_not() -> None:
    chosen = method(**GROUPS, error_rate="two-groups", flip_probability=0.2)

    plain, turned = (asked(chosen, chance([0, 1, 1, 1, 0], flip=flip)) for flip in (False, True))

    assert turned.answers.tolist() == [1 - answer for answer in plain.answers.tolist()]
    assert turned.coded == plain.coded


@pytest.mark.parametrize("bits", [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
def test_answers_of_groups_survive_being_written_as_one_number(bits: tuple[int, int, int]) -> None:
    a, b, c = bits
    coded = a + 3 * b + 9 * c

    assert group_moments(coded, 3) == (a, b, c, a * b, a * c, b * c, a * b * c)
    assert group_moments(a + 3 * b + 9 * 2, 2) == (a, b, 0, a * b, 0, 0, 0)
    assert group_moments(a + 3 * b + 9 * 2, 3) is None
    assert group_moments(coded, 0) is None


def test_nobody_is_asked_in_groups_unless_groups_answer() -> None:
    two, three = (method(error_rate=name, **GROUPS) for name in ("two-groups", "three-references"))

    assert [n_groups(method()), n_groups(two), n_groups(three)] == [0, 2, 3]
    assert group_moments(NO_ANSWERS, 2) is None


# --- how often it errs ---

GROUP_SUMS = (900.0, 880.0, 500.0, 480.0, 460.0, 350.0, 330.0, 320.0, 260.0)
TRUTH = (80.0, 20.0, 30.0, 10.0)


def rate_sums() -> RateSums:
    """Sums of 300 questions with votes."""
    feed = [0] * FEED.size
    feed[FEED.span("group_weight", "group_123")] = [round(value * SCALE) for value in GROUP_SUMS]
    feed[FEED.span("right_zero", "wrong_one")] = [round(value * SCALE) for value in TRUTH]
    feed[FEED.span("moment_weight", "moment_weight2")] = [round(300 * SCALE)] * 2
    return RateSums(feed, 0)


def rate(chosen: Settings) -> ErrorRate | None:
    estimate = replayed(MethodSettings(**chosen["method"])).rate
    return estimate and estimate(rate_sums(), 0.9)


def test_each_estimator_reads_its_sums() -> None:
    weight, weight2, a, b, _, ab, *_ = GROUP_SUMS
    two = (weight, weight2, a, b, ab)

    assert rate(RATES["two-groups"]) == rate(RATES["two-groups-drawn"]) == TwoGroupSums(*two).estimate(0.9)
    assert rate(RATES["equal-groups"]) == EqualGroupSums(*two).estimate(0.9)
    assert rate(RATES["three-references"]) == ThreeReferenceSums(*GROUP_SUMS).estimate(0.9)
    assert rate(RATES["three-class-references"]) == ThreeReferenceClassSums(*GROUP_SUMS).estimate(0.9)
    assert rate(RATES["outcomes"]) == TruthSums(*TRUTH).estimate(0.9)
    assert rate(RATES["known-rates"]) == ErrorRate(0.3, 0.1, 0.2, 0.2, 300.0, "ok", 0.0)
    assert rate(RATES["class-moments"]) is None


def test_answers_that_are_turned_round_err_at_the_rate_that_follows() -> None:
    plain, turned = rate(RATES["two-groups"]), rate(RATES["two-groups-flipped"])

    assert plain is not None
    assert turned is not None
    assert turned[:4] == pytest.approx([0.2 + 0.6 * value for value in plain[:4]])
    assert turned.status == plain.status


# --- whom to follow ---

REGRETS, ABSOLUTE = np.array([2.0, -1.0, 2.0, 0.5]), np.array([3.0, 4.0, 2.0, 1.0])
SEEN = Situation(REGRETS, ABSOLUTE, loss_range=1.0, n_experts=6, questions=40.0, gaps=1.5)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"learner": "hedge", "learning_rate": 0.7}, hedge(REGRETS, 0.7)),
        ({"learner": "any-time-hedge"}, hedge(REGRETS, hedge_rate(6, 40.0))),
        ({"learner": "ada-hedge"}, hedge(REGRETS, ada_hedge_rate(6, 1.5))),
        ({"learner": "follow-the-leader"}, [0.5, 0.0, 0.5, 0.0]),
        ({"learner": "top-committee", "committee": 3}, [1 / 3, 0.0, 1 / 3, 1 / 3]),
        ({"learner": "top-committee", "committee": 9}, [0.25] * 4),
        ({"learner": "fixed-share"}, [0.25] * 4),
    ],
)
def test_each_learner_reads_what_it_needs(chosen: dict[str, Any], expected: Any) -> None:
    select = replayed(method(**chosen)).select

    assert select is not None
    assert select(SEEN) == pytest.approx(np.asarray(expected), abs=1e-15)


@pytest.mark.parametrize(
    "learner", ["any-time-hedge", "ada-hedge", "follow-the-leader", "top-committee", "fixed-share"]
)
def test_a_lone_expert_has_all_weight_from_the_first_question_on(learner: str) -> None:
    first = Situation(np.zeros(1), np.zeros(1), loss_range=1.0, n_experts=1, questions=0.0, gaps=0.0)

    select = replayed(method(learner=learner)).select

    assert select is not None
    assert select(first).tolist() == [1.0]


def test_the_gap_of_a_round_is_that_of_adahedge_at_the_rate_of_the_gaps_before() -> None:
    regrets, weights = np.array([0.3, -0.1, 0.0]), np.array([0.2, 0.5, 0.3])

    assert round_gap(regrets, weights, 4, 0.5) == mixability_gap(regrets, weights, ada_hedge_rate(4, 0.5))
    assert round_gap(regrets, weights, 4, 0.0) == pytest.approx(0.3)  # nothing lost so far: the leader is followed

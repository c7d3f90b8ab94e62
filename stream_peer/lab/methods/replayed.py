"""All methods that settings can name, for a replay: the served ones, and others made of the formulas of the laboratory.

``stream-peer replay --set method.NAME=VALUE`` chooses them, to compare. A method differs from the default only in the
functions that its settings name.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from stream_peer.feeds.facts import ScoringInputs
from stream_peer.feeds.methods.group_answers import GroupAnswer, answer_for_all, coded_answers
from stream_peer.feeds.methods.method import Method, NeededDraws, OwnAnswers, Situation, majority_of_others
from stream_peer.feeds.methods.rate_sums import RateSums
from stream_peer.feeds.methods.served import default_method, hedge_at_any_time, rate_of_two_groups, served_method
from stream_peer.lab.formulas.flips import flipped_error_rate
from stream_peer.lab.formulas.learners import (
    ada_hedge,
    ada_hedge_rate,
    follow_the_leader,
    mixability_gap,
    top_committee,
)
from stream_peer.lab.formulas.reference_rules import (
    Ballots,
    GroupAnswers,
    ReferenceAnswers,
    answers_of_all,
    answers_of_groups,
    answers_of_other_group,
    answers_of_others,
    ballots,
)
from stream_peer.lab.formulas.three_references import ThreeReferenceClassSums, ThreeReferenceSums
from stream_peer.lab.formulas.two_groups import EqualGroupSums
from stream_peer.lab.methods.paths import Paths
from stream_peer.numerics.arguments import FloatArray, SmallIntArray, unchecked
from stream_peer.numerics.error_rates import ErrorRate, EstimateStatus, TruthSums
from stream_peer.numerics.error_rates.rate import HIGHEST_PRICED_SUM
from stream_peer.numerics.learners import hedge
from stream_peer.settings.feed.model import BUILT_IN, FeedSettings, MethodSettings

_Rate = Callable[[RateSums, float], ErrorRate]


class _Estimator(NamedTuple):
    """An estimator of error rates, and what it needs.

    ``rate`` None: moments of the votes. ``groups`` that reference answers are asked of, where the estimator needs more
    than two; ``of_groups``: it reads their answers and not the votes; ``by_class``: the moments that
    tell the classes apart; ``of_votes``: outcomes can contradict it; ``sees_flips``: its sums hold answers that were
    inverted at random already.
    """

    rate: _Rate | None = None
    groups: int = 0
    of_groups: bool = False
    by_class: bool = False
    of_votes: bool = True
    sees_flips: bool = False


def replayed_method(settings: FeedSettings) -> Method:
    """The method that settings choose, whether a worker serves it or not."""
    chosen = settings.method
    if settings.preset == "paper" or chosen == BUILT_IN:
        return served_method(settings)
    is_plain = (chosen.reference, chosen.against, chosen.flip_probability) == ("majority", "others", 0.0)
    ruling = (chosen.reference, chosen.against, chosen.error_rate, chosen.pricing)
    votes_at_half = ruling != ("majority", "others", "moments", "newest")
    asked, estimator = n_groups(chosen), _ESTIMATORS[chosen.error_rate]
    return replace(
        default_method(settings),
        guards=False,
        vote_rule="half" if votes_at_half and settings.vote_rule == "auto" else settings.vote_rule,
        answers=majority_of_others if is_plain else partial(chosen_answers, chosen=chosen),
        draws=NeededDraws(asked, chosen.groups == "redrawn", chosen.flip_probability)
        if asked or not is_plain
        else None,
        rate=_rate(chosen, estimator),
        select=_learner(chosen),
        gap=round_gap if chosen.learner == "ada-hedge" else None,
        path=Paths.beginning(chosen),
        is_frozen=chosen.pricing == "frozen",
        reads_classes=estimator.by_class,
        evidence="answers of the groups" if estimator.of_groups else "votes",
        asks_outcomes=chosen.error_rate == "outcomes",
        estimates=estimator.of_votes,
        leaves_one_out=chosen.against == "others",
        certifies=chosen.against in ("others", "other-group"),
        mixes=chosen.mixer == "auto",
    )


def n_groups(chosen: MethodSettings) -> int:
    """Groups that reference answers are asked of; 0 if none are."""
    return _ESTIMATORS[chosen.error_rate].groups or (2 if chosen.against in ("group-a", "other-group") else 0)


def chosen_answers(
    cast: SmallIntArray, _: tuple[int, int], forecasts: FloatArray, under: ScoringInputs, chosen: MethodSettings
) -> OwnAnswers:
    """Reference answers by the rule and of the experts that the settings name.

    Of all others: those of other teams. Groups take in whole teams, see ``methods.method.Chance``; who is scored
    against everybody has a share in the answer anyway.
    """
    weights = under.weights.select if chosen.reference == "weighted" else None
    taken = unchecked(ballots)(forecasts, chosen.reference, thresholds=under.thresholds, weights=weights)
    own = _asked(taken, len(cast), under, chosen)
    return own._replace(answers=(1 - own.answers).astype(np.int8)) if under.chance.flip else own


def _asked(cast: Ballots, n_experts: int, under: ScoringInputs, chosen: MethodSettings) -> OwnAnswers:
    if chosen.against == "others":
        answers, ties, given = unchecked(answers_of_others)(cast, under.coin, under.teams)
        return OwnAnswers(answers.astype(np.int8), ties, bool(given.all()))
    if chosen.against == "everybody":
        return answer_for_all(_one_answer(unchecked(answers_of_all)(cast, under.coin)), n_experts)
    groups, coins = under.chance.groups, under.chance.coins[: n_groups(chosen)]
    found = [unchecked(answers_of_groups)(cast, groups == number, (coin, coin)).a for number, coin in enumerate(coins)]
    coded = coded_answers([_one_answer(group) for group in found])
    if chosen.against == "group-a":
        return answer_for_all(_one_answer(found[0]), n_experts, coded)
    both = GroupAnswers(found[0], found[1])
    answers, ties, given = unchecked(answers_of_other_group)(both, groups == 0)
    return OwnAnswers(answers.astype(np.int8), ties, bool(given.all()), coded)


def _one_answer(found: ReferenceAnswers) -> GroupAnswer:
    return GroupAnswer(int(found.answers), bool(found.ties), bool(found.given))


def _rate(chosen: MethodSettings, estimator: _Estimator) -> _Rate | None:
    """The estimate that the settings name, of answers as they are after flips; None for moments of the votes."""
    estimate = partial(_known_rate, chosen) if chosen.error_rate == "known" else estimator.rate
    if estimate is None or not chosen.flip_probability or estimator.sees_flips:
        return estimate
    return partial(_flipped_rate, estimate, chosen.flip_probability)


def _measured_rate(sums: RateSums, confidence: float) -> ErrorRate:
    return unchecked(TruthSums.estimate)(sums.truth, confidence)


def _rate_of_equal_groups(sums: RateSums, confidence: float) -> ErrorRate:
    seen = sums.groups
    two = EqualGroupSums(seen.weight, seen.weight2, seen.first, seen.second, seen.first_second)
    return unchecked(EqualGroupSums.estimate)(two, confidence)


def _rate_of_three(sums: RateSums, confidence: float) -> ErrorRate:
    return unchecked(ThreeReferenceSums.estimate)(ThreeReferenceSums(*sums.groups), confidence)


def _rate_of_three_by_class(sums: RateSums, confidence: float) -> ErrorRate:
    return unchecked(ThreeReferenceClassSums.estimate)(ThreeReferenceClassSums(*sums.groups), confidence)


_ESTIMATORS: Mapping[str, _Estimator] = {
    "moments": _Estimator(),
    "class-moments": _Estimator(by_class=True),
    "outcomes": _Estimator(_measured_rate, of_votes=False, sees_flips=True),
    "known": _Estimator(of_votes=False),
    "two-groups": _Estimator(rate_of_two_groups, of_groups=True),
    "equal-groups": _Estimator(_rate_of_equal_groups, of_groups=True),
    "three-references": _Estimator(_rate_of_three, groups=3, of_groups=True),
    "three-class-references": _Estimator(_rate_of_three_by_class, groups=3, of_groups=True),
}


def _known_rate(chosen: MethodSettings, sums: RateSums, _: float) -> ErrorRate:
    """Rates that the settings state. Trust goes by the questions with votes."""
    zero, one = chosen.known_zero or 0.0, chosen.known_one or 0.0
    mean = 0.5 * (zero + one)
    status: EstimateStatus = "uninformative" if zero + one > HIGHEST_PRICED_SUM else "ok"
    return ErrorRate(zero, one, mean, mean, sums.questions, status, 0.0)


def _flipped_rate(estimate: _Rate, flip_probability: float, sums: RateSums, confidence: float) -> ErrorRate:
    """Rates of answers that are turned round at random after they were estimated."""
    rate = estimate(sums, confidence)
    ends = (rate.zero, rate.one, rate.low, rate.high)
    zero, one, low, high = (float(unchecked(flipped_error_rate)(end, flip_probability)) for end in ends)
    return rate._replace(zero=zero, one=one, low=low, high=high)


def _learner(chosen: MethodSettings) -> Callable[[Situation], FloatArray] | None:
    """Selection weights by the learner that the settings name; None for the default.

    Fixed share goes by what it said before, see ``paths``; here are the weights of its beginning.
    """
    learners: Mapping[str, Callable[[Situation], FloatArray]] = {
        "hedge": lambda seen: unchecked(hedge)(seen.regrets, chosen.learning_rate or 0.0),
        "any-time-hedge": hedge_at_any_time,
        "ada-hedge": lambda seen: unchecked(ada_hedge)(seen.regrets, seen.gaps, seen.n_experts),
        "fixed-share": lambda seen: np.full(len(seen.regrets), 1.0 / len(seen.regrets)),
        "follow-the-leader": lambda seen: unchecked(follow_the_leader)(seen.regrets),
        "top-committee": lambda seen: unchecked(top_committee)(seen.regrets, chosen.committee),
    }
    return learners.get(chosen.learner)


def round_gap(regrets: FloatArray, weights: FloatArray, n_experts: int, gaps: float) -> float:
    """Mixability gap of a round of AdaHedge, after those that sum to ``gaps``."""
    return float(unchecked(mixability_gap)(regrets, weights, unchecked(ada_hedge_rate)(n_experts, gaps)))

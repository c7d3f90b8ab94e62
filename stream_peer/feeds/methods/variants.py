"""Variants of the mathematics that ``stream-peer replay`` can choose, and the preset ``paper``.

What `MethodSettings` name is put to work here, one function for each place named in ``method``; the formulas are those
of ``numerics``. While all is as built in, nothing here is called.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import BoolArray, FloatArray, IntArray, SmallIntArray, unchecked
from stream_peer.numerics.error_rates import ErrorRate, ErrorRateSums, known_error_rate
from stream_peer.numerics.error_rates.groups import EqualGroupSums, TwoGroupSums
from stream_peer.numerics.error_rates.truth import TruthSums
from stream_peer.numerics.learners import ada_normal_hedge, hedge, hedge_rate
from stream_peer.numerics.peer_losses import flipped_error_rate
from stream_peer.numerics.reference_rules import (
    Ballots,
    GroupAnswers,
    ReferenceAnswers,
    answers_of_all,
    answers_of_groups,
    answers_of_other_group,
    answers_of_others,
    ballots,
)
from stream_peer.numerics.variants.learners import (
    ada_hedge,
    ada_hedge_rate,
    follow_the_leader,
    mixability_gap,
    top_committee,
)
from stream_peer.numerics.variants.three_references import ThreeReferenceClassSums, ThreeReferenceSums
from stream_peer.settings.feed.method import MethodSettings

N_GROUPS = 3
_NONE = 2
NO_ANSWERS = 26
"""``coded`` where no group was asked: each digit, to the base 3, is 2."""


class Chance(NamedTuple):
    """What was drawn for a round.

    Attributes
    ----------
    groups : (n,) int64
        Number of each expert's group, the same for all of a team.
    coins : (int, int, int)
        A fair coin for each group.
    flip : bool
        Whether its reference answers are turned round.
    """

    groups: IntArray
    coins: tuple[int, int, int]
    flip: bool


class OwnAnswers(NamedTuple):
    """What the experts of a round are scored against.

    Attributes
    ----------
    answers : (n,) int8
    ties : (n,) bool
    given : bool
        Whether everybody has an answer. If not, the round does not count.
    coded : int
        Answers of the groups, 0, 1 or 2 for none, as digits to the base 3, that of the first group last.
    alike : int, optional
        The answer of everybody where it is known to be the same for all.
    """

    answers: SmallIntArray
    ties: BoolArray
    given: bool = True
    coded: int = NO_ANSWERS
    alike: int | None = None


def n_groups(method: MethodSettings) -> int:
    """Groups that reference answers are asked of; 0 if none are."""
    if method.error_rate in ("three-references", "three-class-references"):
        return 3
    return 2 if method.against in ("group-a", "other-group") else 0


def variant_answers(
    forecasts: FloatArray,
    thresholds: FloatArray | None,
    select: FloatArray,
    coin: int,
    chance: Chance,
    method: MethodSettings,
    teams: IntArray | None = None,
) -> OwnAnswers:
    """Reference answers by the rule and of the experts that the settings name.

    Of all others: those of other teams. Groups take in whole teams, see ``Chance``; who is scored against everybody
    has a share in the answer anyway.
    """
    weights = select if method.reference == "weighted" else None
    cast = unchecked(ballots)(forecasts, method.reference, thresholds=thresholds, weights=weights)
    if method.against == "others":
        own, coded = unchecked(answers_of_others)(cast, coin, teams), NO_ANSWERS
    elif method.against == "everybody":
        own, coded = _alike(unchecked(answers_of_all)(cast, coin), len(forecasts)), NO_ANSWERS
    else:
        own, coded = _of_groups(cast, chance, method)
    answers = (1 - own.answers if chance.flip else own.answers).astype(np.int8)
    return OwnAnswers(answers, own.ties, bool(own.given.all()), coded)


def _alike(answer: ReferenceAnswers, n_experts: int) -> ReferenceAnswers:
    answers, ties, given = answer
    return ReferenceAnswers(np.repeat(answers, n_experts), np.repeat(ties, n_experts), np.repeat(given, n_experts))


def _of_groups(cast: Ballots, chance: Chance, method: MethodSettings) -> tuple[ReferenceAnswers, int]:
    groups = chance.groups
    asked = [
        unchecked(answers_of_groups)(cast, groups == number, (coin, coin)).a
        for number, coin in enumerate(chance.coins[: n_groups(method)])
    ]
    coded = sum(3**number * (int(a.answers) if a.given else _NONE) for number, a in enumerate(asked))
    coded += sum(_NONE * 3**number for number in range(len(asked), N_GROUPS))
    if method.against == "group-a":
        return _alike(asked[0], len(groups)), coded
    return unchecked(answers_of_other_group)(GroupAnswers(asked[0], asked[1]), groups == 0), coded


def group_moments(coded: int, asked: int) -> tuple[float, ...] | None:
    """Whether the first, second and third group answered 1, and pairs of them, and all three.

    None if one of those asked had no answer; of two, the third counts as 0.
    """
    digits = coded % 3, coded // 3 % 3, coded // 9
    if not asked or _NONE in digits[:asked]:
        return None
    first, second = float(digits[0]), float(digits[1])
    third = float(digits[2]) if asked == N_GROUPS else 0.0
    return first, second, third, first * second, first * third, second * third, first * second * third


def variant_rate(
    method: MethodSettings, groups: Sequence[float], truth: Sequence[float], questions: float, confidence: float
) -> ErrorRate | None:
    """Error rates by the estimator that the settings name; None for those from moments of the votes.

    Parameters
    ----------
    method : MethodSettings
    groups : sequence of float
        Sums of the weight, its square, and ``group_moments``.
    truth : sequence of float
        Right and wrong answers among outcomes of 0, then of 1.
    questions : float
        Effective ones with votes: by these trust goes where rates are known and none is asked for them.
    confidence : float
    """
    if method.error_rate in ("moments", "class-moments"):
        return None
    if method.error_rate == "outcomes":
        return unchecked(TruthSums.estimate)(TruthSums(*truth), confidence)
    if method.error_rate == "known":
        known = unchecked(known_error_rate)(method.known_zero or 0.0, method.known_one or 0.0)
        rate = known._replace(effective_questions=questions)
    else:
        sums = _group_sums(method, groups)
        rate = unchecked(type(sums).estimate)(sums, confidence)
    return _flipped(rate, method.flip_probability)


def _group_sums(method: MethodSettings, groups: Sequence[float]) -> ErrorRateSums:
    weight, weight2, first, second, third, both, first_third, second_third, all_three = groups
    if method.error_rate == "two-groups":
        return TwoGroupSums(weight, weight2, first, second, both)
    if method.error_rate == "equal-groups":
        return EqualGroupSums(weight, weight2, first, second, both)
    three = (weight, weight2, first, second, third, both, first_third, second_third, all_three)
    return ThreeReferenceSums(*three) if method.error_rate == "three-references" else ThreeReferenceClassSums(*three)


def _flipped(rate: ErrorRate, flip_probability: float) -> ErrorRate:
    """Rates of answers that are turned round at random after they were estimated."""
    if not flip_probability:
        return rate
    rates = (rate.zero, rate.one, rate.low, rate.high)
    zero, one, low, high = (float(unchecked(flipped_error_rate)(r, flip_probability)) for r in rates)
    return rate._replace(zero=zero, one=one, low=low, high=high)


class Situation(NamedTuple):
    """What learners read.

    Attributes
    ----------
    regrets, absolute : (n,) float64
        Priced regrets of the experts present, and the sums of their absolute values.
    loss_range : float
        Of the losses that were priced, at least 1.
    n_experts, questions
        Seen so far.
    gaps : float
        Sum of the mixability gaps.
    """

    regrets: FloatArray
    absolute: FloatArray
    loss_range: float
    n_experts: int
    questions: float
    gaps: float


_LEARNERS: Mapping[str, Callable[[Situation, MethodSettings], FloatArray]] = {
    "ada-normal-hedge": lambda seen, _: unchecked(ada_normal_hedge)(
        seen.regrets / seen.loss_range, seen.absolute / seen.loss_range
    ),
    "hedge": lambda seen, method: unchecked(hedge)(seen.regrets, method.learning_rate or 0.0),
    "any-time-hedge": lambda seen, _: unchecked(hedge)(
        seen.regrets, unchecked(hedge_rate)(seen.n_experts, seen.questions, seen.loss_range)
    ),
    "ada-hedge": lambda seen, _: unchecked(ada_hedge)(seen.regrets, seen.gaps, seen.n_experts),
    "fixed-share": lambda seen, _: np.full(len(seen.regrets), 1.0 / len(seen.regrets)),
    "follow-the-leader": lambda seen, _: unchecked(follow_the_leader)(seen.regrets),
    "top-committee": lambda seen, method: unchecked(top_committee)(seen.regrets, method.committee),
}
"""Fixed share goes by what it said before (see ``paths``); here, the weights of its beginning."""


def variant_selection(situation: Situation, method: MethodSettings) -> FloatArray:
    """Selection weights by the learner that the settings name."""
    return _LEARNERS[method.learner](situation, method)


def round_gap(regrets: FloatArray, weights: FloatArray, n_experts: int, gaps: float) -> float:
    """Mixability gap of a round of AdaHedge, after those that sum to ``gaps``."""
    return float(unchecked(mixability_gap)(regrets, weights, unchecked(ada_hedge_rate)(n_experts, gaps)))

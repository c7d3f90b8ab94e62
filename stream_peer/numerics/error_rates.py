"""How often reference answers are wrong: with no outcome known, with some, and as a price.

Symmetric leave-one-out moments and their combination with measured errors. The class-dependent moments, the two-group
and three-group estimators belong here too; tests of dependence among experts belong beside it, in ``dependence``.
"""

import math
from dataclasses import astuple, dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from stream_peer.numerics.losses import SmallIntArray

EstimateStatus: TypeAlias = Literal["ok", "insufficient", "uninformative"]

HIGHEST_RATE = 0.475
HIGHEST_PRICED_SUM = 0.8
FEWEST_EFFECTIVE_QUESTIONS = 50.0

_PSEUDO_QUESTIONS = 20.0
_PSEUDO_PAIR = 0.1
_PSEUDO_REST = (1.0 - 2.0 * 0.25) * math.sqrt(_PSEUDO_PAIR)
_MODEL_ALLOWANCE = 0.005
_MOST_PSEUDO_LABELS = 30.0
_UNKNOWN_VARIANCE = 0.25
_WIDEST_LOG = 50.0


class MomentTerms(NamedTuple):
    """What one round says about agreement.

    Attributes
    ----------
    pair : float
        Mean of v_i·v_j over the ordered pairs of different voters, in [-1/(n-1), 1].
    rest : float
        Mean of v_i·R_i over the voters, R_i = ±1 each one's own reference answer, in [-1, 1].
    """

    pair: float
    rest: float


@dataclass(frozen=True, slots=True)
class MomentSums:
    """Sums over questions with weights w that `symmetric_error_rate` reads. Two sets add up to that of both.

    Attributes
    ----------
    weight, weight2 : float
        Σw and Σw².
    pair, rest : float
        Σw·pair and Σw·rest, of a question's mean over its rounds.
    pair2, rest2, pair_rest : float
        Σw·pair², Σw·rest², Σw·pair·rest.

    Examples
    --------
    >>> MomentSums.of(MomentTerms(pair=0.5, rest=1.0)) + MomentSums.of(MomentTerms(pair=0.0, rest=0.5), weight=0.5)
    MomentSums(weight=1.5, weight2=1.25, pair=0.5, rest=1.25, pair2=0.25, rest2=1.125, pair_rest=0.5)
    """

    weight: float = 0.0
    weight2: float = 0.0
    pair: float = 0.0
    rest: float = 0.0
    pair2: float = 0.0
    rest2: float = 0.0
    pair_rest: float = 0.0

    @classmethod
    def of(cls, terms: MomentTerms, weight: float = 1.0) -> "MomentSums":
        """The sums of a single question."""
        pair, rest = weight * terms.pair, weight * terms.rest
        return cls(weight, weight * weight, pair, rest, pair * terms.pair, rest * terms.rest, pair * terms.rest)

    def __add__(self, other: "MomentSums") -> "MomentSums":
        return MomentSums(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


class ErrorRate(NamedTuple):
    """Estimated error rates of reference answers.

    Attributes
    ----------
    zero, one : float
        η0 = P(ŷ=1 | y=0) and η1 = P(ŷ=0 | y=1), in [0, .475].
    low, high : float
        Interval of their mean, within [0, .475], around it.
    effective_questions : float
        (Σw)²/Σw² of the questions behind the truth-free part; 0 if there are none.
    status : str
        ``insufficient`` below 50 effective questions; else ``uninformative`` if η0 + η1 > .8 (so also wherever the
        estimate is stuck at .475); else ``ok``.
    variance : float
        Of the truth-free estimate, at most ¼; ¼ also where it is not known.
    """

    zero: float
    one: float
    low: float
    high: float
    effective_questions: float
    status: EstimateStatus
    variance: float


class PricedRates(NamedTuple):
    """Error rates to price losses with: their sum is at most .8, and ``capped`` says whether it was above."""

    zero: float
    one: float
    capped: bool


def moment_terms(votes: SmallIntArray, reference_answers: SmallIntArray) -> MomentTerms | None:
    """Agreement of a round's voters with one another and with their leave-one-out references.

    With n voters, v_i = ±1, R_i = 2ŷ_i - 1: ``pair = ((Σv)² - n) / (n(n-1))``, ``rest = (1/n) Σ v_i·R_i``.
    If voters err independently given the outcome, with a_i = 1 - 2·(error of i): E[pair] is the mean of a_i·a_j over
    pairs and E[rest] the mean of a_i times 1 - 2·(error of R_i), whatever the share of zeros.

    Parameters
    ----------
    votes : (n_experts,) int8
        +1, -1, or 0 for no vote.
    reference_answers : (n_experts,) int8
        Each expert's own ŷ_i, 0 or 1.

    Returns
    -------
    MomentTerms or None
        None with fewer than two voters.

    Examples
    --------
    >>> import numpy as np
    >>> moment_terms(np.array([1, 1, -1, 0], dtype=np.int8), np.array([0, 1, 1, 1], dtype=np.int8)).rest
    -0.3333333333333333
    """
    n_voters = int(np.count_nonzero(votes))
    if n_voters < 2:
        return None
    total = int(np.add.reduce(votes, dtype=np.int64))
    with_reference = 2 * int(np.add.reduce(votes * reference_answers, dtype=np.int64)) - total
    return MomentTerms(
        pair=(total * total - n_voters) / (n_voters * (n_voters - 1)),
        rest=with_reference / n_voters,
    )


def symmetric_error_rate(sums: MomentSums, confidence: float = 0.95) -> ErrorRate:
    """Error rate of leave-one-out reference answers, the same for both classes, from agreement alone.

    ``η̂ = ½·(1 - mean(rest) / √mean(pair))``, clamped to [0, .475]; .475 where mean(pair) ≤ 0. The means include 20
    pseudo-questions of η = .25 and pair = .1 (so rest = ½·√.1).

    Interval: ``ln a ± z·sd`` with a = 1 - 2η and, by the delta method,
    ``sd² = [Var(rest)/rest² + Var(pair)/(4·pair²) - Cov(rest, pair)/(rest·pair)] / n_eff``, n_eff = (Σw)²/Σw².
    The pseudo-questions count here as well, each with weight 1 and with mean squares of pair and of rest of 1, the
    widest that votes of ±1 allow: the interval is wide while there is little data, and they fade as 20/n_eff.
    Then ±.005 is added, since √pair falls short of the mean a when experts differ, and it is cut at [0, .475]. With
    no data, or where the delta method says nothing (mean pair or mean rest ≤ 0), it is all of [0, .475].

    Notes
    -----
    Replaces the two-group estimator of Theorem 7 of Liu & Helmbold, whose printed solution has a wrong quadratic, and
    which cannot tell the groups' rates apart where both outcomes are equally frequent. This one does not depend
    on their frequency. It is right if experts err independently given the outcome, and too low if they share
    errors.

    Parameters
    ----------
    sums : MomentSums
        Over questions, not over rounds: the rounds of a question are averaged first.
    confidence : float
        In (0, 1).

    Returns
    -------
    ErrorRate

    Examples
    --------
    >>> sums = MomentSums(weight=1000, weight2=1000, pair=250, rest=400, pair2=160, rest2=300, pair_rest=150)
    >>> rate = symmetric_error_rate(sums)
    >>> round(rate.zero, 4), round(rate.low, 4), round(rate.high, 4), rate.status
    (0.1024, 0.0726, 0.1307, 'ok')
    >>> symmetric_error_rate(MomentSums())[:6]
    (0.25, 0.25, 0.0, 0.475, 0.0, 'insufficient')
    """
    mean_pair, mean_rest = _shrunk_means(sums)
    effective = sums.weight * sums.weight / sums.weight2 if sums.weight2 > 0.0 else 0.0
    alignment = mean_rest / math.sqrt(mean_pair) if mean_pair > 0.0 else 0.0
    rate = min(max(0.5 * (1.0 - alignment), 0.0), HIGHEST_RATE)
    low, high, variance = 0.0, HIGHEST_RATE, _UNKNOWN_VARIANCE
    if alignment > 0.0:
        log_variance = _log_variance(sums)
        variance = min(0.25 * alignment * alignment * log_variance, _UNKNOWN_VARIANCE)
        if effective > 0.0:
            factor = math.exp(min(_normal_quantile(confidence) * math.sqrt(log_variance), _WIDEST_LOG))
            low, high = _interval(rate, 0.5 * (1.0 - alignment * factor), 0.5 * (1.0 - alignment / factor))
    return ErrorRate(rate, rate, low, high, effective, _status(effective, rate, rate), variance)


def combine_with_truth(
    free: ErrorRate,
    wrong0: float,
    revealed0: float,
    wrong1: float,
    revealed1: float,
    confidence: float = 0.95,
) -> ErrorRate:
    """Correct a truth-free estimate by the errors seen on resolved questions, per class.

    ``η̂_k = (wrong_k + n_k·η̂_free) / (revealed_k + n_k)``, ``n_k = min(η̂_free(1 - η̂_free)/V_free, 30)``: the truth-free
    estimate counts as a Beta prior of at most 30 labels, because more data does not help it where experts
    share errors. Clamped to [0, .475]. Without outcomes of a class that class keeps the truth-free rate.

    Interval of (η0+η1)/2: the half-widths of the truth-free one, scaled by the mean share n_k/(revealed_k + n_k), and
    z times the binomial standard deviation of the revealed part, added as squares. So it starts as the truth-free
    interval and ends as that of the counts.

    Notes
    -----
    Differs from the paper's estimator with limited ground truth twice. It counts disagreements: the paper's indicator
    counts agreements, whose mean is 1 - η. And it divides by the number revealed instead of weighting by 1/p*, which
    needs no p* and has a smaller variance. In n_k an η̂_free below .005 counts as .005, so that a first error does
    not meet a prior of no weight.

    Parameters
    ----------
    free : ErrorRate
        From `symmetric_error_rate`.
    wrong0, revealed0, wrong1, revealed1 : float
        Weights of wrong reference answers and of all, where the outcome was 0 and where it was 1. 0 ≤ wrong ≤ revealed.
    confidence : float
        In (0, 1), that of ``free``.

    Returns
    -------
    ErrorRate
        With the status of the combined rates; ``effective_questions`` and ``variance`` are those of ``free``.

    Examples
    --------
    >>> sums = MomentSums(weight=1000, weight2=1000, pair=250, rest=400, pair2=160, rest2=300, pair_rest=150)
    >>> rate = combine_with_truth(symmetric_error_rate(sums), wrong0=3, revealed0=30, wrong1=18, revealed1=30)
    >>> round(rate.zero, 4), round(rate.one, 4), round(rate.low, 4), round(rate.high, 4)
    (0.1012, 0.3512, 0.1735, 0.2787)
    """
    zero, share0, noise0 = _corrected(free.zero, free.variance, wrong0, revealed0)
    one, share1, noise1 = _corrected(free.one, free.variance, wrong1, revealed1)
    mean_free, mean = 0.5 * (free.zero + free.one), 0.5 * (zero + one)
    share = 0.5 * (share0 + share1)
    noise = 0.5 * _normal_quantile(confidence) * math.sqrt(noise0 + noise1)
    low = mean - math.hypot(share * (mean_free - free.low), noise)
    high = mean + math.hypot(share * (free.high - mean_free), noise)
    status = _status(free.effective_questions, zero, one)
    return ErrorRate(zero, one, max(low, 0.0), min(high, HIGHEST_RATE), free.effective_questions, status, free.variance)


def priced(zero: float, one: float) -> PricedRates:
    """Error rates as they enter prices: if their sum exceeds .8, both are scaled to sum to .8.

    So d = 1 - η0 - η1 ≥ .2, and nothing is divided by almost nothing.

    Parameters
    ----------
    zero, one : float
        η0 and η1, in [0, 1].

    Returns
    -------
    PricedRates

    Examples
    --------
    >>> priced(0.1, 0.3)
    PricedRates(zero=0.1, one=0.3, capped=False)
    >>> priced(0.5, 0.5)
    PricedRates(zero=0.4, one=0.4, capped=True)
    """
    total = zero + one
    if total <= HIGHEST_PRICED_SUM:
        return PricedRates(zero, one, capped=False)
    return PricedRates(zero * HIGHEST_PRICED_SUM / total, one * HIGHEST_PRICED_SUM / total, capped=True)


def interval_ends(rate: ErrorRate) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both rates at the lower and at the upper end of their interval, shifted alike; for `bounds.live_certificate`.

    Parameters
    ----------
    rate : ErrorRate

    Returns
    -------
    ((float, float), (float, float))
        (η0, η1) at ``low`` and at ``high``, each cut at 0.

    Examples
    --------
    >>> ends = interval_ends(ErrorRate(0.1, 0.3, 0.15, 0.25, 500.0, "ok", 0.001))
    >>> [(round(zero, 3), round(one, 3)) for zero, one in ends]
    [(0.05, 0.25), (0.15, 0.35)]
    """
    mean = 0.5 * (rate.zero + rate.one)
    down, up = rate.low - mean, rate.high - mean
    return (max(rate.zero + down, 0.0), max(rate.one + down, 0.0)), (rate.zero + up, rate.one + up)


def _shrunk_means(sums: MomentSums) -> tuple[float, float]:
    total = sums.weight + _PSEUDO_QUESTIONS
    return (
        (sums.pair + _PSEUDO_QUESTIONS * _PSEUDO_PAIR) / total,
        (sums.rest + _PSEUDO_QUESTIONS * _PSEUDO_REST) / total,
    )


def _log_variance(sums: MomentSums) -> float:
    """Variance of ln(rest/√pair), both means positive, pseudo-questions included."""
    total = sums.weight + _PSEUDO_QUESTIONS
    pair, rest = _shrunk_means(sums)
    relative_pair = (sums.pair2 + _PSEUDO_QUESTIONS) / total / (pair * pair) - 1.0
    relative_rest = (sums.rest2 + _PSEUDO_QUESTIONS) / total / (rest * rest) - 1.0
    product = (sums.pair_rest + _PSEUDO_QUESTIONS * _PSEUDO_PAIR * _PSEUDO_REST) / total
    relative_both = product / (rest * pair) - 1.0
    effective = total * total / (sums.weight2 + _PSEUDO_QUESTIONS)
    return max(relative_rest + 0.25 * relative_pair - relative_both, 0.0) / effective


def _interval(rate: float, low: float, high: float) -> tuple[float, float]:
    """Widen by the model's own error and cut, so that ``0 ≤ low ≤ rate ≤ high ≤ .475``."""
    return (
        min(max(low - _MODEL_ALLOWANCE, 0.0), rate),
        max(min(high + _MODEL_ALLOWANCE, HIGHEST_RATE), rate),
    )


def _corrected(free_rate: float, variance: float, wrong: float, revealed: float) -> tuple[float, float, float]:
    """One class: the combined rate, the share of the prior in it, the variance of the revealed part."""
    if not revealed > 0.0:
        return free_rate, 1.0, 0.0
    counted = max(free_rate, _MODEL_ALLOWANCE)
    spread = counted * (1.0 - counted)
    prior = spread / variance if variance * _MOST_PSEUDO_LABELS > spread else _MOST_PSEUDO_LABELS
    total = revealed + prior
    rate = min((wrong + prior * free_rate) / total, HIGHEST_RATE)
    return rate, prior / total, revealed * rate * (1.0 - rate) / (total * total)


def _status(effective: float, zero: float, one: float) -> EstimateStatus:
    if effective < FEWEST_EFFECTIVE_QUESTIONS:
        return "insufficient"
    return "uninformative" if zero + one > HIGHEST_PRICED_SUM else "ok"


@lru_cache(maxsize=64)
def _normal_quantile(confidence: float) -> float:
    """Half-width of a two-sided normal interval in standard deviations: 1.96 for .95."""
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)

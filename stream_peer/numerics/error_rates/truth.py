"""Error rates measured on resolved questions, their combination with an estimate made without them, and two checks.

`contradiction`: whether outcomes bear out error rates estimated without them. `reveal_shift`: whether they were
revealed at random.
"""

import math
from dataclasses import dataclass
from functools import cache
from operator import add
from statistics import NormalDist
from typing import NamedTuple, Self

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import AT_LEAST_0, BIT, CONFIDENCE, NUMBER, SHARE, AddingSums, Fields, checked
from stream_peer.numerics.error_rates.rate import (
    ERROR_RATE,
    FEWEST_EFFECTIVE_QUESTIONS,
    HIGHEST_RATE,
    LEAST_Z,
    MODEL_ALLOWANCE,
    PRIOR_RATE,
    UNKNOWN_VARIANCE,
    ErrorRate,
    normal_quantile,
    status_of,
)

__all__ = [
    "Contradiction",
    "RevealShift",
    "TruthSums",
    "combine_with_truth",
    "contradiction",
    "early_contradiction",
    "reveal_shift",
]

_MOST_PSEUDO_OUTCOMES = 30.0
_LEAST_PRIOR_RATE = 0.005


_COUNTS = dict.fromkeys(("right_zero", "wrong_zero", "right_one", "wrong_one"), AT_LEAST_0)
_SOUND = Fields(None, _COUNTS)


@dataclass(frozen=True, slots=True)
class TruthSums(AddingSums):
    """Weights of right and wrong reference answers on resolved questions, by outcome; for Hájek's estimate.

    Attributes
    ----------
    right_zero, wrong_zero : float
        Where the outcome was 0.
    right_one, wrong_one : float
        Where it was 1.

    Examples
    --------
    >>> one = TruthSums.contribution(wrong_share=0.25, outcome=1)
    >>> one.merge(TruthSums.contribution(wrong_share=0.0, outcome=0, weight=0.5))
    TruthSums(right_zero=0.5, wrong_zero=0.0, right_one=0.75, wrong_one=0.25)
    """

    right_zero: float = 0.0
    wrong_zero: float = 0.0
    right_one: float = 0.0
    wrong_one: float = 0.0

    @classmethod
    @checked(wrong_share=SHARE, outcome=BIT, weight=AT_LEAST_0)
    def contribution(cls, wrong_share: float, outcome: int, weight: float = 1.0) -> Self:
        """The sums of a single resolved question.

        ``wrong_share`` in [0, 1]: the mean over its rounds, and over experts if each has a reference answer of its
        own, of 1(ŷ ≠ y). ``weight`` in [0, 1].

        Raises
        ------
        FormulaInputError
            If the share is outside [0, 1], the outcome neither 0 nor 1, or the weight negative, infinite or NaN.
        """
        wrong = weight * wrong_share
        right = weight - wrong
        return cls(0.0, 0.0, right, wrong) if outcome else cls(right, wrong, 0.0, 0.0)

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rates of reference answers as measured: Hájek's ratio of wrong ones to all revealed, per class.

        ``η̂_k = wrong_k / revealed_k``, clamped to [0, .475]. A class of which no outcome is known has the rate of
        the other, and if neither has any, both are .25. Interval of (η0+η1)/2: Wilson's of each class,
        l_k to h_k, put together by ``(η̂0+η̂1)/2 - ½√((η̂0-l0)² + (η̂1-l1)²)``, and likewise above; with a class
        of which no outcome is known, anything from 0 to 1 is possible there and the distances are added plainly.

        Parameters
        ----------
        confidence : float
            In (0, 1), at one time fixed in advance; for all times at once see `revealed_error_bound`.

        Returns
        -------
        ErrorRate
            ``effective_questions`` counts resolved ones, ``variance`` is the larger of the two rates'. The status is
            ``insufficient`` with less than 50 of them or with no outcome of one class.

        Notes
        -----
        Differs from the paper's estimator with limited ground truth twice. It counts disagreements; the paper's
        indicator counts agreements, whose mean is 1 - η (Erratum E1). And it divides by the number revealed instead
        of weighting by 1/p*, which needs no p* and has variance η(1-η)/(p*·t), never above that of
        `HorvitzThompsonSums`, η(1/p* - η)/t (Erratum E3).

        Examples
        --------
        >>> rate = TruthSums(right_zero=180, wrong_zero=20, right_one=70, wrong_one=30).estimate()
        >>> [round(value, 4) for value in rate[:4]], rate.status
        ([0.1, 0.3, 0.156, 0.2539], 'ok')
        """
        revealed = (self.right_zero + self.wrong_zero, self.right_one + self.wrong_one)
        wrong = (self.wrong_zero, self.wrong_one)
        total = revealed[0] + revealed[1]
        overall = (wrong[0] + wrong[1]) / total if total > 0.0 else PRIOR_RATE
        known = [w / n if n > 0.0 else overall for w, n in zip(wrong, revealed, strict=True)]
        lows, highs = zip(*(_wilson(rate, n, confidence) for rate, n in zip(known, revealed, strict=True)), strict=True)
        zero, one = (min(rate, HIGHEST_RATE) for rate in known)
        mean = 0.5 * (known[0] + known[1])
        together = math.hypot if min(revealed) > 0.0 else add
        low = mean - 0.5 * together(known[0] - lows[0], known[1] - lows[1])
        high = mean + 0.5 * together(highs[0] - known[0], highs[1] - known[1])
        cut = 0.5 * (zero + one)
        status = status_of(total if min(revealed) > 0.0 else 0.0, zero, one)
        variance = max(_binomial_variance(rate, n) for rate, n in zip(known, revealed, strict=True))
        return ErrorRate(zero, one, min(max(low, 0.0), cut), max(min(high, HIGHEST_RATE), cut), total, status, variance)


TRUTH_SUMS = Fields(TruthSums, _COUNTS)


@checked(
    free=ERROR_RATE,
    wrong0=AT_LEAST_0,
    revealed0=AT_LEAST_0,
    wrong1=AT_LEAST_0,
    revealed1=AT_LEAST_0,
    confidence=CONFIDENCE,
)
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
    counts agreements, whose mean is 1 - η (Erratum E1). And it divides by the number revealed instead of weighting
    by 1/p*, which needs no p* and has a smaller variance (Erratum E3). In n_k an η̂_free below .005 counts as .005, so
    that a first error does not meet a prior of no weight.

    Parameters
    ----------
    free : ErrorRate
        Such as `MomentSums.estimate` gives.
    wrong0, revealed0, wrong1, revealed1 : float
        Weights of wrong reference answers and of all, where the outcome was 0 and where it was 1. 0 ≤ wrong ≤ revealed.
    confidence : float
        In (0, 1), that of ``free``.

    Returns
    -------
    ErrorRate
        ``effective_questions`` and ``variance`` are those of ``free``. The status is that of the combined rates, but a
        ``free`` that is not identified stays so named until, for both classes, outcomes weigh more than it does.

    Raises
    ------
    FormulaInputError
        If weights are negative or infinite, more answers are wrong than there are, or the confidence is out of range.

    Examples
    --------
    >>> from stream_peer.numerics.error_rates.moments import MomentSums
    >>> sums = MomentSums(weight=1000, weight2=1000, pair=250, rest=400, pair2=160, rest2=300, pair_rest=150)
    >>> rate = combine_with_truth(sums.estimate(), wrong0=3, revealed0=30, wrong1=18, revealed1=30)
    >>> round(rate.zero, 4), round(rate.one, 4), round(rate.low, 4), round(rate.high, 4)
    (0.1012, 0.3512, 0.1735, 0.2787)
    """
    for wrong, revealed in ((wrong0, revealed0), (wrong1, revealed1)):
        if not 0.0 <= wrong <= revealed < math.inf:
            msg = f"{wrong!r} answers of {revealed!r} are wrong: must be >= 0, and no more than there are"
            raise FormulaInputError(msg)
    zero, share0, noise0 = _corrected(free.zero, free.variance, wrong0, revealed0)
    one, share1, noise1 = _corrected(free.one, free.variance, wrong1, revealed1)
    mean_free, mean = 0.5 * (free.zero + free.one), 0.5 * (zero + one)
    share = 0.5 * (share0 + share1)
    noise = 0.5 * normal_quantile(confidence) * math.sqrt(noise0 + noise1)
    low = mean - math.hypot(share * (mean_free - free.low), noise)
    high = mean + math.hypot(share * (free.high - mean_free), noise)
    status = status_of(free.effective_questions, zero, one)
    if status == "ok" and free.status not in ("ok", "insufficient") and max(share0, share1) >= 0.5:
        status = free.status
    return ErrorRate(zero, one, max(low, 0.0), min(high, HIGHEST_RATE), free.effective_questions, status, free.variance)


def _corrected(free_rate: float, variance: float, wrong: float, revealed: float) -> tuple[float, float, float]:
    """One class: the combined rate, the share of the prior in it, the variance of the revealed part."""
    if not revealed > 0.0:
        return free_rate, 1.0, 0.0
    counted = max(free_rate, _LEAST_PRIOR_RATE)
    spread = counted * (1.0 - counted)
    prior = spread / variance if variance * _MOST_PSEUDO_OUTCOMES > spread else _MOST_PSEUDO_OUTCOMES
    total = revealed + prior
    rate = min((wrong + prior * free_rate) / total, HIGHEST_RATE)
    return rate, prior / total, revealed * rate * (1.0 - rate) / (total * total)


def _wilson(rate: float, count: float, confidence: float) -> tuple[float, float]:
    """Wilson's interval of a share among so many; all of [0, 1] for none, or for a trace of one."""
    squared = normal_quantile(confidence) ** 2 / count if count > 0.0 else math.inf
    if squared == math.inf:
        return 0.0, 1.0
    middle = (rate + 0.5 * squared) / (1.0 + squared)
    reach = math.sqrt(squared * (rate * (1.0 - rate) + 0.25 * squared)) / (1.0 + squared)
    return min(max(middle - reach, 0.0), rate), max(min(middle + reach, 1.0), rate)


def _binomial_variance(rate: float, count: float) -> float:
    """Of a share among so many, Laplace's rule keeping it off 0; ¼ for none."""
    smoothed = (rate * count + 1.0) / (count + 2.0)
    return smoothed * (1.0 - smoothed) / max(count, 1.0)


SHIFT_ALLOWANCE = 0.05
"""Means of questions with and without outcome may differ by so much: it moves a measured error rate by .02 or less."""


_ROUNDED = 1e-6
_LEAST_CHANCE = 1e-16
_NORMAL = NormalDist()


class Contradiction(NamedTuple):
    """How wrong reference answers were, beside what was expected.

    Attributes
    ----------
    measured : float
        Share of wrong ones on resolved questions.
    expected : float
        The same by the estimate made without outcomes, for as many outcomes of 0 and of 1.
    revealed : float
        Resolved questions.
    z : float
        By how many standard deviations more were wrong than is allowed.
    """

    measured: float
    expected: float
    revealed: float
    z: float

    @property
    def found(self) -> bool:
        """Whether outcomes contradict the estimate."""
        return self.z > LEAST_Z


@checked(measured=TRUTH_SUMS, free=ERROR_RATE)
def contradiction(measured: TruthSums, free: ErrorRate) -> Contradiction | None:
    """Whether reference answers were wrong more often than an estimate made without outcomes allows.

    With n_k outcomes of k, w_k wrong answers to them and the estimated rates η_k, ``m = Σw/Σn`` and ``e = Σ n·η/Σn``:
    ``z = (m - e - .02)/√(V1 + V2)``, V1 the binomial variance of m (by Laplace's rule), V2 that of the estimate.
    Outcomes contradict the estimate from z = 3.

    Notes
    -----
    Not in the paper. Whatever experts share makes an estimate from agreement too low, and shared shocks show nowhere
    else; no dependence known makes it too high, so fewer errors contradict nothing. Of independent experts who err
    alike on zeros and ones, none were contradicted in simulation (4 to 40 experts, 300 to 5,000 questions). Where they
    err differently, the symmetric estimate may be .03 too low with four experts, .02 with twelve.
    A comparison of the means of both classes would not do: such experts move these apart for no other reason.

    Parameters
    ----------
    measured : TruthSums
    free : ErrorRate

    Returns
    -------
    Contradiction or None
        None with fewer than 50 outcomes, and where the estimate is insufficient or of a variance of ¼.

    Examples
    --------
    >>> free = ErrorRate(0.1, 0.1, 0.06, 0.14, 2000.0, "ok", 0.0004)
    >>> found = contradiction(TruthSums(right_zero=70, wrong_zero=30, right_one=70, wrong_one=30), free)
    >>> found.measured, found.expected, round(found.z, 2), found.found
    (0.3, 0.1, 4.72, True)
    """
    zeros, ones = measured.right_zero + measured.wrong_zero, measured.right_one + measured.wrong_one
    revealed = zeros + ones
    unknown = free.status == "insufficient" or free.variance >= UNKNOWN_VARIANCE
    if unknown or revealed < FEWEST_EFFECTIVE_QUESTIONS:
        return None
    wrong = measured.wrong_zero + measured.wrong_one
    share, expected = wrong / revealed, (zeros * free.zero + ones * free.one) / revealed
    smoothed = (wrong + 1.0) / (revealed + 2.0)
    deviation = math.sqrt(smoothed * (1.0 - smoothed) / revealed + free.variance)
    return Contradiction(share, expected, revealed, (share - expected - MODEL_ALLOWANCE) / deviation)


@checked(measured=TRUTH_SUMS, free=ERROR_RATE)
def early_contradiction(measured: TruthSums, free: ErrorRate) -> Contradiction | None:
    """`contradiction` of fewer than 50 outcomes, by an exact binomial test.

    With e, n and w as there (n rounded, w rounded down) and b = e + (high - mean) + .02, the largest rate that the
    interval made without outcomes and the model's own error allow: ``z`` is the normal quantile of 1 - P(B ≥ w), B
    binomial of n and b. Outcomes contradict the estimate from z = 3, a chance of .00135 at one look.

    Notes
    -----
    Not in the paper. It finds gross differences only: 10 of 28 wrong against an interval up to .07, not 5 of 28.

    Parameters
    ----------
    measured : TruthSums
    free : ErrorRate

    Returns
    -------
    Contradiction or None
        None without outcomes, from 50 on, and where the estimate is insufficient or of a variance of ¼.

    Examples
    --------
    >>> free = ErrorRate(0.03, 0.03, 0.0, 0.07, 397.0, "ok", 0.0004)
    >>> found = early_contradiction(TruthSums(right_zero=12, wrong_zero=4, right_one=6, wrong_one=6), free)
    >>> found.expected, round(found.z, 2), found.found
    (0.03, 3.72, True)
    """
    zeros, ones = measured.right_zero + measured.wrong_zero, measured.right_one + measured.wrong_one
    revealed, wrong = zeros + ones, measured.wrong_zero + measured.wrong_one
    unknown = free.status == "insufficient" or free.variance >= UNKNOWN_VARIANCE
    if unknown or not 0.5 <= revealed < FEWEST_EFFECTIVE_QUESTIONS:
        return None
    expected = (zeros * free.zero + ones * free.one) / revealed
    allowed = expected + free.high - 0.5 * (free.zero + free.one) + MODEL_ALLOWANCE
    chance = _at_least(math.floor(wrong + _ROUNDED), round(revealed), min(allowed, 1.0))
    z = -_NORMAL.inv_cdf(min(max(chance, _LEAST_CHANCE), 1.0 - _LEAST_CHANCE))
    return Contradiction(wrong / revealed, expected, revealed, z)


def _at_least(wrong: int, total: int, rate: float) -> float:
    """P(B ≥ wrong), B binomial."""
    right = 1.0 - rate
    return math.fsum(ways * rate**k * right ** (total - k) for k, ways in enumerate(_ways(total)[wrong:], start=wrong))


@cache
def _ways(total: int) -> tuple[int, ...]:
    """Binomial coefficients. Every record asks for those of less than 50."""
    return tuple(math.comb(total, k) for k in range(total + 1))


class RevealShift(NamedTuple):
    """What questions with an outcome are like, beside the others.

    Attributes
    ----------
    resolved, others : float
        Means of the two.
    z : float
        By how many standard deviations their distance exceeds .05.
    """

    resolved: float
    others: float
    z: float

    @property
    def found(self) -> bool:
        """Whether outcomes were not revealed at random."""
        return self.z > LEAST_Z


@checked(weight=AT_LEAST_0, total=NUMBER, square=AT_LEAST_0, revealed=AT_LEAST_0, of_revealed=NUMBER)
def reveal_shift(weight: float, total: float, square: float, revealed: float, of_revealed: float) -> RevealShift | None:
    """Whether questions with an outcome differ from the others in a number that is known of all.

    With means a of the r questions with outcome and b of the u others, and S² the variance among all of them:
    ``z = (|a - b| - .05)/(S·√(1/r + 1/u))``. Which of them have an outcome is no chance from z = 3.

    Notes
    -----
    Not in the paper, which reveals outcomes by coin flips. Errors measured on questions that are easier than the
    others, or that were looked into because of the answer, do not speak for these. Of two numbers a shift says so:
    of the share of reference answers that are 1 (where what happens is told sooner than what does not, or only some
    answers are looked into), and of agreement (where the easy ones are told first).

    Parameters
    ----------
    weight, total, square : float
        Of all questions Σw, Σw·x and Σw·x².
    revealed, of_revealed : float
        Σw and Σw·x of those with an outcome.

    Returns
    -------
    RevealShift or None
        None with fewer than 50 of either.

    Raises
    ------
    FormulaInputError
        If a weight is negative, or more are revealed than there are.

    Examples
    --------
    >>> reveal_shift(weight=1000, total=400, square=400, revealed=200, of_revealed=120).found
    True
    >>> reveal_shift(weight=1000, total=400, square=400, revealed=200, of_revealed=90).found
    False
    """
    if not 0.0 <= revealed <= weight < math.inf:
        msg = f"{revealed!r} of {weight!r} questions are revealed: must be >= 0, and no more than there are"
        raise FormulaInputError(msg)
    rest = weight - revealed
    if min(revealed, rest) < FEWEST_EFFECTIVE_QUESTIONS:
        return None
    mean = total / weight
    resolved, others = of_revealed / revealed, (total - of_revealed) / rest
    deviation = math.sqrt(max(square / weight - mean * mean, 0.0) * (1.0 / revealed + 1.0 / rest))
    over = abs(resolved - others) - SHIFT_ALLOWANCE
    return RevealShift(resolved, others, over / max(deviation, 1e-9))

"""Whether outcomes bear out error rates estimated without them, and whether they were revealed at random."""

import math
from typing import NamedTuple

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.error_rates.rate import (
    ERROR_RATE,
    FEWEST_EFFECTIVE_QUESTIONS,
    LEAST_Z,
    MODEL_ALLOWANCE,
    UNKNOWN_VARIANCE,
    ErrorRate,
)
from stream_peer.numerics.error_rates.truth import TRUTH_SUMS, TruthSums
from stream_peer.numerics.losses.arguments import AT_LEAST_0, NUMBER, checked

SHIFT_ALLOWANCE = 0.05
"""Means of questions with and without outcome may differ by so much: it moves a measured error rate by .02 or less."""


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

"""Two kinds of questions behind the numbers of yes votes: the closed form of `class_moments`, and its uncertainty.

Central moments are (m1, E[R], C, D, K): mean vote, mean answer, their covariance C, the covariance D of two voters and
the third cumulant K of three, all with different voters.
"""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.error_rates.rate import LEAST_Z, MODEL_ALLOWANCE, PRIOR_RATE, PSEUDO_QUESTIONS
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import SHARE, checked

_PSEUDO_MEANS = (0.5, (1.0 - 2.0 * PRIOR_RATE) * math.sqrt(0.1) / 4.0, 0.1 / 4.0, 0.0)  # of E[R], C, D, K
_PSEUDO_COVARIANCE = np.diag([0.0, 1.0 / 4.0, 1.0 / 16.0, 1.0 / 16.0, 1.0 / 64.0])


class VoteMixture(NamedTuple):
    """Two kinds of questions, told apart by how often votes are yes.

    Attributes
    ----------
    yes_if_one, yes_if_zero : float
        P(vote yes | y = 1) and P(vote yes | y = 0), mean over experts; not cut at 0 and 1. The larger is that of 1.
    share_of_zeros : float
        P0, in (0, 1).
    """

    yes_if_one: float
    yes_if_zero: float
    share_of_zeros: float


class ClassReading(NamedTuple):
    """What the moments say, before anything is cut.

    Attributes
    ----------
    rates : (float, float)
        η0 and η1.
    variances : (float, float)
        Of each.
    mean_variance : float
        Of (η0+η1)/2.
    stands_out : bool
        Whether the votes vary more from question to question than chance explains: D is three sd above 0.
    impossible : bool
        Whether some rate of yes votes or of errors is outside [0, 1] beyond doubt.
    """

    rates: tuple[float, float]
    variances: tuple[float, float]
    mean_variance: float
    stands_out: bool
    impossible: bool


@checked(first=SHARE, second=SHARE, third=SHARE)
def vote_mixture(first: float, second: float, third: float) -> VoteMixture | None:
    """The two kinds of questions whose votes have these factorial moments, if there are any.

    ``b = (m3 - m1·m2)/(m2 - m1²)``, ``c = b·m1 - m2``; the rates v1 and v0 of yes votes are the roots
    ``(b ± √(b² - 4c))/2``, and ``P1 = (m1 - v0)/(v1 - v0)``. Nothing is shrunk or cut here.

    Parameters
    ----------
    first, second, third : float
        m_k, the mean share of k-tuples of different voters who all say yes, in [0, 1].

    Returns
    -------
    VoteMixture or None
        None if m2 ≤ m1²: then votes vary no more from question to question than coins do. Otherwise
        b² - 4c = (b - 2·m1)² + 4(m2 - m1²) > 0, and m1 lies between the roots, hence P1 in (0, 1).

    Raises
    ------
    FormulaInputError
        If not 0 ≤ m3 ≤ m2 ≤ m1 ≤ 1, which no votes give.

    Examples
    --------
    >>> [round(part, 12) for part in vote_mixture(0.35, 0.19, 0.134) or ()]
    [0.8, 0.2, 0.75]
    """
    if not 0.0 <= third <= second <= first <= 1.0:
        msg = f"factorial moments {first!r}, {second!r}, {third!r}: must fall from 1 to 0"
        raise FormulaInputError(msg)
    _, _, _, spread, skew = _central_moments((first, second, third, 0.0, 0.0))
    if not spread > 0.0:
        return None
    above, below = _distances(spread, skew)
    return VoteMixture(first + above, first - below, above / (above + below))


def _central_moments(means: tuple[float, float, float, float, float]) -> tuple[float, float, float, float, float]:
    """(m1, E[R], C, D, K) of the means (m1, m2, m3, E[R], E[R·x])."""
    first, second, third, answer, both = means
    return (
        first,
        answer,
        both - first * answer,
        second - first * first,
        third - 3.0 * first * second + 2.0 * first * first * first,
    )


def class_reading(
    means: tuple[float, float, float, float, float], covariance: FloatArray, weight: float
) -> ClassReading | None:
    """Class-dependent rates and their uncertainty, pseudo-questions included; None if D or C ≤ 0.

    ``means`` of (m1, m2, m3, E[R], E[R·x]), ``covariance`` (5, 5) of these means, ``weight`` of the questions.
    """
    share = weight / (weight + PSEUDO_QUESTIONS)
    first, *others = _central_moments(means)
    answer, alignment, spread, skew = (
        share * seen + (1.0 - share) * pseudo for seen, pseudo in zip(others, _PSEUDO_MEANS, strict=True)
    )
    if not (spread > 0.0 and alignment > 0.0):
        return None
    slopes = _central_slopes(means, share)
    seen = np.einsum("ij,jk,lk->il", slopes, covariance, slopes)
    skew = math.copysign(math.sqrt(max(skew * skew - max(float(seen[4, 4]), 0.0), 0.0)), skew)
    above, below = _distances(spread, skew)
    values = (answer - alignment / above, 1.0 - answer - alignment / below, first + above, first - below)
    noise = seen + _PSEUDO_COVARIANCE * (PSEUDO_QUESTIONS / (weight + PSEUDO_QUESTIONS) ** 2)
    gradients = _rate_slopes(alignment, spread, skew)
    joint = np.einsum("ij,jk,lk->il", gradients, noise, gradients)
    mean_variance = 0.25 * float(joint[0, 0] + 2.0 * joint[0, 1] + joint[1, 1])
    deviations = np.sqrt(np.maximum(joint.diagonal(), 0.0)).tolist()
    return ClassReading(
        (values[0], values[1]),
        (float(joint[0, 0]), float(joint[1, 1])),
        max(mean_variance, 0.0),
        stands_out=spread > LEAST_Z * math.sqrt(max(float(seen[3, 3]), 0.0)) and weight > 0.0,
        impossible=any(_outside(value, sd) for value, sd in zip(values, deviations, strict=True)),
    )


def _outside(value: float, deviation: float) -> bool:
    room = MODEL_ALLOWANCE + LEAST_Z * deviation
    return not -room <= value <= 1.0 + room


def _distances(spread: float, skew: float) -> tuple[float, float]:
    """``v1 - m1`` and ``m1 - v0``: their product is D, their difference K/D. Neither is got by cancellation."""
    lean = skew / spread
    longer = 0.5 * (math.sqrt(lean * lean + 4.0 * spread) + abs(lean))
    shorter = spread / longer
    return (longer, shorter) if lean >= 0.0 else (shorter, longer)


def _central_slopes(means: tuple[float, float, float, float, float], share: float) -> FloatArray:
    """Derivatives of the central moments by the means, (5, 5); of all but m1 the share that is not pseudo-questions."""
    first, second, _, answer, _ = means
    slopes = np.array(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [-answer, 0.0, 0.0, -first, 1.0],
            [-2.0 * first, 1.0, 0.0, 0.0, 0.0],
            [6.0 * first * first - 3.0 * second, -3.0 * first, 1.0, 0.0, 0.0],
        ]
    )
    slopes[1:] *= share
    return slopes


def _rate_slopes(alignment: float, spread: float, skew: float) -> FloatArray:
    """Derivatives of (η0, η1, v1, v0) by the central moments, (4, 5)."""
    above, below = _distances(spread, skew)
    lean, width = skew / spread, above + below
    above_by_skew, below_by_skew = above / width / spread, -below / width / spread
    above_by_spread, below_by_spread = 1.0 / width - above_by_skew * lean, 1.0 / width - below_by_skew * lean
    steep_above, steep_below = alignment / (above * above), alignment / (below * below)
    return np.array(
        [
            [0.0, 1.0, -1.0 / above, steep_above * above_by_spread, steep_above * above_by_skew],
            [0.0, -1.0, -1.0 / below, steep_below * below_by_spread, steep_below * below_by_skew],
            [1.0, 0.0, 0.0, above_by_spread, above_by_skew],
            [1.0, 0.0, 0.0, -below_by_spread, -below_by_skew],
        ]
    )

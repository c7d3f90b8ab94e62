"""Do experts err alike on both outcomes? From votes alone, where experts err independently."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from stream_peer.numerics.arguments import Fields, FloatArray, Numbers, checked
from stream_peer.numerics.dependence.fourth_moment import FEWEST_QUESTIONS, N_SUBSAMPLES, DependenceSums
from stream_peer.numerics.error_rates.rate import LEAST_Z, effective_size

__all__ = ["ClassErrors", "class_errors"]

MISLED = 0.25
"""From this error rate on, two standard deviations off it, a majority is misled on an outcome."""

_DEVIATIONS = 2.0
_SMALLEST = 1e-9
_MOST_COUNTED = 101
_SUMS = Fields(DependenceSums, {"subsamples": Numbers(f"{N_SUBSAMPLES} 6", low=0.0, high=1e12)})


class ClassErrors(NamedTuple):
    """Error rates of majorities on each outcome.

    Attributes
    ----------
    zero, one : float
        P(majority says 1 | y = 0), P(majority says 0 | y = 1).
    deviations : (float, float)
        Of the two.
    z : float
        Of the third-moment gap: not 0 if voters err otherwise on one outcome than on the other.
    """

    zero: float
    one: float
    deviations: tuple[float, float]
    z: float

    @property
    def misled_outcome(self) -> Literal[0, 1] | None:
        """The outcome on which reference answers are next to coins, or worse."""
        of_zero, of_one = (
            rate - _DEVIATIONS * deviation
            for rate, deviation in zip((self.zero, self.one), self.deviations, strict=True)
        )
        if not abs(self.z) > LEAST_Z or max(of_zero, of_one) < MISLED:
            return None
        return 0 if of_zero > of_one else 1


@checked(sums=_SUMS, voters=Numbers(low=0.0, high=1e9))
def class_errors(sums: DependenceSums, voters: float) -> ClassErrors | None:
    """How often majorities are wrong on each outcome, from the first three moments of the votes.

    With m1, m2, m3 the moments of the votes for yes, ``b = (m3 - m1·m2)/(m2 - m1²)`` and ``c = b·m1 - m2``, a voter
    says yes with chance ``(b ± √(b² - 4c))/2`` where the outcome is 1 and 0; a majority of as many voters as the mean,
    made odd, is wrong with the binomial chance. In ±1 the third moment of voters who err alike on both outcomes is the
    product of the first two: ``z`` is the gap over its standard deviation. Deviations are those without each subsample.

    Notes
    -----
    Not in the paper, whose rates without truth are those of a group, alike on both outcomes. Needs experts who err
    independently given the outcome, as the rates themselves do. A crowd that errs *together* on some questions of one
    outcome is not seen: its votes have the law of a crowd that is right, on questions of which fewer have that outcome.

    Parameters
    ----------
    sums : DependenceSums
    voters : float
        Mean number of voters a question.

    Returns
    -------
    ClassErrors or None
        None with less than 200 effective questions, and where three moments give no rates or say that nobody is misled.

    Examples
    --------
    >>> class_errors(DependenceSums(), voters=9.0) is None
    True
    """
    total = np.add.reduce(sums.subsamples, axis=0)
    if effective_size(float(total[0]), float(total[1])) < FEWEST_QUESTIONS:
        return None
    found = _chances(total.tolist())
    n_voters = min(max(round(voters), 1), _MOST_COUNTED) - 1 | 1
    if found is None or _is_clear(found, n_voters):  # nearly always, and every record asks
        return None
    zero, one = _majorities([found], n_voters)[0]
    if max(zero, one) < MISLED:
        return None
    there = sums.subsamples[sums.subsamples[:, 0] > 0.0]
    if len(there) < 2:
        return None
    without = total - there
    chances = [found for row in without.tolist() if (found := _chances(row)) is not None]
    if len(chances) < len(there):
        return None
    gaps = _third_gaps(np.concatenate((total[None, :], without)))
    scale = (len(there) - 1) / len(there)
    spread = np.concatenate((np.array(_majorities(chances, n_voters)), gaps[1:, None]), axis=1)
    spread = spread - np.add.reduce(spread, axis=0) / len(there)
    of_zero, of_one, of_gap = np.sqrt(scale * np.add.reduce(spread * spread, axis=0)).tolist()
    return ClassErrors(zero, one, (of_zero, of_one), float(gaps[0]) / max(of_gap, _SMALLEST))


def _moments(sums: FloatArray) -> FloatArray:
    found: FloatArray = sums[:, 2:5].T / sums[:, 0]
    return found


def _third_gaps(sums: FloatArray) -> FloatArray:
    """E[vvv] - E[v]·E[vv] of votes of ±1."""
    first, second, third = _moments(sums)
    gaps: FloatArray = (8.0 * third - 12.0 * second + 6.0 * first - 1.0) - (2.0 * first - 1.0) * (
        4.0 * second - 4.0 * first + 1.0
    )
    return gaps


def _chances(sums: Sequence[float]) -> tuple[float, float] | None:
    """How often a voter is right on 0 and on 1; None if the moments give no chances."""
    weight, _, *moments = sums
    first, second, third = (moment / weight for moment in moments[:3])
    spread = second - first * first
    if not spread > _SMALLEST:
        return None
    b = (third - first * second) / spread
    discriminant = b * b - 4.0 * (b * first - second)
    if not discriminant > _SMALLEST:
        return None
    root = math.sqrt(discriminant)
    of_zero, of_one = 1.0 - (b - root) / 2.0, (b + root) / 2.0
    return min(max(of_zero, 0.0), 1.0), min(max(of_one, 0.0), 1.0)


def _is_clear(chances: tuple[float, float], n_voters: int) -> bool:
    """Whether majorities are surely misled on neither outcome.

    By Hoeffding's inequality that of n voters, each right with chance p > ½, is wrong with at most exp(-2n(p - ½)²).
    """
    surplus = max(min(chances) - 0.5, 0.0)
    return math.exp(-2.0 * n_voters * surplus * surplus) < MISLED


def _majorities(chances: Sequence[tuple[float, float]], n_voters: int) -> list[tuple[float, float]]:
    """How often a majority of so many voters is wrong on 0 and on 1, by what chance each of them is right."""
    half = n_voters >> 1
    ways = [(math.comb(n_voters, k), k, n_voters - k) for k in range(half + 1)]
    return [
        (
            min(math.fsum(n * of_zero**k * (1.0 - of_zero) ** rest for n, k, rest in ways), 1.0),
            min(math.fsum(n * of_one**k * (1.0 - of_one) ** rest for n, k, rest in ways), 1.0),
        )
        for of_zero, of_one in chances
    ]

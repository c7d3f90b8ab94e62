"""The fourth-moment gap: do votes look like independent ones on two kinds of questions? Sums of constant size."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    SHARE,
    Fields,
    FloatArray,
    Numbers,
    check_same,
    checked,
)
from stream_peer.numerics.error_rates.rate import EstimateStatus, effective_size
from stream_peer.numerics.error_rates.team_votes import TeamVotes

__all__ = [
    "ALARMING_Z",
    "FEWEST_QUESTIONS",
    "N_SUBSAMPLES",
    "Dependence",
    "DependenceSums",
    "VoteMoments",
    "moments_of_counts",
]

N_SUBSAMPLES = 25
"""Sums are kept in so many parts, each left out once to learn how uncertain the gap is."""

FEWEST_QUESTIONS = 200.0
"""Below this many effective questions the gap is not judged."""

ALARMING_Z = 3.0
"""A gap of more standard deviations is no chance."""

_FEWEST_SUBSAMPLES = 10
_SMALLEST_DEVIATION = 1e-9
_MOST_QUESTIONS = 1e12
_SUMS = Fields(None, {"subsamples": Numbers(f"{N_SUBSAMPLES} 6", low=0.0, high=_MOST_QUESTIONS)})


class VoteMoments(NamedTuple):
    """Factorial moments of a round's yes votes, in [0, 1].

    Attributes
    ----------
    first, second, third, fourth : float
        m_k = S(S-1)…(S-k+1) / (n(n-1)…(n-k+1)): the share of k-tuples of different voters who all say yes.
    """

    first: float
    second: float
    third: float
    fourth: float


class Dependence(NamedTuple):
    """What votes say about experts' independence given the outcome.

    Attributes
    ----------
    gap : float or None
        m4 - (b·m3 - c·m2), 0 in expectation if votes are independent given one of two kinds of questions.
    deviation : float or None
        Its standard deviation.
    z : float or None
        Their ratio.
    flagged : bool
        Whether z is above 3 or below -3.
    effective_questions : float
        (Σw)²/Σw².
    status : str
        ``insufficient`` below 200 effective questions (or as many as are asked for) or 10 subsamples, ``uninformative``
        if votes vary no more from question to question than coins do; both with None for gap, deviation and z.
        Else ``ok``.
    """

    gap: float | None
    deviation: float | None
    z: float | None
    flagged: bool
    effective_questions: float
    status: EstimateStatus

    def exceeds(self, z: float) -> bool:
        """Whether the gap is known, and of more standard deviations than these."""
        return self.z is not None and self.z > z


def moments_of_counts(yes: int, voters: int) -> VoteMoments | None:
    """Factorial moments of a round's yes votes, up to the fourth.

    Parameters
    ----------
    yes : int
        In 0 … voters.
    voters : int

    Returns
    -------
    VoteMoments or None
        None with fewer than four voters.

    Examples
    --------
    >>> moments_of_counts(4, 5)
    VoteMoments(first=0.8, second=0.6, third=0.4, fourth=0.2)
    """
    if voters < 4:
        return None
    pairs = voters * (voters - 1)
    triples = pairs * (voters - 2)
    both = yes * (yes - 1)
    all_three = both * (yes - 2)
    return VoteMoments(
        yes / voters, both / pairs, all_three / triples, all_three * (yes - 3) / (triples * (voters - 3))
    )


def vote_moments_of_teams(found: TeamVotes) -> VoteMoments | None:
    """Moments of the teams' yes votes up to the fourth.

    ``m_k``: the mean over k different teams of u_T·u_U…, by Newton's identities from the sums p_k = Σ u^k; the fourth
    is ``(p1⁴ - 6·p1²·p2 + 3·p2² + 8·p1·p3 - 6·p4)/(K(K-1)(K-2)(K-3))``. Without teams these are those of
    `moments_of_counts`.

    Parameters
    ----------
    found : TeamVotes

    Returns
    -------
    VoteMoments or None
        None with fewer than four teams.

    Examples
    --------
    >>> from stream_peer.numerics.error_rates.team_votes import team_votes
    >>> votes = np.array([1, -1, 1, 1, 1], np.int8)
    >>> vote_moments_of_teams(team_votes(votes, np.ones(5, np.int8), np.array([0, 0, -1, -1, -1])))
    VoteMoments(first=0.875, second=0.75, third=0.625, fourth=0.5)
    """
    n, yes = found.voters, found.yes
    if n < 4:
        return None
    square = yes * yes
    powers = (yes, square, square * yes, square * square)
    first, second, third, fourth = (math.fsum(power.tolist()) for power in powers)
    squared = first * first
    pairs = max(squared - second, 0.0)
    triples = max(squared * first - 3.0 * first * second + 2.0 * third, 0.0)
    fours = squared * squared - 6.0 * squared * second + 3.0 * second * second + 8.0 * first * third - 6.0 * fourth
    number = n * (n - 1)
    return VoteMoments(
        first / n,
        pairs / number,
        triples / (number * (n - 2)),
        max(fours, 0.0) / (number * (n - 2) * (n - 3)),
    )


def _no_subsamples() -> FloatArray:
    return np.zeros((N_SUBSAMPLES, 6))


@dataclass(frozen=True, slots=True, eq=False)
class DependenceSums:
    """Sums over questions, with weights w, in 25 subsamples, for the fourth-moment gap.

    Attributes
    ----------
    subsamples : (25, 6) float64
        Of each subsample Σw, Σw², Σw·m1, Σw·m2, Σw·m3, Σw·m4, the moments being means over a question's rounds.

    Examples
    --------
    >>> one = DependenceSums.contribution(VoteMoments(0.8, 0.6, 0.4, 0.2), subsample=3, weight=0.5)
    >>> one.merge(one).subsamples[3].round(3).tolist()
    [1.0, 0.5, 0.8, 0.6, 0.4, 0.2]
    """

    subsamples: FloatArray = field(default_factory=_no_subsamples)

    @classmethod
    @checked(
        moments=Fields(VoteMoments, dict.fromkeys(VoteMoments._fields, SHARE)),
        subsample=Numbers(low=0, high=N_SUBSAMPLES - 1, kind=np.int64),
        weight=AT_LEAST_0,
    )
    def contribution(cls, moments: VoteMoments, subsample: int, weight: float = 1.0) -> Self:
        """The sums of a single question, whose moments are the means over its rounds.

        Parameters
        ----------
        moments : VoteMoments
        subsample : int
            In 0 … 24: from the question's ordinal or its hash, never from its votes.
        weight : float
            In [0, 1].

        Raises
        ------
        FormulaInputError
            If there is no such subsample, or the weight negative, infinite or NaN.
        """
        sums = _no_subsamples()
        sums[subsample] = weight, weight * weight, *[weight * moment for moment in moments]
        return cls(sums)

    def merge(self, other: Self) -> Self:
        """Sums of both, subsample by subsample."""
        check_same(self, other)
        return type(self)(self.subsamples + other.subsamples)

    @checked(self=_SUMS)
    def totals(self) -> tuple[float, bool]:
        """Effective questions, and whether the gap of all of them is above 0: if not, z is not above 0 either.

        The same bits as in `reading`, at a fraction of its cost.

        Examples
        --------
        >>> DependenceSums.contribution(VoteMoments(0.8, 0.6, 0.4, 0.2), subsample=3).totals()
        (1.0, False)
        """
        weight, weight2, *moments = np.add.reduce(self.subsamples, axis=0).tolist()
        if not weight > 0.0:
            return 0.0, False
        first, second, third, fourth = [moment / weight for moment in moments]
        spread = second - first * first
        if not spread > _SMALLEST_DEVIATION:
            return effective_size(weight, weight2), False
        b = (third - first * second) / spread
        return effective_size(weight, weight2), fourth - (b * third - (b * first - second) * second) > 0.0

    @checked(self=_SUMS, fewest=AT_LEAST_0)
    def reading(self, fewest: float = FEWEST_QUESTIONS) -> Dependence:
        """The fourth-moment gap of the votes, and whether it is too large for independent errors.

        If votes are independent given the outcome, the share of yes votes is a mixture of two points, and with
        ``b = (m3 - m1·m2)/(m2 - m1²)``, ``c = b·m1 - m2`` follows ``m4 = b·m3 - c·m2``. The gap is the difference; its
        standard deviation is ``√((B-1)/B·Σ(gap_j - mean gap)²)`` over the B subsamples with data, gap_j without
        subsample j.

        Parameters
        ----------
        fewest : float
            Effective questions that are needed.

        Returns
        -------
        Dependence

        Notes
        -----
        Not in the paper, which assumes independence without a test. Blind to shocks that everybody shares: these are
        one more "outcome". Experts of different skill who answer the same questions shift the gap by about the
        variance of their skills over n, and only down: with such experts z below -3 says nothing. Up it goes only if
        votes depend on each other or questions differ in more than the outcome, since the gap times m2 - m1² is the
        determinant of the moments [[1, m1, m2], [m1, m2, m3], [m2, m3, m4]], which is never negative for votes that are
        coins of one bias in each question, whatever the bias. So it goes up as well where good experts answer some
        questions and poor ones others, however independent: in 2,000 questions, each for one of two panels of eight, z
        is about 16 if these err .1 and .4 of the time, 5 at .15 and .3, and 2 at .2 and .3.

        Examples
        --------
        >>> sums = DependenceSums()
        >>> for question in range(400):
        ...     yes = (2, 10, 5, 9)[question // 25 % 4]
        ...     votes = np.where(np.arange(12) < yes, 1, -1).astype(np.int8)
        ...     sums = sums.merge(
        ...         DependenceSums.contribution(moments_of_counts(int((votes > 0).sum()), 10), question % 25)
        ...     )
        >>> sums.reading().status, sums.reading().flagged
        ('ok', True)
        >>> DependenceSums().reading()[:3]
        (None, None, None)
        """
        total = np.add.reduce(self.subsamples, axis=0)
        effective = effective_size(float(total[0]), float(total[1]))
        there = self.subsamples[:, 0] > 0.0
        filled = self.subsamples if np.logical_and.reduce(there) else self.subsamples[there]
        if effective < fewest or len(filled) < _FEWEST_SUBSAMPLES:
            return Dependence(None, None, None, flagged=False, effective_questions=effective, status="insufficient")
        sums = np.empty((1 + len(filled), len(total)))
        sums[0] = total
        np.subtract(total, filled, out=sums[1:])
        gaps = _gaps(sums)
        if gaps is None:
            return Dependence(None, None, None, flagged=False, effective_questions=effective, status="uninformative")
        spread = gaps[1:] - np.add.reduce(gaps[1:]) / len(filled)
        deviation = math.sqrt((len(filled) - 1) / len(filled) * float(np.add.reduce(spread * spread)))
        gap = float(gaps[0])
        z = gap / max(deviation, _SMALLEST_DEVIATION)
        return Dependence(gap, deviation, z, abs(z) > ALARMING_Z, effective, "ok")


def _gaps(sums: FloatArray) -> FloatArray | None:
    """m4 - (b·m3 - c·m2) of each row of sums; None if some row's votes vary no more than coins."""
    first, second, third, fourth = sums[:, 2:].T / sums[:, 0]
    spread = second - first * first
    if not float(np.minimum.reduce(spread)) > _SMALLEST_DEVIATION:
        return None
    b = (third - first * second) / spread
    gaps: FloatArray = fourth - (b * third - (b * first - second) * second)
    return gaps

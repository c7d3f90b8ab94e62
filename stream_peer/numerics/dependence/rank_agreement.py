"""Do peer losses rank experts as outcomes do? Their rank correlation, and how far it is below what is wanted."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import ALIGNED, Fields, FloatArray, Numbers, checked

__all__ = ["RankAgreement", "rank_agreement"]

_FEWEST_EXPERTS = 4


_FOUND = Fields(None, {"correlation": ALIGNED, "experts": Numbers(low=_FEWEST_EXPERTS, high=2**53, kind=np.int64)})


class RankAgreement(NamedTuple):
    """How alike two rankings of the same experts are.

    Attributes
    ----------
    correlation : float
        Spearman's, in [-1, 1].
    experts : int
        How many were ranked.
    """

    correlation: float
    experts: int

    @checked(self=_FOUND, limit=Numbers(low=-1.0, high=1.0, above=True, below=True))
    def below(self, limit: float) -> float:
        """By how many standard deviations the correlation is below a limit; negative if it is above.

        ``(limit - r)/s`` with ``s = (1 - limit²)·√((1 + limit²/2)/(n - 3))``, the deviation that the correlation of n
        experts has where it is ``limit`` in truth (Bonett and Wright 2000).

        Parameters
        ----------
        limit : float
            In (-1, 1).

        Raises
        ------
        FormulaInputError
            If the limit is not within (-1, 1).

        Examples
        --------
        >>> round(RankAgreement(correlation=-0.2, experts=28).below(0.2), 2)
        2.06
        """
        square = limit * limit
        deviation = (1.0 - square) * math.sqrt((1.0 + 0.5 * square) / (self.experts - 3))
        return (limit - self.correlation) / deviation


@checked(one=Numbers("n"), other=Numbers("n"))
def rank_agreement(one: FloatArray, other: FloatArray) -> RankAgreement | None:
    """Spearman's rank correlation of two scores of the same experts.

    The correlation of their ranks, equal scores sharing the mean of theirs.

    Parameters
    ----------
    one, other : (n_experts,) float64

    Returns
    -------
    RankAgreement or None
        None with fewer than four experts, or where one of the scores is the same for all.

    Raises
    ------
    FormulaInputError
        If there are not as many of the one as of the other.

    Notes
    -----
    Not in the paper, in which peer losses rank experts as outcomes do by assumption. Of experts who are all equally
    good the ranks are noise, and with answers that are wrong at a rate η these noises correlate by about 1 - 2η.

    Examples
    --------
    >>> rank_agreement(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.2, 0.1, 0.3, 0.4]))
    RankAgreement(correlation=0.8, experts=4)
    """
    n = len(one)
    if n < _FEWEST_EXPERTS:
        return None
    first, second = (_ranks(scores) - 0.5 * (n - 1) for scores in (one, other))
    squares = float(np.add.reduce(first * first)) * float(np.add.reduce(second * second))
    if not squares > 0.0:
        return None
    return RankAgreement(float(np.add.reduce(first * second)) / math.sqrt(squares), n)


def _ranks(scores: FloatArray) -> FloatArray:
    """From 0 on; equal scores share the mean of theirs."""
    ordered = np.sort(scores)
    first, after = ordered.searchsorted(scores, "left"), ordered.searchsorted(scores, "right")
    ranks: FloatArray = np.add(first, after, dtype=np.float64)
    return 0.5 * (ranks - 1.0)

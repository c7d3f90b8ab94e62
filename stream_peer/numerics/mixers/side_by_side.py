"""Peer mixers and slow truth mixers under several settings at once, on the same sums, for comparison."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.losses import FloatArray


class SideBySide(NamedTuple):
    """Settings of several mixers: what to make of the sums, and by which counts to go.

    Attributes
    ----------
    coefficients : (k, 4) float64
        Of SU, SV, SVY and RH, times the factor of the textbook rate.
    by_outcomes : tuple of bool
        Whether each goes by the number of resolved questions, and not by all that an expert answered.
    """

    coefficients: FloatArray
    by_outcomes: tuple[bool, ...]

    @classmethod
    def of(cls, peers: Sequence[tuple[float, float]], slow: Sequence[float]) -> "SideBySide":
        """Peer mixers by nominal error rate and rate, then slow truth mixers by rate.

        Examples
        --------
        >>> SideBySide.of([(0.35, 1.0)], [0.25]).coefficients.round(2)
        array([[ 0.3 ,  0.35, -1.  ,  0.  ],
               [ 0.  ,  0.  ,  0.  ,  0.25]])
        """
        rows = [(rate * (1.0 - 2.0 * nominal), rate * nominal, -rate, 0.0) for nominal, rate in peers]
        rows += [(0.0, 0.0, 0.0, rate) for rate in slow]
        by_outcomes = (False,) * len(peers) + (True,) * len(slow)
        return cls(np.array(rows, dtype=np.float64).reshape(-1, 4), by_outcomes)


def mixers_side_by_side(
    mixers: SideBySide, sums: FloatArray, answered: float, resolved: float, n_experts: int
) -> FloatArray:
    """Mixing weights of `peer_mixer`, without its uniform share, and of `truth_slow`, under several settings.

    ``softmax(√(8 ln N/(n̄+1))·(c₁·SU + c₂·SV + c₃·SVY + c₄·RH))`` for each, with m̄ in place of n̄ by outcomes.

    Parameters
    ----------
    mixers : SideBySide
    sums : (4, n) float64
        SU, SV, SVY and RH of the n ≥ 1 experts present.
    answered, resolved : float
        n̄ and m̄: how many questions, and how many resolved ones, those present answered on average.
    n_experts : int
        N ≥ 1, all experts seen.

    Returns
    -------
    (k, n) float64
        Each row sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([[0.0, 2.0], [0.0, 1.0], [0.0, -1.0], [0.0, 1.0]])
    >>> mixers_side_by_side(SideBySide.of([(0.35, 0.42)], [0.25]), sums, 20.0, 9.0, 2).round(4)
    array([[0.3963, 0.6037],
           [0.4536, 0.5464]])
    """
    scale = 8.0 * math.log(n_experts)
    quick, slow = math.sqrt(scale / (answered + 1.0)), math.sqrt(scale / (resolved + 1.0))
    rates = np.array([[slow if by_outcomes else quick] for by_outcomes in mixers.by_outcomes])
    weights: FloatArray = np.einsum("kc,cn->kn", mixers.coefficients * rates, sums)
    weights -= np.maximum.reduce(weights, axis=1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis=1, keepdims=True)
    return weights

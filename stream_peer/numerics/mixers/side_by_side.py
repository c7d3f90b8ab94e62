"""Peer mixers and slow truth mixers under several settings at once, on the same sums, for comparison."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import AT_LEAST_0, NUMBER, Each, Numbers, Record, checked
from stream_peer.numerics.mixers.shadows import PEER_PRIOR, TRUTH_PRIOR


class SideBySide(NamedTuple):
    """Settings of several mixers: what to make of the sums.

    Attributes
    ----------
    coefficients : (k, 4) float64
        Of SU, SV, SVY and RH a question.
    """

    coefficients: FloatArray

    @classmethod
    @checked(peers=Each(Each(NUMBER, 2)), slow=Each(NUMBER))
    def of(cls, peers: Sequence[tuple[float, float]], slow: Sequence[float]) -> "SideBySide":
        """Peer mixers by nominal error rate and rate, then slow truth mixers by rate.

        Examples
        --------
        >>> SideBySide.of([(0.35, 20.0)], [24.0]).coefficients.round(2)
        array([[  6.,   7., -20.,   0.],
               [  0.,   0.,   0.,  24.]])
        """
        rows = [(rate * (1.0 - 2.0 * nominal), rate * nominal, -rate, 0.0) for nominal, rate in peers]
        rows += [(0.0, 0.0, 0.0, rate) for rate in slow]
        return cls(np.array(rows, dtype=np.float64).reshape(-1, 4))


def _check_somebody(sums: FloatArray, **_: object) -> None:
    """Refuse sums of nobody."""
    if not sums.shape[1]:
        msg = f"sums has the shape {sums.shape}: of nobody there are no weights"
        raise FormulaInputError(msg)


@checked(
    _check_somebody,
    mixers=Record(SideBySide, {"coefficients": Numbers("k 4")}),
    sums=Numbers("4 n"),
    answered=AT_LEAST_0,
    resolved=AT_LEAST_0,
)
def mixers_side_by_side(mixers: SideBySide, sums: FloatArray, answered: float, resolved: float) -> FloatArray:
    """Mixing weights of `peer_mixer`, without its uniform share, and of `truth_slow`, under several settings.

    ``softmax((c₁·SU + c₂·SV + c₃·SVY)/(n̄+40) + c₄·RH/(m̄+10))`` for each.

    Parameters
    ----------
    mixers : SideBySide
    sums : (4, n) float64
        SU, SV, SVY and RH of the n ≥ 1 experts present.
    answered, resolved : float
        n̄ and m̄: how many questions, and how many resolved ones, those present answered on average.

    Returns
    -------
    (k, n) float64
        Each row sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([[0.0, 2.0], [0.0, 1.0], [0.0, -1.0], [0.0, 1.0]])
    >>> mixers_side_by_side(SideBySide.of([(0.35, 24.0)], [24.0]), sums, 20.0, 9.0).round(4)
    array([[0.3143, 0.6857],
           [0.2204, 0.7796]])
    """
    numbers = np.array([answered + PEER_PRIOR] * 3 + [resolved + TRUTH_PRIOR])
    weights: FloatArray = np.einsum("kc,cn->kn", mixers.coefficients / numbers, sums)
    weights -= np.maximum.reduce(weights, axis=1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis=1, keepdims=True)
    return weights

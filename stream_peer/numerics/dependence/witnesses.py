"""Experts whom to ask what two others may have in common."""

import numpy as np

from stream_peer.numerics.dependence.tallies import (
    FEWEST_WITNESSED,
    Float32Array,
    disagreement,
    independent,
    tallies,
)
from stream_peer.numerics.losses import BoolArray, IntArray

MOST = 48
"""Witnesses that are heard."""

_ALIKE = 0.1
_AT_ONCE = 128


def witnesses(cast: Float32Array) -> IntArray:
    """Columns of the experts with the most votes, of those that are nearly identical only one, 48 at most.

    Two are nearly identical if they disagree on at most a tenth of what chance allows: else six copies among four
    honest experts would make the honest ones look dependent, since hardly anybody says what they say.

    Parameters
    ----------
    cast : (n_questions, n_experts) float32
        +1, -1, or 0 for no vote.

    Returns
    -------
    (n_witnesses,) int64
        In the order in which they were chosen.

    Examples
    --------
    >>> votes = np.array([[1, 1, -1], [-1, -1, -1]] * 20, np.float32)
    >>> witnesses(votes).tolist()
    [0, 2]
    """
    counted = np.count_nonzero(cast, axis=0)
    order = np.argsort(-counted, kind="stable")[: np.count_nonzero(counted)]
    chosen: list[int] = []
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        free = ~np.logical_or.reduce(_alike(cast[:, chosen], cast[:, some]), axis=0)
        among = _alike(cast[:, some], cast[:, some])
        for place, expert in enumerate(some.tolist()):
            if len(chosen) == MOST:
                return np.array(chosen, np.int64)
            if free[place]:
                chosen.append(expert)
                free &= ~among[place]
    return np.array(chosen, np.int64)


def _alike(one: Float32Array, two: Float32Array) -> BoolArray:
    counted = tallies(one, two)
    alike: BoolArray = disagreement(counted) <= _ALIKE * independent(counted)
    return alike & (counted.common >= FEWEST_WITNESSED)

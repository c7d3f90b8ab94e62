"""Experts whom to ask what two others may have in common."""

import numpy as np

from stream_peer.numerics.dependence.tallies import (
    FEWEST_WITNESSED,
    Float32Array,
    disagreement,
    independent,
    tallies,
)
from stream_peer.numerics.losses import IntArray

MOST = 48
"""Witnesses that are heard."""

_ALIKE = 0.1


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
    counted = np.add.reduce(np.abs(cast), axis=0)
    chosen: list[int] = []
    while len(chosen) < MOST:
        best = int(np.argmax(counted))
        if not counted[best] > 0.0:
            break
        chosen.append(best)
        of_best = tallies(cast[:, best : best + 1], cast)
        alike = disagreement(of_best) <= _ALIKE * independent(of_best)
        counted[(alike & (of_best.common >= FEWEST_WITNESSED))[0]] = 0.0
        counted[best] = 0.0
    return np.array(chosen, np.int64)

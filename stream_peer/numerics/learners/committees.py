"""Leaders and committees: weights by rank alone. And weights made flatter."""

import math

import numpy as np

from stream_peer.numerics.losses import BoolArray, FloatArray
from stream_peer.numerics.losses.arguments import AWAKE, COUNT, Numbers, checked, unchecked

_SCORES = Numbers("... n", -math.inf, math.inf)


@checked(regrets=_SCORES, size=COUNT, awake=AWAKE)
def top_committee(regrets: FloatArray, size: int, awake: BoolArray | None = None) -> FloatArray:
    """Equal weights for the k best experts that are awake.

    Those that tie for the last seats share them, so that no order of the experts decides.

    Parameters
    ----------
    regrets : (..., n) float64
        R, or anything else of which more is better.
    size : int
        k ≥ 1; all that are awake if they are fewer.
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where nobody is awake.

    Raises
    ------
    FormulaInputError
        If k < 1 or a regret is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> top_committee(np.array([3.0, 1.0, 1.0, -2.0]), size=2)
    array([0.5 , 0.25, 0.25, 0.  ])
    """
    n_experts = regrets.shape[-1]
    if n_experts == 0:
        return np.zeros(regrets.shape)
    present = np.ones(regrets.shape, dtype=np.bool_) if awake is None else awake
    ranked = np.where(present, regrets, -np.inf)
    last = max(n_experts - size, 0)
    border = np.partition(ranked, last, axis=-1)[..., last, None]
    above, level = ranked > border, (ranked == border) & present
    seats = np.minimum(np.add.reduce(present, axis=-1, keepdims=True), size)
    free = seats - np.add.reduce(above, axis=-1, keepdims=True)
    shared = above + level * (free / np.maximum(np.add.reduce(level, axis=-1, keepdims=True), 1))
    return np.asarray(shared / np.maximum(seats, 1), dtype=np.float64)


@checked(regrets=_SCORES, awake=AWAKE)
def follow_the_leader(regrets: FloatArray, awake: BoolArray | None = None) -> FloatArray:
    """All weight to the best expert that is awake, a committee of one.

    Nothing is promised: an adversary who chooses the losses makes its regret grow with the number of questions.

    Parameters
    ----------
    regrets : (..., n) float64
        R, or anything else of which more is better.
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; equal among those that tie; all 0 where nobody is awake.

    Examples
    --------
    >>> import numpy as np
    >>> follow_the_leader(np.array([3.0, 1.0, 3.0]))
    array([0.5, 0. , 0.5])
    """
    return unchecked(top_committee)(regrets, 1, awake)

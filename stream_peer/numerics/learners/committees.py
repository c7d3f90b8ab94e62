"""Leaders and committees: weights by rank alone. And weights made flatter."""

import math

import numpy as np

from stream_peer.numerics.learners.softmax import softmax
from stream_peer.numerics.losses import BoolArray, FloatArray
from stream_peer.numerics.losses.arguments import AT_LEAST_0, AWAKE, COUNT, SHARE, Numbers, checked, unchecked

_SCORES = Numbers("... n", -math.inf, math.inf)


@checked(regrets=Numbers("... n"), counts=Numbers("... n", low=0.0), shrinkage=AT_LEAST_0)
def shrunk_regrets(regrets: FloatArray, counts: FloatArray, shrinkage: float) -> FloatArray:
    """Mean regret per question, shrunk towards 0 where there are few of them: ``R / (n + k)``.

    For `follow_the_leader` and `top_committee`, so that an expert with one lucky question does not lead.

    Parameters
    ----------
    regrets, counts : (..., n) float64
        R, and n ≥ 0 the questions that each expert took part in.
    shrinkage : float
        k ≥ 0, in questions.

    Returns
    -------
    (..., n) float64
        0 for those without questions.

    Raises
    ------
    FormulaInputError
        If k or a count is negative.

    Examples
    --------
    >>> import numpy as np
    >>> shrunk_regrets(np.array([2.0, 0.9, 0.0]), np.array([10.0, 1.0, 0.0]), shrinkage=10.0).round(3)
    array([0.1  , 0.082, 0.   ])
    """
    weight = counts + shrinkage
    return np.divide(regrets, weight, out=np.zeros(regrets.shape), where=weight > 0.0)


@checked(regrets=_SCORES, size=COUNT, awake=AWAKE)
def top_committee(regrets: FloatArray, size: int, awake: BoolArray | None = None) -> FloatArray:
    """Equal weights for the k best experts that are awake.

    Those that tie for the last seats share them, so that no order of the experts decides.

    Parameters
    ----------
    regrets : (..., n) float64
        R, or anything else of which more is better, such as `shrunk_regrets`.
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

    On `shrunk_regrets` it follows the shrunk leader. Without promise: whoever chooses the losses can make its regret
    grow with the number of questions.

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


@checked(weights=Numbers("... n", low=0.0), exponent=SHARE)
def tempered(weights: FloatArray, exponent: float = 0.5) -> FloatArray:
    """Flatter weights: ``w^exponent`` scaled to sum to 1. Better for combining forecasts, worse for following one.

    Parameters
    ----------
    weights : (..., n) float64
        w ≥ 0.
    exponent : float
        Within [0, 1]; at 0 all weights that are not 0 become equal.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where all weights are.

    Raises
    ------
    FormulaInputError
        If the exponent is outside [0, 1], or a weight is negative or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> tempered(np.array([0.8, 0.2, 0.0])).round(4)
    array([0.6667, 0.3333, 0.    ])
    """
    positive = weights > 0.0
    logs = np.log(weights, out=np.zeros(weights.shape), where=positive)
    return unchecked(softmax)(exponent * logs, awake=positive)

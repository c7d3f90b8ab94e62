"""Exponential weights: at a given rate, and with weights shared out."""

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners.softmax import softmax
from stream_peer.numerics.losses import BoolArray, FloatArray, IntArray
from stream_peer.numerics.losses.arguments import (
    AWAKE,
    COUNT,
    INSIDE,
    LEARNING_RATE,
    POSITIVE,
    PRIOR,
    REGRETS,
    WEIGHTS,
    Numbers,
    checked,
    unchecked,
)


@checked(n_experts=COUNT, questions=Numbers("...", low=0.0), loss_range=POSITIVE)
def hedge_rate(
    n_experts: int, questions: float | FloatArray | IntArray, loss_range: float = 1.0
) -> np.float64 | FloatArray:
    """Learning rate of exponential weights that a textbook recommends.

    ``√(8 ln N/T) / b``, for losses within an interval of length b. With T the horizon known in advance it is fixed and
    the regret at most ``b·√(T ln N/2)``; with T the number of the question about to be answered (1 for the first) it is
    the any-time rate, and the regret at most ``b·(2√(T ln N/2) + √(ln N/8))`` at every T (Cesa-Bianchi & Lugosi 2006,
    theorems 2.2 and 2.3).

    Parameters
    ----------
    n_experts : int
        N ≥ 1.
    questions : float or array
        T ≥ 0; 0 counts as 1.
    loss_range : float
        b > 0: 1 for symmetric squared peer losses on the unit scale, with
        class-dependent rates 1 plus their difference.

    Returns
    -------
    float64, or array of the shape of ``questions``
        0 for a single expert.

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> round(float(hedge_rate(4, 500)), 4)
    0.1489
    """
    rate: np.float64 | FloatArray = np.sqrt(8.0 * np.log(n_experts) / np.maximum(questions, 1.0)) / loss_range
    return rate


@checked(regrets=REGRETS, learning_rate=LEARNING_RATE, prior=PRIOR, awake=AWAKE)
def hedge(
    regrets: FloatArray,
    learning_rate: float | FloatArray,
    prior: FloatArray | None = None,
    awake: BoolArray | None = None,
) -> FloatArray:
    """Exponential weights: ``w ∝ q·exp(rate·R)`` over the experts that are awake.

    Of experts that are always awake the same as ``q·exp(-rate·L)``, L their cumulative losses. See
    `hedge_rate` for the rates and what they promise. The preset ``paper`` is this at the rate √(8 ln N/n), n the
    questions seen, with R the frozen losses of Liu & Helmbold, ``ℓ(p, ŷ) + 2η̂·p(1-p)``, of the mean less one's own.

    Parameters
    ----------
    regrets : (..., n) float64
        R, or any number that falls by one where R does, such as -L.
    learning_rate : float, or array that broadcasts against ``regrets``
        ≥ 0; of runs with rates of their own: (..., 1).
    prior : (..., n) float64, optional
        q ≥ 0, of any sum; equal for all if left out.
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where nobody is awake.

    Raises
    ------
    FormulaInputError
        If the rate is negative, infinite or NaN, a regret NaN or +inf, or a prior out of range.

    Examples
    --------
    >>> import numpy as np
    >>> hedge(np.array([0.0, -10.0]), learning_rate=0.1).round(4)
    array([0.7311, 0.2689])
    """
    rates = np.asarray(learning_rate, dtype=np.float64)
    return unchecked(softmax)(rates * _behind(regrets, awake), prior, awake)


def _behind(regrets: FloatArray, awake: BoolArray | None) -> FloatArray:
    """How far each expert is behind the best that is awake, ≤ 0; 0 for those that are asleep and better."""
    contenders = regrets if awake is None else np.where(awake, regrets, -np.inf)
    best = np.maximum.reduce(contenders, axis=-1, keepdims=True, initial=-np.inf)
    if np.logical_or.reduce(best == np.inf, axis=None):
        msg = "a regret is inf, must be finite or -inf"
        raise FormulaInputError(msg)
    return np.minimum(regrets - np.where(best == -np.inf, 0.0, best), 0.0)


@checked(weights=WEIGHTS, regrets=REGRETS, learning_rate=LEARNING_RATE, share=INSIDE, awake=AWAKE)
def fixed_share(
    weights: FloatArray,
    regrets: FloatArray,
    learning_rate: float | FloatArray,
    share: float,
    awake: BoolArray | None = None,
) -> FloatArray:
    """Weights of the next question from those of this one, after sharing a little of them out: for changing leaders.

    Over the n experts that are awake, ``w' = (1 - share)·u + share/n`` with ``u ∝ w·exp(rate·r)`` (Herbster & Warmuth
    1998), times the weight that they had together. Those that are asleep keep theirs. No weight ever falls below
    share/n of what is awake, so a former loser that becomes best needs about ``ln(N²/share)/(rate·gain)`` questions.

    Notes
    -----
    Depends on the order of the questions, so it cannot be priced afresh: r is priced at the rates of its time.

    Parameters
    ----------
    weights : (..., n) float64
        w ≥ 0 of all experts, summing to 1.
    regrets : (..., n) float64
        r of one question.
    learning_rate : float, or array of shape (..., 1)
        ≥ 0.
    share : float
        Within (0, 1). For 0 use `hedge`.
    awake : (..., n) bool, optional
        Who took part in the question; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, of the same sum.

    Raises
    ------
    FormulaInputError
        If the share or the rate is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> fixed_share(np.array([0.5, 0.5]), np.array([0.5, -0.5]), learning_rate=1.0, share=0.1).round(4)
    array([0.708, 0.292])
    """
    if awake is None:
        awake = np.ones(weights.shape, dtype=np.bool_)
    present = np.where(awake, weights, 0.0)
    together = np.add.reduce(present, axis=-1, keepdims=True)
    learned = unchecked(hedge)(regrets, learning_rate, present, awake)
    equal = awake / np.maximum(np.add.reduce(awake, axis=-1, keepdims=True), 1)
    return np.where(awake, together * ((1.0 - share) * learned + share * equal), weights)

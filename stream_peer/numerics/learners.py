"""Learners: regrets in, selection weights out.

Weights are for following one expert drawn from them; `mixers` combine forecasts. All learners read regrets, positive
where following the weights lost more than the expert did, along the last axis; leading axes are independent runs.
`ada_normal_hedge` is the default: it needs no learning rate and no horizon. `hedge` is that of the preset ``paper``.

An expert that is asleep gets no weight and leaves the ratios of the others alone: pass the awake ones only, or a mask.
One that is new has no regrets; its weight follows from its prior, 1 like everybody's.
"""

import math

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    AWAKE,
    COUNT,
    LEARNING_RATE,
    LOGS,
    POSITIVE,
    PRIOR,
    REGRETS,
    BoolArray,
    FloatArray,
    IntArray,
    Numbers,
    checked,
    unchecked,
)

__all__ = ["ada_normal_hedge", "ada_normal_hedge_logs", "hedge", "hedge_rate", "softmax"]


@checked(logs=LOGS, prior=PRIOR, awake=AWAKE)
def softmax(logs: FloatArray, prior: FloatArray | None = None, awake: BoolArray | None = None) -> FloatArray:
    """Weights proportional to the prior times the exponentials of ``logs``, over the experts that are awake.

    ``w_i = q_i·exp(l_i - max l) / Σ_j q_j·exp(l_j - max l)``: never overflows, and ratios of weights stay right down to
    the smallest numbers. Where all of q·exp(l) is 0, ``w ∝ q``; where that is 0 as well, all that are awake weigh the
    same.

    Parameters
    ----------
    logs : (..., n) float64
        Finite or -inf.
    prior : (..., n) float64, optional
        q ≥ 0, of any sum; equal for all if left out.
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1 along the last axis; all 0 where nobody is awake.

    Raises
    ------
    FormulaInputError
        If a log weight of an expert that is awake is NaN or +inf, or a prior is negative, NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([1000.0, 1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    >>> softmax(np.zeros(3), prior=np.array([1.0, 3.0, 9.0]), awake=np.array([True, True, False]))
    array([0.25, 0.75, 0.  ])
    """
    if logs.shape[-1] == 0:
        return np.zeros(logs.shape)
    start = None if prior is None else _log_prior(prior)
    scored = _among(logs if start is None else logs + start, awake)
    peak = np.maximum.reduce(scored, axis=-1, keepdims=True)
    if np.count_nonzero(np.isfinite(peak)) == peak.size:
        return _shares(scored, peak)
    return _with_a_start(scored, start, awake)


def _shares(logs: FloatArray, peak: FloatArray) -> FloatArray:
    weights = logs - peak
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis=-1, keepdims=True)
    return weights


def _among(logs: FloatArray, awake: BoolArray | None) -> FloatArray:
    return logs if awake is None else np.where(awake, logs, -np.inf)


def _log_prior(prior: FloatArray) -> FloatArray:
    """Logarithms of the prior, -inf where it is 0."""
    return np.log(prior, out=np.full(prior.shape, -np.inf), where=prior > 0.0)


def _with_a_start(scored: FloatArray, start: FloatArray | None, awake: BoolArray | None) -> FloatArray:
    """Weights where in some row nobody has any: by the prior there, or all the same."""
    for spare in (start, np.zeros(scored.shape)):
        if spare is not None:
            stuck = np.maximum.reduce(scored, axis=-1, keepdims=True) == -np.inf
            scored = np.where(stuck, _among(spare, awake), scored)
    peak = np.maximum.reduce(scored, axis=-1, keepdims=True)
    refused = ~(scored < np.inf)
    if refused.any():
        place = tuple(np.argwhere(refused)[0])
        msg = f"log weight of expert {int(place[-1])} is {float(scored[place])}"
        raise FormulaInputError(msg)
    nobody = peak == -np.inf
    weights = _shares(np.where(nobody, 0.0, scored), np.where(nobody, 0.0, peak))
    return np.where(nobody, 0.0, weights)


_ROUNDING = 1e-6


_ABSOLUTE = Numbers("... n", low=-_ROUNDING)


@checked(regrets=Numbers("... n", low=-math.inf, where="awake"), absolute=_ABSOLUTE, prior=PRIOR, awake=AWAKE)
def ada_normal_hedge(
    regrets: FloatArray, absolute: FloatArray, prior: FloatArray | None = None, awake: BoolArray | None = None
) -> FloatArray:
    """Weights of AdaNormalHedge over the experts that are awake.

    With R an expert's cumulative regret and A the sum of its absolute values, over the questions it was awake in,
    ``w ∝ q·(exp(max(R+1, 0)² / 3(A+1)) - exp(max(R-1, 0)² / 3(A+1)))`` (Luo & Schapire 2015, for sleeping
    experts). Computed in log space: ``ln w = ln q + x + ln(1 - exp(-(x - z)))``, x and z the two exponents.

    Notes
    -----
    The paper's Theorem 3 leaves the learner open and its examples use exponential weights, which need a rate. Here
    R and A are priced afresh with the newest error rate at each reading, so late corrections heal the past.
    Its regret stays below `normal_hedge_regret` (`stream_peer.lab.formulas`) as long as the regrets of a question are
    within [-1, 1]; where losses have a larger range, as class-dependent peer losses (see `unit_peer_loss`), divide
    R and A by it.

    Parameters
    ----------
    regrets : (..., n) float64
        R, positive if following the weights lost more than this expert.
    absolute : (..., n) float64
        A ≥ 0; less by 1e-6 is taken for rounding, of sums from which something was taken out again.
    prior : (..., n) float64, optional
        q ≥ 0, of any sum; equal for all if left out.
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where nobody is awake. An expert with R ≤ -1 gets 0; if all of them do, each
        gets its share of the prior.

    Raises
    ------
    FormulaInputError
        If a regret is NaN or +inf, a sum of absolute values negative, NaN or infinite, or so a prior.

    Examples
    --------
    >>> import numpy as np
    >>> ada_normal_hedge(np.array([2.0, 0.0, -1.5]), np.array([3.0, 3.0, 3.0])).round(4)
    array([0.9222, 0.0778, 0.    ])
    """
    return unchecked(softmax)(unchecked(ada_normal_hedge_logs)(regrets, absolute), prior, awake)


@checked(regrets=Numbers("... n", low=-math.inf), absolute=_ABSOLUTE)
def ada_normal_hedge_logs(regrets: FloatArray, absolute: FloatArray) -> FloatArray:
    """Logarithms of the unscaled weights of `ada_normal_hedge`, without prior.

    ``x + ln(1 - exp(-(x - z)))``, ``x = max(R+1, 0)² / 3(A+1)``, ``z = max(R-1, 0)² / 3(A+1)``. Differences of them
    are ratios of weights, also of such as are too small for a float64.

    Parameters
    ----------
    regrets, absolute : (..., n) float64
        R and A ≥ 0.

    Returns
    -------
    (..., n) float64
        -inf where R ≤ -1.

    Examples
    --------
    >>> import numpy as np
    >>> ada_normal_hedge_logs(np.array([0.0, 60.0, -1.0]), np.array([0.0, 60.0, 5.0])).round(4)
    array([-0.9273, 20.0194,    -inf])
    """
    scale = -3.0 * (absolute + 1.0)
    above = np.maximum(regrets + 1.0, 0.0)
    squared = above * above
    gaps = np.minimum(squared, 4.0) * np.maximum(regrets, 1.0) / scale  # z - x, without cancellation
    reductions = np.expm1(gaps)
    nothing = reductions >= 0.0  # NaN is not, and stays, to be refused
    logs = np.log(nothing - reductions) - squared / scale
    np.copyto(logs, -np.inf, where=nothing)
    return np.asarray(logs, dtype=np.float64)


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
        ≥ 0; of runs with rates of their own: (..., 1). 0 takes finite regrets only.
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

"""AdaHedge: exponential weights at a rate that follows from the losses."""

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners.hedge import hedge
from stream_peer.numerics.losses import BoolArray, FloatArray
from stream_peer.numerics.losses.arguments import (
    AWAKE,
    COUNT,
    LEARNING_RATE,
    PRIOR,
    REGRETS,
    WEIGHTS,
    Numbers,
    checked,
    unchecked,
)

_HIGHEST_RATE = 1e290  # as good as infinite, and times any regret still a number


_GAPS = Numbers("...", low=0.0)


@checked(regrets=REGRETS, weights=WEIGHTS, learning_rate=LEARNING_RATE)
def mixability_gap(regrets: FloatArray, weights: FloatArray, learning_rate: float | FloatArray) -> FloatArray:
    """How much the weights lost in one question beyond what their mixture would have: what `ada_hedge` adds up.

    ``δ = Σw·ℓ + ln(Σ w·exp(-rate·ℓ))/rate = ln(Σ w·exp(rate·r))/rate``, r = Σw·ℓ - ℓ the question's regrets (de Rooij,
    van Erven, Grünwald & Koolen 2014). A pure function of the question, so that gaps of questions add up.

    Parameters
    ----------
    regrets : (..., n) float64
        r of one question under these weights.
    weights : (..., n) float64
        w, as followed; 0 for those that were asleep.
    learning_rate : float, or array of shape (..., 1)
        The rate behind the weights, ≥ 0: `ada_hedge_rate` at the sum of the earlier gaps.

    Returns
    -------
    (...,) float64
        Within [0, max r].

    Raises
    ------
    FormulaInputError
        If a rate is negative or NaN, or there is not one per row.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(mixability_gap(np.array([0.5, -0.5]), np.array([0.5, 0.5]), 1.0)), 4)
    0.1201
    """
    rate = np.asarray(learning_rate, dtype=np.float64)
    if rate.shape not in ((), (1,), (*regrets.shape[:-1], 1)) or not np.all(rate >= 0.0):
        msg = f"learning_rate is {learning_rate!r}, must be >= 0, one or one per row"
        raise FormulaInputError(msg)
    follow = weights > 0.0
    peak = np.maximum.reduce(np.where(follow, regrets, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    peak = np.where(peak == -np.inf, 0.0, peak)
    rate = np.broadcast_to(rate, peak.shape)
    shifted = rate * np.minimum(np.where(follow, regrets, peak) - peak, 0.0)
    mass = np.add.reduce(weights * np.exp(shifted), axis=-1, keepdims=True)
    missing = np.maximum(np.add.reduce(weights * np.expm1(shifted), axis=-1, keepdims=True), -0.5)
    logs = np.where(mass < 0.5, np.log(np.where(mass > 0.0, mass, 1.0)), np.log1p(missing))
    mean = np.add.reduce(weights * regrets, axis=-1, keepdims=True)
    lowered = np.divide(logs, rate, out=mean - peak, where=rate > 0.0)
    return np.asarray(np.clip(peak + lowered, 0.0, np.maximum(peak, 0.0))[..., 0], dtype=np.float64)


@checked(n_experts=COUNT, gaps=_GAPS)
def ada_hedge_rate(n_experts: int, gaps: float | FloatArray) -> FloatArray:
    """Learning rate of AdaHedge: ``ln N / Δ``, Δ the sum of the mixability gaps so far.

    Parameters
    ----------
    n_experts : int
        N ≥ 1.
    gaps : float or array
        Δ ≥ 0.

    Returns
    -------
    float64 array of the shape of ``gaps``
        At most 1e290, which is what Δ = 0 gives: then the leader is followed.

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> round(float(ada_hedge_rate(4, 2.0)), 4)
    0.6931
    """
    total = np.asarray(gaps, dtype=np.float64)
    lowest = np.log(max(n_experts, 2)) / _HIGHEST_RATE
    return np.asarray(np.log(n_experts) / np.maximum(total, lowest), dtype=np.float64)


@checked(regrets=REGRETS, gaps=_GAPS, n_experts=COUNT, prior=PRIOR, awake=AWAKE)
def ada_hedge(
    regrets: FloatArray,
    gaps: float | FloatArray,
    n_experts: int,
    prior: FloatArray | None = None,
    awake: BoolArray | None = None,
) -> FloatArray:
    """Exponential weights at a rate that follows from the losses: `hedge` at `ada_hedge_rate`.

    With Δ the sum of `mixability_gap` over the questions so far, the regret is at most
    ``√(T ln N) + 4/3·ln N + 2`` for losses in [0, 1], and far less on easy ones.

    Parameters
    ----------
    regrets : (..., n) float64
        R.
    gaps : float, or array of shape (..., 1)
        Δ ≥ 0. Gaps were taken at the prices of their time: they are frozen, while R may be priced afresh.
    n_experts : int
        N ≥ 1, all experts ever seen.
    prior, awake : (..., n), optional
        As in `hedge`.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where nobody is awake. Without any gap yet, the leaders share all weight.

    Examples
    --------
    >>> import numpy as np
    >>> ada_hedge(np.array([0.5, -0.5]), gaps=0.5, n_experts=2)
    array([0.8, 0.2])
    """
    return unchecked(hedge)(regrets, unchecked(ada_hedge_rate)(n_experts, gaps), prior, awake)

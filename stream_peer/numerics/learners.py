"""Learners: cumulative regrets in, selection weights out. No learning rate, no horizon.

Weights are for following one expert drawn from them. Hedge, AdaHedge, fixed share and the like belong here.
"""

import numpy as np

from stream_peer.numerics.losses import FloatArray


def ada_normal_hedge(regrets: FloatArray, absolute: FloatArray, prior: FloatArray | None = None) -> FloatArray:
    """Weights of AdaNormalHedge over the experts that are awake.

    With R an expert's cumulative regret and A the sum of its absolute values, over the questions it was awake in,
    ``w ∝ q·(exp(max(R+1, 0)² / 3(A+1)) - exp(max(R-1, 0)² / 3(A+1)))`` (Luo & Schapire 2015, for sleeping
    experts). Computed in log space: ``ln w = ln q + x + ln(1 - exp(-(x - z)))``, x and z the two exponents.

    Notes
    -----
    The paper's Theorem 3 leaves the learner open and its examples use exponential weights, which need a rate. Here
    R and A are priced afresh with the newest error rate at each reading, so late corrections heal the past.

    Parameters
    ----------
    regrets : (n,) float64
        R, positive if following the weights lost more than this expert. Of the awake experts only.
    absolute : (n,) float64
        A ≥ 0.
    prior : (n,) float64, optional
        q ≥ 0, of any sum; equal for all if left out.

    Returns
    -------
    (n,) float64
        Non-negative, summing to 1. An expert with R ≤ -1 gets 0; if all do, all get the same.

    Examples
    --------
    >>> import numpy as np
    >>> ada_normal_hedge(np.array([2.0, 0.0, -1.5]), np.array([3.0, 3.0, 3.0])).round(4)
    array([0.9222, 0.0778, 0.    ])
    """
    n_experts = regrets.size
    if n_experts == 0:
        return np.zeros(0)
    scale = 3.0 * (absolute + 1.0)
    above = np.maximum(regrets + 1.0, 0.0)
    squared = above * above
    exponents = squared / scale
    gaps = np.where(regrets > 1.0, 4.0 * regrets, squared) / scale  # x - z, without cancellation
    mass = gaps if prior is None else gaps * prior
    alive = mass > 0.0
    if not np.logical_or.reduce(alive):
        return np.full(n_experts, 1.0 / n_experts)
    logs = np.full(n_experts, -np.inf)
    logs[alive] = exponents[alive] + np.log(-np.expm1(-gaps[alive]))
    if prior is not None:
        logs[alive] += np.log(prior[alive])
    return softmax(logs)


def softmax(logs: FloatArray) -> FloatArray:
    """Weights proportional to the exponentials of ``logs``, which never overflow: ``exp(l - max l) / Σ``.

    Parameters
    ----------
    logs : (n,) float64
        At least one of them finite, the others finite or -inf.

    Returns
    -------
    (n,) float64
        Non-negative, summing to 1.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([1000.0, 1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    unscaled = np.exp(logs - np.maximum.reduce(logs))
    return np.asarray(unscaled / np.add.reduce(unscaled), dtype=np.float64)

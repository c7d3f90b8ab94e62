"""AdaNormalHedge for sleeping experts: no learning rate, no horizon. The default of selection weights."""

import math

import numpy as np

from stream_peer.numerics.learners.softmax import softmax
from stream_peer.numerics.losses import BoolArray, FloatArray
from stream_peer.numerics.losses.arguments import AWAKE, PRIOR, Numbers, checked, unchecked

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
    within [-1, 1]; where losses have a larger range, as class-dependent peer losses (`peer_losses.peer_loss_range`),
    divide R and A by it.

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

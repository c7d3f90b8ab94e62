"""Cold start: what an expert weighs that joins when others have a past."""

import math

import numpy as np

from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import INSIDE, NUMBER, Numbers, Optional, checked

HEDGE_START = 0.0
"""Log weight of an expert without regrets in exponential weights."""

NORMAL_HEDGE_START = math.log(math.expm1(1.0 / 3.0))
"""Log weight of an expert without regrets in AdaNormalHedge: ln(e^⅓ - 1)."""

_LARGEST_LOG = 700.0


@checked(logs=Numbers("n", low=-math.inf), prior=Optional(Numbers("n", low=0.0)), share=INSIDE, start=NUMBER)
def newcomer_prior(logs: FloatArray, prior: FloatArray | None, share: float, start: float) -> float:
    """Prior that lets an expert without a past begin with a given share of all weight.

    ``q = s/(1-s) · Σ_j q_j·exp(l_j) / exp(start)``. Computed once, when the expert is first seen, and kept with it: it
    is what it has instead of a history. From then on it stands in `ada_normal_hedge` or `hedge` like every other prior;
    those who were there keep their ratios.

    Parameters
    ----------
    logs : (n,) float64
        l, log weights without prior of those that were there: `ada_normal_hedge_logs`, or rate·R for `hedge`.
    prior : (n,) float64, optional
        Their q > 0; 1 each if left out.
    share : float
        s, within (0, 1). For an equal share 1/(n + 1).
    start : float
        Log weight of an expert without regrets: `NORMAL_HEDGE_START` or `HEDGE_START`.

    Returns
    -------
    float
        q > 0; 1 if there was nobody, or nobody with any weight (then the newcomer leads, whatever its prior). At most
        e^700.

    Raises
    ------
    FormulaInputError
        If the share is outside (0, 1), or a log weight is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs
    >>> old = ada_normal_hedge_logs(np.array([5.0, 0.0]), np.array([6.0, 4.0]))
    >>> q = newcomer_prior(old, None, share=0.2, start=NORMAL_HEDGE_START)
    >>> everybody = np.array([5.0, 0.0, 0.0]), np.array([6.0, 4.0, 0.0])
    >>> round(float(ada_normal_hedge(*everybody, prior=np.array([1.0, 1.0, q]))[2]), 12)
    0.2
    """
    peak = float(np.maximum.reduce(logs, initial=-np.inf))
    if peak == -math.inf:
        return 1.0
    unscaled = np.exp(logs - peak)
    total = float(np.add.reduce(unscaled if prior is None else unscaled * prior))
    if not total > 0.0:
        return 1.0
    return math.exp(min(math.log(share / (1.0 - share)) + peak + math.log(total) - start, _LARGEST_LOG))

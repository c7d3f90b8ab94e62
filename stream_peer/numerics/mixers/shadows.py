"""Shadows: mixers that run side by side with the plain mean, on sums that no order of the questions changes.

They compete with the best convex combination, on the loss linearised at the plain mean b of those present. Sums per
expert, over the questions it answered:

- SU = Σ 2b(b-p), SV = Σ 2(b-p), SVY = Σ 2(b-p)·ŷ_i: from reference answers alone;
- RH = Σ [2b(b-p) - 2(b-p)·y - ½(b-p)²] and AH = Σ |the same|: from outcomes.

½(b-p)² is half of the curvature that linearising throws away; it needs no outcome. The paper has no such part.
"""

import math

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import ada_normal_hedge, softmax
from stream_peer.numerics.losses import FloatArray


def peer_mixer(
    su: FloatArray,
    sv: FloatArray,
    svy: FloatArray,
    counts: FloatArray,
    n_experts: int,
    *,
    nominal: float,
    rate: float,
    uniform_share: float,
) -> FloatArray:
    """Mixing weights from reference answers, over the experts present.

    ``σ·uniform + (1-σ)·softmax(rate·√(8 ln N/(n̄+1))·((1-2η)·SU + η·SV - SVY))``: exponential weights on the
    linearised peer regrets 2b(b-p) - 2(b-p)·ỹ, ỹ = (ŷ-η)/(1-2η), on the unit scale. n̄ is the mean count of those
    present. The error rate η is nominal on purpose: estimated ones mix worse.

    Parameters
    ----------
    su, sv, svy : (n,) float64
        Sums of the experts present.
    counts : (n,) float64
        Questions each of them answered.
    n_experts : int
        N ≥ 1, all experts seen.
    nominal : float
        η, in [0, ½).
    rate : float
        Multiplies the textbook learning rate.
    uniform_share : float
        σ, in [0, 1].

    Returns
    -------
    (n,) float64
        Summing to 1.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([0.0, 2.0]), np.array([0.0, 1.0]), np.array([0.0, -1.0]), np.array([20.0, 20.0])
    >>> peer_mixer(*sums, n_experts=2, nominal=0.35, rate=0.42, uniform_share=0.5).round(4)
    array([0.4482, 0.5518])
    """
    if su.size == 0:
        return np.zeros(0)
    logs = peer_mixer_logs(su, sv, svy, counts, n_experts, nominal=nominal, rate=rate)
    return with_uniform_share(softmax(logs), uniform_share)


def peer_mixer_logs(
    su: FloatArray,
    sv: FloatArray,
    svy: FloatArray,
    counts: FloatArray,
    n_experts: int,
    *,
    nominal: float,
    rate: float,
) -> FloatArray:
    """Logarithms of the unscaled weights of `peer_mixer`, before the uniform share: for one softmax of all shadows."""
    regrets = (1.0 - 2.0 * nominal) * su + nominal * sv - svy
    return rate * _textbook_rate(counts, n_experts) * regrets


def with_uniform_share(weights: FloatArray, uniform_share: float) -> FloatArray:
    """``σ·uniform + (1-σ)·w`` over the experts present, at least one."""
    return uniform_share / weights.size + (1.0 - uniform_share) * weights


def truth_slow(rh: FloatArray, resolved: FloatArray, n_experts: int, *, rate: float) -> FloatArray:
    """Mixing weights from outcomes, over the experts present, slow to move.

    ``softmax(rate·√(8 ln N/(m̄+1))·RH)``, m̄ the mean number of resolved questions of those present.

    Parameters
    ----------
    rh, resolved : (n,) float64
        RH, and how many resolved questions each answered.
    n_experts : int
        N ≥ 1, all experts seen.
    rate : float
        Multiplies the textbook learning rate.

    Returns
    -------
    (n,) float64
        Summing to 1.

    Examples
    --------
    >>> import numpy as np
    >>> truth_slow(np.array([0.0, 1.0]), np.array([9.0, 9.0]), 2, rate=0.25).round(4)
    array([0.4536, 0.5464])
    """
    if rh.size == 0:
        return np.zeros(0)
    return softmax(truth_slow_logs(rh, resolved, n_experts, rate=rate))


def truth_slow_logs(rh: FloatArray, resolved: FloatArray, n_experts: int, *, rate: float) -> FloatArray:
    """Logarithms of the unscaled weights of `truth_slow`: for one softmax of all shadows."""
    return rate * _textbook_rate(resolved, n_experts) * rh


def truth_fast(rh: FloatArray, ah: FloatArray) -> FloatArray:
    """Mixing weights from outcomes, over the experts present, quick to move: AdaNormalHedge on RH and AH.

    Parameters
    ----------
    rh, ah : (n,) float64
        RH and AH.

    Returns
    -------
    (n,) float64
        Summing to 1; uniform if no RH is above -1.

    Examples
    --------
    >>> import numpy as np
    >>> truth_fast(np.array([-2.0, -1.0]), np.array([2.0, 1.0]))
    array([0.5, 0.5])
    """
    return ada_normal_hedge(rh, ah)


def _textbook_rate(counts: FloatArray, n_experts: int) -> float:
    """√(8 ln N/(mean count + 1)), the rate of exponential weights."""
    mean = float(np.add.reduce(counts)) / max(counts.size, 1)
    if n_experts < 1 or not mean >= 0.0:
        msg = f"n_experts {n_experts!r}, questions of an expert {mean!r} on average: must be >= 1, >= 0"
        raise FormulaInputError(msg)
    return math.sqrt(8.0 * math.log(n_experts) / (mean + 1.0))

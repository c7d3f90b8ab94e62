"""Learners that only a replay can choose: AdaHedge, fixed share, leaders and committees.

========================  ==========================================  ======================================
learner                   reads                                       an expert behind by D leads again after
========================  ==========================================  ======================================
`ada_normal_hedge`        R, A = Σ|r|; no rate, no horizon (default)  (D + 2·`normal_hedge_regret`)/g
`hedge`, `hedge_rate`     R, rate √(8 ln N/T) or √(8 ln N/t)          (D + ln N/rate)/g
`ada_hedge`               R, Σ of `mixability_gap`                    as Hedge, at its rate
`fixed_share`             yesterday's weights, r of one question      ⌈ln(N²/share)/(rate·g)⌉ + 1, whatever D
`follow_the_leader`       R                                           D/g
`top_committee`           R; size k                                   D/g, or sooner: it needs the k-th place
========================  ==========================================  ======================================

It counts questions until the expert has more than half of all weight; g is what it now gains on each of the others per
question (for `fixed_share`, much more than share/rate). Where sums fade (`error_rates.bucket_factors`, memory M), D is
at most g'·M, however long it lost g' per question, and it is level after M·ln(1 + g'/g) questions and two buckets more.
"""

import math

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    AWAKE,
    COUNT,
    INSIDE,
    LEARNING_RATE,
    PRIOR,
    REGRETS,
    WEIGHTS,
    BoolArray,
    FloatArray,
    Numbers,
    checked,
    unchecked,
)
from stream_peer.numerics.learners import hedge

__all__ = ["ada_hedge", "ada_hedge_rate", "fixed_share", "follow_the_leader", "mixability_gap", "top_committee"]

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

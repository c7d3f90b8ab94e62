"""Mixers: weights that combine forecasts, and what is done to the combined one.

Combining is another task than following one expert: it competes with the best convex combination, so each mixer
works on the loss linearised at the mean forecast b. Three mixers and the plain mean run side by side as *shadows*; the
outer layer shares weight among them by what outcomes have said. Sums per expert, over the questions it answered:

- SU = Σ 2b(b-p), SV = Σ 2(b-p), SVY = Σ 2(b-p)·ŷ_i: from reference answers alone;
- RH = Σ [2b(b-p) - 2(b-p)·y - ½(b-p)²] and AH = Σ |the same|: from outcomes.

The paper has no such part. Everything here reads sums; nothing is carried from call to call.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from stream_peer.numerics.learners import ada_normal_hedge, softmax
from stream_peer.numerics.losses import FloatArray

_SHADOWS = 4
_SUPPORTS = tuple(
    s for size in reversed(range(_SHADOWS)) for s in combinations(range(1, _SHADOWS), size)
)  # of all but the mean
_FIT = 16.0
_STRETCH_SHRINKAGE = 5.0
_NET_FLOOR = 0.001
_NET_STEP = 0.05
_CLIP = 0.02


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
    regrets = (1.0 - 2.0 * nominal) * su + nominal * sv - svy
    learned = softmax(rate * _textbook_rate(counts, n_experts) * regrets)
    return uniform_share / su.size + (1.0 - uniform_share) * learned


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
    return softmax(rate * _textbook_rate(resolved, n_experts) * rh)


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


def outer_weights(
    second_moments: FloatArray | Sequence[Sequence[float]],
    cross: FloatArray | Sequence[float],
    prior: FloatArray | Sequence[float],
) -> FloatArray:
    """Shares of the four shadows: the combination that would have done best on resolved questions, near the prior.

    With q_k = f_k - b (0 for the mean), e = y - b, M = Σ q q', h = Σ q·e over resolved questions, and prior π:
    ``m = argmin over the simplex of 16·(m'Mm - 2m'h) + Σ_k (m_k - π_k)² / (2π_k)``. The objective is strictly convex,
    so its minimum is that of one of the 15 faces; each is a small linear system, and the best feasible one is exact.
    Plain float arithmetic: the same bits everywhere.

    Parameters
    ----------
    second_moments : (3, 3)
        M of peer, truth_slow, truth_fast; symmetric.
    cross : (3,)
        h of the same.
    prior : (4,)
        π of mean, peer, truth_slow, truth_fast: ≥ 0, summing to 1. A shadow with prior 0 gets 0.

    Returns
    -------
    (4,) float64
        m, non-negative, summing to 1. Without resolved questions it is the prior.

    Examples
    --------
    >>> import numpy as np
    >>> prior = np.array([0.30, 0.50, 0.12, 0.08])
    >>> outer_weights(np.zeros((3, 3)), np.zeros(3), prior)
    array([0.3 , 0.5 , 0.12, 0.08])
    >>> outer_weights(np.diag([0.1, 0.1, 0.1]), np.array([-0.01, 0.02, 0.02]), prior).round(4)
    array([0.4506, 0.2273, 0.1857, 0.1364])
    """
    shares = [float(p) for p in prior]
    gains = [0.0, *(float(h) for h in cross)]
    curvature = [[0.0] * _SHADOWS, *([0.0, *(float(m) for m in row)] for row in second_moments)]
    best: list[float] = []
    least = math.inf
    for place, point in enumerate(_stationary_points(curvature, gains, shares)):
        if min(point) >= 0.0:
            value = _objective(point, curvature, gains, shares)
            if not best or value < least:
                best, least = point, value
            if place == 0:
                break  # the largest face comes first, and all others are its edges
    return np.array(best)


def stretch_factor(sum_error_product: float, sum_square: float) -> float:
    """How much too timid (positive) or too bold (negative) the published mix has been on resolved questions.

    ``β = Σ(y-f)(f-½) / (Σ(f-½)² + 5)``, f the mix as published: a shrunk regression through ½.

    Parameters
    ----------
    sum_error_product : float
        Σ(y-f)(f-½).
    sum_square : float
        Σ(f-½)² ≥ 0.

    Returns
    -------
    float
        0 without resolved questions.

    Examples
    --------
    >>> stretch_factor(3.0, 25.0)
    0.1
    """
    return sum_error_product / (sum_square + _STRETCH_SHRINKAGE)


def stretched(forecast: float, factor: float) -> float:
    """A mixed forecast moved away from ½ by the stretch factor: ``½ + (1+β)(f - ½)``, clipped to [0, 1].

    Parameters
    ----------
    forecast : float
        f, in [0, 1].
    factor : float
        β of `stretch_factor`.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> stretched(0.75, 0.2), stretched(0.9, 0.5)
    (0.8, 1.0)
    """
    return min(max(0.5 + (1.0 + factor) * (forecast - 0.5), 0.0), 1.0)


def safety_net_step(share: float, sum_delta: float, sum_delta_squares: float) -> float:
    """Next share of the plain mean in the published mix, given how the mix has done against it.

    ``z = Σδ/√(Σδ² + .001)``, δ = (f-y)² - (b-y)² over resolved questions, f the mix before the net; the share moves
    towards ``clip((z-1)/2, 0, 1)`` by at most .05. Published mix = (1-share)·mix + share·uniform.

    Parameters
    ----------
    share : float
        The present share, in [0, 1].
    sum_delta, sum_delta_squares : float
        Σδ and Σδ² ≥ 0.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> safety_net_step(0.0, sum_delta=0.3, sum_delta_squares=0.01)
    0.05
    >>> safety_net_step(0.05, sum_delta=-0.3, sum_delta_squares=0.01)
    0.0
    """
    z = sum_delta / math.sqrt(sum_delta_squares + _NET_FLOOR)
    goal = min(max(0.5 * (z - 1.0), 0.0), 1.0)
    return min(max(goal, share - _NET_STEP), share + _NET_STEP)


def logit_mean(forecasts: FloatArray) -> float:
    """The forecast whose log odds are the mean of the experts' log odds, each clipped to [.02, .98].

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, n ≥ 1. The clip keeps one forecast of 0 or 1 from deciding alone.

    Returns
    -------
    float
        In [.02, .98].

    Examples
    --------
    >>> import numpy as np
    >>> round(logit_mean(np.array([0.2, 0.8, 1.0])), 4)
    0.7854
    """
    clipped = np.minimum(np.maximum(forecasts, _CLIP), 1.0 - _CLIP)
    log_odds = float(np.add.reduce(np.log(clipped / (1.0 - clipped)))) / forecasts.size
    return 1.0 / (1.0 + math.exp(-log_odds))


def _textbook_rate(counts: FloatArray, n_experts: int) -> float:
    """√(8 ln N/(mean count + 1)), the rate of exponential weights."""
    mean = float(np.add.reduce(counts)) / counts.size
    return math.sqrt(8.0 * math.log(n_experts) / (mean + 1.0))


def _stationary_points(curvature: list[list[float]], gains: list[float], prior: list[float]) -> Iterator[list[float]]:
    """Stationary point of the objective on each face: among points that sum to 1 and are 0 outside a support.

    There 32·(Mm)_k + m_k/π_k = 32·h_k + 1 - λ. Multiplied by π_k the left side is solved once for the right side
    without λ (``free``) and once for the factor of λ (``pull``); then λ makes the sum 1. The mean has no row or
    column in M, so it joins a face of the other three as m_0 = π_0·(1 - λ), without another system.
    """
    for support in _SUPPORTS:
        if any(prior[k] <= 0.0 for k in support):
            continue
        free, pull = _solve(
            [
                [
                    *[2.0 * _FIT * prior[k] * curvature[k][j] + (j == k) for j in support],
                    prior[k] * (2.0 * _FIT * gains[k] + 1.0),
                    prior[k],
                ]
                for k in support
            ]
        )
        for mean in (prior[0], 0.0):
            total_pull = _total(pull) + mean
            if total_pull > 0.0:
                multiplier = (_total(free) + mean - 1.0) / total_pull
                point = [mean - multiplier * mean, 0.0, 0.0, 0.0]
                for place, k in enumerate(support):
                    point[k] = free[place] - multiplier * pull[place]
                yield point


def _total(values: list[float]) -> float:
    """Sum from left to right, on every Python: the built-in one compensates rounding from 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


def _solve(rows: list[list[float]]) -> tuple[list[float], list[float]]:
    """Solve a regular system for two right-hand sides, its last two columns, by Gauss-Jordan with partial pivoting."""
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda r: abs(rows[r][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        top = rows[column]
        for i in range(size):
            if i != column:
                row = rows[i]
                factor = row[column] / top[column]
                for j in range(column, size + 2):
                    row[j] -= factor * top[j]
    return [row[size] / row[i] for i, row in enumerate(rows)], [row[size + 1] / row[i] for i, row in enumerate(rows)]


def _objective(point: list[float], curvature: list[list[float]], gains: list[float], prior: list[float]) -> float:
    total = 0.0
    for k, share in enumerate(point):
        if prior[k] > 0.0:
            row = curvature[k]
            slope = row[1] * point[1] + row[2] * point[2] + row[3] * point[3] - 2.0 * gains[k]
            distance = share - prior[k]
            total += _FIT * share * slope + distance * distance / (2.0 * prior[k])
    return total

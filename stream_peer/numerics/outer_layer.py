"""From the mixers' forecasts to the one that is published: shares, the safety net, and the stretch.

- `outer_weights`: how much of the mix each mixer gets, by what outcomes have said; solved exactly
- `safety_net_step`: back to the plain mean, step by step, where outcomes say that the mix does worse
- `stretch_factor`, `stretched`: the mixed forecast further from ½, or closer, as outcomes justify
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.arguments import AT_LEAST_0, NUMBER, POSITIVE, SHARE, FloatArray, Numbers, checked

__all__ = ["outer_weights", "safety_net_step", "stretch_factor", "stretched"]

_N_MIXERS = 4
_MOST_QUESTIONS = 1e15
_ROUNDING = 1e-6
_SUPPORTS = tuple(
    s for size in reversed(range(_N_MIXERS)) for s in combinations(range(1, _N_MIXERS), size)
)  # of all but the mean
_FIT = 16.0


def _check_moments(second_moments: FloatArray, **_: object) -> None:
    """Refuse what no sums of products are: second moments are symmetric, and no combination has a negative one."""
    room = _ROUNDING * (1.0 + float(np.abs(second_moments).max()))
    if np.abs(second_moments - second_moments.T).max() > room or np.linalg.eigvalsh(second_moments).min() < -room:
        msg = f"second_moments is {second_moments.tolist()}: not symmetric, or negative for some combination"
        raise FormulaInputError(msg)


def _check_prior(prior: FloatArray, **_: object) -> None:
    """Refuse shares that do not sum to 1."""
    if abs(float(np.add.reduce(prior)) - 1.0) > _ROUNDING:
        msg = f"prior is {prior.tolist()}, which sums to {float(np.add.reduce(prior))!r}, not to 1"
        raise FormulaInputError(msg)


@checked(
    _check_moments,
    _check_prior,
    second_moments=Numbers("3 3", -_MOST_QUESTIONS, _MOST_QUESTIONS),
    cross=Numbers("3", -_MOST_QUESTIONS, _MOST_QUESTIONS),
    prior=Numbers("4", 0.0, 1.0),
)
def outer_weights(
    second_moments: FloatArray | Sequence[Sequence[float]],
    cross: FloatArray | Sequence[float],
    prior: FloatArray | Sequence[float],
) -> FloatArray:
    """Shares of the four mixers: the combination that would have done best on resolved questions, near the prior.

    With q_k = f_k - b (0 for the mean), e = y - b, M = Σ q q', h = Σ q·e over resolved questions, and prior π:
    ``m = argmin over the simplex of 16·(m'Mm - 2m'h) + Σ_k (m_k - π_k)² / (2π_k)``. The objective is strictly convex,
    so its minimum is that of one of the 15 faces; each is a small linear system, and the best feasible one is exact.
    Plain float arithmetic: the same bits everywhere.

    Parameters
    ----------
    second_moments : (3, 3)
        M of peer, truth_slow, truth_fast; symmetric: the columns ``peer_peer``, ``peer_slow`` … ``fast_fast``.
    cross : (3,)
        h of the same: the columns ``peer_error``, ``slow_error``, ``fast_error``.
    prior : (4,)
        π of mean, peer, truth_slow, truth_fast: ≥ 0, summing to 1. A mixer with prior 0 gets 0.

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
    curvature = [[0.0] * _N_MIXERS, *([0.0, *(float(m) for m in row)] for row in second_moments)]
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


_NET_FLOOR = 0.001
_NET_STEP = 0.05


@checked(share=SHARE, net_difference=NUMBER, net_square=AT_LEAST_0)
def safety_net_step(share: float, net_difference: float, net_square: float) -> float:
    """Next share of the plain mean in the published mix, given how the mix has done against it.

    ``z = Σδ/√(Σδ² + .001)``, δ = (f-y)² - (b-y)² over resolved questions, f the mix before the net; the share moves
    towards ``clip((z-1)/2, 0, 1)`` by at most .05. Published mix = (1-share)·mix + share·uniform.

    Parameters
    ----------
    share : float
        The present share, in [0, 1].
    net_difference, net_square : float
        Σδ and Σδ² ≥ 0.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> safety_net_step(0.0, net_difference=0.3, net_square=0.01)
    0.05
    >>> safety_net_step(0.05, net_difference=-0.3, net_square=0.01)
    0.0
    """
    z = net_difference / math.sqrt(net_square + _NET_FLOOR)
    goal = min(max(0.5 * (z - 1.0), 0.0), 1.0)
    return min(max(goal, share - _NET_STEP), share + _NET_STEP)


_STRETCH_SHRINKAGE = 5.0


@checked(stretch_product=NUMBER, stretch_square=AT_LEAST_0, by_peers=NUMBER, shrinkage=POSITIVE)
def stretch_factor(
    stretch_product: float, stretch_square: float, by_peers: float = 0.0, shrinkage: float = _STRETCH_SHRINKAGE
) -> float:
    """How much too timid (positive) or too bold (negative) the published mix has been on resolved questions.

    ``β = max(-1, (Σ(y-f)(f-½) + s·β₀) / (Σ(f-½)² + s))``, f the mix as published: a regression through ½, shrunk
    towards β₀, what peers say. It stops at -1, where every stretched forecast is ½: a crowd that was wrong so far is
    not turned round.

    Parameters
    ----------
    stretch_product : float
        Σ(y-f)(f-½).
    stretch_square : float
        Σ(f-½)² ≥ 0.
    by_peers : float
        β₀, see `peer_stretch`.
    shrinkage : float
        s > 0.

    Returns
    -------
    float
        At least -1; β₀ without resolved questions.

    Examples
    --------
    >>> stretch_factor(3.0, 25.0), stretch_factor(-40.0, 25.0), stretch_factor(0.0, 0.0, by_peers=0.5)
    (0.1, -1.0, 0.5)
    """
    return max((stretch_product + shrinkage * by_peers) / (stretch_square + shrinkage), -1.0)


@checked(forecast=Numbers(low=0.0, high=1.0, error=ForecastRangeError), factor=Numbers(low=-1.0))
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

"""The outer layer: how much of the mix each shadow gets, by what outcomes have said. Solved exactly."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import Numbers, checked

_SHADOWS = 4
_MOST_QUESTIONS = 1e15
_ROUNDING = 1e-6
_SUPPORTS = tuple(
    s for size in reversed(range(_SHADOWS)) for s in combinations(range(1, _SHADOWS), size)
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

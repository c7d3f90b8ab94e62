"""Probabilities that belong together: moved as little as possible until they obey the laws of probability.

- `simplex_projection`: options of which one comes true; their probabilities sum to 1, or leave a rest for others
- `isotonic_regression`: thresholds in ascending order; the probability of at most each never falls

Both are Euclidean projections onto a convex set that holds every possible outcome. So they bring forecasts nearer to
the outcome, whichever it is: the squared loss, summed over the parts, never grows (Predd, Osherson, Kulkarni & Poor,
Aggregating probabilistic forecasts from incoherent and abstaining experts, 2008).
"""

from collections.abc import Sequence

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import FloatArray, Numbers, Optional, checked

__all__ = ["isotonic_regression", "simplex_projection"]

_COHERENT = 1e-12


def _check_some(values: FloatArray, **_: object) -> None:
    """Refuse no options at all: nothing sums to 1."""
    if not len(values):
        msg = "values is empty: there are no options"
        raise FormulaInputError(msg)


@checked(_check_some, values=Numbers("n", 0.0, 1.0), rest=Numbers(kind=np.bool_))
def simplex_projection(values: FloatArray | Sequence[float], *, rest: bool = False) -> FloatArray:
    """The nearest probabilities that sum to 1, or, with a rest for other options, to at most 1.

    ``argmin_q Σ (q_k - p_k)²`` over q ≥ 0, Σ q = 1: ``q_k = max(p_k + τ, 0)`` with the one τ for which they sum to 1
    (Held, Wolfe & Crowder, 1974). An option of probability 0 gets nothing while others are to shrink; the order of
    options stays.

    Parameters
    ----------
    values : (n,)
        p, within 0..1, n ≥ 1. Those that sum to 1 up to 1e-12 stay as they are.
    rest : bool
        Whether there are other options, so that what sums to less than 1 stays as it is.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> simplex_projection([0.5, 0.5, 0.3]).round(3).tolist()
    [0.4, 0.4, 0.2]
    >>> simplex_projection([1.0, 0.9, 0.1]).round(3).tolist()
    [0.55, 0.45, 0.0]
    >>> simplex_projection([0.5, 0.3], rest=True).tolist()
    [0.5, 0.3]
    """
    values = np.asarray(values)
    excess = float(np.add.reduce(values)) - 1.0
    if abs(excess) <= _COHERENT or (rest and excess < 0.0):
        return values.copy()
    descending = np.sort(values)[::-1]
    shifts = (1.0 - np.cumsum(descending)) / np.arange(1, len(values) + 1)  # τ if the k largest alone stay above 0
    last = int(np.flatnonzero(descending + shifts > 0.0)[-1])
    projected: FloatArray = np.maximum(values + shifts[last], 0.0)
    return projected


@checked(values=Numbers("n", 0.0, 1.0), weights=Optional(Numbers("n", 0.0, above=True)))
def isotonic_regression(
    values: FloatArray | Sequence[float], weights: FloatArray | Sequence[float] | None = None
) -> FloatArray:
    """The nearest values that never fall.

    ``argmin_q Σ w_k·(q_k - p_k)²`` over q_1 ≤ q_2 ≤ …, by pooling adjacent violators (Ayer, Brunk, Ewing, Reid &
    Silverman, 1955): runs in which values fall get their mean, until no mean is below the one before it.

    Parameters
    ----------
    values : (n,)
        p, within 0..1, in the order of the thresholds. Those that never fall stay as they are.
    weights : (n,), optional
        w, above 0; equal ones if left out.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> isotonic_regression([0.1, 0.5, 0.3, 0.9]).tolist()
    [0.1, 0.4, 0.4, 0.9]
    >>> isotonic_regression([0.1, 0.5, 0.3, 0.9], [1.0, 3.0, 1.0, 1.0]).tolist()
    [0.1, 0.45, 0.45, 0.9]
    """
    pools = list[tuple[float, float, int]]()  # mean, weight, length
    each = [1.0] * len(values) if weights is None else np.asarray(weights).tolist()
    for value, weight in zip(np.asarray(values).tolist(), each, strict=True):
        mean, length = value, 1
        while pools and pools[-1][0] > mean:
            before, its_weight, its_length = pools.pop()
            total = its_weight + weight
            mean = before + (mean - before) * (weight / total)
            weight, length = total, length + its_length  # noqa: PLW2901 - of the pool
        pools.append((mean, weight, length))
    return np.repeat([mean for mean, _, _ in pools], [length for _, _, length in pools]).astype(np.float64)

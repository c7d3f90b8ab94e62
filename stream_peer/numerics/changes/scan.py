"""Where in a series did its mean change, if it did: the maximally selected two-sample z, for many series at once."""

from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray, IntArray
from stream_peer.numerics.losses.arguments import Numbers, Optional, Record, checked, unchecked

FEWEST_IN_PART = 25.0
"""Effective observations that either side of a cut must have: fewer are no new state of things."""

_LEAST_VARIANCE = 1e-12


class Earlier(NamedTuple):
    """Sums over what came before the rows of a scan, of each series.

    Attributes
    ----------
    weight, weight2 : (n_series,) float64
        Σw and Σw².
    total, square : (n_series,) float64
        Σw·x and Σw·x².
    """

    weight: FloatArray
    weight2: FloatArray
    total: FloatArray
    square: FloatArray


class Changes(NamedTuple):
    """The likeliest change of each series.

    Attributes
    ----------
    z : (n_series,) float64
        By how many standard deviations the mean from there on is above the mean before; 0 where no cut has enough
        observations on both sides, and for a series that does not vary.
    cuts : (n_series,) int64
        The first row of the new state.
    """

    z: FloatArray
    cuts: IntArray


_EARLIER = Record(
    Earlier,
    {
        "weight": Numbers("n", low=0.0),
        "weight2": Numbers("n", low=0.0),
        "total": Numbers("n"),
        "square": Numbers("n", low=0.0),
    },
)


@checked(
    values=Numbers("t n"), weights=Numbers("t n", 0.0, 1.0), spans=Numbers("n", low=0.0), earlier=Optional(_EARLIER)
)
def scan_for_changes(
    values: FloatArray, weights: FloatArray, spans: FloatArray, earlier: Earlier | None = None
) -> Changes:
    """The cut of each series at which the weighted means before and after it differ most, in standard deviations.

    With n = (Σw)²/Σw² effective observations before a cut and m from it on, Δ the difference of the means, s² the
    variance of the whole series, b its span and W the Σw of the side that has less of it:
    ``z = Δ / √(s²·(1/n + 1/m) + b·|Δ|/(3·W))``, at the cut at which |z| is largest, the first of equal ones. Cuts with
    fewer than 25 effective observations on either side are left out.

    Without the last term this is the likelihood ratio test for one change of a normal mean, the maximally selected
    two-sample z of Sen & Srivastava 1975 and Hawkins 1977, with the variance of a series without a change. That term
    is Bernstein's: votes agree or they do not, and three lapses in a row of an expert who nearly always agrees would
    be nine standard deviations. With it each cut has ``P(|z| > c) ≤ 2·exp(-c²/2)`` for independent observations within
    the span, if s² is known, however skewed they are.

    Parameters
    ----------
    values : (n_rows, n_series) float64
        By time, the oldest first.
    weights : (n_rows, n_series) float64
        In [0, 1]; 0: there is no such observation.
    spans : (n_series,) float64
        Largest possible distance of an observation from the mean.
    earlier : Earlier, optional
        What came before the rows: cuts are among the rows, but all of it is before them.

    Returns
    -------
    Changes

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[1.0, -1.0], [1.0, 1.0]] * 25 + [[0.0, -1.0], [-1.0, 1.0]] * 25)
    >>> found = scan_for_changes(values, np.ones((100, 2)), np.array([2.0, 2.0]))
    >>> found.z.round(2).tolist(), found.cuts.tolist()
    ([-6.88, 0.23], [50, 25])
    """
    weighted = weights * values
    return unchecked(scan_of_sums)(np.stack((weights, weights * weights, weighted, weighted * values)), spans, earlier)


def _check_rows(sums: FloatArray, **_: object) -> None:
    """Refuse negative sums of weights and of squares."""
    if not np.minimum.reduce(sums[[0, 1, 3]], axis=None, initial=0.0) >= 0.0:
        msg = f"sums has {float(sums[[0, 1, 3]].min())!r} among those of weights and squares, must be >= 0"
        raise FormulaInputError(msg)


@checked(_check_rows, sums=Numbers("4 t n"), spans=Numbers("n", low=0.0), earlier=Optional(_EARLIER))
def scan_of_sums(sums: FloatArray, spans: FloatArray, earlier: Earlier | None = None) -> Changes:
    """`scan_for_changes` of rows that stand for several observations each, and are not cut.

    Parameters
    ----------
    sums : (4, n_rows, n_series) float64
        Of each row Σw, Σw², Σw·x and Σw·x².
    spans : (n_series,) float64
        Largest possible distance of an observation from the mean.
    earlier : Earlier, optional
        What came before the rows.

    Returns
    -------
    Changes

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[[10.0]] * 10, [[10.0]] * 10, [[-10.0]] * 5 + [[10.0]] * 5, [[10.0]] * 10])
    >>> scan_of_sums(rows, np.array([2.0]))
    Changes(z=array([7.74596669]), cuts=array([5]))
    """
    _, n_rows, n_series = sums.shape
    if not n_rows:
        return Changes(np.zeros(n_series), np.zeros(n_series, np.int64))
    running = np.zeros((4, n_rows + 1, n_series))
    if earlier is not None:
        running[:, 0] = earlier
    running[:, 1:] = sums
    np.add.accumulate(running, axis=1, out=running)
    z = _z_at_cuts(running, spans)
    cuts = np.abs(z).argmax(axis=0)
    return Changes(z[cuts, np.arange(n_series)], cuts)


def _z_at_cuts(sums: FloatArray, spans: FloatArray) -> FloatArray:
    """Z of each cut, given sums of weights, their squares, weighted values and squares up to it; the last are all."""
    weight, weight2, total, square = sums[:, -1]
    some = np.maximum(weight, _LEAST_VARIANCE)
    mean = total / some
    variance = square / some - mean * mean
    first, first2, first_total, _ = sums[:, :-1]
    second, second2, second_total = weight - first, weight2 - first2, total - first_total
    fits = (first * first >= FEWEST_IN_PART * first2) & (first > 0.0)
    fits &= (second * second >= FEWEST_IN_PART * second2) & (second > 0.0) & (variance > _LEAST_VARIANCE)
    first, second = np.where(fits, first, 1.0), np.where(fits, second, 1.0)
    steps = second_total / second - first_total / first
    noise = variance * (first2 / (first * first) + second2 / (second * second))
    noise += spans * np.abs(steps) / (3.0 * np.minimum(first, second))
    z: FloatArray = np.where(fits, steps / np.sqrt(np.where(fits, noise, 1.0)), 0.0)
    return z

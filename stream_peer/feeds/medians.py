"""Each expert's running median of its forecasts, read off its histogram: the threshold of the vote rule own-median.

Bins are of 1/64, and finer towards 0 and 1: where yes is rare, all that experts know may lie below 1/64.
"""

from typing import NamedTuple

import numpy as np

from stream_peer.feeds.columns import UNIT
from stream_peer.feeds.sums import BINS, Binned
from stream_peer.numerics.arguments import BoolArray, FloatArray, IndexArray, IntArray

LEAST_HISTORY = 10.0
"""Questions (their weights summed) before an expert's median is its threshold; until then it is 1/2."""

_FINE = [0.0, *(part * 2.0**-power for power in range(13, 5, -1) for part in (1.0, 1.5))]
EDGES = np.array([*_FINE, *(k / 64.0 for k in range(2, 63)), *(1.0 - edge for edge in reversed(_FINE))])
"""Of the bins: two an octave up to 1/32 and from 31/32 on, 1/64 between. All are exact in binary."""

_INNER_EDGES = EDGES[1:-1]
_LEAST = int(LEAST_HISTORY / UNIT)
_AT_ONCE = 1000
"""Experts of which the histograms and what is made of them stay in the processor's cache."""


class Medians(NamedTuple):
    """Where experts' votes turn.

    Attributes
    ----------
    thresholds : (n,) float64
        The median of each expert's forecasts, within [0, 1].
    steady : (n,) int64
        The bin of the median, if at least three quarters of the expert's history lie in it; else -1.
    """

    thresholds: FloatArray
    steady: IntArray

    def lines(self, forecasts: FloatArray) -> FloatArray:
        """Thresholds of a round's votes.

        The median of a steady expert is known to a bin only: on which side of it a forecast in the same bin lies says
        nothing. Its line is the forecast itself, so that it casts no vote.
        """
        return np.where(_bins(forecasts) == self.steady, forecasts, self.thresholds)


def binned(experts: IndexArray, forecasts: FloatArray, amount: int) -> Binned:
    """The cells of forecasts, each of which is to add ``amount``."""
    return Binned(experts * np.int64(BINS) + _bins(forecasts), amount)


def own_medians(histograms: IntArray) -> Medians:
    """Median of each expert's forecasts, interpolated within its bin; 1/2 with too little history.

    With c the counts below the bin in which half of the total is reached, h those within it and T the total, of a bin
    from a to b: ``a + (b - a)·(T/2 - c)/h``.

    Parameters
    ----------
    histograms : (n, BINS) int64
        In units of 2^-40.

    Returns
    -------
    Medians

    Examples
    --------
    >>> histograms = np.zeros((2, BINS), np.int64)
    >>> histograms[0, 31], histograms[0, 35], histograms[1, 18] = 24 << 40, 8 << 40, 9 << 40
    >>> own_medians(histograms)  # 16 of 24 into the bin from 16/64 on; nine questions are too few
    Medians(thresholds=array([0.26041667, 0.5       ]), steady=array([31, -1]))
    """
    if len(histograms) <= _AT_ONCE:
        return _medians(histograms)
    starts = range(0, len(histograms), _AT_ONCE)
    parts = [_medians(histograms[start : start + _AT_ONCE]) for start in starts]
    return Medians(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def uninformative(histograms: IntArray) -> BoolArray:
    """Whose forecasts all lie in one bin, of those with enough history for a median.

    Parameters
    ----------
    histograms : (n, BINS) int64
        In units of 2^-40.

    Returns
    -------
    (n,) bool

    Examples
    --------
    >>> histograms = np.zeros((2, BINS), np.int64)
    >>> histograms[:, 31], histograms[1, 35] = 24 << 40, 1 << 40
    >>> uninformative(histograms)
    array([ True, False])
    """
    totals = np.add.reduce(histograms, axis=1)
    constant: BoolArray = (np.maximum.reduce(histograms, axis=1) == totals) & (totals >= _LEAST)
    return constant


def _bins(forecasts: FloatArray) -> IntArray:
    return _INNER_EDGES.searchsorted(forecasts, side="right")


def _medians(histograms: IntArray) -> Medians:
    cumulated = np.add.accumulate(histograms, axis=1)
    totals = cumulated[:, -1]
    half = totals - totals // 2
    bins = (cumulated >= half[:, np.newaxis]).argmax(axis=1)
    cells = np.arange(0, histograms.size, BINS) + bins
    within = histograms.take(cells)
    below = cumulated.take(cells) - within
    parts = (0.5 * totals - below) / np.maximum(within, 1)
    low, known = EDGES[bins], totals >= _LEAST
    medians = low + parts * (EDGES[bins + 1] - low)
    return Medians(np.where(known, medians, 0.5), np.where(known & (within >= totals - totals // 4), bins, -1))

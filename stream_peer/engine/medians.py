"""Each expert's running median of its forecasts, read off its histogram: the threshold of the vote rule own-median."""

import numpy as np

from stream_peer.engine.sums import BINS, UNIT, Binned, IndexArray
from stream_peer.numerics.losses import FloatArray, IntArray

LEAST_HISTORY = 10.0
"""Questions (their weights summed) before an expert's median is its threshold; until then it is 1/2."""

_LEAST = int(LEAST_HISTORY / UNIT)
_AT_ONCE = 1000
"""Experts of which the histograms and what is made of them stay in the processor's cache."""


def binned(experts: IndexArray, forecasts: FloatArray, amount: int) -> Binned:
    """The cells of forecasts, each of which is to add ``amount``."""
    bins = np.minimum((forecasts * BINS).astype(np.int64), BINS - 1)
    return Binned(experts * np.int64(BINS) + bins, amount)


def own_medians(histograms: IntArray) -> FloatArray:
    """Median of each expert's forecasts, interpolated within its bin; 1/2 with too little history.

    With c the counts below the bin in which half of the total is reached, h those within it and T the total, of bin k:
    ``(k + (T/2 - c)/h) / 64``.

    Parameters
    ----------
    histograms : (n, BINS) int64
        In units of 2^-40.

    Returns
    -------
    (n,) float64
        Thresholds within [0, 1].

    Examples
    --------
    >>> histograms = np.zeros((2, BINS), np.int64)
    >>> histograms[0, 16], histograms[0, 20], histograms[1, 3] = 24 << 40, 8 << 40, 9 << 40
    >>> own_medians(histograms)  # 16 of 24 into bin 16; nine questions are too few
    array([0.26041667, 0.5       ])
    """
    if len(histograms) <= _AT_ONCE:
        return _medians(histograms)
    starts = range(0, len(histograms), _AT_ONCE)
    return np.concatenate([_medians(histograms[start : start + _AT_ONCE]) for start in starts])


def _medians(histograms: IntArray) -> FloatArray:
    cumulated = np.add.accumulate(histograms, axis=1)
    totals = cumulated[:, -1]
    half = totals - totals // 2
    bins = (cumulated >= half[:, np.newaxis]).argmax(axis=1)
    cells = np.arange(0, histograms.size, BINS) + bins
    within = histograms.take(cells)
    below = cumulated.take(cells) - within
    parts = (0.5 * totals - below) / np.maximum(within, 1)
    return np.where(totals >= _LEAST, (bins + parts) / BINS, 0.5)

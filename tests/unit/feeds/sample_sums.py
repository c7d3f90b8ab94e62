"""Sums by hand, for the tests of what is read off them."""

import numpy as np

from stream_peer.feeds.sums import N_EXPERT, N_FEED, SCALE, expert_column, feed_column
from stream_peer.numerics.losses import FloatArray, IntArray


def feed_sums(**columns: float) -> IntArray:
    sums = np.zeros(N_FEED, np.int64)
    for name, value in columns.items():
        sums[feed_column(name)] = round(value * SCALE)
    return sums


def expert_sums(n_experts: int, **columns: list[float]) -> FloatArray:
    sums = np.zeros((N_EXPERT, n_experts))
    for name, values in columns.items():
        sums[expert_column(name)] = values
    return sums


def agreeing(weight: float) -> IntArray:
    return feed_sums(
        moment_weight=weight,
        moment_weight2=weight,
        pair=0.25 * weight,
        rest=0.4 * weight,
        pair2=0.16 * weight,
        rest2=0.3 * weight,
        pair_rest=0.15 * weight,
    )

"""Sums by hand, for the tests of what is read off them."""

import numpy as np

from stream_peer.feeds.columns import EXPERT, FEED, SCALE
from stream_peer.numerics.arguments import FloatArray


class FeedSums(list[int]):
    """Columns of a feed, to be added up column by column."""

    def plus(self, other: list[int], sign: int = 1) -> "FeedSums":
        return FeedSums([one + sign * another for one, another in zip(self, other, strict=True)])


def feed_sums(**columns: float) -> FeedSums:
    sums = FeedSums([0] * FEED.size)
    for name, value in columns.items():
        sums[FEED.at(name)] = round(value * SCALE)
    return sums


def expert_sums(n_experts: int, **columns: list[float]) -> FloatArray:
    sums = np.zeros((EXPERT.size, n_experts))
    for name, values in columns.items():
        sums[EXPERT.at(name)] = values
    return sums


def agreeing(weight: float) -> FeedSums:
    return feed_sums(
        moment_weight=weight,
        moment_weight2=weight,
        pair=0.25 * weight,
        rest=0.4 * weight,
        pair2=0.16 * weight,
        rest2=0.3 * weight,
        pair_rest=0.15 * weight,
    )

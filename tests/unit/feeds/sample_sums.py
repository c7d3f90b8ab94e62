"""Sums by hand, for the tests of what is read off them."""

from dataclasses import asdict
from functools import cache

import numpy as np

from stream_peer.feeds.columns import EXPERT, FEED, SCALE
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import ClassMomentSums, class_moment_terms


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


def voting(weight: float) -> FeedSums:
    """Sums of so many questions on which seven independent experts vote at ½, each right on three of four."""
    classes = {f"half_{name}": weight * value for name, value in _mean_question().items()}
    return agreeing(weight).plus(feed_sums(**classes))


@cache
def _mean_question() -> dict[str, float]:
    rng, sums, questions = np.random.default_rng(5), ClassMomentSums(), 2000
    for outcome in (-1, 1) * (questions // 2):
        votes = np.where(rng.random(7) < 0.75, outcome, -outcome).astype(np.int8)
        lead = votes.sum() - votes
        terms = class_moment_terms(votes, np.where(lead == 0, rng.random() < 0.5, lead > 0).astype(np.int8))
        assert terms is not None
        sums = sums.merge(ClassMomentSums.contribution(terms))
    return {name: value / questions for name, value in asdict(sums).items()}

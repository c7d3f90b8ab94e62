"""Pairs of experts who agree more with each other than their skills explain, and a map of them.

In `neighbourly_order` those who agree stand together, so that groups show in a picture of all pairs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import VOTE_ROWS, FloatArray, IntArray, Numbers, SmallIntArray, checked
from stream_peer.tools.replay.history import FeedHistory

__all__ = ["PairResiduals", "neighbourly_order", "pair_residuals"]  # the formulas

FEWEST_COMMON = 20
"""Common questions below which a pair is not looked at."""
_STEPS = 60
_SMALLEST_SCALE = 1e-9


class PairResiduals(NamedTuple):
    """How far each two experts' agreement is from what their skills explain.

    Attributes
    ----------
    common : (n_experts, n_experts) float64
        Questions that both voted on, 0 on the diagonal and where there are fewer than 20.
    agreement : (n_experts, n_experts) float64
        Mean product of their votes.
    alignments : (n_experts,) float64
        a_i = 1 - 2·(error rate of i), in [-1, 1], fitted to all pairs.
    z : (n_experts, n_experts) float64
        (agreement - a_i·a_j) in standard deviations; 0 on the diagonal and for pairs with fewer than 20 common
        questions. Large: they know of each other.
    mean_square : float or None
        Mean of z² over pairs. Below 1 if experts are independent, since the fit takes its share; above 1.3 they are
        not. None with no more such pairs than experts.
    """

    common: FloatArray
    agreement: FloatArray
    alignments: FloatArray
    z: FloatArray
    mean_square: float | None


@checked(votes=VOTE_ROWS)
def pair_residuals(votes: SmallIntArray) -> PairResiduals:
    """Agreement of each two experts beyond what their skills explain. O(n²) memory and O(questions·n²) time.

    With G_ij the mean of v_i·v_j over the n_ij questions both voted on, a_i·a_j is fitted to all G_ij, i ≠ j, by least
    squares with weights n_ij, and ``z_ij = (G_ij - a_i·a_j)/√((1 - a_i²·a_j²)/n_ij)``.

    Parameters
    ----------
    votes : (n_questions, n_experts) int8
        +1, -1, or 0 for no vote.

    Returns
    -------
    PairResiduals

    Raises
    ------
    FormulaInputError
        If votes have no two axes.

    Notes
    -----
    Not in the paper. Sees clusters and copies; herding, difficulty and shocks look like skill here.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> votes = np.where(rng.random((2000, 8)) < 0.3, -1, 1).astype(np.int8)
    >>> votes[:, 7] = votes[:, 6]
    >>> found = pair_residuals(votes)
    >>> bool(found.z[6, 7] > 10.0), (found.mean_square or 0.0) > 1.3
    (True, True)
    """
    numbers, present = votes.astype(np.float64), (votes != 0).astype(np.float64)
    common = np.einsum("ti,tj->ij", present, present, optimize=True)
    np.fill_diagonal(common, 0.0)
    common[common < FEWEST_COMMON] = 0.0
    agreement = np.einsum("ti,tj->ij", numbers, numbers, optimize=True) / np.maximum(common, 1.0) * (common > 0.0)
    alignments = _rank_one(agreement, common)
    expected = np.outer(alignments, alignments)
    certain = np.maximum(common, 1.0)
    z = (agreement - expected) * np.sqrt(common / np.maximum(1.0 - expected * expected, 1.0 / certain))
    pairs = float(np.count_nonzero(common)) / 2.0
    mean_square = float(np.add.reduce(z * z, axis=None)) / (2.0 * pairs) if pairs > votes.shape[1] else None
    return PairResiduals(common, agreement, alignments, z, mean_square)


def _rank_one(agreement: FloatArray, common: FloatArray) -> FloatArray:
    """The a with a_i·a_j nearest to the agreement off the diagonal; by half steps, since full ones swing."""
    alignments = np.full(len(agreement), 0.5)
    weighted = common * agreement
    for _ in range(_STEPS):
        scale = np.einsum("ij,j->i", common, alignments * alignments)
        target = np.einsum("ij,j->i", weighted, alignments) / np.maximum(scale, _SMALLEST_SCALE)
        alignments = np.clip(0.5 * (alignments + target), -1.0, 1.0)
    return alignments


@checked(similarity=Numbers("n n"))
def neighbourly_order(similarity: FloatArray) -> IntArray:
    """Places of things in an order in which similar ones are neighbours. O(n³): for a picture, not for thousands.

    Agglomerative clustering with average linkage: the two clusters with the largest mean similarity between them are
    joined, and joined ends to ends, so that the more similar ends meet, until one is left. Of equals the earlier.

    Parameters
    ----------
    similarity : (n, n) float64
        Symmetric; larger is more alike. The diagonal is not read.

    Returns
    -------
    (n,) int64
        Each place once.

    Raises
    ------
    FormulaInputError
        If it is not square, or holds a NaN.

    Notes
    -----
    Not in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> alike = np.zeros((4, 4))
    >>> alike[0, 3] = alike[3, 0] = 5.0
    >>> neighbourly_order(alike)
    array([0, 3, 1, 2])
    """
    clusters = [[place] for place in range(len(similarity))]
    between = similarity.astype(np.float64)
    np.fill_diagonal(between, -np.inf)
    while len(clusters) > 1:
        one, other = divmod(int(np.argmax(between)), len(clusters))
        if one > other:
            one, other = other, one
        sizes = len(clusters[one]), len(clusters[other])
        joined = (sizes[0] * between[one] + sizes[1] * between[other]) / (sizes[0] + sizes[1])
        between[one], between[:, one], between[one, one] = joined, joined, -np.inf
        between = np.delete(np.delete(between, other, axis=0), other, axis=1)
        clusters[one] = _end_to_end(clusters[one], clusters.pop(other), similarity)
    return np.array(clusters[0] if clusters else [], dtype=np.int64)


def _end_to_end(one: list[int], other: list[int], similarity: FloatArray) -> list[int]:
    """The two in a row, either of them turned round so that their more similar ends meet."""
    ways = [(left, right) for left in (one, one[::-1]) for right in (other, other[::-1])]
    left, right = max(ways, key=lambda way: float(similarity[way[0][-1], way[1][0]]))
    return left + right


MOST_EXPERTS = 40


_CLIP = 8.0


class Pair(NamedTuple):
    """Two experts: on how many questions both voted, on which share they agreed and would by skill, and z."""

    one: str
    other: str
    common: int
    agreed: float
    expected: float
    z: float


class PairMap(NamedTuple):
    """Experts in an order in which groups stand together, with z and common questions of each two.

    ``pairs`` are those with enough common questions, the most alike first; ``mean_square`` is that of z, about 1 or
    less for independent experts.
    """

    experts: list[str]
    z: FloatArray
    common: FloatArray
    pairs: list[Pair]
    mean_square: float | None


def pair_map(feed: FeedHistory) -> PairMap | None:
    """The map of a feed, from the forecasts in its ``peer-losses``; None if no two experts have enough in common.

    An expert's vote is its forecast above or below 1/2; where the feed votes by own medians, above or below the median
    of all of the expert's forecasts (the service uses the median of those so far).
    """
    names, votes = _together(*_votes(feed))
    if not names:
        return None
    found = pair_residuals(votes)
    order = neighbourly_order(np.clip(found.z, -_CLIP, _CLIP))
    return PairMap(
        [names[place] for place in order.tolist()],
        found.z[np.ix_(order, order)],
        found.common[np.ix_(order, order)],
        sorted(_pairs(names, found), key=lambda pair: (-pair.z, pair.one, pair.other)),
        found.mean_square,
    )


def _together(names: list[str], votes: SmallIntArray) -> tuple[list[str], SmallIntArray]:
    """Those who have enough questions in common with somebody."""
    present = (votes != 0).astype(np.float64)
    common = np.einsum("ti,tj->ij", present, present, optimize=True)
    np.fill_diagonal(common, 0.0)
    known = [place for place, row in enumerate(common) if row.max() >= FEWEST_COMMON]
    return [names[place] for place in known], votes[:, known]


def _pairs(names: Sequence[str], found: PairResiduals) -> Iterator[Pair]:
    expected = np.outer(found.alignments, found.alignments)
    for i, j in combinations(range(len(names)), 2):
        if found.common[i, j]:
            agreed, by_skill = (float(1.0 + each[i, j]) / 2.0 for each in (found.agreement, expected))
            yield Pair(names[i], names[j], int(found.common[i, j]), agreed, by_skill, float(found.z[i, j]))


def _votes(feed: FeedHistory) -> tuple[list[str], SmallIntArray]:
    """Votes of the most active experts: +1, -1, or 0 for none, question by question."""
    said = [{expert.id: expert.probability for expert in record.experts} for record in feed.losses.values()]
    active = Counter(name for forecasts in said for name in forecasts)
    names = [name for name, _ in sorted(active.items(), key=lambda each: (-each[1], each[0]))[:MOST_EXPERTS]]
    forecasts = np.array([[question.get(name, np.nan) for name in names] for question in said])
    forecasts = forecasts.reshape(len(said), len(names))
    lines = _lines(forecasts, own=feed.error_rates is not None and feed.error_rates.vote_rule == "own-median")
    return names, np.nan_to_num(np.sign(forecasts - lines)).astype(np.int8)


def _lines(forecasts: FloatArray, *, own: bool) -> float | Sequence[float]:
    """Above what a forecast is a vote for yes."""
    return [float(np.nanmedian(column)) for column in forecasts.T] if own else 0.5

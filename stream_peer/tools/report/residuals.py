"""Pairs of experts who agree more with each other than their skills explain, and an order to draw them in.

In `neighbourly_order` those who agree stand together, so that groups show in a picture of all pairs.
"""

from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import VOTE_ROWS, FloatArray, IntArray, Numbers, SmallIntArray, checked

__all__ = ["PairResiduals", "neighbourly_order", "pair_residuals"]

_FEWEST_COMMON = 20
_STEPS = 60
_SMALLEST_SCALE = 1e-9


class PairResiduals(NamedTuple):
    """How far each two experts' agreement is from what their skills explain.

    Attributes
    ----------
    alignments : (n_experts,) float64
        a_i = 1 - 2·(error rate of i), in [-1, 1], fitted to all pairs.
    z : (n_experts, n_experts) float64
        (agreement - a_i·a_j) in standard deviations; 0 on the diagonal and for pairs with fewer than 20 common
        questions. Large: they know of each other.
    mean_square : float or None
        Mean of z² over pairs. Below 1 if experts are independent, since the fit takes its share; above 1.3 they are
        not. None with no more such pairs than experts.
    """

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
    common[common < _FEWEST_COMMON] = 0.0
    agreement = np.einsum("ti,tj->ij", numbers, numbers, optimize=True) / np.maximum(common, 1.0) * (common > 0.0)
    alignments = _rank_one(agreement, common)
    expected = np.outer(alignments, alignments)
    certain = np.maximum(common, 1.0)
    z = (agreement - expected) * np.sqrt(common / np.maximum(1.0 - expected * expected, 1.0 / certain))
    pairs = float(np.count_nonzero(common)) / 2.0
    mean_square = float(np.add.reduce(z * z, axis=None)) / (2.0 * pairs) if pairs > votes.shape[1] else None
    return PairResiduals(alignments, z, mean_square)


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

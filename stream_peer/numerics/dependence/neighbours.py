"""An order in which those who agree stand together, so that groups show in a picture of all pairs."""

import numpy as np

from stream_peer.numerics.losses import FloatArray, IntArray
from stream_peer.numerics.losses.arguments import Numbers, checked


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

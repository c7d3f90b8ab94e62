"""What pairs of experts said of the questions that both voted on."""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from stream_peer.numerics.losses import FloatArray

Float32Array: TypeAlias = npt.NDArray[np.float32]

FEWEST_COMMON = 40
"""Questions that two experts must have in common to be judged."""

FEWEST_WITNESSED = 20
"""And that one of them must have in common with a witness."""

_PIECE = 64
"""Rows, columns and questions of a piece."""


class Tallies(NamedTuple):
    """Whole numbers over common questions, of each expert of one set with each of another: (m, n) float64.

    Attributes
    ----------
    product : Σ v_i·v_j
    common : how many questions both voted on
    left, right : Σ v_i and Σ v_j over these
    """

    product: FloatArray
    common: FloatArray
    left: FloatArray
    right: FloatArray


def tallies(one: Float32Array, two: Float32Array) -> Tallies:
    """Tallies of experts by columns; exact in any order, since all sums are whole numbers far below 2^24.

    Examples
    --------
    >>> votes = np.array([[1, 1], [-1, 1], [1, 0]], np.float32)
    >>> [int(table[0, 1]) for table in tallies(votes, votes)]
    [0, 2, 0, 2]
    """
    there, others = np.abs(one), np.abs(two)
    factors = (one, two), (there, others), (one, others), (there, two)
    return Tallies(*(_product(left, right).astype(np.float64) for left, right in factors))


def _product(one: Float32Array, two: Float32Array) -> Float32Array:
    """``one.T @ two`` in pieces too small for BLAS to share among threads, which is a hundred times slower if busy.

    Questions that are wanting to the last piece are filled up with votes of nobody.
    """
    padded = -(-len(one) // _PIECE) * _PIECE
    left, right = np.zeros((padded, one.shape[1]), np.float32), np.zeros((padded, two.shape[1]), np.float32)
    left[: len(one)], right[: len(two)] = one, two
    rows, columns = (a.reshape(padded // _PIECE, _PIECE, a.shape[1]) for a in (left, right))
    table = np.empty((one.shape[1], two.shape[1]), np.float32)
    for i in range(0, table.shape[0], _PIECE):
        some = rows[:, :, i : i + _PIECE].transpose(0, 2, 1)
        for j in range(0, table.shape[1], _PIECE):
            found = np.matmul(some, columns[:, :, j : j + _PIECE])
            np.add.reduce(found, axis=0, out=table[i : i + _PIECE, j : j + _PIECE])
    return table


def means(counted: Tallies) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means of v_i·v_j, v_i and v_j over common questions; 0 without any."""
    common = np.maximum(counted.common, 1.0)
    return counted.product / common, counted.left / common, counted.right / common


def covariances(counted: Tallies) -> FloatArray:
    """Covariances of v_i and v_j over common questions.

    Given one of two outcomes independent votes have ``cov(v_i, v_j) = d_i·d_j``, whatever the error rates of each class
    and however frequent the outcomes: d_i grows with how much expert i knows, and is negative if it knows the opposite.
    """
    product, left, right = means(counted)
    return product - left * right


def disagreement(counted: Tallies) -> FloatArray:
    """Share of common questions on which two do not agree, in [0, 1]."""
    return 0.5 * (1.0 - means(counted)[0])


def independent(counted: Tallies) -> FloatArray:
    """What it would be by chance, if they knew nothing but said yes as often as they do."""
    _, left, right = means(counted)
    return 0.5 * (1.0 - left * right)

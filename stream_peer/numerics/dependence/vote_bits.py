"""Votes as bits, 64 questions a word: what two of very many experts said is counted some words at a time."""

import numpy as np
import numpy.typing as npt

from stream_peer.numerics.arguments import FloatArray, IntArray
from stream_peer.numerics.dependence.in_pieces import Pieces

_WORD = 64
_ROWS_AT_ONCE, _PAIRS_AT_ONCE = 64, 32_768
"""What is computed of so many stays in the processor's cache."""


class VoteBits:
    """Who said yes and who no.

    Parameters
    ----------
    votes : (n_questions, n_experts)
        +1, -1, or 0 for no vote.

    Attributes
    ----------
    said : (n_experts,) int64
        How often each voted.

    Examples
    --------
    >>> bits = VoteBits(np.array([[1, 1], [-1, 1], [1, 0]], np.int8))
    >>> bits.disagreements(np.array([0]), np.array([0, 1])).tolist()
    [[0, 1]]
    >>> bits.of_pairs(np.array([[0, 1]])).ravel().tolist()
    [1.0, 0.0, 0.0, 1.0]
    """

    def __init__(self, votes: npt.NDArray[np.number]) -> None:
        self._yes, self._no = _words(votes > 0), _words(votes < 0)
        self._count = np.min_scalar_type(len(votes))
        self.said = np.add.reduce(np.bitwise_count(self._yes | self._no), axis=0, dtype=np.int64)

    def disagreements(self, some: IntArray, others: IntArray) -> npt.NDArray[np.unsignedinteger]:
        """On how many questions each of some experts and each of others do not agree, (m, n)."""
        found = np.zeros((len(some), len(others)), self._count)
        apart, other = np.empty((2, *found.shape), np.uint64)
        count = np.empty(found.shape, np.uint8)
        for yes, no in zip(self._yes, self._no, strict=True):
            apart[...], other[...] = yes[some, None], no[some, None]  # one number with a row takes numpy twice as long
            np.bitwise_and(apart, no[others], out=apart)
            np.bitwise_and(other, yes[others], out=other)
            np.bitwise_or(apart, other, out=apart)
            found += np.bitwise_count(apart, out=count)
        return found

    def least_shares(self, rows: IntArray, columns: IntArray) -> Pieces[npt.NDArray[np.float32]]:
        """On which share of common questions two disagree at least: as if these were all of the one with fewer.

        Each pair once: if rows and columns are the same, of some at a time whatever stands before the first of them is
        infinite.
        """
        said, is_same = np.maximum(self.said, 1).astype(np.float32), np.array_equal(rows, columns)
        found = np.full((len(rows), len(columns)), np.inf, np.float32)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some, others = rows[start : start + _ROWS_AT_ONCE], columns[start if is_same else 0 :]
            fewer = np.minimum(said[some, None], said[others])
            of_some = found[start : start + len(some), len(columns) - len(others) :]
            np.divide(self.disagreements(some, others), fewer, out=of_some)
            yield
        return found

    def of_pairs(self, pairs: IntArray) -> FloatArray:
        """On how many questions two say yes; no; yes and no; no and yes: (4, n_pairs)."""
        counts = np.zeros((4, len(pairs)))
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            one, two = pairs[start : start + _PAIRS_AT_ONCE].T
            for yes, no in zip(self._yes, self._no, strict=True):
                firsts, seconds = (yes[one], no[one]), (yes[two], no[two])
                for count, (i, j) in zip(counts, ((0, 0), (1, 1), (0, 1), (1, 0)), strict=True):
                    count[start : start + len(one)] += np.bitwise_count(firsts[i] & seconds[j])
        return counts


def _words(said: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Of each expert its bits, (n_words, n_experts)."""
    n_words = -(-len(said) // _WORD)
    octets: npt.NDArray[np.uint8] = np.zeros((n_words * _WORD, said.shape[1]), np.uint8)
    octets[: len(said)] = said
    for width in (1, 2, 4):  # np.packbits takes fifty times as long along the first axis
        octets = octets[0::2] << np.uint8(width) | octets[1::2]
    return np.ascontiguousarray(np.ascontiguousarray(octets.T).view(np.uint64).T)

"""Votes as bits, 64 questions a word: what two of very many experts said is counted some words at a time."""

import numpy as np
import numpy.typing as npt

from stream_peer.numerics.arguments import FloatArray, IntArray

_WORD = 64
_PAIRS_AT_ONCE = 32_768
"""What is computed of so many pairs stays in the processor's cache."""


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
    >>> bits.disagreements(slice(0, 1), slice(0, 2)).tolist()
    [[0, 1]]
    >>> bits.of_pairs(np.array([[0, 1]])).ravel().tolist()
    [1.0, 0.0, 0.0, 1.0]
    """

    def __init__(self, votes: npt.NDArray[np.number]) -> None:
        self._yes, self._no = _words(votes > 0), _words(votes < 0)
        self._count = np.min_scalar_type(len(votes))
        self.said = np.add.reduce(np.bitwise_count(self._yes | self._no), axis=0, dtype=np.int64)

    def disagreements(self, rows: slice, columns: slice) -> npt.NDArray[np.unsignedinteger]:
        """On how many questions each of some experts and each of others do not agree, (m, n)."""
        found = np.zeros((len(self._yes[0, rows]), len(self._yes[0, columns])), self._count)
        for yes, no in zip(self._yes, self._no, strict=True):
            apart = yes[rows, None] & no[columns]
            apart |= no[rows, None] & yes[columns]
            found += np.bitwise_count(apart)
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
    octets = np.zeros((n_words * 8, said.shape[1]), np.uint8)
    packed = np.packbits(said, axis=0)
    octets[: len(packed)] = packed
    return np.ascontiguousarray(np.ascontiguousarray(octets.T).view(np.uint64).T)

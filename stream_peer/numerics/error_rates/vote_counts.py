"""The four numbers of a round from which all moments of its votes follow."""

from typing import NamedTuple

import numpy as np

from stream_peer.numerics.losses import SmallIntArray


class VoteCounts(NamedTuple):
    """How the voters of a round and their own reference answers stand.

    Attributes
    ----------
    voters : int
        Experts with a vote; only they count below.
    yes : int
        Whose vote is yes.
    answers : int
        Whose own reference answer is 1.
    both : int
        Of whom both is true.
    """

    voters: int
    yes: int
    answers: int
    both: int


def vote_counts(votes: SmallIntArray, reference_answers: SmallIntArray) -> VoteCounts:
    """Count votes and reference answers.

    Parameters
    ----------
    votes : (n_experts,) int8
        +1, -1, or 0 for no vote.
    reference_answers : (n_experts,) int8
        Each expert's own ŷ_i, 0 or 1.

    Returns
    -------
    VoteCounts

    Examples
    --------
    >>> vote_counts(np.array([1, 1, -1, 0], np.int8), np.array([0, 1, 1, 1], np.int8))
    VoteCounts(voters=3, yes=2, answers=2, both=1)
    """
    answered = votes * reference_answers
    return VoteCounts(
        int(np.count_nonzero(votes)),
        int(np.count_nonzero(votes > 0)),
        int(np.count_nonzero(answered)),
        int(np.count_nonzero(answered > 0)),
    )

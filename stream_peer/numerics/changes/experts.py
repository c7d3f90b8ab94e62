"""Which experts got better or worse, beside all others: from agreement with their own reference answers alone."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.changes.scan import FEWEST_IN_PART, scan_of_sums
from stream_peer.numerics.losses import BoolArray, FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.losses.arguments import SIZE, VOTE_ROWS, Numbers, Optional, checked, unchecked

AT_ONCE = 128
"""Experts that are looked at together: what is needed in between is bounded."""

FEWEST_VOTERS = 3
"""Who agrees with the only other one says as much of that one as of itself: such questions are left out."""

QUESTIONS_A_STEP = 8
"""A change is dated to so many questions: with a cut at each of them a look would cost four times as much."""

_LIMIT_OF_NONE = 15.6
_A_DOUBLING = 1.3863
_SPAN = 2.0
_PSEUDO_AGREED = 10.0
_LARGEST_RATIO = 4.0
_GRID = 2.0**20


class ExpertChanges(NamedTuple):
    """How the agreement of each expert with its own reference answers changed, beside that of the others.

    Attributes
    ----------
    z : (n_experts,) float64
        Standard deviations of the likeliest change, negative if it agrees less from then on; 0 if nothing can be said.
    before, now : (n_experts,) float64
        Share of its answered questions in which it agreed, before that change and from then on; NaN without.
    since : (n_experts,) int64
        Questions that it has answered from then on.
    """

    z: FloatArray
    before: FloatArray
    now: FloatArray
    since: IntArray


@checked(n_experts=SIZE)
def expert_limit(n_experts: int) -> float:
    """How many standard deviations are no chance if so many experts are looked at, however often.

    ``√(15.6 + 2·ln 2·b)``, b the binary digits of N: with twice as many experts there are twice as many chances, and
    tails ``exp(-z²/2)`` half as heavy make up for it, as Bonferroni asks.

    Parameters
    ----------
    n_experts : int
        N ≥ 0.

    Returns
    -------
    float
        At least 3.9.

    Raises
    ------
    FormulaInputError
        If N < 0.

    Examples
    --------
    >>> [round(expert_limit(n), 2) for n in (6, 12, 60, 10_000)]
    [4.45, 4.6, 4.89, 5.92]
    """
    return math.sqrt(_LIMIT_OF_NONE + _A_DOUBLING * n_experts.bit_length())


def _check_places(votes: SmallIntArray, places: IntArray | None = None, **_: object) -> None:
    """Refuse places of nobody."""
    if places is not None and np.maximum.reduce(places, initial=-1) >= votes.shape[1]:
        msg = f"places has {int(places.max())}, there are {votes.shape[1]} experts"
        raise FormulaInputError(msg)


@checked(
    _check_places, votes=VOTE_ROWS, answers=VOTE_ROWS, places=Optional(Numbers("k", low=0, high=2**53, kind=np.int64))
)
def expert_changes(votes: SmallIntArray, answers: SmallIntArray, places: IntArray | None = None) -> ExpertChanges:
    """Scan each expert's agreement for a change, over the questions of a window that it answered.

    With x = v·R = ±1 of an expert in a question, m the mean of x over the others who voted, and sums over its
    questions, ``ratio = (Σx + 10)/(Σm + 10)`` within [0, 4] (20 pseudo-questions of agreement ½) and
    ``r = x - ratio·m``; then `scan_for_changes` of r with a span of 2, cuts being at every eighth question, counted
    from the newest.

    If questions get harder for all, x and m shrink alike and r stays what it was: a hard batch accuses nobody, where
    x alone would accuse all the good ones. If one expert changes, its r does; those of N others move by 1/N of that.

    Notes
    -----
    Not in the paper. Agreement with leave-one-out answers is ``(1 - 2·error of the expert)·(1 - 2η)`` in expectation
    if experts err independently; its ratio to the others' does not depend on η. An expert who agrees more often than
    the others has a ratio above 1, and r may then be further than 2 from its mean: Bernstein's term is too small for
    it. No false alarm came of that in simulation (one who errs .02 to .05 of the time among others who err .4 to .45).

    Parameters
    ----------
    votes : (n_questions, n_experts) int8
        +1, -1, or 0 for none; the oldest question first.
    answers : (n_questions, n_experts) int8
        Each expert's own reference answer as +1 or -1; 0: absent.
    places : (n_places,) int64, optional
        Experts to be looked at; nothing is said of the others.

    Returns
    -------
    ExpertChanges

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.ones((200, 5), np.int8)
    >>> votes = np.where(np.arange(200)[:, None] % np.array([3, 4, 5, 6, 7]) == 0, -1, 1).astype(np.int8)
    >>> votes[120:, 0] = -votes[120:, 0]
    >>> found = expert_changes(votes, answers)
    >>> found.z.round(1).tolist()
    [-4.1, 1.2, 1.4, 1.6, 1.9]
    >>> float(found.before[0].round(2)), float(found.now[0].round(2)), int(found.since[0])
    (0.67, 0.34, 80)
    """
    agreement = votes * answers
    voters = np.count_nonzero(agreement, axis=1)
    total = np.add.reduce(agreement, axis=1, dtype=np.int64)
    n_experts = agreement.shape[1]
    found = ExpertChanges(
        np.zeros(n_experts), np.full(n_experts, np.nan), np.full(n_experts, np.nan), np.zeros(n_experts, np.int64)
    )
    asked = np.arange(n_experts) if places is None else places
    judged = asked[np.count_nonzero(agreement[:, asked], axis=0) >= 2 * FEWEST_IN_PART]
    for start in range(0, len(judged), AT_ONCE):
        some = judged[start : start + AT_ONCE]
        for of_all, of_some in zip(found, _changes(agreement[:, some], total, voters), strict=True):
            of_all[some] = of_some
    return found


def _changes(agreement: SmallIntArray, total: IntArray, voters: IntArray) -> ExpertChanges:
    """Those of some experts, given sum and number of agreements of everybody in each question.

    All sums are exact: their order, hence that of the experts, makes no difference.
    """
    voted = (agreement != 0) & (voters >= FEWEST_VOTERS)[:, None]
    own = np.where(voted, agreement, 0.0)
    others = (total[:, None] - own) / np.maximum(voters - 1, 1)[:, None]
    others = np.where(voted, np.rint(others * _GRID) / _GRID, 0.0)
    counts, agreed, around, both, square = (
        _blocks(values) for values in (voted.astype(np.float64), own, others, own * others, others * others)
    )
    ratios = np.add.reduce(agreed, axis=0) + _PSEUDO_AGREED
    ratios /= np.maximum(np.add.reduce(around, axis=0) + _PSEUDO_AGREED, 1.0)
    ratios = np.minimum(np.maximum(ratios, 0.0), _LARGEST_RATIO)
    squares = counts - 2.0 * ratios * both + ratios * ratios * square
    sums = np.stack((counts, counts, agreed - ratios * around, squares))
    z, cuts = unchecked(scan_of_sums)(sums, np.full(len(ratios), _SPAN))
    later = np.arange(len(counts))[:, None] >= cuts
    since = np.add.reduce(np.where(later, counts, 0.0), axis=0)
    return ExpertChanges(z, _share(agreed, counts, ~later), _share(agreed, counts, later), since.astype(np.int64))


def _blocks(values: FloatArray) -> FloatArray:
    """Sums over eight questions each, the oldest ones over what is left."""
    missing = -len(values) % QUESTIONS_A_STEP
    whole = np.concatenate((np.zeros((missing, values.shape[1])), values)) if missing else values
    blocks: FloatArray = np.add.reduce(whole.reshape(-1, QUESTIONS_A_STEP, values.shape[1]), axis=1)
    return blocks


def _share(agreed: FloatArray, counts: FloatArray, chosen: BoolArray) -> FloatArray:
    """Share of agreements in the chosen blocks, NaN where nothing was answered."""
    answered = np.add.reduce(np.where(chosen, counts, 0.0), axis=0)
    balance = np.add.reduce(np.where(chosen, agreed, 0.0), axis=0)
    shares = np.full(len(answered), np.nan)
    np.divide(0.5 * (answered + balance), answered, out=shares, where=answered > 0.0)
    return shares

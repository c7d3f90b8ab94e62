"""Experts who say the same, though nothing in their error rates would make them: copies of one mind.

Two experts who know of each other only through the outcome agree as far as the outcome goes. How far that is, is
learnt from what each of them has in common with others, the witnesses; see `suspicion`. What two experts disagree on
must be less than half of what it would be then, by five standard deviations, before they are called copies: experts of
real crowds share what makes questions difficult, and that is none.

Work is bounded: of more than 512 experts two chunks are looked through against each other at a time, in turn. Up to
10,240 experts there are 15 such turns at most.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import (
    SIZE,
    TEAMS,
    VOTE_ROWS,
    BoolArray,
    Each,
    FloatArray,
    IntArray,
    Numbers,
    SmallIntArray,
    checked,
)
from stream_peer.numerics.dependence.in_pieces import Pieces, done_at_once
from stream_peer.numerics.dependence.suspicion import (
    FARTHEST,
    FEWEST_COMMON,
    LEAST_EFFECT,
    TIMES_LESS,
    Float32Array,
    PairTallies,
    Suspicion,
    Tallies,
    may_be_copies,
    shares,
    suspicion,
    witnesses,
)

__all__ = ["Copies", "find_copies"]

JOINS = 5.0
"""Standard deviations by which two experts must be suspect to be called copies."""

STAYS = 2.0
"""And by which, to go on being called so."""

CHUNK = 512
"""Experts of a chunk; of more than 2,560 a fifth, and 2,048 at most."""

_CHUNKS = 5
_LARGEST_CHUNK = 2048
_EXACT_FIRST, _MORE = 65_536, 8
"""So many pairs that disagree on least are judged exactly, and so many times more if these do not settle it."""

_EVERY = 32
_SURELY = 0.999 / (2.0 * FARTHEST)
"""Chance allows likely pairs to disagree on 2·(2 - √3) at most; the rest is for rounding."""

_PARTNERS = 3
_PAIRS_AT_ONCE = 512
_PAIRS_A_PIECE = 65_536
_ALL_PAIRS_UP_TO = 6


class Copies(NamedTuple):
    """Experts of one mind.

    Attributes
    ----------
    experts : tuple of int
        Their columns, ascending; two at least.
    agreement : float
        Mean of v_i·v_j over the pairs that make them a group, in [-1, 1].
    expected : float
        What it would be if they knew of each other only through the outcome.
    questions : int
        That two of them have in common, in the mean over those pairs.
    """

    experts: tuple[int, ...]
    agreement: float
    expected: float
    questions: int


@checked(votes=VOTE_ROWS, known=Each(Numbers("k", low=0, high=2**53, kind=np.int64)), teams=TEAMS, turn=SIZE)
def find_copies(
    votes: SmallIntArray, known: Sequence[Sequence[int]] = (), teams: IntArray | None = None, turn: int = 0
) -> list[Copies]:
    """Groups of experts who agree far more than independent experts of their error rates would.

    Candidates are pairs of 40 common questions or more that disagree on less than half of what chance allows, given
    how often each says yes; of each expert the three likeliest, of all the 512 likeliest. They are judged by
    `suspicion`; those found are joined to groups. Members of groups that are known are judged again at every call.

    Parameters
    ----------
    votes : (n_questions, n_experts) int8
        +1, -1, or 0 for no vote.
    known : sequence of sequences of int
        Groups found before, by columns: they go on as long as two standard deviations are left of their suspicion, and
        half of the least effect.
    teams : (n_experts,) int64, optional
        Experts with equal numbers are a team and need not be found, negative: in no team.
    turn : int
        Which pair of chunks to look through, counted on from call to call.

    Returns
    -------
    list of Copies
        In the order of their first members.

    Raises
    ------
    FormulaInputError
        If votes have no two axes.

    Notes
    -----
    Not in the paper, which takes independence for granted. Misses copies of whom fewer than 40 common questions are at
    hand, copies of experts who are hardly ever wrong (there is nothing to tell), of whom there are no two usable
    witnesses left, and those who copy less than two thirds of the time or so; of a team of whom each takes a common
    view, independently, in a share s of its votes two have it in s² only: three are found from s = .8 to .9 on, and
    not at .5 or .7.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> votes = np.where(rng.random((200, 8)) < 0.3, -1, 1).astype(np.int8)
    >>> votes *= np.where(rng.random(200) < 0.5, -1, 1).astype(np.int8)[:, None]
    >>> votes[:, 7] = votes[:, 5]
    >>> [(group.experts, group.agreement) for group in find_copies(votes)]
    [((5, 7), 1.0)]
    """
    return done_at_once(copies_among(votes, known, teams, turn))


def copies_among(
    votes: SmallIntArray,
    known: Sequence[Sequence[int]],
    teams: IntArray | None,
    turn: int,
    counted: Tallies | None = None,
) -> Pieces[list[Copies]]:
    """`find_copies`; ``counted``: tallies of all pairs, if they are known."""
    counts = PairTallies(votes, known=counted)
    is_eligible = counts.said() >= FEWEST_COMMON
    former = [[expert for expert in group if is_eligible[expert]] for group in known]
    label = np.full(votes.shape[1], -1, np.int64)
    for number, group in enumerate(former):
        label[group] = number
    eligible, within = np.flatnonzero(is_eligible), np.array([*_pairs_within(former)], np.int64).reshape(-1, 2)
    pairs = np.concatenate(((yield from _candidates(counts, eligible, label, teams, turn)), within))
    if not len(pairs):
        return []
    together = (label[pairs[:, 0]] == label[pairs[:, 1]]) & (label[pairs[:, 0]] >= 0)
    least, effect = np.where(together, STAYS, JOINS), np.where(together, 0.5 * LEAST_EFFECT, LEAST_EFFECT)
    likely = np.flatnonzero(may_be_copies(counts.of_pairs(pairs), least, effect))
    if not len(likely):  # mostly: then no witness needs to be heard
        return []
    pairs, least, effect = pairs[likely], least[likely], effect[likely]
    heard = yield from witnesses(counts, eligible)
    found = yield from suspicion(counts, pairs, heard, least)
    copies = (found.z >= least) & (found.expected - found.disagreement >= effect)
    groups = _groups(pairs, found, copies) if copies.any() else []
    yield
    return groups


def _candidates(
    counted: PairTallies, eligible: IntArray, label: IntArray, teams: IntArray | None, turn: int
) -> Pieces[IntArray]:
    """Pairs that could be copies, of the chunks whose turn it is."""
    size = min(max(CHUNK, -(-len(eligible) // _CHUNKS)), _LARGEST_CHUNK)
    both = list(combinations_with_replacement(range(0, len(eligible), size), 2))
    if not both:
        return np.zeros((0, 2), np.int64)
    rows, columns = (eligible[first : first + size] for first in both[turn % len(both)])
    least = yield from counted.least_shares(rows, columns)
    n_pairs, n_rows = _EXACT_FIRST, max(_PAIRS_A_PIECE // len(columns), 1)
    while True:  # of pairs further apart than the limit none is likelier than those that are surely the likeliest
        limit = _limit(least, n_pairs)
        surely, found = np.inf if limit == FARTHEST else _SURELY * limit, list[_Likely]()
        for start in range(0, len(rows), n_rows):
            one, two = np.divmod(np.flatnonzero(least[start : start + n_rows] <= limit), len(columns))
            pairs = np.stack((rows[start + one], columns[two]), axis=1)
            pairs = pairs[_apart(pairs, label, teams)]
            found.append(_likeliest(pairs, counted.of_pairs(pairs), surely))
            yield
        pairs, relative = map(np.concatenate, zip(*found, strict=True))
        if limit == FARTHEST or len(pairs) >= _PAIRS_AT_ONCE:
            return pairs[np.argsort(relative, kind="stable")[:_PAIRS_AT_ONCE]]
        n_pairs *= _MORE


def _limit(least: Float32Array, n_pairs: int) -> float:
    """A share that about so many pairs may be below, by some of them; at most what can be likely at all."""
    some = least[:: _EVERY if len(least) > _EVERY else 1].ravel()
    place = n_pairs * len(some) // least.size
    return FARTHEST if place >= len(some) else min(float(np.partition(some, place)[place]), FARTHEST)


def _apart(pairs: IntArray, label: IntArray, teams: IntArray | None) -> BoolArray:
    """Which are pairs to be looked at: each pair once, and not those in a group or team already."""
    one, two = pairs.T
    apart: BoolArray = one < two
    for number in (label, teams):
        if number is not None:
            apart &= (number[one] != number[two]) | (number[two] < 0)
    return apart


class _Likely(NamedTuple):
    """Pairs that could be copies, and on how much they disagree, in units of chance."""

    pairs: IntArray
    relative: FloatArray


def _likeliest(pairs: IntArray, counted: Tallies, most: float) -> _Likely:
    """Of each first expert the three pairs at most that disagree on least, and on so much at most.

    ``pairs`` are in their order, in which it takes those that are equally likely.
    """
    share, by_chance = shares(counted)
    is_likely = (counted.common >= FEWEST_COMMON) & (by_chance - share >= LEAST_EFFECT)
    likely = np.flatnonzero(is_likely & (share < TIMES_LESS * by_chance))
    relative = share[likely] / by_chance[likely]
    likely, relative = likely[relative <= most], relative[relative <= most]
    nearest = np.argsort(relative, kind="stable")
    by_first = nearest[np.argsort(pairs[likely[nearest], 0], kind="stable")]
    first = pairs[likely[by_first], 0]
    kept = by_first[np.arange(len(first)) - np.searchsorted(first, first) < _PARTNERS]
    return _Likely(pairs[likely[kept]], relative[kept])


def _pairs_within(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Pairs by which groups are judged again: all of a small one, of a large one each member with the three next."""
    for group in groups:
        if len(group) <= _ALL_PAIRS_UP_TO:
            yield from combinations(sorted(group), 2)
        else:
            around = [*sorted(group), *sorted(group)[:_PARTNERS]]
            for start in range(len(group)):
                for step in range(1, _PARTNERS + 1):
                    one, two = around[start], around[start + step]
                    yield min(one, two), max(one, two)


def _groups(pairs: IntArray, found: Suspicion, copies: BoolArray) -> list[Copies]:
    """Experts joined by pairs of copies."""
    leader = {expert: expert for expert in pairs.ravel().tolist()}

    def lead(expert: int) -> int:
        while leader[expert] != expert:
            leader[expert] = leader[leader[expert]]
            expert = leader[expert]
        return expert

    for one, two in pairs[copies].tolist():
        first, second = sorted((lead(one), lead(two)))
        leader[second] = first
    joined: dict[int, list[int]] = {}
    for expert in sorted(set(pairs[copies].reshape(-1).tolist())):
        joined.setdefault(lead(expert), []).append(expert)
    of_pair = np.array([lead(one) for one in pairs[:, 0].tolist()])
    groups = []
    for first, members in joined.items():
        own = copies & (of_pair == first)
        shares = _mean(found.disagreement[own]), _mean(found.expected[own])
        agreement, expected = (1.0 - 2.0 * share for share in shares)
        groups.append(Copies(tuple(members), agreement, expected, round(_mean(found.common[own]))))
    return groups


def _mean(values: FloatArray) -> float:
    return float(np.add.reduce(values)) / len(values)

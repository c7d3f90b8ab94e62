"""Blocks of experts who agree more than those outside allow, though no two of them need to be copies.

Clones that each go their own way now and then escape a test of pairs: what two of them share is little beside chance.
Averaged over all pairs of a block it is not. Candidates are branches of a tree: experts joined in the order of their
agreement. A block stands apart from what the tree joins to it next, and those outside, who vote on the same outcomes,
do not explain what its members have in common.
"""

import math
from collections.abc import Iterator, Sequence
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
from stream_peer.numerics.dependence.copies import Copies
from stream_peer.numerics.dependence.in_pieces import Pieces, done_at_once
from stream_peer.numerics.dependence.suspicion import (
    LEAST_EFFECT,
    MOST,
    Float32Array,
    Tallies,
    among,
    bounds_of_parts,
    covariances,
    disagreement,
    independent,
    means,
    shares,
    tallies,
    votes_of_each,
)

__all__ = ["find_blocks"]

SMALLEST = 3
"""Members of a block; two are left to the test of pairs."""

FEWEST_COMMON = 25
"""Questions that an expert must have, and that members of a block must have in common, in the mean over pairs."""

TIMES_LESS = 0.75
"""Members disagree on less than this share of what they should, by so many standard deviations."""

AT_MOST = 0.5
"""Of that on at most ½ - 1/(2|B|) to be named: among forty experts three who learnt alike have .42 to .49, six .53."""

JOINS, OF_SMALL = 3.0, 4.0
"""To be named, 3 + 4/|B| standard deviations: there are many more small blocks, of which one may seem so by chance."""

STAYS = 1.0
"""And to go on being named."""

APART = 0.8
"""What the tree joins to a block next agrees with it at most this times as much as its last two branches do."""

FEWEST_WITNESSES = 3
"""Outside of a block."""

LEAST_OF_WITNESSES = 0.09
"""Their mean covariance: those who hardly agree with each other do not say what others should have in common."""

_SAME_WITNESS = 0.75
_LEAST_AGREEMENT = 0.3
_WITNESSED = 20
_N_PARTS = 10
_AT_A_LOOK = 256
_OF_KNOWN = 256
"""Members of known groups that are looked at besides: the tree costs the third power of those looked at."""
_CANDIDATES = 16
_SMALLEST = 1e-9
_CELLS_A_PIECE, _JOINED, _MEMBERS_A_PIECE = 131_072, 16, 8
"""Of tables for which all is computed; so many times more are looked through to join two experts."""


class _Branch(NamedTuple):
    """Experts that the tree has joined, of which two parts, and at which agreement.

    ``next``: the agreement at which others are joined to them.
    """

    members: list[int]
    parts: tuple[list[int], list[int]]
    level: float
    next: float


class _Finding(NamedTuple):
    """On which share of common questions pairs should disagree, and do; in the mean over pairs."""

    expected: float
    found: float

    @property
    def excess(self) -> float:
        """How much less they disagree than three quarters of what they should."""
        return TIMES_LESS * self.expected - self.found

    def is_enough(self, least: float) -> bool:
        """Whether they disagree so much less than they should."""
        return self.excess > 0.0 and self.expected - self.found >= least


@checked(votes=VOTE_ROWS, known=Each(Numbers("k", low=0, high=2**53, kind=np.int64)), teams=TEAMS, turn=SIZE)
def find_blocks(
    votes: SmallIntArray, known: Sequence[Sequence[int]] = (), teams: IntArray | None = None, turn: int = 0
) -> list[Copies]:
    """Blocks of three experts or more who agree more than those outside allow.

    For a block B and witnesses k ≠ l outside, ``cov_ij = Σ cov_ik·cov_jl / Σ cov_kl`` is what independent votes of i
    and j would have in common, see `suspicion`; from it follows on which share e_ij of their common questions they
    should disagree. On d_ij they do. With means over all pairs of B: ``z = (¾e - d)/√(s² + d(1-d)/(n·(|B|-1)))``, s the
    jackknife's deviation of ¾e - d over 10 parts of the questions, n their common questions, d(1-d) at least 1/n. A
    block has z ≥ 3 + 4/|B|, d ≤ e·(½ - 1/(2|B|)) and e - d ≥ .1. Between the two branches that the tree joined last,
    d ≤ ¾e and e - d ≥ .1.

    Agreement is 1 less the disagreement divided by what chance allows; branches are joined by its mean over pairs. At
    most three quarters of a block's own agreement those outside are joined to one witness: another block speaks once.
    A declared team is one voter, who votes as most of its members do: their own agreement counts nowhere.
    The 48 witnesses with the most votes are heard: of 120 or 240 experts they find as many blocks as all would.

    Parameters
    ----------
    votes : (n_questions, n_experts) int8
        +1, -1, or 0 for no vote.
    known : sequence of sequences of int
        Groups found before, by columns: they go on as long as a standard deviation and half of the effect are left.
        The smallest are judged, as many as have 256 members together; larger ones are left to `find_copies`.
    teams : (n_experts,) int64, optional
        Experts with equal numbers are a team; negative: in no team.
    turn : int
        Of more than 256 experts, which part to look through, counted on from call to call.

    Returns
    -------
    list of Copies
        In the order of their first members; no expert is in two.

    Raises
    ------
    FormulaInputError
        If votes have no two axes.

    Notes
    -----
    Not in the paper. If votes are independent, ¾e - d is -e/4 in expectation, and e - d is 0: both must be far beyond.
    A block without three witnesses outside that do not agree with each other as its members do is not judged: of two
    camps nobody can tell which one is the crowd. Nor is one whose witnesses hardly agree (a mean covariance below .09).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth, said = (np.where(rng.random(200) < 0.5, -1, 1) for _ in range(2))
    >>> experts = np.where(rng.random((200, 8)) < 0.2, -1, 1) * truth[:, None]
    >>> clones = np.where(rng.random((200, 4)) < 0.05, -1, 1) * said[:, None]
    >>> [found.experts for found in find_blocks(np.hstack([experts, clones]).astype(np.int8))]
    [(8, 9, 10, 11)]
    """
    return done_at_once(blocks_among(votes, known, teams, turn))


def blocks_among(
    votes: SmallIntArray,
    known: Sequence[Sequence[int]],
    teams: IntArray | None,
    turn: int,
    counted: Tallies | None = None,
) -> Pieces[list[Copies]]:
    """`find_blocks`; ``counted``: tallies of all pairs, if they are known."""
    voter, cast = _voters(votes, teams)
    is_usable = votes_of_each(cast) >= FEWEST_COMMON
    groups = [dict.fromkeys(voter[list(group)].tolist()) for group in known]
    known = _smallest([[one for one in group if is_usable[one]] for group in groups])
    looked_at = _looked_at(is_usable, known, turn)
    place = {expert: column for column, expert in enumerate(looked_at.tolist())}
    of_pairs = among(counted, looked_at) if counted is not None and cast is votes else None
    yield
    judge = _Judge(cast[:, looked_at].astype(np.float32), of_pairs)
    yield
    yield from judge.join()
    found = list[Copies | None]()
    for group in known:
        found.append((yield from judge.of_known([place[one] for one in group])))
    for branch in judge.candidates():
        found.append((yield from judge.of_branch(branch)))
    blocks = list[Copies]()
    for one in sorted(filter(None, found), key=lambda block: -len(block.experts)):
        experts = tuple(looked_at[list(one.experts)].tolist())
        taken = {expert for block in blocks for expert in block.experts}
        if taken.isdisjoint(experts):
            blocks.append(one._replace(experts=experts))
    return sorted(block._replace(experts=_members(block.experts, voter, votes)) for block in blocks)


def _voters(votes: SmallIntArray, teams: IntArray | None) -> tuple[IntArray, SmallIntArray]:
    """Of each expert the column that votes for it, and these votes: a team has them in its first member's column."""
    voter = np.arange(votes.shape[1])
    if teams is None:
        return voter, votes
    by_team = np.argsort(teams, kind="stable")
    by_team = by_team[teams[by_team] >= 0]
    starts = np.flatnonzero(np.diff(teams[by_team], prepend=-1))
    first = by_team[starts]
    voter[by_team] = np.repeat(first, np.diff(starts, append=len(by_team)))
    cast = votes.copy()
    cast[:, by_team] = 0
    cast[:, first] = np.sign(np.add.reduceat(votes[:, by_team], starts, axis=1, dtype=np.int64))
    return voter, cast


def _members(voters: Sequence[int], voter: IntArray, votes: SmallIntArray) -> tuple[int, ...]:
    """The experts of some voters: of a team those who have voted."""
    members = np.flatnonzero(np.isin(voter, voters))
    return tuple(members[votes[:, members].any(axis=0)].tolist())


def _smallest(known: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The smallest known groups, as many as fit, in their order."""
    sizes = np.array([len(group) for group in known], np.int64)
    by_size = np.argsort(sizes, kind="stable")
    return [known[number] for number in sorted(by_size[np.cumsum(sizes[by_size]) <= _OF_KNOWN].tolist())]


def _looked_at(is_usable: BoolArray, known: Sequence[Sequence[int]], turn: int) -> IntArray:
    """Columns with votes enough: all, or those whose turn it is, and members of known groups."""
    usable = np.flatnonzero(is_usable)
    n_parts = max(-(-len(usable) // _AT_A_LOOK), 1)
    chosen = np.zeros(len(is_usable), np.bool_)
    chosen[usable[turn % n_parts :: n_parts]] = True
    chosen[[expert for group in known for expert in group]] = True
    return np.flatnonzero(chosen)


class _Counted(NamedTuple):
    """Tallies of all with all, and their covariances times common questions; or many such tables, one behind the other.

    Whatever is asked of any block is looked up here.
    """

    tallies: Tallies
    products: FloatArray

    def parts(self, some: slice) -> "_Counted":
        """Some of many such tables."""
        return _Counted(Tallies(*(table[some] for table in self.tallies)), self.products[some])


def _some_parts(cells: int) -> Iterator[slice]:
    """The parts of the questions, so many at a time as are a piece if each has so many cells."""
    at_once = max(_CELLS_A_PIECE // cells, 1)
    return (slice(start, min(start + at_once, _N_PARTS)) for start in range(0, _N_PARTS, at_once))


def _counted(counted: Tallies) -> _Counted:
    return _Counted(counted, covariances(counted) * counted.common)


class _Judge:
    """Judges blocks of the columns of some votes, once it has joined these to a tree."""

    def __init__(self, cast: Float32Array, counted: Tallies | None = None) -> None:
        self._cast = cast
        self._all = _counted(tallies(cast, cast) if counted is None else counted)
        self._said = self._all.tallies.common.diagonal()
        share, by_chance = shares(self._all.tallies)
        self._agreement = 1.0 - share / np.maximum(by_chance, _SMALLEST)
        self._tree = list[_Branch]()
        self._parts: _Counted | None = None

    def join(self) -> Pieces[None]:
        """Join the tree: nothing may be asked before."""
        self._tree = yield from _tree(np.where(self._all.tallies.common >= _WITNESSED, self._agreement, 0.0))

    def _without(self) -> Pieces[_Counted]:
        """The same without each part of the questions, one behind the other: of all blocks, since it costs most."""
        if self._parts is None:
            n, bounds = len(self._said), bounds_of_parts(len(self._cast), _N_PARTS)
            tables = np.empty((len(Tallies._fields) + 1, _N_PARTS, n, n))
            for some in _some_parts(n * n):
                cast = self._cast[bounds[some.start] : bounds[some.stop]]
                parts = tallies(cast, cast, some.stop - some.start)
                without, products = _counted(Tallies(*map(np.subtract, self._all.tallies, parts)))
                for table, of_parts in zip(tables, (*without, products), strict=True):
                    table[some] = of_parts
                yield
            self._parts = _Counted(Tallies(*tables[:-1]), tables[-1])
        return self._parts

    def candidates(self) -> list[_Branch]:
        """Branches that stand apart, those that do most first."""
        found = [
            branch
            for branch in self._tree
            if len(branch.members) >= SMALLEST
            and branch.level >= _LEAST_AGREEMENT
            and branch.next <= APART * branch.level
        ]
        return sorted(found, key=lambda branch: branch.next / branch.level)[:_CANDIDATES]

    def of_branch(self, branch: _Branch) -> Pieces[Copies | None]:
        """A branch as a block, if it is one."""
        block, witnesses = np.array(branch.members), self._witnesses(branch.members)
        if len(witnesses) < FEWEST_WITNESSES or _between(self._all, witnesses).mean() < LEAST_OF_WITNESSES:
            return None
        pairs = _pairs(self._all, block, witnesses)
        last = pairs.mean(np.isin(block, branch.parts[0])[:, None] & np.isin(block, branch.parts[1]))
        of_all = pairs.mean()
        if not last.is_enough(LEAST_EFFECT) or not of_all.is_enough(LEAST_EFFECT):
            return None
        if of_all.found > AT_MOST * (1.0 - 1.0 / len(block)) * of_all.expected:
            return None
        return (yield from self._named(block, witnesses, of_all, JOINS + OF_SMALL / len(block)))

    def of_known(self, group: Sequence[int]) -> Pieces[Copies | None]:
        """What is left of a block that was found before: without members that do not agree with the others any more."""
        block = np.array(sorted(group), np.int64)
        witnesses = self._witnesses(group) if len(block) >= SMALLEST else []
        if len(witnesses) < FEWEST_WITNESSES:
            return None
        pairs, member = _pairs(self._all, block, witnesses), np.eye(len(block), dtype=np.bool_)
        least = 0.5 * LEAST_EFFECT
        stays = list[bool]()
        for own in member:
            stays.append(pairs.mean(own[:, None] & ~own).is_enough(least))
            if len(stays) % _MEMBERS_A_PIECE == 0:
                yield
        block = block[stays]
        if len(block) < SMALLEST:
            return None
        of_all = (pairs if all(stays) else _pairs(self._all, block, witnesses)).mean()
        return (yield from self._named(block, witnesses, of_all, STAYS)) if of_all.is_enough(least) else None

    def _witnesses(self, block: Sequence[int]) -> list[list[int]]:
        """Those outside with the most votes; who agree with each other nearly as members do are one witness."""
        level = _SAME_WITNESS * _mean_over_pairs(self._agreement, np.array(block, np.int64))
        free, witnesses = set(range(len(self._agreement))).difference(block), list[list[int]]()
        for branch in reversed(self._tree):
            if branch.level >= level and free.issuperset(branch.members):
                witnesses.append(branch.members)
                free.difference_update(branch.members)
        witnesses += ([one] for one in sorted(free))
        by_votes = sorted(range(len(witnesses)), key=lambda number: -int(self._said[witnesses[number]].sum()))
        return [witnesses[number] for number in sorted(by_votes[:MOST])]

    def _named(
        self, block: IntArray, witnesses: Sequence[Sequence[int]], of_all: _Finding, least: float
    ) -> Pieces[Copies | None]:
        """The block, if it is so many standard deviations from chance."""
        common = _mean_over_pairs(self._all.tallies.common, block)
        by_chance = max(of_all.found * (1.0 - of_all.found), 1.0 / max(common, 1.0))
        variance = by_chance / (max(common, 1.0) * (len(block) - 1))
        if common < FEWEST_COMMON or of_all.excess < least * math.sqrt(variance):
            return None  # what parts of the questions say could only add to the variance
        without, excesses = (yield from self._without()), np.empty(_N_PARTS)
        for some in _some_parts(len(block) * max(len(block), MOST)):
            excesses[some] = _pairs(without.parts(some), block, witnesses).excesses()
            yield
        spread = excesses - float(np.add.reduce(excesses)) / _N_PARTS
        variance += (_N_PARTS - 1) / _N_PARTS * float(np.add.reduce(spread * spread))
        if of_all.excess < least * math.sqrt(variance):
            return None
        return Copies(tuple(block.tolist()), 1.0 - 2.0 * of_all.found, 1.0 - 2.0 * of_all.expected, round(common))


def _tree(agreement: FloatArray) -> Pieces[list[_Branch]]:
    """Experts joined by the mean agreement of pairs, the highest first, down to where nothing is joined any more."""
    n = len(agreement)
    if n < 2:
        return []
    table = agreement.copy()
    np.fill_diagonal(table, -np.inf)
    groups, sizes = [[one] for one in range(n)], [1.0] * n
    found, above = list[tuple[list[int], list[int], list[int], float]](), list[float]()
    latest = [-1] * n  # the branch that each has come to
    row, other = np.empty((2, n))
    joins_a_piece = max(_CELLS_A_PIECE * _JOINED // (n * n), 1)
    for number in range(n - 1):
        if number % joins_a_piece == joins_a_piece - 1:
            yield
        one, two = divmod(int(table.argmax()), n)
        if two < one:
            one, two = two, one
        level = float(table[one, two])
        if level < APART * _LEAST_AGREEMENT:
            break
        np.multiply(table[one], sizes[one], out=row)
        np.multiply(table[two], sizes[two], out=other)
        np.add(row, other, out=row)
        np.divide(row, sizes[one] + sizes[two], out=row)
        row[one] = row[two] = -np.inf
        table[one] = table[:, one] = row
        table[two] = table[:, two] = -np.inf
        for branch in (latest[one], latest[two]):
            if branch >= 0:
                above[branch] = level
        members = sorted(groups[one] + groups[two])
        latest[one] = len(found)
        found.append((members, groups[one], groups[two], level))
        above.append(-1.0)
        groups[one] = members
        sizes[one] += sizes[two]
    return [
        _Branch(members, (one, two), level, then) for (members, one, two, level), then in zip(found, above, strict=True)
    ]


class _Pairs(NamedTuple):
    """On which share of common questions each pair of a block should disagree, and does."""

    expected: FloatArray
    found: FloatArray
    common: FloatArray

    def mean(self, among: BoolArray | None = None) -> _Finding:
        """Over their common questions; ``among``: of these pairs, of all if left out."""
        weights = np.triu(self.common, 1) if among is None else self.common * among
        total = max(float(np.add.reduce(weights, axis=None)), 1.0)
        return _Finding(*(float(np.add.reduce(weights * one, axis=None)) / total for one in self[:2]))

    def excesses(self) -> FloatArray:
        """How much less they disagree than three quarters of what they should, of each of many tables."""
        weights = np.triu(self.common, 1)
        total = np.maximum(np.add.reduce(weights, axis=(-2, -1)), 1.0)
        expected, found = (np.add.reduce(weights * one, axis=(-2, -1)) / total for one in self[:2])
        excesses: FloatArray = TIMES_LESS * expected - found
        return excesses


def _pairs(counted: _Counted, block: IntArray, witnesses: Sequence[Sequence[int]]) -> _Pairs:
    own = Tallies(*(table[..., block[:, None], block] for table in counted.tallies))
    _, left, right = means(own)
    most = np.sqrt((1.0 - left * left) * (1.0 - right * right))
    shared = np.minimum(np.maximum(_explained(counted, block, witnesses), 0.0), most)
    return _Pairs(independent(own) - 0.5 * shared, disagreement(own), own.common)


class _Between(NamedTuple):
    """Covariances of witnesses with each other, 0 where they are not known, and whether they are."""

    covariance: FloatArray
    known: FloatArray

    def mean(self) -> float:
        """Over the pairs that are known."""
        return float(np.add.reduce(self.covariance, axis=None)) / max(float(np.add.reduce(self.known, axis=None)), 1.0)


def _between(counted: _Counted, witnesses: Sequence[Sequence[int]]) -> _Between:
    order, starts = _ordered(witnesses)
    products, common = (
        np.add.reduceat(np.add.reduceat(table[..., order[:, None], order], starts, axis=-2), starts, axis=-1)
        for table in (counted.products, counted.tallies.common)
    )
    known = (common >= _WITNESSED).astype(np.float64)
    known[..., np.arange(len(starts)), np.arange(len(starts))] = 0.0
    return _Between(known * products / np.maximum(common, 1.0), known)


def _ordered(witnesses: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """The columns of witnesses one behind the other, and where each begins."""
    order = np.array([one for witness in witnesses for one in witness], np.int64)
    return order, np.cumsum([0, *map(len, witnesses[:-1])])


def _explained(counted: _Counted, block: IntArray, witnesses: Sequence[Sequence[int]]) -> FloatArray:
    """The covariance of each pair of a block by what witnesses have in common with both; without any infinite."""
    order, starts = _ordered(witnesses)
    products, common = (
        np.add.reduceat(table[..., block[:, None], order], starts, axis=-1)
        for table in (counted.products, counted.tallies.common)
    )
    heard, between = (common >= _WITNESSED).astype(np.float64), _between(counted, witnesses)
    seen = heard * products / np.maximum(common, 1.0)
    above = _across(seen, between.known)
    below = _across(heard, between.covariance)
    return np.where(below > 0.0, above / np.where(below > 0.0, below, 1.0), np.inf)


def _across(one: FloatArray, table: FloatArray) -> FloatArray:
    """``one @ table @ one.T``, in the same order of additions on every machine."""
    found: FloatArray = np.einsum("...il,...jl->...ij", np.einsum("...ik,...kl->...il", one, table), one)
    return found


def _mean_over_pairs(table: FloatArray, block: IntArray) -> float:
    own = np.triu(table[np.ix_(block, block)], 1)
    return float(np.add.reduce(own, axis=None)) / (len(block) * (len(block) - 1) / 2)

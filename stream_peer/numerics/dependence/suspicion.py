"""By how much two experts agree more than what others say of both allows.

Everything follows from tallies: what pairs of experts said of the questions that both voted on. Witnesses are the
experts whom to ask what two others may have in common.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from stream_peer.numerics.arguments import BoolArray, FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.dependence.in_pieces import Pieces
from stream_peer.numerics.dependence.vote_bits import VoteBits

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


def among(counted: Tallies, experts: IntArray) -> Tallies:
    """Tallies of some of the experts, ascending, with each other."""
    if len(experts) == len(counted.common):
        return counted
    return Tallies(*[table[experts[:, None], experts] for table in counted])


def tallies(one: SmallIntArray | Float32Array, two: SmallIntArray | Float32Array, parts: int | None = None) -> Tallies:
    """Tallies of experts by columns; exact in any order, since all sums are whole numbers far below 2^24.

    ``parts``: of each of so many parts of the questions, (parts, m, n).

    Examples
    --------
    >>> votes = np.array([[1, 1], [-1, 1], [1, 0]], np.float32)
    >>> [int(table[0, 1]) for table in tallies(votes, votes)]
    [0, 2, 0, 2]
    >>> tallies(votes, votes, parts=3).product[:, 0, 1].tolist()
    [1.0, -1.0, 0.0]
    """
    return _tallies(_stacked(one, parts), _stacked(two, parts))


def change_of_tallies(before: SmallIntArray, after: SmallIntArray) -> Float32Array:
    """How tallies of all experts with all change if some rows of votes replace others, see `stacked_tallies`.

    Returns
    -------
    (2, n, 2, n) float32
    """
    both = _stacked(np.concatenate((before, after)))
    signed = both.copy()
    np.negative(both[: len(before)], out=signed[: len(before)])
    return _product(signed, both).reshape(2, before.shape[1], 2, before.shape[1])


def stacked_tallies(table: Float32Array) -> Tallies:
    """The tables of `change_of_tallies`: votes or who voted, with votes or who voted."""
    exact = table.astype(np.float64)
    return Tallies(exact[0, :, 0], exact[1, :, 1], exact[0, :, 1], exact[1, :, 0])


def _stacked(votes: SmallIntArray | Float32Array, parts: int | None = None) -> Float32Array:
    """Votes, and behind them who voted: one product then gives all four tables. Zeros fill the last piece."""
    n_questions, n = votes.shape
    bounds = bounds_of_parts(n_questions, parts or 1)
    both = np.zeros((len(bounds) - 1, -(-bounds[1] // _PIECE) * _PIECE, 2 * n), np.float32)
    for part, (start, end) in zip(both, pairwise(bounds), strict=True):
        part[: end - start, :n] = votes[start:end]
        np.abs(votes[start:end], out=part[: end - start, n:])
    return both[0] if parts is None else both


def bounds_of_parts(n_questions: int, parts: int) -> list[int]:
    """Where parts of the questions begin and the last one ends; the first ones have one more."""
    size, more = divmod(n_questions, parts)
    return [size * part + min(part, more) for part in range(parts + 1)]


def _tallies(one: Float32Array, two: Float32Array) -> Tallies:
    m, n = one.shape[-1] // 2, two.shape[-1] // 2
    table = _product(one, two).astype(np.float64)
    return Tallies(table[..., :m, :n], table[..., m:, n:], table[..., :m, n:], table[..., m:, :n])


FARTHEST = 0.268
"""Who disagree on less than half of what chance allows do so on less than 2 - √3 of their questions.

Two who say yes on shares apart by x of the questions disagree on x or more of them, and chance allows (1 + x²)/2 at
most: of x < (1 + x²)/4 that is the largest.
"""

COUNTED_ONCE = 256
"""Of at most so many experts all pairs are counted: what is asked of them would count most of them again and again."""


def votes_of_each(votes: SmallIntArray | Float32Array) -> IntArray:
    """How often each expert voted: `numpy.count_nonzero` takes several times as long."""
    found: IntArray = np.add.reduce(votes != 0, axis=0, dtype=np.int32).astype(np.int64)
    return found


class PairTallies:
    """Tallies of pairs of columns of votes; of few experts those of all pairs are counted once, and looked up.

    ``parts``: each of so many parts of the questions has its own, one behind the other. ``known``: those of all pairs.
    """

    def __init__(
        self, cast: SmallIntArray | Float32Array, parts: int | None = None, known: Tallies | None = None
    ) -> None:
        self.cast = cast
        self._parts = parts
        self._others: tuple[IntArray, Float32Array] | None = None
        if known is None and parts is None and cast.shape[1] <= COUNTED_ONCE:
            known = tallies(cast, cast)
        self._all = known

    @cached_property
    def _bits(self) -> VoteBits:
        return VoteBits(self.cast)

    def least_shares(self, rows: IntArray, columns: IntArray) -> Pieces[Float32Array]:
        """On which share of common questions each of some experts and each of others disagree at least, (m, n)."""
        if self._all is None:
            bits = self._bits
            yield
            return (yield from bits.least_shares(rows, columns))
        product, common = (table[rows[:, None], columns] for table in (self._all.product, self._all.common))
        return (0.5 * (common - product) / np.maximum(common, 1.0)).astype(np.float32)

    def between(self, one: IntArray, two: IntArray) -> Tallies:
        """Of some experts with others, (m, n). The same others are mostly asked for again, with some more."""
        if self._all is not None:
            return Tallies(*[table[one[:, None], two] for table in self._all])
        if self._others is None or self._others[0] is not two:
            self._others = two, _stacked(self.cast[:, two], self._parts)
        return _tallies(_stacked(self.cast[:, one], self._parts), self._others[1])

    def said(self) -> IntArray:
        """How often each voted."""
        return votes_of_each(self.cast) if self._all is None else self._all.common.diagonal().astype(np.int64)

    def of_pairs(self, pairs: IntArray) -> Tallies:
        """Of the two experts of each pair, (n_pairs,)."""
        if self._parts:
            return _of_pairs(self.cast, pairs, self._parts)
        if self._all is None:
            return _of_counts(*self._bits.of_pairs(pairs))
        return Tallies(*[table[pairs[:, 0], pairs[:, 1]] for table in self._all])


def _of_counts(both_yes: FloatArray, both_no: FloatArray, yes_no: FloatArray, no_yes: FloatArray) -> Tallies:
    agree, apart, more = both_yes + both_no, yes_no + no_yes, both_yes - both_no
    return Tallies(agree - apart, agree + apart, more + (yes_no - no_yes), more - (yes_no - no_yes))


def _of_pairs(cast: SmallIntArray | Float32Array, pairs: IntArray, parts: int) -> Tallies:
    one, two = cast[:, pairs[:, 0]], cast[:, pairs[:, 1]]
    there, others = np.abs(one), np.abs(two)
    factors = (one, two), (there, others), (one, others), (there, two)
    starts = bounds_of_parts(len(cast), parts)[:-1]
    return Tallies(*[np.add.reduceat(a * b, starts, axis=0, dtype=np.float64) for a, b in factors])


def _product(one: Float32Array, two: Float32Array) -> Float32Array:
    """``one.T @ two`` in pieces too small for BLAS to share among threads, which is a hundred times slower if busy.

    Questions that are wanting to the last piece are filled up with votes of nobody.
    """
    rows, columns = (a.reshape(*a.shape[:-2], a.shape[-2] // _PIECE, _PIECE, a.shape[-1]) for a in (one, two))
    table = np.empty((*one.shape[:-2], one.shape[-1], two.shape[-1]), np.float32)
    for i in range(0, table.shape[-2], _PIECE):
        some = rows[..., i : i + _PIECE].swapaxes(-2, -1)
        for j in range(0, table.shape[-1], _PIECE):
            found = np.matmul(some, columns[..., j : j + _PIECE])
            np.add.reduce(found, axis=-3, out=table[..., i : i + _PIECE, j : j + _PIECE])
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


def shares(counted: Tallies) -> tuple[FloatArray, FloatArray]:
    """`disagreement` and `independent`, of the same means."""
    product, left, right = means(counted)
    return 0.5 * (1.0 - product), 0.5 * (1.0 - left * right)


def disagreement(counted: Tallies) -> FloatArray:
    """Share of common questions on which two do not agree, in [0, 1]."""
    return 0.5 * (1.0 - means(counted)[0])


def independent(counted: Tallies) -> FloatArray:
    """What it would be by chance, if they knew nothing but said yes as often as they do."""
    _, left, right = means(counted)
    return 0.5 * (1.0 - left * right)


MOST = 48
"""Witnesses that are heard."""

_ALIKE = 0.1
_AT_ONCE = 128


def witnesses(counted: PairTallies, experts: IntArray | None = None) -> Pieces[IntArray]:
    """Columns of the experts with the most votes, of those that are nearly identical only one, 48 at most.

    Two are nearly identical if they disagree on at most a tenth of what chance allows: else six copies among four
    honest experts would make the honest ones look dependent, since hardly anybody says what they say.

    Parameters
    ----------
    counted : PairTallies
        Of the votes.
    experts : (n,) int64, optional
        Columns among which to choose, ascending; all if left out.

    Returns
    -------
    (n_witnesses,) int64
        In the order in which they were chosen.

    Examples
    --------
    >>> from stream_peer.numerics.dependence.in_pieces import done_at_once
    >>> votes = np.array([[1, 1, -1], [-1, -1, -1]] * 20, np.float32)
    >>> done_at_once(witnesses(PairTallies(votes))).tolist()
    [0, 2]
    """
    said = counted.said()
    able = np.flatnonzero(said) if experts is None else experts
    order = able[np.argsort(-said[able], kind="stable")]
    chosen: list[int] = []
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        alike = _alike(counted.between(np.concatenate((np.array(chosen, np.int64), some)), some))
        rows = [int.from_bytes(row, "little") for row in np.packbits(alike, axis=1, bitorder="little")]
        taken = 0  # a bit for each of them
        for row in rows[: len(chosen)]:
            taken |= row
        for place, (expert, row) in enumerate(zip(some.tolist(), rows[len(chosen) :], strict=True)):
            if len(chosen) == MOST:
                return np.array(chosen, np.int64)
            if not taken >> place & 1:
                chosen.append(expert)
                taken |= row
        yield
    return np.array(chosen, np.int64)


def _alike(counted: Tallies) -> BoolArray:
    share, by_chance = shares(counted)
    alike: BoolArray = share <= _ALIKE * by_chance
    return alike & (counted.common >= FEWEST_WITNESSED)


TIMES_LESS = 0.5
"""Copies disagree on less than this share of what they should."""

LEAST_EFFECT = 0.1
"""And by so much less: .2 in the mean of v_i·v_j."""

_N_PARTS = 10
_FEWEST_WITNESSES = 2
_NEARER = 1.5
_NEAR = 0.05
_NEARLY = 0.999
"""Of what is to be reached: rounding must not exclude a pair that reaches it."""

_PAIRS_A_PIECE = 128


class Suspicion(NamedTuple):
    """What speaks against pairs of experts, each (n_pairs,) float64.

    Attributes
    ----------
    z : by how many standard deviations they disagree less than half as much as they should; -inf if they do not at
        all, there are no two witnesses, or it is less than was asked for
    disagreement : share of common questions on which they do not agree
    expected : what it would be if they knew of each other only through the outcome
    common : questions that both voted on
    """

    z: FloatArray
    disagreement: FloatArray
    expected: FloatArray
    common: FloatArray


class _Counts(NamedTuple):
    """Tallies of the experts of the pairs, first and second, with each witness; of witnesses; and of the pairs."""

    first: Tallies
    second: Tallies
    witnesses: Tallies
    pairs: Tallies


def may_be_copies(counted: Tallies, least: FloatArray, effect: FloatArray) -> BoolArray:
    """Which pairs `suspicion` could find to be so suspect, if their witnesses had nothing in common with them.

    Parameters
    ----------
    counted : Tallies
        Of the pairs, (n_pairs,).
    least, effect : (n_pairs,) float64
        How large z, and how large the difference of what is expected and found, must be.

    Returns
    -------
    (n_pairs,) bool
    """
    found, most = shares(counted)
    excess = TIMES_LESS * most - found
    may_be: BoolArray = (excess > 0.0) & (most - found >= effect)
    may_be &= excess >= _NEARLY * least * np.sqrt(_by_chance(counted))
    return may_be


def suspicion(
    counted: PairTallies, pairs: IntArray, witnesses: IntArray, least: FloatArray | float = 0.0
) -> Pieces[Suspicion]:
    """What speaks against pairs of experts.

    Given the outcome independent votes have ``cov(v_i, v_j) = d_i·d_j``, so with witnesses k ≠ l
    ``cov_ij = Σ cov_ik·cov_jl / Σ cov_kl``: nobody's error rate needs to be known, and the outcomes may be as rare and
    the error rates of the two classes as different as they like. From it follows on which share e of their common
    questions they should disagree; on d they do. ``z = (e/2 - d)/√(s² + d(1-d)/n)``, s the jackknife's deviation of
    e/2 - d over 10 parts of the questions.

    Not heard are the two themselves, and who is hardly further from one of them than they are from each other: a third
    copy would say that all is well.

    Parameters
    ----------
    counted : PairTallies
        Of the votes.
    pairs : (n_pairs, 2) int64
        Columns.
    witnesses : (n_witnesses,) int64
        Columns, no two of them nearly identical.
    least : (n_pairs,) float64 or float
        z is -inf where it cannot be as much as this: what is by chance alone, d(1-d)/n, tells that for little.
        d(1-d) counts as at least 1/n, as of few questions d may be 0 by chance.

    Returns
    -------
    Suspicion

    Notes
    -----
    If experts share more than the outcome with everybody, such as what makes a question difficult, this is part of
    what witnesses say, and is no suspicion.
    """
    limits, n_pieces = np.broadcast_to(least, len(pairs)), max(-(-len(pairs) // _PAIRS_A_PIECE), 1)
    found = list[Suspicion]()
    for some in np.array_split(np.arange(len(pairs)), n_pieces):
        found.append(_suspicion(counted, pairs[some], witnesses, limits[some]))
        yield
    return Suspicion(*map(np.concatenate, zip(*found, strict=True)))


def _suspicion(counted: PairTallies, pairs: IntArray, witnesses: IntArray, least: FloatArray) -> Suspicion:
    total = _count(counted, pairs, witnesses)
    heard = _heard(total, pairs, witnesses)
    expected, found = _expected(total, heard), disagreement(total.pairs)
    z = np.full(len(pairs), -np.inf)
    excess = TIMES_LESS * expected - found
    likely = (excess > 0.0) & (np.count_nonzero(heard, axis=1) >= _FEWEST_WITNESSES)
    likely &= excess >= _NEARLY * least * np.sqrt(_by_chance(total.pairs))
    if likely.any():
        z[likely] = _deviations(counted.cast, pairs[likely], witnesses, heard[likely])
    return Suspicion(z, found, expected, total.pairs.common)


def _deviations(
    cast: SmallIntArray | Float32Array, pairs: IntArray, witnesses: IntArray, heard: BoolArray
) -> FloatArray:
    """By how many standard deviations pairs disagree less than half as much as they should."""
    parts = _count(PairTallies(cast, _N_PARTS), pairs, witnesses)
    total = _each(np.add.reduce, parts)
    without = _excess(_each(np.subtract, total, parts), heard)
    spread = without - np.add.reduce(without, axis=0) / _N_PARTS
    variance = (_N_PARTS - 1) / _N_PARTS * np.add.reduce(spread * spread, axis=0)
    variance += _by_chance(total.pairs)
    deviations: FloatArray = _excess(total, heard) / np.sqrt(variance)
    return deviations


def _by_chance(counted: Tallies) -> FloatArray:
    """The variance of the disagreement of pairs, if nothing but chance moves it."""
    found, common = disagreement(counted), np.maximum(counted.common, 1.0)
    variance: FloatArray = np.maximum(found * (1.0 - found), 1.0 / common) / common
    return variance


def _count(counted: PairTallies, pairs: IntArray, witnesses: IntArray) -> _Counts:
    involved, place = np.unique(pairs, return_inverse=True)
    first, second = place.reshape(-1, 2).T
    with_witnesses = counted.between(involved, witnesses)
    return _Counts(
        Tallies(*(table[..., first, :] for table in with_witnesses)),
        Tallies(*(table[..., second, :] for table in with_witnesses)),
        counted.between(witnesses, witnesses),
        counted.of_pairs(pairs),
    )


def _each(function: Callable[..., FloatArray], *counts: _Counts) -> _Counts:
    """What a function makes of each of their tables."""
    return _Counts(*(Tallies(*map(function, *kind)) for kind in zip(*counts, strict=True)))


def _heard(total: _Counts, pairs: IntArray, witnesses: IntArray) -> BoolArray:
    """Which witnesses are heard of which pair, (n_pairs, n_witnesses)."""
    share, by_chance = shares(total.pairs)
    own = share / np.maximum(by_chance, 1e-9)
    heard: BoolArray = np.ones((len(pairs), len(witnesses)), np.bool_)
    for counted, expert in zip((total.first, total.second), pairs.T, strict=True):
        share, by_chance = shares(counted)
        relative = share / np.maximum(by_chance, 1e-9)
        far = relative > _NEARER * own[:, None] + _NEAR
        heard &= (far | (counted.common < FEWEST_WITNESSED)) & (witnesses != expert[:, None])
    return heard


def _expected(counts: _Counts, heard: BoolArray) -> FloatArray:
    """On which share of questions the pairs should disagree; the least of all where witnesses do not tell."""
    first, second = (heard & (counted.common >= FEWEST_WITNESSED) for counted in (counts.first, counts.second))
    among = (counts.witnesses.common >= FEWEST_WITNESSED).astype(np.float64)
    among[..., np.arange(among.shape[-1]), np.arange(among.shape[-1])] = 0.0
    seen = _times(covariances(counts.first) * first, among) * (covariances(counts.second) * second)
    known = _times(first.astype(np.float64), among * covariances(counts.witnesses)) * second
    above, below = np.add.reduce(seen, axis=-1), np.add.reduce(known, axis=-1)
    _, left, right = means(counts.pairs)
    most = np.sqrt((1.0 - left * left) * (1.0 - right * right))
    shared = np.where(below > 0.0, above / np.where(below > 0.0, below, 1.0), np.inf)
    expected: FloatArray = independent(counts.pairs) - 0.5 * np.minimum(np.maximum(shared, 0.0), most)
    return expected


def _times(one: FloatArray, table: FloatArray) -> FloatArray:
    """``one @ table``, in the same order of additions on every machine."""
    found: FloatArray = np.einsum("...pk,...kl->...pl", one, table)
    return found


def _excess(counts: _Counts, heard: BoolArray) -> FloatArray:
    return TIMES_LESS * _expected(counts, heard) - disagreement(counts.pairs)

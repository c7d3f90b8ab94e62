"""Sums over questions: whole numbers in units of 2^-40, so that adding and taking out is exact in any order.

A question's share is a ``Contribution``: numbers for the feed, a vector for each expert that it concerns, and the bins
of their forecasts. What the numbers are is declared in `columns`.
"""

import struct
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from stream_peer.feeds.columns import (
    EXPERT,
    FEED,
    SCALE,
    SHADOW,
    SUBSAMPLE,
    UNIT,
    VOTE_RULES,
    evaluated_span,
)
from stream_peer.numerics.arguments import FloatArray, IndexArray, IntArray
from stream_peer.numerics.dependence import N_SUBSAMPLES

Amount: TypeAlias = tuple[int, int]
"""The place of a column, and what is added to it, in units of 2^-40."""

BINS = 94
"""Bins of an expert's histogram of forecasts."""

_NO_SHADOW = np.zeros(SHADOW.size, np.int64)
VOTES_SHAPE = len(VOTE_RULES), N_SUBSAMPLES, SUBSAMPLE.size // len(VOTE_RULES)
_BEFORE_VOTES = FEED.at("group_weight")
"""Columns of the feed that are stored in front of the moments of the votes."""
_COUNTS = struct.Struct("<II")
"""In front of stored sums: how many experts, how many shadows."""
_ALL_COLUMNS = 1 << 31
"""Added to the number of shadows where all columns are stored: else those that version 1 of the method does not fill
are 0, and the form is that of the release before."""
_ALL = np.arange(EXPERT.size), np.arange(FEED.size)
_FORMER = EXPERT.former, FEED.former
_ADDED = tuple(np.setdiff1d(every, former) for every, former in zip(_ALL, _FORMER, strict=True))


def fixed(values: FloatArray, weight: float) -> IntArray:
    """Values times a weight, in units of 2^-40. The values are overwritten: many of them would have to be copied."""
    values *= weight * SCALE
    return np.rint(values, out=values).astype(np.int64)


class Binned(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Forecasts in the histograms of their experts.

    Attributes
    ----------
    cells : (m,) int64
        Expert × BINS + bin, of each forecast; the same may come often.
    amount : int
        What each of them adds, in units of 2^-40.
    """

    cells: IntArray
    amount: int


class Evaluated(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The experts of a scored forecast, who may be others than those of the rounds as they stand now.

    Attributes
    ----------
    experts : (n,) int32
    columns : (2, n) int64
        Those of ``evaluated_span``.
    """

    experts: IndexArray
    columns: IntArray


class Contribution(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What a question adds to the sums of its feed.

    Attributes
    ----------
    experts : (n,) int32
        Indices of the experts that it concerns, each once.
    columns : (k, n) int64
        Those to which it adds something.
    rows : (k,) int64
        Which columns they are: rows of the matrix of sums.
    feed : sequence of (int, int)
        Columns of the feed, by their places, and what it adds to each.
    votes : sequence of (int, int, list of int)
        Vote rule, subsample of questions, and what it adds to the columns of the subsample.
    binned : Binned, optional
        The forecasts, where histograms are kept.
    evaluated : Evaluated, optional
        The experts of the scored forecast, where it counts.
    shadows : tuple of (int, (7,) int64)
        Columns of shadows, by their numbers.
    of_rule : sequence of int
        What of ``feed`` goes to the columns ``RULE_PART`` of the vote rule of its latest round.
    """

    experts: IndexArray
    columns: IntArray
    rows: IntArray
    feed: Sequence[Amount] = ()
    votes: Sequence[tuple[int, int, Sequence[int]]] = ()
    binned: Binned | None = None
    evaluated: Evaluated | None = None
    shadows: tuple[tuple[int, IntArray], ...] = ()
    of_rule: Sequence[int] = ()


NOTHING = Contribution(np.zeros(0, np.int32), np.zeros((0, 0), np.int64), np.zeros(0, np.int64))


class Sums:
    """The sums of one feed: its columns, a matrix (columns by experts), histograms of forecasts, and of shadows.

    The columns of the feed are Python's own numbers: they are read one by one, and numpy makes an object of each.
    ``votes``, vote rules by subsamples by columns, are the moments of the votes. The histograms, experts by bins, have
    no rows while nothing was ever put into them. ``shadows`` holds a vector for each shadow that something was put in
    of.
    """

    def __init__(self, n_experts: int = 0) -> None:
        self.feed: list[int] = [0] * FEED.size
        self.votes: IntArray = np.zeros(VOTES_SHAPE, np.int64)
        self.matrix: IntArray = np.zeros((EXPERT.size, n_experts), np.int64)
        self.histograms: IntArray = np.zeros((0, BINS), np.int64)
        self.shadows: dict[int, IntArray] = {}
        self.version = 0  # how often something was added or taken out: readings know by it that they are stale

    def reserve(self, n_experts: int) -> None:
        """Have room for at least that many experts."""
        room = self.matrix.shape[1]
        if n_experts > room:
            matrix = np.zeros((EXPERT.size, max(n_experts, 2 * room, 16)), np.int64)
            matrix[:, :room] = self.matrix
            self.matrix = matrix

    def add(self, part: Contribution) -> None:
        """Put a question in."""
        self._fold(part, np.add, 1)

    def subtract(self, part: Contribution) -> None:
        """Take a question out."""
        self._fold(part, np.subtract, -1)

    def _fold(self, part: Contribution, operation: np.ufunc, sign: int) -> None:
        self.version += 1
        feed = self.feed
        for column, amount in part.feed:
            feed[column] += sign * amount
        for rule, subsample, amounts in part.votes:
            of_subsample = self.votes[rule, subsample]
            operation(of_subsample, amounts, out=of_subsample)
        cells = np.add.outer(part.rows * self.matrix.shape[1], part.experts)
        operation.at(self.matrix.reshape(-1), cells.reshape(-1), part.columns.reshape(-1))
        if part.evaluated:
            rows = self.matrix[evaluated_span()]
            rows[:, part.evaluated.experts] = operation(rows[:, part.evaluated.experts], part.evaluated.columns)
        if part.binned:
            self._reserve_bins()
            operation.at(self.histograms.reshape(-1), part.binned.cells, part.binned.amount)
        for shadow, columns in part.shadows:
            total = operation(self.of_shadow(shadow), columns)
            if total.any():
                self.shadows[shadow] = total
            else:
                self.shadows.pop(shadow, None)

    def of_shadow(self, shadow: int) -> IntArray:
        """Columns of a shadow, in units of 2^-40."""
        return self.shadows.get(shadow, _NO_SHADOW)

    def evaluations(self, places: IndexArray | None = None) -> Contribution:
        """What scored forecasts have added. ``places``: other places of experts, -1 of those to be left out."""
        of_feed = FEED.span("evaluated", "median_squared")
        feed = list(enumerate(self.feed[of_feed], of_feed.start))
        if not any(amount for _, amount in feed):
            return NOTHING
        now = np.arange(self.matrix.shape[1], dtype=np.int32) if places is None else places
        stay = np.flatnonzero(now >= 0)
        evaluated = Evaluated(now[stay], self.matrix[evaluated_span()][:, stay])
        return msgspec.structs.replace(NOTHING, feed=feed, evaluated=evaluated, shadows=tuple(self.shadows.items()))

    def _reserve_bins(self) -> None:
        rows, room = len(self.histograms), self.matrix.shape[1]
        if rows < room:
            self.histograms = np.concatenate((self.histograms, np.zeros((room - rows, BINS), np.int64)))

    def read(self, experts: IndexArray, rows: slice = slice(0, EXPERT.size)) -> FloatArray:
        """Columns of some experts as numbers, (``rows.stop``, n); those before ``rows`` are 0."""
        found = np.zeros((rows.stop, len(experts)))
        np.multiply(self.matrix[rows].take(experts, axis=1), UNIT, out=found[rows])
        return found

    def read_histograms(self, experts: IndexArray) -> IntArray:
        """Histograms of some experts, (n, BINS), in units of 2^-40."""
        self._reserve_bins()
        return self.histograms.take(experts, axis=0)

    def all_histograms(self) -> IntArray:
        """Histograms of all experts that there is room for."""
        self._reserve_bins()
        return self.histograms

    def copy(self) -> "Sums":
        """Sums of their own with the same values."""
        twin = Sums()
        twin.feed, twin.votes = self.feed.copy(), self.votes.copy()
        twin.matrix = self.matrix.copy()
        twin.histograms = self.histograms.copy()
        twin.shadows = dict(self.shadows)  # vectors are replaced, never changed
        return twin

    def equals(self, other: "Sums") -> bool:
        """Whether all columns and histograms agree, bit for bit; room for more experts does not matter."""
        return (
            self.feed == other.feed
            and np.array_equal(self.votes, other.votes)
            and _equal(self.matrix.T, other.matrix.T)
            and _equal(self.histograms, other.histograms)
            and self.shadows.keys() == other.shadows.keys()
            and all(np.array_equal(columns, other.shadows[shadow]) for shadow, columns in self.shadows.items())
        )

    def is_zero(self) -> bool:
        """Whether nothing has been put in."""
        return not (any(self.feed) or self.votes.any() or self.matrix.any() or self.histograms.any() or self.shadows)

    def to_bytes(self, n_experts: int) -> bytes:
        """Stored form, little-endian; empty if nothing has been put in."""
        if self.is_zero():
            return b""
        self.reserve(n_experts)  # some may have been added since anything was put in
        of_feed = np.array(self.feed, np.int64)
        is_new = bool(of_feed[_ADDED[1]].any() or self.matrix[_ADDED[0]].any())
        rows, places = _ALL if is_new else _FORMER
        parts = [
            np.insert(of_feed[places], _BEFORE_VOTES, self.votes.reshape(-1)),
            self.matrix[rows, :n_experts],
            *([self.all_histograms()[:n_experts]] if self.histograms.any() else []),
        ]
        parts += [np.array([shadow, *self.shadows[shadow]], np.int64) for shadow in sorted(self.shadows)]
        counts = (n_experts, len(self.shadows) + is_new * _ALL_COLUMNS)
        return b"".join([_COUNTS.pack(*counts), *(part.astype("<i8").tobytes() for part in parts)])

    @classmethod
    def from_bytes(cls, data: bytes, n_experts: int) -> "Sums":
        """Sums of ``to_bytes``. Experts may have been added since: there is room for ``n_experts``."""
        sums = cls(n_experts)
        if data:
            stored, n_shadows = _COUNTS.unpack_from(data)
            is_new, n_shadows = divmod(n_shadows, _ALL_COLUMNS)
            rows, places = _ALL if is_new else _FORMER
            numbers = np.frombuffer(data, "<i8", offset=_COUNTS.size).astype(np.int64)
            of_feed = len(places) + sums.votes.size
            end = of_feed + len(rows) * stored
            numbers, shadows = np.split(numbers, [len(numbers) - n_shadows * (1 + SHADOW.size)])
            sums.shadows = {int(row[0]): row[1:] for row in shadows.reshape(-1, 1 + SHADOW.size)}
            behind = _BEFORE_VOTES + sums.votes.size
            stored_feed = np.zeros(FEED.size, np.int64)
            stored_feed[places] = np.concatenate((numbers[:_BEFORE_VOTES], numbers[behind:of_feed]))
            sums.feed = stored_feed.tolist()
            sums.votes = numbers[_BEFORE_VOTES:behind].reshape(sums.votes.shape).copy()
            sums.matrix[rows, :stored] = numbers[of_feed:end].reshape(len(rows), -1)
            sums.histograms = numbers[end:].reshape(-1, BINS).copy()
        return sums


def _equal(one: IntArray, other: IntArray) -> bool:
    """Whether two arrays of rows agree; the longer one may have rows of zeros more."""
    common = min(len(one), len(other))
    return np.array_equal(one[:common], other[:common]) and not one[common:].any() and not other[common:].any()

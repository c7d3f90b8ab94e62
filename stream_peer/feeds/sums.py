"""Sums over questions: whole numbers in units of 2^-40, so that adding and taking out is exact in any order.

A question's share is a ``Contribution``: a column vector for the feed, one for each expert that it concerns, and the
bins of their forecasts. The columns have names; those that are priced with the error rates of a vote rule exist
once for each. What weights are read from lies together: the last of the first rule, then the first of the common ones.
"""

import struct
from dataclasses import fields
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from stream_peer.numerics.dependence import N_BLOCKS
from stream_peer.numerics.error_rates.class_moments import ClassMomentSums
from stream_peer.numerics.losses import FloatArray, IntArray

IndexArray: TypeAlias = npt.NDArray[np.int32]
VoteRule: TypeAlias = Literal["half", "own-median"]

SCALE = 2.0**40
UNIT = 2.0**-40

VOTES = 1024
"""Votes are counted in units of so many, since a question may add thousands: a feed has room for 8 billion."""

VOTE_RULES: tuple[VoteRule, VoteRule] = ("half", "own-median")
"""By their numbers. ``half``: a forecast above 1/2 votes yes; ``own-median``: one above the expert's own median."""

BINS = 94
"""Bins of an expert's histogram of forecasts."""

EXPERT_COMMON = (
    "outcome_regret",  # regret of the learner's weights against this expert, by the outcome
    "outcome_absolute",  # its absolute values
    "mix_level",  # 2b(b - p), b the plain mean
    "mix_slope",  # 2(b - p)
    "mix_answer",  # 2(b - p) times the reference answer, which is taken to err at a nominal rate under every vote rule
    "mix_regret",  # regret of the plain mean by the outcome, less its known curvature
    "fast_regret",  # regret of the quick truth mixer by the outcome, along the slope of the loss at its own forecast
    "fast_absolute",
    "compared",  # questions with an outcome, as far as another expert stood beside this one
    "scored",  # questions without one
    "resolved",  # questions with one
    "outcome_loss",  # loss against the outcome, where it is known
    "true_regret",  # regret of the published weights by the outcome
    "judged",  # questions with an outcome that count, of which the next two are
    "judged_peer",  # peer loss on the scale of outcomes, at the rates of the time, less the mean of those present
    "judged_true",  # the same of the loss against the outcome
    "evaluated",  # questions with an outcome in whose scored forecast this expert stood
    "evaluated_squared",  # its squared losses there
)
EXPERT_RULE = (
    "variance",  # (weight × mean spread)² / 4, of the certificate
    "loss",  # loss against the leave-one-out reference answer
    "loss_if_one",
    "loss_if_zero",
    "published_regret",
    "published_regret_if_one",
    "published_regret_if_zero",
    "regret",
    "regret_if_one",
    "regret_if_zero",
    "absolute_regret",  # absolute values of the regret, priced at the rates of the time
)
FEED_COMMON = (
    "questions",
    "resolved",
    "asked",  # questions with rounds, whether they count or not
    "voters",  # in units of VOTES, as are yes and votes
    "yes",  # votes at 1/2, whatever the vote rule
    "votes",
    "peer_peer",  # products of the mixers' distances from the plain mean, and of these with the mean's error
    "peer_slow",
    "peer_fast",
    "slow_slow",
    "slow_fast",
    "fast_fast",
    "peer_error",
    "slow_error",
    "fast_error",
    "stretch_product",
    "stretch_square",
    "net_difference",
    "net_square",
    "tied",  # rounds that count whose published reference answer was a tie
    "evaluated",  # questions with an outcome that have a scored forecast
    "mix_squared",  # its squared losses; so are the next
    "stretched_squared",
    "mean_squared",
    "median_squared",
)
FEED_RULE = (
    "moment_weight",
    "moment_weight2",
    "pair",
    "rest",
    "pair2",
    "rest2",
    "pair_rest",
    "right_zero",  # reference answers by outcome
    "wrong_zero",
    "right_one",
    "wrong_one",
    "revealed_pair",  # pair, of questions with an outcome
    "answer",  # share of reference answers that are 1, of all questions
    "answer2",
)
FEED_CLASS = tuple(f"class_{field.name}" for field in fields(ClassMomentSums))
"""Moments of the vote count, of the rule ``own-median`` only."""

FEED_DEPENDENCE = tuple(
    f"block_{block}_{name}"
    for block in range(N_BLOCKS)
    for name in ("weight", "weight2", "first", "second", "third", "fourth")
)
"""Moments of the votes of a rule up to the fourth, in blocks of questions that a hash tells apart."""

FEED_VARIANT = (
    "group_weight",
    "group_weight2",
    "group_1",  # answers of groups that are 1, of two and of all three
    "group_2",
    "group_3",
    "group_12",
    "group_13",
    "group_23",
    "group_123",
    "mixability_gap",
)
"""Of variants that only a replay can choose, and of the preset ``paper``."""

SHADOW_COLUMNS = (
    "questions",  # evaluated ones whose scored forecast came when there was the shadow
    "squared",  # of the stretched forecast, and of the live one of the same round; so are the next
    "live_squared",
    "log",
    "live_log",
    "mix_squared",
    "live_mix_squared",
)
"""Of each shadow."""

N_SHADOW = len(SHADOW_COLUMNS)
_NO_SHADOW = np.zeros(N_SHADOW, np.int64)
_COUNTS = struct.Struct("<II")
"""In front of stored sums: how many experts, how many shadows."""

_N_COMMON, _N_RULE = len(EXPERT_COMMON), len(EXPERT_RULE)
N_EXPERT = _N_COMMON + 2 * _N_RULE
_N_ESTIMATED = len(FEED_COMMON) + 2 * len(FEED_RULE) + len(FEED_CLASS)
N_FEED = _N_ESTIMATED + 2 * len(FEED_DEPENDENCE) + len(FEED_VARIANT)

COMMON_ROWS = slice(_N_RULE, _N_RULE + _N_COMMON)
RULE_ROWS = slice(0, _N_RULE), slice(COMMON_ROWS.stop, N_EXPERT)
"""Where the columns of each rule lie in the matrix of sums."""

EVALUATED_ROWS = slice(COMMON_ROWS.start + EXPERT_COMMON.index("evaluated"), COMMON_ROWS.stop)
"""Of the scored forecasts."""

LEARNT_ROWS = slice(EXPERT_RULE.index("regret"), _N_RULE + EXPERT_COMMON.index("scored") + 1)
"""What weights are read from: of the first rule, and common."""


def expert_column(name: str, vote_rule: VoteRule = "half") -> int:
    """Row of an expert column in the matrix of sums."""
    if name in EXPERT_COMMON:
        return COMMON_ROWS.start + EXPERT_COMMON.index(name)
    return RULE_ROWS[VOTE_RULES.index(vote_rule)].start + EXPERT_RULE.index(name)


def feed_column(name: str, vote_rule: VoteRule = "half") -> int:
    """Position of a feed column in the vector of sums."""
    if name in FEED_COMMON:
        return FEED_COMMON.index(name)
    number = VOTE_RULES.index(vote_rule)
    of_rules = len(FEED_COMMON) + len(FEED_RULE) * number
    if name in FEED_DEPENDENCE:
        return _N_ESTIMATED + len(FEED_DEPENDENCE) * number + FEED_DEPENDENCE.index(name)
    if name in FEED_CLASS:
        return len(FEED_COMMON) + 2 * len(FEED_RULE) + FEED_CLASS.index(name)
    if name in FEED_VARIANT:
        return N_FEED - len(FEED_VARIANT) + FEED_VARIANT.index(name)
    return of_rules + FEED_RULE.index(name)


def expert_columns(first: str, last: str, vote_rule: VoteRule = "half") -> slice:
    """Rows from one expert column to another, both included."""
    return slice(expert_column(first, vote_rule), expert_column(last, vote_rule) + 1)


def feed_columns(first: str, last: str, vote_rule: VoteRule = "half") -> slice:
    """Positions from one feed column to another, both included."""
    return slice(feed_column(first, vote_rule), feed_column(last, vote_rule) + 1)


_EVALUATIONS = feed_columns("evaluated", "median_squared")


def fixed(values: FloatArray, weight: float) -> IntArray:
    """Values times a weight, in units of 2^-40. The values are overwritten: many of them would have to be copied."""
    values *= weight * SCALE
    return np.rint(values, out=values).astype(np.int64)


class Binned(NamedTuple):
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


class Evaluated(NamedTuple):
    """The experts of a scored forecast, who may be others than those of the rounds as they stand now.

    Attributes
    ----------
    experts : (n,) int32
    columns : (2, n) int64
        Those of ``EVALUATED_ROWS``.
    """

    experts: IndexArray
    columns: IntArray


class Contribution(NamedTuple):
    """What a question adds to the sums of its feed.

    Attributes
    ----------
    experts : (n,) int32
        Indices of the experts that it concerns, each once.
    columns : (k, n) int64
        Those to which it adds something.
    feed : (N_FEED,) int64
    rows : (k,) int64
        Which columns they are: rows of the matrix of sums.
    binned : Binned, optional
        The forecasts, where histograms are kept.
    evaluated : Evaluated, optional
        The experts of the scored forecast, where it counts.
    shadows : tuple of (int, (7,) int64)
        Columns of shadows, by their numbers.
    """

    experts: IndexArray
    columns: IntArray
    feed: IntArray
    rows: IntArray
    binned: Binned | None = None
    evaluated: Evaluated | None = None
    shadows: tuple[tuple[int, IntArray], ...] = ()


NOTHING = Contribution(
    np.zeros(0, np.int32), np.zeros((0, 0), np.int64), np.zeros(N_FEED, np.int64), np.zeros(0, np.int64)
)


class Sums:
    """The sums of one feed: a vector for it, a matrix (columns by experts), histograms of forecasts, and of shadows.

    The histograms, experts by bins, have no rows while nothing was ever put into them. ``shadows`` holds a vector for
    each shadow that something was put in of.
    """

    def __init__(self, n_experts: int = 0) -> None:
        self.feed: IntArray = np.zeros(N_FEED, np.int64)
        self.matrix: IntArray = np.zeros((N_EXPERT, n_experts), np.int64)
        self.histograms: IntArray = np.zeros((0, BINS), np.int64)
        self.shadows: dict[int, IntArray] = {}
        self.version = 0  # how often something was added or taken out: readings know by it that they are stale

    def reserve(self, n_experts: int) -> None:
        """Have room for at least that many experts."""
        room = self.matrix.shape[1]
        if n_experts > room:
            matrix = np.zeros((N_EXPERT, max(n_experts, 2 * room, 16)), np.int64)
            matrix[:, :room] = self.matrix
            self.matrix = matrix

    def add(self, part: Contribution) -> None:
        """Put a question in."""
        self._fold(part, np.add)

    def subtract(self, part: Contribution) -> None:
        """Take a question out."""
        self._fold(part, np.subtract)

    def _fold(self, part: Contribution, operation: np.ufunc) -> None:
        self.version += 1
        operation(self.feed, part.feed, out=self.feed)
        cells = np.add.outer(part.rows * self.matrix.shape[1], part.experts)
        operation.at(self.matrix.reshape(-1), cells.reshape(-1), part.columns.reshape(-1))
        if part.evaluated:
            rows = self.matrix[EVALUATED_ROWS]
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
        if not self.feed[_EVALUATIONS].any():
            return NOTHING
        feed = np.zeros(N_FEED, np.int64)
        feed[_EVALUATIONS] = self.feed[_EVALUATIONS]
        now = np.arange(self.matrix.shape[1], dtype=np.int32) if places is None else places
        stay = np.flatnonzero(now >= 0)
        evaluated = Evaluated(now[stay], self.matrix[EVALUATED_ROWS][:, stay])
        return NOTHING._replace(feed=feed, evaluated=evaluated, shadows=tuple(self.shadows.items()))

    def _reserve_bins(self) -> None:
        rows, room = len(self.histograms), self.matrix.shape[1]
        if rows < room:
            self.histograms = np.concatenate((self.histograms, np.zeros((room - rows, BINS), np.int64)))

    def read(self, experts: IndexArray, rows: slice = slice(0, N_EXPERT)) -> FloatArray:
        """Columns of some experts as numbers, (``rows.stop``, n); those before ``rows`` are 0."""
        found = np.zeros((rows.stop, len(experts)))
        wanted = found[rows]
        wanted[:] = self.matrix[rows].take(experts, axis=1)
        wanted *= UNIT
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
        twin.feed = self.feed.copy()
        twin.matrix = self.matrix.copy()
        twin.histograms = self.histograms.copy()
        twin.shadows = dict(self.shadows)  # vectors are replaced, never changed
        return twin

    def equals(self, other: "Sums") -> bool:
        """Whether all columns and histograms agree, bit for bit; room for more experts does not matter."""
        return (
            bool((self.feed == other.feed).all())
            and _equal(self.matrix.T, other.matrix.T)
            and _equal(self.histograms, other.histograms)
            and self.shadows.keys() == other.shadows.keys()
            and all(np.array_equal(columns, other.shadows[shadow]) for shadow, columns in self.shadows.items())
        )

    def is_zero(self) -> bool:
        """Whether nothing has been put in."""
        return not (self.feed.any() or self.matrix.any() or self.histograms.any() or self.shadows)

    def to_bytes(self, n_experts: int) -> bytes:
        """Stored form, little-endian; empty if nothing has been put in."""
        if self.is_zero():
            return b""
        self.reserve(n_experts)  # some may have been added since anything was put in
        matrix = np.ascontiguousarray(self.matrix[:, :n_experts])
        parts = [self.feed, matrix, *([self.all_histograms()[:n_experts]] if self.histograms.any() else [])]
        parts += [np.array([shadow, *self.shadows[shadow]], np.int64) for shadow in sorted(self.shadows)]
        counts = (n_experts, len(self.shadows))
        return b"".join([_COUNTS.pack(*counts), *(part.astype("<i8").tobytes() for part in parts)])

    @classmethod
    def from_bytes(cls, data: bytes, n_experts: int) -> "Sums":
        """Sums of ``to_bytes``. Experts may have been added since: there is room for ``n_experts``."""
        sums = cls(n_experts)
        if data:
            stored, n_shadows = _COUNTS.unpack_from(data)
            numbers = np.frombuffer(data, "<i8", offset=_COUNTS.size).astype(np.int64)
            end = N_FEED + N_EXPERT * stored
            numbers, shadows = np.split(numbers, [len(numbers) - n_shadows * (1 + N_SHADOW)])
            sums.shadows = {int(row[0]): row[1:] for row in shadows.reshape(-1, 1 + N_SHADOW)}
            sums.feed = numbers[:N_FEED].copy()
            sums.matrix[:, :stored] = numbers[N_FEED:end].reshape(N_EXPERT, -1)
            sums.histograms = numbers[end:].reshape(-1, BINS).copy()
        return sums


def _equal(one: IntArray, other: IntArray) -> bool:
    """Whether two arrays of rows agree; the longer one may have rows of zeros more."""
    common = min(len(one), len(other))
    return np.array_equal(one[:common], other[:common]) and not one[common:].any() and not other[common:].any()

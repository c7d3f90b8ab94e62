"""The ledger: one entry a question, and what an entry adds to the sums.

The question is the unit. Over its rounds the quantities of a round are averaged first; then come absolute values,
squares and products; then the question's weight. So forty rounds of one question are no more evidence than one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.engine.facts import Facts, Head, Stack, boundary_of, stacked, unpack
from stream_peer.engine.method import Method
from stream_peer.engine.sums import (
    EXPERT_COMMON,
    FEED_COMMON,
    N_EXPERT,
    N_FEED,
    NOTHING,
    VOTES,
    Contribution,
    IndexArray,
    expert_column,
    fixed,
)
from stream_peer.events.feed_log import Verdict
from stream_peer.events.times import Milliseconds
from stream_peer.numerics.losses import FloatArray

_RULE = len(EXPERT_COMMON)
_VARIANCE = expert_column("variance")
_FEED_RULE = len(FEED_COMMON)
_OWN = slice(Head._fields.index("own_answer"), Head._fields.index("published_answer"))
_SINGLE = [Head._fields.index(name) for name in ("counts", "rate_zero", "rate_one", "spread", "mean")]
_PUBLISHED = slice(_OWN.stop, Head._fields.index("spread"))


class Entry:
    """What is known of a question: its weight, the evidence for its outcome, and the facts of its rounds.

    ``rounds`` holds packed facts, ordered by boundary; ``touched`` is the record time of its last news, ``pieces``
    the number of state records that it was last stored in.
    """

    __slots__ = ("evidence", "pieces", "rounds", "touched", "weight")

    def __init__(
        self,
        weight: float = 1.0,
        evidence: Verdict = "open",
        rounds: tuple[bytes, ...] = (),
        touched: Milliseconds = 0,
    ) -> None:
        self.weight = weight
        self.evidence: Verdict = evidence
        self.rounds = rounds
        self.touched = touched
        self.pieces = 0

    def put(self, facts: Facts) -> None:
        """Add a round, or replace the one of the same boundary."""
        kept = [packed for packed in self.rounds if boundary_of(packed) != facts.head.boundary]
        self.rounds = tuple(sorted([*kept, facts.pack()], key=boundary_of))

    def drop(self, boundary: Milliseconds) -> bool:
        """Remove a round; False if there was none."""
        kept = tuple(packed for packed in self.rounds if boundary_of(packed) != boundary)
        found = len(kept) < len(self.rounds)
        self.rounds = kept
        return found

    def facts(self) -> list[Facts]:
        """Facts of all rounds, by boundary."""
        return [unpack(packed) for packed in self.rounds]

    def latest(self) -> Facts | None:
        """Facts of the round with the latest boundary."""
        return unpack(self.rounds[-1]) if self.rounds else None

    def encode(self) -> bytes:
        """Stored form."""
        return msgspec.msgpack.encode((self.weight, self.evidence, self.touched, self.rounds))

    @classmethod
    def decode(cls, data: bytes) -> "Entry":
        """Entry of ``encode``."""
        weight, evidence, touched, rounds = _decode_entry(data)
        return cls(weight, evidence, rounds, touched)


_decode_entry = msgspec.msgpack.Decoder(tuple[float, Verdict, Milliseconds, tuple[bytes, ...]]).decode


def contribution(entry: Entry, method: Method) -> Contribution:
    """What a question adds to the sums, given its facts and the evidence for its outcome.

    A pure function: the same facts and evidence give the same bits, whatever happened before.
    """
    if not entry.rounds or entry.evidence == "annulled":
        return NOTHING
    return contribution_of(stacked(entry.rounds), entry.evidence, entry.weight, method)


def contribution_of(stack: Stack, evidence: Verdict, weight: float, method: Method) -> Contribution:
    """``contribution`` of facts that are at hand, of one round at least; not for annulled questions."""
    terms = _terms(stack)
    if evidence == "open":
        experts, rows = _averaged(stack, _peer_rows(stack, terms, method))
        columns, feed = _peer_columns(rows, weight), _feed_columns(stack, None, weight)
    else:
        outcome = 1 if evidence == 1 else 0
        experts, rows = _averaged(stack, _truth_rows(stack, terms, outcome, method))
        columns, feed = _truth_columns(rows), _feed_columns(stack, outcome, weight)
    return Contribution(experts, fixed(columns, weight), fixed(feed, weight))


class _Terms(NamedTuple):
    """Numbers of the round that each forecast belongs to; plain numbers if there is one round only."""

    counts: float | FloatArray
    rate_zero: float | FloatArray
    rate_one: float | FloatArray
    spread: float | FloatArray
    mean: float | FloatArray
    own: Sequence[float] | FloatArray
    published: Sequence[float] | FloatArray


def _terms(stack: Stack) -> _Terms:
    if len(stack.heads) == 1:
        (h,) = stack.heads
        own = h.own_answer, h.own_one, h.own_zero
        published = h.published_answer, h.published_one, h.published_zero
        return _Terms(h.counts, h.rate_zero, h.rate_one, h.spread, h.mean, own, published)
    sizes = [head.n_experts for head in stack.heads]
    numbers = np.repeat(np.array(stack.heads, dtype=np.float64), sizes, axis=0)
    counts, rate_zero, rate_one, spread, mean = numbers[:, _SINGLE].T
    return _Terms(counts, rate_zero, rate_one, spread, mean, numbers[:, _OWN], numbers[:, _PUBLISHED])


def _averaged(stack: Stack, rows: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Rows averaged over the rounds, 0 where an expert was absent; and the experts they belong to."""
    n_rounds = len(stack.heads)
    if n_rounds == 1:
        return stack.experts, rows
    experts, columns = np.unique(stack.experts, return_inverse=True)
    cells = np.repeat(np.arange(n_rounds), [head.n_experts for head in stack.heads]) * len(experts) + columns
    table = np.zeros(n_rounds * len(experts))
    by_round = table.reshape(n_rounds, -1)
    means = np.empty((len(rows), len(experts)))
    for row, mean in zip(rows, means, strict=True):
        table[cells] = row
        np.add.reduce(by_round, axis=0, out=mean)
    means /= n_rounds
    return experts, means


def _peer_rows(stack: Stack, terms: _Terms, method: Method) -> FloatArray:
    """Without outcome, for each forecast; ordered as ``_peer_columns`` reads them."""
    p = stack.forecasts
    rows = np.zeros((15, len(p)))
    if_one, if_zero = rows[1], rows[2]
    if_one[:], if_zero[:] = method.losses(p)
    rows[0] = np.where(stack.answers, if_one, if_zero)
    rows[3] = 1.0
    np.subtract(terms.own, rows[:3].T, out=rows[4:7].T)
    rows[7] = _mix_rows(stack, terms.mean, rows[8:10])
    np.subtract(terms.published, rows[:3].T, out=rows[10:13].T)
    rows[13] = rows[4] - terms.rate_zero * rows[5] - terms.rate_one * rows[6]
    rows[14] = terms.spread + (1.0 - 2.0 * stack.select) * np.abs(if_one - if_zero)
    rows *= terms.counts
    return rows


def _mix_rows(stack: Stack, mean: float | FloatArray, level_and_slope: FloatArray) -> FloatArray:
    """Fill in 2b(b - p) and 2(b - p), b the plain mean, and return 2(b - p)·ŷ."""
    slope = level_and_slope[1]
    np.multiply(2.0, mean - stack.forecasts, out=slope)
    np.multiply(mean, slope, out=level_and_slope[0])
    answer: FloatArray = slope * stack.answers
    return answer


def _peer_columns(rows: FloatArray, weight: float) -> FloatArray:
    """Columns of a question without outcome: loss parts and count, regrets, mixers, certificate."""
    columns = np.zeros((N_EXPERT, rows.shape[1]))
    columns[_RULE : _RULE + 8] = rows[:8]
    columns[_RULE + 8 : _RULE + 11] = rows[10:13]
    columns[_VARIANCE] = np.square(rows[14]) * (0.25 * weight)
    columns[_ABSOLUTE] = np.abs(rows[13])
    columns[_LEVEL : _SLOPE + 1] = rows[8:10]
    return columns


def _truth_rows(stack: Stack, terms: _Terms, outcome: int, method: Method) -> FloatArray:
    """With the outcome, for each forecast; ordered as ``_truth_columns`` reads them."""
    rows = np.zeros((8, len(stack.forecasts)))
    rows[0] = method.losses(stack.forecasts)[1 - outcome]
    rows[1] = 1.0
    against = 1 if outcome else 2
    rows[2] = np.asarray(terms.own)[..., against] - rows[0]
    rows[4] = np.asarray(terms.published)[..., against] - rows[0]
    rows[7] = _mix_rows(stack, terms.mean, rows[5:7])
    rows[3] = rows[5] - outcome * rows[6] - 0.125 * np.square(rows[6])
    rows[5:8] *= terms.counts
    return rows


def _truth_columns(rows: FloatArray) -> FloatArray:
    """Columns of a question with its outcome: loss and count, regrets, mixers."""
    columns = np.zeros((N_EXPERT, rows.shape[1]))
    columns[0:3] = rows[0:3]
    columns[_ABSOLUTE] = np.abs(rows[2])
    columns[_LEVEL : _SLOPE + 1] = rows[5:7]
    columns[_MIX_REGRET] = rows[3]
    columns[_MIX_ABSOLUTE] = np.abs(rows[3])
    columns[_TRUE_REGRET] = rows[4]
    columns[_MIX_ANSWER] = rows[7]
    return columns


_ABSOLUTE, _LEVEL, _SLOPE = (expert_column(name) for name in ("absolute_regret", "mix_level", "mix_slope"))
_MIX_REGRET, _MIX_ABSOLUTE = expert_column("mix_regret"), expert_column("mix_absolute")
_TRUE_REGRET, _MIX_ANSWER = expert_column("true_regret"), expert_column("mix_answer")


def _feed_columns(stack: Stack, outcome: int | None, weight: float) -> FloatArray:
    """Columns of the feed: counts, outer layer, stretch, safety net; moments, votes, truth table."""
    heads = stack.heads
    counting = [head for head in heads if head.counts]
    share, means = len(counting) / len(heads), _means(heads)
    counts = [share if outcome is None else 1.0, float(outcome is not None), 1.0, means.voters / VOTES]
    values = counts + [0.0] * (N_FEED - len(counts))
    if counting:
        of_counting = means if len(counting) == len(heads) else _means(counting)
        values[_FEED_RULE : _FEED_RULE + 9] = _moments(of_counting, share, weight)
    if outcome is not None:
        values[len(counts) : _FEED_RULE] = _mixer_columns(means, outcome)
        ones = _share_of_ones(stack)
        cell = _FEED_RULE + 9 + 2 * outcome
        values[cell : cell + 2] = (ones, 1.0 - ones) if outcome else (1.0 - ones, ones)
    return np.array(values)


def _means(heads: Sequence[Head]) -> Head:
    """The mean of each number over the rounds."""
    if len(heads) == 1:
        return heads[0]
    means = np.add.reduce(np.array(heads, dtype=np.float64), axis=0) / len(heads)
    return Head._make(means.tolist())


def _share_of_ones(stack: Stack) -> float:
    """How many of the experts' own reference answers are 1: the mean over the rounds of the share in each."""
    sizes = np.array([head.n_experts for head in stack.heads])
    starts = np.add.accumulate(sizes) - sizes
    ones = np.add.reduceat(stack.answers, starts, dtype=np.int64)
    return float(np.add.reduce(ones / sizes)) / len(sizes)


def _moments(means: Head, share: float, weight: float) -> list[float]:
    """Moments of the votes over the rounds that count, and their votes; ``share`` of all rounds they are."""
    pair, rest = means.pair, means.rest
    moments = (1.0, weight * share, pair, rest, pair * pair, rest * rest, pair * rest)
    return [share * number for number in (*moments, means.yes / VOTES, means.voters / VOTES)]


def _mixer_columns(means: Head, outcome: int) -> list[float]:
    """Outer layer, stretch and safety net of a question with its outcome."""
    mean, mix, unguarded = means.mean, means.mix, means.unguarded
    peer, slow, fast = means.peer - mean, means.truth_slow - mean, means.truth_fast - mean
    error, centred = outcome - mean, mix - 0.5
    difference = (unguarded - outcome) * (unguarded - outcome) - error * error
    return [
        *(peer * peer, peer * slow, peer * fast, slow * slow, slow * fast, fast * fast),
        *(peer * error, slow * error, fast * error),
        *((outcome - mix) * centred, centred * centred),
        *(difference, difference * difference),
    ]

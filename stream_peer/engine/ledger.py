"""The ledger: one entry a question, and what an entry adds to the sums.

The question is the unit. Over its rounds the quantities of a round are averaged first; then come absolute values,
squares and products; then the question's weight. So forty rounds of one question are no more evidence than one.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from stream_peer.engine.facts import Facts, boundary_of, unpack
from stream_peer.engine.sums import (
    EXPERT_COMMON,
    FEED_COMMON,
    N_EXPERT,
    N_FEED,
    NOTHING,
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
        kept = [packed for packed in self.rounds if boundary_of(packed) != facts.boundary]
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


def contribution(entry: Entry) -> Contribution:
    """What a question adds to the sums, given its facts and the evidence for its outcome.

    A pure function: the same facts and evidence give the same bits, whatever happened before.
    """
    if not entry.rounds or entry.evidence == "annulled":
        return NOTHING
    return contribution_of(entry.facts(), entry.evidence, entry.weight)


def contribution_of(rounds: Sequence[Facts], evidence: Verdict, weight: float) -> Contribution:
    """``contribution`` of facts that are at hand; ``rounds`` are ordered by boundary, at least one."""
    if evidence == "open":
        experts, rows = _averaged(rounds, _peer_rows)
        columns, feed = _peer_columns(rows, weight), _feed_columns(rounds, None, weight)
    else:
        outcome = 1 if evidence == 1 else 0
        experts, rows = _averaged(rounds, lambda facts: _truth_rows(facts, outcome))
        columns, feed = _truth_columns(rows), _feed_columns(rounds, outcome, weight)
    return Contribution(experts, fixed(columns, weight), fixed(feed, weight))


def _averaged(rounds: Sequence[Facts], rows_of: Callable[[Facts], FloatArray]) -> tuple[IndexArray, FloatArray]:
    """Rows averaged over the rounds, 0 where an expert was absent; and the experts they belong to."""
    if len(rounds) == 1:
        return rounds[0].experts, rows_of(rounds[0])
    experts = np.unique(np.concatenate([facts.experts for facts in rounds]))
    total: FloatArray | None = None
    for facts in rounds:
        rows = rows_of(facts)
        if total is None:
            total = np.zeros((len(rows), len(experts)))
        total[:, np.searchsorted(experts, facts.experts)] += rows
    assert total is not None  # noqa: S101 - there is at least one round
    return experts, total / len(rounds)


def _peer_rows(facts: Facts) -> FloatArray:
    """Of one round without outcome, per expert; ordered as ``_peer_columns`` reads them."""
    rows = np.zeros((15, len(facts.experts)))
    if not facts.counts:
        return rows
    p = facts.forecasts
    loss, if_one, if_zero = rows[0], rows[1], rows[2]
    np.square(1.0 - p, out=if_one)
    np.square(p, out=if_zero)
    loss[:] = np.where(facts.answers, if_one, if_zero)
    rows[3] = 1.0
    np.subtract(facts.own, rows[:3].T, out=rows[4:7].T)
    rows[7] = _mix_rows(facts, rows[8:10])
    np.subtract(facts.published, rows[:3].T, out=rows[10:13].T)
    rows[13] = rows[4] - facts.rate_zero * rows[5] - facts.rate_one * rows[6]
    rows[14] = facts.spread + (1.0 - 2.0 * facts.select) * np.abs(if_one - if_zero)
    return rows


def _mix_rows(facts: Facts, level_and_slope: FloatArray) -> FloatArray:
    """Fill in 2b(b - p) and 2(b - p), and return 2(b - p)·ŷ."""
    slope = level_and_slope[1]
    np.multiply(2.0, facts.mean - facts.forecasts, out=slope)
    np.multiply(facts.mean, slope, out=level_and_slope[0])
    answer: FloatArray = slope * facts.answers
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


def _truth_rows(facts: Facts, outcome: int) -> FloatArray:
    """Of one round with its outcome, per expert; ordered as ``_truth_columns`` reads them."""
    rows = np.zeros((8, len(facts.experts)))
    np.square(outcome - facts.forecasts, out=rows[0])
    rows[1] = 1.0
    own, published = (facts.own.one, facts.published.one) if outcome else (facts.own.zero, facts.published.zero)
    rows[2] = own - rows[0]
    rows[4] = published - rows[0]
    answer = _mix_rows(facts, rows[5:7])
    rows[3] = rows[5] - outcome * rows[6] - 0.125 * np.square(rows[6])
    if facts.counts:
        rows[7] = answer
    else:
        rows[5:7] = 0.0
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


def _feed_columns(rounds: Sequence[Facts], outcome: int | None, weight: float) -> FloatArray:
    """Columns of the feed: counts, outer layer, stretch, safety net; moments, votes, truth table."""
    counting = [facts for facts in rounds if facts.counts]
    share = len(counting) / len(rounds)
    voters = _mean([facts.voters for facts in rounds])
    counts = [share, 0.0, 1.0, voters] if outcome is None else [1.0, 1.0, 1.0, voters]
    values = counts + [0.0] * (N_FEED - len(counts))
    if counting:
        values[_FEED_RULE : _FEED_RULE + 9] = _moments(counting, share, weight)
    if outcome is not None:
        values[4:_FEED_RULE] = _mixer_columns(rounds, outcome)
        ones = _mean([float(np.add.reduce(facts.answers, dtype=np.int64)) / len(facts.answers) for facts in rounds])
        cell = _FEED_RULE + 9 + 2 * outcome
        values[cell : cell + 2] = (ones, 1.0 - ones) if outcome else (1.0 - ones, ones)
    return np.array(values)


def _moments(counting: Sequence[Facts], share: float, weight: float) -> list[float]:
    """Moments of the votes over the rounds that count, and their votes; ``share`` of all rounds they are."""
    pair, rest = _mean([facts.pair for facts in counting]), _mean([facts.rest for facts in counting])
    yes, votes = _mean([facts.yes for facts in counting]), _mean([facts.voters for facts in counting])
    moments = (1.0, weight * share, pair, rest, pair * pair, rest * rest, pair * rest, yes, votes)
    return [share * moment for moment in moments]


def _mixer_columns(rounds: Sequence[Facts], outcome: int) -> list[float]:
    """Outer layer, stretch and safety net of a question with its outcome."""
    mean = _mean([facts.mean for facts in rounds])
    peer = _mean([facts.peer for facts in rounds]) - mean
    slow = _mean([facts.truth_slow for facts in rounds]) - mean
    fast = _mean([facts.truth_fast for facts in rounds]) - mean
    mix = _mean([facts.mix for facts in rounds])
    unguarded = _mean([facts.unguarded for facts in rounds])
    error, centred = outcome - mean, mix - 0.5
    difference = (unguarded - outcome) * (unguarded - outcome) - error * error
    return [
        *(peer * peer, peer * slow, peer * fast, slow * slow, slow * fast, fast * fast),
        *(peer * error, slow * error, fast * error),
        *((outcome - mix) * centred, centred * centred),
        *(difference, difference * difference),
    ]


def _mean(values: Sequence[float]) -> float:
    """Plain mean. Not ``sum``: from Python 3.12 on that compensates, and the bits would depend on the version."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)

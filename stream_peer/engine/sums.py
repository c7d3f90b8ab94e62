"""Sums over questions: whole numbers in units of 2^-40, so that adding and taking out is exact in any order.

A question's share is a ``Contribution``: a column vector for the feed and one for each expert that it concerns. The
columns have names; those that depend on reference answers or votes exist once per vote rule, behind the common ones.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from stream_peer.numerics.losses import FloatArray, IntArray

IndexArray: TypeAlias = npt.NDArray[np.int32]

SCALE = 2.0**40
UNIT = 2.0**-40

VOTES = 1024
"""Votes are counted in units of so many, since a question may add thousands: a feed has room for 8 billion."""

VOTE_RULES = ("half",)

EXPERT_COMMON = (
    "outcome_loss",  # loss against the outcome, where it is known
    "resolved",  # questions with an outcome
    "outcome_regret",  # regret of the learner's weights against this expert, by the outcome
    "absolute_regret",  # its absolute values, priced at the rates of the time while there is no outcome
    "mix_level",  # 2b(b - p), b the plain mean
    "mix_slope",  # 2(b - p)
    "mix_regret",  # regret of the plain mean by the outcome, less its known curvature
    "mix_absolute",
    "true_regret",  # regret of the published weights by the outcome
)
EXPERT_RULE = (
    "loss",  # loss against the leave-one-out reference answer
    "loss_if_one",
    "loss_if_zero",
    "scored",  # questions without an outcome
    "regret",
    "regret_if_one",
    "regret_if_zero",
    "mix_answer",  # 2(b - p) times the reference answer
    "published_regret",
    "published_regret_if_one",
    "published_regret_if_zero",
    "variance",  # (weight × mean spread)² / 4, of the certificate
)
FEED_COMMON = (
    "questions",
    "resolved",
    "asked",  # questions with rounds, whether they count or not
    "voters",  # in units of VOTES, as are yes and votes
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
)
FEED_RULE = (
    "moment_weight",
    "moment_weight2",
    "pair",
    "rest",
    "pair2",
    "rest2",
    "pair_rest",
    "yes",
    "votes",
    "right_zero",  # reference answers by outcome
    "wrong_zero",
    "right_one",
    "wrong_one",
)

N_EXPERT = len(EXPERT_COMMON) + len(EXPERT_RULE) * len(VOTE_RULES)
N_FEED = len(FEED_COMMON) + len(FEED_RULE) * len(VOTE_RULES)


def expert_column(name: str, vote_rule: str = "half") -> int:
    """Row of an expert column in the matrix of sums."""
    if name in EXPERT_COMMON:
        return EXPERT_COMMON.index(name)
    return len(EXPERT_COMMON) + len(EXPERT_RULE) * VOTE_RULES.index(vote_rule) + EXPERT_RULE.index(name)


def feed_column(name: str, vote_rule: str = "half") -> int:
    """Position of a feed column in the vector of sums."""
    if name in FEED_COMMON:
        return FEED_COMMON.index(name)
    return len(FEED_COMMON) + len(FEED_RULE) * VOTE_RULES.index(vote_rule) + FEED_RULE.index(name)


def fixed(values: FloatArray, weight: float) -> IntArray:
    """Values times a weight, in units of 2^-40."""
    return np.rint(values * (weight * SCALE)).astype(np.int64)


class Contribution(NamedTuple):
    """What a question adds to the sums of its feed.

    Attributes
    ----------
    experts : (n,) int32
        Indices of the experts that it concerns, each once.
    columns : (N_EXPERT, n) int64
    feed : (N_FEED,) int64
    """

    experts: IndexArray
    columns: IntArray
    feed: IntArray


NOTHING = Contribution(np.zeros(0, np.int32), np.zeros((N_EXPERT, 0), np.int64), np.zeros(N_FEED, np.int64))


class Sums:
    """The sums of one feed: a vector for the feed and a matrix, columns by experts."""

    def __init__(self, n_experts: int = 0) -> None:
        self.feed: IntArray = np.zeros(N_FEED, np.int64)
        self.matrix: IntArray = np.zeros((N_EXPERT, n_experts), np.int64)

    def reserve(self, n_experts: int) -> None:
        """Have room for at least that many experts."""
        room = self.matrix.shape[1]
        if n_experts > room:
            matrix = np.zeros((N_EXPERT, max(n_experts, 2 * room, 16)), np.int64)
            matrix[:, :room] = self.matrix
            self.matrix = matrix

    def add(self, part: Contribution) -> None:
        """Put a question in."""
        self.feed += part.feed
        self.matrix[:, part.experts] += part.columns

    def subtract(self, part: Contribution) -> None:
        """Take a question out."""
        self.feed -= part.feed
        self.matrix[:, part.experts] -= part.columns

    def read(self, experts: IndexArray) -> FloatArray:
        """Columns of some experts as numbers, (N_EXPERT, n)."""
        return self.matrix.take(experts, axis=1).astype(np.float64) * UNIT

    def copy(self) -> "Sums":
        """Sums of their own with the same values."""
        twin = Sums()
        twin.feed = self.feed.copy()
        twin.matrix = self.matrix.copy()
        return twin

    def equals(self, other: "Sums") -> bool:
        """Whether all columns agree, bit for bit; room for more experts does not matter."""
        common = min(self.matrix.shape[1], other.matrix.shape[1])
        return (
            bool((self.feed == other.feed).all())
            and bool((self.matrix[:, :common] == other.matrix[:, :common]).all())
            and not self.matrix[:, common:].any()
            and not other.matrix[:, common:].any()
        )

    def is_zero(self) -> bool:
        """Whether nothing has been put in."""
        return not self.feed.any() and not self.matrix.any()

    def to_bytes(self, n_experts: int) -> bytes:
        """Stored form, little-endian; empty if nothing has been put in."""
        if self.is_zero():
            return b""
        matrix = np.ascontiguousarray(self.matrix[:, :n_experts])
        return self.feed.astype("<i8").tobytes() + matrix.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, n_experts: int) -> "Sums":
        """Sums of ``to_bytes``. Experts may have been added since: there is room for ``n_experts``."""
        sums = cls(n_experts)
        if data:
            numbers = np.frombuffer(data, "<i8").astype(np.int64)
            sums.feed = numbers[:N_FEED].copy()
            matrix = numbers[N_FEED:].reshape(N_EXPERT, -1)
            sums.matrix[:, : matrix.shape[1]] = matrix
        return sums

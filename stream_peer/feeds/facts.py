"""Facts: what was computed for a round when it was scored. They are history; no later outcome changes them."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.method import Method
from stream_peer.feeds.shadow_mixers import ShadowForecast, unpack_shadows
from stream_peer.feeds.sums import IndexArray
from stream_peer.numerics.losses import FloatArray, SmallIntArray
from stream_peer.numerics.losses.arguments import unchecked
from stream_peer.numerics.references import votes

_HEADER = struct.Struct("<qBBBBBBiiiii32d")

Bits = npt.NDArray[np.uint8]
NOBODY = -1
"""Who was selected in a scored forecast, if that expert was erased."""
_CAST = np.uint8(12)
"""Where a vote is in the byte of an expert, behind answer and tie: 1, 3 for -1, 0 for none."""


class Head(NamedTuple):
    """The numbers of a round.

    Attributes
    ----------
    boundary : int
        The round's moment.
    rule : int
        Number of the vote rule.
    counts : int
        1 if there were voters enough by the vote rule for the round to count while no outcome is known, else 0.
    final : int
        1 if the boundary was the close of the question, else 0.
    answer, tie : int
        The published reference answer, the majority of everybody; 1 if it was a tie.
    groups : int
        Answers of the groups, as ``OwnAnswers.coded``.
    half_voters, half_yes : int
        Votes at ½, as published, and those for yes.
    voters : int
        Independent votes by the vote rule: those of a team are one.
    selected : int
        Position among those present of the expert that was drawn from ``select``.
    n_experts : int
        How many were present.
    rate_zero, rate_one : float
        The error rates that priced.
    own_answer, own_one, own_zero : float
        Weighted means of the losses against the own reference answers, against 1 and against 0, under the
        learner's own selection weights.
    published_answer, published_one, published_zero : float
        The same under the published ones.
    spread : float
        Weighted mean of the distance between ℓ(p, 1) and ℓ(p, 0), under the published weights.
    pair, rest : float
        Moments of the votes by the vote rule.
    ones : float
        Share of the experts' own reference answers that are 1, a team counting once.
    class_first, class_second, class_third, class_answer, class_both : float
        Those of the vote count, where each class has a rate; else, or with fewer than three voters, all -1.
    mean, peer, truth_slow, truth_fast : float
        The mixers' forecasts.
    unguarded, mix, stretched : float
        The mixed forecast before the safety net, as published, and stretched.
    median, logit_mean : float
        Of the forecasts.
    gap : float
        Mixability gap, for AdaHedge only.
    vote_first, vote_second, vote_third, vote_fourth : float
        Moments of the votes for yes, by the vote rule; with fewer than four voters all -1.
    block : float
        Number of the block that these moments of the question go to.
    """

    boundary: Milliseconds
    rule: int
    counts: int
    final: int
    answer: int
    tie: int
    groups: int
    half_voters: int
    half_yes: int
    voters: int
    selected: int
    n_experts: int
    rate_zero: float
    rate_one: float
    own_answer: float
    own_one: float
    own_zero: float
    published_answer: float
    published_one: float
    published_zero: float
    spread: float
    pair: float
    rest: float
    ones: float
    class_first: float
    class_second: float
    class_third: float
    class_answer: float
    class_both: float
    mean: float
    peer: float
    truth_slow: float
    truth_fast: float
    unguarded: float
    mix: float
    stretched: float
    median: float
    logit_mean: float
    gap: float
    vote_first: float
    vote_second: float
    vote_third: float
    vote_fourth: float
    block: float


class Facts(NamedTuple):
    """What was computed for a round.

    Its numbers; and of each expert present, sorted by id: index, forecast, published selection weight, own
    (leave-one-out) reference answer, whether that was a tie, and the vote by the rule in force (None stands for those
    at 1/2). ``losses`` (3, n) are ``Method.losses``, as long as they are at hand: they are not stored. ``shadows``:
    what shadows said.
    """

    head: Head
    experts: IndexArray
    forecasts: FloatArray
    select: FloatArray
    answers: Bits
    ties: Bits
    losses: FloatArray | None = None
    cast: SmallIntArray | None = None
    shadows: tuple[ShadowForecast, ...] = ()

    def alone(self) -> "Stack":
        """As the only round of its question."""
        shadows = (self.shadows,) if self.shadows else ()
        return Stack([self.head], *self[1:7], shadows=shadows)

    def pack(self) -> bytes:
        """Stored form: a header, 21 bytes an expert, and ``SHADOW_BYTES`` a shadow."""
        return b"".join(
            (
                _HEADER.pack(*self.head),
                self.experts.astype("<i4", copy=False).tobytes(),
                self.forecasts.astype("<f8", copy=False).tobytes(),
                self.select.astype("<f8", copy=False).tobytes(),
                (self.answers | (self.ties << 1) | (cast_of(self).view(np.uint8) << 2 & _CAST)).tobytes(),
                *(shadow.pack() for shadow in self.shadows),
            )
        )


class Stack(NamedTuple):
    """Facts of all rounds of a question, by boundary, those of the experts one behind the other.

    ``shadows``: what shadows said of each round; empty if there were none in any.
    """

    heads: Sequence[Head]
    experts: IndexArray
    forecasts: FloatArray
    select: FloatArray
    answers: Bits
    ties: Bits
    losses: FloatArray | None = None
    cast: SmallIntArray | None = None
    shadows: Sequence[tuple[ShadowForecast, ...]] = ()


def losses_of(known: Facts | Stack, method: Method) -> FloatArray:
    """``Method.losses`` of facts, computed anew if need be."""
    return method.losses(known.forecasts, known.answers) if known.losses is None else known.losses


def cast_of(facts: Facts) -> SmallIntArray:
    """The votes of a round by the rule that was in force: +1, -1, 0 for none."""
    return unchecked(votes)(facts.forecasts) if facts.cast is None else facts.cast


def stacked(rounds: Sequence[bytes]) -> Stack:
    """Facts of several rounds from their stored form, bit for bit."""
    heads = [Head._make(_HEADER.unpack_from(packed)) for packed in rounds]
    counted = [(packed, head.n_experts) for packed, head in zip(rounds, heads, strict=True)]
    start = _HEADER.size
    experts = b"".join([packed[start : start + 4 * n] for packed, n in counted])
    forecasts = b"".join([packed[start + 4 * n : start + 12 * n] for packed, n in counted])
    select = b"".join([packed[start + 12 * n : start + 20 * n] for packed, n in counted])
    bits = np.frombuffer(b"".join([packed[start + 20 * n : start + 21 * n] for packed, n in counted]), np.uint8)
    shadows = [packed[start + 21 * n :] for packed, n in counted]
    return Stack(
        heads,
        np.frombuffer(experts, "<i4"),
        np.frombuffer(forecasts, "<f8"),
        np.frombuffer(select, "<f8"),
        np.bitwise_and(bits, 1),
        np.bitwise_and(np.right_shift(bits, 1), 1),
        cast=((bits >> 2 & 3 ^ 2) - np.uint8(2)).view(np.int8),
        shadows=[unpack_shadows(packed) for packed in shadows] if any(shadows) else (),
    )


def unpack(packed: bytes) -> Facts:
    """Facts of one round from their stored form, bit for bit."""
    stack = stacked([packed])
    return Facts(stack.heads[0], *stack[1:8], shadows=stack.shadows[0] if stack.shadows else ())


def head_of(packed: bytes) -> Head:
    """The numbers of a round from the stored form of its facts."""
    return Head._make(_HEADER.unpack_from(packed))


def boundary_of(packed: bytes) -> Milliseconds:
    """The boundary of facts in their stored form."""
    return int.from_bytes(packed[:8], "little", signed=True)

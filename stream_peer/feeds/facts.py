"""Facts: what was computed for a round when it was scored. They are history; no later outcome changes them.

They come in four named parts: votes, losses, mix and moments. What there is not is None; only the stored form, in
``pack`` and ``unpack``, has numbers that stand for it.
"""

import struct
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.shadow_mixers import ShadowForecast, unpack_shadows
from stream_peer.feeds.sums import IndexArray
from stream_peer.numerics.arguments import FloatArray, SmallIntArray

Bits = npt.NDArray[np.uint8]
LossMeans: TypeAlias = tuple[float, float, float]
"""Weighted means of the losses of a round: against the experts' own reference answers, against 1 and against 0."""

_HEADER = struct.Struct("<qBBBBBBiiiii32d")
_MIX = struct.Struct("<9d")
_BEFORE_MIX = _HEADER.size - 8 * 15
_INDEX, _NUMBER = np.dtype("<i4"), np.dtype("<f8")
_NOBODY = -1
"""Stored in place of the selected expert's position, if that expert was erased."""
_NO_CLASSES, _NO_FOURTH = (-1.0,) * 5, (-1.0,) * 4
"""Stored in place of moments that there are not: the moments themselves are never negative."""
_CAST = np.uint8(12)
"""Where a vote is in the byte of an expert, behind answer and tie: 1, 3 for -1, 0 for none."""


class Votes(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The votes of a round, and the published reference answer.

    Attributes
    ----------
    rule : int
        Number of the vote rule.
    counts : bool
        Whether there were voters enough by the vote rule for the round to count while no outcome is known.
    answer, tie : int, bool
        The published reference answer, the majority of everybody; whether it was a tie.
    groups : int
        Answers of the groups, as ``OwnAnswers.coded``.
    half_voters, half_yes : int
        Votes at ½, as published, and those for yes.
    voters : int
        Independent votes by the vote rule: those of a team are one.
    """

    rule: int
    counts: bool
    answer: int
    tie: bool
    groups: int
    half_voters: int
    half_yes: int
    voters: int


class Losses(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Mean losses of a round, and the error rates that priced them.

    Attributes
    ----------
    rate_zero, rate_one : float
        The error rates.
    own, published : (float, float, float)
        Mean losses under the learner's own selection weights, and under the published ones.
    spread : float
        Weighted mean of the distance between ℓ(p, 1) and ℓ(p, 0), under the published weights.
    gap : float
        Mixability gap, for AdaHedge only; else 0.
    """

    rate_zero: float
    rate_one: float
    own: LossMeans
    published: LossMeans
    spread: float
    gap: float


class Mix(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The combined forecasts of a round.

    Attributes
    ----------
    mean, peer, truth_slow, truth_fast : float
        The mixers' forecasts.
    unguarded, mix, stretched : float
        The mixed forecast before the safety net, as published, and stretched.
    median, logit_mean : float
        Of the forecasts.
    """

    mean: float
    peer: float
    truth_slow: float
    truth_fast: float
    unguarded: float
    mix: float
    stretched: float
    median: float
    logit_mean: float


class Moments(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Moments of the votes by the vote rule, from which error rates are estimated.

    Attributes
    ----------
    pair, rest : float
        How the votes agree with each other, and with the reference answers of the others.
    ones : float
        Share of the experts' own reference answers that are 1, a team counting once.
    classes : five floats, optional
        ``ClassMomentTerms`` of the vote count, where each class has a rate; None with fewer than three voters.
    fourth : four floats, optional
        ``VoteMoments`` of the votes for yes; None with fewer than four voters.
    block : int
        Number of the block that these four of the question go to.
    """

    pair: float
    rest: float
    ones: float
    classes: tuple[float, float, float, float, float] | None
    fourth: tuple[float, float, float, float] | None
    block: int


class Facts(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What was computed for a round.

    Attributes
    ----------
    boundary : int
        The round's moment.
    final : bool
        Whether the boundary was the close of the question.
    votes, losses, mix, moments
        The named parts.
    selected : int or None
        Position among those present of the expert that was drawn from ``select``; None if that one was erased.
    experts : (n,) int32
        Indices of those present, sorted by id; the arrays below are in the same order.
    forecasts : (n,) float64
    select : (n,) float64
        Published selection weights.
    answers : (n,) uint8
        Own (leave-one-out) reference answers.
    ties : (n,) uint8
        Whether those were ties.
    cast : (n,) int8
        Votes by the rule in force: +1, -1, 0 for none.
    expert_losses : (3, n) float64, optional
        ``Method.losses``. They are not stored: None of facts that were unpacked.
    shadows : tuple of ShadowForecast
        What shadows said.
    """

    boundary: Milliseconds
    final: bool
    votes: Votes
    losses: Losses
    mix: Mix
    moments: Moments
    selected: int | None
    experts: IndexArray
    forecasts: FloatArray
    select: FloatArray
    answers: Bits
    ties: Bits
    cast: SmallIntArray
    expert_losses: FloatArray | None = None
    shadows: tuple[ShadowForecast, ...] = ()

    def pack(self) -> bytes:
        """Stored form: a header, 21 bytes an expert, and ``SHADOW_BYTES`` a shadow."""
        bits = self.answers | (self.ties << 1) | (self.cast.view(np.uint8) << 2 & _CAST)
        arrays = (
            self.experts.astype(_INDEX, copy=False),
            self.forecasts.astype(_NUMBER, copy=False),
            self.select.astype(_NUMBER, copy=False),
            bits,
        )
        parts = [_HEADER.pack(*self._numbers()), *[array.tobytes() for array in arrays]]
        return b"".join([*parts, *[shadow.pack() for shadow in self.shadows]])

    def _numbers(self) -> tuple[float, ...]:
        """The header's fields, in the order in which they are stored."""
        votes, losses, moments = self.votes, self.losses, self.moments
        return (
            *(self.boundary, votes.rule, votes.counts, self.final, votes.answer, votes.tie, votes.groups),
            *(votes.half_voters, votes.half_yes, votes.voters),
            _NOBODY if self.selected is None else self.selected,
            *(len(self.experts), losses.rate_zero, losses.rate_one, *losses.own, *losses.published, losses.spread),
            *(moments.pair, moments.rest, moments.ones),
            *(_NO_CLASSES if moments.classes is None else moments.classes),
            *astuple(self.mix),
            losses.gap,
            *(_NO_FOURTH if moments.fourth is None else moments.fourth),
            moments.block,
        )


def unpack(packed: bytes) -> Facts:
    """Facts of a round from their stored form, bit for bit."""
    h = _HEADER.unpack_from(packed)
    n, start = h[11], _HEADER.size
    bits = np.frombuffer(packed, np.uint8, n, start + 20 * n)
    shadows = packed[start + 21 * n :]
    return Facts(
        h[0],
        bool(h[3]),
        Votes(h[1], bool(h[2]), h[4], bool(h[5]), *h[6:10]),
        Losses(h[12], h[13], h[14:17], h[17:20], h[20], h[38]),
        Mix(*h[29:38]),
        Moments(h[21], h[22], h[23], None if h[24] < 0.0 else h[24:29], None if h[42] < 0.0 else h[39:43], int(h[43])),
        None if h[10] == _NOBODY else h[10],
        np.frombuffer(packed, _INDEX, n, start),
        np.frombuffer(packed, _NUMBER, n, start + 4 * n),
        np.frombuffer(packed, _NUMBER, n, start + 12 * n),
        np.bitwise_and(bits, 1),
        np.bitwise_and(np.right_shift(bits, 1), 1),
        ((bits >> 2 & 3 ^ 2) - np.uint8(2)).view(np.int8),
        None,
        unpack_shadows(shadows) if shadows else (),
    )


def losses_of(facts: Facts, method: Method) -> FloatArray:
    """``Method.losses`` of facts, computed again if need be."""
    return method.losses(facts.forecasts, facts.answers) if facts.expert_losses is None else facts.expert_losses


def mix_of(packed: bytes) -> Mix:
    """The combined forecasts of a round from the stored form of its facts."""
    return Mix(*_MIX.unpack_from(packed, _BEFORE_MIX))


def boundary_of(packed: bytes) -> Milliseconds:
    """The boundary of facts in their stored form."""
    return int.from_bytes(packed[:8], "little", signed=True)

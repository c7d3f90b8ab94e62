"""Facts: what was computed for a round when it was scored. They are history; no later outcome changes them."""

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stream_peer.engine.readings import ExpertWeights, Mixing
from stream_peer.engine.sums import IndexArray
from stream_peer.events.times import Milliseconds
from stream_peer.numerics.error_rates import moment_terms
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.mixers import stretched
from stream_peer.numerics.references import leave_one_out, majority, votes

_HEADER = struct.Struct("<qBBBBiiii18d")

Bits = npt.NDArray[np.uint8]


class Weighted(NamedTuple):
    """Weighted means over the experts present of the losses against the own reference answers, against 1 and 0."""

    answer: float
    one: float
    zero: float


class Facts(NamedTuple):
    """What was computed for a round.

    Attributes
    ----------
    boundary : int
        The round's moment.
    rule : int
        Number of the vote rule.
    counts : bool
        Whether there were voters enough for the round to count while no outcome is known.
    answer, tie
        The published reference answer: the majority of everybody.
    voters, yes : int
        Votes, and those above ½.
    selected : int
        Position among those present of the expert that was drawn from ``select``.
    rate_zero, rate_one : float
        The error rates that priced.
    own, published : Weighted
        Under the learner's own selection weights, and under the published ones.
    spread : float
        Weighted mean of the distance between ℓ(p, 1) and ℓ(p, 0), under the published weights.
    pair, rest : float
        Moments of the votes.
    mean, peer, truth_slow, truth_fast : float
        The mixers' forecasts.
    unguarded, mix, stretched : float
        The mixed forecast before the safety net, as published, and stretched.
    experts, forecasts, select, answers, ties
        Of those present, sorted by expert id: index, forecast, published selection weight, own (leave-one-out)
        reference answer, and whether that was a tie.
    """

    boundary: Milliseconds
    rule: int
    counts: bool
    answer: int
    tie: bool
    voters: int
    yes: int
    selected: int
    rate_zero: float
    rate_one: float
    own: Weighted
    published: Weighted
    spread: float
    pair: float
    rest: float
    mean: float
    peer: float
    truth_slow: float
    truth_fast: float
    unguarded: float
    mix: float
    stretched: float
    experts: IndexArray
    forecasts: FloatArray
    select: FloatArray
    answers: Bits
    ties: Bits

    def pack(self) -> bytes:
        """Stored form: a header and 21 bytes an expert."""
        header = _HEADER.pack(
            self.boundary,
            self.rule,
            self.counts,
            self.answer,
            self.tie,
            self.voters,
            self.yes,
            self.selected,
            len(self.experts),
            self.rate_zero,
            self.rate_one,
            *self.own,
            *self.published,
            *self[_FIRST_SCALAR:_LAST_SCALAR],
        )
        return b"".join(
            (
                header,
                self.experts.astype("<i4", copy=False).tobytes(),
                self.forecasts.astype("<f8", copy=False).tobytes(),
                self.select.astype("<f8", copy=False).tobytes(),
                (self.answers | (self.ties << 1)).tobytes(),
            )
        )


_FIRST_SCALAR, _LAST_SCALAR = Facts._fields.index("spread"), Facts._fields.index("experts")


def unpack(data: bytes) -> Facts:
    """Facts from their stored form, bit for bit."""
    boundary, rule, counts, answer, tie, voters, yes, selected, n, *scalars = _HEADER.unpack_from(data)
    start = _HEADER.size
    bits = np.frombuffer(data, np.uint8, n, start + 20 * n)
    own, published = Weighted(*scalars[2:5]), Weighted(*scalars[5:8])
    head = boundary, rule, bool(counts), answer, bool(tie), voters, yes, selected, *scalars[:2], own, published
    arrays = (
        np.frombuffer(data, "<i4", n, start),
        np.frombuffer(data, "<f8", n, start + 4 * n),
        np.frombuffer(data, "<f8", n, start + 12 * n),
        bits & 1,
        bits >> 1,
    )
    return Facts._make((*head, *scalars[8:], *arrays))


def boundary_of(data: bytes) -> Milliseconds:
    """The boundary of facts in their stored form."""
    return int.from_bytes(data[:8], "little", signed=True)


class Circumstances(NamedTuple):
    """What a round is scored under: all that is not in the round itself.

    Attributes
    ----------
    weights, mixing, net_share
        Read off the sums without the question's own share in them.
    rate_zero, rate_one : float
        Error rates that price.
    min_experts : int
        Voters that a round needs to count.
    stretch : bool
        Whether the published forecast may be stretched.
    coin : int
        The answer where nothing else decides.
    ticket : float
        In [0, 1): draws the selected expert.
    """

    weights: ExpertWeights
    mixing: Mixing
    net_share: float
    rate_zero: float
    rate_one: float
    min_experts: int
    stretch: bool
    coin: int
    ticket: float


def score(boundary: Milliseconds, experts: IndexArray, forecasts: FloatArray, under: Circumstances) -> Facts:
    """Facts of a round whose experts are sorted by id."""
    others = leave_one_out(forecasts, under.coin)
    everybody = majority(forecasts, under.coin)
    answers = others.answers.astype(np.uint8)
    terms = moment_terms(votes(forecasts), others.answers)
    select = under.weights.select
    weighted, spread = _weighted(select, forecasts, answers)
    mixers, unguarded, mix = _mixed(forecasts, under)
    return Facts(
        boundary=boundary,
        rule=0,
        counts=everybody.voters >= under.min_experts,
        answer=int(everybody.answer),
        tie=bool(everybody.tie),
        voters=int(everybody.voters),
        yes=int(everybody.yes),
        selected=_drawn(select, under.ticket),
        rate_zero=under.rate_zero,
        rate_one=under.rate_one,
        own=weighted,
        published=weighted,
        spread=spread,
        pair=terms.pair if terms else 0.0,
        rest=terms.rest if terms else 0.0,
        mean=mixers[0],
        peer=mixers[1],
        truth_slow=mixers[2],
        truth_fast=mixers[3],
        unguarded=unguarded,
        mix=mix,
        stretched=stretched(mix, under.mixing.stretch if under.stretch else 0.0),
        experts=experts,
        forecasts=forecasts,
        select=select,
        answers=answers,
        ties=others.ties.astype(np.uint8),
    )


def _weighted(select: FloatArray, forecasts: FloatArray, answers: Bits) -> tuple[Weighted, float]:
    if_one, if_zero = (1.0 - forecasts) ** 2, forecasts**2
    against = np.where(answers, if_one, if_zero)
    means = Weighted(*(float(np.add.reduce(select * loss)) for loss in (against, if_one, if_zero)))
    return means, float(np.add.reduce(select * np.abs(if_one - if_zero)))


def _mixed(forecasts: FloatArray, under: Circumstances) -> tuple[list[float], float, float]:
    """The mixers' forecasts, and the mixed one before and after the safety net."""
    mean = float(np.add.reduce(forecasts)) / len(forecasts)
    _, peer, slow, fast = under.weights
    mixers = [mean, *(float(np.add.reduce(weights * forecasts)) for weights in (peer, slow, fast))]
    unguarded = 0.0
    for share, forecast in zip(under.mixing.shares, mixers, strict=True):
        unguarded += share * forecast
    return mixers, unguarded, (1.0 - under.net_share) * unguarded + under.net_share * mean


def _drawn(select: FloatArray, ticket: float) -> int:
    """Position of the expert on which a draw from the weights falls."""
    heights = np.cumsum(select)
    return min(int(np.searchsorted(heights, ticket * heights[-1], side="right")), len(select) - 1)

"""Facts of a round: what is computed when it is scored, under weights and error rates that do not know its question.

They are history; no later outcome changes them. They come in four named parts: votes, losses, mix and moments. What
there is not is None; only the stored form, in ``pack`` and ``unpack``, has numbers that stand for it.
"""

import struct
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple, replace

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.medians import Medians
from stream_peer.feeds.methods.method import NOTHING_DRAWN, Chance, Gap, Method, OwnAnswers
from stream_peer.feeds.reading.weights import (
    ExpertWeights,
    Mixing,
    mixed,
    mixing_weights,
    published_mix,
    selection_published,
    shared_by_groups,
    with_net,
)
from stream_peer.feeds.shadow_mixers import SHADOW_BYTES, ShadowForecast, ShadowReading, unpack_shadows
from stream_peer.feeds.vote_units import Groups, united
from stream_peer.numerics.agreement import CrossAgreement, cross_agreement
from stream_peer.numerics.answers import MajorityAnswer, majority_of, votes
from stream_peer.numerics.arguments import FloatArray, IndexArray, IntArray, SmallIntArray, unchecked
from stream_peer.numerics.dependence.fourth_moment import moments_of_counts, vote_moments_of_teams
from stream_peer.numerics.error_rates.class_moments import class_terms_of
from stream_peer.numerics.error_rates.moments import VoteCounts, agreement_of, vote_counts
from stream_peer.numerics.error_rates.team_votes import (
    agreement_of_teams,
    class_terms_of_teams,
    share_of_ones,
    team_votes,
)
from stream_peer.numerics.mixers import logit_mean, median
from stream_peer.numerics.outer_layer import stretched
from stream_peer.numerics.peer_losses import unit_peer_loss

_votes, _stretched = unchecked(votes), unchecked(stretched)
_median, _logit_mean = unchecked(median), unchecked(logit_mean)

MixerForecasts: TypeAlias = tuple[float, float, float, float]
"""Of the plain mean, and of the mixers ``peer``, ``truth_slow`` and ``truth_fast``."""

Bits = npt.NDArray[np.uint8]
LossMeans: TypeAlias = tuple[float, float, float]
"""Weighted means of the losses of a round: against the experts' own reference answers, against 1 and against 0."""

_HEADER = struct.Struct("<qBBBBBBiiiii32d")
_MIX = struct.Struct("<9d")
_AGREEMENT = struct.Struct("<3dx")  # a byte more, or it would be as long as a shadow
_BEFORE_MIX = _HEADER.size - 8 * 15
_INDEX, _NUMBER = np.dtype("<i4"), np.dtype("<f8")
_NOBODY = -1
"""Stored in place of the selected expert's position, if that expert was erased."""
_NO_CLASSES, _NO_FOURTH = (-1.0,) * 5, (-1.0,) * 4
"""Stored in place of moments that there are not: the moments themselves are never negative."""
_CAST = np.uint8(12)
"""Where a vote is in the byte of an expert, behind answer and tie: 1, 3 for -1, 0 for none."""
_OTHERWISE = 4
"""The bit behind it: whether the answer at ½, from which the mixers learn, is the other one."""


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
    before_net, mix, stretched : float
        The mixed forecast before the safety net, as published, and stretched.
    median, logit_mean : float
        Of the forecasts.
    """

    mean: float
    peer: float
    truth_slow: float
    truth_fast: float
    before_net: float
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
    subsample : int
        Number of the subsample that these four of the question go to.
    """

    pair: float
    rest: float
    ones: float
    classes: tuple[float, float, float, float, float] | None
    fourth: tuple[float, float, float, float] | None
    subsample: int


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
    agreement : CrossAgreement, optional
        How mix and mean agree with the other experts, where the method asks for it and two voters stood in the round.
    mixer_answers : (n,) uint8, optional
        Own reference answers by votes at ½, from which the mixers learn, where they differ from ``answers``.
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
    agreement: CrossAgreement | None = None
    mixer_answers: Bits | None = None

    def pack(self) -> bytes:
        """Stored form: a header, 21 bytes an expert, ``SHADOW_BYTES`` a shadow, and the agreement if there is one."""
        bits = self.answers | (self.ties << 1) | (self.cast.view(np.uint8) << 2 & _CAST)
        if self.mixer_answers is not None:
            bits |= (self.answers ^ self.mixer_answers) << _OTHERWISE
        arrays = (
            self.experts.astype(_INDEX, copy=False).tobytes(),
            self.forecasts.astype(_NUMBER, copy=False).tobytes(),
            self.select.astype(_NUMBER, copy=False).tobytes(),
            bits.tobytes(),
        )
        votes, losses, moments = self.votes, self.losses, self.moments
        header = _HEADER.pack(
            *(self.boundary, votes.rule, votes.counts, self.final, votes.answer, votes.tie, votes.groups),
            *(votes.half_voters, votes.half_yes, votes.voters),
            _NOBODY if self.selected is None else self.selected,
            *(len(self.experts), losses.rate_zero, losses.rate_one, *losses.own, *losses.published, losses.spread),
            *(moments.pair, moments.rest, moments.ones),
            *(_NO_CLASSES if moments.classes is None else moments.classes),
            *astuple(self.mix),
            losses.gap,
            *(_NO_FOURTH if moments.fourth is None else moments.fourth),
            moments.subsample,
        )
        agreement = b"" if self.agreement is None else _AGREEMENT.pack(*self.agreement)
        return b"".join((header, *arrays, *map(ShadowForecast.pack, self.shadows), agreement))


def unpack(packed: bytes) -> Facts:
    """Facts of a round from their stored form, bit for bit."""
    h = _HEADER.unpack_from(packed)
    n, start = h[11], _HEADER.size
    bits = np.frombuffer(packed, np.uint8, n, start + 20 * n)
    shadows, agreement = packed[start + 21 * n :], None
    if len(shadows) % SHADOW_BYTES == _AGREEMENT.size % SHADOW_BYTES:
        shadows, agreement = (
            shadows[: -_AGREEMENT.size],
            CrossAgreement(*_AGREEMENT.unpack(shadows[-_AGREEMENT.size :])),
        )
    answers, otherwise = np.bitwise_and(bits, 1), bits >> _OTHERWISE & 1
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
        answers,
        np.bitwise_and(np.right_shift(bits, 1), 1),
        ((bits >> 2 & 3 ^ 2) - np.uint8(2)).view(np.int8),
        None,
        unpack_shadows(shadows) if shadows else (),
        agreement,
        answers ^ otherwise if otherwise.any() else None,
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


# --- scoring ---


class ScoringInputs(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What a round is scored under: all that is not in the round itself.

    Attributes
    ----------
    weights, mixing, net_share
        Read off the sums without the question's own share in them.
    rule : int
        Number of the vote rule in force.
    thresholds : (n,) float64, optional
        Above which each forecast is a vote for yes; ½ without them.
    rate_zero, rate_one : float
        Error rates that price.
    min_experts : int
        Independent voters that a round needs to count.
    stretch : bool
        Whether the published forecast may be stretched.
    coin : int
        The answer where nothing else decides.
    ticket : float
        In [0, 1): draws the selected expert.
    chance : Chance
        What the method needs to have drawn besides.
    n_experts : int
        Experts seen.
    gaps : float
        Sum of the mixability gaps.
    teams : (n,) int64, optional
        Experts with equal numbers are in one team, those with negative ones in none; without them nobody is in any.
    subsample : int
        In 0 … 24: which part of the votes' moments the question belongs to; the same for all its rounds.
    shadows : ShadowReading, optional
        What shadows say, if there are any.
    shrink : float
        Share of uniform weights in the published selection weights.
    groups : Groups, optional
        Each votes once and shares one weight. Groups are parts of teams.
    steady : (n,) int64, optional
        With thresholds: the bins of `Medians.steady`.
    """

    weights: ExpertWeights
    mixing: Mixing
    net_share: float
    rule: int
    thresholds: FloatArray | None
    rate_zero: float
    rate_one: float
    min_experts: int
    stretch: bool
    coin: int
    ticket: float
    chance: Chance = NOTHING_DRAWN
    n_experts: int = 1
    gaps: float = 0.0
    teams: IntArray | None = None
    subsample: int = 0
    shadows: ShadowReading | None = None
    shrink: float = 0.0
    groups: Groups | None = None
    steady: IntArray | None = None


def score(
    boundary: Milliseconds,
    experts: IndexArray,
    forecasts: FloatArray,
    under: ScoringInputs,
    method: Method,
    *,
    final: bool = False,
) -> Facts:
    """Facts of a round whose experts are sorted by id; ``final``: the boundary is the question's close."""
    if under.thresholds is not None and under.steady is not None:
        under = replace(under, thresholds=Medians(under.thresholds, under.steady).lines(forecasts))
    cast = at_half = _votes(forecasts)
    counted = at_half_counted = _counted(at_half)
    if under.thresholds is not None:
        cast = _votes(forecasts, under.thresholds)
        counted = _counted(cast)
    everybody = _everybody(at_half, at_half_counted, forecasts, under)
    others = method.answers(cast, counted, forecasts, under)
    answers, ties = others.answers.view(np.uint8), others.ties.view(np.uint8)
    voters, moments = _moments(cast, counted, others, under, method)
    losses, weights = method.losses(forecasts, answers, others.alike), under.weights
    select = selection_published(weights.select, under.shrink, under.groups)
    published, spread, mixers = _weighted(forecasts, losses, weights, select)
    learnt = published if select is weights.select else _weighted(forecasts, losses, weights, weights.select)[0]
    own = _weighted(forecasts, losses, weights, _uniform(len(forecasts)))[0] if method.from_mean else learnt
    gap = 0.0 if method.gap is None else _gap(method.gap, losses, learnt, under)
    counts = voters >= under.min_experts and others.given
    of_all = everybody.answer, everybody.tie, others.coded, everybody.voters, everybody.yes
    return Facts(
        boundary,
        final,
        Votes(under.rule, counts, *of_all, voters),
        Losses(under.rate_zero, under.rate_one, own, published, spread, gap),
        _mix(forecasts, mixers, under),
        moments,
        _drawn(select, under.ticket),
        *(experts, forecasts, select, answers, ties, cast, losses),
        () if under.shadows is None else _shadows(under.shadows, forecasts, mixers, under),
        _agreement(forecasts, under) if method.trust_prior else None,
        _mixer_answers(at_half, at_half_counted, answers, forecasts, under, method),
    )


def _mixer_answers(
    at_half: SmallIntArray,
    counted: tuple[int, int],
    answers: Bits,
    forecasts: FloatArray,
    under: ScoringInputs,
    method: Method,
) -> Bits | None:
    """Own reference answers by votes at ½ where the mixers learn from these; None if they are ``answers``."""
    if under.thresholds is None or not method.mixes_at_half:
        return None
    found = method.answers(at_half, counted, forecasts, replace(under, thresholds=None)).answers.view(np.uint8)
    return None if np.array_equal(found, answers) else found


def _counted(cast: SmallIntArray) -> tuple[int, int]:
    """How many voted, and how many of them for yes."""
    return int(np.count_nonzero(cast)), int(np.count_nonzero(cast > 0))


def _everybody(
    at_half: SmallIntArray, counted: tuple[int, int], forecasts: FloatArray, under: ScoringInputs
) -> MajorityAnswer:
    """The published reference answer."""
    if under.groups is None:
        voters, yes = counted
        if yes + yes != voters:
            return MajorityAnswer(int(yes + yes > voters), tie=False, yes=yes, voters=voters)
        return majority_of(at_half, forecasts, under.coin)
    return united(at_half, forecasts, None, under.groups.numbers, None).majority(under.coin)


def _mix(forecasts: FloatArray, mixers: MixerForecasts, under: ScoringInputs) -> Mix:
    """The combined forecasts. The mean that the safety net falls back to is the plain one, whatever the groups."""
    if under.groups is None:
        before_net, mix = mixed(under.mixing.shares, mixers, under.net_share)
    else:
        shared = shared_by_groups(mixing_weights(under.weights, under.mixing, 0.0), under.groups)
        before_net, mix = with_net(float(np.add.reduce(shared * forecasts)), mixers[0], under.net_share)
    stretched = _stretched(mix, under.mixing.stretch if under.stretch else 0.0)
    return Mix(*mixers, before_net, mix, stretched, _median(forecasts), _logit_mean(forecasts))


def _agreement(forecasts: FloatArray, under: ScoringInputs) -> CrossAgreement | None:
    """How the mix and the mean agree with those who did not make them. Members of a group or team are one voter."""
    weights = published_mix(under.weights, under.mixing, under.net_share, under.groups)
    return unchecked(cross_agreement)(forecasts, weights, under.teams)


def _shadows(
    shadows: ShadowReading, forecasts: FloatArray, mixers: Sequence[float], under: ScoringInputs
) -> tuple[ShadowForecast, ...]:
    """What shadows say of the round."""
    if under.groups is None:
        return shadows.forecasts(forecasts, mixers, under.net_share)
    return shadows.shared_forecasts(forecasts, under.weights, under.groups, under.net_share)


def _gap(gap: Gap, losses: FloatArray, means: Sequence[float], under: ScoringInputs) -> float:
    """Mixability gap of the round at the rates of the time."""
    regrets = priced_regrets(losses, means, (under.rate_zero, under.rate_one))
    return gap(regrets, under.weights.select, under.n_experts, under.gaps)


def priced_regrets(losses: FloatArray, means: Sequence[float], rates: tuple[float, float]) -> FloatArray:
    """Regrets of a round against each expert, priced: means of the losses against answers, 1 and 0, less its own."""
    against, one, zero = (mean - loss for mean, loss in zip(means, losses, strict=True))
    regrets: FloatArray = unchecked(unit_peer_loss)(against, one, zero, *rates)
    return regrets


def _moments(
    cast: SmallIntArray, counted: tuple[int, int], others: OwnAnswers, under: ScoringInputs, method: Method
) -> tuple[int, Moments]:
    """How many vote independently by the rule in force, and the moments of their votes."""
    by_class = under.thresholds is not None or method.reads_classes or method.bounds_all
    classes: tuple[float, float, float, float, float] | None = None
    if under.teams is None:
        counts = _vote_counts(cast, counted, others)
        agreement, voters = agreement_of(counts), counts.voters
        classes = class_terms_of(counts) if by_class else None
        fourth = moments_of_counts(counts.yes, voters)
    else:
        found = unchecked(team_votes)(cast, others.answers, under.teams)
        agreement, voters = unchecked(agreement_of_teams)(found), found.voters
        classes = unchecked(class_terms_of_teams)(found) if by_class else None
        fourth = vote_moments_of_teams(found)
    if others.alike is not None and under.teams is None:
        ones = float(others.alike)
    else:
        ones = unchecked(share_of_ones)(others.answers, under.teams)
    return voters, Moments(*(agreement or (0.0, 0.0)), ones, classes, fourth, under.subsample)


def _vote_counts(cast: SmallIntArray, counted: tuple[int, int], others: OwnAnswers) -> VoteCounts:
    if others.alike is None:
        return vote_counts(cast, others.answers)
    voters, yes = counted
    return VoteCounts(voters, yes, voters * others.alike, yes * others.alike)


def _weighted(
    forecasts: FloatArray, losses: FloatArray, weights: ExpertWeights, select: FloatArray
) -> tuple[LossMeans, float, MixerForecasts]:
    """Weighted means, summed in one go.

    By the selection weights: of the losses against the own reference answers, 1 and 0; of the distance of the last two.
    Of the forecasts: plain, and by each mixer's weights.
    """
    parts = np.empty((8, len(forecasts)))
    parts[:3] = losses
    np.abs(np.subtract(losses[1], losses[2], out=parts[3]), out=parts[3])
    parts[:4] *= select
    parts[4] = forecasts
    np.multiply(weights.peer, forecasts, out=parts[5])
    np.multiply(weights.truth_slow, forecasts, out=parts[6])
    np.multiply(weights.truth_fast, forecasts, out=parts[7])
    sums: list[float] = np.add.reduce(parts, axis=1).tolist()
    return (sums[0], sums[1], sums[2]), sums[3], (sums[4] / len(forecasts), sums[5], sums[6], sums[7])


def _uniform(n_experts: int) -> FloatArray:
    return np.full(n_experts, 1.0 / n_experts)


def _drawn(select: FloatArray, ticket: float) -> int:
    """Position of the expert on which a draw from the weights falls."""
    heights = np.add.accumulate(select)
    return min(int(heights.searchsorted(ticket * heights[-1], side="right")), len(select) - 1)

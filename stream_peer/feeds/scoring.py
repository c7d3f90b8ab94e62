"""Scoring a round: its facts, under the weights and error rates of a moment at which its question was not known."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.alarms.groups import united
from stream_peer.feeds.facts import Facts, Losses, LossMeans, Mix, Moments, Votes
from stream_peer.feeds.medians import Medians
from stream_peer.feeds.methods.method import NOTHING_DRAWN, Chance, Method, OwnAnswers
from stream_peer.feeds.reading.weights import (
    ExpertWeights,
    Mixing,
    guarded,
    mixed,
    mixing_weights,
    selection_published,
    shared_by_groups,
)
from stream_peer.feeds.shadow_mixers import ShadowForecast, ShadowReading
from stream_peer.feeds.sums import IndexArray
from stream_peer.numerics.answers import MajorityAnswer, majority_of, votes
from stream_peer.numerics.arguments import FloatArray, IntArray, SmallIntArray, unchecked
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
    block : int
        In 0 … 24: which part of the votes' moments the question belongs to; the same for all its rounds.
    shadows : ShadowReading, optional
        What shadows say, if there are any.
    shrink : float
        Share of uniform weights in the published selection weights.
    groups : (n,) int64, optional
        Experts with equal numbers are one group, which votes once and shares one weight; negative: in none. Groups are
        parts of teams.
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
    block: int = 0
    shadows: ShadowReading | None = None
    shrink: float = 0.0
    groups: IntArray | None = None
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
    counts = voters >= under.min_experts and others.given
    of_all = everybody.answer, everybody.tie, others.coded, everybody.voters, everybody.yes
    return Facts(
        boundary,
        final,
        Votes(under.rule, counts, *of_all, voters),
        Losses(under.rate_zero, under.rate_one, own, published, spread, _gap(losses, learnt, under, method)),
        _mix(forecasts, mixers, under),
        moments,
        _drawn(select, under.ticket),
        *(experts, forecasts, select, answers, ties, cast, losses),
        _shadows(forecasts, mixers, under),
    )


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
    return united(at_half, forecasts, None, under.groups, None).majority(under.coin)


def _mix(forecasts: FloatArray, mixers: MixerForecasts, under: ScoringInputs) -> Mix:
    """The combined forecasts. The mean that the safety net falls back to is the plain one, whatever the groups."""
    if under.groups is None:
        unguarded, mix = mixed(under.mixing.shares, mixers, under.net_share)
    else:
        shared = shared_by_groups(mixing_weights(under.weights, under.mixing, 0.0), under.groups)
        unguarded, mix = guarded(float(np.add.reduce(shared * forecasts)), mixers[0], under.net_share)
    told = _stretched(mix, under.mixing.stretch if under.stretch else 0.0)
    return Mix(*mixers, unguarded, mix, told, _median(forecasts), _logit_mean(forecasts))


def _shadows(forecasts: FloatArray, mixers: Sequence[float], under: ScoringInputs) -> tuple[ShadowForecast, ...]:
    """What shadows say of the round."""
    if under.shadows is None:
        return ()
    if under.groups is None:
        return under.shadows.forecasts(forecasts, mixers, under.net_share)
    return under.shadows.shared_forecasts(forecasts, under.weights, under.groups, under.net_share)


def _gap(losses: FloatArray, means: Sequence[float], under: ScoringInputs, method: Method) -> float:
    """Mixability gap of the round at the rates of the time."""
    if method.gap is None:
        return 0.0
    regrets = priced_regrets(losses, means, (under.rate_zero, under.rate_one))
    return method.gap(regrets, under.weights.select, under.n_experts, under.gaps)


def priced_regrets(losses: FloatArray, means: Sequence[float], rates: tuple[float, float]) -> FloatArray:
    """Regrets of a round against each expert, priced: means of the losses against answers, 1 and 0, less its own."""
    against, one, zero = (mean - loss for mean, loss in zip(means, losses, strict=True))
    regrets: FloatArray = unchecked(unit_peer_loss)(against, one, zero, *rates)
    return regrets


def _moments(
    cast: SmallIntArray, counted: tuple[int, int], others: OwnAnswers, under: ScoringInputs, method: Method
) -> tuple[int, Moments]:
    """How many vote independently by the rule in force, and the moments of their votes."""
    by_class = under.thresholds is not None or method.reads_classes
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
    return voters, Moments(*(agreement or (0.0, 0.0)), ones, classes, fourth, under.block)


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

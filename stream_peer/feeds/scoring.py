"""Scoring a round: its facts, under the weights and error rates of a moment at which its question was not known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.alarms.groups import united
from stream_peer.feeds.facts import Facts, Head
from stream_peer.feeds.medians import Medians
from stream_peer.feeds.method import Method
from stream_peer.feeds.methods.variants import Chance, OwnAnswers, round_gap, variant_answers
from stream_peer.feeds.reading.readings import (
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
from stream_peer.numerics.dependence.fourth_moment import moments_of_counts, vote_moments_of_teams
from stream_peer.numerics.error_rates.class_moments import class_terms_of
from stream_peer.numerics.error_rates.moments import agreement_of
from stream_peer.numerics.error_rates.team_votes import (
    agreement_of_teams,
    class_terms_of_teams,
    share_of_ones,
    team_votes,
)
from stream_peer.numerics.error_rates.vote_counts import vote_counts
from stream_peer.numerics.losses import FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.losses.arguments import unchecked
from stream_peer.numerics.mixers import logit_mean, median, stretched
from stream_peer.numerics.peer_losses import unit_peer_loss
from stream_peer.numerics.references import votes
from stream_peer.numerics.references.majorities import MajorityAnswer, leave_one_out_of, majority_of

_NO_CLASSES = (-1.0,) * 5
_NO_FOURTH = (-1.0,) * 4


class Circumstances(NamedTuple):
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
    chance : Chance, optional
        What variants need to have drawn besides.
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
    chance: Chance | None = None
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
    under: Circumstances,
    method: Method,
    *,
    final: bool = False,
) -> Facts:
    """Facts of a round whose experts are sorted by id; ``final``: the boundary is the question's close."""
    if under.thresholds is not None and under.steady is not None:
        under = under._replace(thresholds=Medians(under.thresholds, under.steady).lines(forecasts))
    at_half = unchecked(votes)(forecasts)
    cast = at_half if under.thresholds is None else unchecked(votes)(forecasts, under.thresholds)
    everybody = _everybody(at_half, forecasts, under)
    others = own_answers(cast, forecasts, under, method)
    answers, ties = others.answers.view(np.uint8), others.ties.view(np.uint8)
    voters, moments, fourth = _votes(cast, others, under, method)
    losses, weights = method.losses(forecasts, answers), under.weights
    select = selection_published(weights.select, under.shrink, under.groups)
    weighted, spread, mixers = _weighted(forecasts, losses, weights._replace(select=select))
    learnt = _weighted(forecasts, losses, weights)[0] if select is not weights.select else weighted
    own = _weighted(forecasts, losses, _uniform(weights))[0] if method.is_paper else learnt
    unguarded, mix = _mixed(forecasts, mixers, under)
    numbers = (
        *(boundary, under.rule, int(voters >= under.min_experts and others.given), int(final)),
        *(everybody.answer, int(everybody.tie), others.coded, everybody.voters, everybody.yes, voters),
        *(_drawn(select, under.ticket), len(forecasts)),
        *(under.rate_zero, under.rate_one),
        *(*own, *weighted, spread),
        *moments[:2],
        unchecked(share_of_ones)(others.answers, under.teams),
        *moments[2:],
        *mixers,
        *(unguarded, mix, unchecked(stretched)(mix, under.mixing.stretch if under.stretch else 0.0)),
        *(unchecked(median)(forecasts), unchecked(logit_mean)(forecasts), _gap(losses, learnt, under, method)),
        *(*fourth, float(under.block)),
    )
    shadows = _shadows(forecasts, mixers, under)
    return Facts(Head._make(numbers), experts, forecasts, select, answers, ties, losses, cast, shadows)


def _everybody(at_half: SmallIntArray, forecasts: FloatArray, under: Circumstances) -> MajorityAnswer:
    """The published reference answer."""
    if under.groups is None:
        return majority_of(at_half, forecasts, under.coin)
    return united(at_half, forecasts, None, under.groups, None).majority(under.coin)


def _mixed(forecasts: FloatArray, mixers: Sequence[float], under: Circumstances) -> tuple[float, float]:
    """The mixed forecast before and after the safety net, whose mean is the plain one."""
    if under.groups is None:
        return mixed(under.mixing.shares, mixers, under.net_share)
    shared = shared_by_groups(mixing_weights(under.weights, under.mixing, 0.0), under.groups)
    return guarded(float(np.add.reduce(shared * forecasts)), mixers[0], under.net_share)


def _shadows(forecasts: FloatArray, mixers: Sequence[float], under: Circumstances) -> tuple[ShadowForecast, ...]:
    """What shadows say of the round."""
    if under.shadows is None:
        return ()
    if under.groups is None:
        return under.shadows.forecasts(forecasts, mixers, under.net_share)
    return under.shadows.shared_forecasts(forecasts, under.weights, under.groups, under.net_share)


def own_answers(cast: SmallIntArray, forecasts: FloatArray, under: Circumstances, method: Method) -> OwnAnswers:
    """The reference answer that each expert is scored against, given the votes by the rule in force."""
    if method.variant is not None and under.chance is not None:
        select = under.weights.select
        line, teams = under.thresholds, under.teams
        return variant_answers(forecasts, line, select, under.coin, under.chance, method.variant, teams)
    if under.groups is not None:
        units = united(cast, forecasts, under.thresholds, under.groups, under.teams)
        return OwnAnswers(*units.leave_one_out(under.coin))
    return OwnAnswers(*leave_one_out_of(cast, forecasts, under.coin, under.teams, under.thresholds))


def _gap(losses: FloatArray, means: Sequence[float], under: Circumstances, method: Method) -> float:
    """Mixability gap of the round at the rates of the time."""
    if method.variant is None or method.variant.learner != "ada-hedge":
        return 0.0
    regrets = priced_regrets(losses, means, (under.rate_zero, under.rate_one))
    return round_gap(regrets, under.weights.select, under.n_experts, under.gaps)


def priced_regrets(losses: FloatArray, means: Sequence[float], rates: tuple[float, float]) -> FloatArray:
    """Regrets of a round against each expert, priced: means of the losses against answers, 1 and 0, less its own."""
    against, one, zero = (mean - loss for mean, loss in zip(means, losses, strict=True))
    regrets: FloatArray = unchecked(unit_peer_loss)(against, one, zero, *rates)
    return regrets


def _votes(
    cast: SmallIntArray, others: OwnAnswers, under: Circumstances, method: Method
) -> tuple[int, tuple[float, ...], tuple[float, ...]]:
    """How many vote independently by the rule in force; moments of their votes for error rates; those to the fourth."""
    by_class = under.thresholds is not None or method.reads_classes
    if under.teams is None:
        counts = vote_counts(cast, others.answers)
        of_classes = class_terms_of(counts) if by_class else None
        rates_of = (*(agreement_of(counts) or (0.0, 0.0)), *(of_classes or _NO_CLASSES))
        return counts.voters, rates_of, moments_of_counts(counts.yes, counts.voters) or _NO_FOURTH
    found = unchecked(team_votes)(cast, others.answers, under.teams)
    of_classes = unchecked(class_terms_of_teams)(found) if by_class else None
    rates_of = (*(unchecked(agreement_of_teams)(found) or (0.0, 0.0)), *(of_classes or _NO_CLASSES))
    return found.voters, rates_of, vote_moments_of_teams(found) or _NO_FOURTH


def _weighted(
    forecasts: FloatArray, losses: FloatArray, weights: ExpertWeights
) -> tuple[list[float], float, list[float]]:
    """Weighted means, summed in one go.

    By the selection weights: of the losses against the own reference answers, 1 and 0; of the distance of the last two.
    Of the forecasts: plain, and by each mixer's weights.
    """
    parts = np.empty((8, len(forecasts)))
    parts[:3] = losses
    np.abs(np.subtract(losses[1], losses[2], out=parts[3]), out=parts[3])
    parts[:4] *= weights.select
    parts[4] = forecasts
    for part, of_mixer in zip(parts[5:], weights[1:], strict=True):
        np.multiply(of_mixer, forecasts, out=part)
    sums: list[float] = np.add.reduce(parts, axis=1).tolist()
    return sums[:3], sums[3], [sums[4] / len(forecasts), *sums[5:]]


def _uniform(weights: ExpertWeights) -> ExpertWeights:
    n_experts = len(weights.select)
    return weights._replace(select=np.full(n_experts, 1.0 / n_experts))


def _drawn(select: FloatArray, ticket: float) -> int:
    """Position of the expert on which a draw from the weights falls."""
    heights = np.add.accumulate(select)
    return min(int(heights.searchsorted(ticket * heights[-1], side="right")), len(select) - 1)

"""What is read off the sums: weights, the mixers' shares; and the weights as they are published.

Nothing of it is stored. A sum that was corrected gives, from then on, what it would have given all along.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.feeds.columns import EXPERT, FEED, UNIT, VOTE_RULES, expert_span
from stream_peer.feeds.methods.method import Method, Path, Situation
from stream_peer.feeds.reading.rates import OWN_MEDIAN, Rates
from stream_peer.feeds.vote_units import Groups
from stream_peer.numerics.agreement import peer_stretch
from stream_peer.numerics.answers import team_numbers
from stream_peer.numerics.arguments import BoolArray, FloatArray, IndexArray, unchecked
from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs, softmax
from stream_peer.numerics.mixers import peer_mixer_logs, truth_slow_logs, with_uniform_share
from stream_peer.numerics.outer_layer import outer_weights, stretch_factor
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss
from stream_peer.settings.feed.model import MixerSettings

DECIMALS = 12
"""To which weights are rounded before they are used or published: the last digits of exp differ between machines."""

_unit_peer_loss, _unbiased_peer_loss = unchecked(unit_peer_loss), unchecked(unbiased_peer_loss)
_stretch_factor = unchecked(stretch_factor)
_peer_stretch = unchecked(peer_stretch)
_outer_weights, _ada_normal_hedge = unchecked(outer_weights), unchecked(ada_normal_hedge)
_softmax = unchecked(softmax)
_ada_normal_hedge_logs = unchecked(ada_normal_hedge_logs)

_GAPS, _QUESTIONS = FEED.at("mixability_gap"), FEED.at("questions")
_SCORED, _RESOLVED = EXPERT.at("scored"), EXPERT.at("resolved")
_COUNTS = [_SCORED, _RESOLVED, EXPERT.at("evaluated")]
_OUTCOME_LOSS, _TRUE_REGRET = EXPERT.at("outcome_loss"), EXPERT.at("true_regret")
_OUTCOME_REGRET, _OUTCOME_ABSOLUTE = EXPERT.at("outcome_regret"), EXPERT.at("outcome_absolute")
_LOSSES = [EXPERT.span("loss", "loss_if_zero", rule) for rule in VOTE_RULES]
_MIX_REGRET, _COMPARED = EXPERT.at("mix_regret"), EXPERT.at("compared")
_EVALUATED_SQUARED = EXPERT.at("evaluated_squared")
_FAST_REGRET, _FAST_ABSOLUTE = EXPERT.at("fast_regret"), EXPERT.at("fast_absolute")

_REGRETS = [EXPERT.span("regret", "absolute_regret", rule) for rule in VOTE_RULES]
"""Regrets of each vote rule, and their absolute values."""


def rows_of(rules: Sequence[int]) -> slice:
    """Expert columns to be read for ``used_rules``. Those of the first range begin with row 0."""
    return slice(0, expert_span(OWN_MEDIAN).start if OWN_MEDIAN not in rules else EXPERT.size)


def learnt_rows_of(rules: Sequence[int]) -> slice:
    """Those of them that weights are read from."""
    of_half = EXPERT.span("regret", "scored")
    return slice(of_half.start, of_half.stop if OWN_MEDIAN not in rules else EXPERT.size)


class Mixing(msgspec.Struct, frozen=True, gc=False):
    """Shares of the mixers (plain mean, peer, slow and fast truth; they sum to 1), and the stretch."""

    shares: tuple[float, float, float, float]
    stretch: float


class PeerTrust(NamedTuple):
    """How much the agreement of experts counts. It moves with trust, see ``next_peer_trust``.

    Attributes
    ----------
    prior : float
        By which the prior share of the peer mixer is multiplied.
    stretch : float
        How much of the stretch counts that peers ask for.
    """

    prior: float = 0.0
    stretch: float = 0.0


def shares_key(feed_sums: Sequence[int]) -> Sequence[int]:
    """The sums of a feed that the shares of the mixers depend on, besides trust; only outcomes change them."""
    return feed_sums[FEED.span("peer_peer", "fast_error")]


def shares_of(
    key: Sequence[int], mixer: MixerSettings, method: Method, trust: PeerTrust
) -> tuple[float, float, float, float]:
    """Shares of the mixers; ``key``: the sums that they depend on, see ``shares_key``."""
    if not method.mixes:
        return 0.0, 1.0, 0.0, 0.0
    pp, ps, pf, ss, sf, ff, pe, se, fe = [amount * UNIT for amount in key]
    second = (pp, ps, pf), (ps, ss, sf), (pf, sf, ff)
    prior = mixer.prior_mean, mixer.prior_peer, mixer.prior_truth_slow, mixer.prior_truth_fast
    if method.trust_prior and mixer.trust_prior == "on":
        prior = _trusted_prior(prior, trust.prior)
    mean, peer, slow, fast = _outer_weights(second, (pe, se, fe), prior).round(DECIMALS).tolist()
    return mean, peer, slow, fast


LARGEST_PEER_PRIOR = 0.9
"""No trust gives the peer mixer a larger prior share, unless the settings do: else outcomes could take none away."""


def _trusted_prior(prior: tuple[float, float, float, float], factor: float) -> tuple[float, float, float, float]:
    """The priors with that of the peer mixer multiplied, and the others in proportion."""
    mean, peer, slow, fast = prior
    others = mean + slow + fast
    if not others:
        return prior
    trusted = min(factor * peer, max(LARGEST_PEER_PRIOR, peer))
    scale = (1.0 - trusted) / others
    return scale * mean, trusted, scale * slow, scale * fast


def stretch_of(feed_sums: Sequence[int], mixer: MixerSettings, method: Method, trust: PeerTrust) -> float:
    """The stretch that outcomes ask for, shrunk towards what peers ask for as far as they are trusted."""
    if not method.adjusts:
        return 0.0
    product, square = [amount * UNIT for amount in feed_sums[FEED.span("stretch_product", "stretch_square")]]
    by_peers = 0.0
    if trust.stretch and method.trust_prior and mixer.trust_prior == "on":
        rounds, level, cross, size, *means = [amount * UNIT for amount in feed_sums[FEED.span("agreed", "agreed_mix")]]
        by_peers = round(trust.stretch * _peer_stretch(rounds, level, cross, max(size, 0.0), *means), DECIMALS)
    return _stretch_factor(product, square, by_peers, method.stretch_shrinkage)


class ExpertWeights(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Weights over the experts present, each summing to 1: for following one, and those of the mixers."""

    select: FloatArray
    peer: FloatArray
    truth_slow: FloatArray
    truth_fast: FloatArray


class Extent(NamedTuple):
    """How much a feed has seen: experts with questions that count or present, such questions, and mixability gaps."""

    experts: int
    questions: float
    gaps: float


def read_extent(feed_sums: Sequence[int], n_experts: int) -> Extent:
    """How much a feed with so many experts has seen."""
    return Extent(n_experts, feed_sums[_QUESTIONS] * UNIT, max(feed_sums[_GAPS] * UNIT, 0.0))


def selection_sums(columns: FloatArray, rates: Sequence[Rates], loss_range: float) -> tuple[FloatArray, FloatArray]:
    """Regrets of the selection weights against each expert, and their absolute values, in units of ``loss_range``.

    The regrets of each vote rule are priced with its own newest rates and brought to the scale of the rule in force,
    the first: through the unbiased scale, on which outcomes are as well. Absolute values of outcomes are not
    scaled down, which makes the learner more careful.
    """
    distance = rates[0].distance / loss_range
    regrets = distance * columns[_OUTCOME_REGRET]
    absolute = columns[_OUTCOME_ABSOLUTE] / loss_range
    for of_rule in rates:
        scale = distance / of_rule.distance
        against, if_one, if_zero, size = columns[_REGRETS[of_rule.rule]]
        regrets += scale * _unit_peer_loss(against, if_one, if_zero, of_rule.zero, of_rule.one)
        absolute += scale * size
    return regrets, absolute


def _loss_range(rates: Sequence[Rates]) -> float:
    """That of the peer losses of the rule in force. Learners want losses whose range is 1."""
    return 1.0 + abs(rates[0].zero - rates[0].one)


def selection_weights(columns: FloatArray, rates: Sequence[Rates], seen: Extent, method: Method) -> FloatArray:
    """Weights for following one expert: the learner's, of regrets priced at the newest rates."""
    loss_range = _loss_range(rates)
    if method.select is not None:
        regrets, absolute = selection_sums(columns, rates, 1.0)
        return method.select(Situation(regrets, absolute, loss_range, *seen))
    return _ada_normal_hedge(*selection_sums(columns, rates, loss_range))


def read_weights(
    columns: FloatArray,
    rates: Sequence[Rates],
    seen: Extent,
    mixer: MixerSettings,
    method: Method,
    groups: Groups | None = None,
) -> ExpertWeights:
    """Weights of the experts whose columns are given, priced at the newest rates.

    ``rates``: of the vote rules that are used, that in force first. ``groups``: each has one voice in what is average.
    """
    if not method.mixes:
        select = selection_weights(columns, rates, seen, method).round(DECIMALS)
        return ExpertWeights(select, select, *_uniform(columns.shape[1]))
    weights = _softmax(_log_weights(columns, rates, mixer, groups, own_counts=method.own_counts))
    if method.select is not None:
        weights[0] = selection_weights(columns, rates, seen, method)
    if mixer.uniform_share:
        weights[1] = with_uniform_share(weights[1], mixer.uniform_share)
    select, peer, *from_truth = weights.round(DECIMALS)
    slow, fast = from_truth or _uniform(columns.shape[1])
    return ExpertWeights(select, peer, slow, fast)


def _uniform(n_experts: int) -> tuple[FloatArray, FloatArray]:
    """Weights of the truth mixers while no outcome is known."""
    alike = np.full(n_experts, 1.0 / n_experts)
    return alike, alike


def _log_weights(
    columns: FloatArray, rates: Sequence[Rates], mixer: MixerSettings, groups: Groups | None, *, own_counts: bool
) -> FloatArray:
    """Logarithms, unscaled, of the default weights: ``select``, ``peer``, and with outcomes of the truth mixers."""
    regrets, absolute = selection_sums(columns, rates, _loss_range(rates))
    compared, voices = columns[_COMPARED], None if groups is None else groups.voices
    peer = peer_mixer_logs(
        columns[EXPERT.span("mix_level", "mix_regret")],
        columns[_SCORED] + compared,
        compared,
        voices,
        nominal=mixer.nominal_error_rate,
        rate=mixer.peer_rate,
        own_counts=own_counts,
    )
    n_experts = len(peer)
    if not np.count_nonzero(compared):
        logs = np.empty((2, n_experts))
        logs[0], logs[1] = _ada_normal_hedge_logs(regrets, absolute), peer
        return logs
    hedged = np.empty((2, 2, n_experts))  # select and truth_fast: one call for both
    hedged[0, 0], hedged[0, 1] = regrets, columns[_FAST_REGRET]
    hedged[1, 0], hedged[1, 1] = absolute, columns[_FAST_ABSOLUTE]
    logs = np.empty((4, n_experts))
    logs[0::3] = _ada_normal_hedge_logs(hedged[0], hedged[1])
    logs[1] = peer
    logs[2] = truth_slow_logs(columns[_MIX_REGRET], compared, voices, rate=mixer.truth_rate, own_counts=own_counts)
    return logs


def mixing_weights(weights: ExpertWeights, mixing: Mixing, net_share: float) -> FloatArray:
    """The weights to combine forecasts with: the mixers by their shares, and the safety net's share of the mean."""
    mean, peer, slow, fast = mixing.shares
    uniform = 1.0 / len(weights.peer)
    mix = mean * uniform + peer * weights.peer + slow * weights.truth_slow + fast * weights.truth_fast
    if net_share:
        mix = (1.0 - net_share) * mix + net_share * uniform
    return mix.round(DECIMALS)


def mixed(shares: Sequence[float], forecasts: Sequence[float], net_share: float) -> tuple[float, float]:
    """The mixed forecast before and after the safety net; ``forecasts``: of the mixers, that of the mean first."""
    before_net = 0.0
    for share, forecast in zip(shares, forecasts, strict=True):
        before_net += share * forecast
    return with_net(before_net, forecasts[0], net_share)


def with_net(before_net: float, mean: float, net_share: float) -> tuple[float, float]:
    """A mixed forecast before and after the safety net, both at most 1: rounded weights may sum to a trace more."""
    return min(before_net, 1.0), min((1.0 - net_share) * before_net + net_share * mean, 1.0)


def shared_by_groups(weights: FloatArray, groups: Groups) -> FloatArray:
    """Weights of which a group has that of one: each of its members has its part of it; the weightless have none.

    Examples
    --------
    >>> shared_by_groups(np.array([0.25, 0.25, 0.25, 0.25]), Groups.of([[0, 1]], 4)).round(4).tolist()
    [0.1667, 0.1667, 0.3333, 0.3333]
    """
    number, n_units = team_numbers(groups.numbers)
    shared: FloatArray = weights / np.bincount(number, minlength=n_units)[number]
    weightless = groups.weightless
    if weightless.any() and not weightless.all():
        shared = np.where(weightless, 0.0, shared)
        if not float(np.add.reduce(shared)) > 0.0:  # all weight was theirs
            shared = (~weightless).astype(np.float64)
    return (shared / float(np.add.reduce(shared))).round(DECIMALS)


def selection_published(select: FloatArray, shrink: float, groups: Groups | None) -> FloatArray:
    """The weights to follow one expert with: the learner's, and a share of uniform ones while trust asks for it.

    ``groups``: those that share one weight.
    """
    if shrink:
        select = ((1.0 - shrink) * select + shrink / len(select)).round(DECIMALS)
    return select if groups is None else shared_by_groups(select, groups)


class Records(NamedTuple):
    """What each expert did so far; a mean is NaN where there is nothing to average.

    ``evaluated``: questions with an outcome in whose scored forecast it stood; ``brier``: its mean squared loss there.
    """

    questions: FloatArray
    peer_loss: FloatArray
    outcome_loss: FloatArray
    resolved: FloatArray
    evaluated: FloatArray
    brier: FloatArray


def read_records(columns: FloatArray, rates: Sequence[Rates], method: Method) -> Records:
    """Counts and mean losses: on the unbiased scale where no outcome is known, else against it."""
    losses = np.zeros(columns.shape[1])
    for of_rule in rates:
        against, if_one, if_zero = columns[_LOSSES[of_rule.rule]]
        losses = losses + _unbiased_peer_loss(against, if_one, if_zero, of_rule.zero, of_rule.one)
    rows, totals = np.empty((6, columns.shape[1])), np.empty((3, columns.shape[1]))
    totals[0], totals[1], totals[2] = losses, columns[_OUTCOME_LOSS], columns[_EVALUATED_SQUARED]
    totals[:2] *= method.loss_unit
    counts = columns[_COUNTS]
    np.add(counts[0], counts[1], out=rows[0])
    rows[1:3], rows[3:] = counts[1:], np.nan
    np.divide(totals, counts, out=rows[3:], where=counts > 0)
    questions, resolved, evaluated, peer_loss, outcome_loss, brier = rows.round(DECIMALS)
    return Records(questions, peer_loss, outcome_loss, resolved, evaluated, brier)


def varied(columns: FloatArray, rates: Sequence[Rates], least: float) -> BoolArray:
    """Of whose forecasts the variance is known to be above ``least``, from the squared losses of questions that count.

    Of at least one question: with m0 and m1 the mean losses against 0 and against 1, the mean is (1 + m0 - m1)/2 and
    the variance m0 less its square.
    """
    _, if_one, if_zero = columns[_LOSSES[rates[0].rule]]
    for of_rule in rates[1:]:
        _, other_one, other_zero = columns[_LOSSES[of_rule.rule]]
        if_one, if_zero = if_one + other_one, if_zero + other_zero
    scored = columns[_SCORED]
    mean = 0.5 * (scored + if_zero - if_one)
    known: BoolArray = (if_zero - least * scored) * scored > mean * mean
    known &= scored >= 1.0
    return known


def read_regret(columns: FloatArray, rates: Sequence[Rates], method: Method) -> float | None:
    """Summed loss of the published selection weights above that of the best expert; None: there are no experts.

    Estimated at the newest rates where no outcome is known. Below 0 if they did better than every expert.
    """
    regrets = columns[_TRUE_REGRET].copy()
    for of_rule in rates:
        against, if_one, if_zero = columns[expert_span(of_rule.rule)][
            EXPERT.span("published_regret", "published_regret_if_zero")
        ]
        regrets += _unbiased_peer_loss(against, if_one, if_zero, of_rule.zero, of_rule.one)
    return round(float(regrets.max()) * method.loss_unit, DECIMALS) if len(regrets) else None


class Basis(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What the weights of some experts are read from.

    Attributes
    ----------
    experts : (n,) int32
        Their places.
    columns : (rows, n) float64
        Their columns, see ``sums``.
    rates : sequence of Rates
        Of the vote rules that are used, that in force first.
    seen : Extent
    mixer : MixerSettings
    method : Method
    groups : Groups, optional
        Each has one voice in what is average.
    """

    experts: IndexArray
    columns: FloatArray
    rates: Sequence[Rates]
    seen: Extent
    mixer: MixerSettings
    method: Method
    groups: Groups | None = None


def expert_weights(basis: Basis, path: Path | None) -> ExpertWeights:
    """The learners' weights: read off the sums, or off the path of one that has a path."""
    weights = read_weights(basis.columns, basis.rates, basis.seen, basis.mixer, basis.method, basis.groups)
    return weights if path is None else path.weights(weights, basis)


class PublishedWeights(NamedTuple):
    """Weights over the listed experts as they are published, each summing to 1."""

    mix: FloatArray
    select: FloatArray


def published_weights(
    weights: ExpertWeights, mixing: Mixing, net_share: float, shrink: float = 0.0, groups: Groups | None = None
) -> PublishedWeights:
    """What is made of the learners' weights before they are published.

    ``shrink``: see ``trust``. ``groups``: those that share one weight. The safety net's share of the plain mean is not
    shared by them: the net is there for the case that all of this does harm.
    """
    select = selection_published(weights.select, shrink, groups)
    return PublishedWeights(published_mix(weights, mixing, net_share, groups), select)


def published_mix(weights: ExpertWeights, mixing: Mixing, net_share: float, groups: Groups | None) -> FloatArray:
    """The weights to combine forecasts with, as they are published."""
    if groups is None:
        return mixing_weights(weights, mixing, net_share)
    shared = shared_by_groups(mixing_weights(weights, mixing, 0.0), groups)
    return ((1.0 - net_share) * shared + net_share / len(shared)).round(DECIMALS)

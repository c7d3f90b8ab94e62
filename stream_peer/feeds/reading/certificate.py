"""The certificate: an upper bound on the regret of the published selection weights, of both versions of the method."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from stream_peer.feeds.columns import EXPERT, VOTE_RULES, expert_span
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.methods.rate_sums import RateSums
from stream_peer.feeds.reading.rates import OWN_MEDIAN, read_estimate
from stream_peer.feeds.reading.weights import DECIMALS
from stream_peer.numerics.arguments import FloatArray, unchecked
from stream_peer.numerics.certificate import (
    SUREST,
    answer_variance,
    confidence_at_all_times,
    live_bounds,
    noise_boundary,
    one_sided_boundary,
    regret_bounds,
)
from stream_peer.numerics.error_rates import ClassMomentSums, interval_ends
from stream_peer.numerics.error_rates.rate import effective_size
from stream_peer.numerics.peer_losses import unit_peer_loss

_TRUE_REGRET, _MOST_REGRET = EXPERT.at("true_regret"), EXPERT.at("most_regret")
_OTHER_REGRET, _VARIANCE = EXPERT.at("other_regret"), EXPERT.at("variance")
_CLOSED = [EXPERT.span("closed_regret", "closed_regret_if_zero", rule) for rule in VOTE_RULES]
_REACH = [EXPERT.at("closed_reach", rule) for rule in VOTE_RULES]
_FOR_NOISE, _FOR_RATES = 0.8, 0.2
"""Shares of the error probability."""

_Ends: TypeAlias = tuple[tuple[float, float], ...]

_answer_variance, _one_sided_boundary = unchecked(answer_variance), unchecked(one_sided_boundary)
_noise_boundary, _live_bounds = unchecked(noise_boundary), unchecked(live_bounds)
_regret_bounds = unchecked(regret_bounds)
_confidence_at_all_times, _interval_ends = unchecked(confidence_at_all_times), unchecked(interval_ends)
_corners, _unit_peer_loss = unchecked(ClassMomentSums.corners), unchecked(unit_peer_loss)


class _OfRule(NamedTuple):
    """What one expert has under a vote rule: its regrets against the answers, 1 and 0, and how far noise carries them.

    ``ends``: the rates that may decide its bound.
    """

    regrets: Sequence[float]
    variance: float
    ends: _Ends


class Certified(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A bound on the regret of the published selection weights.

    Attributes
    ----------
    bound : float
        In summed loss, against the expert that decides it.
    parts : sequence of _OfRule
        What reference answers say of that expert, by vote rule; empty if the largest possible regret decides.
    boundary : callable
        Of the noise: (variance, n_experts, delta).
    n_experts, delta
        Of ``boundary``.
    other : float
        Its regret on questions without outcome of which ``parts`` say nothing.
    outcomes : float
        Its regret on resolved questions.
    loss_unit : float
        What a loss of 1 in the sums is.
    """

    bound: float
    parts: Sequence[_OfRule]
    boundary: Callable[..., FloatArray]
    n_experts: int
    delta: float
    other: float
    outcomes: float
    loss_unit: float

    @property
    def terms(self) -> Mapping[str, float]:
        """What the bound adds up from. Only those who ask for it pay for it: a publish does not.

        ``estimate``: regret on questions without outcome at the rates that make it largest, or the largest that is
        possible there if that is less; ``noise``: what wrong reference answers may have hidden; ``outcomes``: regret on
        resolved questions.
        """
        estimate, noise = self.other, 0.0
        for part in self.parts:
            regret, hidden = self._terms(part)
            estimate, noise = estimate + regret, noise + hidden
        unit = self.loss_unit
        return {"estimate": estimate * unit, "noise": noise * unit, "outcomes": self.outcomes * unit}

    def _terms(self, part: _OfRule) -> tuple[float, float]:
        """Regret and noise at the rates that decide the bound."""
        noise = float(self.boundary(np.array([part.variance]), self.n_experts, self.delta)[0])
        distances = [1.0 - zero - one for zero, one in part.ends]
        against, if_one, if_zero = part.regrets
        priced = [_unit_peer_loss(against, if_one, if_zero, zero, one) for zero, one in part.ends]
        return max(((regret / d, noise / d) for regret, d in zip(priced, distances, strict=True)), key=sum)


def read_certificate(
    feed_sums: Sequence[int],
    columns: FloatArray,
    rules: Sequence[int],
    n_experts: int,
    steps: int,
    confidence: float,
    method: Method,
) -> Certified | None:
    """The certificate by the version of the method; None if the rates allow none.

    ``steps``: how often an outcome was applied or the vote rule changed, and 1.
    """
    if not columns.shape[1]:
        return None
    if method.bounds_all:
        return _bound_of_all(feed_sums, columns, rules, n_experts, confidence, method)
    return _bound_of_open(feed_sums, columns, rules, n_experts, (1.0 - confidence) / (steps * (steps + 1)), method)


def _bound_of_open(
    feed_sums: Sequence[int],
    columns: FloatArray,
    rules: Sequence[int],
    n_experts: int,
    delta: float,
    method: Method,
) -> Certified | None:
    """That of version 1: a bound on questions without outcome, and the known regret on the others.

    The error probability is divided among all steps at which an outcome was applied or the vote rule changed, since
    each re-prices the past; of a step it is shared by the vote rules that are used.
    """
    delta = delta / len(rules)
    bounds, sums = columns[_TRUE_REGRET], list[tuple[FloatArray, FloatArray, _Ends]]()
    for rule in rules:
        estimate = read_estimate(feed_sums, rule, min(1.0 - _FOR_RATES * delta, SUREST), method)
        own, ends = columns[expert_span(rule)], _interval_ends(estimate)
        against, if_one, if_zero = regrets = own[EXPERT.span("published_regret", "published_regret_if_zero")]
        sums.append((regrets, own[_VARIANCE], ends))
        bounds = bounds + _live_bounds(against, if_one, if_zero, own[_VARIANCE], ends, n_experts, _FOR_NOISE * delta)
    decides = int(bounds.argmax())
    bound = float(bounds[decides])
    if not math.isfinite(bound):  # one expert that is not bounded is the largest, and so is NaN
        return None
    known = float(columns[_TRUE_REGRET, decides])
    noise = _noise_boundary, n_experts, _FOR_NOISE * delta
    unit = method.loss_unit
    return Certified(round(bound * unit, DECIMALS), _parts(sums, decides), *noise, 0.0, known, unit)


def _bound_of_all(
    feed_sums: Sequence[int],
    columns: FloatArray,
    rules: Sequence[int],
    n_experts: int,
    confidence: float,
    method: Method,
) -> Certified:
    """That of version 2: of each expert the smaller of two bounds, on all rounds of all questions; the largest of them.

    One is by reference answers, as ``docs/numerics.md`` proves. It does not use outcomes, so it does not matter which
    are revealed. The other holds whatever the error rates are: known regret on resolved questions, and the largest that
    is possible on the others. Each vote rule that the feed may use has its share of the error probability from the
    beginning, since it may come into use at any time.
    """
    delta = (1.0 - confidence) / (len(VOTE_RULES) if method.vote_rule == "auto" else len(rules))
    bounds, sums = columns[_OTHER_REGRET], list[tuple[FloatArray, FloatArray, _Ends]]()
    for rule in rules:
        rates = RateSums(feed_sums, rule)
        classes = rates.classes if rule == OWN_MEDIAN else rates.classes_at_half
        effective = effective_size(classes.weight, classes.weight2)
        each = 0.5 * _FOR_RATES * delta  # of the interval of the mean, and of that of the difference
        ends = _corners(classes, _confidence_at_all_times(effective, each))
        against, if_one, if_zero = regrets = columns[_CLOSED[rule]]
        reach = columns[_REACH[rule]]
        sums.append((regrets, _answer_variance(ends) * reach, ends))
        bounds = bounds + _regret_bounds(against, if_one, if_zero, reach, ends, n_experts, _FOR_NOISE * delta)
    most = columns[_TRUE_REGRET] + columns[_MOST_REGRET]
    smaller = np.minimum(bounds, most)
    decides = int(smaller.argmax())
    known = float(columns[_TRUE_REGRET, decides])
    if most[decides] <= bounds[decides]:
        parts, other = list[_OfRule](), float(columns[_MOST_REGRET, decides])
    else:
        parts, other = _parts(sums, decides), float(columns[_OTHER_REGRET, decides]) - known
    noise = _one_sided_boundary, n_experts, _FOR_NOISE * delta
    unit = method.loss_unit
    return Certified(round(float(smaller[decides]) * unit, DECIMALS), parts, *noise, other, known, unit)


def _parts(sums: Sequence[tuple[FloatArray, FloatArray, _Ends]], at: int) -> list[_OfRule]:
    """Of one expert: regrets (3, n), variances (n,) and rates by vote rule are given."""
    return [_OfRule(regrets[:, at].tolist(), float(variance[at]), ends) for regrets, variance, ends in sums]

"""The certificate of version 2: a bound on the regret of ``select`` over all questions, at all times at once."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from stream_peer.feeds.columns import EXPERT, VOTE_RULES
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.methods.rate_sums import RateSums
from stream_peer.feeds.reading.rates import read_estimate
from stream_peer.feeds.reading.weights import DECIMALS
from stream_peer.numerics.arguments import FloatArray, unchecked
from stream_peer.numerics.certificate import (
    answer_variance,
    confidence_at_all_times,
    one_sided_boundary,
    regret_bounds,
)
from stream_peer.numerics.error_rates import interval_ends
from stream_peer.numerics.peer_losses import unit_peer_loss

_TRUE_REGRET, _MOST_REGRET = EXPERT.at("true_regret"), EXPERT.at("most_regret")
_PUBLISHED = [EXPERT.span("published_regret", "published_regret_if_zero", rule) for rule in VOTE_RULES]
_CLOSED = [EXPERT.span("closed_regret", "closed_regret_if_zero", rule) for rule in VOTE_RULES]
_SPREAD = [EXPERT.at("spread", rule) for rule in VOTE_RULES]
_FOR_NOISE, _FOR_RATES = 0.8, 0.2
"""Shares of the error probability."""

_Ends: TypeAlias = tuple[tuple[float, float], ...]

_answer_variance, _boundary = unchecked(answer_variance), unchecked(one_sided_boundary)
_confidence_at_all_times, _interval_ends = unchecked(confidence_at_all_times), unchecked(interval_ends)
_regret_bounds, _unit_peer_loss = unchecked(regret_bounds), unchecked(unit_peer_loss)


class BoundOfAll(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A bound in summed loss, and what it is made of and adds up to.

    ``terms``: ``estimate``, regret on questions without outcome at the rates of the interval that make it largest, or
    the largest that is possible there if that is less; ``noise``, what wrong reference answers may have hidden;
    ``outcomes``, regret on resolved questions.
    """

    bound: float
    terms: Mapping[str, float]


def read_bound(
    feed_sums: Sequence[int],
    columns: FloatArray,
    rules: Sequence[int],
    n_experts: int,
    confidence: float,
    method: Method,
) -> BoundOfAll | None:
    """Of each expert the smaller of two bounds; of all experts the largest.

    One is that over all questions, with an outcome or without. The other holds whatever the error rates are: known
    regret on resolved questions, and the largest that is possible on the others. Each vote rule that the feed may use
    has its share of the error probability from the beginning, since it may come into use at any time.
    """
    delta = (1.0 - confidence) / (len(VOTE_RULES) if method.vote_rule == "auto" else len(rules))
    known, bounds = columns[_TRUE_REGRET], np.zeros(columns.shape[1])
    parts: list[tuple[FloatArray, FloatArray, _Ends]] = []
    for rule in rules:
        questions = RateSums(feed_sums, rule).questions
        sure = _confidence_at_all_times(questions, _FOR_RATES * delta)
        ends = _interval_ends(read_estimate(feed_sums, rule, sure, method))
        against, if_one, if_zero = regrets = columns[_PUBLISHED[rule]] + columns[_CLOSED[rule]]
        spread = columns[_SPREAD[rule]]
        bounds = bounds + _regret_bounds(against, if_one, if_zero, spread, ends, n_experts, _FOR_NOISE * delta)
        parts.append((regrets, spread, ends))
    most = known + columns[_MOST_REGRET]
    smaller = np.minimum(bounds, most)
    if not len(smaller):
        return None
    decides = int(smaller.argmax())
    if most[decides] <= bounds[decides]:
        estimate, noise_term = float(columns[_MOST_REGRET, decides]), 0.0
    else:
        terms = [
            _terms(regrets[:, decides], spread[decides : decides + 1], ends, n_experts, _FOR_NOISE * delta)
            for regrets, spread, ends in parts
        ]
        estimate, noise_term = map(sum, zip(*terms, strict=True))
        estimate -= float(known[decides])
    unit, outcomes = method.loss_unit, float(known[decides])
    return BoundOfAll(
        round(float(smaller[decides]) * unit, DECIMALS),
        {"estimate": estimate * unit, "noise": noise_term * unit, "outcomes": outcomes * unit},
    )


def _terms(regrets: FloatArray, spread: FloatArray, ends: _Ends, n_experts: int, delta: float) -> tuple[float, float]:
    """Regret of one expert and vote rule, and its noise, at the rates that decide its bound."""
    against, if_one, if_zero = regrets.tolist()
    noise = float(_boundary(_answer_variance(ends) * spread, n_experts, delta)[0])
    return max(
        (
            (_unit_peer_loss(against, if_one, if_zero, zero, one) / (1.0 - zero - one), noise / (1.0 - zero - one))
            for zero, one in ends
        ),
        key=sum,
    )

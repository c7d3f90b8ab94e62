"""What is read off the sums: error rates, weights, the mixers' shares, the certificate. Everything non-linear is here.

Nothing of it is stored. A sum that was corrected gives, from then on, what it would have given all along.
"""

from typing import NamedTuple

import numpy as np

from stream_peer.engine.method import Method
from stream_peer.engine.sums import UNIT, expert_column, feed_column
from stream_peer.events.feed_settings import MixerSettings
from stream_peer.events.outputs import ErrorRateStatus
from stream_peer.numerics.bounds import live_certificate
from stream_peer.numerics.error_rates import (
    ErrorRate,
    MomentSums,
    combine_with_truth,
    interval_ends,
    priced,
)
from stream_peer.numerics.learners import ada_normal_hedge
from stream_peer.numerics.losses import FloatArray, IntArray
from stream_peer.numerics.mixers import outer_weights, peer_mixer, stretch_factor, truth_fast, truth_slow
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss

DECIMALS = 12
"""To which weights are rounded before they are used or published: the last digits of exp differ between machines."""

_MOMENTS = slice(feed_column("moment_weight"), feed_column("pair_rest") + 1)
_TRUTH_TABLE = slice(feed_column("right_zero"), feed_column("wrong_one") + 1)
_MIXERS = slice(feed_column("peer_peer"), feed_column("stretch_square") + 1)

_REGRET, _REGRET_1, _REGRET_0 = (expert_column(name) for name in ("regret", "regret_if_one", "regret_if_zero"))
_OUTCOME_REGRET, _ABSOLUTE = expert_column("outcome_regret"), expert_column("absolute_regret")
_LEVEL, _SLOPE, _ANSWER = (expert_column(name) for name in ("mix_level", "mix_slope", "mix_answer"))
_MIX_REGRET, _MIX_ABSOLUTE = expert_column("mix_regret"), expert_column("mix_absolute")
_SCORED, _RESOLVED = expert_column("scored"), expert_column("resolved")
_LOSS, _LOSS_1, _LOSS_0 = (expert_column(name) for name in ("loss", "loss_if_one", "loss_if_zero"))
_OUTCOME_LOSS = expert_column("outcome_loss")
_PUBLISHED, _PUBLISHED_1, _PUBLISHED_0 = (
    expert_column(name) for name in ("published_regret", "published_regret_if_one", "published_regret_if_zero")
)
_VARIANCE, _TRUE_REGRET = expert_column("variance"), expert_column("true_regret")


class Rates(NamedTuple):
    """Error rates of reference answers.

    Attributes
    ----------
    estimate : ErrorRate
        As published.
    zero, one : float
        As they price losses: their sum is at most .8.
    status : ErrorRateStatus
        That of the estimate; ``uninformative`` if pricing had to scale it down.
    right_zero, wrong_zero, right_one, wrong_one : float
        Reference answers of resolved questions, by outcome.
    """

    estimate: ErrorRate
    zero: float
    one: float
    status: ErrorRateStatus
    right_zero: float
    wrong_zero: float
    right_one: float
    wrong_one: float

    @property
    def measured(self) -> float | None:
        """Share of wrong reference answers on resolved questions; None before the first."""
        wrong = self.wrong_zero + self.wrong_one
        resolved = wrong + self.right_zero + self.right_one
        return wrong / resolved if resolved else None


def free_rate(feed: IntArray, confidence: float, _method: Method) -> ErrorRate:
    """Error rates from agreement alone: symmetric, leave-one-out moments."""
    return MomentSums(*(feed[_MOMENTS] * UNIT).tolist()).estimate(confidence)


def read_rates(feed: IntArray, confidence: float, method: Method) -> Rates:
    """Error rates without truth, combined per class with revealed outcomes."""
    right_zero, wrong_zero, right_one, wrong_one = (feed[_TRUTH_TABLE] * UNIT).tolist()
    free = free_rate(feed, confidence, method)
    revealed_zero, revealed_one = right_zero + wrong_zero, right_one + wrong_one
    estimate = combine_with_truth(free, wrong_zero, revealed_zero, wrong_one, revealed_one, confidence)
    zero, one, capped = priced(estimate.zero, estimate.one)
    status: ErrorRateStatus = "uninformative" if capped else estimate.status
    return Rates(estimate, zero, one, status, right_zero, wrong_zero, right_one, wrong_one)


class Mixing(NamedTuple):
    """Shares of the mixers (plain mean, peer, slow and fast truth; they sum to 1), and the stretch."""

    shares: tuple[float, float, float, float]
    stretch: float


def mixing_key(feed: IntArray) -> bytes:
    """What ``read_mixing`` depends on; it changes only when an outcome does."""
    return feed[_MIXERS].tobytes()


def read_mixing(feed: IntArray, mixer: MixerSettings) -> Mixing:
    """Outer layer and stretch, from resolved questions only."""
    pp, ps, pf, ss, sf, ff, pe, se, fe, product, square = (feed[_MIXERS] * UNIT).tolist()
    second = np.array([[pp, ps, pf], [ps, ss, sf], [pf, sf, ff]])
    prior = np.array([mixer.prior_mean, mixer.prior_peer, mixer.prior_truth_slow, mixer.prior_truth_fast])
    mean, peer, slow, fast = outer_weights(second, np.array([pe, se, fe]), prior).round(DECIMALS).tolist()
    return Mixing((mean, peer, slow, fast), stretch_factor(product, square))


class ExpertWeights(NamedTuple):
    """Weights over the experts present, each summing to 1: for following one, and those of the mixers."""

    select: FloatArray
    peer: FloatArray
    truth_slow: FloatArray
    truth_fast: FloatArray


def selection_weights(columns: FloatArray, rates: Rates, _method: Method) -> FloatArray:
    """Weights for following one expert: the learner's, of regrets priced at the newest rates."""
    distance = 1.0 - rates.zero - rates.one
    regrets = unit_peer_loss(columns[_REGRET], columns[_REGRET_1], columns[_REGRET_0], rates.zero, rates.one)
    regrets += distance * columns[_OUTCOME_REGRET]
    return ada_normal_hedge(regrets, columns[_ABSOLUTE])


def read_weights(
    columns: FloatArray, rates: Rates, n_experts: int, mixer: MixerSettings, method: Method
) -> ExpertWeights:
    """Weights of the experts whose columns are given, priced at the newest rates.

    ``n_experts``: how many experts of the feed have questions that count, present or not.
    """
    select = selection_weights(columns, rates, method)
    resolved = columns[_RESOLVED]
    peer = peer_mixer(
        columns[_LEVEL],
        columns[_SLOPE],
        columns[_ANSWER],
        columns[_SCORED] + resolved,
        n_experts,
        nominal=mixer.nominal_error_rate,
        rate=mixer.peer_rate,
        uniform_share=mixer.uniform_share,
    )
    if not resolved.any():
        uniform = np.full(len(select), 1.0 / len(select))
        return ExpertWeights(select.round(DECIMALS), peer.round(DECIMALS), uniform, uniform)
    slow = truth_slow(columns[_MIX_REGRET], resolved, n_experts, rate=mixer.truth_rate)
    fast = truth_fast(columns[_MIX_REGRET], columns[_MIX_ABSOLUTE])
    return ExpertWeights(select.round(DECIMALS), peer.round(DECIMALS), slow.round(DECIMALS), fast.round(DECIMALS))


def mixing_weights(weights: ExpertWeights, mixing: Mixing, net_share: float) -> FloatArray:
    """The weights to combine forecasts with: the mixers by their shares, and the safety net's share of the mean."""
    mean, peer, slow, fast = mixing.shares
    uniform = 1.0 / len(weights.peer)
    mix = mean * uniform + peer * weights.peer + slow * weights.truth_slow + fast * weights.truth_fast
    return ((1.0 - net_share) * mix + net_share * uniform).round(DECIMALS)


class Records(NamedTuple):
    """What each expert did so far; a mean is NaN where there is nothing to average."""

    questions: FloatArray
    peer_loss: FloatArray
    outcome_loss: FloatArray
    resolved: FloatArray


def counted_questions(columns: FloatArray) -> FloatArray:
    """Questions of each expert that count, with an outcome or without."""
    counted: FloatArray = columns[_SCORED] + columns[_RESOLVED]
    return counted


def read_records(columns: FloatArray, rates: Rates) -> Records:
    """Counts and mean losses: on the unbiased scale where no outcome is known, else against it."""
    scored, resolved = columns[_SCORED], columns[_RESOLVED]
    losses = unbiased_peer_loss(columns[_LOSS], columns[_LOSS_1], columns[_LOSS_0], rates.zero, rates.one)
    return Records(
        counted_questions(columns).round(DECIMALS),
        _means(losses, scored),
        _means(columns[_OUTCOME_LOSS], resolved),
        resolved.round(DECIMALS),
    )


def read_certificate(
    feed: IntArray, columns: FloatArray, n_experts: int, outcomes: int, confidence: float, method: Method
) -> float | None:
    """Upper bound on the regret of the published selection weights; None if the rates allow none.

    Four fifths of the error probability pay for the noise, one fifth for the interval of the rates. It is divided
    among all times at which an outcome was applied, since each re-prices the past.
    """
    steps = outcomes + 1
    delta = (1.0 - confidence) / (steps * (steps + 1))
    rates = read_rates(feed, 1.0 - 0.2 * delta, method)
    bound = live_certificate(
        columns[_PUBLISHED],
        columns[_PUBLISHED_1],
        columns[_PUBLISHED_0],
        columns[_VARIANCE],
        columns[_TRUE_REGRET],
        interval_ends(rates.estimate),
        n_experts,
        0.8 * delta,
    )
    return round(bound, DECIMALS) if np.isfinite(bound) else None


def _means(totals: FloatArray, counts: FloatArray) -> FloatArray:
    means = np.full(len(totals), np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return means.round(DECIMALS)

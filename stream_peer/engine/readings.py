"""What is read off the sums: error rates, weights, the mixers' shares, the certificate. Everything non-linear is here.

Nothing of it is stored. A sum that was corrected gives, from then on, what it would have given all along.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.engine.method import Method
from stream_peer.engine.sums import (
    COMMON_ROWS,
    FEED_RULE,
    FEED_VARIANT,
    LEARNT_ROWS,
    N_EXPERT,
    RULE_ROWS,
    UNIT,
    VOTE_RULES,
    expert_column,
    feed_column,
)
from stream_peer.engine.variants import Situation, variant_rate, variant_selection
from stream_peer.events.feed_settings import MixerSettings
from stream_peer.events.outputs import ErrorRateStatus
from stream_peer.numerics.bounds import live_bounds
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    ErrorRate,
    MomentSums,
    combine_with_truth,
    interval_ends,
    priced,
)
from stream_peer.numerics.error_rates.rate import UNKNOWN_VARIANCE, effective_size
from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs, softmax
from stream_peer.numerics.losses import FloatArray, IntArray
from stream_peer.numerics.mixers import outer_weights, stretch_factor
from stream_peer.numerics.mixers.shadows import peer_mixer_logs, truth_slow_logs, with_uniform_share
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss

DECIMALS = 12
"""To which weights are rounded before they are used or published: the last digits of exp differ between machines."""

_SUREST = 1.0 - 2.0**-53
"""The largest confidence of an interval: what a certificate of ten million steps asks for would be rounded to 1."""

_HALF, _OWN_MEDIAN = range(len(VOTE_RULES))
_OF_RULES = [slice(feed_column(FEED_RULE[0], rule), feed_column(FEED_RULE[-1], rule) + 1) for rule in VOTE_RULES]
_MOMENTS = [slice(feed_column("moment_weight", rule), feed_column("pair_rest", rule) + 1) for rule in VOTE_RULES]
_TRUTH_TABLE = [slice(feed_column("right_zero", rule), feed_column("wrong_one", rule) + 1) for rule in VOTE_RULES]
_CLASS_MOMENTS = slice(feed_column("class_weight"), feed_column("class_both_both") + 1)
_GROUPS = slice(feed_column(FEED_VARIANT[0]), feed_column("group_123") + 1)
_GAPS, _QUESTIONS = feed_column("mixability_gap"), feed_column("questions")
_MIXERS = slice(feed_column("peer_peer"), feed_column("stretch_square") + 1)

_SCORED, _RESOLVED = expert_column("scored"), expert_column("resolved")
_OUTCOME_LOSS, _TRUE_REGRET = expert_column("outcome_loss"), expert_column("true_regret")
_OUTCOME_REGRET, _OUTCOME_ABSOLUTE = expert_column("outcome_regret"), expert_column("outcome_absolute")
_LEVEL, _SLOPE, _ANSWER = (expert_column(name) for name in ("mix_level", "mix_slope", "mix_answer"))
_MIX_REGRET, _MIX_ABSOLUTE = expert_column("mix_regret"), expert_column("mix_absolute")

_LOSSES = slice(expert_column("loss"), expert_column("loss_if_zero") + 1)
_REGRETS = slice(expert_column("regret"), expert_column("regret_if_zero") + 1)
_PUBLISHED_REGRETS = slice(expert_column("published_regret"), expert_column("published_regret_if_zero") + 1)
_ABSOLUTE, _VARIANCE = expert_column("absolute_regret"), expert_column("variance")


class Rates(NamedTuple):
    """Error rates of the reference answers of one vote rule.

    Attributes
    ----------
    rule : int
        Number of the vote rule.
    estimate : ErrorRate
        As published.
    zero, one : float
        As they price losses: their sum is at most .8.
    status : ErrorRateStatus
        That of the estimate; ``uninformative`` if pricing had to scale it down; that of the class-dependent estimate
        where it gave none and the symmetric one stands in.
    right_zero, wrong_zero, right_one, wrong_one : float
        Reference answers of resolved questions, by outcome.
    """

    rule: int
    estimate: ErrorRate
    zero: float
    one: float
    status: ErrorRateStatus
    right_zero: float
    wrong_zero: float
    right_one: float
    wrong_one: float

    @property
    def distance(self) -> float:
        """1 - zero - one, the scale of peer losses."""
        return 1.0 - self.zero - self.one

    @property
    def measured(self) -> float | None:
        """Share of wrong reference answers on resolved questions; None before the first."""
        wrong = self.wrong_zero + self.wrong_one
        resolved = wrong + self.right_zero + self.right_one
        return wrong / resolved if resolved else None


def free_rate(feed: IntArray, rule: int, confidence: float, method: Method) -> tuple[ErrorRate, ErrorRateStatus]:
    """Error rates from agreement alone, and how far they can be trusted.

    Votes at 1/2: symmetric. Own medians: one of each class, if the moments of the vote count give them; else the
    symmetric ones of the same votes, with the status that says why.
    """
    if rule == _OWN_MEDIAN or method.reads_classes:
        by_class = ClassMomentSums(*(feed[_CLASS_MOMENTS] * UNIT).tolist()).estimate(confidence)
        if by_class.variance < UNKNOWN_VARIANCE:
            return by_class, by_class.status
        return _symmetric(feed, rule, confidence), by_class.status
    symmetric = _symmetric(feed, rule, confidence)
    return symmetric, symmetric.status


def _symmetric(feed: IntArray, rule: int, confidence: float) -> ErrorRate:
    return MomentSums(*(feed[_MOMENTS[rule]] * UNIT).tolist()).estimate(confidence)


def read_rates(feed: IntArray, rule: int, confidence: float, method: Method) -> Rates:
    """Error rates of a vote rule without truth, combined per class with revealed outcomes."""
    right_zero, wrong_zero, right_one, wrong_one = truth = (feed[_TRUTH_TABLE[rule]] * UNIT).tolist()
    if method.variant is not None:
        weight, weight2 = (feed[_MOMENTS[rule]] * UNIT).tolist()[:2]
        groups, questions = (feed[_GROUPS] * UNIT).tolist(), effective_size(weight, weight2)
        chosen = variant_rate(method.variant, groups, truth, questions, confidence)
        if chosen is not None:
            zero, one, capped = priced(chosen.zero, chosen.one)
            return Rates(rule, chosen, zero, one, "uninformative" if capped else chosen.status, *truth)
    free, free_status = free_rate(feed, rule, confidence, method)
    revealed_zero, revealed_one = right_zero + wrong_zero, right_one + wrong_one
    estimate = combine_with_truth(free, wrong_zero, revealed_zero, wrong_one, revealed_one, confidence)
    zero, one, capped = priced(estimate.zero, estimate.one)
    status: ErrorRateStatus = "uninformative" if capped else estimate.status
    if status == "ok" and free_status != free.status:
        status = free_status
    return Rates(rule, estimate, zero, one, status, right_zero, wrong_zero, right_one, wrong_one)


def used_rules(feed: IntArray, in_force: int) -> tuple[int, ...]:
    """Vote rules under which something was scored, and the one in force, which comes first."""
    others = [rule for rule, columns in enumerate(_OF_RULES) if rule != in_force and np.count_nonzero(feed[columns])]
    return (in_force, *others)


def rows_of(rules: Sequence[int]) -> slice:
    """Expert columns to be read for ``used_rules``. Those of the first block begin with row 0."""
    return slice(0, COMMON_ROWS.stop if _OWN_MEDIAN not in rules else N_EXPERT)


def learnt_rows_of(rules: Sequence[int]) -> slice:
    """Those of them that weights are read from."""
    return slice(LEARNT_ROWS.start, LEARNT_ROWS.stop if _OWN_MEDIAN not in rules else N_EXPERT)


class Mixing(NamedTuple):
    """Shares of the mixers (plain mean, peer, slow and fast truth; they sum to 1), and the stretch."""

    shares: tuple[float, float, float, float]
    stretch: float


def mixing_key(feed: IntArray) -> bytes:
    """What ``read_mixing`` depends on; it changes only when an outcome does."""
    return feed[_MIXERS].tobytes()


def read_mixing(feed: IntArray, mixer: MixerSettings, method: Method) -> Mixing:
    """Outer layer and stretch, from resolved questions only."""
    pp, ps, pf, ss, sf, ff, pe, se, fe, product, square = (feed[_MIXERS] * UNIT).tolist()
    stretch = 0.0 if method.is_paper else stretch_factor(product, square)
    if not method.mixes:
        return Mixing((0.0, 1.0, 0.0, 0.0), stretch)
    second = np.array([[pp, ps, pf], [ps, ss, sf], [pf, sf, ff]])
    prior = np.array([mixer.prior_mean, mixer.prior_peer, mixer.prior_truth_slow, mixer.prior_truth_fast])
    mean, peer, slow, fast = outer_weights(second, np.array([pe, se, fe]), prior).round(DECIMALS).tolist()
    return Mixing((mean, peer, slow, fast), stretch)


class ExpertWeights(NamedTuple):
    """Weights over the experts present, each summing to 1: for following one, and those of the mixers."""

    select: FloatArray
    peer: FloatArray
    truth_slow: FloatArray
    truth_fast: FloatArray


class Seen(NamedTuple):
    """How much a feed has seen: experts with questions that count or present, such questions, and mixability gaps."""

    experts: int
    questions: float
    gaps: float


def read_seen(feed: IntArray, n_experts: int) -> Seen:
    """How much a feed with so many experts has seen."""
    return Seen(n_experts, float(feed[_QUESTIONS]) * UNIT, max(float(feed[_GAPS]) * UNIT, 0.0))


def selection_sums(columns: FloatArray, rates: Sequence[Rates], loss_range: float) -> tuple[FloatArray, FloatArray]:
    """Regrets of the selection weights against each expert, and their absolute values, in units of ``loss_range``.

    The regrets of each vote rule are priced with its own newest rates and brought to the scale of the rule in force,
    the first: through the unbiased scale, on which outcomes are as well.
    """
    distance = rates[0].distance / loss_range
    regrets = distance * columns[_OUTCOME_REGRET]
    absolute = columns[_OUTCOME_ABSOLUTE] / loss_range
    for of_rule in rates:
        own = columns[RULE_ROWS[of_rule.rule]]
        scale = distance / of_rule.distance
        against, if_one, if_zero = own[_REGRETS]
        regrets += scale * unit_peer_loss(against, if_one, if_zero, of_rule.zero, of_rule.one)
        absolute += scale * own[_ABSOLUTE]
    return regrets, absolute


def _loss_range(rates: Sequence[Rates]) -> float:
    """That of the peer losses of the rule in force. Learners want losses whose range is 1."""
    return 1.0 + abs(rates[0].zero - rates[0].one)


def selection_weights(columns: FloatArray, rates: Sequence[Rates], seen: Seen, method: Method) -> FloatArray:
    """Weights for following one expert: the learner's, of regrets priced at the newest rates."""
    loss_range = _loss_range(rates)
    if method.variant is not None:
        regrets, absolute = selection_sums(columns, rates, 1.0)
        return variant_selection(Situation(regrets, absolute, loss_range, *seen), method.variant)
    return ada_normal_hedge(*selection_sums(columns, rates, loss_range))


def read_weights(
    columns: FloatArray, rates: Sequence[Rates], seen: Seen, mixer: MixerSettings, method: Method
) -> ExpertWeights:
    """Weights of the experts whose columns are given, priced at the newest rates.

    ``rates``: of the vote rules that are used, that in force first.
    """
    if not method.mixes:
        select = selection_weights(columns, rates, seen, method).round(DECIMALS)
        return ExpertWeights(select, select, *_uniform(columns.shape[1]))
    weights = softmax(_log_weights(columns, rates, seen.experts, mixer))
    if method.variant is not None:
        weights[0] = selection_weights(columns, rates, seen, method)
    weights[1] = with_uniform_share(weights[1], mixer.uniform_share)
    select, peer, *from_truth = weights.round(DECIMALS)
    slow, fast = from_truth or _uniform(columns.shape[1])
    return ExpertWeights(select, peer, slow, fast)


def _uniform(n_experts: int) -> tuple[FloatArray, FloatArray]:
    """Weights of the truth mixers while no outcome is known."""
    alike = np.full(n_experts, 1.0 / n_experts)
    return alike, alike


def _log_weights(columns: FloatArray, rates: Sequence[Rates], n_experts: int, mixer: MixerSettings) -> FloatArray:
    """Logarithms, unscaled, of the weights as built in: ``select``, ``peer``, and with outcomes of the truth mixers."""
    regrets, absolute = selection_sums(columns, rates, _loss_range(rates))
    peer = peer_mixer_logs(
        columns[_LEVEL],
        columns[_SLOPE],
        columns[_ANSWER],
        counted_questions(columns),
        n_experts,
        nominal=mixer.nominal_error_rate,
        rate=mixer.peer_rate,
    )
    resolved = columns[_RESOLVED]
    if not np.count_nonzero(resolved):
        return np.array((ada_normal_hedge_logs(regrets, absolute), peer))
    slow = truth_slow_logs(columns[_MIX_REGRET], resolved, n_experts, rate=mixer.truth_rate)
    hedged = np.array((regrets, columns[_MIX_REGRET])), np.array((absolute, columns[_MIX_ABSOLUTE]))
    select, fast = ada_normal_hedge_logs(*hedged)
    return np.array((select, peer, slow, fast))


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


def read_records(columns: FloatArray, rates: Sequence[Rates], method: Method) -> Records:
    """Counts and mean losses: on the unbiased scale where no outcome is known, else against it."""
    scored, resolved = columns[_SCORED], columns[_RESOLVED]
    losses = np.zeros(columns.shape[1])
    for of_rule in rates:
        own = columns[RULE_ROWS[of_rule.rule]]
        against, if_one, if_zero = own[_LOSSES]
        losses = losses + unbiased_peer_loss(against, if_one, if_zero, of_rule.zero, of_rule.one)
    return Records(
        counted_questions(columns).round(DECIMALS),
        _means(losses * method.loss_unit, scored),
        _means(columns[_OUTCOME_LOSS] * method.loss_unit, resolved),
        resolved.round(DECIMALS),
    )


def read_certificate(
    feed: IntArray,
    columns: FloatArray,
    rules: Sequence[int],
    n_experts: int,
    steps: int,
    confidence: float,
    method: Method,
) -> float | None:
    """Upper bound on the regret of the published selection weights; None if the rates allow none.

    Four fifths of the error probability pay for the noise, one fifth for the intervals of the rates; each is shared by
    the vote rules that are used. It is divided among all steps at which an outcome was applied or the vote rule
    changed, since each re-prices the past.
    """
    delta = (1.0 - confidence) / (steps * (steps + 1)) / len(rules)
    bounds = columns[_TRUE_REGRET].copy()
    for rule in rules:
        rates = read_rates(feed, rule, min(1.0 - 0.2 * delta, _SUREST), method)
        own = columns[RULE_ROWS[rule]]
        against, if_one, if_zero = own[_PUBLISHED_REGRETS]
        ends = interval_ends(rates.estimate)
        bounds += live_bounds(against, if_one, if_zero, own[_VARIANCE], ends, n_experts, 0.8 * delta)
    bound = float(np.maximum.reduce(bounds, initial=-np.inf)) * method.loss_unit
    return round(bound, DECIMALS) if np.isfinite(bound) else None


def _means(totals: FloatArray, counts: FloatArray) -> FloatArray:
    means = np.full(len(totals), np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return means.round(DECIMALS)

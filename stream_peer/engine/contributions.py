"""What a question adds to the sums, given the facts of its rounds and the evidence for its outcome.

The question is the unit. Over its rounds the quantities of a round are averaged first; then come absolute values,
squares and products; then the question's weight. So forty rounds of one question are no more evidence than one.

Rounds that were scored under different vote rules go to different columns: for each of the rules the other's rounds
count as 0.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from stream_peer.engine.facts import Head, Stack, stacked
from stream_peer.engine.ledger import Entry
from stream_peer.engine.medians import binned
from stream_peer.engine.method import Method
from stream_peer.engine.sums import (
    BLOCKS,
    COMMON_ROWS,
    EXPERT_COMMON,
    EXPERT_RULE,
    FEED_CLASS,
    FEED_COMMON,
    FEED_RULE,
    FEED_VARIANT,
    N_EXPERT,
    NOTHING,
    RULE_ROWS,
    VOTE_RULES,
    VOTES,
    Binned,
    Contribution,
    IndexArray,
    fixed,
)
from stream_peer.engine.variants import group_moments, n_groups
from stream_peer.events.feed_log import Verdict
from stream_peer.numerics.losses import FloatArray

_OWN = slice(Head._fields.index("own_answer"), Head._fields.index("published_answer"))
_PUBLISHED = slice(_OWN.stop, Head._fields.index("spread"))
_SINGLE = [Head._fields.index(name) for name in ("rule", "counts", "rate_zero", "rate_one", "spread", "mean")]


def contribution(entry: Entry, method: Method) -> Contribution:
    """What a question adds to the sums, given its facts and the evidence for its outcome.

    A pure function: the same facts and evidence give the same bits, whatever happened before.
    """
    if not entry.rounds or entry.evidence == "annulled":
        return NOTHING
    return contribution_of(stacked(entry.rounds), entry.evidence, entry.weight, method)


def contribution_of(stack: Stack, evidence: Verdict, weight: float, method: Method) -> Contribution:
    """``contribution`` of facts that are at hand, of one round at least; not for annulled questions."""
    outcome = None if evidence == "open" else int(evidence == 1)
    rules = sorted({head.rule for head in stack.heads})
    block = BLOCKS[rules[0]] if len(rules) == 1 else slice(0, N_EXPERT)
    terms = _terms(stack)
    rows = _peer_rows(stack, terms, method) if outcome is None else _truth_rows(stack, terms, outcome, method)
    experts, means = _averaged(stack, rows)
    columns = np.zeros((block.stop - block.start, len(experts)))
    common = columns[COMMON_ROWS.start - block.start :]
    if outcome is None:
        common[_SCORED], common[_MIX] = means[_PEER_ONES], means[_PEER_MIX]
        for rule in rules:
            of_rule = means if len(rules) == 1 else _averaged(stack, rows * (terms.rule == rule))[1]
            _fill_rule(columns[RULE_ROWS[rule].start - block.start :], of_rule, weight)
    else:
        _fill_truth(common, means)
        if method.is_frozen:
            _fill_frozen(columns[RULE_ROWS[rules[0]].start - block.start :], means[_FROZEN])
    feed = _feed_columns(stack, rules, outcome, weight, method)
    histograms = _binned(stack, weight) if method.keeps_histograms else None
    return Contribution(experts, fixed(columns, weight), fixed(feed, weight), block, histograms)


class _Terms(NamedTuple):
    """Numbers of the round that each forecast belongs to; plain numbers if there is one round only."""

    rule: float | FloatArray
    counts: float | FloatArray
    rate_zero: float | FloatArray
    rate_one: float | FloatArray
    spread: float | FloatArray
    mean: float | FloatArray
    own: Sequence[float] | FloatArray
    published: Sequence[float] | FloatArray


def _terms(stack: Stack) -> _Terms:
    if len(stack.heads) == 1:
        (h,) = stack.heads
        own = h.own_answer, h.own_one, h.own_zero
        published = h.published_answer, h.published_one, h.published_zero
        return _Terms(h.rule, h.counts, h.rate_zero, h.rate_one, h.spread, h.mean, own, published)
    sizes = [head.n_experts for head in stack.heads]
    numbers = np.repeat(np.array(stack.heads, dtype=np.float64), sizes, axis=0)
    rule, counts, rate_zero, rate_one, spread, mean = numbers[:, _SINGLE].T
    return _Terms(rule, counts, rate_zero, rate_one, spread, mean, numbers[:, _OWN], numbers[:, _PUBLISHED])


def _averaged(stack: Stack, rows: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Rows averaged over the rounds, 0 where an expert was absent; and the experts they belong to."""
    n_rounds = len(stack.heads)
    if n_rounds == 1:
        return stack.experts, rows
    experts, columns = np.unique(stack.experts, return_inverse=True)
    cells = np.repeat(np.arange(n_rounds), [head.n_experts for head in stack.heads]) * len(experts) + columns
    table = np.zeros(n_rounds * len(experts))
    by_round = table.reshape(n_rounds, -1)
    means = np.empty((len(rows), len(experts)))
    for row, mean in zip(rows, means, strict=True):
        table[cells] = row
        np.add.reduce(by_round, axis=0, out=mean)
    means /= n_rounds
    return experts, means


_PRICED, _SPREAD = EXPERT_RULE.index("absolute_regret"), EXPERT_RULE.index("variance")
_SCORED = EXPERT_COMMON.index("scored")
_MIX = slice(EXPERT_COMMON.index("mix_level"), EXPERT_COMMON.index("mix_answer") + 1)
_PEER_MIX, _PEER_ONES = slice(len(EXPERT_RULE), len(EXPERT_RULE) + 3), len(EXPERT_RULE) + 3


def _peer_rows(stack: Stack, terms: _Terms, method: Method) -> FloatArray:
    """Without outcome, for each forecast: as the columns of a vote rule, then those of the mixer and ones.

    Of the regret and the spread, of which the columns hold absolute values and squares, the values themselves.
    """
    rows = np.empty((len(EXPERT_RULE) + 4, len(stack.forecasts)))
    against, if_one, if_zero = rows[:3]
    if_one[:], if_zero[:] = method.losses(stack.forecasts)
    against[:] = np.where(stack.answers, if_one, if_zero)
    np.subtract(terms.own, rows[:3].T, out=rows[3:6].T)
    np.subtract(terms.published, rows[:3].T, out=rows[6:9].T)
    rows[_PRICED] = rows[3] - terms.rate_zero * rows[4] - terms.rate_one * rows[5]
    rows[_SPREAD] = terms.spread + (1.0 - 2.0 * stack.select) * np.abs(if_one - if_zero)
    _fill_mix(stack, terms.mean, rows[_PEER_MIX])
    rows[_PEER_ONES] = 1.0
    if method.is_frozen:
        rows[3], rows[4:6] = rows[_PRICED], 0.0
    rows *= terms.counts
    return rows


def _fill_mix(stack: Stack, mean: float | FloatArray, rows: FloatArray) -> None:
    """2b(b - p), 2(b - p) and 2(b - p)·ŷ, b the plain mean."""
    level, slope, answer = rows
    np.multiply(2.0, mean - stack.forecasts, out=slope)
    np.multiply(mean, slope, out=level)
    np.multiply(slope, stack.answers, out=answer)


def _fill_rule(place: FloatArray, means: FloatArray, weight: float) -> None:
    """Columns of a vote rule: loss parts, regrets, certificate."""
    place[: len(EXPERT_RULE)] = means[: len(EXPERT_RULE)]
    place[_PRICED] = np.abs(means[_PRICED])
    place[_SPREAD] = np.square(means[_SPREAD]) * (0.25 * weight)


_FROZEN = 8


def _truth_rows(stack: Stack, terms: _Terms, outcome: int, method: Method) -> FloatArray:
    """With the outcome, for each forecast; ordered as ``_fill_truth`` reads them, and the frozen regret."""
    rows = np.empty((9 if method.is_frozen else 8, len(stack.forecasts)))
    rows[0] = method.losses(stack.forecasts)[1 - outcome]
    rows[1] = 1.0
    against = 1 if outcome else 2
    rows[2] = np.asarray(terms.own)[..., against] - rows[0]
    rows[4] = np.asarray(terms.published)[..., against] - rows[0]
    _fill_mix(stack, terms.mean, rows[5:8])
    rows[3] = rows[5] - outcome * rows[6] - 0.125 * np.square(rows[6])
    if method.is_frozen:
        rows[2] = 0.0
        rows[_FROZEN] = _frozen_regret(stack, terms, method)
    rows[5:] *= terms.counts
    return rows


def _frozen_regret(stack: Stack, terms: _Terms, method: Method) -> FloatArray:
    """Regret against the reference answers, at the price of the time."""
    if_one, if_zero = method.losses(stack.forecasts)
    losses = np.stack((np.where(stack.answers, if_one, if_zero), if_one, if_zero), axis=-1)
    against, one, zero = (np.asarray(terms.own) - losses).T
    regret: FloatArray = against - terms.rate_zero * one - terms.rate_one * zero
    return regret


def _fill_frozen(place: FloatArray, regret: FloatArray) -> None:
    """Columns of the vote rule: the regret against reference answers stays on when the outcome comes."""
    place[EXPERT_RULE.index("regret")], place[_PRICED] = regret, np.abs(regret)


def _fill_truth(common: FloatArray, means: FloatArray) -> None:
    """Common columns of a question with its outcome: loss and count, regrets, mixers."""
    loss, ones, regret, mix_regret, published, *mix = means[:8]
    nothing = np.zeros(len(loss))
    filled = (loss, ones, nothing, regret, np.abs(regret), *mix, mix_regret, np.abs(mix_regret), published)
    common[: len(EXPERT_COMMON)] = filled


def _binned(stack: Stack, weight: float) -> Binned:
    """The forecasts of the rounds that count."""
    heads = stack.heads
    amount = int(fixed(np.array(1.0 / len(heads)), weight))
    if all(head.counts for head in heads):
        return binned(stack.experts, stack.forecasts, amount)
    counting = np.repeat([head.counts > 0 for head in heads], [head.n_experts for head in heads])
    return binned(stack.experts[counting], stack.forecasts[counting], amount)


def _feed_columns(stack: Stack, rules: Sequence[int], outcome: int | None, weight: float, method: Method) -> FloatArray:
    """Columns of the feed: counts, outer layer, stretch, safety net; of each vote rule moments and truth table."""
    heads = stack.heads
    counting = [head for head in heads if head.counts]
    share, means = len(counting) / len(heads), _means(heads)
    of_counting = means if len(counting) == len(heads) else _means(counting or heads)
    values = [share if outcome is None else 1.0, float(outcome is not None), 1.0, means.voters / VOTES]
    values += [share * of_counting.half_yes / VOTES, share * of_counting.half_voters / VOTES]
    values += [0.0] * (len(FEED_COMMON) - len(values)) if outcome is None else _mixer_columns(means, outcome)
    for rule in range(len(VOTE_RULES)):
        values += _rule_columns(stack, rule, outcome, weight) if rule in rules else [0.0] * len(FEED_RULE)
    own = [head for head in counting if head.class_first >= 0.0]
    values += _class_moments(own, len(heads), weight) if own else [0.0] * len(FEED_CLASS)
    values += _variant_columns(counting, len(heads), weight, method) if method.variant else [0.0] * len(FEED_VARIANT)
    return np.array(values)


def _means(heads: Sequence[Head]) -> Head:
    """The mean of each number over the rounds."""
    if len(heads) == 1:
        return heads[0]
    means = np.add.reduce(np.array(heads, dtype=np.float64), axis=0) / len(heads)
    return Head._make(means.tolist())


def _rule_columns(stack: Stack, rule: int, outcome: int | None, weight: float) -> list[float]:
    """Columns of one vote rule: moments of the votes over its rounds that count, truth table over all of its rounds."""
    heads = stack.heads
    counting = [head for head in heads if head.counts and head.rule == rule]
    values = [0.0] * len(FEED_RULE)
    if counting:
        share, means = len(counting) / len(heads), _means(counting)
        pair, rest = means.pair, means.rest
        moments = (1.0, weight * share, pair, rest, pair * pair, rest * rest, pair * rest)
        values[: len(moments)] = [share * number for number in moments]
    if outcome is not None:
        ones, all_of_it = _share_of_ones(stack, rule)
        right, wrong = (ones, all_of_it - ones) if outcome else (all_of_it - ones, ones)
        values[7 + 2 * outcome : 9 + 2 * outcome] = right, wrong
    return values


def _share_of_ones(stack: Stack, rule: int) -> tuple[float, float]:
    """How many of the experts' own reference answers are 1 under a vote rule, and how many there are.

    Of each round the share, of them the mean over all rounds of the question.
    """
    sizes = np.array([head.n_experts for head in stack.heads])
    starts = np.add.accumulate(sizes) - sizes
    ones = np.add.reduceat(stack.answers, starts, dtype=np.int64) / sizes
    of_rule = np.array([head.rule == rule for head in stack.heads])
    return float(np.add.reduce(ones[of_rule])) / len(sizes), int(np.count_nonzero(of_rule)) / len(sizes)


def _class_moments(heads: Sequence[Head], n_rounds: int, weight: float) -> list[float]:
    """Moments of the vote count over rounds that have them, of ``n_rounds`` in all."""
    share, means = len(heads) / n_rounds, _means(heads)
    terms = means.class_first, means.class_second, means.class_third, means.class_answer, means.class_both
    moments = (1.0, weight * share, *terms, *(one * two for one, two in combinations_with_replacement(terms, 2)))
    return [share * number for number in moments]


def _variant_columns(heads: Sequence[Head], n_rounds: int, weight: float, method: Method) -> list[float]:
    """Answers of groups over the rounds that count, of ``n_rounds`` in all; and the mixability gap."""
    asked = n_groups(method.variant) if method.variant else 0
    answered = [moments for head in heads if (moments := group_moments(head.groups, asked)) is not None]
    share = len(answered) / n_rounds
    sums = [sum(column) / n_rounds for column in zip(*answered, strict=True)] or [0.0] * 7
    return [share, weight * share, *sums, sum(head.gap for head in heads) / n_rounds]


def _mixer_columns(means: Head, outcome: int) -> list[float]:
    """Outer layer, stretch and safety net of a question with its outcome."""
    mean, mix, unguarded = means.mean, means.mix, means.unguarded
    peer, slow, fast = means.peer - mean, means.truth_slow - mean, means.truth_fast - mean
    error, centred = outcome - mean, mix - 0.5
    difference = (unguarded - outcome) * (unguarded - outcome) - error * error
    return [
        *(peer * peer, peer * slow, peer * fast, slow * slow, slow * fast, fast * fast),
        *(peer * error, slow * error, fast * error),
        *((outcome - mix) * centred, centred * centred),
        *(difference, difference * difference),
    ]

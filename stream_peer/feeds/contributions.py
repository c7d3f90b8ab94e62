"""What a question adds to the sums, given the facts of its rounds and the evidence for its outcome.

The question is the unit. Over its rounds the quantities of a round are averaged first; then come absolute values,
squares and products; then the question's weight. So forty rounds of one question are no more evidence than one.

Rounds that were scored under different vote rules go to different columns: for each of the rules the other's rounds
count as 0.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from stream_peer.feeds.columns import (
    EXPERT,
    FEED,
    RULE_PART,
    VOTE_RULES,
    VOTES,
    blocks_span,
    classes_span,
    evaluated_span,
    rule_span,
)
from stream_peer.feeds.facts import Head, Stack, head_of, losses_of, stacked
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.medians import binned
from stream_peer.feeds.method import Method
from stream_peer.feeds.methods.variants import group_moments, n_groups
from stream_peer.feeds.scored import evaluation, scored_facts
from stream_peer.feeds.sums import NOTHING, SCALE, Binned, Contribution, IndexArray, fixed
from stream_peer.numerics.losses import FloatArray, IntArray
from stream_peer.numerics.losses.arguments import unchecked
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss

_FEWEST = 2
"""Experts that must stand in a round for it to say how they did beside one another."""

_N_RULE = len(EXPERT.names(by_rule=True))
_PRICED, _SPREAD = EXPERT.at("absolute_regret"), EXPERT.at("variance")

_PEER_ROWS: Mapping[tuple[int, ...], IntArray] = {
    rules: EXPERT.written("open", rules) for rules in ((0,), (1,), (0, 1))
}
"""Rows that a question without outcome writes, by the vote rules of its rounds."""

_TRUTH_ROWS = np.setdiff1d(EXPERT.written("resolved"), np.r_[evaluated_span()])
"""Rows that its rounds write with the outcome, in the order of the table: the scored forecast writes the others."""

_N_REGRETS = len(EXPERT.between("outcome_regret", "fast_absolute"))
"""How many of these begin with it: regrets and terms of the mixer."""

_SINGLE = [
    Head._fields.index(name) for name in ("rule", "counts", "rate_zero", "rate_one", "spread", "mean", "truth_fast")
]
_FIRST_OWN, _FIRST_PUBLISHED, _PAST_PUBLISHED = (
    Head._fields.index(name) for name in ("own_answer", "published_answer", "spread")
)


def contribution(entry: Entry, method: Method) -> Contribution:
    """What a question adds to the sums, given its facts and the evidence for its outcome.

    A pure function: the same facts and evidence give the same bits, whatever happened before.
    """
    if not entry.rounds or entry.evidence == "annulled":
        return NOTHING
    return contribution_of(stacked(entry.rounds), entry, method)


def contribution_of(stack: Stack, entry: Entry, method: Method) -> Contribution:
    """``contribution`` of an entry whose facts are at hand, of one round at least; not for annulled questions."""
    evidence, weight = entry.evidence, entry.weight
    outcome = None if evidence == "open" else int(evidence == 1)
    rules = sorted({head.rule for head in stack.heads})
    experts, columns, rows = (
        _peer_columns(stack, rules, weight, method)
        if outcome is None
        else _truth_columns(stack, rules[0], outcome, method)
    )
    feed = _feed_columns(stack, rules, outcome, weight, method)
    histograms = _binned(stack, weight) if method.keeps_histograms else None
    scored = None if outcome is None else scored_facts(entry)
    if outcome is None or scored is None:
        return Contribution(experts, fixed(columns, weight), fixed(feed, weight), rows, histograms)
    values, evaluated, shadows = evaluation(scored, outcome, weight)
    feed[FEED.span("evaluated", "median_squared")] = values
    return Contribution(experts, fixed(columns, weight), fixed(feed, weight), rows, histograms, evaluated, shadows)


def rule_part(entry: Entry) -> IntArray:
    """What of a question's contribution goes to the columns of the vote rule of its latest round: RULE_PART.

    It must have rounds, and not be annulled.
    """
    heads = [head_of(packed) for packed in entry.rounds]
    outcome = None if entry.evidence == "open" else int(entry.evidence == 1)
    return fixed(np.array(_rule_columns(heads, heads[-1].rule, outcome, entry.weight)), entry.weight)


class _Terms(NamedTuple):
    """Numbers of the round that each forecast belongs to; plain numbers if there is one round only."""

    rule: float | FloatArray
    counts: float | FloatArray
    rate_zero: float | FloatArray
    rate_one: float | FloatArray
    spread: float | FloatArray
    mean: float | FloatArray
    fast: float | FloatArray
    regretted: FloatArray


def _terms(stack: Stack) -> _Terms:
    """``regretted``, (2, 3, 1 or m): weighted means of the losses, by the published and by the learner's weights."""
    if len(stack.heads) == 1:
        (h,) = stack.heads
        regretted = np.array(h[_FIRST_PUBLISHED:_PAST_PUBLISHED] + h[_FIRST_OWN:_FIRST_PUBLISHED]).reshape(2, 3, 1)
        return _Terms(h.rule, h.counts, h.rate_zero, h.rate_one, h.spread, h.mean, h.truth_fast, regretted)
    sizes = [head.n_experts for head in stack.heads]
    numbers = np.repeat(np.array(stack.heads, dtype=np.float64), sizes, axis=0)
    regretted = np.stack((numbers[:, _FIRST_PUBLISHED:_PAST_PUBLISHED].T, numbers[:, _FIRST_OWN:_FIRST_PUBLISHED].T))
    return _Terms._make((*numbers[:, _SINGLE].T, regretted))


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


def _peer_columns(
    stack: Stack, rules: Sequence[int], weight: float, method: Method
) -> tuple[IndexArray, FloatArray, IntArray]:
    """Without outcome: experts, columns, and which they are. Loss parts, regrets, certificate of each rule; mixer."""
    terms = _terms(stack)
    rows = _peer_rows(stack, terms, method)
    experts, columns = _averaged(stack, rows)
    if len(rules) > 1:
        of_rules = [_averaged(stack, rows[:_N_RULE] * (terms.rule == rule))[1] for rule in rules]
        columns = np.concatenate((*of_rules, columns[_N_RULE:]))
    for place in range(len(rules)):
        of_rule = columns[place * _N_RULE : (place + 1) * _N_RULE]
        np.abs(of_rule[_PRICED], out=of_rule[_PRICED])
        of_rule[_SPREAD] *= of_rule[_SPREAD] * (0.25 * weight)
    return experts, columns, _PEER_ROWS[tuple(rules)]


def _peer_rows(stack: Stack, terms: _Terms, method: Method) -> FloatArray:
    """Without outcome, for each forecast: as the columns of a vote rule, then those of the mixer and ones.

    Of the regret and the spread, of which the columns hold absolute values and squares, the values themselves.
    """
    rows = np.empty((len(_PEER_ROWS[(0,)]), len(stack.forecasts)))
    losses = rows[EXPERT.span("loss", "loss_if_zero")]
    regret, if_one, if_zero = rows[EXPERT.span("regret", "regret_if_zero")]
    losses[:] = losses_of(stack, method)
    np.subtract(terms.regretted, losses, out=rows[EXPERT.span("published_regret", "regret_if_zero")].reshape(2, 3, -1))
    rows[_PRICED] = unchecked(unit_peer_loss)(regret, if_one, if_zero, terms.rate_zero, terms.rate_one)
    rows[_SPREAD] = terms.spread + (1.0 - 2.0 * stack.select) * np.abs(losses[1] - losses[2])
    _fill_mix(stack, terms.mean, rows[_N_RULE:-1])
    rows[-1] = 1.0
    if method.is_frozen:
        regret[:], if_one[:], if_zero[:] = rows[_PRICED], 0.0, 0.0
    if not all(head.counts for head in stack.heads):
        rows *= terms.counts
    return rows


def _fill_mix(stack: Stack, mean: float | FloatArray, rows: FloatArray) -> None:
    """2b(b - p), 2(b - p) and 2(b - p)·ŷ, b the plain mean."""
    level, slope, answer = rows
    np.multiply(2.0, mean - stack.forecasts, out=slope)
    np.multiply(mean, slope, out=level)
    np.multiply(slope, stack.answers, out=answer)


def _truth_columns(stack: Stack, rule: int, outcome: int, method: Method) -> tuple[IndexArray, FloatArray, IntArray]:
    """With the outcome: experts, columns, and which they are. Loss and count, regrets, mixer.

    Frozen regrets against reference answers, of the vote rule, stay on when the outcome comes.
    """
    experts, means = _averaged(stack, _truth_rows(stack, outcome, method))
    outcome_regret, outcome_absolute, *_, fast_regret, fast_absolute = means[:_N_REGRETS]
    np.abs(outcome_regret, out=outcome_absolute)
    np.abs(fast_regret, out=fast_absolute)
    if not method.is_frozen:
        return experts, means, _TRUTH_ROWS
    frozen = [EXPERT.at(name, VOTE_RULES[rule]) for name in ("regret", "absolute_regret")]
    return experts, np.concatenate((means, np.abs(means[-1:]))), np.append(_TRUTH_ROWS, frozen)


def _truth_rows(stack: Stack, outcome: int, method: Method) -> FloatArray:
    """With the outcome, for each forecast: the columns of which means over the rounds are taken."""
    terms = _terms(stack)
    rows = np.empty((len(_TRUTH_ROWS) + method.is_frozen, len(stack.forecasts)))
    (regret, absolute, level, slope, answer, mix_regret, fast_regret, fast_absolute) = rows[:_N_REGRETS]
    compared, resolved, loss, true_regret = rows[_N_REGRETS : _N_REGRETS + 4]
    judged = rows[_N_REGRETS + 4 : len(_TRUTH_ROWS)]
    absolute[:] = fast_absolute[:] = 0.0  # of means over the rounds, which are not known yet
    against = 1 if outcome else 2
    loss[:] = losses_of(stack, method)[against]
    resolved[:] = compared[:] = 1.0
    published, own = terms.regretted[:, against]
    np.subtract(published, loss, out=true_regret)
    np.subtract(own, loss, out=regret)
    _fill_mix(stack, terms.mean, rows[2:5])
    _fill_judged(stack, terms, loss, judged, method)
    mix_regret[:] = level - outcome * slope - 0.125 * np.square(slope)
    np.multiply(2.0 * (terms.fast - outcome), terms.fast - stack.forecasts, out=fast_regret)
    if method.is_frozen:
        regret[:] = 0.0
        rows[-1] = terms.counts * _frozen_regret(stack, terms, method)
    level *= terms.counts
    slope *= terms.counts
    answer *= terms.counts
    if any(head.n_experts < _FEWEST for head in stack.heads):
        shared = np.repeat(
            [head.n_experts >= _FEWEST for head in stack.heads], [head.n_experts for head in stack.heads]
        )
        rows[: _N_REGRETS + 1] *= shared
        true_regret *= shared
        rows[len(_TRUTH_ROWS) :] *= shared
    return rows


def _fill_judged(stack: Stack, terms: _Terms, true_loss: FloatArray, rows: FloatArray, method: Method) -> None:
    """Whether the round counts; peer loss on the scale of outcomes and loss, each less its mean over those present."""
    counts, peer, true = rows
    against, if_one, if_zero = losses_of(stack, method)
    peer[:] = unchecked(unbiased_peer_loss)(against, if_one, if_zero, terms.rate_zero, terms.rate_one)
    true[:] = true_loss
    sizes = [head.n_experts for head in stack.heads]
    starts = np.cumsum([0, *sizes[:-1]])
    rows[1:] -= np.repeat(np.add.reduceat(rows[1:], starts, axis=1) / sizes, sizes, axis=1)
    counts[:] = 1.0
    rows *= terms.counts


def _frozen_regret(stack: Stack, terms: _Terms, method: Method) -> FloatArray:
    """Regret against the reference answers, at the price of the time."""
    against, one, zero = terms.regretted[1] - losses_of(stack, method)
    return np.asarray(unchecked(unit_peer_loss)(against, one, zero, terms.rate_zero, terms.rate_one), dtype=np.float64)


def _binned(stack: Stack, weight: float) -> Binned:
    """The forecasts of the rounds that count."""
    heads = stack.heads
    amount = round(1.0 / len(heads) * (weight * SCALE))
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
    votes = share * of_counting.half_yes / VOTES, share * of_counting.half_voters / VOTES
    feed = np.zeros(FEED.size)
    feed[FEED.span("questions", "votes")] = (
        share if outcome is None else 1.0,
        outcome is not None,
        1.0,
        means.voters / VOTES,
        *votes,
    )
    feed[FEED.at("tied")] = share * of_counting.tie
    if outcome is not None:
        feed[FEED.span("peer_peer", "net_square")] = _mixer_columns(heads, outcome)
    for rule in rules:
        feed[rule_span(rule)] = _rule_columns(heads, rule, outcome, weight)
        four = [head for head in counting if head.rule == rule and head.vote_fourth >= 0.0]
        if four:
            moments = _fourth_moments(four, len(heads), weight)
            start = blocks_span(rule).start + len(moments) * int(four[0].block)
            feed[start : start + len(moments)] = moments
    own = [head for head in counting if head.class_first >= 0.0]
    if own:
        feed[classes_span()] = _class_moments(own, len(heads), weight)
    if method.variant:
        feed[FEED.span("group_weight", "mixability_gap")] = _variant_columns(counting, len(heads), weight, method)
    return feed


def _means(heads: Sequence[Head]) -> Head:
    """The mean of each number over the rounds."""
    if len(heads) == 1:
        return heads[0]
    means = np.add.reduce(np.array(heads, dtype=np.float64), axis=0) / len(heads)
    return Head._make(means.tolist())


def _rule_columns(heads: Sequence[Head], rule: int, outcome: int | None, weight: float) -> list[float]:
    """Columns of one vote rule, over its rounds that count: moments of the votes, and the truth table.

    The rates read off them price the losses of rounds that count. The answers of others, against whom often nobody
    voted, are not of their kind.
    """
    counting = [head for head in heads if head.counts and head.rule == rule]
    values = [0.0] * len(RULE_PART)
    if counting:
        share, means = len(counting) / len(heads), _means(counting)
        pair, rest = means.pair, means.rest
        moments = (1.0, weight * share, pair, rest, pair * pair, rest * rest, pair * rest)
        values[: len(moments)] = [share * number for number in moments]
        values[RULE_PART.index("answer") :] = share * means.ones, share * means.ones * means.ones
    if counting and outcome is not None:
        ones = share * means.ones
        zeros = share - ones
        right = RULE_PART.index("right_one" if outcome else "right_zero")
        values[right : right + 2] = (ones, zeros) if outcome else (zeros, ones)
        values[RULE_PART.index("revealed_pair")] = share * means.pair
    return values


def _fourth_moments(heads: Sequence[Head], n_rounds: int, weight: float) -> list[float]:
    """Moments of the votes up to the fourth over rounds that have them, of ``n_rounds`` in all."""
    share, means = len(heads) / n_rounds, _means(heads)
    moments = means.vote_first, means.vote_second, means.vote_third, means.vote_fourth
    return [share * number for number in (1.0, weight * share, *moments)]


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


def _mixer_columns(heads: Sequence[Head], outcome: int) -> list[float]:
    """Outer layer, stretch and safety net of a question with its outcome, over rounds in which two experts stood."""
    shared = [head for head in heads if head.n_experts >= _FEWEST]
    if not shared:
        return [0.0] * len(FEED.between("peer_peer", "net_square"))
    share, means = len(shared) / len(heads), _means(shared)
    return [share * value for value in _mixer_terms(means, outcome)]


def _mixer_terms(means: Head, outcome: int) -> list[float]:
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

"""What a question adds to the sums, given the facts of its rounds and the evidence for its outcome.

The question is the unit. Over its rounds the quantities of a round are averaged first; then come absolute values,
squares and products; then the question's weight. So forty rounds of one question are no more evidence than one.

Rounds that were scored under different vote rules go to different columns: for each of the rules the other's rounds
count as 0.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, combinations_with_replacement, islice

import msgspec
import numpy as np
from msgspec.structs import astuple

from stream_peer.feeds.columns import (
    EXPERT,
    FEED,
    RULE_PART,
    SCALE,
    VOTE_RULES,
    VOTES,
    classes_span,
    evaluated_span,
    rule_span,
)
from stream_peer.feeds.facts import Bits, Facts, Mix, losses_of
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.medians import binned
from stream_peer.feeds.methods.group_answers import group_moments
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.scored import evaluation, scored_facts
from stream_peer.feeds.sums import NOTHING, Amount, Binned, Contribution, fixed
from stream_peer.numerics.arguments import BoolArray, FloatArray, IndexArray, IntArray, unchecked
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss

_unit_peer_loss = unchecked(unit_peer_loss)
_unbiased_peer_loss = unchecked(unbiased_peer_loss)

_FEWEST = 2
"""Experts that must stand in a round for it to say how they did beside one another."""

_STATED_ERROR = FEED.at("stated_error")
_N_RULE = len(EXPERT.between("variance", "absolute_regret"))
_PRICED, _SPREAD = EXPERT.at("absolute_regret"), EXPERT.at("variance")
_SPANS = EXPERT.span("loss", "loss_if_zero"), EXPERT.span("published_regret", "regret_if_zero")
_REGRET = EXPERT.at("regret")
_COUNTS, _TIED, _EVALUATED = FEED.at("questions"), FEED.at("tied"), FEED.at("evaluated")
_AGREED = FEED.at("agreed")
_MIXERS, _GROUPS = FEED.at("peer_peer"), FEED.at("group_weight")
_CLASSES, _CLASSES_AT_HALF = classes_span().start, classes_span("half").start
_RULES = [rule_span(rule).start for rule in range(len(VOTE_RULES))]
_NO_MOMENTS = [0.0] * len(RULE_PART)
_ANSWER, _REVEALED_PAIR = RULE_PART.index("answer"), RULE_PART.index("revealed_pair")
_TRUTH_TABLE = RULE_PART.index("right_zero"), RULE_PART.index("right_one")
"""Where right answers of either outcome are; wrong ones follow."""

_PEER_ROWS: Mapping[tuple[int, ...], IntArray] = {
    rules: EXPERT.written("open", rules, version=1) for rules in ((0,), (1,), (0, 1))
}
"""Rows that a question without outcome writes, by the vote rules of its rounds."""

_TRUTH_ROWS = np.setdiff1d(EXPERT.written("resolved", version=1), np.r_[evaluated_span()])
"""Rows that its rounds write with the outcome, in the order of the table: the scored forecast writes the others."""


_N_REGRETS = len(EXPERT.between("outcome_regret", "fast_absolute"))
"""How many of these begin with it: regrets and terms of the mixer."""


def contribution(entry: Entry, method: Method) -> Contribution:
    """What a question adds to the sums, given its facts and the evidence for its outcome.

    A pure function: the same facts and evidence give the same bits, whatever happened before.
    """
    if not entry.rounds or entry.evidence == "annulled":
        return NOTHING
    rounds, evidence, weight = entry.facts(), entry.evidence, entry.weight
    # Of the k-th part of a group 2k - 1 times, since 1 + 3 + … + (2k - 1) = k²: parts of weight w add up to (kw)².
    squares = weight * (2 * entry.rank - 1) if method.counts_groups else weight
    outcome = None if evidence == "open" else int(evidence == 1)
    rules = [rounds[0].votes.rule] if len(rounds) == 1 else sorted({facts.votes.rule for facts in rounds})
    counting = _counting(rounds, rules)
    flat = _flat(rounds, method)
    experts, columns, rows = _expert_columns(flat, rules, outcome, weight, method, is_closed=rounds[-1].final)
    of_feed = _feed_columns(rounds, counting, outcome, weight, method, squares)
    if method.rates_by_trust:
        of_feed.append((_STATED_ERROR, (_mean([min(facts.mix.mean, 1.0 - facts.mix.mean) for facts in rounds]),)))
    scored = None if outcome is None else scored_facts(entry)
    found = None if outcome is None or scored is None else evaluation(scored, outcome, weight)
    if found is not None:
        of_feed.append((_EVALUATED, found.feed))
    of_rules = {rule: _rule_columns(of_rule, len(rounds), outcome, squares) for rule, of_rule in counting.items()}
    feed, of_rule, votes = _whole_numbers(
        of_feed, of_rules, rounds[-1].votes.rule, _fourth_moments(counting, len(rounds), squares), weight
    )
    histograms = _binned(flat, weight) if method.keeps_histograms else None
    whole = fixed(columns, weight)
    if found is None:
        return Contribution(experts, whole, rows, feed, votes, histograms, of_rule=of_rule)
    return Contribution(experts, whole, rows, feed, votes, histograms, found.experts, found.shadows, of_rule)


def _counting(rounds: Sequence[Facts], rules: Sequence[int]) -> Mapping[int, Sequence[Facts]]:
    """By vote rule: the rounds that count."""
    if len(rules) == 1:
        return {rules[0]: [facts for facts in rounds if facts.votes.counts]}
    return {rule: [facts for facts in rounds if facts.votes.counts and facts.votes.rule == rule] for rule in rules}


class _Flat(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The rounds of a question, their experts one behind the other.

    ``sizes``: experts of each round; ``counting``: whether each round counts. From ``rule`` on these are numbers of the
    round that each forecast belongs to; plain numbers if there is one round only. ``regretted``, (2, 3, 1 or m):
    weighted means of the losses, by the published and by the learner's weights.
    """

    sizes: Sequence[int]
    counting: Sequence[bool]
    experts: IndexArray
    forecasts: FloatArray
    select: FloatArray
    answers: Bits
    mixer_answers: Bits
    losses: FloatArray
    rule: float | FloatArray
    counts: float | FloatArray
    rate_zero: float | FloatArray
    rate_one: float | FloatArray
    spread: float | FloatArray
    mean: float | FloatArray
    fast: float | FloatArray
    regretted: FloatArray


def _flat(rounds: Sequence[Facts], method: Method) -> _Flat:
    if len(rounds) == 1:
        (facts,) = rounds
        rule, counts, zero, one, spread, mean, fast, *regretted = _numbers(facts)
        return _Flat(
            (len(facts.forecasts),),
            (facts.votes.counts,),
            facts.experts,
            facts.forecasts,
            facts.select,
            facts.answers,
            _mixer_answers(facts),
            losses_of(facts, method),
            *(rule, counts, zero, one, spread, mean, fast),
            np.array(regretted).reshape(2, 3, 1),
        )
    sizes = [len(facts.forecasts) for facts in rounds]
    forecasts = np.concatenate([facts.forecasts for facts in rounds])
    answers = np.concatenate([facts.answers for facts in rounds])
    numbers = np.repeat(np.array([_numbers(facts) for facts in rounds], dtype=np.float64), sizes, axis=0).T
    rule, counts, zero, one, spread, mean, fast = numbers[:-6]
    return _Flat(
        sizes,
        [facts.votes.counts for facts in rounds],
        np.concatenate([facts.experts for facts in rounds]),
        forecasts,
        np.concatenate([facts.select for facts in rounds]),
        answers,
        np.concatenate([_mixer_answers(facts) for facts in rounds]),
        method.losses(forecasts, answers),
        *(rule, counts, zero, one, spread, mean, fast),
        numbers[-6:].reshape(2, 3, -1),
    )


def _mixer_answers(facts: Facts) -> Bits:
    """The reference answers from which the mixers learn."""
    return facts.answers if facts.mixer_answers is None else facts.mixer_answers


def _numbers(facts: Facts) -> tuple[float, ...]:
    """What of a round's numbers the columns of its experts are made of, in the order of ``_Flat``."""
    votes, losses, mix = facts.votes, facts.losses, facts.mix
    return (
        *(votes.rule, votes.counts, losses.rate_zero, losses.rate_one, losses.spread, mix.mean, mix.truth_fast),
        *losses.published,
        *losses.own,
    )


def _expert_columns(
    flat: _Flat, rules: Sequence[int], outcome: int | None, weight: float, method: Method, *, is_closed: bool
) -> tuple[IndexArray, FloatArray, IntArray]:
    """Experts, columns, and which they are."""
    if outcome is None and method.bounds_all and is_closed and len(flat.sizes) == 1 and flat.counting[0]:
        return _closed_columns(flat, rules[0], weight, method)
    experts, columns, rows = (
        _peer_columns(flat, rules, weight, method)
        if outcome is None
        else _truth_columns(flat, rules[0], outcome, method)
    )
    if not method.bounds_all:
        return experts, columns, rows
    bounded = _certificate_columns(flat, rules, outcome, weight, is_closed=is_closed)
    added = _certificate_rows(tuple(rules), is_open=outcome is None)
    return experts, np.concatenate((columns, *bounded)), np.concatenate((rows, added))


def _averaged(flat: _Flat, rows: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Rows averaged over the rounds, 0 where an expert was absent; and the experts they belong to."""
    n_rounds = len(flat.sizes)
    if n_rounds == 1:
        return flat.experts, rows
    experts, columns = np.unique(flat.experts, return_inverse=True)
    cells = np.repeat(np.arange(n_rounds), flat.sizes) * len(experts) + columns
    table = np.zeros(n_rounds * len(experts))
    by_round = table.reshape(n_rounds, -1)
    means = np.empty((len(rows), len(experts)))
    for row, mean in zip(rows, means, strict=True):
        table[cells] = row
        np.add.reduce(by_round, axis=0, out=mean)
    means /= n_rounds
    return experts, means


def _peer_columns(
    flat: _Flat, rules: Sequence[int], weight: float, method: Method
) -> tuple[IndexArray, FloatArray, IntArray]:
    """Without outcome: experts, columns, and which they are. Loss parts, regrets, certificate of each rule; mixer."""
    rows = _peer_rows(flat, method, np.empty((len(_PEER_ROWS[(0,)]), len(flat.forecasts))))
    experts, columns = _averaged(flat, rows)
    if len(rules) > 1:
        of_rules = [_averaged(flat, rows[:_N_RULE] * (flat.rule == rule))[1] for rule in rules]
        columns = np.concatenate((*of_rules, columns[_N_RULE:]))
    for place in range(len(rules)):
        _square(columns[place * _N_RULE : (place + 1) * _N_RULE], weight)
    return experts, columns, _PEER_ROWS[tuple(rules)]


def _square(of_rule: FloatArray, weight: float) -> None:
    """Make the columns of a vote rule of means over the rounds: the absolute value of the regret, the variance."""
    np.abs(of_rule[_PRICED], out=of_rule[_PRICED])
    of_rule[_SPREAD] *= of_rule[_SPREAD] * (0.25 * weight)


def _closed_columns(flat: _Flat, rule: int, weight: float, method: Method) -> tuple[IndexArray, FloatArray, IntArray]:
    """`_peer_columns` and `_certificate_columns` of a single round, final and counting: they share most numbers."""
    n_peer = len(_PEER_ROWS[(0,)])
    columns = np.empty((n_peer + 6, len(flat.forecasts)))
    _peer_rows(flat, method, columns[:n_peer])
    reach, regrets = columns[n_peer], columns[_SPANS[1]][:3]
    if _alike(flat)[0]:
        np.abs(np.subtract(regrets[1], regrets[2], out=reach), out=reach)
    else:
        reach[:] = columns[_SPREAD]
    reach *= reach * weight
    columns[n_peer + 1 : -2], columns[-2] = regrets, 0.0
    np.maximum(regrets[1], regrets[2], out=columns[-1])
    _square(columns, weight)
    return flat.experts, columns, _closed_rows(rule)


@cache
def _closed_rows(rule: int) -> IntArray:
    """Which columns `_closed_columns` are."""
    return np.concatenate((_PEER_ROWS[(rule,)], _certificate_rows((rule,), is_open=True)))


def _peer_rows(flat: _Flat, method: Method, rows: FloatArray) -> FloatArray:
    """Without outcome, for each forecast: as the columns of a vote rule, then those of the mixer and ones.

    Of the regret and the spread, of which the columns hold absolute values and squares, the values themselves.
    """
    of_losses, of_regrets = _SPANS
    losses = rows[of_losses]
    regret, if_one, if_zero = rows[_REGRET : _REGRET + 3]
    losses[:] = flat.losses
    np.subtract(flat.regretted, losses, out=rows[of_regrets].reshape(2, 3, -1))
    rows[_PRICED] = _unit_peer_loss(regret, if_one, if_zero, flat.rate_zero, flat.rate_one)
    rows[_SPREAD] = flat.spread + (1.0 - 2.0 * flat.select) * np.abs(losses[1] - losses[2])
    _fill_mix(flat, rows[_N_RULE:-1])
    rows[-1] = 1.0
    if method.is_frozen:
        regret[:], if_one[:], if_zero[:] = rows[_PRICED], 0.0, 0.0
    if not all(flat.counting):
        rows *= flat.counts
    return rows


def _fill_mix(flat: _Flat, rows: FloatArray) -> None:
    """2b(b - p), 2(b - p) and 2(b - p)·ŷ, b the plain mean."""
    level, slope, answer = rows
    np.multiply(2.0, flat.mean - flat.forecasts, out=slope)
    np.multiply(flat.mean, slope, out=level)
    np.multiply(slope, flat.mixer_answers, out=answer)


def _truth_columns(flat: _Flat, rule: int, outcome: int, method: Method) -> tuple[IndexArray, FloatArray, IntArray]:
    """With the outcome: experts, columns, and which they are. Loss and count, regrets, mixer.

    Frozen regrets against reference answers, of the vote rule, stay on when the outcome comes.
    """
    experts, means = _averaged(flat, _truth_rows(flat, outcome, method))
    outcome_regret, outcome_absolute, *_, fast_regret, fast_absolute = means[:_N_REGRETS]
    np.abs(outcome_regret, out=outcome_absolute)
    np.abs(fast_regret, out=fast_absolute)
    if not method.is_frozen:
        return experts, means, _TRUTH_ROWS
    frozen = [EXPERT.at(name, VOTE_RULES[rule]) for name in ("regret", "absolute_regret")]
    return experts, np.concatenate((means, np.abs(means[-1:]))), np.append(_TRUTH_ROWS, frozen)


def _truth_rows(flat: _Flat, outcome: int, method: Method) -> FloatArray:
    """With the outcome, for each forecast: the columns of which means over the rounds are taken."""
    rows = np.empty((len(_TRUTH_ROWS) + method.is_frozen, len(flat.forecasts)))
    (regret, absolute, level, slope, answer, mix_regret, fast_regret, fast_absolute) = rows[:_N_REGRETS]
    compared, resolved, loss, true_regret = rows[_N_REGRETS : _N_REGRETS + 4]
    judged = rows[_N_REGRETS + 4 : len(_TRUTH_ROWS)]
    absolute[:] = fast_absolute[:] = 0.0  # of means over the rounds, which are not known yet
    against = 1 if outcome else 2
    loss[:] = flat.losses[against]
    resolved[:] = compared[:] = 1.0
    published, own = flat.regretted[:, against]
    np.subtract(published, loss, out=true_regret)
    np.subtract(own, loss, out=regret)
    _fill_mix(flat, rows[2:5])
    _fill_judged(flat, loss, judged)
    mix_regret[:] = level - outcome * slope - 0.125 * np.square(slope)
    np.multiply(2.0 * (flat.fast - outcome), flat.fast - flat.forecasts, out=fast_regret)
    if method.is_frozen:
        regret[:] = 0.0
        rows[-1] = flat.counts * _frozen_regret(flat)
    level *= flat.counts
    slope *= flat.counts
    answer *= flat.counts
    if min(flat.sizes) < _FEWEST:
        shared = np.repeat([size >= _FEWEST for size in flat.sizes], flat.sizes)
        rows[: _N_REGRETS + 1] *= shared
        true_regret *= shared
        rows[len(_TRUTH_ROWS) :] *= shared
    return rows


@cache
def _certificate_rows(rules: tuple[int, ...], *, is_open: bool) -> IntArray:
    """Which columns of the certificate of version 2 a question writes."""
    names = EXPERT.between("closed_reach", "closed_regret_if_zero")
    places = [EXPERT.at(name, VOTE_RULES[rule]) for rule in rules for name in names]
    others = ("other_regret", "most_regret") if is_open else ("other_regret",)
    return np.array([*places, *map(EXPERT.at, others)])


def _certificate_columns(
    flat: _Flat, rules: Sequence[int], outcome: int | None, weight: float, *, is_closed: bool
) -> list[FloatArray]:
    """What the certificate of version 2 adds up, in the order of ``_certificate_rows``.

    The bound by reference answers holds for a question as a whole, not in between: without an outcome its rounds are
    not under it before the final one is in. Rounds that do not count never are. They have the regret that is known, or
    the largest that there can be.
    """
    under = flat.counts * float(is_closed or outcome is not None)
    regrets = flat.regretted[0] - flat.losses
    own = flat.spread + (1.0 - 2.0 * flat.select) * np.abs(flat.losses[1] - flat.losses[2])
    rows = np.empty((6, len(own)))
    rows[0] = np.where(_alike(flat), np.abs(regrets[1] - regrets[2]), own) * under
    rows[1:4] = regrets * under
    rows[4:] = regrets[1:] * (1.0 - under)
    of_all = _averaged(flat, rows)[1]
    means: list[FloatArray] = []
    for rule in rules:
        of_rule = (of_all if len(rules) == 1 else _averaged(flat, rows * (flat.rule == rule))[1])[:4]
        of_rule[0] *= of_rule[0] * weight
        means.append(of_rule)
    if outcome is not None:
        return [*means, of_all[4:5] if outcome else of_all[5:]]
    largest = np.empty((2, of_all.shape[1]))
    np.maximum(of_all[4], of_all[5], out=largest[0])
    np.maximum(of_all[2] + of_all[4], of_all[3] + of_all[5], out=largest[1])
    return [*means, largest]


def _alike(flat: _Flat) -> BoolArray:
    """Of each forecast, or of one round, whether all own reference answers of the round are the same."""
    if len(flat.sizes) == 1:
        return np.array([np.count_nonzero(flat.answers) in (0, flat.sizes[0])])
    starts = np.cumsum([0, *flat.sizes[:-1]])
    ones = np.add.reduceat(flat.answers.astype(np.int64), starts)
    return np.repeat((ones == 0) | (ones == flat.sizes), flat.sizes)


def _fill_judged(flat: _Flat, true_loss: FloatArray, rows: FloatArray) -> None:
    """Whether the round counts; peer loss on the scale of outcomes and loss, each less its mean over those present."""
    counts, peer, true = rows
    against, if_one, if_zero = flat.losses
    peer[:] = _unbiased_peer_loss(against, if_one, if_zero, flat.rate_zero, flat.rate_one)
    true[:] = true_loss
    sizes = flat.sizes
    starts = np.cumsum([0, *sizes[:-1]])
    rows[1:] -= np.repeat(np.add.reduceat(rows[1:], starts, axis=1) / sizes, sizes, axis=1)
    counts[:] = 1.0
    rows *= flat.counts


def _frozen_regret(flat: _Flat) -> FloatArray:
    """Regret against the reference answers, at the price of the time."""
    against, one, zero = flat.regretted[1] - flat.losses
    return np.asarray(_unit_peer_loss(against, one, zero, flat.rate_zero, flat.rate_one), dtype=np.float64)


def _binned(flat: _Flat, weight: float) -> Binned:
    """The forecasts of the rounds that count."""
    amount = round(1.0 / len(flat.sizes) * (weight * SCALE))
    if all(flat.counting):
        return binned(flat.experts, flat.forecasts, amount)
    counting = np.repeat(flat.counting, flat.sizes)
    return binned(flat.experts[counting], flat.forecasts[counting], amount)


def _feed_columns(
    rounds: Sequence[Facts],
    counting: Mapping[int, Sequence[Facts]],
    outcome: int | None,
    weight: float,
    method: Method,
    squares: float,
) -> list[tuple[int, Sequence[float]]]:
    """Columns of the feed but for those of vote rules, neighbours together behind the place of the first of them.

    Counts, outer layer, stretch, safety net. ``squares``: by what the squares of weights are multiplied.
    """
    n_rounds, of_rules = len(rounds), list(counting.values())
    counted = of_rules[0] if len(of_rules) == 1 else [facts for facts in rounds if facts.votes.counts]
    share = len(counted) / n_rounds
    voters = _mean([facts.votes.voters for facts in rounds])
    yes, voted, tied = _means(
        [(facts.votes.half_yes, facts.votes.half_voters, facts.votes.tie) for facts in counted or rounds]
    )
    counts = (
        share if outcome is None else 1.0,
        outcome is not None,
        1.0,
        voters / VOTES,
        share * yes / VOTES,
        share * voted / VOTES,
    )
    found: list[tuple[int, Sequence[float]]] = [(_COUNTS, counts), (_TIED, (share * tied,))]
    if outcome is not None:
        found.append((_MIXERS, _mixer_columns(rounds, outcome)))
    for place, of_place in (
        (_CLASSES, counted if method.reads_classes else counting.get(1, ())),
        (_CLASSES_AT_HALF, counting.get(0, ()) if method.bounds_all else ()),
    ):
        classes = [facts.moments.classes for facts in of_place if facts.moments.classes is not None]
        if classes:
            found.append((place, _of_moments(classes, n_rounds, squares, products=True)))
    if method.trust_prior:
        found.append((_AGREED, _agreement_columns(rounds)))
    if method.draws is not None or method.gap is not None:
        found.append((_GROUPS, _group_columns(counted, n_rounds, weight, method)))
    return found


def _whole_numbers(
    of_feed: Sequence[tuple[int, Sequence[float]]],
    of_rules: Mapping[int, Sequence[float]],
    latest: int,
    fourth: Sequence[tuple[int, int, Sequence[float]]],
    weight: float,
) -> tuple[list[Amount], list[int], list[tuple[int, int, list[int]]]]:
    """Columns of the feed, those of the vote rule ``latest``, and moments of the votes, times the weight.

    All of them are rounded at once: one by one that takes longer than all else that is done with them.
    """
    columns = [*of_feed, *[(_RULES[rule], values) for rule, values in of_rules.items()]]
    values = [*chain.from_iterable([*[some for _, some in columns], *[some for *_, some in fourth]])]
    amounts: list[int] = fixed(np.array(values, np.float64), weight).tolist()
    places = _places(tuple([(first, len(some)) for first, some in columns]))
    feed = [one for one in zip(places, amounts, strict=False) if one[1]]
    rest = iter(amounts[len(places) :])
    votes = [(rule, subsample, list(islice(rest, len(some)))) for rule, subsample, some in fourth]
    end = sum(len(some) for _, some in of_feed) + (1 + [*of_rules].index(latest)) * len(RULE_PART)
    return feed, amounts[end - len(RULE_PART) : end], votes


@cache
def _places(columns: tuple[tuple[int, int], ...]) -> Sequence[int]:
    """Places of neighbours that begin at some places, of each how many. There are few such lists."""
    return tuple(place for first, size in columns for place in range(first, first + size))


def _fourth_moments(
    counting: Mapping[int, Sequence[Facts]], n_rounds: int, squares: float
) -> Sequence[tuple[int, int, Sequence[float]]]:
    """Moments of the votes of each rule, and the subsample that they go to, where rounds that count have them."""
    found = []
    for rule, of_rule in counting.items():
        known = [facts.moments.fourth for facts in of_rule if facts.moments.fourth is not None]
        if known:
            found.append((rule, of_rule[0].moments.subsample, _of_moments(known, n_rounds, squares)))
    return found


def _mean(values: Sequence[float]) -> float:
    """Their mean, added from the first to the last: `sum` would round otherwise."""
    total = values[0]
    for value in values[1:]:
        total += value
    return total / len(values)


def _means(rows: Sequence[Sequence[float]]) -> Sequence[float]:
    """The mean of each number over the rows."""
    return rows[0] if len(rows) == 1 else [_mean(column) for column in zip(*rows, strict=True)]


def _rule_columns(counting: Sequence[Facts], n_rounds: int, outcome: int | None, squares: float) -> Sequence[float]:
    """Columns of one vote rule, over its rounds that count: moments of the votes, and the truth table.

    The rates read off them price the losses of rounds that count. The answers of others, against whom often nobody
    voted, are not of their kind.
    """
    if not counting:
        return _NO_MOMENTS
    share = len(counting) / n_rounds
    pair, rest, ones = _means([(facts.moments.pair, facts.moments.rest, facts.moments.ones) for facts in counting])
    values = _NO_MOMENTS.copy()
    values[:4] = share, share * (squares * share), share * pair, share * rest
    values[4:7] = share * (pair * pair), share * (rest * rest), share * (pair * rest)
    values[_ANSWER:] = share * ones, share * ones * ones
    if outcome is not None:
        place, right = _TRUTH_TABLE[outcome], share * ones if outcome else share - share * ones
        values[place : place + 2] = right, share - share * ones if outcome else share * ones
        values[_REVEALED_PAIR] = share * pair
    return values


def _of_moments(
    rows: Sequence[tuple[float, ...]], n_rounds: int, squares: float, *, products: bool = False
) -> list[float]:
    """Moments of the votes over the rounds that have them, of ``n_rounds`` in all; and the products of each two."""
    share, means = len(rows) / n_rounds, _means(rows)
    moments = (1.0, squares * share, *means)
    if products:
        moments += tuple(one * two for one, two in combinations_with_replacement(means, 2))
    return [share * number for number in moments]


def _group_columns(counting: Sequence[Facts], n_rounds: int, weight: float, method: Method) -> list[float]:
    """Answers of groups over the rounds that count, of ``n_rounds`` in all; and the mixability gap."""
    asked = method.draws.groups if method.draws else 0
    found = (group_moments(facts.votes.groups, asked) for facts in counting)
    answered = [moments for moments in found if moments is not None]
    share = len(answered) / n_rounds
    sums = [sum(column) / n_rounds for column in zip(*answered, strict=True)] or [0.0] * 7
    return [share, weight * share, *sums, sum(facts.losses.gap for facts in counting) / n_rounds]


def _agreement_columns(rounds: Sequence[Facts]) -> list[float]:
    """How mix and mean agree with the other experts, over rounds in which two voters stood."""
    found = [
        (1.0, agreed.level, agreed.cross, (facts.mix.mix - 0.5) ** 2, agreed.centre, facts.mix.mix - 0.5)
        for facts in rounds
        if (agreed := facts.agreement) is not None
    ]
    share = len(found) / len(rounds)
    return [share * value for value in _means(found)] if found else []


def _mixer_columns(rounds: Sequence[Facts], outcome: int) -> list[float]:
    """Outer layer, stretch and safety net of a question with its outcome, over rounds in which two experts stood."""
    shared = [facts.mix for facts in rounds if len(facts.experts) >= _FEWEST]
    if not shared:
        return [0.0] * len(FEED.between("peer_peer", "net_square"))
    share, means = len(shared) / len(rounds), Mix(*_means([astuple(mix) for mix in shared]))
    return [share * value for value in _mixer_terms(means, outcome)]


def _mixer_terms(means: Mix, outcome: int) -> list[float]:
    mean, mix, before_net = means.mean, means.mix, means.before_net
    peer, slow, fast = means.peer - mean, means.truth_slow - mean, means.truth_fast - mean
    error, centred = outcome - mean, mix - 0.5
    difference = (before_net - outcome) * (before_net - outcome) - error * error
    return [
        *(peer * peer, peer * slow, peer * fast, slow * slow, slow * fast, fast * fast),
        *(peer * error, slow * error, fast * error),
        *((outcome - mix) * centred, centred * centred),
        *(difference, difference * difference),
    ]

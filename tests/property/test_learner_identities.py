import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.lab.formulas.learners import fixed_share, mixability_gap
from stream_peer.lab.formulas.regret_sums import RegretSums, loss_parts
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs, hedge, softmax
from stream_peer.numerics.peer_losses import unit_peer_loss
from tests.property.learner_room import LEARNERS, Learner, columns, pools, tied_pools

rates = st.floats(0.0, 0.4)
small_pools = st.lists(st.tuples(st.floats(-9.0, 9.0), st.floats(0.0, 9.0)), min_size=3, max_size=3)
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


def exact_ratio(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Ratio of two weights of AdaNormalHedge as the formula is printed, with 50 digits."""
    with localcontext() as context:
        context.prec = 50
        plain = []
        for regret, absolute in (first, second):
            scale = 3 * (Decimal(absolute) + 1)
            above, below = (max(Decimal(regret) + step, Decimal(0)) ** 2 / scale for step in (1, -1))
            plain.append(above.exp() - below.exp())
        return float(plain[0] / plain[1])


@given(first=st.tuples(st.floats(-0.99, 500.0), st.floats(0.0, 500.0)), second=st.tuples(st.floats(0.0, 9.0), rates))
def test_weights_have_the_ratios_of_the_printed_formula(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    logs = ada_normal_hedge_logs(*columns([first, second]))

    expected = exact_ratio(first, second)

    if 1e-300 < expected < 1e300:
        assert math.exp(logs[0] - logs[1]) == pytest.approx(expected, rel=1e-9)


@given(logs=st.lists(st.floats(-600.0, 600.0), min_size=1, max_size=8))
def test_softmax_has_the_ratios_of_exponentials_with_fifty_digits(logs: list[float]) -> None:
    weights = softmax(np.array(logs))

    with localcontext() as context:
        context.prec = 50
        plain = [Decimal(log).exp() for log in logs]
        total = sum(plain, Decimal(0))
        expected = [float(value / total) for value in plain]
    np.testing.assert_allclose(weights, expected, rtol=1e-12, atol=1e-307)


@every_learner
@given(pool=st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0.0, 1e9)), min_size=1, max_size=10))
def test_weights_are_a_distribution_whatever_the_sums(learner: Learner, pool: list[tuple[float, float]]) -> None:
    weights = learner(*columns(pool), None)

    assert (weights >= 0.0).all()
    assert abs(float(weights.sum()) - 1.0) < 1e-12


@every_learner
@given(pool=st.one_of(pools, tied_pools), shuffle=st.randoms(use_true_random=False))
def test_permuting_experts_permutes_weights(
    learner: Learner, pool: list[tuple[float, float]], shuffle: random.Random
) -> None:
    order = list(range(len(pool)))
    shuffle.shuffle(order)
    regrets, absolute = columns(pool)

    np.testing.assert_allclose(
        learner(regrets[order], absolute[order], None), learner(regrets, absolute, None)[order], rtol=1e-9, atol=1e-15
    )


@every_learner
@given(pool=st.one_of(pools, tied_pools), data=st.data())
def test_a_mask_is_the_same_as_passing_the_awake_only(
    learner: Learner, pool: list[tuple[float, float]], data: st.DataObject
) -> None:
    awake = np.array(data.draw(st.lists(st.booleans(), min_size=len(pool), max_size=len(pool))))
    regrets, absolute = columns(pool)

    weights = learner(regrets, absolute, awake)

    assert (weights[~awake] == 0.0).all()
    np.testing.assert_allclose(weights[awake], learner(regrets[awake], absolute[awake], None), rtol=1e-9, atol=1e-15)


@every_learner
@given(runs=st.lists(small_pools, min_size=1, max_size=4))
def test_many_runs_at_once_are_the_runs_one_by_one(learner: Learner, runs: list[list[tuple[float, float]]]) -> None:
    regrets, absolute = (np.stack(column)[:, None] for column in zip(*map(columns, runs), strict=True))

    together = learner(regrets, absolute, None)

    assert together.shape == (len(runs), 1, 3)
    for weights, run in zip(together[:, 0], map(columns, runs), strict=True):
        np.testing.assert_allclose(weights, learner(*run, None), rtol=1e-12)


@given(pool=pools, data=st.data())
def test_sleeping_experts_leave_the_ratios_of_the_others_alone(
    pool: list[tuple[float, float]], data: st.DataObject
) -> None:
    awake = np.array(data.draw(st.lists(st.booleans(), min_size=len(pool), max_size=len(pool))))
    regrets, absolute = columns(pool)
    everybody = ada_normal_hedge(regrets, absolute)[awake]

    present = ada_normal_hedge(regrets[awake], absolute[awake])

    if everybody.sum() > 1e-200:
        np.testing.assert_allclose(present, everybody / everybody.sum(), atol=1e-9)


@every_learner
@given(pool=pools, better=st.floats(0.0, 10.0))
def test_more_regret_never_means_less_weight(learner: Learner, pool: list[tuple[float, float]], better: float) -> None:
    regrets, absolute = columns(pool)
    raised = regrets.copy()
    raised[0] += better
    if (regrets <= -1.0).all() and learner is LEARNERS["ada_normal_hedge"]:
        return  # nobody has earned anything: all weigh the same

    assert learner(raised, absolute, None)[0] >= learner(regrets, absolute, None)[0] - 1e-12


@given(pool=pools, shift=st.floats(-100.0, 100.0))
def test_hedge_on_losses_is_hedge_on_regrets(pool: list[tuple[float, float]], shift: float) -> None:
    """What is common to all experts cancels: regrets are a common sum less the losses."""
    losses, _ = columns(pool)

    np.testing.assert_allclose(hedge(shift - losses, 0.2), hedge(-losses, 0.2), rtol=1e-9, atol=1e-300)


@given(pool=pools, share=st.floats(0.001, 0.5))
def test_fixed_share_leaves_nobody_less_than_its_part(pool: list[tuple[float, float]], share: float) -> None:
    regrets, _ = columns(pool)
    start = np.full(len(pool), 1 / len(pool))

    weights = fixed_share(start, regrets, 3.0, share)

    assert weights.min() >= share / len(pool) * (1 - 1e-12)


@given(pool=pools, rate=st.floats(0.0, 100.0))
def test_a_mixability_gap_is_between_nothing_and_the_best_regret(pool: list[tuple[float, float]], rate: float) -> None:
    losses, absolute = columns(pool)
    weights = (1.0 + absolute) / (1.0 + absolute).sum()
    regrets = float(weights @ losses) - losses

    gap = float(mixability_gap(regrets, weights, rate))

    assert 0.0 <= gap <= max(regrets.max(), 0.0)


@given(pool=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6), rate=st.floats(0.01, 50.0))
def test_a_mixability_gap_is_at_most_an_eighth_of_the_rate(pool: list[float], rate: float) -> None:
    """Hoeffding's lemma for losses in [0, 1]."""
    losses, weights = np.array(pool), np.full(len(pool), 1 / len(pool))

    gap = float(mixability_gap(float(weights @ losses) - losses, weights, rate))

    assert gap <= rate / 8 + 1e-12


class History(NamedTuple):
    """Forecasts, answers, weights, rates of the time, and whether the answer is the outcome, of some questions."""

    forecasts: FloatArray
    answers: list[int]
    weights: FloatArray
    then: list[tuple[float, float]]
    known: list[bool]


@st.composite
def histories(draw: st.DrawFn) -> History:
    n_questions, n_experts = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    cells = st.lists(st.floats(0.0, 1.0), min_size=n_experts, max_size=n_experts)
    forecasts = np.array(draw(st.lists(cells, min_size=n_questions, max_size=n_questions)))
    raw = np.array(draw(st.lists(cells, min_size=n_questions, max_size=n_questions))) + 0.1
    answers, known = (
        draw(st.lists(st.booleans(), min_size=n_questions, max_size=n_questions)) for _ in ("answers", "known")
    )
    then = draw(st.lists(st.tuples(rates, rates), min_size=n_questions, max_size=n_questions))
    weights = raw / raw.sum(axis=1, keepdims=True)
    return History(forecasts, [int(answer) for answer in answers], weights, then, known)


def contributions(
    history: History,
) -> list[RegretSums]:
    return [
        RegretSums.outcome_contribution(w, loss_parts(p, answer).against, then)
        if known
        else RegretSums.contribution(w, loss_parts(p, answer), then)
        for p, answer, w, then, known in zip(*history, strict=True)
    ]


def total(parts: list[RegretSums]) -> RegretSums:
    sums = RegretSums.nothing(parts[0].against.shape[-1])
    for part in parts:
        sums = sums.merge(part)
    return sums


@given(history=histories(), zero=rates, one=rates)
def test_repriced_sums_are_those_computed_from_scratch_at_the_new_rates(
    history: History, zero: float, one: float
) -> None:
    forecasts, answers, weights, _, known = history
    scratch = np.zeros(forecasts.shape[1])
    for p, answer, w, resolved in zip(forecasts, answers, weights, known, strict=True):
        parts = loss_parts(p, answer)
        losses = (1 - zero - one) * parts.against if resolved else unit_peer_loss(*parts, zero, one)
        scratch += float(w @ losses) - losses

    repriced = total(contributions(history)).priced(zero, one)

    np.testing.assert_allclose(repriced, scratch, atol=1e-12)


@given(history=histories(), zero=rates, one=rates)
def test_sums_that_were_always_priced_alike_are_the_frozen_ones(history: History, zero: float, one: float) -> None:
    alike = contributions(history._replace(then=[(zero, one)] * len(history.then)))

    np.testing.assert_allclose(total(alike).frozen, total(alike).priced(zero, one), atol=1e-12)


@given(history=histories(), cut=st.integers(0, 6))
def test_merging_is_associative_and_commutative(history: History, cut: int) -> None:
    """Also exactly so: sums of the same floats as fractions are equal."""
    parts = contributions(history)
    rest = parts[cut:] + parts[:cut]

    one, other = total(parts), total(rest)

    np.testing.assert_allclose(one.priced(0.2, 0.1), other.priced(0.2, 0.1), atol=1e-12)
    exact = [sum((Fraction(float(part.absolute[0])) for part in order), Fraction(0)) for order in (parts, rest)]
    assert exact[0] == exact[1]
    assert one.absolute[0] == pytest.approx(float(exact[0]), abs=1e-12)


@given(history=histories())
def test_absolute_regrets_are_no_less_than_regrets(
    history: History,
) -> None:
    sums = total(contributions(history))

    assert (sums.absolute >= np.abs(sums.frozen) - 1e-12).all()

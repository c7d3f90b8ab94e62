"""What can be promised before anything is seen: as printed, repaired, and direct."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest

from stream_peer.lab.formulas.apriori import (
    RegretBound,
    direct_bound,
    martingale_gap,
    printed_bound,
    printed_sigma,
    repaired_bound,
)
from stream_peer.lab.formulas.flips import flipped_error_rate
from stream_peer.lab.formulas.heterogeneous import heterogeneous_bound, heterogeneous_bound_printed, order_kept_beyond
from stream_peer.lab.formulas.online import ada_hedge_regret, anytime_hedge_regret, hedge_regret, normal_hedge_regret
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.peer_losses import unit_peer_loss
from tests.reference.estimation import (
    estimation_frozen,
    estimation_printed,
    estimation_repriced,
    limited_truth_regret,
    limited_truth_regret_printed,
    no_truth_regret,
    no_truth_regret_printed,
)

Bound: TypeAlias = Callable[..., RegretBound]

ALL = [direct_bound, repaired_bound, printed_bound]
TABLE = [
    (4, 500, 0.1, 106, 385, 1_030),
    (4, 5_000, 0.3, 671, 1_927, 5_723),
    (32, 5_000, 0.1, 434, 1_431, 3_298),
    (32, 5_000, 0.45, 3_473, 7_360, 20_868),
    (32, 50_000, 0.3, 2_745, 7_205, 18_368),
]


@pytest.mark.parametrize(("n_experts", "questions", "rate", "direct", "repaired", "printed"), TABLE)
def test_a_priori_bounds_are_those_of_the_worked_table(
    n_experts: int, questions: int, rate: float, direct: int, repaired: int, printed: int
) -> None:
    """E_online is that of exponential weights at the rate for the horizon, √(T ln N/2); δ = .05 in all."""
    given = hedge_regret(n_experts, questions), n_experts, questions, (rate, rate), 0.05

    found = [bound(*given).formula for bound in (direct_bound, repaired_bound, printed_bound)]

    assert found == pytest.approx([direct, repaired, printed], abs=1.0)


def test_more_than_the_questions_is_no_bound() -> None:
    printed = printed_bound(hedge_regret(4, 500), 4, 500, (0.1, 0.1), 0.05)
    repaired = repaired_bound(hedge_regret(4, 500), 4, 500, (0.1, 0.1), 0.05)

    assert printed.vacuous
    assert printed.value == math.inf
    assert not repaired.vacuous
    assert repaired.value == repaired.formula


def test_the_printed_bound_says_nothing_below_some_6500_questions() -> None:
    """At error rate .3 and four experts."""
    smallest = [
        t for t in range(100, 9_000, 10) if not printed_bound(hedge_regret(4, t), 4, t, (0.3, 0.3), 0.05).vacuous
    ]

    assert smallest[0] == pytest.approx(6_550, abs=10)


@pytest.mark.parametrize("bound", ALL)
def test_answers_without_information_bound_nothing(bound: Bound) -> None:
    found = bound(0.0, 2, 100, (0.5, 0.5), 0.05)

    assert found.vacuous
    assert found.formula == math.inf


@pytest.mark.parametrize("bound", ALL)
def test_what_estimates_add_is_blown_up_like_the_rest(bound: Bound) -> None:
    without = bound(10.0, 4, 1e6, (0.1, 0.3), 0.05, 0.0)
    with_errors = bound(10.0, 4, 1e6, (0.1, 0.3), 0.05, 30.0)

    assert with_errors.formula - without.formula == pytest.approx(30 / 0.6)


def test_e7_sigma_is_the_printed_maximum() -> None:
    """F of the paper on a grid, in exact fractions; its largest value is η/2 and its smallest η²."""
    for rate in (Fraction(0), Fraction(1, 10), Fraction(3, 10), Fraction(1, 2)):
        values = [
            -rate * (1 - rate) * (1 - 2 * p) ** 2 + 2 * rate * p * p - 2 * rate * p + rate
            for p in (Fraction(k, 100) for k in range(101))
        ]
        assert max(values) == rate / 2
        assert min(values) == rate * rate
        assert printed_sigma(float(rate)) == pytest.approx(float(max(4 + max(values), 2 - min(values))), abs=1e-15)


def test_e7_increments_have_a_spread_of_two_at_most_so_that_sigma_one_is_enough() -> None:
    """ℓ(q, y) - ℓ(p, y) between y = 0 and 1: 2·|p - q|, at most 2, attained; the same for peer losses."""
    grid = np.linspace(0.0, 1.0, 101)
    p, q = np.meshgrid(grid, grid)

    spread = np.abs((squared_loss(q, 1) - squared_loss(p, 1)) - (squared_loss(q, 0) - squared_loss(p, 0)))

    np.testing.assert_allclose(spread, 2 * np.abs(p - q), atol=1e-15)
    assert spread.max() == 2.0


@pytest.mark.parametrize(("n_experts", "expected"), [(10, 0.04), (1_000, 0.975), (10_000, 1.0)])
def test_e8_without_a_union_bound_the_best_in_hindsight_breaks_it(n_experts: int, expected: float) -> None:
    """Outcomes of chance ½, experts that say 0 or 1 at random: ℓ(q, y) - ℓ(p, y) - (p - q)² is ±½, so σ = ½ is tight.

    The deviation of one expert is a binomial, and given the outcomes experts are independent. 400 runs.
    """
    questions, delta = 1_000, 0.05
    wins = np.random.default_rng(8).binomial(questions, 0.5, size=(400, n_experts))
    deviation = np.abs(wins - questions / 2)
    best = np.take_along_axis(deviation, wins.argmax(axis=1)[:, None], axis=1)[:, 0]

    violated = np.mean(best > martingale_gap(delta, 0.5, questions))

    assert violated == pytest.approx(expected, abs=0.03)
    with_union = np.mean(deviation.max(axis=1) > martingale_gap(delta / n_experts, 0.5, questions))
    assert with_union <= delta
    assert np.mean(best > martingale_gap(delta, 2.0, questions)) == 0.0  # the printed σ hides it


RATES = np.array([0.05, 0.45])


@pytest.mark.parametrize(
    ("flip_probability", "best_loss", "ours", "printed"), [(0.0, 400.9, 5_606, 17_939), (0.4, 399.3, 15_189, 86_323)]
)
def test_e20_bounds_are_those_of_the_worked_experiment(
    flip_probability: float, best_loss: float, ours: int, printed: int
) -> None:
    """Four experts, T = 4,000, δ = .05, √(T ln N/2); L* as measured there, about 400; the paper's with α = σ_g = 2."""
    rates = np.array([flipped_error_rate(rate, flip_probability) for rate in RATES.tolist()])
    given = hedge_regret(4, 4000), 4, 4000, rates, best_loss, 0.05

    assert heterogeneous_bound(*given).formula == pytest.approx(ours, abs=6)
    assert heterogeneous_bound_printed(*given).formula == pytest.approx(printed, abs=12)
    assert heterogeneous_bound(*given).vacuous


def test_e20_the_factor_of_the_best_loss_should_be_one_more() -> None:
    given = hedge_regret(4, 4000), 4, 4000, RATES, 400.0, 0.05

    more = heterogeneous_bound_printed(*given, alpha=3.0).formula - heterogeneous_bound_printed(*given).formula

    assert more == pytest.approx(400 * (1 / 0.1 + 1))


def test_e19_the_lemma_of_kept_order_has_a_counterexample_within_its_reach() -> None:
    """L_i = 20 ≤ (1+α)·L* = 30, yet weighted losses are in the other order; from 90 on they could not be."""
    assert 20 <= (1 + 2) * 10
    assert 0.1 * 20 < 0.9 * 10
    assert order_kept_beyond(RATES, 10.0) == pytest.approx(80.0)
    assert pytest.approx(0.9 * 10.0) == 0.1 * (10.0 + 80.0)


def test_e19_the_inequality_of_its_proof_holds_for_large_gaps_only() -> None:
    """Δ/(2L + Δ) ≥ α/(2 + α) if and only if Δ ≥ αL."""
    alpha, best = 2.5, 10.0
    for gap in (5.0, 24.9, 25.1, 80.0):
        assert (gap / (2 * best + gap) >= alpha / (2 + alpha)) == (gap >= alpha * best)


def test_the_bounds_of_exponential_weights_are_their_formulas() -> None:
    assert hedge_regret(32, 5000) == pytest.approx(math.sqrt(5000 * math.log(32) / 2))
    assert anytime_hedge_regret(32, 5000) == pytest.approx(
        2 * math.sqrt(2500 * math.log(32)) + math.sqrt(math.log(32) / 8)
    )
    assert ada_hedge_regret(32, 5000) == pytest.approx(math.sqrt(5000 * math.log(32)) + 4 / 3 * math.log(32) + 2)


def test_a_single_expert_is_followed_without_regret() -> None:
    assert hedge_regret(1, 1000) == anytime_hedge_regret(1, 1000) == 0.0


def test_normal_hedge_promises_less_regret_to_experts_that_differ_less() -> None:
    absolute = np.array([[0.0, 4.0, 16.0]])
    spread = 1 + 1.5 * (1 + (math.log(5) + math.log(17)) / 3)
    factor = 3 * (math.log(3) + math.log(spread) + math.log(1 + math.log(3)))

    found = normal_hedge_regret(absolute)

    np.testing.assert_allclose(found, [[0.0, math.sqrt(4 * factor), math.sqrt(16 * factor)]])


def test_nobody_is_promised_nothing() -> None:
    assert normal_hedge_regret(np.zeros(0)).size == 0


def test_e9_a_wrong_rate_moves_regrets_by_half_its_error_at_most() -> None:
    """2ε·|p(1-p) - q(1-q)| ≤ ε/2, attained between a sure forecast and ½; printed is twice that."""
    forecasts = np.linspace(0.0, 1.0, 101)
    parts = loss_parts(forecasts, 1)
    wrong, right = unit_peer_loss(*parts, 0.3, 0.3), unit_peer_loss(*parts, 0.2, 0.2)
    moved = (wrong[:, None] - wrong) - (right[:, None] - right)

    errors = np.array([0.1])

    assert np.abs(moved).max() == pytest.approx(estimation_frozen(errors), abs=1e-12)
    assert estimation_printed(errors) == pytest.approx(2 * estimation_frozen(errors))


def test_frozen_losses_keep_every_error_and_repriced_ones_the_last() -> None:
    errors = 0.4 / np.sqrt(np.arange(1, 1001))

    assert estimation_frozen(errors) == pytest.approx(0.2 * sum(1 / math.sqrt(t) for t in range(1, 1001)))
    assert estimation_repriced(float(errors[-1]), 1000) == pytest.approx(0.2 * math.sqrt(1000))
    assert estimation_repriced(float(errors[-1]), 1000) < estimation_frozen(errors)


@pytest.mark.parametrize("reveal_probability", [0.01, 0.2, 1.0])
def test_e3_limited_truth_costs_less_than_printed_by_two_over_root_p(reveal_probability: float) -> None:
    printed = limited_truth_regret_printed(5000, reveal_probability, 0.05)

    assert printed / limited_truth_regret(5000, reveal_probability, 0.05) == pytest.approx(
        2 / math.sqrt(reveal_probability)
    )


def test_the_terms_are_sums_of_the_errors_of_each_question() -> None:
    t = np.arange(1, 20_001)
    printed = np.sqrt(math.log(2 / 0.1)) / (0.2 * np.sqrt(2 * t))
    ours = np.sqrt(math.log(2 / 0.1) / (2 * 0.2 * t))

    assert estimation_printed(printed) == pytest.approx(limited_truth_regret_printed(20_000, 0.2, 0.1), rel=0.01)
    assert estimation_frozen(ours) == pytest.approx(limited_truth_regret(20_000, 0.2, 0.1), rel=0.01)
    assert estimation_printed(np.sqrt(math.log(60) / (2 * t))) == pytest.approx(
        no_truth_regret_printed(20_000, 0.1), rel=0.01
    )
    assert estimation_frozen(0.58 * np.sqrt(2 * math.log(20) / t)) == pytest.approx(
        no_truth_regret(20_000, 0.58, 0.1), rel=0.01
    )


def test_e13_the_cost_of_no_truth_depends_on_the_pool() -> None:
    """Two groups of error rates .2 and .25: standard deviations times √t at shares of zeros .1, .3, .4, .45, .49."""
    printed = no_truth_regret_printed(10_000, 0.05)
    ours = [no_truth_regret(10_000, deviation, 0.05) for deviation in (0.58, 0.92, 1.69, 3.30, 16.4, math.inf)]

    assert ours[0] < printed < ours[2]
    assert ours[4] / ours[0] == pytest.approx(16.4 / 0.58)
    assert ours[5] == math.inf

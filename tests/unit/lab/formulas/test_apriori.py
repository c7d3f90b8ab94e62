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
from stream_peer.lab.formulas.online import hedge_regret
from stream_peer.numerics.losses import squared_loss

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

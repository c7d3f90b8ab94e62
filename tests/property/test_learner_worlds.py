"""Measured figures of learners and certificates, by seeded simulation through the product's functions."""

import numpy as np
import pytest

from tests.property.learner_worlds import (
    Prices,
    Situation,
    certified,
    certified_by_estimates,
    end_to_end,
    frozen_and_repriced,
)

MARKS = (500, 2_000, 6_000)
UNTIL = 3_000
SITUATIONS = {
    "right from the start": Situation(lambda _: 0.3, lambda _, __: 0.3),
    "none until 500": Situation(lambda _: 0.3, lambda t, _: 0.3 if t > 500 else 0.0),
    "none until 2,000": Situation(lambda _: 0.3, lambda t, _: 0.3 if t > 2_000 else 0.0),
    "off by z/√t": Situation(lambda _: 0.3, lambda t, draw: np.clip(0.3 + draw / np.sqrt(t), 0.0, 0.475)),
    "rising, its mean known": Situation(
        lambda t: 0.4 if t > UNTIL else 0.05,
        lambda t, _: (0.05 * min(t, UNTIL) + 0.4 * max(t - UNTIL, 0)) / t,
    ),
    "falling, its newest value known": Situation(
        lambda t: 0.05 if t > UNTIL else 0.4, lambda t, _: 0.05 if t > UNTIL else 0.4
    ),
}


@pytest.fixture(scope="module")
def prices() -> Prices:
    return frozen_and_repriced(list(SITUATIONS.values()), MARKS)


def row(table: np.ndarray[tuple[int, ...], np.dtype[np.float64]], situation: str) -> list[float]:
    return [float(value) for value in table[list(SITUATIONS).index(situation)]]


@pytest.mark.slow
def test_re_pricing_heals_a_past_without_estimates(prices: Prices) -> None:
    """Regret at 500, 2,000 and 6,000 questions: frozen 22, 67, 108, re-priced 22, 35, 54; with η known 9, 22, 40."""
    known = row(prices.repriced, "right from the start")
    assert known == pytest.approx([9, 22, 40], rel=0.15)
    assert row(prices.frozen, "none until 500") == pytest.approx([22, 67, 108], rel=0.15)
    assert row(prices.repriced, "none until 500") == pytest.approx([22, 35, 54], rel=0.15)
    assert row(prices.frozen, "none until 2,000") == pytest.approx([22, 100, 233], rel=0.15)
    assert row(prices.repriced, "none until 2,000") == pytest.approx([22, 100, 117], rel=0.15)


@pytest.mark.slow
def test_re_pricing_lowers_what_errors_of_estimates_cost(prices: Prices) -> None:
    """Estimates off by z/√t, z a standard normal number for each run: frozen 10, 26, 49, re-priced 9, 23, 43."""
    assert row(prices.frozen, "off by z/√t") == pytest.approx([10, 26, 49], rel=0.15)
    assert row(prices.repriced, "off by z/√t") == pytest.approx([9, 23, 43], rel=0.15)
    assert row(prices.repriced, "off by z/√t")[2] < row(prices.frozen, "off by z/√t")[2]


@pytest.mark.slow
def test_the_rate_that_prices_a_sum_must_be_its_mean(prices: Prices) -> None:
    """A mean rate: frozen 39, re-priced 18. The newest value of a rate that fell: frozen 53, re-priced 176."""
    assert row(prices.frozen, "rising, its mean known")[2] == pytest.approx(39, rel=0.15)
    assert row(prices.repriced, "rising, its mean known")[2] == pytest.approx(18, rel=0.15)
    assert row(prices.frozen, "falling, its newest value known")[2] == pytest.approx(53, rel=0.2)
    assert row(prices.repriced, "falling, its newest value known")[2] == pytest.approx(176, rel=0.2)


@pytest.mark.slow
def test_with_rates_known_from_the_start_frozen_is_re_priced(prices: Prices) -> None:
    known = "right from the start"

    assert row(prices.frozen, known) == pytest.approx(row(prices.repriced, known), rel=1e-9)


@pytest.mark.slow
def test_end_to_end_the_presets_regret_what_was_measured() -> None:
    """N = 10, T = 5,000: paper 86 ± 13, robust 22 ± 3, naive 25 ± 4, outcomes 9; bands of two standard errors."""
    found = end_to_end(n_experts=10, questions=5_000, runs=30)

    assert found.robust == pytest.approx(22, abs=4)
    assert found.paper == pytest.approx(86, abs=26)
    assert found.naive == pytest.approx(25, abs=8)
    assert found.informed == pytest.approx(9, abs=2)
    assert found.robust < found.naive < found.paper


@pytest.mark.slow
@pytest.mark.parametrize(("n_experts", "rate"), [(8, 0.3), (4, 0.1)])
def test_no_certificate_is_exceeded_at_any_moment_in_400_runs_of_3000_questions(n_experts: int, rate: float) -> None:
    found = certified(n_experts, questions=3_000, rate=rate, runs=400)

    assert found.violated == 0
    assert found.regret < found.certificate < 30 * found.regret


@pytest.mark.slow
def test_estimated_rates_and_own_answers_are_certified_too() -> None:
    """The interval of 95 % covers the rate in .90 of runs or more, and no certificate is exceeded."""
    found = certified_by_estimates(n_experts=20, questions=1_500, runs=40)

    assert found.violated == 0
    assert found.covered >= 0.9
    assert found.regret < found.certificate < 40 * found.regret

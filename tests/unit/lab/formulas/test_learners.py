import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from stream_peer.lab.formulas.learners import (
    ada_hedge,
    ada_hedge_rate,
    follow_the_leader,
    mixability_gap,
    top_committee,
)


def exact_gap(losses: list[float], weights: list[float], rate: float) -> float:
    """Expected loss less the loss of the mixture, as printed, with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        exact, shares, eta = [Decimal(x) for x in losses], [Decimal(w) for w in weights], Decimal(rate)
        nought = Decimal(0)
        mean = sum((w * x for w, x in zip(shares, exact, strict=True)), nought)
        mixed = -sum((w * (-eta * x).exp() for w, x in zip(shares, exact, strict=True)), nought).ln() / eta
        return float(mean - mixed)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.7, 30.0, 1e5])
def test_the_gap_is_that_of_the_printed_formula(rate: float) -> None:
    losses, weights = [0.9, 0.1, 0.35, 0.0], [0.125, 0.5, 0.25, 0.125]
    regrets = np.dot(weights, losses) - np.array(losses)

    found = float(mixability_gap(regrets, np.array(weights), rate))

    assert found == pytest.approx(exact_gap(losses, weights, rate), rel=1e-9, abs=1e-16)


def test_a_tiny_weight_on_the_best_counts_with_its_logarithm() -> None:
    regrets, weights = np.array([0.0, 1.0]), np.array([1.0, 1e-300])

    assert float(mixability_gap(regrets, weights, 2000.0)) == pytest.approx(1.0 + math.log(1e-300) / 2000)


def test_at_an_infinite_rate_the_gap_is_the_best_regret_of_the_followed() -> None:
    rate = ada_hedge_rate(3, 0.0)

    assert float(mixability_gap(np.array([-0.2, 0.4, 0.9]), np.array([0.5, 0.5, 0.0]), rate)) == 0.4


def test_before_any_gap_the_leaders_are_followed() -> None:
    assert ada_hedge(np.array([0.5, -1e-9, 0.5]), 0.0, 3).tolist() == [0.5, 0.0, 0.5]


def test_the_rate_falls_with_the_gaps() -> None:
    np.testing.assert_allclose(ada_hedge_rate(8, np.array([1.0, 4.0])), [math.log(8), math.log(8) / 4])


def test_a_single_expert_has_no_rate_and_all_weight() -> None:
    assert ada_hedge(np.array([-3.0]), 0.0, 1).tolist() == [1.0]


def test_the_best_share_the_weight() -> None:
    assert top_committee(np.array([1.0, 5.0, 3.0, 4.0]), 2).tolist() == [0.0, 0.5, 0.0, 0.5]


def test_ties_share_the_last_seats() -> None:
    assert top_committee(np.array([1.0, 5.0, 1.0, 1.0]), 2) == pytest.approx([1 / 6, 1 / 2, 1 / 6, 1 / 6])


def test_a_committee_larger_than_the_pool_is_the_pool() -> None:
    awake = np.array([True, True, False])

    assert top_committee(np.array([1.0, 5.0, 9.0]), 5, awake).tolist() == [0.5, 0.5, 0.0]


def test_nobody_awake_makes_no_committee() -> None:
    assert top_committee(np.ones(3), 2, np.zeros(3, dtype=np.bool_)).tolist() == [0.0, 0.0, 0.0]
    assert top_committee(np.zeros(0), 2).size == 0


def test_the_leader_gets_everything() -> None:
    assert follow_the_leader(np.array([0.0, -1.0, 0.25])).tolist() == [0.0, 0.0, 1.0]

import math

import numpy as np
import pytest

from stream_peer.numerics.learners import ada_normal_hedge, softmax
from stream_peer.numerics.losses import FloatArray


def regret_against_an_adversary(n_experts: int, questions: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Regrets and their absolute sums when losses are drawn to hurt whoever has most weight."""
    rng = np.random.default_rng(seed)
    regrets, absolute = np.zeros(n_experts), np.zeros(n_experts)
    for _ in range(questions):
        weights = ada_normal_hedge(regrets, absolute)
        losses = np.where(weights >= np.quantile(weights, 0.7), rng.uniform(0.3, 1.0, n_experts), rng.random(n_experts))
        regret = float(weights @ losses) - losses
        regrets, absolute = regrets + regret, absolute + np.abs(regret)
    return regrets, absolute


def test_without_regrets_all_weigh_the_same() -> None:
    assert ada_normal_hedge(np.zeros(4), np.zeros(4)).tolist() == [0.25] * 4


def test_weights_are_differences_of_exponentials() -> None:
    regrets, absolute = np.array([3.0, 0.5, -0.5, 1.0]), np.array([4.0, 2.0, 1.0, 1.0])
    above, below = np.maximum(regrets + 1, 0) ** 2, np.maximum(regrets - 1, 0) ** 2
    plain = np.exp(above / (3 * (absolute + 1))) - np.exp(below / (3 * (absolute + 1)))

    np.testing.assert_allclose(ada_normal_hedge(regrets, absolute), plain / plain.sum(), rtol=1e-12)


def test_who_lags_by_one_or_more_gets_nothing() -> None:
    weights = ada_normal_hedge(np.array([0.0, -1.0, -7.0]), np.array([1.0, 1.0, 7.0]))

    assert weights.tolist() == [1.0, 0.0, 0.0]


def test_all_that_lag_weigh_the_same() -> None:
    assert ada_normal_hedge(np.array([-1.0, -3.0]), np.array([2.0, 5.0])).tolist() == [0.5, 0.5]


def test_an_expert_barely_above_the_limit_does_no_harm() -> None:
    weights = ada_normal_hedge(np.array([np.nextafter(-1.0, 0.0), 0.0]), np.array([1.0, 1.0]))

    assert weights == pytest.approx([0.0, 1.0], abs=1e-12)


def test_huge_regrets_stay_numbers() -> None:
    weights = ada_normal_hedge(np.array([1e6, 1e6 - 1, -1e6]), np.array([1e6, 1e6, 1e6]))

    assert np.isfinite(weights).all()
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] > weights[1] > weights[2] == 0.0


def test_a_prior_multiplies_the_weights() -> None:
    regrets, absolute, prior = np.array([1.0, 2.0, 0.0]), np.array([3.0, 3.0, 3.0]), np.array([0.2, 0.0, 0.8])
    plain = prior * ada_normal_hedge(regrets, absolute)

    np.testing.assert_allclose(ada_normal_hedge(regrets, absolute, prior), plain / plain.sum(), rtol=1e-12)


def test_nobody_awake_gets_no_weights() -> None:
    assert ada_normal_hedge(np.zeros(0), np.zeros(0)).size == 0


def test_softmax_never_overflows() -> None:
    assert softmax(np.array([-1e308, 0.0, 1e300])).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("n_experts", "seed"), [(2, 1), (5, 2), (30, 3)])
def test_the_regret_stays_below_the_bound_of_its_authors(n_experts: int, seed: int) -> None:
    """R_i ≤ √(3A_i·(ln N + ln B + ln(1 + ln N))), B = 1 + 1.5·mean(1 + ln(1+A))."""
    regrets, absolute = regret_against_an_adversary(n_experts, 500, seed)

    spread = 1 + 1.5 * float(np.mean(1 + np.log1p(absolute)))
    bound = np.sqrt(3 * absolute * (math.log(n_experts) + math.log(spread) + math.log1p(math.log(n_experts))))

    assert (regrets <= bound).all()

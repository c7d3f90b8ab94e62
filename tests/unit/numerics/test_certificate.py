import itertools
import math

import numpy as np
import pytest

from stream_peer.lab.formulas.apriori import shared_answer_spread
from stream_peer.numerics.certificate import live_bounds, noise_boundary
from stream_peer.numerics.error_rates import ErrorRate, interval_ends, priced
from stream_peer.numerics.losses import squared_loss
from tests.reference.plain_formulas import own_answer_spread

ZERO = np.zeros(1)


def test_the_boundary_is_its_formula() -> None:
    found = noise_boundary(np.array([0.0, 3.0]), n_experts=8, delta=0.05, rho=10.0)

    assert found == pytest.approx(
        [
            math.sqrt(10 * 2 * math.log(8 / 0.05)),
            math.sqrt(13 * (2 * math.log(8 / 0.05) + math.log(1.3))),
        ]
    )


def test_the_bound_of_an_expert_is_that_at_the_worst_end() -> None:
    parts = np.array([5.0, -3.0]), np.array([8.0, 0.0]), np.array([-2.0, 1.0])
    variance, ends = np.array([75.0, 10.0]), ((0.05, 0.1), (0.15, 0.2))
    noise = noise_boundary(variance, 2, 0.04)
    each = [(parts[0] - zero * parts[1] - one * parts[2] + noise) / (1 - zero - one) for zero, one in ends]

    assert live_bounds(*parts, variance, ends, 2, 0.04) == pytest.approx(np.maximum(*each), abs=1e-12)


def test_nowhere_in_the_interval_is_a_regret_larger_than_certified() -> None:
    """Also where one rate reaches 0 before the interval ends, and the largest regret is there."""
    rate = ErrorRate(0.05, 0.35, 0.1, 0.3, 500.0, "ok", 0.001)
    against = 20.0 - noise_boundary(ZERO, 1, 0.05)
    parts = against, np.array([60.0]), ZERO, ZERO

    certified = float(live_bounds(*parts, interval_ends(rate), 1, 0.05)[0])

    between = [
        interval_ends(rate._replace(low=float(mean), high=float(mean)))[0] for mean in np.linspace(0.1, 0.3, 201)
    ]
    regrets = [float(live_bounds(*parts, (rates,), 1, 0.05)[0]) for rates in between]
    assert certified == pytest.approx(max(regrets), abs=1e-12)
    assert certified > max(regrets[0], regrets[-1]) + 1.0


def test_nothing_is_certified_where_answers_say_little() -> None:
    ends = ((0.1, 0.1), (0.405, 0.4))

    assert live_bounds(ZERO, ZERO, ZERO, ZERO, ends, 1, 0.05) == math.inf


def test_priced_rates_can_still_be_certified() -> None:
    zero, one, _ = priced(0.5, 0.5)
    ends = ((0.4, 0.4 - 1e-9), (zero, one))

    assert np.isfinite(live_bounds(ZERO, ZERO, ZERO, ZERO, ends, 1, 0.05)).all()


def test_own_answers_are_certified_with_their_worst_spread() -> None:
    """However leave-one-out answers fall out, they change no regret by more; and some fall changes it by as much."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        forecasts, weights = rng.random(4), rng.dirichlet(np.ones(4))
        if_one, if_zero = squared_loss(forecasts, 1), squared_loss(forecasts, 0)
        falls = np.array(list(itertools.product([0, 1], repeat=4)))
        losses = np.where(falls == 1, if_one, if_zero)
        regrets = losses @ weights[:, None] - losses

        widest = regrets.max(axis=0) - regrets.min(axis=0)

        np.testing.assert_allclose(widest, own_answer_spread(weights, if_one, if_zero), atol=1e-12)


def test_a_shared_answer_spreads_by_twice_the_distance_from_the_mixture() -> None:
    rng = np.random.default_rng(6)
    forecasts, weights = rng.random((3, 5)), rng.dirichlet(np.ones(5), 3)

    found = shared_answer_spread(weights, squared_loss(forecasts, 1), squared_loss(forecasts, 0))

    mixed = (weights * forecasts).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, 2 * np.abs(forecasts - mixed), atol=1e-15)


def test_runs_are_bounded_each_on_its_own() -> None:
    rng = np.random.default_rng(7)
    parts, variance = rng.normal(size=(3, 2, 3)), rng.random((2, 3))
    ends = ((0.1, 0.1), (0.2, 0.2))

    together = live_bounds(parts[0], parts[1], parts[2], variance, ends, 3, 0.05)

    for run in range(2):
        alone = live_bounds(parts[0, run], parts[1, run], parts[2, run], variance[run], ends, 3, 0.05)
        assert together[run] == pytest.approx(alone)

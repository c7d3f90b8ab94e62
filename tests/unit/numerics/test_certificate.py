import itertools
import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.apriori import shared_answer_spread
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.certificate import live_bounds, noise_boundary
from stream_peer.numerics.error_rates import ErrorRate, interval_ends
from stream_peer.numerics.learners import ada_normal_hedge
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.peer_losses import unit_peer_loss
from tests.reference.plain_formulas import own_answer_spread

ZERO = np.zeros(1)


class Run:
    """One stream of the paper's model: independent questions, reference answers wrong with a known rate."""

    def __init__(self, n_experts: int, error_rate: float, seed: int) -> None:
        self.rng = np.random.default_rng([seed, n_experts])
        self.n_experts, self.error_rate = n_experts, error_rate
        self.spread = self.rng.uniform(0.02, 0.4, n_experts)
        self.regrets = np.zeros((3, n_experts))
        self.absolute, self.variance, self.true = np.zeros(n_experts), np.zeros(n_experts), np.zeros(n_experts)

    def step(self, rounds: int = 1) -> None:
        """One question; its rounds have the same answers and nearly the same forecasts, and are averaged."""
        chance = self.rng.uniform(0.05, 0.95)
        outcome = int(self.rng.random() < chance)
        answer = outcome ^ int(self.rng.random() < self.error_rate)
        regrets, true, spread = np.zeros((3, self.n_experts)), np.zeros(self.n_experts), np.zeros(self.n_experts)
        weights = ada_normal_hedge(self.priced(), self.absolute)
        for _ in range(rounds):
            forecasts = np.clip(chance + self.spread * self.rng.normal(size=self.n_experts), 0.0, 1.0)
            parts = np.array([squared_loss(forecasts, side) for side in (answer, 1, 0)])
            regrets += (parts @ weights)[:, None] - parts
            losses = squared_loss(forecasts, outcome)
            true += float(losses @ weights) - losses
            slope = np.abs(parts[1] - parts[2])
            spread += float(slope @ weights) + (1 - 2 * weights) * slope
        self.regrets += regrets / rounds
        self.true += true / rounds
        self.variance += (spread / rounds) ** 2 / 4
        self.absolute += np.abs(regrets[0] - self.error_rate * (regrets[1] + regrets[2])) / rounds

    def priced(self) -> FloatArray:
        against, if_one, if_zero = self.regrets
        return unit_peer_loss(against, if_one, if_zero, self.error_rate, self.error_rate)

    def certificate(self) -> float:
        rates = (self.error_rate, self.error_rate)
        against, if_one, if_zero = self.regrets
        return float(live_bounds(against, if_one, if_zero, self.variance, (rates, rates), self.n_experts, 0.05).max())


def test_the_boundary_is_its_formula() -> None:
    found = noise_boundary(np.array([0.0, 3.0]), n_experts=8, delta=0.05, rho=10.0)

    assert found == pytest.approx(
        [
            math.sqrt(10 * 2 * math.log(8 / 0.05)),
            math.sqrt(13 * (2 * math.log(8 / 0.05) + math.log(1.3))),
        ]
    )


@pytest.mark.parametrize("wrong", [{"n_experts": 0}, {"delta": 0.0}, {"delta": 1.0}, {"rho": 0.0}])
def test_a_boundary_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    given = {"n_experts": 5, "delta": 0.05, "rho": 25.0} | wrong
    with pytest.raises(FormulaInputError, match="within"):
        noise_boundary(ZERO, int(given["n_experts"]), given["delta"], given["rho"])


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
    ends = ((0.4, 0.4 - 1e-9), (0.4, 0.4 - 1e-9))

    assert np.isfinite(live_bounds(ZERO, ZERO, ZERO, ZERO, ends, 1, 0.05)).all()


@pytest.mark.parametrize(("n_experts", "error_rate"), [(4, 0.1), (8, 0.3)])
def test_the_certificate_is_above_the_true_regret_at_every_moment(n_experts: int, error_rate: float) -> None:
    """Twenty seeded streams of 200 questions, each prefix looked at."""
    for seed in range(20):
        run = Run(n_experts, error_rate, seed)
        for _ in range(200):
            run.step()
            assert run.certificate() >= run.true.max()


def test_the_certificate_is_of_use() -> None:
    """Four experts, 500 questions, error rate .1: some 50 with the leave-one-out spread; the printed bound is 1,030."""
    run = Run(4, 0.1, seed=3)
    for _ in range(500):
        run.step()

    assert 10 < run.certificate() < 60


def test_forty_rounds_a_question_do_not_break_the_certificate() -> None:
    """With the question as the unit: its rounds are averaged before anything is squared."""
    for seed in range(5):
        run = Run(8, 0.3, seed)
        for _ in range(60):
            run.step(rounds=40)
        assert run.certificate() >= run.true.max()


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


@pytest.mark.parametrize("rates", [(), ((0.1, -0.1),), ((0.1, 0.1), (math.nan, 0.1)), ((1.5, 0.0),)])
def test_a_certificate_is_for_rates_within_0_and_1(rates: tuple[tuple[float, float], ...]) -> None:
    one = np.ones(1)

    with pytest.raises(FormulaInputError, match=r"within|elements"):
        live_bounds(one, one, one, one, rates, 3, 0.05)


@pytest.mark.parametrize("variance", [-1.0, math.nan])
def test_no_variance_is_negative(variance: float) -> None:
    with pytest.raises(FormulaInputError, match="within"):
        noise_boundary(np.array([1.0, variance]), 3, 0.05)

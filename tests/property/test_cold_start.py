"""Experts that come late, leave and return."""

import math
from functools import cache

import numpy as np
import pytest

from stream_peer.lab.formulas.regret_sums import RegretSums, loss_parts
from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs

EVERYBODY, WITHOUT_LAST = np.ones(5, dtype=np.bool_), np.array([True, True, True, True, False])


class Pool:
    """Five experts of known spread, followed by the default learner on true losses; any of them may be absent."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(20)
        self.spread = np.array([0.1, 0.15, 0.2, 0.3, 0.05])
        self.sums = RegretSums.nothing(5)

    def weights(self, awake: BoolArray) -> FloatArray:
        return ada_normal_hedge(self.sums.frozen, self.sums.absolute, awake=awake)

    def step(self, awake: BoolArray) -> None:
        chance = self.rng.random()
        outcome = int(self.rng.random() < chance)
        forecasts = np.clip(chance + self.spread * self.rng.normal(size=5), 0.0, 1.0)
        losses = loss_parts(forecasts, outcome).against
        part = RegretSums.outcome_contribution(self.weights(awake), losses, (0.0, 0.0), awake=awake)
        self.sums = self.sums.merge(part)


@cache
def late_pool() -> Pool:
    """Ten thousand questions without the last expert."""
    pool = Pool()
    for _ in range(10_000):
        pool.step(WITHOUT_LAST)
    return pool


@pytest.mark.case("C20")
def test_an_expert_joining_at_round_10000_starts_at_the_documented_share() -> None:
    pool = late_pool()
    before = pool.weights(WITHOUT_LAST)

    after = pool.weights(EVERYBODY)

    logs = ada_normal_hedge_logs(pool.sums.frozen, pool.sums.absolute)
    unscaled = np.exp(logs)
    assert unscaled[4] == pytest.approx(math.expm1(1 / 3))  # as everybody at the very start
    assert after[4] == pytest.approx(math.expm1(1 / 3) / unscaled.sum())
    np.testing.assert_allclose(after[:4] / (1 - after[4]), before[:4], rtol=1e-12, atol=1e-300)
    assert abs(float(after.sum()) - 1.0) < 1e-12


@pytest.mark.case("C20")
def test_an_expert_that_leaves_and_returns_finds_its_state() -> None:
    pool = Pool()
    for _ in range(30):
        pool.step(EVERYBODY)
    left = pool.sums
    for _ in range(200):
        pool.step(WITHOUT_LAST)
    assert pool.weights(WITHOUT_LAST)[4] == 0.0
    assert left.frozen[4] > -1.0  # it has weight to come back to

    returned = pool.sums

    for column in ("frozen", "absolute", "outcome", "questions"):
        assert getattr(returned, column)[4] == getattr(left, column)[4]
    logs = [ada_normal_hedge_logs(sums.frozen, sums.absolute)[4] for sums in (left, returned)]
    assert logs[0] == logs[1]
    after = pool.weights(EVERYBODY)
    np.testing.assert_allclose(after[:4], (1 - after[4]) * pool.weights(WITHOUT_LAST)[:4], rtol=1e-12)

"""A million questions with a dominated expert, which is then the best."""

import math
from collections.abc import Callable
from copy import copy
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest

from stream_peer.lab.formulas.learners import (
    ada_hedge,
    fixed_share,
    follow_the_leader,
    mixability_gap,
    top_committee,
)
from stream_peer.lab.formulas.online import normal_hedge_regret
from stream_peer.lab.formulas.regret_sums import RegretSums
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import bucket_factors, bucket_size
from stream_peer.numerics.learners import ada_normal_hedge, hedge, hedge_rate

MILLION = 1_000_000
BETTER, WORSE = np.array([0.1, 0.15, 0.9]), np.array([0.9, 0.85, 0.1])
"""Losses while the third expert is dominated, and when it is best."""


class Cumulative:
    """A learner that reads sums: regrets, their absolute values, and gaps where it needs them."""

    def __init__(self, read: Callable[["Cumulative"], FloatArray]) -> None:
        self.read = read
        self.regrets, self.absolute = np.zeros(3), np.zeros(3)
        self.gaps, self.questions = 0.0, 0

    def weights(self) -> FloatArray:
        return self.read(self)

    def step(self, losses: FloatArray, times: int = 1) -> None:
        """So many questions alike, under the weights of the first."""
        weights = self.weights()
        regret = float(weights @ losses) - losses
        if self.questions:
            rate = math.log(3) / max(self.gaps, 1e-12)
            self.gaps += times * float(mixability_gap(regret, weights, rate))
        else:
            self.gaps += float(regret.max())
        self.regrets = self.regrets + times * regret
        self.absolute = self.absolute + times * np.abs(regret)
        self.questions += times


class Buckets:
    """Regrets and their absolute values with a memory, kept in buckets of questions and weighed when they are read."""

    def __init__(self, memory: int) -> None:
        self.memory, self.seen = memory, 0
        self.sums = np.zeros((1, 2, 3))

    def step(self, weights: FloatArray, losses: FloatArray) -> None:
        part = RegretSums.outcome_contribution(weights, losses, (0.0, 0.0))
        if self.seen // bucket_size(self.memory) == len(self.sums):
            self.sums = np.concatenate([self.sums, np.zeros((1, 2, 3))])
        self.sums[-1] += [part.outcome, part.absolute]
        self.seen += 1

    def read(self) -> FloatArray:
        factors = bucket_factors(np.arange(len(self.sums)), len(self.sums) - 1, self.memory)
        return np.asarray(np.add.reduce(factors[:, None, None] * self.sums, axis=0))


LEARNERS: dict[str, Callable[[Cumulative], FloatArray]] = {
    "ada_normal_hedge": lambda s: ada_normal_hedge(s.regrets, s.absolute),
    "hedge": lambda s: hedge(s.regrets, float(hedge_rate(3, MILLION))),
    "any_time_hedge": lambda s: hedge(s.regrets, float(hedge_rate(3, s.questions + 1))),
    "ada_hedge": lambda s: ada_hedge(s.regrets, s.gaps, 3),
    "follow_the_leader": lambda s: follow_the_leader(s.regrets),
    "top_committee": lambda s: top_committee(s.regrets, 1),
}


def after_a_million(name: str) -> Cumulative:
    return copy(_after_a_million(name))


@cache
def _after_a_million(name: str) -> Cumulative:
    return shortened(name, MILLION)


def shortened(name: str, questions: int) -> Cumulative:
    """Sums are linear: once the weights hardly change any more, a thousand questions are one addition."""
    learner = Cumulative(LEARNERS[name])
    for _ in range(2_000):
        learner.step(BETTER)
    for _ in range(questions // 1_000 - 2):
        learner.step(BETTER, times=1_000)
    return learner


def questions_needed(name: str, learner: Cumulative, gain: float) -> int:
    """Until the dominated expert has more than half of all weight: the table in the package's documentation."""
    if name == "ada_normal_hedge":
        promised = float(normal_hedge_regret(learner.absolute)[2])
        return math.ceil((2 * promised - float(learner.regrets[2])) / gain)
    rate = {
        "hedge": float(hedge_rate(3, MILLION)),
        "any_time_hedge": float(hedge_rate(3, 3 * MILLION)),
        "ada_hedge": 0.9 * math.log(3) / learner.gaps,  # it falls a little on the way
    }.get(name)
    lead = math.log(3) / rate if rate else 0.0
    return math.ceil((float(learner.regrets.max() - learner.regrets[2]) + lead) / gain) + 1


@pytest.mark.case("C21")
@pytest.mark.parametrize("name", LEARNERS)
def test_after_a_million_questions_weights_are_a_distribution(name: str) -> None:
    learner = after_a_million(name)

    weights = learner.weights()

    assert learner.questions == MILLION
    assert np.isfinite(weights).all()
    assert (weights >= 0.0).all()
    assert abs(float(weights.sum()) - 1.0) < 1e-9
    assert weights[2] < 1e-9


@pytest.mark.case("C21")
@pytest.mark.parametrize("name", LEARNERS)
def test_a_dominated_expert_recovers_within_the_documented_number_of_questions(name: str) -> None:
    learner = after_a_million(name)
    gain = float(WORSE[1] - WORSE[2])
    needed = questions_needed(name, learner, gain)
    early = math.floor(0.99 * (learner.regrets.max() - learner.regrets[2]) / (WORSE[0] - WORSE[2]) / 1_000)

    for _ in range(early):
        learner.step(WORSE, times=1_000)
    before = learner.weights()[2]
    late = needed - 1_000 * early
    for _ in range(late // 20):
        learner.step(WORSE, times=20)

    assert before < 0.01
    assert late > 0
    assert learner.weights()[2] > 0.5


@pytest.mark.case("C21")
@pytest.mark.slow
def test_fifty_thousand_real_steps_end_where_the_shortened_ones_do() -> None:
    """Of the default learner, through the public function, one question after the other."""
    questions = 50_000
    learner = Cumulative(LEARNERS["ada_normal_hedge"])
    for _ in range(questions):
        weights = learner.weights()
        regret = float(weights @ BETTER) - BETTER
        learner.regrets = learner.regrets + regret
        learner.absolute = learner.absolute + np.abs(regret)

    short = shortened("ada_normal_hedge", questions)

    np.testing.assert_allclose(learner.regrets, short.regrets, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(learner.weights(), short.weights(), atol=1e-7)


@pytest.mark.case("C21")
def test_ratios_of_tiny_weights_are_right_after_a_million_additions() -> None:
    """Three experts that lose .2, .2001 and .1 more per question than the best, added up one by one."""
    gaps = ("0", "0.2", "0.2001", "0.1")
    losses = np.array([np.cumsum(np.full(MILLION, float(gap)))[-1] for gap in gaps])
    rate = float(hedge_rate(4, MILLION))

    weights = hedge(-losses, rate)

    assert weights[1] < 1e-200
    with localcontext() as context:
        context.prec = 50
        exact = [(-Decimal(rate) * Decimal(gap) * MILLION).exp() for gap in gaps]
        ratios = [float(exact[i] / exact[j]) for i, j in ((1, 2), (1, 3), (3, 0))]
    assert [weights[1] / weights[2], weights[1] / weights[3], weights[3] / weights[0]] == pytest.approx(
        ratios, rel=1e-6
    )


@pytest.mark.case("C21")
def test_ratios_of_tiny_weights_of_the_default_learner_are_right() -> None:
    regrets, absolute = np.array([40_000.0, 120.0, 119.0]), np.array([900_000.0, 1e6, 1e6])

    weights = ada_normal_hedge(regrets, absolute)

    assert 0.0 < weights[1] < 1e-250
    with localcontext() as context:
        context.prec = 50
        plain = []
        for regret, total in zip(regrets.tolist(), absolute.tolist(), strict=True):
            scale = 3 * (Decimal(total) + 1)
            plain.append(((Decimal(regret) + 1) ** 2 / scale).exp() - ((Decimal(regret) - 1) ** 2 / scale).exp())
        ratios = [float(plain[1] / plain[2]), float(plain[1] / plain[0])]
    assert [weights[1] / weights[2], weights[1] / weights[0]] == pytest.approx(ratios, rel=1e-6)


@pytest.mark.case("C21")
@pytest.mark.parametrize("share", [0.002, 0.02])
def test_fixed_share_recovers_however_long_an_expert_was_dominated(share: float) -> None:
    rate, weights = 0.2, np.full(3, 1 / 3)
    for _ in range(4_000):
        weights = fixed_share(weights, float(weights @ BETTER) - BETTER, rate, share)
    again = fixed_share(weights, float(weights @ BETTER) - BETTER, rate, share)
    np.testing.assert_allclose(again, weights, rtol=1e-12)  # at rest: a million more change nothing
    assert weights[2] < 3 * share

    needed = math.ceil(math.log(9 / share) / (rate * float(WORSE[1] - WORSE[2]))) + 1
    for _ in range(needed):
        weights = fixed_share(weights, float(weights @ WORSE) - WORSE, rate, share)

    assert weights[2] > 0.5


@pytest.mark.case("C21")
@pytest.mark.parametrize("name", ["ada_normal_hedge", "hedge", "follow_the_leader"])
def test_with_a_memory_a_dominated_expert_recovers_within_it(name: str) -> None:
    """M·ln(1 + g'/g) questions and two buckets until it is level, whatever came before; its lead fades as it grows."""
    memory, losing, gain = 200, float(BETTER[2] - BETTER[0]), float(WORSE[1] - WORSE[2])
    rate = float(hedge_rate(3, memory))
    read: dict[str, Callable[[FloatArray], FloatArray]] = {
        "ada_normal_hedge": lambda sums: ada_normal_hedge(sums[0], sums[1]),
        "hedge": lambda sums: hedge(sums[0], rate),
        "follow_the_leader": lambda sums: follow_the_leader(sums[0]),
    }
    feed = Buckets(memory)
    for _ in range(6 * memory):  # older buckets are not read any more: a million would end here
        feed.step(read[name](feed.read()), BETTER)
    assert read[name](feed.read())[2] < 0.01

    level = memory * math.log(1 + losing / gain) + 2 * bucket_size(memory)
    lead = {
        "ada_normal_hedge": 2 * float(normal_hedge_regret(feed.read()[1])[2]),
        "hedge": math.log(3) / rate,
        "follow_the_leader": 0.0,
    }[name]
    for _ in range(math.ceil(level - memory * math.log(1 - lead / (gain * memory)))):
        feed.step(read[name](feed.read()), WORSE)

    assert read[name](feed.read())[2] > 0.5

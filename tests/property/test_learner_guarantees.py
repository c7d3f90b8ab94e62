"""Promised regrets, against losses chosen to hurt: no promise is broken, and none is empty."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from stream_peer.lab.formulas.learners import (
    ada_hedge,
    ada_hedge_rate,
    fixed_share,
    follow_the_leader,
    mixability_gap,
    top_committee,
)
from stream_peer.lab.formulas.online import ada_hedge_regret, anytime_hedge_regret, hedge_regret, normal_hedge_regret
from stream_peer.lab.formulas.regret_sums import RegretSums
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.learners import ada_normal_hedge, hedge, hedge_rate

HORIZON, RUNS_EACH, KINDS = 600, 12, 5


class State(NamedTuple):
    """What a learner may read before a question, of (runs, experts)."""

    sums: RegretSums
    gaps: FloatArray
    question: int


Learner = Callable[[State], FloatArray]


def adversary(rng: np.random.Generator, weights: FloatArray, question: int) -> FloatArray:
    """Losses in [0, 1] of five kinds of runs: against the heaviest, the upper third, by turns, fair coins, drift."""
    runs, n_experts = weights.shape
    losses = rng.random(weights.shape)
    kind = np.arange(runs) % KINDS
    heaviest = np.arange(n_experts) == weights.argmax(axis=1)[:, None]
    upper = weights >= np.quantile(weights, 0.7, axis=1, keepdims=True)
    losses = np.where((kind == 0)[:, None], heaviest, losses)
    losses = np.where((kind == 1)[:, None], np.where(upper, 0.3 + 0.7 * losses, losses), losses)
    turn = (np.arange(n_experts) + question) % 2 * (0.5 if question == 0 else 1.0)
    losses = np.where((kind == 2)[:, None], turn, losses)
    losses = np.where((kind == 3)[:, None], losses > 0.5, losses)
    best = (question * n_experts // HORIZON + np.arange(runs)) % n_experts
    return np.where((kind == 4)[:, None], np.arange(n_experts) != best[:, None], losses).astype(np.float64)


def after(learner: Learner, n_experts: int, seed: int = 4) -> State:
    """Regrets at the horizon, in runs of every kind."""
    rng, runs = np.random.default_rng([seed, n_experts]), RUNS_EACH * KINDS
    state = State(RegretSums.nothing(runs, n_experts), np.zeros((runs, 1)), 0)
    for question in range(HORIZON):
        weights = learner(state)
        part = RegretSums.outcome_contribution(weights, adversary(rng, weights, question), (0.0, 0.0))
        gap = mixability_gap(part.outcome, weights, ada_hedge_rate(n_experts, state.gaps))
        state = State(state.sums.merge(part), state.gaps + gap[:, None], question + 1)
    return state


LEARNERS: dict[str, Callable[[int, State], FloatArray]] = {
    "ada_normal_hedge": lambda _, state: ada_normal_hedge(state.sums.outcome, state.sums.absolute),
    "hedge": lambda n, state: hedge(state.sums.outcome, float(hedge_rate(n, HORIZON))),
    "any_time_hedge": lambda n, state: hedge(state.sums.outcome, float(hedge_rate(n, state.question + 1))),
    "ada_hedge": lambda n, state: ada_hedge(state.sums.outcome, state.gaps, n),
}


def promised(name: str, n_experts: int, state: State) -> FloatArray | float:
    if name == "ada_normal_hedge":
        return normal_hedge_regret(state.sums.absolute)
    promise = {"hedge": hedge_regret, "any_time_hedge": anytime_hedge_regret, "ada_hedge": ada_hedge_regret}[name]
    return promise(n_experts, HORIZON)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("n_experts", [2, 5, 20])
def test_no_adversary_breaks_the_promised_regret(name: str, n_experts: int) -> None:
    state = after(partial(LEARNERS[name], n_experts), n_experts)

    ratios = state.sums.outcome / np.maximum(promised(name, n_experts, state), 1e-9)

    assert ratios.max() <= 1.0
    assert ratios.max() > 0.1  # the adversary is one


def test_fixed_exponential_weights_come_close_to_their_promise() -> None:
    """So the promise is no exaggeration, and a rate off by a factor would break it."""
    state = after(partial(LEARNERS["hedge"], 20), 20)
    eager = after(lambda state: hedge(state.sums.outcome, 20 * float(hedge_rate(20, HORIZON))), 20)

    assert state.sums.outcome.max() / hedge_regret(20, HORIZON) > 0.5
    assert eager.sums.outcome.max() > hedge_regret(20, HORIZON)


@pytest.mark.parametrize("size", [1, 2])
def test_leaders_and_committees_promise_nothing(size: int) -> None:
    """Losses against the heaviest make the regret of a leader grow with every question."""
    state = after(lambda state: top_committee(state.sums.outcome, size), 5)

    assert state.sums.outcome[::KINDS].max() > HORIZON / 8
    if size == 1:
        leader = after(lambda state: follow_the_leader(state.sums.outcome), 5)
        np.testing.assert_array_equal(leader.sums.outcome, state.sums.outcome)


def test_fixed_share_follows_leaders_that_change() -> None:
    """Three stretches with another best expert each: less loss than the best single expert, unlike Hedge."""
    rng, weights, loss = np.random.default_rng(6), np.full(4, 0.25), 0.0
    sums, hedged = np.zeros(4), 0.0
    for question in range(1_200):
        losses = rng.random(4) * 0.5 + 0.4 * (np.arange(4) != question // 400)
        loss += float(weights @ losses)
        fixed = hedge(-sums, float(hedge_rate(4, 1_200)))
        hedged += float(fixed @ losses)
        sums += losses
        weights = fixed_share(weights, float(weights @ losses) - losses, 0.5, 0.002)

    assert loss < sums.min() - 100
    assert loss < hedged - 100


def test_gaps_add_up_to_most_of_what_ada_hedge_regrets() -> None:
    """R ≤ 2·Δ, the step in its proof that no rate enters."""
    state = after(partial(LEARNERS["ada_hedge"], 5), 5)

    assert (state.sums.outcome.max(axis=1) <= 2 * state.gaps[:, 0] + 1e-9).all()

"""Fixed share, which remembers what it said."""

from typing import Any

import numpy as np
import pytest

from stream_peer.lab.formulas.learners import fixed_share
from stream_peer.lab.methods.paths import SharedWeights


def places(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int32)


def test_fixed_share_goes_on_from_what_it_said_as_its_formula_says() -> None:
    shared, plain = SharedWeights(), np.full(4, 0.25)
    generator = np.random.default_rng(5)
    shared.of(places(0, 1, 2, 3))

    for _ in range(30):
        awake = np.sort(generator.permutation(4)[: generator.integers(1, 5)]).astype(np.int32)
        regrets = generator.uniform(-1, 1, len(awake))
        shared.learn(awake, regrets, 0.8, 0.05)
        spread, mask = np.zeros(4), np.zeros(4, dtype=np.bool_)
        spread[awake], mask[awake] = regrets, True
        plain = fixed_share(plain, spread, 0.8, 0.05, mask)

    assert shared.of(places(0, 1, 2, 3)) == pytest.approx(plain, abs=1e-14)


@pytest.mark.case("C20")
def test_a_newcomer_of_fixed_share_starts_at_the_mean_and_leaves_the_others_their_ratios() -> None:
    shared = SharedWeights()
    shared.of(places(0, 1, 2))
    shared.learn(places(0, 1, 2), np.array([0.9, 0.0, -0.9]), 1.0, 0.01)
    before = shared.of(places(0, 1, 2))

    joined = shared.of(places(0, 1, 2, 3))

    assert joined[3] == pytest.approx(0.25)
    assert joined[:3] / joined[0] == pytest.approx(before / before[0])
    assert shared.of(places(0, 1, 2)) == pytest.approx(before)


def test_whoever_is_absent_keeps_its_weight_and_comes_back_with_it() -> None:
    shared = SharedWeights()
    shared.of(places(0, 1, 2))

    shared.learn(places(0, 1), np.array([0.9, -0.9]), 2.0, 0.01)

    assert shared.of(places(0, 1, 2))[2] == pytest.approx(1 / 3)


@pytest.mark.case("C21")
def test_weights_of_fixed_share_stay_numbers_where_each_loser_meets_only_smaller_ones() -> None:
    shared, n_experts = SharedWeights(), 60
    shared.of(places(*range(n_experts)))

    for better in range(n_experts - 1):
        for loser in range(better + 1, n_experts):
            shared.learn(places(better, loser), np.array([1.0, -1.0]), 1000.0, 1e-6)

    last = shared.of(places(58, 59))
    assert shared.of(places(*range(n_experts))).sum() == pytest.approx(1.0)
    assert last.sum() == pytest.approx(1.0)
    assert np.isfinite(last).all()

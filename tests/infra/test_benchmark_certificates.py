"""The benchmark of certificates: they hold in simulated worlds, equal rates would not, and a verdict that can fail."""

import numpy as np
import pytest

from benchmarks.certificates import WORLDS, Found, Life, World, lived, page
from stream_peer.numerics.certificate import confidence_at_all_times, regret_bounds
from stream_peer.numerics.error_rates import MomentSums, interval_ends

MISLED = WORLDS[-1]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_no_certificate_is_below_the_regret(world: World) -> None:
    found = lived(world, runs=6, n_experts=5, questions=600)

    assert not found.violated.any()
    assert (found.second[0] < found.first[0]).all()


def test_rates_that_are_taken_as_equal_say_less_than_the_regret_of_a_crowd_misled_on_one_outcome() -> None:
    life = Life(MISLED, runs=2, n_experts=10, questions=8000, seed=1)
    for number in range(8000):
        life.step(number)

    confidence = confidence_at_all_times(8000.0, 0.005)
    of_equal_rates = [
        regret_bounds(
            life.all[0, run],
            life.all[1, run],
            life.all[2, run],
            spread=life.spread[run],
            rates=interval_ends(MomentSums(*life.moments[:, run].tolist()).estimate(confidence)),
            n_experts=10,
            delta=0.02,
        ).max()
        for run in range(2)
    ]
    regret = life.true.max(axis=1)
    assert (np.array(of_equal_rates) < regret).all()
    assert (regret < life.second()).all()


def test_the_verdict_names_a_certificate_that_was_below_the_regret() -> None:
    at_marks = np.full((2, 3), 0.01)
    holds, broken = (
        Found(at_marks, at_marks, at_marks, np.full(3, least), np.full(3, least) < 0.0) for least in (0.5, -0.5)
    )

    assert page([(MISLED, holds), (WORLDS[0], holds)], 3000)[1]
    lines, is_good = page([(WORLDS[0], holds), (MISLED, broken)], 3000)
    assert not is_good
    assert any("6 runs" in line and "3 with a certificate" in line for line in lines)

import math

import numpy as np
import pytest

from stream_peer.lab.formulas.online import ada_hedge_regret, anytime_hedge_regret, hedge_regret, normal_hedge_regret


def test_the_bounds_of_exponential_weights_are_their_formulas() -> None:
    assert hedge_regret(32, 5000) == pytest.approx(math.sqrt(5000 * math.log(32) / 2))
    assert anytime_hedge_regret(32, 5000) == pytest.approx(
        2 * math.sqrt(2500 * math.log(32)) + math.sqrt(math.log(32) / 8)
    )
    assert ada_hedge_regret(32, 5000) == pytest.approx(math.sqrt(5000 * math.log(32)) + 4 / 3 * math.log(32) + 2)


def test_a_single_expert_is_followed_without_regret() -> None:
    assert hedge_regret(1, 1000) == anytime_hedge_regret(1, 1000) == 0.0


def test_normal_hedge_promises_less_regret_to_experts_that_differ_less() -> None:
    absolute = np.array([[0.0, 4.0, 16.0]])
    spread = 1 + 1.5 * (1 + (math.log(5) + math.log(17)) / 3)
    factor = 3 * (math.log(3) + math.log(spread) + math.log(1 + math.log(3)))

    found = normal_hedge_regret(absolute)

    np.testing.assert_allclose(found, [[0.0, math.sqrt(4 * factor), math.sqrt(16 * factor)]])


def test_nobody_is_promised_nothing() -> None:
    assert normal_hedge_regret(np.zeros(0)).size == 0

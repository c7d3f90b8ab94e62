import numpy as np
import pytest

from stream_peer.numerics.outer_layer import outer_weights, safety_net_step, stretch_factor, stretched

PRIOR = np.array([0.30, 0.50, 0.12, 0.08])


def test_without_outcomes_the_shadows_have_their_prior() -> None:
    assert outer_weights(np.zeros((3, 3)), np.zeros(3), PRIOR).tolist() == pytest.approx(PRIOR.tolist(), abs=1e-15)


def test_the_net_moves_a_twentieth_at_a_time() -> None:
    """Z = 3.2/√(1 - .001 + .001): the goal is 1, then z = -1: the goal is 0."""
    shares = [0.0]
    for delta in [3.2] * 22 + [-1.0] * 3:
        shares.append(safety_net_step(shares[-1], delta, 0.999))

    assert shares[1] == pytest.approx(0.05)
    assert shares[20:23] == pytest.approx([1.0, 1.0, 1.0])
    assert shares[-1] == pytest.approx(0.85)


def test_the_net_stops_at_its_goal() -> None:
    assert safety_net_step(0.28, net_difference=1.6, net_square=0.999) == pytest.approx(0.3)
    assert safety_net_step(0.02, net_difference=0.0, net_square=0.0) == 0.0


def test_stretch_is_zero_without_outcomes_and_grows_with_timidity() -> None:
    """Fifty times .75 where the outcome was always 1: Σ(y-f)(f-½) = Σ(f-½)² = 3.125."""
    assert stretch_factor(0.0, 0.0) == 0.0
    assert stretch_factor(3.125, 3.125) == pytest.approx(3.125 / 8.125)


def test_a_crowd_that_was_always_wrong_is_not_turned_round() -> None:
    """A hundred questions at .9, all of them wrong: at less than -1 the next .9 would become less than 1/2."""
    factor = stretch_factor(100 * (0.0 - 0.9) * 0.4, 100 * 0.16)

    assert factor == -1.0
    assert stretched(0.9, factor) == 0.5

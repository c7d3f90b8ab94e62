import numpy as np
import pytest

from stream_peer.numerics.outer_layer import outer_weights, safety_net_step, stretch_factor, stretched

PRIOR = np.array([0.30, 0.50, 0.12, 0.08])


def test_without_outcomes_the_shadows_have_their_prior() -> None:
    assert outer_weights(np.zeros((3, 3)), np.zeros(3), PRIOR).tolist() == pytest.approx(PRIOR.tolist(), abs=1e-15)


def test_a_shadow_without_prior_is_out() -> None:
    helpful = np.array([1.0, 5.0, 1.0])

    weights = outer_weights(np.eye(3), helpful, np.array([0.4, 0.6, 0.0, 0.0]))

    assert weights[2:].tolist() == [0.0, 0.0]
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("only", range(4))
def test_a_single_shadow_with_a_prior_gets_everything(only: int) -> None:
    prior = np.zeros(4)
    prior[only] = 1.0

    assert outer_weights(np.eye(3), np.array([9.0, -9.0, 9.0]), prior).tolist() == prior.tolist()


def test_a_shadow_that_was_always_right_gets_everything() -> None:
    """It had q = e on a thousand questions; the others had q of the wrong sign."""
    q, questions = np.array([-0.2, 0.4, -0.2]), 1000

    weights = outer_weights(questions * np.outer(q, q), questions * q * 0.4, PRIOR)

    assert weights == pytest.approx([0.0, 0.0, 1.0, 0.0], abs=2e-3)


def test_shadows_that_only_hurt_leave_the_plain_mean() -> None:
    q = np.array([0.3, 0.2, 0.4])

    weights = outer_weights(500 * np.outer(q, q), -500 * q * 0.3, PRIOR)

    assert weights.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_identical_shadows_share_by_their_priors() -> None:
    q = np.full(3, 0.2)

    weights = outer_weights(100 * np.outer(q, q), 100 * q * 0.1, PRIOR)

    assert weights[1] / weights[2] == pytest.approx(0.50 / 0.12, rel=1e-9)
    assert weights[2] / weights[3] == pytest.approx(0.12 / 0.08, rel=1e-9)


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


def test_a_stretched_forecast_stays_a_probability() -> None:
    assert [stretched(f, 0.5) for f in (0.0, 0.4, 0.5, 0.6, 1.0)] == pytest.approx([0.0, 0.35, 0.5, 0.65, 1.0])
    assert stretched(0.8, -0.5) == pytest.approx(0.65)


def test_a_crowd_that_was_always_wrong_is_not_turned_round() -> None:
    """A hundred questions at .9, all of them wrong: at less than -1 the next .9 would become less than 1/2."""
    factor = stretch_factor(100 * (0.0 - 0.9) * 0.4, 100 * 0.16)

    assert factor == -1.0
    assert stretched(0.9, factor) == 0.5

import numpy as np
import pytest

from stream_peer.numerics.mixers import outer_weights

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

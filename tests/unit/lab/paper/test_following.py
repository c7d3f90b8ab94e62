import numpy as np
import pytest

from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.lab.paper.following import (
    AdaNormal,
    Hedge,
    any_time_hedge,
    fixed_hedge,
    revealed_rates,
    two_group_rates,
)


def test_learners_start_with_equal_weights_and_move_to_the_smaller_peer_loss() -> None:
    rate = np.full((1, 1), 0.2)
    forecasts = np.array([[0.9, 0.6, 0.2]])
    for learner in (Hedge((1, 3)), AdaNormal((1, 3))):
        first = learner.weights(rate)
        for _ in range(30):
            learner.observe(np.stack(loss_parts(forecasts, 1)), learner.weights(rate), rate)
        np.testing.assert_allclose(first, 1.0 / 3.0)
        assert learner.weights(rate)[0].argmax() == 0


def test_the_rate_of_a_known_horizon_is_the_any_time_rate_at_its_end() -> None:
    cumulative = np.array([[1.0, 2.0, 4.0]])

    np.testing.assert_allclose(fixed_hedge(cumulative, 50), any_time_hedge(cumulative, 50))
    assert fixed_hedge(cumulative, 50)[0, 0] < any_time_hedge(cumulative, 5)[0, 0]


def test_measured_rates_are_read_anew_only_where_a_count_changed() -> None:
    right, wrong = np.array([8.0, 6.0]), np.array([2.0, 4.0])
    before = np.array([0.11, 0.22])

    assert revealed_rates(right, wrong).tolist() == pytest.approx([0.2, 0.4])
    assert revealed_rates(right, wrong, before, np.array([False, True])).tolist() == pytest.approx([0.11, 0.4])


def test_two_group_rates_are_those_of_the_closed_form() -> None:
    yes = np.array([[51_000.0], [66_000.0], [62_000.0]])

    assert two_group_rates(yes, 100_000) == pytest.approx([0.1], abs=0.001)

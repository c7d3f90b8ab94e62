import numpy as np

from stream_peer.lab.paper.panels import flipped, outcomes, shrunk


def test_outcomes_are_one_as_often_as_their_chance() -> None:
    drawn = outcomes(np.random.default_rng(1), np.full(20_000, 0.3))

    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert abs(drawn.mean() - 0.3) < 0.015


def test_flipping_turns_values_over_where_told_and_leaves_the_others() -> None:
    values, where = np.array([0.0, 0.0, 1.0, 1.0]), np.array([True, False, True, False])

    assert flipped(values, where).tolist() == [1.0, 0.0, 0.0, 1.0]


def test_a_shrunk_expert_loses_what_it_holds_back_squared() -> None:
    chances = np.array([0.1, 0.5, 0.9])
    forecasts = shrunk(chances, 0.25)

    excess = chances * (1 - forecasts) ** 2 + (1 - chances) * forecasts**2 - chances * (1 - chances)

    np.testing.assert_allclose(excess, 0.75**2 * (chances - 0.5) ** 2)

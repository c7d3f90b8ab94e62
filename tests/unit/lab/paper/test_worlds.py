"""What the simulations draw is what they say that it is."""

import numpy as np
import pytest

from stream_peer.lab.formulas.two_groups import two_group_solution
from stream_peer.lab.paper.worlds import (
    Voters,
    drawn_shares,
    expected_shares,
    left_out_rates,
    merged,
    printed_first_rate,
    seen,
    shrunk,
    watched,
)
from stream_peer.numerics.answers import leave_one_out, majority


def test_a_shrunk_expert_loses_what_it_holds_back_squared() -> None:
    chances = np.array([0.1, 0.5, 0.9])
    forecasts = shrunk(chances, 0.25)

    excess = chances * (1 - forecasts) ** 2 + (1 - chances) * forecasts**2 - chances * (1 - chances)

    np.testing.assert_allclose(excess, 0.75**2 * (chances - 0.5) ** 2)


def test_a_panel_sees_question_by_question_what_the_service_would() -> None:
    rng = np.random.default_rng(1)
    forecasts, coins = rng.random((40, 5)), rng.integers(0, 2, 40).astype(np.int8)

    panel = seen(forecasts, coins)

    for place, (row, coin) in enumerate(zip(forecasts, coins, strict=True)):
        assert panel.own[place].tolist() == leave_one_out(row, int(coin)).answers.tolist()
        assert panel.published[place] == majority(row, int(coin)).answer
    assert merged(panel.moments).weight == 40


def test_rounds_without_two_voters_add_no_moments() -> None:
    panel = seen(np.array([[0.5, 0.5, 0.9], [0.2, 0.5, 0.9]]), np.array([0, 1], dtype=np.int8))

    assert len(panel.moments) == 1


def test_shares_of_yes_that_are_expected_are_solved_by_the_rates_they_were_made_of() -> None:
    solved = two_group_solution(*expected_shares(0.1, 0.2, zeros=0.3)[:3])

    assert solved is not None
    assert (solved.first, solved.second, solved.share_of_zeros) == pytest.approx((0.1, 0.2, 0.3))


def test_e12_the_printed_quadratic_is_not_solved_by_the_truth() -> None:
    shares = expected_shares(0.1, 0.2, zeros=0.3)

    assert abs(printed_first_rate(shares) - 0.1) > 0.3


def test_drawn_shares_are_those_of_counted_answers() -> None:
    drawn = drawn_shares(np.random.default_rng(1), expected_shares(0.1, 0.2, zeros=0.3), 10_000, runs=200)

    for shares in drawn:
        assert shares.c3 <= min(shares.c1, shares.c2)
    mean = np.mean([shares[:3] for shares in drawn], axis=0)
    np.testing.assert_allclose(mean, expected_shares(0.1, 0.2, zeros=0.3)[:3], atol=0.002)


@pytest.mark.parametrize(("n_voters", "rate"), [(4, 0.2817), (5, 0.2817), (2, 0.35)])
def test_left_out_majorities_err_like_the_next_smaller_odd_number_of_voters(n_voters: int, rate: float) -> None:
    errors = np.full(n_voters, 0.35)

    assert left_out_rates(Voters(1.0 - errors, errors, zeros=0.5)) == pytest.approx((rate, rate), abs=5e-5)


def test_left_out_rates_are_those_that_a_stream_shows() -> None:
    voters = Voters(np.array([0.8, 0.7, 0.6, 0.9]), np.array([0.1, 0.3, 0.4, 0.2]), zeros=0.6)
    zero, one = left_out_rates(voters)

    seen = watched(np.random.default_rng(3), voters, [500, 4000])

    assert seen.symmetric[0].weight == 500
    assert seen.by_class[1].weight == 4000
    estimate = seen.by_class[1].estimate()
    assert estimate.zero == pytest.approx(zero, abs=0.05)
    assert estimate.one == pytest.approx(one, abs=0.08)

from decimal import Decimal, localcontext

import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.lab.formulas.reference_rules import in_units, log_odds
from stream_peer.numerics.answers import UNIT, MajorityAnswer, distances, leave_one_out, majority, votes, without_own
from stream_peer.numerics.arguments import IntArray


def test_log_odds_are_right_to_the_fourteenth_digit() -> None:
    forecasts = np.linspace(0.02, 0.98, 997)

    found = log_odds(forecasts)

    with localcontext(prec=50):
        expected = [float((Decimal(p) / (1 - Decimal(p))).ln()) for p in forecasts.tolist()]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-14)


def test_log_odds_of_opposite_forecasts_are_exactly_opposite() -> None:
    forecasts = np.arange(1, 1024) / 1024

    assert np.array_equal(log_odds(1.0 - forecasts), -log_odds(forecasts))


@pytest.mark.parametrize("forecast", [0.0, 1e-300, 0.02])
def test_log_odds_are_those_of_forecasts_clipped_to_two_percent(forecast: float) -> None:
    assert log_odds(np.array([forecast, 1.0 - forecast])) == pytest.approx([-np.log(49.0), np.log(49.0)], abs=1e-13)


def test_no_vote_is_rounded_away() -> None:
    forecasts = np.array([np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1), 1.0])
    side = votes(forecasts)

    assert distances(forecasts, None, side).tolist() == [-1, 0, 1, 2**39]
    assert in_units(forecasts - 0.5, side).tolist() == [-1, 0, 1, 2**39]


def test_sums_of_ten_thousand_ballots_are_exact_in_any_order() -> None:
    values = in_units(np.random.default_rng(5).random(10_000), np.zeros(10_000, dtype=np.int8))
    total = sum(values.tolist())

    found = without_own(values[::-1], None)

    assert found[::-1].tolist() == [total - value for value in values.tolist()]
    assert abs(total / UNIT - 5000) < 200


@pytest.mark.parametrize("names", [(0, 1), (1, 0), (7, 40), (10**15, 3)])
def test_team_numbers_may_be_any(names: tuple[int, int]) -> None:
    first, second = names
    values = np.array([[1, 10, 100, 1000, 10_000], [2, 20, 200, 2000, 20_000]])

    found = without_own(values, np.array([first, second, -5, first, second]))

    assert found.tolist() == [[10_110, 1101, 11_011, 10_110, 1101], [20_220, 2202, 22_022, 20_220, 2202]]


def test_a_forecast_of_exactly_half_casts_no_vote() -> None:
    forecasts = np.array([0.0, np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1), 1.0])

    assert votes(forecasts).tolist() == [-1, -1, 0, 1, 1]
    assert votes(forecasts).dtype == np.int8


def test_a_forecast_of_exactly_its_own_threshold_casts_no_vote() -> None:
    forecasts, thresholds = np.array([0.9, 0.1, 0.3, 1.0, 0.0]), np.array([0.95, 0.05, 0.3, 1.0, 0.0])

    assert votes(forecasts, thresholds).tolist() == [-1, 1, 0, 0, 0]


def test_a_tie_at_own_thresholds_goes_to_the_side_on_which_the_others_lie_on_average() -> None:
    forecasts, thresholds = np.array([0.2, 0.1, 0.05]), np.array([0.1, 0.15, 0.1])

    found = leave_one_out(forecasts, coin=0, thresholds=thresholds)

    assert found.answers.tolist() == [0, 1, 1]
    assert found.ties.tolist() == [False, True, True]


@pytest.mark.parametrize("wrong", [float("nan"), 1.5, -0.1])
def test_references_refuse_thresholds_that_are_no_probabilities(wrong: float) -> None:
    with pytest.raises(FormulaInputError, match=repr(wrong)):
        leave_one_out(np.array([0.5, 0.5]), 0, thresholds=np.array([0.5, wrong]))


def test_unanimity_always_wins() -> None:
    assert majority(np.array([0.51, 0.99, 0.7]), coin=0) == MajorityAnswer(1, tie=False, yes=3, voters=3)
    assert majority(np.array([0.49, 0.01]), coin=1) == MajorityAnswer(0, tie=False, yes=0, voters=2)


@pytest.mark.parametrize(("forecasts", "answer"), [([0.9, 0.2], 1), ([0.7, 0.1], 0)])
def test_a_tie_goes_to_the_side_of_the_mean(forecasts: list[float], answer: int) -> None:
    assert majority(np.array(forecasts), coin=1 - answer) == MajorityAnswer(answer, tie=True, yes=1, voters=2)


@pytest.mark.parametrize("forecasts", [[], [0.5], [0.25, 0.75], [0.1, 0.9, 0.5]])
def test_the_coin_decides_where_nothing_else_does(forecasts: list[float]) -> None:
    assert [majority(np.array(forecasts), coin).answer for coin in (0, 1)] == [0, 1]
    assert majority(np.array(forecasts), 0).tie


def test_an_expert_alone_gets_the_coin() -> None:
    for coin in (0, 1):
        found = leave_one_out(np.array([0.9]), coin)
        assert (found.answers.tolist(), found.ties.tolist()) == ([coin], [True])


def test_no_experts_get_no_answers() -> None:
    assert leave_one_out(np.zeros(0), 1).answers.size == 0


def test_who_does_not_vote_is_scored_against_all_voters() -> None:
    assert leave_one_out(np.array([0.5, 0.9, 0.8, 0.1]), coin=0).answers.tolist() == [1, 0, 0, 1]


def test_more_experts_than_a_small_integer_counts_are_no_problem() -> None:
    forecasts = np.full(1001, 0.9)

    found = leave_one_out(forecasts, coin=0)

    assert found.answers.all()
    assert not found.ties.any()


def test_a_team_is_left_out_together() -> None:
    forecasts = np.array([0.9, 0.9, 0.9, 0.2, 0.3, 0.8])
    teams = np.array([7, 7, 7, -1, -1, -1])

    found = leave_one_out(forecasts, coin=0, teams=teams)

    assert found.answers.tolist() == [0, 0, 0, 1, 1, 1]


def test_negative_team_numbers_are_no_teams() -> None:
    forecasts = np.array([0.9, 0.8, 0.3, 0.2, 0.6])

    with_none = leave_one_out(forecasts, 1, np.full(5, -1))

    assert with_none.answers.tolist() == leave_one_out(forecasts, 1).answers.tolist()


def test_a_whole_room_of_one_team_gets_the_coin() -> None:
    found = leave_one_out(np.array([0.9, 0.8, 0.3]), coin=1, teams=np.array([2, 2, 2]))

    assert (found.answers.tolist(), found.ties.tolist()) == ([1, 1, 1], [True, True, True])


@pytest.mark.parametrize("wrong", [float("nan"), 1.5, -0.1])
def test_references_refuse_what_is_no_probability(wrong: float) -> None:
    with pytest.raises(ForecastRangeError):
        leave_one_out(np.array([0.5, wrong]), 0)
    with pytest.raises(ForecastRangeError):
        majority(np.array([0.5, wrong]), 0)


@pytest.mark.parametrize("coin", [2, -1, np.array(2), np.array([0]), np.array([0, 1, 1])])
def test_a_coin_is_0_or_1_and_one_for_the_round(coin: int | IntArray) -> None:
    with pytest.raises(FormulaInputError, match="coin"):
        leave_one_out(np.array([0.9, 0.6, 0.3]), coin)


def test_a_batch_needs_a_coin_for_each_of_its_rounds() -> None:
    forecasts = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]])

    assert leave_one_out(forecasts, np.array([1, 0])).answers[:, 2].tolist() == [1, 0]
    with pytest.raises(FormulaInputError, match="coin has the shape"):
        leave_one_out(forecasts, np.array([1, 0, 1]))


def test_what_is_not_a_round_is_refused() -> None:
    with pytest.raises(FormulaInputError, match=r"forecasts has the shape \(\)"):
        leave_one_out(np.array(0.5), 0)
    with pytest.raises(FormulaInputError, match=r"not \(n\)"):
        majority(np.array([[0.9], [0.1]]), 0)
    with pytest.raises(FormulaInputError, match="coin is 2"):
        majority(np.array([0.5]), 2)
    with pytest.raises(FormulaInputError, match="thresholds has the shape"):
        leave_one_out(np.array([0.5, 0.4]), 0, thresholds=np.full((3, 2), 0.5))

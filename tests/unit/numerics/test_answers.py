import numpy as np
import pytest

from stream_peer.lab.formulas.reference_rules import in_units
from stream_peer.numerics.answers import UNIT, MajorityAnswer, distances, leave_one_out, majority, votes, without_own


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


def test_no_experts_get_no_answers() -> None:
    assert leave_one_out(np.zeros(0), 1).answers.size == 0


def test_more_experts_than_a_small_integer_counts_are_no_problem() -> None:
    forecasts = np.full(1001, 0.9)

    found = leave_one_out(forecasts, coin=0)

    assert found.answers.all()
    assert not found.ties.any()


def test_no_vote_is_rounded_away() -> None:
    forecasts = np.array([np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1), 1.0])
    side = votes(forecasts)

    assert distances(forecasts, None, side).tolist() == [-1, 0, 1, 2**39]
    assert in_units(forecasts - 0.5, side).tolist() == [-1, 0, 1, 2**39]


@pytest.mark.parametrize(("forecasts", "answer"), [([0.9, 0.2], 1), ([0.7, 0.1], 0)])
def test_a_tie_goes_to_the_side_of_the_mean(forecasts: list[float], answer: int) -> None:
    assert majority(np.array(forecasts), coin=1 - answer) == MajorityAnswer(answer, tie=True, yes=1, voters=2)


@pytest.mark.parametrize("forecasts", [[], [0.5], [0.25, 0.75], [0.1, 0.9, 0.5]])
def test_the_coin_decides_where_nothing_else_does(forecasts: list[float]) -> None:
    assert [majority(np.array(forecasts), coin).answer for coin in (0, 1)] == [0, 1]
    assert majority(np.array(forecasts), 0).tie

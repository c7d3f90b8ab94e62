from decimal import Decimal, localcontext

import numpy as np
import pytest

from stream_peer.numerics.references.exact import UNIT, distances, in_units, log_odds, without_own
from stream_peer.numerics.references.majorities import votes


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

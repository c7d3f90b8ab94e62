import math

import pytest

from stream_peer.numerics.error_rates import ErrorRate, combine_with_truth, interval_ends
from stream_peer.numerics.error_rates.rate import normal_quantile


def certain(rate: float) -> ErrorRate:
    return ErrorRate(rate, rate, rate, rate, 0.0, "ok", 0.0)


def test_both_rates_move_alike_between_the_ends_of_the_interval() -> None:
    low, high = interval_ends(ErrorRate(0.1, 0.3, 0.15, 0.22, 500.0, "ok", 0.001))

    assert low == pytest.approx((0.05, 0.25))
    assert high == pytest.approx((0.12, 0.32))


def test_a_rate_that_reaches_0_stays_there_while_their_mean_goes_on_to_its_end() -> None:
    low, kink, high = interval_ends(ErrorRate(0.3, 0.02, 0.1, 0.2, 500.0, "ok", 0.001))

    assert low == pytest.approx((0.2, 0.0))
    assert kink == pytest.approx((0.28, 0.0))
    assert high == pytest.approx((0.34, 0.06))


def test_rates_that_are_0_throughout_have_an_interval_of_zeros() -> None:
    assert interval_ends(certain(0.0)) == ((0.0, 0.0), (0.0, 0.0))


def test_known_rates_can_still_be_corrected_by_outcomes() -> None:
    """They count as thirty labels, as any certain estimate does."""
    assert combine_with_truth(certain(0.2), 30, 70, 0, 0).zero == pytest.approx((30 + 30 * 0.2) / 100)


@pytest.mark.parametrize("confidence", [0.0, 0.5, 0.95, 1.0 - 2.0**-53])
def test_the_normal_quantile_encloses_its_confidence_up_to_the_last_number_below_1(confidence: float) -> None:
    assert math.erfc(normal_quantile(confidence) / math.sqrt(2.0)) == pytest.approx(1.0 - confidence, rel=1e-9)

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.skill import consistency_band, reliability_bins


def test_calibrated_forecasts_are_within_their_bands_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(11)
    inside = total = 0
    for _ in range(200):
        forecasts = rng.random(300)
        bins = reliability_bins(forecasts, (rng.random(300) < forecasts).astype(np.int64), level=0.9)
        inside += sum(each.low <= each.happened <= each.high for each in bins)
        total += len(bins)

    assert 0.9 <= inside / total <= 0.97


def test_overconfident_forecasts_are_outside_of_their_bands() -> None:
    forecasts = np.repeat([0.05, 0.95], 200)
    outcomes = np.tile([1, 0, 0, 0, 0], 80)
    outcomes[200:] = 1 - outcomes[200:]

    low, high = reliability_bins(forecasts, outcomes)

    assert low.happened > low.high
    assert high.happened < high.low


def test_a_forecast_of_one_belongs_to_the_last_bin() -> None:
    assert [each.questions for each in reliability_bins(np.array([0.0, 1.0]), np.array([0, 1]), n_bins=2)] == [1, 1]


@pytest.mark.parametrize("n_bins", [1, 3, 10, 20, 100])
def test_a_forecast_on_a_boundary_belongs_to_the_bin_above_it(n_bins: int) -> None:
    boundaries = np.array([k / n_bins for k in range(n_bins)])

    bins = reliability_bins(boundaries, np.zeros(n_bins, np.int64), n_bins)

    assert [each.forecast for each in bins] == boundaries.tolist()


def test_certain_forecasts_leave_no_room() -> None:
    assert consistency_band(np.array([1.0, 1.0, 0.0, 0.0])) == (0.5, 0.5)


def test_bands_of_very_many_forecasts_continue_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    forecasts = rng.uniform(0.1, 0.2, 4_001)

    exact, normal = consistency_band(forecasts[:4_000]), consistency_band(forecasts)

    assert exact == pytest.approx(normal, abs=2 / 4_000)


@pytest.mark.parametrize(("n_bins", "level"), [(0, 0.9), (5, 0.0), (5, 1.0)])
def test_what_no_diagram_can_be_drawn_with_is_refused(n_bins: int, level: float) -> None:
    with pytest.raises(FormulaInputError):
        reliability_bins(np.array([0.5]), np.array([1]), n_bins, level)


def test_of_no_forecasts_there_are_no_bins_and_no_band() -> None:
    assert reliability_bins(np.array([]), np.array([], dtype=np.int64)) == []
    with pytest.raises(FormulaInputError):
        consistency_band(np.array([]))

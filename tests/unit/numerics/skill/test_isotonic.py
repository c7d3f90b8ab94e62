import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.skill import isotonic_fit


def test_equal_forecasts_get_one_value() -> None:
    fitted = isotonic_fit(np.array([0.3, 0.3, 0.3, 0.8]), np.array([1, 0, 0, 1]))

    assert fitted.tolist() == [1 / 3, 1 / 3, 1 / 3, 1.0]


def test_forecasts_that_fall_with_the_outcomes_all_become_the_base_rate() -> None:
    assert isotonic_fit(np.array([0.9, 0.5, 0.1]), np.array([0, 0, 1])).tolist() == [1 / 3] * 3


def test_of_no_forecasts_there_is_no_fit() -> None:
    assert isotonic_fit(np.array([]), np.array([], dtype=np.int64)).size == 0


@pytest.mark.parametrize(
    ("forecasts", "outcomes", "error"),
    [([0.5], [2], FormulaInputError), ([0.5, 0.5], [1], FormulaInputError), ([1.5], [1], ForecastRangeError)],
)
def test_what_is_no_resolved_forecast_is_refused(
    forecasts: list[float], outcomes: list[int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        isotonic_fit(np.array(forecasts), np.array(outcomes))

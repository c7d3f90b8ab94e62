import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError
from stream_peer.numerics.losses import check_probabilities, squared_loss


def test_squared_loss_is_the_squared_distance_from_the_outcome() -> None:
    forecasts = np.array([0.0, 0.25, 1.0])

    assert squared_loss(forecasts, 1).tolist() == [1.0, 0.5625, 0.0]
    assert squared_loss(forecasts, 0).tolist() == [0.0, 0.0625, 1.0]


def test_each_forecast_can_have_an_answer_of_its_own() -> None:
    answers = np.array([1, 0, 0], dtype=np.int8)

    assert squared_loss(np.array([0.5, 0.5, 1.0]), answers).tolist() == [0.25, 0.25, 1.0]


@pytest.mark.parametrize("forecasts", [[], [0.0], [1.0], [0.0, 0.5, 1.0]])
def test_probabilities_pass_the_check(forecasts: list[float]) -> None:
    check_probabilities(np.array(forecasts))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), -1e-300, 1.0000000000000002, 55.0])
def test_what_is_no_probability_is_named_with_its_place(wrong: float) -> None:
    with pytest.raises(ForecastRangeError, match=f"forecast 1 is {wrong!r}"):
        check_probabilities(np.array([0.5, wrong, 0.5]))

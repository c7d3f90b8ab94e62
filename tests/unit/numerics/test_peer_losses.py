import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.losses import FloatArray, squared_loss
from stream_peer.numerics.peer_losses import peer_loss, unbiased_peer_loss, unit_peer_loss


def expected_over_uniform_questions(forecast_of: FloatArray, chances: FloatArray, read: FloatArray) -> float:
    """Mean over questions of chance p of the reading, given as rows (outcome 0, outcome 1)."""
    assert forecast_of.shape == chances.shape
    return float(np.mean((1 - chances) * read[0] + chances * read[1]))


def read(forecasts: FloatArray, noise: tuple[float, float], assumed: tuple[float, float]) -> FloatArray:
    """Expected unbiased peer loss for either outcome, with the noise there is and the rates assumed."""
    if_one, if_zero = squared_loss(forecasts, 1), squared_loss(forecasts, 0)
    told_one = unbiased_peer_loss(if_one, if_one, if_zero, *assumed)
    told_zero = unbiased_peer_loss(if_zero, if_one, if_zero, *assumed)
    return np.array(
        [noise[0] * told_one + (1 - noise[0]) * told_zero, (1 - noise[1]) * told_one + noise[1] * told_zero]
    )


def test_the_papers_form_prefers_neither_side_at_half_error() -> None:
    forecasts = np.array([0.0, 0.3, 1.0])

    both = 0.5 * (peer_loss(forecasts, 0, 0.5) + peer_loss(forecasts, 1, 0.5))

    assert both == pytest.approx([0.5, 0.5, 0.5])


def test_certain_forecasts_get_the_plain_loss() -> None:
    assert peer_loss(np.array([0.0, 1.0]), 1, 0.3).tolist() == [1.0, 0.0]


def test_the_calibration_divergence_is_that_of_the_corrected_theorem() -> None:
    """p = .7, q = .4, η = .2: .0540 where the printed divergence gives -.1204."""
    chance, error = 0.7, 0.2
    says_one = chance * (1 - error) + (1 - chance) * error
    forecasts = np.array([0.4, 0.7])

    other, honest = says_one * peer_loss(forecasts, 1, error) + (1 - says_one) * peer_loss(forecasts, 0, error)

    assert other - honest == pytest.approx(0.0540, abs=1e-12)


def test_naive_labels_shift_the_best_forecast() -> None:
    """The same point without the correction: .0420, as the corrected lemma says."""
    says_one = 0.7 * 0.8 + 0.3 * 0.2
    forecasts = np.array([0.4, 0.7])

    other, honest = says_one * squared_loss(forecasts, 1) + (1 - says_one) * squared_loss(forecasts, 0)

    assert other - honest == pytest.approx(0.0420, abs=1e-12)


def test_class_dependent_rates_need_class_dependent_prices() -> None:
    """Rates (.05, .35), forecasts "the chance less .1": a common rate reads .1285 for a loss of .1760."""
    chances = (np.arange(200_000) + 0.5) / 200_000
    timid = np.maximum(chances - 0.1, 0.0)

    common = expected_over_uniform_questions(timid, chances, read(timid, (0.05, 0.35), (0.2, 0.2)))
    by_class = expected_over_uniform_questions(timid, chances, read(timid, (0.05, 0.35), (0.05, 0.35)))
    perfect = expected_over_uniform_questions(chances, chances, read(chances, (0.05, 0.35), (0.05, 0.35)))

    assert common == pytest.approx(0.1285, abs=1e-6)
    assert by_class == pytest.approx(0.1760, abs=1e-4)
    assert perfect == pytest.approx(1 / 6, abs=1e-6)


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.9, 0.2), (float("nan"), 0.1)])
def test_rates_that_leave_no_information_are_refused(rates: tuple[float, float]) -> None:
    with pytest.raises(FormulaInputError, match="sum to 1 or more"):
        unbiased_peer_loss(0.1, 0.1, 0.8, *rates)


@pytest.mark.parametrize("rate", [-0.01, 0.51, float("nan")])
def test_an_error_rate_outside_its_range_is_refused(rate: float) -> None:
    with pytest.raises(FormulaInputError, match="error_rate"):
        peer_loss(np.array([0.5]), 1, rate)


def test_a_forecast_that_is_no_probability_is_refused() -> None:
    with pytest.raises(ForecastRangeError):
        peer_loss(np.array([1.2]), 1, 0.1)


def test_sums_are_priced_like_single_losses() -> None:
    forecasts, answers = np.array([0.2, 0.9, 0.6]), np.array([0, 1, 0], dtype=np.int8)
    against, if_one, if_zero = (squared_loss(forecasts, side) for side in (answers, 1, 0))

    one_by_one = float(unit_peer_loss(against, if_one, if_zero, 0.1, 0.3).sum())
    summed = unit_peer_loss(float(against.sum()), float(if_one.sum()), float(if_zero.sum()), 0.1, 0.3)

    assert summed == pytest.approx(one_by_one, abs=1e-12)

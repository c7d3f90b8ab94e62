import math

import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.arguments import IntArray
from stream_peer.numerics.losses import (
    LOG,
    LOSSES,
    SPHERICAL,
    SQUARED,
    LogLoss,
    ProperLoss,
    portable_log,
    portable_log_of,
    squared_loss,
)
from tests.reference.slow_losses import EVERY_LOSS


def test_powers_of_two_have_exact_multiples_of_the_logarithm_of_two() -> None:
    found = portable_log(np.array([0.25, 0.5, 1.0, 2.0, 1024.0]))

    assert found.tolist() == [-2 * 0.6931471805599453, -0.6931471805599453, 0.0, 0.6931471805599453, 6.931471805599453]


def test_it_agrees_with_numpy_beside_every_fold_of_the_mantissa() -> None:
    folds = np.sqrt(0.5) * 2.0 ** np.arange(-3.0, 4.0)
    values = np.concatenate([folds, np.nextafter(folds, 0.0), np.nextafter(folds, 9.0)])

    np.testing.assert_allclose(portable_log(values), np.log(values), rtol=0.0, atol=1e-15)


def test_small_steps_near_1_are_not_lost() -> None:
    steps = np.array([1e-15, 1e-9, 1e-3])

    np.testing.assert_allclose(portable_log(1.0 + steps), np.log1p((1.0 + steps) - 1.0), rtol=1e-15)


def test_its_bits_are_the_same_for_ever() -> None:
    """Written down once: the sums of the service on every machine are made of them."""
    found = portable_log(np.array([0.001, 0.1, 0.3, 0.7, 0.999]))

    assert [value.hex() for value in found.tolist()] == [
        "-0x1.ba18a998fffa0p+2",
        "-0x1.26bb1bbb55515p+1",
        "-0x1.34378fcbda720p+0",
        "-0x1.6d3c324e13f4fp-2",
        "-0x1.064670d979b73p-10",
    ]


def test_one_number_has_the_bits_that_it_has_among_many() -> None:
    values = np.random.default_rng(1).random(2000) ** 4

    assert [portable_log_of(value) for value in values.tolist()] == portable_log(values).tolist()


EXTREMES = np.array([0.0, 1e-300, 0.5, 1.0])


def test_squared_loss_is_the_squared_distance_from_the_outcome() -> None:
    forecasts = np.array([0.0, 0.25, 1.0])

    assert squared_loss(forecasts, 1).tolist() == [1.0, 0.5625, 0.0]
    assert squared_loss(forecasts, 0).tolist() == [0.0, 0.0625, 1.0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float64])
def test_each_forecast_can_have_an_answer_of_its_own(dtype: type) -> None:
    answers: IntArray = np.array([1, 0, 0], dtype=dtype)
    forecasts = np.array([0.5, 0.5, 1.0])

    assert squared_loss(forecasts, answers).tolist() == [0.25, 0.25, 1.0]
    assert SQUARED(forecasts, answers).tolist() == [0.25, 0.25, 1.0]


def test_the_log_loss_is_the_logarithm_of_the_chance_given_to_what_happened() -> None:
    assert LOG(np.array([0.25]), 1)[0] == pytest.approx(math.log(4), abs=1e-15)
    assert LOG(np.array([0.25]), 0)[0] == pytest.approx(math.log(4 / 3), abs=1e-15)
    assert LOG.upper == pytest.approx(math.log(1000), abs=1e-14)


def test_the_log_loss_stops_rising_at_its_clip() -> None:
    beyond = LogLoss(clip=0.01)(np.array([0.0, 1e-300, 0.01, 0.02]), 1)

    assert beyond[:3].tolist() == [LogLoss(clip=0.01).upper] * 3
    assert beyond[3] < beyond[2]


def test_the_spherical_loss_is_one_less_the_cosine() -> None:
    """Of the angle between (p, 1-p) and the axis: 3-4-5 triangle for p = 3/7."""
    assert SPHERICAL(np.array([3 / 7]), 1)[0] == pytest.approx(1 - 3 / 5, abs=1e-15)
    assert SPHERICAL(np.array([3 / 7]), 0)[0] == pytest.approx(1 - 4 / 5, abs=1e-15)


@pytest.mark.case("C10")
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=lambda loss: loss.name)
def test_certain_forecasts_lose_nothing_or_everything_and_never_infinity(loss: ProperLoss) -> None:
    for outcome in (0, 1):
        scaled = loss.scaled(EXTREMES, outcome)

        assert np.isfinite(loss(EXTREMES, outcome)).all()
        assert scaled[3 if outcome == 0 else 0] == pytest.approx(1.0, abs=1e-15)
        assert scaled[3 if outcome else 0] == pytest.approx(0.0, abs=2e-4)  # the log loss keeps that of its clip
        assert scaled[0] == scaled[1]


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=lambda loss: loss.name)
def test_losses_of_no_forecasts_are_none(loss: ProperLoss) -> None:
    assert loss(np.array([]), 1).tolist() == []
    assert loss.scaled(np.empty((3, 0)), 1).shape == (3, 0)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=lambda loss: loss.name)
def test_what_is_no_probability_or_no_answer_is_refused(loss: ProperLoss) -> None:
    for function in (loss, loss.scaled):
        with pytest.raises(ForecastRangeError, match=r"forecasts\[0\] is 1\.2"):
            function(np.array([1.2]), 1)
        with pytest.raises(FormulaInputError, match="outcome is 2"):
            function(np.array([0.2]), 2)


@pytest.mark.parametrize("clip", [0.0, 0.5, -0.1, float("nan")])
def test_a_clip_that_leaves_nothing_or_clips_nothing_is_refused(clip: float) -> None:
    with pytest.raises(FormulaInputError, match="clip is"):
        LogLoss(clip=clip)


def test_settings_find_losses_by_name() -> None:
    assert {name: loss.name for name, loss in LOSSES.items()} == {
        "squared": "squared",
        "log": "log",
        "spherical": "spherical",
    }

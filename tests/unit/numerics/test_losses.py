"""What a forecast loses against an answer, and what that says about the outcome."""

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.numerics.losses import (
    LOG,
    LOSSES,
    SPHERICAL,
    SQUARED,
    LogLoss,
    ProperLoss,
    portable_log,
    portable_log_of,
)
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss
from tests.reference.plain_formulas import peer_loss_range
from tests.reference.slow_losses import EVERY_LOSS


def test_powers_of_two_have_exact_multiples_of_the_logarithm_of_two() -> None:
    found = portable_log(np.array([0.25, 0.5, 1.0, 2.0, 1024.0]))

    assert found.tolist() == [-2 * 0.6931471805599453, -0.6931471805599453, 0.0, 0.6931471805599453, 6.931471805599453]


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


@pytest.mark.case("C10")
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=lambda loss: loss.name)
def test_certain_forecasts_lose_nothing_or_everything_and_never_infinity(loss: ProperLoss) -> None:
    for outcome in (0, 1):
        scaled = loss.scaled(EXTREMES, outcome)

        assert np.isfinite(loss(EXTREMES, outcome)).all()
        assert scaled[3 if outcome == 0 else 0] == pytest.approx(1.0, abs=1e-15)
        assert scaled[3 if outcome else 0] == pytest.approx(0.0, abs=2e-4)  # the log loss keeps that of its clip
        assert scaled[0] == scaled[1]


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


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.9, 0.2), (float("nan"), 0.1)])
def test_rates_that_leave_no_information_are_refused(rates: tuple[float, float]) -> None:
    with pytest.raises(FormulaInputError, match=r"sum to 1 or more|rate0 is nan"):
        unbiased_peer_loss(0.1, 0.1, 0.8, *rates)


def test_the_row_whose_rates_leave_no_information_is_named() -> None:
    rates, losses = np.array([0.1, 0.5, 0.2]), np.array([0.1, 0.2, 0.3])

    with pytest.raises(FormulaInputError, match=r"sum to 1\.0 at place 1"):
        unbiased_peer_loss(losses, losses, losses, rates, rates)


@pytest.mark.parametrize("loss", [SQUARED, SPHERICAL], ids=lambda loss: loss.name)
def test_certain_forecasts_reach_both_ends_of_the_range(loss: ProperLoss) -> None:
    """[-max(η0, η1), 1 - min(η0, η1)], of width 1 + |η0 - η1|."""
    found = [unit_peer_loss(*loss_parts(np.array([0.0, 1.0]), answer, loss), 0.1, 0.3) for answer in (0, 1)]

    assert (np.min(found), np.max(found)) == pytest.approx(peer_loss_range(0.1, 0.3), abs=1e-15)
    assert peer_loss_range(0.1, 0.3) == (-0.3, 0.9)


def test_the_log_losses_range_is_about_that_times_its_largest_value() -> None:
    forecasts = np.linspace(0.0, 1.0, 101)

    found = [LOG.upper * unit_peer_loss(*loss_parts(forecasts, answer, LOG), 0.1, 0.3) for answer in (0, 1)]

    low, high = (LOG.upper * end for end in peer_loss_range(0.1, 0.3))
    assert low <= np.min(found) == pytest.approx(low, abs=0.001)
    assert high >= np.max(found) == pytest.approx(high, abs=0.001)

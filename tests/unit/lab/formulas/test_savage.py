import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import SPHERICAL, SQUARED
from tests.reference.savage import SavageLoss, boosting_loss, tsallis_loss

GRID = np.linspace(0.05, 0.95, 19)


def brier_potential(p: FloatArray) -> FloatArray:
    return p * p - p


def brier_slope(p: FloatArray) -> FloatArray:
    return 2.0 * p - 1.0


def length(p: FloatArray) -> FloatArray:
    return np.sqrt(p * p + (1.0 - p) ** 2)


def test_the_squared_loss_comes_from_minus_p_times_1_minus_p() -> None:
    rebuilt = SavageLoss("brier", brier_potential, brier_slope)

    for outcome in (0, 1):
        np.testing.assert_allclose(rebuilt(GRID, outcome), SQUARED(GRID, outcome), atol=1e-15)
    assert rebuilt.upper == 1.0


def test_the_spherical_loss_comes_from_the_length_of_the_forecast() -> None:
    rebuilt = SavageLoss("spherical", length, lambda p: (2.0 * p - 1.0) / length(p))

    for outcome in (0, 1):
        np.testing.assert_allclose(rebuilt(GRID, outcome), SPHERICAL(GRID, outcome), atol=1e-15)


def test_e11_the_printed_summary_has_the_wrong_sign_for_outcome_0() -> None:
    """-G - (1-p)^y·p^(1-y)·G' is the loss for y = 1, and for y = 0 off by 2p·G'."""
    p = np.array([0.3])
    printed_one, printed_zero = (-brier_potential(p) - factor * brier_slope(p) for factor in (1.0 - p, p))

    assert printed_one == pytest.approx(SQUARED(p, 1))
    assert SQUARED(p, 0) - printed_zero == pytest.approx(2 * p * brier_slope(p))


def test_tsallis_of_order_2_is_twice_the_squared_loss() -> None:
    np.testing.assert_allclose(tsallis_loss(2.0)(GRID, 1), 2.0 * SQUARED(GRID, 1), atol=1e-15)


def test_ranges_of_boosting_and_tsallis_losses_are_those_of_their_formulas() -> None:
    assert boosting_loss(0.01).upper == pytest.approx(np.sqrt(99) - np.sqrt(1 / 99))
    assert tsallis_loss(1.5).upper == pytest.approx(1.5)


def test_an_offset_moves_the_losses_of_one_outcome() -> None:
    lifted = SavageLoss("lifted", brier_potential, brier_slope, offset=(0.0, 0.5))

    np.testing.assert_allclose(lifted(GRID, 1), SQUARED(GRID, 1) + 0.5, atol=1e-15)
    np.testing.assert_allclose(lifted(GRID, 0), SQUARED(GRID, 0), atol=1e-15)
    assert lifted.upper == 1.5


def test_an_offset_that_makes_losses_negative_is_refused() -> None:
    with pytest.raises(FormulaInputError, match="offset"):
        SavageLoss("sunk", brier_potential, brier_slope, offset=(0.0, -0.1))


def test_a_function_that_is_not_convex_is_refused() -> None:
    with pytest.raises(FormulaInputError, match=r"G is not convex, or G' not its slope"):
        SavageLoss("hollow", lambda p: p - p * p, lambda p: 1.0 - 2.0 * p)


def test_a_slope_that_belongs_to_another_function_is_refused() -> None:
    with pytest.raises(FormulaInputError, match=r"G is not convex, or G' not its slope"):
        SavageLoss("mixed up", brier_potential, lambda p: 3.0 * p - 1.0)


def test_an_unbounded_loss_has_to_be_clipped() -> None:
    with pytest.raises(FormulaInputError, match=r"not finite at forecast 0\.0: clip"):
        SavageLoss("log", lambda p: p * np.log(p), lambda p: 1.0 + np.log(p))
    with pytest.raises(FormulaInputError, match="within"):
        boosting_loss(clip=0.0)


@pytest.mark.parametrize("clip", [0.5, -0.1, float("nan")])
def test_a_clip_outside_its_range_is_refused(clip: float) -> None:
    with pytest.raises(FormulaInputError, match="clip is"):
        SavageLoss("brier", brier_potential, brier_slope, clip=clip)


@pytest.mark.parametrize("order", [1.0, 16.5, float("nan")])
def test_an_order_outside_its_range_is_refused(order: float) -> None:
    with pytest.raises(FormulaInputError, match="order is"):
        tsallis_loss(order)


def test_a_loss_that_never_differs_from_0_is_refused() -> None:
    with pytest.raises(FormulaInputError, match="offset"):
        SavageLoss("flat", np.zeros_like, np.zeros_like)

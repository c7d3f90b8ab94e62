import numpy as np
import pytest

from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import SPHERICAL, SQUARED
from tests.reference.savage import SavageLoss

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

from collections.abc import Callable

import numpy as np
import pytest

from stream_peer.lab.formulas.forms import peer_loss
from stream_peer.numerics.arguments import FloatArray
from tests.reference.savage import Curve, savage_correction


def test_the_papers_form_prefers_neither_side_at_half_error() -> None:
    forecasts = np.array([0.0, 0.3, 1.0])

    both = 0.5 * (peer_loss(forecasts, 0, 0.5) + peer_loss(forecasts, 1, 0.5))

    assert both == pytest.approx([0.5, 0.5, 0.5])


def test_e23_certain_forecasts_get_the_plain_loss_whatever_the_error_rate() -> None:
    """For 0/1 forecasts the peer loss *is* the naive one: it elects the conformist just the same."""
    for error_rate in (0.0, 0.1, 0.3, 0.5):
        assert peer_loss(np.array([0.0, 1.0]), 1, error_rate).tolist() == [1.0, 0.0]
        assert peer_loss(np.array([0.0, 1.0]), 0, error_rate).tolist() == [0.0, 1.0]


LENGTH: Curve = lambda p: np.sqrt(p * p + (1.0 - p) ** 2)  # noqa: E731 - a curve among curves

CURVES: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "squared": (lambda p: p * p - p, lambda p: 2.0 * p - 1.0),
    "log": (lambda p: p * np.log(p) + (1.0 - p) * np.log(1.0 - p), lambda p: np.log(p / (1.0 - p))),
    "spherical": (LENGTH, lambda p: (2.0 * p - 1.0) / LENGTH(p)),
    "boosting": (lambda p: -2.0 * np.sqrt(p * (1.0 - p)), lambda p: (2.0 * p - 1.0) / np.sqrt(p * (1.0 - p))),
    "tsallis": (lambda p: p**1.5 + (1.0 - p) ** 1.5, lambda p: 1.5 * (np.sqrt(p) - np.sqrt(1.0 - p))),
}


def left_over(name: str, correction: Callable[[Curve, Curve, FloatArray], FloatArray], points: int) -> float:
    """By how much E[ℓ(p, ŷ) | y] plus the correction differs from (1-2η)·ℓ(p, y) plus a constant, for p in .05...95."""
    potential, slope = CURVES[name]
    p = np.linspace(0.05, 0.95, points)
    if_one, if_zero = (-potential(p) - (outcome - p) * slope(p) for outcome in (1, 0))
    expected = 0.7 * if_one + 0.3 * if_zero
    remains = expected + correction(potential, slope, p) - 0.4 * if_one
    return float(np.ptp(remains))


def ours(potential: Curve, slope: Curve, p: FloatArray) -> FloatArray:
    return savage_correction(potential, slope, p, 0.3)


def printed(potential: Curve, slope: Curve, p: FloatArray) -> FloatArray:
    return 2 * 0.3 * potential(p) - 0.3 * slope(p)


@pytest.mark.parametrize(
    ("name", "added", "subtracted"),
    [
        ("squared", 0.588, 0.540),
        ("log", 1.85, 1.77),
        ("spherical", 0.632, 0.568),
        ("boosting", 2.53, 2.48),
        ("tsallis", 0.725, 0.676),
    ],
)
def test_e11_the_corrected_savage_term_leaves_nothing_where_the_printed_one_does_whatever_its_sign(
    name: str, added: float, subtracted: float
) -> None:
    """Error rate .3, eleven forecasts from .05 to .95."""
    digits = 0.0051 if added > 1 else 0.00051

    assert left_over(name, ours, 11) == pytest.approx(0.0, abs=1e-14)
    assert left_over(name, printed, 11) == pytest.approx(added, abs=digits)
    assert left_over(name, lambda *curve: -printed(*curve), 11) == pytest.approx(subtracted, abs=digits)


def test_e11_for_the_squared_loss_the_corrected_term_is_that_of_theorem_4_less_the_rate() -> None:
    p = np.array([0.0, 1e-300, 0.3, 0.5, 1.0])

    found = savage_correction(*CURVES["squared"], p, 0.3)

    np.testing.assert_allclose(found, 2 * 0.3 * p * (1 - p) - 0.3, atol=1e-15)

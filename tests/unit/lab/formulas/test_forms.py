"""Forms of the peer loss, what they leave over, and what they gain: as printed, and as they should be."""

from collections.abc import Callable

import numpy as np
import pytest

from stream_peer.lab.formulas.forms import peer_loss
from stream_peer.lab.formulas.gaps import calibration_gap, noisy_label_gap, noisy_probability
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import SPHERICAL, SQUARED, squared_loss
from tests.reference.savage import Curve, SavageLoss, savage_correction


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


TRUTH, SAID, RATE = 0.7, 0.4, 0.2


def printed_constant(error_rate: float, truth: float) -> float:
    """F(η, p) as the paper defines it."""
    return -error_rate * (1 - error_rate) * (1 - 2 * truth) ** 2 + 2 * error_rate * truth * (truth - 1) + error_rate


def printed_gap(error_rate: float, said: float, truth: float) -> float:
    """g(q, p) as Theorem 4 prints it."""
    divergence = (1 - 2 * error_rate) * (truth - said) ** 2
    return divergence - printed_constant(error_rate, truth) - 2 * error_rate * truth * (1 - truth)


def test_e4_the_constant_of_the_noisy_labels_lemma_is_that_of_the_truth() -> None:
    """p = .7, q = .4, η = .2: .0420; as printed -.1324, with the sign of F turned .0484, the gap to p̂."""
    divergence = (1 - 2 * RATE) * (TRUTH - SAID) ** 2 - 2 * RATE * SAID * (1 - SAID)
    says_one = TRUTH * (1 - RATE) + (1 - TRUTH) * RATE
    forecasts = np.array([SAID, TRUTH])

    other, honest = says_one * squared_loss(forecasts, 1) + (1 - says_one) * squared_loss(forecasts, 0)

    assert other - honest == pytest.approx(0.0420, abs=1e-15)
    assert noisy_label_gap(np.array([SAID]), TRUTH, RATE)[0] == pytest.approx(0.0420, abs=1e-15)
    assert divergence - printed_constant(RATE, TRUTH) == pytest.approx(-0.1324, abs=1e-15)
    assert divergence + printed_constant(RATE, TRUTH) == pytest.approx(0.0484, abs=1e-15)
    assert (says_one - SAID) ** 2 == pytest.approx(0.0484, abs=1e-15)


def test_e5_the_calibration_divergence_is_0_for_the_truth() -> None:
    """The same point: .0540 where the printed divergence gives -.1204; its g(p, p) is -.1744."""
    says_one = TRUTH * (1 - RATE) + (1 - TRUTH) * RATE
    forecasts = np.array([SAID, TRUTH])

    other, honest = says_one * peer_loss(forecasts, 1, RATE) + (1 - says_one) * peer_loss(forecasts, 0, RATE)

    assert other - honest == pytest.approx(0.0540, abs=1e-15)
    assert calibration_gap(forecasts, TRUTH, RATE).tolist() == pytest.approx([0.0540, 0.0], abs=1e-15)
    assert printed_gap(RATE, SAID, TRUTH) == pytest.approx(-0.1204, abs=1e-15)
    assert printed_gap(RATE, TRUTH, TRUTH) == pytest.approx(-0.1744, abs=1e-15)


@pytest.mark.parametrize(("truth", "said", "rate"), [(0.7, 0.4, 0.2), (0.1, 0.9, 0.45), (1.0, 0.3, 0.1)])
def test_e6_the_third_display_line_of_the_proof_has_one_term_too_much(truth: float, said: float, rate: float) -> None:
    square = (truth - said - rate * (2 * truth - 1)) ** 2
    second = (truth - said) ** 2 + rate**2 * (2 * truth - 1) ** 2 - 2 * rate * (truth - said) * (2 * truth - 1)
    third = (
        (truth - said) ** 2
        + rate**2 * (2 * truth - 1) ** 2
        - 2 * rate * truth * (2 * truth - 1)
        + 2 * rate * said * (2 * truth - 1)
        - 2 * rate * truth
        + rate
    )
    fourth = (
        (truth - said) ** 2
        - rate * (1 - rate) * (1 - 2 * truth) ** 2
        + 4 * rate * said * truth
        - 2 * rate * said
        - 2 * rate * truth
        + rate
    )

    assert second == pytest.approx(square, abs=1e-15)
    assert third - second == pytest.approx(-rate * (2 * truth - 1), abs=1e-15)
    assert fourth == pytest.approx(square, abs=1e-15)


def test_e7_increments_have_two_values_2_distances_apart_and_reach_2() -> None:
    """X = s(q, ŷ) - s(p, ŷ) - g(q, p): a sub-Gaussian scale of 1, where the paper has σ_g ≥ 4."""
    ends = np.linspace(0.0, 1.0, 41)
    said, truth = (axis.ravel() for axis in np.meshgrid(ends, ends))
    largest = 0.0
    for rate in np.linspace(0.0, 0.5, 21).tolist():
        gap = calibration_gap(said, truth, rate)
        if_one, if_zero = (peer_loss(said, answer, rate) - peer_loss(truth, answer, rate) - gap for answer in (1, 0))
        says_one = noisy_probability(truth, rate, rate)

        largest = max(largest, float(np.abs(if_one).max()), float(np.abs(if_zero).max()))
        np.testing.assert_allclose(np.abs(if_one - if_zero), 2 * np.abs(said - truth), atol=1e-14)
        np.testing.assert_allclose(says_one * if_one + (1 - says_one) * if_zero, 0.0, atol=1e-14)
        assert 4 + max(printed_constant(rate, p) for p in ends.tolist()) >= 4

    assert largest == pytest.approx(2.0, abs=1e-14)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.45])
def test_e10_the_compatible_map_divides_by_the_informative_share(rate: float) -> None:
    """g(q, p) - g(r, p) = ψ(f(q, p) - f(r, p)) with ψ(x) = (1-2η)·x; ψ⁻¹ leads back."""
    said, truth = np.array([0.1, 0.6]), 0.8

    peer = calibration_gap(said, truth, rate)

    true_gap = calibration_gap(said, truth, 0.0)
    assert peer[0] - peer[1] == pytest.approx((1 - 2 * rate) * (true_gap[0] - true_gap[1]), abs=1e-15)
    assert (peer / (1 - 2 * rate)).tolist() == pytest.approx(((truth - said) ** 2).tolist(), abs=1e-15)


def test_naive_labels_are_best_met_by_the_chance_of_the_noisy_answer() -> None:
    offers = np.linspace(0.0, 1.0, 1001)

    gaps = noisy_label_gap(offers, 0.7, 0.2)

    assert offers[np.argmin(gaps)] == pytest.approx(0.62)
    assert noisy_probability(np.array([0.7]), 0.2, 0.2)[0] == pytest.approx(0.62)
    assert gaps.min() == pytest.approx(-((0.7 - 0.62) ** 2), abs=1e-15)


def test_the_largest_advantage_of_a_wrong_forecast_is_a_quarter() -> None:
    """Certain outcome, answers of a coin, forecast ½."""
    assert noisy_label_gap(np.array([0.5]), 1.0, 0.5)[0] == -0.25

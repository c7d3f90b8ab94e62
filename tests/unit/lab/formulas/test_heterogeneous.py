import numpy as np
import pytest

from stream_peer.lab.formulas.flips import flipped_error_rate
from stream_peer.lab.formulas.heterogeneous import heterogeneous_bound, heterogeneous_bound_printed, order_kept_beyond
from stream_peer.lab.formulas.online import hedge_regret

RATES = np.array([0.05, 0.45])


@pytest.mark.parametrize(
    ("flip_probability", "best_loss", "ours", "printed"), [(0.0, 400.9, 5_606, 17_939), (0.4, 399.3, 15_189, 86_323)]
)
def test_e20_bounds_are_those_of_the_worked_experiment(
    flip_probability: float, best_loss: float, ours: int, printed: int
) -> None:
    """Four experts, T = 4,000, δ = .05, √(T ln N/2); L* as measured there, about 400; the paper's with α = σ_g = 2."""
    rates = np.array([flipped_error_rate(rate, flip_probability) for rate in RATES.tolist()])
    given = hedge_regret(4, 4000), 4, 4000, rates, best_loss, 0.05

    assert heterogeneous_bound(*given).formula == pytest.approx(ours, abs=6)
    assert heterogeneous_bound_printed(*given).formula == pytest.approx(printed, abs=12)
    assert heterogeneous_bound(*given).vacuous


def test_e20_the_factor_of_the_best_loss_should_be_one_more() -> None:
    given = hedge_regret(4, 4000), 4, 4000, RATES, 400.0, 0.05

    more = heterogeneous_bound_printed(*given, alpha=3.0).formula - heterogeneous_bound_printed(*given).formula

    assert more == pytest.approx(400 * (1 / 0.1 + 1))


def test_e19_the_lemma_of_kept_order_has_a_counterexample_within_its_reach() -> None:
    """L_i = 20 ≤ (1+α)·L* = 30, yet weighted losses are in the other order; from 90 on they could not be."""
    assert 20 <= (1 + 2) * 10
    assert 0.1 * 20 < 0.9 * 10
    assert order_kept_beyond(RATES, 10.0) == pytest.approx(80.0)
    assert pytest.approx(0.9 * 10.0) == 0.1 * (10.0 + 80.0)


def test_e19_the_inequality_of_its_proof_holds_for_large_gaps_only() -> None:
    """Δ/(2L + Δ) ≥ α/(2 + α) if and only if Δ ≥ αL."""
    alpha, best = 2.5, 10.0
    for gap in (5.0, 24.9, 25.1, 80.0):
        assert (gap / (2 * best + gap) >= alpha / (2 + alpha)) == (gap >= alpha * best)

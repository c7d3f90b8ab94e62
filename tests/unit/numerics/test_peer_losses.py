import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.numerics.losses import LOG, SPHERICAL, SQUARED, ProperLoss
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss
from tests.reference.plain_formulas import peer_loss_range


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

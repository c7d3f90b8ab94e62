import math

import numpy as np
import pytest

from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.numerics.peer_losses import unit_peer_loss
from tests.reference.estimation import (
    estimation_frozen,
    estimation_printed,
    estimation_repriced,
    limited_truth_regret,
    limited_truth_regret_printed,
    no_truth_regret,
    no_truth_regret_printed,
)


def test_e9_a_wrong_rate_moves_regrets_by_half_its_error_at_most() -> None:
    """2ε·|p(1-p) - q(1-q)| ≤ ε/2, attained between a sure forecast and ½; printed is twice that."""
    forecasts = np.linspace(0.0, 1.0, 101)
    parts = loss_parts(forecasts, 1)
    wrong, right = unit_peer_loss(*parts, 0.3, 0.3), unit_peer_loss(*parts, 0.2, 0.2)
    moved = (wrong[:, None] - wrong) - (right[:, None] - right)

    errors = np.array([0.1])

    assert np.abs(moved).max() == pytest.approx(estimation_frozen(errors), abs=1e-12)
    assert estimation_printed(errors) == pytest.approx(2 * estimation_frozen(errors))


def test_frozen_losses_keep_every_error_and_repriced_ones_the_last() -> None:
    errors = 0.4 / np.sqrt(np.arange(1, 1001))

    assert estimation_frozen(errors) == pytest.approx(0.2 * sum(1 / math.sqrt(t) for t in range(1, 1001)))
    assert estimation_repriced(float(errors[-1]), 1000) == pytest.approx(0.2 * math.sqrt(1000))
    assert estimation_repriced(float(errors[-1]), 1000) < estimation_frozen(errors)


@pytest.mark.parametrize("reveal_probability", [0.01, 0.2, 1.0])
def test_e3_limited_truth_costs_less_than_printed_by_two_over_root_p(reveal_probability: float) -> None:
    printed = limited_truth_regret_printed(5000, reveal_probability, 0.05)

    assert printed / limited_truth_regret(5000, reveal_probability, 0.05) == pytest.approx(
        2 / math.sqrt(reveal_probability)
    )


def test_the_terms_are_sums_of_the_errors_of_each_question() -> None:
    t = np.arange(1, 20_001)
    printed = np.sqrt(math.log(2 / 0.1)) / (0.2 * np.sqrt(2 * t))
    ours = np.sqrt(math.log(2 / 0.1) / (2 * 0.2 * t))

    assert estimation_printed(printed) == pytest.approx(limited_truth_regret_printed(20_000, 0.2, 0.1), rel=0.01)
    assert estimation_frozen(ours) == pytest.approx(limited_truth_regret(20_000, 0.2, 0.1), rel=0.01)
    assert estimation_printed(np.sqrt(math.log(60) / (2 * t))) == pytest.approx(
        no_truth_regret_printed(20_000, 0.1), rel=0.01
    )
    assert estimation_frozen(0.58 * np.sqrt(2 * math.log(20) / t)) == pytest.approx(
        no_truth_regret(20_000, 0.58, 0.1), rel=0.01
    )


def test_e13_the_cost_of_no_truth_depends_on_the_pool() -> None:
    """Two groups of error rates .2 and .25: standard deviations times √t at shares of zeros .1, .3, .4, .45, .49."""
    printed = no_truth_regret_printed(10_000, 0.05)
    ours = [no_truth_regret(10_000, deviation, 0.05) for deviation in (0.58, 0.92, 1.69, 3.30, 16.4, math.inf)]

    assert ours[0] < printed < ours[2]
    assert ours[4] / ours[0] == pytest.approx(16.4 / 0.58)
    assert ours[5] == math.inf

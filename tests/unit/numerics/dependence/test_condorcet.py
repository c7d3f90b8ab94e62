import math
from itertools import product

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.dependence import condorcet_gap, majority_error_rate, truth_z
from stream_peer.numerics.error_rates import EqualGroupSums, ErrorRate, TruthSums
from tests.unit.numerics.dependence.worlds import N_QUESTIONS, world_and_outcomes


@pytest.mark.parametrize(
    "errors", [[0.3], [0.1, 0.4], [0.2, 0.45, 0.35], [0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.5, 0.2, 0.7]]
)
def test_the_majority_s_error_is_that_of_all_ways_to_err(errors: list[float]) -> None:
    expected = 0.0
    for wrong in product([False, True], repeat=len(errors)):
        probability = math.prod(error if bad else 1 - error for bad, error in zip(wrong, errors, strict=True))
        lead = 2 * sum(wrong) - len(errors)
        expected += probability * (1.0 if lead > 0 else 0.5 if lead == 0 else 0.0)

    assert majority_error_rate(np.array(errors)) == pytest.approx(expected)


def test_an_even_pool_errs_like_one_voter_less() -> None:
    """With a fair coin on ties: error .35, four voters like three, .2817."""
    assert majority_error_rate(np.full(4, 0.35)) == pytest.approx(0.2817, abs=5e-5)
    assert majority_error_rate(np.full(4, 0.35)) == pytest.approx(majority_error_rate(np.full(3, 0.35)))


def test_extreme_pools_have_an_error_rate() -> None:
    assert majority_error_rate(np.zeros(0)) == 0.5
    assert majority_error_rate(np.zeros(7)) == 0.0
    assert majority_error_rate(np.ones(8)) == pytest.approx(1.0)
    assert majority_error_rate(np.full(2_000, 0.5)) == pytest.approx(0.5)
    assert majority_error_rate(np.full(2_001, 0.4)) < 1e-15


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("none", -0.015, 0.015), ("clusters", 0.02, 0.3), ("difficulty", 0.02, 0.3)]
)
def test_the_majority_is_far_worse_than_its_members_where_they_share_errors(
    kind: str, least: float, most: float
) -> None:
    """As .135 against .082: clusters and difficulty show, independence does not."""
    votes, outcomes = world_and_outcomes(kind, np.random.default_rng(1), 12)
    wrong = (votes > 0) != outcomes[:, None]
    lead = wrong.sum(axis=1) - 6
    measured = float((lead > 0).mean() + 0.5 * (lead == 0).mean())

    assert least <= condorcet_gap(measured, wrong.mean(axis=0)) <= most


def test_only_outcomes_show_shocks_that_everybody_shares() -> None:
    """The agreement of two halves of 40 experts is that of a rate near 0; the outcomes say .05, the coins' share."""
    rng = np.random.default_rng(2)
    seen = {}
    for kind in ("none", "shock"):
        votes, outcomes = world_and_outcomes(kind, rng, 40)
        first, second = (votes[:, ::2].sum(axis=1) > 0), (votes[:, 1::2].sum(axis=1) > 0)
        both = (float(first.sum()), float(second.sum()), float((first & second).sum()))
        wrong, right = first != outcomes, first == outcomes
        cells = (right & ~outcomes, wrong & ~outcomes, right & outcomes, wrong & outcomes)
        measured = TruthSums(*(float(cell.sum()) for cell in cells))
        seen[kind] = truth_z(measured, EqualGroupSums(N_QUESTIONS, N_QUESTIONS, *both).estimate())

    assert abs(seen["none"] or 9.0) < 3.0
    assert (seen["shock"] or 0.0) > 3.0


def test_what_is_not_known_has_no_z() -> None:
    free = ErrorRate(0.2, 0.2, 0.1, 0.3, 500.0, "ok", 0.001)
    measured = TruthSums(right_zero=40, wrong_zero=10, right_one=8, wrong_one=2)

    assert truth_z(measured, free) == pytest.approx(0.0)
    assert truth_z(measured, free._replace(status="insufficient")) is None
    assert truth_z(measured, free._replace(variance=0.25)) is None
    assert truth_z(TruthSums(right_zero=30, wrong_zero=10, right_one=8, wrong_one=1), free) is None
    assert truth_z(TruthSums(right_zero=30, wrong_zero=30), free) is None
    assert TruthSums().mean_rate() is None


def test_the_z_speaks_of_the_mean_of_both_classes() -> None:
    measured = TruthSums(right_zero=900, wrong_zero=99, right_one=70, wrong_one=29)
    free = ErrorRate(0.15, 0.19, 0.1, 0.3, 500.0, "ok", 0.0001)
    zero, one = 100 / 1001, 30 / 101  # each with one right and one wrong answer more, for the variance
    variance = (zero * (1 - zero) / 999 + one * (1 - one) / 99) / 4 + 0.0001

    assert truth_z(measured, free) == pytest.approx(((99 / 999 + 29 / 99) / 2 - 0.17) / math.sqrt(variance))


def test_the_z_of_two_estimates_of_one_rate_is_a_standard_normal_one() -> None:
    rng = np.random.default_rng(4)
    wrong, noise = rng.binomial(200, (0.2, 0.1), (1000, 2)), 0.005 * rng.standard_normal(1000)
    found = [
        truth_z(TruthSums(200.0 - zero, zero, 200.0 - one, one), ErrorRate(mean, mean, 0.1, 0.2, 1e4, "ok", 0.005**2))
        for (zero, one), mean in zip(wrong.tolist(), (0.15 + noise).tolist(), strict=True)
    ]

    assert 0.9 < float(np.std(np.array(found))) < 1.05


@pytest.mark.parametrize("errors", [[0.5, 1.5], [-0.1], [math.nan]])
def test_what_is_no_error_rate_is_refused(errors: list[float]) -> None:
    with pytest.raises(FormulaInputError, match=r"within 0\.\.1"):
        majority_error_rate(np.array(errors))
    with pytest.raises(FormulaInputError, match=r"within 0\.\.1"):
        condorcet_gap(errors[-1], np.array([0.2]))

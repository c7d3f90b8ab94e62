"""What formulas refuse, by name and place, and what they take at their edges."""

import math
import re

import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.lab.formulas.reference_rules import answers_of_all, answers_of_others, ballots
from stream_peer.numerics.arguments import SHARE, checked, unchecked
from stream_peer.numerics.dependence import crowd_distances, rank_agreement
from stream_peer.numerics.drift import Earlier, scan_for_changes
from stream_peer.numerics.error_rates import (
    ErrorRate,
    MomentSums,
    TruthSums,
    contradiction,
    moment_terms,
    priced,
    share_of_ones,
)
from stream_peer.numerics.error_rates.class_moments import class_reading
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.mixers import logit_mean
from stream_peer.numerics.outer_layer import outer_weights, safety_net_step, stretched

NAN = math.nan


@pytest.mark.parametrize("rule", ["weighted", "mean", "product"])
@pytest.mark.parametrize("n_experts", [65_537, 200_000])
def test_a_crowd_of_one_mind_is_heard_however_large_it_is_and_however_much_each_weighs(
    rule: str, n_experts: int
) -> None:
    cast = ballots(np.full(n_experts, 0.99), rule, weights=np.full(n_experts, 16.0))

    assert answers_of_all(cast, coin=0).answers == 1
    assert answers_of_others(cast, coin=0).answers.all()


def test_a_prior_that_sums_to_2_and_moments_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(FormulaInputError, match="sums to 2"):
        outer_weights(np.eye(3), np.zeros(3), [0.5, 0.5, 0.5, 0.5])
    with pytest.raises(FormulaInputError, match=r"second_moments\[4\] is nan"):
        outer_weights([[1.0, 0.0, 0.0], [0.0, NAN, 0.0], [0.0, 0.0, 1.0]], np.zeros(3), [0.25] * 4)


@pytest.mark.parametrize("share", [NAN, -0.1, 1.5])
def test_a_safety_net_has_a_share_within_0_and_1(share: float) -> None:
    with pytest.raises(FormulaInputError, match="share is"):
        safety_net_step(share, 0.3, 0.01)


def test_shares_and_rates_outside_0_and_1_are_refused() -> None:
    with pytest.raises(FormulaInputError, match=r"zero is -0\.5, not within 0\.\.1"):
        priced(-0.5, 0.2)
    with pytest.raises(FormulaInputError, match=r"forecasts\[0\] is -3"):
        logit_mean([-3, 0.6])  # type: ignore[arg-type]
    with pytest.raises(FormulaInputError, match="forecast is 3"):
        stretched(3, 0.2)
    with pytest.raises(FormulaInputError, match=r"forecasts\[3\] is 5"):
        crowd_distances(np.array([0.2, 0.4, 0.6, 5.0]), np.array([4]))


@pytest.mark.parametrize("wrong", [NAN, math.inf, -math.inf, -1e-300, 1.0000000000000002, 55.0])
def test_what_is_no_probability_is_named_with_its_place_counted_through_the_rows(wrong: float) -> None:
    with pytest.raises(ForecastRangeError, match=re.escape(f"forecasts[3] is {wrong!r}")):
        squared_loss(np.array([[0.0, 0.5], [1.0, wrong]]), 1)


def test_what_is_no_number_is_refused_where_numbers_are_ranked_and_scanned() -> None:
    values = np.ones((60, 1))
    with pytest.raises(FormulaInputError, match=r"one\[1\] is nan"):
        rank_agreement(np.array([0.1, NAN, 0.3, 0.4]), np.array([0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(FormulaInputError, match=r"values\[0\] is nan"):
        scan_for_changes(values * NAN, values, np.ones(1))
    with pytest.raises(FormulaInputError, match=r"earlier\.total\[0\] is nan"):
        scan_for_changes(values, values, np.ones(1), Earlier(np.ones(1), np.ones(1), np.array([NAN]), np.ones(1)))


@pytest.mark.parametrize(
    "sums",
    [
        MomentSums(1000.0, 1000.0, 2000.0, 400.0, 160.0, 300.0, 150.0),  # a mean agreement of 2
        MomentSums(1000.0, 1000.0, 250.0, 400.0, 1.0, 300.0, 0.0),  # a mean square below the square of the mean
        MomentSums(1000.0, 1000.0, 250.0, 400.0, 160.0, 300.0, 900.0),  # a correlation above 1
        MomentSums(1000.0, 0.0, 250.0, 400.0, 160.0, 300.0, 150.0),
    ],
)
def test_sums_that_no_questions_have_are_refused(sums: MomentSums) -> None:
    with pytest.raises(FormulaInputError, match="no questions have these"):
        sums.estimate()


def test_a_negative_count_of_answers_is_refused_wherever_it_is_read() -> None:
    sums = TruthSums(100, -50, 100, 20)

    for reading in (sums.estimate, lambda: contradiction(sums, ErrorRate(0.1, 0.1, 0.1, 0.1, 0.0, "ok", 0.0))):
        with pytest.raises(FormulaInputError, match="wrong_zero is -50"):
            reading()


def test_arrays_of_unequal_lengths_are_refused_by_their_names() -> None:
    with pytest.raises(FormulaInputError, match=r"other has the shape \(3,\), which does not fit one"):
        rank_agreement(np.arange(4.0), np.arange(3.0))
    with pytest.raises(FormulaInputError, match=r"outcome \(3,\) do not fit one another"):
        squared_loss(np.array([0.2, 0.4]), np.array([0, 1, 1]))


def test_a_reference_answer_is_0_or_1_and_never_a_vote() -> None:
    votes = np.array([1, -1, 1], np.int8)
    for formula in (lambda: share_of_ones(votes), lambda: moment_terms(votes, votes), lambda: squared_loss(0.5, -1)):  # type: ignore[arg-type]
        with pytest.raises(FormulaInputError, match="is -1, not a whole number within"):
            formula()


def test_a_variance_that_rounding_made_negative_is_none() -> None:
    means = (0.35, 0.19, 0.134, 0.35, 0.19)
    covariance = np.zeros((5, 5))
    covariance[2, 2] = -5e-17

    assert class_reading(means, covariance, 1e6) == class_reading(means, np.zeros((5, 5)), 1e6)._replace(  # type: ignore[union-attr]
        variances=class_reading(means, covariance, 1e6).variances,  # type: ignore[union-attr]
        mean_variance=class_reading(means, covariance, 1e6).mean_variance,  # type: ignore[union-attr]
        half_variance=class_reading(means, covariance, 1e6).half_variance,  # type: ignore[union-attr]
    )


def test_a_formula_without_its_checks_is_the_same_formula() -> None:
    @checked(share=SHARE)
    def half(share: float) -> float:
        return share / 2.0

    assert half(0.5) == unchecked(half)(0.5) == 0.25
    assert unchecked(half)(3.0) == 1.5
    with pytest.raises(FormulaInputError, match=r"share is 3\.0"):
        half(3.0)
    with pytest.raises(TypeError, match="positional argument"):
        half(0.5, 0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="checks are of"):
        checked(other=SHARE)(half)

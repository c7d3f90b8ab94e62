"""What every estimate of error rates promises, however little the votes tell."""

import math
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.horvitz_thompson import HorvitzThompsonSums
from stream_peer.lab.formulas.three_references import ThreeReferenceClassSums, ThreeReferenceSums
from stream_peer.lab.formulas.two_groups import EqualGroupSums
from stream_peer.numerics.dependence import DependenceSums, VoteMoments
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    ClassMomentTerms,
    ErrorRate,
    MomentSums,
    MomentTerms,
    TruthSums,
    TwoGroupSums,
    combine_with_truth,
    interval_ends,
)
from stream_peer.numerics.error_rates.rate import normal_quantile
from tests.unit.numerics.error_rates.streams import (
    Ints,
    class_rows,
    class_sums,
    moment_rows,
    moment_sums,
    others_majority,
    outcomes_of,
    votes_of,
)


def certain(rate: float) -> ErrorRate:
    return ErrorRate(rate, rate, rate, rate, 0.0, "ok", 0.0)


def test_both_rates_move_alike_between_the_ends_of_the_interval() -> None:
    low, high = interval_ends(ErrorRate(0.1, 0.3, 0.15, 0.22, 500.0, "ok", 0.001))

    assert low == pytest.approx((0.05, 0.25))
    assert high == pytest.approx((0.12, 0.32))


def test_a_rate_that_reaches_0_stays_there_while_their_mean_goes_on_to_its_end() -> None:
    low, kink, high = interval_ends(ErrorRate(0.3, 0.02, 0.1, 0.2, 500.0, "ok", 0.001))

    assert low == pytest.approx((0.2, 0.0))
    assert kink == pytest.approx((0.28, 0.0))
    assert high == pytest.approx((0.34, 0.06))


def test_rates_that_are_0_throughout_have_an_interval_of_zeros() -> None:
    assert interval_ends(certain(0.0)) == ((0.0, 0.0), (0.0, 0.0))


def test_known_rates_can_still_be_corrected_by_outcomes() -> None:
    """They count as thirty labels, as any certain estimate does."""
    assert combine_with_truth(certain(0.2), 30, 70, 0, 0).zero == pytest.approx((30 + 30 * 0.2) / 100)


@pytest.mark.parametrize("confidence", [0.0, 0.5, 0.95, 1.0 - 2.0**-53])
def test_the_normal_quantile_encloses_its_confidence_up_to_the_last_number_below_1(confidence: float) -> None:
    assert math.erfc(normal_quantile(confidence) / math.sqrt(2.0)) == pytest.approx(1.0 - confidence, rel=1e-9)


KINDS: list[Any] = [
    MomentSums,
    ClassMomentSums,
    TwoGroupSums,
    EqualGroupSums,
    ThreeReferenceSums,
    ThreeReferenceClassSums,
    HorvitzThompsonSums,
    TruthSums,
]
CONTRIBUTIONS: dict[str, Any] = {
    "moments": partial(MomentSums.contribution, MomentTerms(0.2, 0.3)),
    "class moments": partial(ClassMomentSums.contribution, ClassMomentTerms(0.5, 0.3, 0.2, 0.5, 0.3)),
    "two groups": partial(TwoGroupSums.contribution, 1, 0),
    "three references": partial(ThreeReferenceSums.contribution, 1, 0, 1),
    "Horvitz and Thompson": partial(HorvitzThompsonSums.contribution, 0.5, 0.5),
    "outcomes": partial(TruthSums.contribution, 0.5, 1),
    "dependence": partial(DependenceSums.contribution, VoteMoments(0.5, 0.3, 0.2, 0.1), 3),
}

numbers = st.one_of(
    st.floats(-1000.0, 1000.0),
    st.sampled_from([0.0, 1.0, -1.0, 1e-308, 1e-300, 1e300, math.inf, -math.inf, math.nan, -1e-9, 1e16]),
)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_an_estimate_is_a_number_or_the_sums_are_refused(kind: Any, data: st.DataObject) -> None:
    sums = kind(*(data.draw(numbers) for _ in fields(kind)))

    try:
        found = sums.estimate()
    except FormulaInputError:
        return
    assert not any(np.isnan(value) for value in (*found[:5], found.variance))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_of_weights_that_is_none_is_refused(kind: Any, wrong: float) -> None:
    with pytest.raises(FormulaInputError, match=r"no questions have these|within"):
        kind(wrong, *(1.0 for _ in fields(kind)[1:])).estimate()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.5])
@pytest.mark.parametrize("contribution", CONTRIBUTIONS.values(), ids=CONTRIBUTIONS)
def test_a_weight_that_is_none_is_refused(contribution: Any, wrong: float) -> None:
    assert contribution(weight=0.5) is not None
    with pytest.raises(FormulaInputError, match="weight"):
        contribution(weight=wrong)


def symmetric(votes: Ints, answers: Ints) -> MomentSums:
    return moment_sums(moment_rows(votes, answers))


def of_classes(votes: Ints, answers: Ints) -> ClassMomentSums:
    return class_sums(class_rows(votes, answers))


def sound(rate: ErrorRate) -> bool:
    return (
        bool(np.isfinite(rate[:5]).all())
        and 0 <= rate.low <= 0.5 * (rate.zero + rate.one) <= rate.high <= 0.475
        and rate.status in ("ok", "insufficient", "balanced", "uninformative", "contradicted")
    )


@pytest.mark.case("C18")
@pytest.mark.parametrize("ones", [0.5, 0.03, 0.97])
@pytest.mark.parametrize("questions", [1, 10, 49, 50, 400])
def test_whatever_the_base_rate_and_however_few_questions_there_is_a_status_and_an_interval(
    questions: int, ones: float
) -> None:
    rng = np.random.default_rng([questions, int(100 * ones)])
    votes = votes_of(rng, outcomes_of(rng, questions, 1 - ones), rng.uniform(0.1, 0.4, 5))
    answers = others_majority(rng, votes)

    rates = [summed(votes, answers).estimate() for summed in (symmetric, of_classes)]

    assert all(sound(rate) for rate in rates)
    if questions < 50:
        assert [rate.status for rate in rates] == ["insufficient", "insufficient"]
        assert all(rate.high - rate.low > 0.1 for rate in rates)


@pytest.mark.case("C18")
def test_identical_experts_give_a_status_and_an_interval() -> None:
    """Exact copies of one another agree always: nothing contradicts their being always right."""
    rng = np.random.default_rng(2)
    votes = np.repeat(np.where(outcomes_of(rng, 500, 0.5), 1, -1)[:, None], 6, axis=1)
    answers = others_majority(rng, votes)

    rates = [summed(votes, answers).estimate() for summed in (symmetric, of_classes)]

    assert all(sound(rate) for rate in rates)
    assert all(rate.zero < 0.02 for rate in rates)


@pytest.mark.case("C18")
@pytest.mark.parametrize("summed", [symmetric, of_classes])
def test_rates_move_little_while_the_status_changes(
    summed: Callable[[Ints, Ints], MomentSums | ClassMomentSums],
) -> None:
    """At the fiftieth question, when ``insufficient`` ends, no more than at those around it: under .03 a question."""
    rng = np.random.default_rng(3)
    votes = votes_of(rng, outcomes_of(rng, 120, 0.5), np.full(10, 0.25))
    answers = others_majority(rng, votes)
    read = [summed(votes[:n], answers[:n]) for n in range(40, 121)]
    rates = [one.estimate() for one in read]

    assert {rate.status for rate in rates} >= {"insufficient", "ok"}
    assert np.abs(np.diff([rate[:2] for rate in rates], axis=0)).max() < 0.03


@pytest.mark.case("C18")
@pytest.mark.parametrize("ones", [0.5, 0.03, 0.97])
@pytest.mark.parametrize("questions", [3, 49, 400])
def test_identical_groups_give_a_status_and_an_interval(questions: int, ones: float) -> None:
    """Both groups answer alike on every question, right or wrong."""
    rng = np.random.default_rng([questions, int(100 * ones)])
    weight = float(questions)
    yes = float(rng.binomial(questions, 0.8 * ones + 0.2 * (1 - ones)))

    rates = [sums(weight, weight, yes, yes, yes).estimate() for sums in (TwoGroupSums, EqualGroupSums)]

    assert all(sound(rate) for rate in rates)
    assert questions >= 50 or all(rate.status == "insufficient" for rate in rates)


@pytest.mark.case("C18")
@pytest.mark.parametrize("outcome", [0, 1])
def test_outcomes_of_one_class_only_leave_the_other_open(outcome: int) -> None:
    sums = TruthSums()
    for wrong in [0.0, 1.0, 0.0] * 40:
        sums = sums.merge(TruthSums.contribution(wrong, outcome))

    rate = sums.estimate()

    assert sound(rate)
    assert (rate.status, rate.variance) == ("insufficient", 0.25)

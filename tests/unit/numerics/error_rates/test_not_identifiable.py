"""Where error rates cannot be told: every estimator says so, and gives numbers and an interval all the same."""

from collections.abc import Callable

import numpy as np
import pytest

from stream_peer.lab.formulas.two_groups import EqualGroupSums
from stream_peer.numerics.error_rates import ClassMomentSums, ErrorRate, MomentSums, TruthSums
from stream_peer.numerics.error_rates.groups import TwoGroupSums
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

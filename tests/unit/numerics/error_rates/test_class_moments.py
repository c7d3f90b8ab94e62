from dataclasses import astuple, fields
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from stream_peer.numerics.arguments import BoolArray
from stream_peer.numerics.error_rates import ClassMomentSums, ClassMomentTerms, class_moment_terms
from tests.unit.numerics.error_rates.streams import (
    Ints,
    class_rows,
    class_sums,
    others_majority,
    outcomes_of,
    votes_of,
    wrong_shares_of,
)


def repeated(terms: ClassMomentTerms, questions: float) -> ClassMomentSums:
    """Sums of so many equal questions."""
    return ClassMomentSums(*(questions * value for value in astuple(ClassMomentSums.contribution(terms))))


def terms_of_world(ones: Fraction, zero: Fraction, one: Fraction) -> ClassMomentTerms:
    """Exact means of the terms, where P(yes) is .7 for outcome 1 and .2 for 0; zero and one: error rates of answers."""
    zeros, if_one, if_zero = 1 - ones, Fraction(7, 10), Fraction(1, 5)
    powers = [float(ones * if_one**power + zeros * if_zero**power) for power in (1, 2, 3)]
    answer, both = ones * (1 - one) + zeros * zero, ones * if_one * (1 - one) + zeros * if_zero * zero
    return ClassMomentTerms(powers[0], powers[1], powers[2], float(answer), float(both))


def measured(outcomes: BoolArray, answers: Ints) -> tuple[float, float]:
    """True error rates of the leave-one-out answers on the questions seen."""
    wrong = wrong_shares_of(outcomes, answers)
    return float(wrong[~outcomes].mean()), float(wrong[outcomes].mean())


def test_ten_thousand_voters_are_counted_right() -> None:
    votes = np.ones(10_000, dtype=np.int8)
    votes[:2500] = -1

    found = class_moment_terms(votes, np.ones(10_000, dtype=np.int8))

    assert found is not None
    assert found == pytest.approx(
        (0.75, 7500 * 7499 / (1e4 * 9999), 7500 * 7499 * 7498 / (1e4 * 9999 * 9998), 1.0, 0.75), abs=1e-12
    )


def test_simulated_sums_are_those_of_the_rounds_one_by_one() -> None:
    rng = np.random.default_rng(1)
    votes = votes_of(rng, outcomes_of(rng, 40, 0.4), np.array([0.1, 0.2, 0.4, 0.3]))
    answers = others_majority(rng, votes)

    one_by_one = []
    for row, own in zip(votes.astype(np.int8), answers.astype(np.int8), strict=True):
        terms = class_moment_terms(row, own)
        assert terms is not None
        one_by_one.append(ClassMomentSums.contribution(terms))

    expected = astuple(reduce(ClassMomentSums.merge, one_by_one))
    assert astuple(class_sums(class_rows(votes, answers))) == pytest.approx(expected, abs=1e-12)


def test_every_product_is_named_after_its_factors() -> None:
    terms = ClassMomentTerms(0.9, 0.7, 0.5, 0.3, 0.2)
    sums = ClassMomentSums.contribution(terms, weight=0.5)

    for field in fields(ClassMomentSums)[7:]:
        one, _, two = field.name.partition("_")
        assert getattr(sums, field.name) == pytest.approx(0.5 * getattr(terms, one) * getattr(terms, two), abs=1e-15)


@pytest.mark.parametrize("ones", [Fraction(1, 2), Fraction(1, 4), Fraction(1, 10), Fraction(9, 10)])
@pytest.mark.parametrize(
    ("zero", "one"),
    [(Fraction(1, 5), Fraction(1, 10)), (Fraction(0), Fraction(0)), (Fraction(1, 20), Fraction(7, 20))],
)
def test_much_data_gives_the_rates_of_the_world(ones: Fraction, zero: Fraction, one: Fraction) -> None:
    terms = terms_of_world(ones, zero, one)

    rate = repeated(terms, 1e9).estimate()

    assert rate.status == "ok"
    assert (rate.zero, rate.one) == pytest.approx((float(zero), float(one)), abs=1e-5)
    assert rate.low == pytest.approx(max(0.5 * float(zero + one) - 0.005, 0.0), abs=1e-3)


def test_the_solution_is_that_of_the_two_linear_equations() -> None:
    """E[R] = P1·A1 + P0·A0 and E[R·x] = P1·v1·A1 + P0·v0·A0, with the v and P of the three moments' quadratic."""
    first, second, third = 0.4, 0.21, 0.128
    sums = repeated(ClassMomentTerms(first, second, third, 0.42, 0.26), 1e12)
    b = (third - first * second) / (second - first**2)
    root = (b * b - 4 * (b * first - second)) ** 0.5
    yes_if_one, yes_if_zero = (b + root) / 2, (b - root) / 2
    ones = (first - yes_if_zero) / (yes_if_one - yes_if_zero)
    system = np.array([[ones, 1 - ones], [ones * yes_if_one, (1 - ones) * yes_if_zero]])

    if_one, if_zero = np.linalg.solve(system, [0.42, 0.26])

    rate = sums.estimate()
    assert (rate.zero, 1 - rate.one) == pytest.approx((if_zero, if_one), abs=1e-6)


def test_without_data_the_rates_are_the_prior_and_anything_is_possible() -> None:
    assert ClassMomentSums().estimate() == pytest.approx((0.25, 0.25, 0.0, 0.475, 0.0, "insufficient", 0.25))


def test_votes_no_more_alike_than_coins_say_nothing() -> None:
    rate = repeated(ClassMomentTerms(0.5, 0.24, 0.1, 0.5, 0.26), 10_000).estimate()

    assert rate == (0.475, 0.475, 0.0, 0.475, 10_000, "uninformative", 0.25)


def test_answers_that_avoid_the_votes_say_nothing() -> None:
    rate = repeated(ClassMomentTerms(0.5, 0.34, 0.25, 0.5, 0.2), 10_000).estimate()

    assert (rate.zero, rate.one, rate.status) == (0.475, 0.475, "uninformative")


def test_answers_surer_than_any_can_be_are_contradicted() -> None:
    """v1 .6, v0 .4, so that a covariance of .12 of vote and answer would take answers right 120 times of 100."""
    rate = repeated(ClassMomentTerms(0.5, 0.26, 0.14, 0.5, 0.31), 100_000).estimate()

    assert (rate.status, rate.low, rate.high, rate.variance) == ("contradicted", 0.0, 0.475, 0.25)


def test_coins_are_never_called_ok() -> None:
    """Voters without any knowledge: in 100 seeded streams of 1,000 questions at most two pass a test at three sd."""
    statuses = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        votes = votes_of(rng, outcomes_of(rng, 1000, 0.5), np.full(8, 0.5))
        statuses.append(class_sums(class_rows(votes, others_majority(rng, votes))).estimate().status)

    assert set(statuses) <= {"uninformative", "contradicted", "ok"}
    assert statuses.count("ok") <= 2


def by_own_median(
    rng: np.random.Generator, n_experts: int, questions: int, ones: float, low: float, high: float
) -> tuple[BoolArray, Ints]:
    """Outcomes, and votes of experts with Gaussian signals who say yes to half of the questions."""
    outcomes = outcomes_of(rng, questions, 1 - ones)
    signals = rng.uniform(low, high, n_experts) * np.where(outcomes, 1.0, -1.0)[:, None]
    signals += rng.standard_normal(signals.shape)
    return outcomes, np.where(signals > np.median(signals, axis=0), 1, -1)


@pytest.mark.parametrize("ones", [0.5, 0.25, 0.1])
@pytest.mark.parametrize(("n_experts", "questions"), [(6, 300), (6, 2000), (20, 300), (20, 2000)])
def test_the_interval_covers_the_true_rate(n_experts: int, questions: int, ones: float) -> None:
    """At least 90 of 100 seeded streams, at confidence .95; and few of them are called impossible."""
    covered = contradicted = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, n_experts])
        outcomes, votes = by_own_median(rng, n_experts, questions, ones, 0.1, 0.8)
        answers = others_majority(rng, votes)
        rate = class_sums(class_rows(votes, answers)).estimate()
        covered += rate.low <= 0.5 * sum(measured(outcomes, answers)) <= rate.high
        contradicted += rate.status == "contradicted"

    assert covered >= 90
    assert contradicted <= 2


def test_the_interval_is_not_wide_for_nothing() -> None:
    rng = np.random.default_rng(1)
    _, votes = by_own_median(rng, 12, 5000, 0.5, 0.2, 0.8)

    rate = class_sums(class_rows(votes, others_majority(rng, votes))).estimate()

    assert rate.status == "ok"
    assert rate.high - rate.low < 0.06


@pytest.mark.parametrize("ones", [0.5, 0.25])
def test_the_variance_is_that_of_repeated_streams(ones: float) -> None:
    """Of 150 streams of 4,000 questions; the larger class's, within a factor of 1.35 of the standard deviation."""
    rates = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        outcomes = outcomes_of(rng, 4000, 1 - ones)
        errors = np.where(outcomes[:, None], 0.3, 0.25) * np.ones(8)
        votes = votes_of(rng, outcomes, errors)
        rates.append(class_sums(class_rows(votes, others_majority(rng, votes))).estimate())

    spread = max(float(np.std([rate.zero for rate in rates])), float(np.std([rate.one for rate in rates])))
    claimed = float(np.median([rate.variance for rate in rates])) ** 0.5
    assert spread / 1.35 < claimed < 1.35 * spread


@pytest.mark.parametrize("ones", [0.5, 0.25])
@pytest.mark.parametrize("questions", [300, 2000])
@pytest.mark.parametrize("errors", [(0.02, 0.38), (0.25, 0.25)])
def test_the_corners_enclose_both_rates(errors: tuple[float, float], questions: int, ones: float) -> None:
    """Their mean and their difference: in at least 95 of 100 seeded streams, where either may miss in 2.5."""
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, questions])
        outcomes = outcomes_of(rng, questions, 1 - ones)
        votes = votes_of(rng, outcomes, np.where(outcomes[:, None], errors[1], errors[0]) * np.ones(9))
        answers = others_majority(rng, votes)
        zero, one = measured(outcomes, answers)
        corners = class_sums(class_rows(votes, answers)).corners(0.975)
        means, halves = ([sign * b / 2 + a / 2 for a, b in corners] for sign in (1, -1))
        covered += min(means) <= (zero + one) / 2 <= max(means) and min(halves) <= (zero - one) / 2 <= max(halves)

    assert covered >= 95


@pytest.mark.parametrize(("voters", "yes"), [(50, 0.5), (100, 0.5), (9, 0.9), (9, 0.99), (9, 1.0)])
def test_coins_are_uninformative_however_often_they_say_yes(voters: int, yes: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng([seed, voters])
        votes = (rng.random((1000, voters)) < yes).astype(np.int64) * 2 - 1
        sums = class_sums(class_rows(votes, others_majority(rng, votes)))

        assert sums.estimate().status == "uninformative"
        assert sums.corners() == ((0.475, 0.475),)


def test_where_votes_say_nothing_both_rates_may_be_the_highest() -> None:
    sums = repeated(ClassMomentTerms(0.5, 0.24, 0.1, 0.5, 0.26), 10_000)

    assert sums.corners() == ((0.475, 0.475),)
    assert max(max(pair) for pair in ClassMomentSums().corners()) == 0.475

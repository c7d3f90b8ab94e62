import math
from dataclasses import astuple
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stream_peer.lab.formulas.three_references import ThreeReferenceClassSums, ThreeReferenceSums
from stream_peer.lab.formulas.two_groups import EqualGroupSums, two_group_deviations, two_group_solution
from stream_peer.numerics.error_rates import ErrorRate, TwoGroupSums
from tests.reference.plain_formulas import three_reference_solution

answers = st.sampled_from([0, 1, None])
weights = st.floats(0.001, 1.0)
pairs = st.lists(st.tuples(answers, answers, weights), max_size=12)
triples = st.lists(st.tuples(answers, answers, answers, weights), max_size=12)
cells = st.lists(st.integers(0, 10**6), min_size=4, max_size=4).filter(any)
rates = st.fractions(Fraction(0), Fraction(9, 20), max_denominator=1000)
zeros_off_half = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=1000).filter(
    lambda share: abs(share - Fraction(1, 2)) >= Fraction(1, 100)
)
unhurried = settings(deadline=None)


def two_groups(questions: list[tuple[int | None, int | None, float]]) -> TwoGroupSums:
    total = TwoGroupSums()
    for first, second, weight in questions:
        total = total.merge(TwoGroupSums.contribution(first, second, weight))
    return total


def three_references(questions: list[tuple[int | None, int | None, int | None, float]]) -> ThreeReferenceSums:
    total = ThreeReferenceSums()
    for first, second, third, weight in questions:
        total = total.merge(ThreeReferenceSums.contribution(first, second, third, weight))
    return total


def numbers_are_sound(rate: ErrorRate) -> bool:
    return (
        all(math.isfinite(value) for value in (*rate[:5], rate.variance))
        and 0.0 <= rate.low <= 0.5 * (rate.zero + rate.one) + 1e-12
        and 0.5 * (rate.zero + rate.one) - 1e-12 <= rate.high <= 0.475
        and min(rate.zero, rate.one) >= 0.0
        and max(rate.zero, rate.one) <= 0.475
        and 0.0 <= rate.variance <= 0.25
    )


def of_cells(counts: list[int]) -> TwoGroupSums:
    """Numbers of questions answered yes-yes, yes-no, no-yes, no-no."""
    total = float(sum(counts))
    return TwoGroupSums(total, total, float(counts[0] + counts[1]), float(counts[0] + counts[2]), float(counts[0]))


@unhurried
@given(zeros=zeros_off_half, first=rates, second=rates)
def test_the_corrected_solution_gives_back_the_rates_that_made_the_shares(
    zeros: Fraction, first: Fraction, second: Fraction
) -> None:
    """In exact fractions: the shares that these rates give, rounded once, are read as these rates."""
    ones = 1 - zeros
    c1 = zeros * first + ones * (1 - first)
    c2 = zeros * second + ones * (1 - second)
    c3 = zeros * first * second + ones * (1 - first) * (1 - second)
    leading = 1 - 2 * c1 - 2 * c2 + 4 * c3

    found = two_group_solution(float(c1), float(c2), float(c3))

    assert leading * zeros * ones == c3 - c1 * c2
    assert leading * (c1 - Fraction(1, 2)) / (c2 - Fraction(1, 2)) == (1 - 2 * first) ** 2
    assert found == pytest.approx((float(first), float(second), float(zeros)), abs=1e-9)


@unhurried
@given(first=rates, second=rates, third=rates)
def test_three_references_give_back_their_rates(first: Fraction, second: Fraction, third: Fraction) -> None:
    a, b, c = (1 - 2 * rate for rate in (first, second, third))

    found = three_reference_solution(float(a * b), float(a * c), float(b * c))

    assert found == pytest.approx((float(first), float(second), float(third)), abs=1e-9)


@unhurried
@given(one=pairs, two=pairs, three=pairs)
def test_sums_of_groups_add_up_in_any_order(
    one: list[tuple[int | None, int | None, float]],
    two: list[tuple[int | None, int | None, float]],
    three: list[tuple[int | None, int | None, float]],
) -> None:
    a, b, c = two_groups(one), two_groups(two), two_groups(three)

    left, right = a.merge(b).merge(c), a.merge(b.merge(c))

    assert astuple(left) == pytest.approx(astuple(right), abs=1e-9)
    assert a.merge(b) == b.merge(a)
    assert astuple(left) == pytest.approx(astuple(two_groups(three + one + two)), abs=1e-9)


@unhurried
@given(one=triples, two=triples, three=triples)
def test_sums_of_three_references_add_up_in_any_order(
    one: list[tuple[int | None, int | None, int | None, float]],
    two: list[tuple[int | None, int | None, int | None, float]],
    three: list[tuple[int | None, int | None, int | None, float]],
) -> None:
    a, b, c = three_references(one), three_references(two), three_references(three)

    assert astuple(a.merge(b).merge(c)) == pytest.approx(astuple(a.merge(b.merge(c))), abs=1e-9)
    assert a.merge(b) == b.merge(a)


@unhurried
@given(counts=cells)
def test_swapping_the_groups_swaps_their_rates(counts: list[int]) -> None:
    straight = of_cells(counts)
    swapped = TwoGroupSums(straight.weight, straight.weight2, straight.c2, straight.c1, straight.c3)

    found, other = straight.estimate_groups(), swapped.estimate_groups()

    assert found.first[:5] == pytest.approx(other.second[:5], abs=1e-9)
    assert found.second[:5] == pytest.approx(other.first[:5], abs=1e-9)
    assert (found.status, found.first.status) == (other.status, other.second.status)
    assert found.share_of_zeros == pytest.approx(other.share_of_zeros, abs=1e-9)


@unhurried
@given(counts=cells)
def test_turning_every_answer_round_keeps_the_rates_and_turns_the_share_of_zeros(counts: list[int]) -> None:
    found, turned = of_cells(counts).estimate_groups(), of_cells(counts[::-1]).estimate_groups()

    assume(found.status == turned.status)  # rounding can decide at the very edge of three standard deviations
    assert found.first[:5] == pytest.approx(turned.first[:5], abs=1e-6)
    if found.share_of_zeros is not None:
        assert turned.share_of_zeros == pytest.approx(1.0 - found.share_of_zeros, abs=1e-6)


@unhurried
@given(counts=cells, confidence=st.floats(0.01, 0.999))
def test_estimates_of_groups_are_numbers_inside_their_range_whatever_was_seen(
    counts: list[int], confidence: float
) -> None:
    sums = of_cells(counts)
    found = sums.estimate_groups(confidence)

    assert numbers_are_sound(found.first)
    assert numbers_are_sound(found.second)
    assert numbers_are_sound(EqualGroupSums(*astuple(sums)).estimate(confidence))
    assert found.share_of_zeros is None or 0.0 <= found.share_of_zeros <= 1.0
    assert min(two_group_deviations(*(share / sums.weight for share in (sums.c1, sums.c2, sums.c3)))) >= 0.0


@unhurried
@given(counts=st.lists(st.integers(0, 10**6), min_size=8, max_size=8).filter(any), confidence=st.floats(0.01, 0.999))
def test_estimates_of_three_references_are_numbers_inside_their_range_whatever_was_seen(
    counts: list[int], confidence: float
) -> None:
    """Counts of the eight ways in which three references can answer, bit k being that of reference k."""
    total = float(sum(counts))
    subsets = (1, 2, 4, 3, 5, 6, 7)
    yes = [float(sum(count for cell, count in enumerate(counts) if cell & bits == bits)) for bits in subsets]

    symmetric = ThreeReferenceSums(total, total, *yes).estimate_references(confidence)
    classes = ThreeReferenceClassSums(total, total, *yes).estimate_references(confidence)

    assert all(numbers_are_sound(rate) for rate in (*symmetric.rates, *classes.rates))
    assert classes.share_of_zeros is None or 0.0 < classes.share_of_zeros < 1.0


@unhurried
@given(questions=pairs)
def test_an_empty_group_adds_nothing_wherever_it_stands(
    questions: list[tuple[int | None, int | None, float]],
) -> None:
    answered = [question for question in questions if None not in question]

    assert astuple(two_groups(questions)) == pytest.approx(astuple(two_groups(answered)), abs=1e-12)
    assert numbers_are_sound(two_groups(questions).estimate())

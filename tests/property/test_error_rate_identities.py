import math
from dataclasses import astuple
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.lab.formulas.horvitz_thompson import HorvitzThompsonSums
from stream_peer.numerics.arguments import SmallIntArray
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    ClassMomentTerms,
    ErrorRate,
    MomentSums,
    MomentTerms,
    TruthSums,
    class_moment_terms,
    combine_with_truth,
    interval_ends,
    moment_terms,
    priced,
)
from tests.reference.plain_formulas import discounted

signs = st.sampled_from([-1, 0, 1])
terms = st.builds(MomentTerms, pair=st.floats(-1.0, 1.0), rest=st.floats(-1.0, 1.0))
weights = st.floats(0.001, 1.0)
questions = st.lists(st.tuples(terms, weights), max_size=8)
counts = st.floats(0.0, 1e6)
unhurried = settings(deadline=None)
rooms = st.lists(st.tuples(signs, st.integers(0, 1)), max_size=7)
voters = st.lists(st.tuples(st.sampled_from([-1, 1]), st.integers(0, 1)), min_size=3, max_size=7)
rounds = st.lists(st.tuples(voters, weights), max_size=8)
shares = st.floats(0.0, 1.0)
levels = st.floats(0.01, 0.999)


@st.composite
def class_terms(draw: st.DrawFn) -> ClassMomentTerms:
    """Any five numbers in the order that votes keep to, whether or not votes could give them."""
    third, second, first = sorted(draw(st.tuples(shares, shares, shares)))
    answer = draw(shares)
    return ClassMomentTerms(first, second, third, answer, draw(shares) * min(first, answer))


def columns_of(room: list[tuple[int, int]]) -> tuple[SmallIntArray, SmallIntArray]:
    return np.array([vote for vote, _ in room], dtype=np.int8), np.array([answer for _, answer in room], dtype=np.int8)


def class_summed(seen: list[tuple[ClassMomentTerms, float]], times: int = 1) -> ClassMomentSums:
    total = ClassMomentSums()
    for found, weight in seen:
        total = total.merge(ClassMomentSums.contribution(found, weight))
    return ClassMomentSums(*(times * value for value in astuple(total)))


def terms_of_rooms(seen: list[tuple[list[tuple[int, int]], float]]) -> list[tuple[ClassMomentTerms, float]]:
    found = [(class_moment_terms(*columns_of(room)), weight) for room, weight in seen]
    return [(one, weight) for one, weight in found if one is not None]


def summed(given_questions: list[tuple[MomentTerms, float]], times: int = 1) -> MomentSums:
    total = MomentSums()
    for found, weight in given_questions:
        total = total.merge(MomentSums.contribution(found, weight))
    return MomentSums(*(times * value for value in astuple(total)))


def numbers_are_sound(rate: ErrorRate) -> bool:
    return (
        all(math.isfinite(value) for value in (rate.zero, rate.one, rate.low, rate.high, rate.variance))
        and 0.0 <= rate.low <= 0.5 * (rate.zero + rate.one) + 1e-12
        and 0.5 * (rate.zero + rate.one) - 1e-12 <= rate.high <= 0.475
        and min(rate.zero, rate.one) >= 0.0
        and max(rate.zero, rate.one) <= 0.475
        and 0.0 <= rate.variance <= 0.25
    )


@unhurried
@given(room=st.lists(st.tuples(signs, st.integers(0, 1)), max_size=10))
def test_moments_equal_means_over_pairs_and_voters(room: list[tuple[int, int]]) -> None:
    given_votes, answers = (
        (np.array(column, dtype=np.int8) for column in zip(*room, strict=True))
        if room
        else (
            np.zeros(0, dtype=np.int8),
            np.zeros(0, dtype=np.int8),
        )
    )
    voters = [(vote, 2 * answer - 1) for vote, answer in room if vote]

    found = moment_terms(given_votes, answers)

    if len(voters) < 2:
        assert found is None
        return
    pairs = [a * b for i, (a, _) in enumerate(voters) for j, (b, _) in enumerate(voters) if i != j]
    expected = (sum(pairs) / len(pairs), sum(vote * reference for vote, reference in voters) / len(voters))
    assert found == pytest.approx(expected, abs=1e-12)


@unhurried
@given(one=questions, other=questions)
def test_sums_of_two_sets_of_questions_add_up(
    one: list[tuple[MomentTerms, float]], other: list[tuple[MomentTerms, float]]
) -> None:
    assert astuple(summed(one).merge(summed(other))) == pytest.approx(astuple(summed(one + other)), abs=1e-9)


@unhurried
@given(seen=questions, times=st.sampled_from([1, 10, 1000, 10**7]), confidence=levels)
def test_estimates_are_numbers_inside_their_range_whatever_was_seen(
    seen: list[tuple[MomentTerms, float]], times: int, confidence: float
) -> None:
    rate = summed(seen, times).estimate(confidence)

    assert numbers_are_sound(rate)
    assert rate.low <= rate.zero <= rate.high


@unhurried
@given(
    seen=questions,
    times=st.sampled_from([1, 1000, 10**6]),
    revealed=st.tuples(counts, counts),
    shares=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
)
def test_combined_rates_are_numbers_inside_their_range_whatever_was_revealed(
    seen: list[tuple[MomentTerms, float]], times: int, revealed: tuple[float, float], shares: tuple[float, float]
) -> None:
    free = summed(seen, times).estimate()

    rate = combine_with_truth(free, shares[0] * revealed[0], revealed[0], shares[1] * revealed[1], revealed[1])

    assert numbers_are_sound(rate)
    assert max(end for pair in interval_ends(rate) for end in pair) <= 0.95
    assert min(end for pair in interval_ends(rate) for end in pair) >= 0.0


@unhurried
@given(pair=st.floats(0.05, 1.0), error_rate=st.floats(0.01, 0.45))
def test_moments_of_a_known_rate_are_read_as_that_rate(pair: float, error_rate: float) -> None:
    """With rest = (1 - 2η)·√pair and so many questions that the prior has faded."""
    found = MomentTerms(pair=pair, rest=(1 - 2 * error_rate) * math.sqrt(pair))

    rate = summed([(found, 1.0)], times=10**9).estimate()

    assert rate.zero == pytest.approx(error_rate, abs=1e-6)


@unhurried
@given(zero=st.floats(0.0, 1.0), one=st.floats(0.0, 1.0))
def test_priced_rates_leave_a_fifth_of_information_and_keep_their_ratio(zero: float, one: float) -> None:
    found = priced(zero, one)

    assert found.zero + found.one <= 0.8 + 1e-12
    assert found.capped == (zero + one > 0.8)
    assert found.zero * one == pytest.approx(found.one * zero, abs=1e-12)


@unhurried
@given(room=rooms)
def test_class_terms_equal_shares_of_tuples_of_different_voters(room: list[tuple[int, int]]) -> None:
    found = class_moment_terms(*columns_of(room))

    given = [(vote > 0, answer) for vote, answer in room if vote]
    if len(given) < 3:
        assert found is None
        return
    tuples = [list(permutations([yes for yes, _ in given], size)) for size in (1, 2, 3)]
    expected = [sum(all(one) for one in of_size) / len(of_size) for of_size in tuples]
    expected += [
        sum(answer for _, answer in given) / len(given),
        sum(yes * answer for yes, answer in given) / len(given),
    ]
    assert found == pytest.approx(expected, abs=1e-12)


@unhurried
@given(room=voters)
def test_the_symmetric_terms_are_linear_in_those_of_classes(room: list[tuple[int, int]]) -> None:
    """pair = 1 - 4·m1 + 4·m2, rest = 1 - 2·m1 - 2·E[R] + 4·E[R·x]."""
    by_class, symmetric = class_moment_terms(*columns_of(room)), moment_terms(*columns_of(room))

    assert by_class is not None
    first, second, _, answer, both = by_class
    assert symmetric == pytest.approx((1 - 4 * first + 4 * second, 1 - 2 * first - 2 * answer + 4 * both), abs=1e-12)


@unhurried
@given(room=voters, data=st.data())
def test_the_order_of_experts_does_not_matter(room: list[tuple[int, int]], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(room))

    assert class_moment_terms(*columns_of(shuffled)) == class_moment_terms(*columns_of(room))
    assert moment_terms(*columns_of(shuffled)) == moment_terms(*columns_of(room))


@unhurried
@given(seen=rounds, times=st.sampled_from([1, 30, 1000]))
def test_calling_yes_no_exchanges_the_rates(seen: list[tuple[list[tuple[int, int]], float]], times: int) -> None:
    """Up to rounding; two unanimous questions, one of each kind, keep votes from being no more alike than coins."""
    alike = [*seen, ([(1, 1)] * 4, 1.0), ([(-1, 0)] * 4, 1.0)]
    turned = [([(-vote, 1 - answer) for vote, answer in room], weight) for room, weight in alike]

    rate, other = (class_summed(terms_of_rooms(one), times).estimate() for one in (alike, turned))

    assert (other.zero, other.one) == pytest.approx((rate.one, rate.zero), abs=1e-6)
    assert (other.low, other.high, other.variance) == pytest.approx((rate.low, rate.high, rate.variance), abs=1e-6)


@unhurried
@given(seen=rounds, times=st.sampled_from([1, 30, 1000, 10**6]), confidence=levels)
def test_class_estimates_are_numbers_inside_their_range_whatever_was_voted(
    seen: list[tuple[list[tuple[int, int]], float]], times: int, confidence: float
) -> None:
    assert numbers_are_sound(class_summed(terms_of_rooms(seen), times).estimate(confidence))


@unhurried
@given(seen=st.lists(st.tuples(class_terms(), weights), max_size=5), times=st.sampled_from([1, 1000, 10**9]))
def test_class_estimates_are_numbers_inside_their_range_even_for_terms_no_votes_give(
    seen: list[tuple[ClassMomentTerms, float]], times: int
) -> None:
    assert numbers_are_sound(class_summed(seen, times).estimate())


@unhurried
@given(parts=st.lists(st.lists(st.tuples(class_terms(), weights), max_size=3), min_size=3, max_size=3))
def test_class_sums_add_up_in_any_grouping_and_order(parts: list[list[tuple[ClassMomentTerms, float]]]) -> None:
    one, two, three = (class_summed(part) for part in parts)

    expected = pytest.approx(astuple(class_summed([*parts[0], *parts[1], *parts[2]])), abs=1e-9)
    assert astuple(one.merge(two).merge(three)) == expected
    assert astuple(three.merge(two.merge(one))) == expected


@unhurried
@given(
    ones=st.floats(0.05, 0.95),
    if_zero=st.floats(0.0, 0.6),
    gap=st.floats(0.15, 0.4),
    zero=st.floats(0.0, 0.45),
    one=st.floats(0.0, 0.3),
)
def test_moments_of_a_mixture_give_back_its_rates(
    ones: float, if_zero: float, gap: float, zero: float, one: float
) -> None:
    if_one, zeros = if_zero + gap, 1 - ones
    first, second, third = (ones * if_one**power + zeros * if_zero**power for power in (1, 2, 3))
    terms = ClassMomentTerms(
        first, second, third, ones * (1 - one) + zeros * zero, ones * if_one * (1 - one) + zeros * if_zero * zero
    )

    rate = class_summed([(terms, 1.0)], times=10**11).estimate()

    assert (rate.zero, rate.one) == pytest.approx((zero, one), abs=1e-5)


@unhurried
@given(questions=st.lists(st.tuples(shares, st.integers(0, 1), weights), max_size=10), confidence=levels)
def test_measured_rates_are_numbers_inside_their_range_and_the_mean_of_the_shares(
    questions: list[tuple[float, int, float]], confidence: float
) -> None:
    sums = TruthSums()
    for wrong, outcome, weight in questions:
        sums = sums.merge(TruthSums.contribution(wrong, outcome, weight))

    rate = sums.estimate(confidence)

    assert numbers_are_sound(rate)
    of_zero = [(wrong, weight) for wrong, outcome, weight in questions if not outcome]
    if of_zero:
        mean = sum(wrong * weight for wrong, weight in of_zero) / sum(weight for _, weight in of_zero)
        assert rate.zero == pytest.approx(min(mean, 0.475), abs=1e-9)


@unhurried
@given(
    questions=st.lists(st.tuples(st.none() | shares, st.floats(0.001, 1.0), weights), max_size=10),
    confidence=levels,
)
def test_weighted_rates_are_numbers_inside_their_range(
    questions: list[tuple[float | None, float, float]], confidence: float
) -> None:
    sums = HorvitzThompsonSums()
    for wrong, reveal_probability, weight in questions:
        sums = sums.merge(HorvitzThompsonSums.contribution(wrong, reveal_probability, weight))

    assert numbers_are_sound(sums.estimate(confidence))


@given(wrong=shares, reveal_probability=st.floats(0.001, 1.0))
def test_weighting_by_the_reveal_probability_is_unbiased(wrong: float, reveal_probability: float) -> None:
    """p*·(shown) + (1 - p*)·(hidden) is the share itself; as printed it would be 1 less the share."""
    shown = HorvitzThompsonSums.contribution(wrong, reveal_probability)
    hidden = HorvitzThompsonSums.contribution(None, reveal_probability)

    expected = reveal_probability * shown.inflated + (1 - reveal_probability) * hidden.inflated
    assert expected == pytest.approx(wrong, abs=1e-12)


@unhurried
@given(one=questions, other=questions, factor=shares)
def test_discounting_sums_is_discounting_their_parts(
    one: list[tuple[MomentTerms, float]], other: list[tuple[MomentTerms, float]], factor: float
) -> None:
    both = discounted(summed(one).merge(summed(other)), factor)

    parts = discounted(summed(one), factor).merge(discounted(summed(other), factor))
    assert astuple(both) == pytest.approx(astuple(parts), abs=1e-9)


@unhurried
@given(seen=questions, factor=st.floats(0.01, 1.0))
def test_discounting_is_the_same_as_smaller_weights_from_the_start(
    seen: list[tuple[MomentTerms, float]], factor: float
) -> None:
    lighter = summed([(found, factor * weight) for found, weight in seen])

    assert astuple(discounted(summed(seen), factor)) == pytest.approx(astuple(lighter), abs=1e-9)

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.error_rates import (
    ErrorRate,
    MomentSums,
    MomentTerms,
    combine_with_truth,
    interval_ends,
    moment_terms,
    priced,
)

signs = st.sampled_from([-1, 0, 1])
terms = st.builds(MomentTerms, pair=st.floats(-1.0, 1.0), rest=st.floats(-1.0, 1.0))
weights = st.floats(0.001, 1.0)
questions = st.lists(st.tuples(terms, weights), max_size=8)
counts = st.floats(0.0, 1e6)
unhurried = settings(deadline=None)


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
@given(seen=questions, times=st.sampled_from([1, 10, 1000, 10**7]), confidence=st.floats(0.01, 0.999))
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

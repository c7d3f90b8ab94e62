from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.dependence import DependenceSums, VoteMoments
from stream_peer.tools.report.pairs import pair_residuals
from tests.reference.plain_formulas import vote_moments

signs = st.lists(st.sampled_from([-1, 0, 1]), max_size=7)
shares = st.floats(0.0, 1.0)
moments = st.lists(shares, min_size=4, max_size=4).map(lambda values: VoteMoments(*sorted(values, reverse=True)))
questions = st.lists(st.tuples(moments, st.integers(0, 24), st.floats(0.001, 1.0)), max_size=12)
probabilities = st.fractions(Fraction(0), Fraction(1), max_denominator=50)
unhurried = settings(deadline=None)


def summed(given_questions: list[tuple[VoteMoments, int, float]]) -> DependenceSums:
    total = DependenceSums()
    for found, subsample, weight in given_questions:
        total = total.merge(DependenceSums.contribution(found, subsample, weight))
    return total


@unhurried
@given(given_votes=signs)
def test_moments_equal_shares_of_ordered_tuples(given_votes: list[int]) -> None:
    found = vote_moments(np.array(given_votes, dtype=np.int8))

    voters = [vote > 0 for vote in given_votes if vote]
    if len(voters) < 4:
        assert found is None
        return
    expected = [np.mean([all(chosen) for chosen in permutations(voters, k)]) for k in range(1, 5)]
    assert found == pytest.approx(tuple(expected), abs=1e-12)


@unhurried
@given(yes=st.tuples(probabilities, probabilities), weight=probabilities)
def test_any_two_kinds_of_questions_leave_no_gap(yes: tuple[Fraction, Fraction], weight: Fraction) -> None:
    """The identity behind the test: det [[1, m1, m2], [m1, m2, m3], [m2, m3, m4]] = 0 for a mixture of two points."""
    m1, m2, m3, m4 = (weight * yes[0] ** k + (1 - weight) * yes[1] ** k for k in range(1, 5))
    each = [40.0, 40.0, *(40.0 * float(moment) for moment in (m1, m2, m3, m4))]

    reading = DependenceSums(np.tile(each, (25, 1))).reading()

    assert (m2 - m1**2) * m4 - (m3 - m1 * m2) * m3 + ((m3 - m1 * m2) * m1 - m2 * (m2 - m1**2)) * m2 == 0
    assert reading.status == ("ok" if m2 - m1**2 > Fraction(1, 10**9) else "uninformative")
    assert not reading.flagged
    if reading.gap is not None:
        assert reading.gap == pytest.approx(0.0, abs=1e-9)


@unhurried
@given(one=questions, two=questions, three=questions)
def test_sums_add_up_subsample_by_subsample_in_any_order(
    one: list[tuple[VoteMoments, int, float]],
    two: list[tuple[VoteMoments, int, float]],
    three: list[tuple[VoteMoments, int, float]],
) -> None:
    a, b, c = summed(one), summed(two), summed(three)

    np.testing.assert_allclose(a.merge(b).merge(c).subsamples, a.merge(b.merge(c)).subsamples, atol=1e-12)
    np.testing.assert_array_equal(a.merge(b).subsamples, b.merge(a).subsamples)
    np.testing.assert_allclose(summed(three + one + two).subsamples, a.merge(b).merge(c).subsamples, atol=1e-12)


@unhurried
@given(seen=st.lists(st.lists(shares, min_size=4, max_size=4), min_size=25, max_size=25), each=st.floats(1.0, 1e6))
def test_a_reading_is_finite_whatever_was_seen(seen: list[list[float]], each: float) -> None:
    rows = np.array([[each, each, *(each * moment for moment in sorted(found, reverse=True))] for found in seen])

    reading = DependenceSums(rows).reading()

    known = [number for number in reading[:3] if number is not None]
    assert len(known) == (3 if reading.status == "ok" else 0)
    assert np.isfinite(known).all()
    assert reading.flagged == (reading.z is not None and abs(reading.z) > 3.0)


@unhurried
@given(seed=st.integers(0, 1000), n_experts=st.integers(4, 8))
def test_experts_in_another_order_have_the_same_residuals(seed: int, n_experts: int) -> None:
    rng = np.random.default_rng(seed)
    right = np.where(rng.random((80, 1)) < 0.5, -1, 1)
    votes = (np.where(rng.random((80, n_experts)) < 0.3, -right, right) * (rng.random((80, n_experts)) < 0.9)).astype(
        np.int8
    )
    order = rng.permutation(n_experts)

    found, moved = pair_residuals(votes), pair_residuals(votes[:, order])

    np.testing.assert_allclose(moved.z, found.z[np.ix_(order, order)], atol=1e-9)
    np.testing.assert_allclose(moved.alignments, found.alignments[order], atol=1e-9)

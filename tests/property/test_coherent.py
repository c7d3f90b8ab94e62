"""Projections: coherent, nearest, and never farther from any outcome than what they were made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.coherent import isotonic_regression, simplex_projection
from tests.hypothesis_profiles import examples

EXACT = 1e-12
PROBABILITIES = st.lists(st.one_of(st.floats(0, 1), st.sampled_from((0.0, 0.3, 0.5, 1.0))), min_size=1, max_size=200)
WEIGHTS = st.floats(1e-3, 1e3)
WEIGHTED = st.lists(st.tuples(st.floats(0, 1), WEIGHTS), min_size=1, max_size=60)


def squares(one: FloatArray, other: FloatArray, weights: FloatArray | float = 1.0) -> float:
    return float((weights * (one - other) ** 2).sum())


@options(max_examples=examples(200))
@given(PROBABILITIES)
def test_options_get_the_nearest_probabilities_that_sum_to_one(said: list[float]) -> None:
    p = np.array(said)
    q = simplex_projection(p)

    assert abs(q.sum() - 1.0) <= EXACT
    assert q.min() >= 0.0
    assert np.array_equal(simplex_projection(q), q)
    assert np.all(np.diff(q[np.argsort(p, kind="stable")]) >= 0.0)
    # The conditions of Karush, Kuhn and Tucker: one shift of all that are above 0, and no larger one of the others.
    shift = q - p
    above = q > 0.0
    assert np.ptp(shift[above]) <= EXACT
    assert np.all(shift[~above] >= shift[above].max() - EXACT)
    for outcome in np.eye(len(p)):
        assert squares(q, outcome) <= squares(p, outcome) + EXACT
    assert np.array_equal(simplex_projection(p, rest=True), p if p.sum() < 1.0 else q)


@options(max_examples=examples(200))
@given(WEIGHTED)
def test_thresholds_get_the_nearest_probabilities_that_never_fall(said: list[tuple[float, float]]) -> None:
    p, weights = np.array(said).T
    q = isotonic_regression(p, weights)

    assert np.all(np.diff(q) >= 0.0)
    assert 0.0 <= q[0] <= q[-1] <= 1.0
    assert np.array_equal(isotonic_regression(q, weights), q)
    # The conditions of Karush, Kuhn and Tucker: forces between neighbours push apart, and only those that are equal.
    forces = np.cumsum(weights * (p - q))
    room = EXACT * weights.sum()
    assert abs(forces[-1]) <= room
    assert np.all(forces >= -room)
    assert np.all(forces[:-1][np.diff(q) > 0.0] <= room)
    assert np.array_equal(isotonic_regression(p), isotonic_regression(p, np.full(len(p), 1.0)))
    for above in range(len(p) + 1):
        outcome = (np.arange(len(p)) >= above).astype(np.float64)
        assert squares(q, outcome, weights) <= squares(p, outcome, weights) + room


@options(max_examples=examples(50))
@given(PROBABILITIES)
def test_what_is_coherent_stays(said: list[float]) -> None:
    ascending = np.sort(said)
    shares = np.array(said) / sum(said) if sum(said) > 0.0 else np.eye(len(said))[0]

    assert np.array_equal(isotonic_regression(ascending), ascending)
    if abs(shares.sum() - 1.0) <= EXACT and shares.max() <= 1.0:
        assert np.array_equal(simplex_projection(shares), shares)
    assert simplex_projection(np.zeros(4)).tolist() == pytest.approx([0.25] * 4)

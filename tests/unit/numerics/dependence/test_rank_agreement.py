import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.numerics.dependence import RankAgreement, rank_agreement

scores = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), max_size=12)


def slow_ranks(values: list[int]) -> list[float]:
    """Of each: how many are smaller, and half of the others that are equal."""
    return [sum(other < one for other in values) + (sum(other == one for other in values) - 1) / 2 for one in values]


@given(scores)
def test_it_is_the_correlation_of_the_ranks(pairs: list[tuple[int, int]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]

    found = rank_agreement(np.array(one, dtype=np.float64), np.array(other, dtype=np.float64))

    if len(pairs) < 4 or len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
        return
    assert found is not None
    assert found.experts == len(pairs)
    assert found.correlation == pytest.approx(np.corrcoef(slow_ranks(one), slow_ranks(other))[0, 1], abs=1e-12)


@given(scores, st.randoms(use_true_random=False))
def test_neither_scale_nor_order_of_experts_matters(pairs: list[tuple[int, int]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    third, fourth = np.array(shuffled, dtype=np.float64).reshape(-1, 2).T

    assert rank_agreement(one, other) == rank_agreement(7.0 * third - 3.0, np.exp(fourth))


def test_turned_round_ranks_agree_the_other_way() -> None:
    first = np.array([0.3, 0.1, 0.2, 0.5, 0.4])

    assert rank_agreement(first, first) == RankAgreement(1.0, 5)
    assert rank_agreement(first, -first) == RankAgreement(-1.0, 5)


def test_the_deviation_is_that_of_samples_with_the_correlation_of_the_limit() -> None:
    """Pairs of normal numbers whose rank correlation is .2 in truth."""
    generator, n, truth = np.random.default_rng(3), 30, 0.2
    linear = 2.0 * math.sin(math.pi * truth / 6.0)
    found = []
    for _ in range(2000):
        one, noise = generator.normal(size=(2, n))
        ranked = rank_agreement(one, linear * one + math.sqrt(1.0 - linear * linear) * noise)
        assert ranked is not None
        found.append(ranked.below(truth))

    assert np.mean(found) == pytest.approx(0.0, abs=0.1)
    assert np.std(found) == pytest.approx(1.0, abs=0.1)


def test_the_same_correlation_of_more_experts_is_further_below_the_limit() -> None:
    z = [RankAgreement(-0.1, experts).below(0.2) for experts in (8, 20, 100, 1000)]

    assert all(one < other for one, other in combinations(z, 2))

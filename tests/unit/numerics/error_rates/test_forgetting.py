import math

import numpy as np
import pytest

from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import (
    MomentSums,
    MomentTerms,
    bucket_factors,
    bucket_size,
    forgetting_factor,
)
from tests.reference.plain_formulas import discounted
from tests.unit.numerics.error_rates.streams import majority_error, moment_rows, moment_sums, others_majority, votes_of

QUESTION = MomentSums.contribution(MomentTerms(pair=0.3, rest=0.4))


def test_the_effective_number_of_questions_tends_to_twice_the_memory_less_one() -> None:
    factor = forgetting_factor(50)
    sums = MomentSums()
    for _ in range(1500):
        sums = discounted(sums, factor).merge(QUESTION)

    assert sums.weight == pytest.approx(50, rel=1e-9)
    assert sums.weight**2 / sums.weight2 == pytest.approx(99, rel=1e-9)
    assert sums.estimate().effective_questions == pytest.approx(99, rel=1e-9)


@pytest.mark.parametrize(("memory", "questions"), [(1, 1), (7, 1), (8, 1), (9, 2), (1000, 125)])
def test_a_memory_is_eight_buckets(memory: int, questions: int) -> None:
    assert bucket_size(memory) == questions


def test_buckets_are_discounted_by_their_age_in_questions_and_left_out_after_five_memories() -> None:
    """M = 16, so buckets of two questions; five memories are 80 questions, 40 buckets."""
    factors = bucket_factors(np.array([100, 99, 60, 59, 0]), newest=100, memory=16)

    assert factors.tolist() == pytest.approx([1.0, (15 / 16) ** 2, (15 / 16) ** 80, 0.0, 0.0], rel=1e-12)


def test_buckets_read_nearly_what_sums_that_forget_hold() -> None:
    """The newest bucket is not discounted within: at most one bucket's worth, an eighth of a memory, is counted new."""
    memory, questions = 80, 2000
    rng = np.random.default_rng(4)
    terms = [MomentTerms(*pair) for pair in rng.uniform(0.0, 1.0, (questions, 2)).tolist()]
    forgetting, size = MomentSums(), bucket_size(memory)
    buckets = [MomentSums() for _ in range(questions // size)]
    for ordinal, term in enumerate(terms):
        one = MomentSums.contribution(term)
        forgetting = discounted(forgetting, forgetting_factor(memory)).merge(one)
        buckets[ordinal // size] = buckets[ordinal // size].merge(one)

    factors = bucket_factors(np.arange(len(buckets)), len(buckets) - 1, memory)
    read = MomentSums()
    for bucket, factor in zip(buckets, factors.tolist(), strict=True):
        read = read.merge(discounted(bucket, factor))

    assert read.weight == pytest.approx(forgetting.weight, rel=1 / 8)
    assert read.pair / read.weight == pytest.approx(forgetting.pair / forgetting.weight, rel=0.02)
    assert read.estimate().zero == pytest.approx(forgetting.estimate().zero, abs=0.005)


def tracking_errors(errors: FloatArray, seed: int, n_experts: int = 12, step: int = 25) -> dict[float, float]:
    """Mean square distance of η̂ from the current η, by memory; each expert's error rate is as given, question by
    question, and the estimate is read after every ``step`` of them."""
    rng = np.random.default_rng(seed)
    outcomes = rng.random(errors.size) < 0.5
    votes = votes_of(rng, outcomes, np.broadcast_to(errors[:, None], (errors.size, n_experts)))
    rows = moment_rows(votes, others_majority(rng, votes))
    truth = [majority_error(np.full(n_experts, error)) for error in errors[step - 1 :: step].tolist()]
    found = {}
    for memory in (300.0, 1000.0, math.inf):
        factor = forgetting_factor(memory) ** step
        sums, squares = MomentSums(), []
        for bucket, rate in zip(np.split(rows, errors.size // step, axis=1), truth, strict=True):
            sums = discounted(sums, factor).merge(moment_sums(bucket))
            squares.append((sums.estimate().zero - rate) ** 2)
        found[memory] = float(np.mean(squares[500 // step :]))
    return found


def root_mean_tracking_errors(errors: FloatArray, seeds: int) -> list[float]:
    runs = [list(tracking_errors(errors, seed).values()) for seed in range(seeds)]
    return np.sqrt(np.mean(runs, axis=0)).tolist()  # type: ignore[no-any-return] # a list of floats


def test_a_steady_rate_is_read_best_with_all_memory() -> None:
    """Memory 300, 1,000, ∞: .027, .017, .0135 known; the order is what must be."""
    short, medium, all_of_it = root_mean_tracking_errors(np.full(4000, 0.42), seeds=8)

    assert all_of_it < medium < short


def test_a_rate_that_steps_down_is_read_best_with_a_short_memory() -> None:
    """From .42 to .28 halfway; memory 300, 1,000, ∞: .050, .061, .111 known."""
    short, medium, all_of_it = root_mean_tracking_errors(np.repeat([0.42, 0.28], 2000), seeds=8)

    assert short < medium < all_of_it
    assert all_of_it > 1.5 * short

"""One misled class, seen in the votes: what is found, how often without reason, and what cannot be."""

import math

import numpy as np
import pytest

from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.dependence import DependenceSums, class_errors

N_EXPERTS = 9
FEEDS = 60


def sums_of(yes: BoolArray) -> DependenceSums:
    """Moments of the votes for yes, (questions, experts)."""
    counts, n = yes.sum(axis=1).astype(float), yes.shape[1]
    moments = np.ones((len(yes), 4))
    for k in range(4):
        moments[:, k:] *= ((counts - k) / (n - k))[:, None]
    rows = np.column_stack((np.ones((len(yes), 2)), moments))
    return DependenceSums(np.stack([rows[subsample::25].sum(axis=0) for subsample in range(25)]))


def skills(rng: np.random.Generator) -> FloatArray:
    return np.clip(rng.normal(0.75, 0.07, N_EXPERTS), 0.55, 0.92)


def alarms(seed: int, questions: int, world: str, n_feeds: int = FEEDS) -> float:
    """Share of feeds in which the outcome 1 is said to be misled."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(n_feeds):
        outcome, skill = rng.random(questions) < 0.5, skills(rng)
        right = np.broadcast_to(skill, (questions, N_EXPERTS))
        if world == "coins on ones":
            right = np.where(outcome[:, None], 0.5, skill)
        elif world == "a little worse on ones":
            right = np.where(outcome[:, None], skill - 0.08, skill + 0.08)
        elif world == "misled together on half of the ones":
            together = outcome & (rng.random(questions) < 0.5)
            right = np.where(together[:, None], 1 - skill, skill)
        yes = (rng.random((questions, N_EXPERTS)) < right) == outcome[:, None]
        errors = class_errors(sums_of(yes), N_EXPERTS)
        found += errors is not None and errors.misled_outcome is not None
        if errors is not None and errors.misled_outcome is not None:
            assert errors.misled_outcome == 1
    return found / n_feeds


def test_the_rates_of_two_kinds_of_questions_come_back() -> None:
    """Of a mixture of two points as it is: no sampling."""
    subsamples = np.empty((25, 6))
    moments = [0.4 * 0.5**k + 0.6 * 0.1**k for k in range(1, 5)]
    subsamples[:] = [40.0, 40.0, *(40.0 * moment for moment in moments)]

    found = class_errors(DependenceSums(subsamples), 9.0)

    assert found is not None
    assert found.one == pytest.approx(0.5, abs=1e-9)
    assert found.zero == pytest.approx(sum(math.comb(9, k) * 0.9**k * 0.1 ** (9 - k) for k in range(5)), abs=1e-9)


@pytest.mark.parametrize("questions", [300, 1000])
def test_experts_who_err_alike_raise_no_alarm(questions: int) -> None:
    assert alarms(1, questions, "alike", 300 if questions == 300 else FEEDS) == 0.0


@pytest.mark.parametrize("questions", [300, 1000])
def test_a_crowd_that_is_a_little_worse_on_one_outcome_raises_next_to_none(questions: int) -> None:
    assert alarms(2, questions, "a little worse on ones") <= 0.1


@pytest.mark.parametrize(("questions", "least"), [(300, 0.4), (1000, 0.9)])
def test_a_crowd_of_coins_on_one_outcome_is_found(questions: int, least: float) -> None:
    assert alarms(3, questions, "coins on ones") >= least


def test_a_crowd_that_is_misled_together_cannot_be_told_from_one_that_is_right() -> None:
    """Its votes are those of a crowd of the same skill on questions of which a quarter have the outcome 1."""
    assert alarms(4, 1000, "misled together on half of the ones") == 0.0


def test_few_questions_say_nothing() -> None:
    rng = np.random.default_rng(5)

    assert class_errors(sums_of(rng.random((150, N_EXPERTS)) < 0.5), N_EXPERTS) is None
    assert class_errors(sums_of(np.ones((400, N_EXPERTS), bool)), N_EXPERTS) is None


def test_one_subsample_says_nothing() -> None:
    subsamples = np.zeros((25, 6))
    moments = [0.4 * 0.5**k + 0.6 * 0.1**k for k in range(1, 5)]
    subsamples[7] = [400.0, 400.0, *(400.0 * moment for moment in moments)]

    assert class_errors(DependenceSums(subsamples), 9.0) is None

"""Who follows the crowd is nearer to it than who thinks for himself."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.dependence.followers import (
    CrowdSums,
    crowd_distances,
    crowd_sums,
    find_followers,
    find_repeaters,
)


class Told(NamedTuple):
    sums: CrowdSums
    scatter: FloatArray
    present: BoolArray


def told(forecasts: FloatArray, before: Sequence[float] | None = None) -> Told:
    n_questions, n = forecasts.shape
    said = [] if before is None else [[x] for x in before]
    found = crowd_distances(np.clip(forecasts, 0.0, 1.0).reshape(-1), np.full(n_questions, n), said)
    near, apart, present = found.near.reshape(-1, n), found.apart.reshape(-1, n), np.ones(forecasts.shape, np.bool_)
    return Told(crowd_sums(near, apart, found.scatter, present, -np.ones(forecasts.shape)), found.scatter, present)


def crowd(rng: np.random.Generator, questions: int, experts: int) -> FloatArray:
    """Forecasts around what everybody knows of a question, with errors of their own."""
    known = 0.5 + 0.2 * rng.standard_normal(questions)
    said: FloatArray = np.clip(known[:, None] + 0.2 * rng.standard_normal((questions, experts)), 0.01, 0.99)
    return said


@pytest.mark.case("C16")
@pytest.mark.parametrize("n_followers", [1, 2, 5])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_copies_of_what_the_crowd_said_before_are_found_and_nobody_else(n_followers: int, noise: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        first = crowd(rng, 60, 10)
        now = np.clip(first + 0.05 * rng.standard_normal(first.shape), 0.0, 1.0)
        mix = first.mean(axis=1)
        copied = mix[:, None] + noise * rng.standard_normal((60, n_followers))

        found = find_followers(*told(np.concatenate((now, copied), axis=1), mix.tolist()))

        assert found.tolist() == list(range(10, 10 + n_followers))


@pytest.mark.parametrize("experts", [5, 10, 40])
def test_who_knows_what_all_the_others_know_and_errs_for_himself_alone_is_let_be(experts: int) -> None:
    """The nearest that an honest expert can come: the crowd's opinion without anybody's own errors."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        known = rng.uniform(0.2, 0.8, 100)
        others = known[:, None] + 0.1 * rng.standard_normal((100, experts))

        assert not len(find_followers(*told(np.concatenate((others, known[:, None]), axis=1))))


@pytest.mark.parametrize("seed", range(20))
def test_who_is_in_the_middle_of_experts_who_are_always_above_or_below_is_let_be(seed: int) -> None:
    """All of them say the same but for what is theirs for good: the mean of that is no scatter."""
    rng = np.random.default_rng(seed)
    known = rng.uniform(0.3, 0.7, 100)
    always = 0.15 * rng.standard_normal(12)
    others = known[:, None] + always - always.mean() + 0.02 * rng.standard_normal((100, 12))

    assert not len(find_followers(*told(np.concatenate((others, known[:, None]), axis=1))))


def test_an_expert_whom_the_mix_follows_does_not_follow_it() -> None:
    rng = np.random.default_rng(2)
    forecasts = crowd(rng, 100, 8)

    assert not len(find_followers(*told(forecasts, forecasts[:, 3].tolist())))


def test_an_alarm_ends_at_twice_the_distance_at_which_it_began() -> None:
    rng = np.random.default_rng(3)
    forecasts = crowd(rng, 200, 10)
    mean = forecasts.mean(axis=1)
    rms = float(np.sqrt(told(forecasts).scatter.mean()))
    counts = {}
    for share in (0.3, 0.5, 0.9):
        near = mean + share * rms * rng.standard_normal(200)
        given = told(np.concatenate((forecasts, near[:, None]), axis=1))
        counts[share] = [len(find_followers(*given)), len(find_followers(*given, [10]))]

    assert counts == {0.3: [1, 1], 0.5: [0, 1], 0.9: [0, 0]}


def test_few_questions_small_crowds_and_crowds_of_one_mind_tell_nothing() -> None:
    rng = np.random.default_rng(4)
    forecasts = crowd(rng, 60, 6)
    with_mean = np.concatenate((forecasts, forecasts.mean(axis=1)[:, None]), axis=1)

    assert find_followers(*told(with_mean)).tolist() == [6]
    assert not len(find_followers(*told(with_mean[:39])))
    assert not len(find_followers(*told(np.full((60, 6), 0.5))))
    assert crowd_distances(np.array([0.1, 0.2, 0.15]), np.array([3])).scatter.tolist() == [0.0]


def first_forecasts(repeated: FloatArray) -> CrowdSums:
    none = np.zeros(repeated.shape)
    return crowd_sums(none, none, np.zeros(len(repeated)), np.ones(repeated.shape, np.bool_), repeated)


def test_repeaters_come_within_a_third_of_the_usual_distance_of_what_was_published() -> None:
    rng = np.random.default_rng(3)
    apart = rng.normal(0.0, np.array([0.0, 0.05, 0.09, 0.2, 0.2]), (200, 5))
    sums = first_forecasts((apart * apart).clip(0.0, 1.0))

    assert find_repeaters(sums, 0.04).tolist() == [0, 1]
    assert find_repeaters(sums, 0.04, [2, 3]).tolist() == [0, 1, 2]


def test_repeaters_are_judged_by_40_questions_to_which_they_came_late() -> None:
    repeated = np.full((60, 2), -1.0)
    repeated[:40, 0] = repeated[:39, 1] = 0.0
    sums = first_forecasts(repeated)

    assert find_repeaters(sums, 0.04).tolist() == [0]
    assert not len(find_repeaters(sums, 0.0))

"""Who says the same, found by the product and by a slow twin of it, in random crowds."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from stream_peer.numerics.arguments import IntArray, SmallIntArray
from stream_peer.numerics.dependence.blocks import find_blocks
from stream_peer.numerics.dependence.copies import Copies, find_copies
from stream_peer.numerics.dependence.followers import crowd_distances, crowd_sums, find_followers, find_repeaters
from tests.hypothesis_profiles import examples
from tests.slow_guard import Asked, Blocks, Crowd, Group, Votes, copies, upper_median

SEEDS = st.integers(0, 2**32 - 1)


def crowd(seed: int) -> tuple[SmallIntArray, list[list[int]]]:
    """Votes, and who is of one mind: experts of some skill, and clones that go their own way now and then."""
    rng = np.random.default_rng(seed)
    n, n_experts, n_clones = int(rng.integers(45, 121)), int(rng.integers(4, 8)), rng.choice([0, 3, 3, 4], size=2)
    truth = np.where(rng.random(n) < rng.choice([0.5, 0.3]), -1, 1)
    columns = [np.where(rng.random(n) < rng.uniform(0.05, 0.4), -truth, truth) for _ in range(n_experts)]
    for size in n_clones:
        mind, own = np.where(rng.random(n) < rng.uniform(0.3, 0.5), -truth, truth), rng.choice([0.0, 0.1, 0.2])
        columns += [np.where(rng.random(n) < own * rng.uniform(0.5, 2.0), -mind, mind) for _ in range(size)]
    votes = np.array(columns).T
    absent = rng.random(votes.shape) < rng.choice([0.0, 0.0, 0.1, 0.3])
    votes[absent] = 0
    order = rng.permutation(votes.shape[1])
    place = np.argsort(order)
    ends = n_experts + np.cumsum([0, *n_clones])
    minds = [sorted(place[first:last].tolist()) for first, last in pairwise(ends)]
    return votes.astype(np.int8)[:, order], [mind for mind in minds if mind]


def named(votes: SmallIntArray) -> Votes:
    return [{f"e{k:02}": int(v) for k, v in enumerate(row) if v} for row in votes]


def groups_of(found: Sequence[Copies]) -> list[Group]:
    return [Group(tuple(names_of(one.experts)), *one[1:]) for one in found]


def check(fast: Sequence[Copies], slow: Sequence[Group]) -> None:
    assert [one.experts for one in groups_of(fast)] == [one.experts for one in slow]
    for one, other in zip(groups_of(fast), slow, strict=True):
        assert one[1:] == pytest.approx(other[1:], abs=1e-9)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[SmallIntArray, list[list[int]], IntArray]:
    """Votes, groups that were known before, and teams."""
    votes, minds = crowd(draw(SEEDS))
    columns = range(votes.shape[1])
    known, taken = list[list[int]](), set[int]()
    for mind in minds if draw(st.booleans()) else ():
        group = {*mind, *draw(st.sets(st.sampled_from(columns), max_size=1))} - taken
        taken |= group
        known.append(sorted(group))
    teams = draw(st.lists(st.integers(-5, 1), min_size=len(columns), max_size=len(columns)))
    return votes, [group for group in known if len(group) > 1], np.array(teams, dtype=np.int64)


def names_of(columns: Iterable[int]) -> list[str]:
    return [f"e{k:02}" for k in columns]


@settings(max_examples=examples(60))
@given(crowds())
def test_copies_are_those_that_the_formulas_find(made: tuple[SmallIntArray, list[list[int]], IntArray]) -> None:
    votes, known, teams = made
    found = find_copies(votes, known, teams)
    event(f"{len(found)} groups")

    check(
        found,
        copies(
            named(votes),
            [names_of(group) for group in known],
            {f"e{k:02}": str(team) for k, team in enumerate(teams) if team >= 0},
        ),
    )


@settings(max_examples=examples(60))
@given(crowds())
def test_blocks_are_those_that_the_formulas_find(made: tuple[SmallIntArray, list[list[int]], IntArray]) -> None:
    votes, known, teams = made
    found = find_blocks(votes, known, teams)
    event(f"{len(found)} blocks")

    check(
        found,
        Blocks(
            named(votes),
            [names_of(group) for group in known],
            {f"e{k:02}": str(team) for k, team in enumerate(teams) if team >= 0},
        ).found(),
    )


@settings(max_examples=examples(100))
@given(seed=SEEDS, before=st.sets(st.integers(0, 6)))
def test_followers_and_repeaters_are_those_that_the_formulas_find(seed: int, before: set[int]) -> None:
    """Some experts say nearly what the mean of the others is, or what a mix that they lean to has been."""
    rng = np.random.default_rng(seed)
    n, own, near = int(rng.integers(40, 80)), rng.uniform(0.02, 0.3, size=7), rng.random(7) < 0.3
    asked, nears, aparts, scatter = list[Asked](), np.zeros((n, 7)), np.zeros((n, 7)), np.zeros(n)
    present = rng.random((n, 7)) < rng.choice([1.0, 0.8])
    repeated, came_late = np.zeros((n, 7)), rng.random((n, 7)) < 0.9
    for row in range(n):
        crowd = rng.uniform(0.2, 0.8)
        said = np.clip(crowd + own * rng.normal(size=7), 0.0, 1.0)
        mix, figures = float(np.clip(said.mean() + 0.01 * rng.normal(), 0.0, 1.0)), rng.random(6)
        said = np.where(near, mix + rng.choice([0.0, 0.5]) * (said - mix), said)
        there = np.flatnonzero(present[row])
        if len(there):
            found = crowd_distances(said[there], np.array([len(there)]), [[mix]])
            nears[row, there], aparts[row, there], (scatter[row],) = found.near, found.apart, found.scatter
        first = np.where(near, figures[0] + 0.05 * rng.normal(size=7), rng.random(7)).clip(0.0, 1.0)
        repeated[row] = np.square(first[:, None] - figures).min(axis=1)
        late = {f"e{k:02}": (float(first[k]), figures.tolist()) for k in np.flatnonzero(came_late[row])}
        asked.append(Asked({f"e{k:02}": float(said[k]) for k in there}, {}, {}, [mix], late))
    crowd_of, known = Crowd(asked, ()), names_of(sorted(before))

    sums = crowd_sums(nears, aparts, scatter, present, np.where(came_late, repeated, -1.0))
    followers = find_followers(sums, scatter, present, sorted(before))
    usual = present.sum(axis=0) >= 40
    median = upper_median(np.square(aparts).sum(axis=0)[usual] / present.sum(axis=0)[usual]) if usual.any() else 0.0
    repeaters = find_repeaters(sums, median, sorted(before))

    event(f"{len(followers)} followers, {len(repeaters)} repeaters")
    assert names_of(followers) == crowd_of.followers(known)
    assert names_of(repeaters) == crowd_of.repeaters(known)

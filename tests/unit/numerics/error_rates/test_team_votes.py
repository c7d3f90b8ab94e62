import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.numerics.arguments import IntArray, SmallIntArray
from stream_peer.numerics.dependence.fourth_moment import vote_moments_of_teams
from stream_peer.numerics.error_rates import (
    agreement_of_teams,
    class_moment_terms,
    class_terms_of_teams,
    moment_terms,
    share_of_ones,
    team_votes,
)
from tests.reference.plain_formulas import vote_moments

ballots = st.lists(st.tuples(st.sampled_from([-1, 0, 1, 1]), st.sampled_from([0, 1]), st.integers(-2, 4)), min_size=1)


def columns(cast: list[tuple[int, int, int]]) -> tuple[SmallIntArray, SmallIntArray, IntArray]:
    votes, answers, teams = zip(*cast, strict=True)
    return np.array(votes, np.int8), np.array(answers, np.int8), np.array(teams, np.int64)


def by_team(cast: list[tuple[int, int, int]]) -> list[list[tuple[int, int]]]:
    """Votes and answers of the voters of each team."""
    teams: dict[object, list[tuple[int, int]]] = {}
    for place, (vote, answer, team) in enumerate(cast):
        if vote:
            teams.setdefault(team if team >= 0 else ("alone", place), []).append((vote, answer))
    return list(teams.values())


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@given(ballots)
def test_pairs_are_of_experts_of_different_teams_each_two_teams_counting_alike(
    cast: list[tuple[int, int, int]],
) -> None:
    teams = by_team(cast)
    found = agreement_of_teams(team_votes(*columns(cast)))

    if len(teams) < 2:
        assert found is None
        return
    assert found is not None
    pairs = [mean([a * b for (a, _), (b, _) in product(one, two)]) for one, two in combinations(teams, 2)]
    assert found.pair == pytest.approx(mean(pairs), abs=1e-12)
    assert found.rest == pytest.approx(mean([mean([v * (2 * a - 1) for v, a in t]) for t in teams]), abs=1e-12)


@given(ballots)
def test_triples_are_of_experts_of_three_teams(cast: list[tuple[int, int, int]]) -> None:
    teams = by_team(cast)
    found = class_terms_of_teams(team_votes(*columns(cast)))

    if len(teams) < 3:
        assert found is None
        return
    assert found is not None
    for size, value in enumerate(found[:3], 1):
        tuples = [
            mean([float(all(v > 0 for v, _ in chosen)) for chosen in product(*group)])
            for group in combinations(teams, size)
        ]
        assert value == pytest.approx(mean(tuples), abs=1e-12)
    assert 0.0 <= found.third <= found.second <= found.first <= 1.0
    assert found.answer == pytest.approx(mean([mean([float(a) for _, a in t]) for t in teams]), abs=1e-12)
    assert found.both == pytest.approx(mean([mean([float(a and v > 0) for v, a in t]) for t in teams]), abs=1e-12)


@given(ballots)
def test_fours_are_of_experts_of_four_teams(cast: list[tuple[int, int, int]]) -> None:
    teams = by_team(cast)
    found = vote_moments_of_teams(team_votes(*columns(cast)))

    if len(teams) < 4:
        assert found is None
        return
    assert found is not None
    for size, value in enumerate(found, 1):
        shares = [mean([float(v > 0) for v, _ in team]) for team in teams]
        products = [math.prod(chosen) for chosen in combinations(shares, size)]
        assert value == pytest.approx(mean(products), abs=1e-12)


@given(ballots)
def test_without_a_team_of_two_all_terms_are_those_without_teams_bit_for_bit(cast: list[tuple[int, int, int]]) -> None:
    votes, answers, _ = columns(cast)
    for teams in (np.full(len(cast), -1), np.arange(len(cast)) * 7):
        found = team_votes(votes, answers, teams)
        assert agreement_of_teams(found) == moment_terms(votes, answers)
        assert class_terms_of_teams(found) == class_moment_terms(votes, answers)
        assert vote_moments_of_teams(found) == vote_moments(votes)
        assert share_of_ones(answers, teams) == share_of_ones(answers)


@given(ballots, st.randoms(use_true_random=False), st.permutations(range(5)))
def test_neither_the_order_of_experts_nor_the_numbers_of_teams_change_a_bit(
    cast: list[tuple[int, int, int]], random: object, names: list[int]
) -> None:
    shuffled = [(v, a, t if t < 0 else names[t]) for v, a, t in cast]
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    one, other = team_votes(*columns(cast)), team_votes(*columns(shuffled))

    assert agreement_of_teams(one) == agreement_of_teams(other)
    assert class_terms_of_teams(one) == class_terms_of_teams(other)
    assert share_of_ones(*columns(cast)[1:]) == share_of_ones(*columns(shuffled)[1:])

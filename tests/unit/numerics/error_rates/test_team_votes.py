import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.numerics.answers import without_own
from stream_peer.numerics.arguments import FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.dependence import vote_moments
from stream_peer.numerics.dependence.fourth_moment import vote_moments_of_teams
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    ClassMomentTerms,
    MomentSums,
    MomentTerms,
    agreement_of_teams,
    class_moment_terms,
    class_terms_of_teams,
    moment_terms,
    share_of_ones,
    team_votes,
)

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


SIZES = {"four of three": [3] * 4, "nine and three": [9, 1, 1, 1], "of thirty": [10, 10, *([1] * 10)]}


class Stream:
    """Simulated questions: experts whose errors are independent given the outcome, members that copy a team-mate."""

    def __init__(self, sizes: list[int], *, share_of_ones: float, seed: int, questions: int = 5000) -> None:
        rng = np.random.default_rng(seed)
        self.teams = np.repeat(np.arange(len(sizes)), sizes)
        self.outcomes = rng.random(questions) < share_of_ones
        errors = rng.uniform(0.15, 0.4, (2, len(sizes)))[:, self.teams]
        right = rng.random((questions, len(self.teams))) > errors[self.outcomes.astype(int)]
        leaders = np.searchsorted(self.teams, self.teams)
        right = np.where(rng.random(right.shape) < 0.5, right[:, leaders], right)
        self.votes = np.where(right == self.outcomes[:, None], 1, -1).astype(np.int8)
        self.coins = rng.integers(0, 2, questions)

    def answers(self, teams: IntArray | None) -> IntArray:
        lead = without_own(self.votes.astype(np.int64), teams)
        return np.where(lead == 0, self.coins[:, None], lead > 0).astype(np.int8)

    def measured(self, teams: IntArray | None) -> tuple[float, float, float]:
        """Error rates of own answers, each team counting once: overall, of zeros, of ones."""
        answers = self.answers(teams)
        shares = answers if teams is None else answers[:, np.searchsorted(teams, np.unique(teams))]
        wrong = np.asarray(shares != self.outcomes[:, None]).mean(axis=1)
        return float(wrong.mean()), float(wrong[~self.outcomes].mean()), float(wrong[self.outcomes].mean())

    def symmetric(self, teams: IntArray | None) -> float:
        rows = [
            moment_terms(v, a) if teams is None else agreement_of_teams(team_votes(v, a, teams))
            for v, a in zip(self.votes, self.answers(teams), strict=True)
        ]
        return _merged(MomentSums, rows).estimate().zero

    def of_classes(self, teams: IntArray | None) -> tuple[float, float]:
        rows = [
            class_moment_terms(v, a) if teams is None else class_terms_of_teams(team_votes(v, a, teams))
            for v, a in zip(self.votes, self.answers(teams), strict=True)
        ]
        rate = _merged(ClassMomentSums, rows).estimate()
        return rate.zero, rate.one


def _merged(
    kind: type[MomentSums] | type[ClassMomentSums], rows: list[MomentTerms | None] | list[ClassMomentTerms | None]
) -> MomentSums | ClassMomentSums:
    terms: FloatArray = np.array(rows, dtype=np.float64)
    upper = np.triu_indices(terms.shape[1])
    products = (terms.T @ terms)[upper].tolist()
    if kind is MomentSums:
        products = [products[0], products[2], products[1]]
    n = float(len(terms))
    return kind(n, n, *np.add.reduce(terms, axis=0).tolist(), *products)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_leaving_teams_out_mends_symmetric_rates_where_members_copy(sizes: list[int]) -> None:
    """Mean absolute error: far below that without teams, whatever the sizes of the teams and their skills."""
    errors, careless = [], []
    for seed in range(4):
        stream = Stream(sizes, share_of_ones=0.5, seed=seed)
        teams = stream.teams
        errors.append(abs(stream.symmetric(teams) - stream.measured(teams)[0]))
        careless.append(abs(stream.symmetric(None) - stream.measured(None)[0]))

    assert mean(errors) < 0.012
    assert mean(careless) > 2.0 * mean(errors)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_leaving_teams_out_mends_rates_of_each_class_where_members_copy(sizes: list[int]) -> None:
    errors: list[float] = []
    careless: list[float] = []
    for seed in range(4):
        stream = Stream(sizes, share_of_ones=0.25, seed=seed)
        for teams, into in ((stream.teams, errors), (None, careless)):
            _, *measured = stream.measured(teams)
            into.append(mean([abs(a - b) for a, b in zip(stream.of_classes(teams), measured, strict=True)]))

    assert mean(errors) < 0.035
    assert mean(careless) > 1.5 * mean(errors)

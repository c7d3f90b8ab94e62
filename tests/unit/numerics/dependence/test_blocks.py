"""Blocks of clones that each go their own way now and then are found, and nobody else is called one."""

from typing import Any

import numpy as np
import pytest

from stream_peer.numerics.arguments import FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.dependence import blocks as module
from stream_peer.numerics.dependence.blocks import find_blocks
from stream_peer.numerics.dependence.copies import Copies, find_copies
from stream_peer.numerics.dependence.suspicion import Tallies, covariances


def crowd(random: np.random.Generator, questions: int, experts: int, yes: float = 0.5) -> SmallIntArray:
    truth = np.where(random.random(questions) < yes, 1, -1)
    wrong = random.random((questions, experts)) < random.uniform(0.1, 0.4, experts)
    return (np.where(wrong, -1, 1) * truth[:, None]).astype(np.int8)


def attacked(seed: int, questions: int, clones: int, own: float, experts: int = 8) -> SmallIntArray:
    """Some experts, and behind them clones of a mind that errs in 40 %; in a share ``own`` each errs for itself."""
    random = np.random.default_rng(seed)
    truth = np.where(random.random(questions) < 0.5, 1, -1)
    honest = np.where(random.random((questions, experts)) < random.uniform(0.1, 0.4, experts), -1, 1)
    mind = np.where(random.random((questions, 1)) < 0.4, -1, 1)
    alone = np.where(random.random((questions, clones)) < 0.4, -1, 1)
    said = np.where(random.random((questions, clones)) < own, alone, mind)
    return (np.hstack([honest, said]) * truth[:, None]).astype(np.int8)


def looks(votes: SmallIntArray, every: int = 25) -> list[tuple[int, list[Copies]]]:
    """What a feed would find, look by look."""
    known: list[Copies] = []
    found = []
    for end in range(every, len(votes) + 1, every):
        known = find_blocks(votes[max(0, end - 512) : end], [block.experts for block in known])
        found.append((end, known))
    return found


@pytest.mark.parametrize("own", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("seed", range(4))
def test_clones_that_go_their_own_way_in_15_percent_are_named_by_question_150(seed: int, own: float) -> None:
    clones = set(range(8, 16))
    named = [(end, block.experts) for end, blocks in looks(attacked(seed, 400, 8, own)) for block in blocks if blocks]

    first = min(end for end, experts in named if len(clones.intersection(experts)) >= 0.8 * len(clones))
    assert first <= 150
    assert all(len(set(experts) - clones) <= 1 for _, experts in named)
    assert sum(end > 150 for end, _ in named) == 10


def test_pairs_of_such_clones_are_no_copies() -> None:
    votes = attacked(0, 150, 8, 0.15)

    assert not find_copies(votes)
    assert find_blocks(votes)


@pytest.mark.parametrize("experts", [6, 12, 24])
@pytest.mark.parametrize("coverage", [1.0, 0.5])
@pytest.mark.parametrize("yes", [0.5, 0.2])
def test_of_independent_experts_nobody_is_named_in_2500_questions(experts: int, coverage: float, yes: float) -> None:
    random = np.random.default_rng([experts, int(10 * coverage), int(10 * yes)])
    votes = crowd(random, 2500, experts, yes)
    votes[random.random(votes.shape) >= coverage] = 0

    assert not [end for end, blocks in looks(votes) if blocks]


def test_two_camps_without_witnesses_are_no_blocks() -> None:
    random = np.random.default_rng(5)
    camps = np.where(random.random((300, 2)) < 0.5, -1, 1).repeat(5, axis=1)

    assert not find_blocks((camps * np.where(random.random(camps.shape) < 0.05, -1, 1)).astype(np.int8))


def test_experts_who_are_hardly_ever_wrong_are_no_block() -> None:
    random = np.random.default_rng(6)
    truth = np.where(random.random((400, 1)) < 0.5, -1, 1)
    errors = np.array([0.02, 0.02, 0.03, 0.03, 0.3, 0.35, 0.3, 0.4, 0.35])

    assert not find_blocks((truth * np.where(random.random((400, 9)) < errors, -1, 1)).astype(np.int8))


def test_a_block_goes_on_with_less_than_it_began_with_and_lets_go_who_leaves_it() -> None:
    votes = attacked(1, 300, 6, 0.1)
    votes[:, 13] = votes[np.random.default_rng(1).permutation(300), 13]

    ((block,), fresh) = find_blocks(votes, [(8, 9, 10, 11, 12, 13)]), find_blocks(votes)

    assert block.experts == (8, 9, 10, 11, 12)
    assert [one.experts for one in fresh] == [block.experts]


def in_team(*members: int, experts: int = 13) -> IntArray:
    teams = np.full(experts, -1)
    teams[list(members)] = 3
    return teams


def test_a_declared_team_is_no_block_nor_with_one_expert_more() -> None:
    votes = attacked(2, 300, 5, 0.1)

    for team in (range(8, 13), range(8, 12), range(9, 13)):
        assert [block.experts for block in find_blocks(votes, [range(8, 13)])] == [(8, 9, 10, 11, 12)]
        assert not find_blocks(votes, [range(8, 13)], in_team(*team))


def test_a_team_and_two_experts_more_are_a_block_with_all_members_who_voted() -> None:
    votes = attacked(2, 300, 6, 0.1)
    votes[:, 9] = 0  # of the team
    votes[20:, 10] = 0

    for known in ([], [(10, 12, 13)]):
        ((block,), alone) = (find_blocks(votes, known, teams) for teams in (in_team(8, 9, 10, 11, experts=14), None))
        assert block.experts == (8, 10, 11, 12, 13)
        assert [one.experts for one in alone] == [(8, 11, 12, 13)]


@pytest.mark.parametrize("seed", range(6))
def test_an_expert_is_no_part_of_a_block_since_it_is_a_little_like_a_team(seed: int) -> None:
    """Their own agreement alone would carry the mean over pairs, with a neighbour in it."""
    votes = attacked(seed, 400, 4, 0.05)
    near = np.random.default_rng(seed).random(400) < 0.4
    votes[near, 7] = votes[near, 8]

    assert not find_blocks(votes, [range(7, 12)], in_team(8, 9, 10, 11, experts=12))


def test_of_teams_of_one_blocks_are_those_without_teams() -> None:
    votes = attacked(4, 200, 6, 0.1)

    assert find_blocks(votes, [], np.random.default_rng(4).permutation(14)) == find_blocks(votes) != []


def test_two_clones_are_left_to_the_test_of_pairs() -> None:
    votes = attacked(3, 300, 2, 0.0)

    assert not find_blocks(votes)
    assert [group.experts for group in find_copies(votes)] == [(8, 9)]


def test_blocks_are_found_in_any_order_of_experts() -> None:
    votes = attacked(4, 200, 6, 0.1)
    order = np.random.default_rng(4).permutation(votes.shape[1])

    (block,), (shuffled,) = find_blocks(votes), find_blocks(votes[:, order])

    assert sorted(order[list(shuffled.experts)].tolist()) == list(block.experts)


def test_of_many_experts_each_part_has_its_turn_and_known_blocks_are_always_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    votes = attacked(5, 300, 6, 0.05)
    monkeypatch.setattr(module, "_AT_A_LOOK", 7)

    by_turn = [find_blocks(votes, [], None, turn) for turn in (0, 1)]
    known = find_blocks(votes, [(8, 9, 10, 11, 12, 13)], None, 0)

    assert [block.experts for found in by_turn for block in found] == [(8, 10, 12), (9, 11, 13)]
    assert [block.experts for block in known] == [(8, 9, 10, 11, 12, 13)]


@pytest.mark.parametrize("there", [1.0, 0.6])
def test_48_witnesses_find_the_blocks_that_all_of_120_experts_would(
    there: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[int, list[list[tuple[int, ...]]]] = {}
    for most in (48, 1000):
        monkeypatch.setattr(module, "MOST", most)
        for seed in range(4):
            votes = attacked(seed, 300, 4, 0.1, experts=120)
            votes[np.random.default_rng(seed).random(votes.shape) >= there] = 0
            found.setdefault(most, []).append([block.experts for block in find_blocks(votes)])

    assert found[48] == found[1000] == 4 * [[(120, 121, 122, 123)]]


def test_covariances_are_computed_once_a_look_however_many_groups_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = np.hstack([attacked(seed, 200, 3, 0.1) for seed in range(6)])
    known = [tuple(range(first, first + 3)) for first in range(8, votes.shape[1], 11)]
    calls = list[int]()

    def counted(tallies: Tallies) -> FloatArray:
        calls.append(len(tallies.common))
        return covariances(tallies)

    monkeypatch.setattr(module, "covariances", counted)

    assert find_blocks(votes, known)
    assert len(calls) == 2


@pytest.mark.parametrize(("size", "at_most"), [(2000, 256), (100, 256 + 200)])
def test_two_thousand_known_members_are_looked_at_only_as_far_as_they_fit(
    size: int, at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes = np.hstack([crowd(np.random.default_rng(7), 40, 2560), np.ones((40, 2000), np.int8)])
    known = [range(start, start + size) for start in range(2560, 4560, size)]
    columns, tree = list[int](), module._tree

    def counted(agreement: FloatArray) -> Any:
        columns.append(len(agreement))
        return tree(agreement)

    monkeypatch.setattr(module, "_tree", counted)

    find_blocks(votes, known)

    assert len(columns) == 1
    assert columns[0] <= at_most


def test_the_smallest_known_groups_are_those_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = attacked(5, 300, 6, 0.05)
    monkeypatch.setattr(module, "_AT_A_LOOK", 7)
    monkeypatch.setattr(module, "_OF_KNOWN", 6)
    large = [0, 1, 2, 3, 4, 5, 6]

    (block,) = find_blocks(votes, [large, (8, 9, 10, 11, 12, 13)], None, 0)

    assert block.experts == (8, 9, 10, 11, 12, 13)


def test_without_votes_enough_nobody_is_named() -> None:
    assert not find_blocks(np.zeros((0, 0), np.int8))
    assert not find_blocks(attacked(6, 24, 8, 0.0))

"""Copies are found, exactly they, and nobody else is called one."""

import numpy as np
import pytest

from stream_peer.numerics.arguments import FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.dependence import copies
from stream_peer.numerics.dependence import copies as module
from stream_peer.numerics.dependence.copies import Copies, copies_among, find_copies
from stream_peer.numerics.dependence.in_pieces import done_at_once
from stream_peer.numerics.dependence.suspicion import PairTallies, covariances, suspicion, tallies, witnesses
from stream_peer.numerics.dependence.vote_bits import VoteBits

GOOD = 4


def outcomes(rng: np.random.Generator, questions: int, yes: float = 0.5) -> IntArray:
    return np.where(rng.random(questions) < yes, 1, -1)


def votes_of(rng: np.random.Generator, truth: IntArray, errors: FloatArray) -> SmallIntArray:
    wrong = rng.random((len(truth), len(errors))) < errors
    return (np.where(wrong, -1, 1) * truth[:, None]).astype(np.int8)


def clone_attack(seed: int, questions: int, n_copies: int, alike: float = 1.0) -> SmallIntArray:
    """Four good experts, and copies of a bad one, each of which says its own now and then."""
    rng = np.random.default_rng(seed)
    truth = outcomes(rng, questions)
    good = votes_of(rng, truth, np.full(GOOD, 0.15))
    leader, own = votes_of(rng, truth, np.array([0.35])), votes_of(rng, truth, np.full(n_copies, 0.35))
    return np.concatenate((good, np.where(rng.random(own.shape) < alike, leader, own)), axis=1)


def looks(votes: SmallIntArray, every: int = 25) -> list[tuple[int, list[Copies]]]:
    """What a feed would find, look by look."""
    known: list[Copies] = []
    found = []
    for end in range(every, len(votes) + 1, every):
        known = find_copies(votes[max(0, end - 512) : end], [group.experts for group in known])
        found.append((end, known))
    return found


@pytest.mark.case("C16")
@pytest.mark.parametrize("alike", [1.0, 0.99])
@pytest.mark.parametrize("n_copies", [2, 3, 4, 5, 6])
def test_copies_are_named_within_two_hundred_questions_and_nobody_else(n_copies: int, alike: float) -> None:
    everyone = tuple(range(GOOD, GOOD + n_copies))
    for seed in range(5):
        found = looks(clone_attack(seed, 400, n_copies, alike))

        named = [(end, [group.experts for group in groups]) for end, groups in found if groups]
        assert named[0][0] <= 200
        assert all(set(group) <= set(everyone) for _, groups in named for group in groups)
        assert all(groups == [everyone] for end, groups in named if end >= 200)
        (last,) = found[-1][1]
        assert last.agreement > 0.95
        assert last.expected < 0.5


@pytest.mark.parametrize("clones", [4, 40, 400])
def test_copies_in_any_number_are_found(clones: int) -> None:
    *_, (_, (group,)) = looks(clone_attack(3, 400, clones, 0.99))

    assert group.experts == tuple(range(GOOD, GOOD + clones))


def test_who_slides_into_copying_is_found_before_it_copies_for_long() -> None:
    rng = np.random.default_rng(1)
    truth = outcomes(rng, 2600)
    votes = votes_of(rng, truth, rng.uniform(0.1, 0.35, 10))
    share = np.minimum(np.arange(2600) / 2000, 1.0)
    votes[:, 9] = np.where(rng.random(2600) < share, votes[:, 2], votes[:, 9])

    first = next(end for end, groups in looks(votes) if groups)

    assert 1200 < first <= 2250
    assert [group.experts for group in looks(votes)[-1][1]] == [(2, 9)]


def test_a_group_that_parts_is_none_any_more_but_not_at_the_first_difference() -> None:
    attack, apart = clone_attack(5, 600, 3), clone_attack(6, 1200, 3, alike=0.0)
    found = looks(np.concatenate((attack, apart)))

    ends = [end for end, groups in found if groups]
    assert [group.experts for group in found[23][1]] == [(4, 5, 6)]
    assert 625 < ends[-1] < 1150
    assert not find_copies(np.concatenate((attack, apart))[ends[-1] - 512 : ends[-1]])  # it would not be found anew


@pytest.mark.parametrize("seed", range(30))
def test_independent_experts_are_left_alone(seed: int) -> None:
    """However skilled they are, however rare a yes, however seldom they answer."""
    rng = np.random.default_rng(seed)
    n_experts = int(rng.integers(6, 61))
    truth = outcomes(rng, 2000, float(rng.choice([0.5, 0.3, 0.1, 0.03, 0.9])))
    errors = rng.uniform(0.05, 0.48, n_experts)
    errors[: 2 + seed % 4] = rng.uniform(0.0, 0.02, 2 + seed % 4)  # a near-perfect few among weak ones
    votes = votes_of(rng, truth, errors)
    votes[rng.random(votes.shape) > rng.uniform(0.1, 1.0, n_experts)] = 0

    assert not any(groups for _, groups in looks(votes, every=100))


def test_experts_who_find_the_same_questions_hard_are_no_copies() -> None:
    rng = np.random.default_rng(4)
    truth = outcomes(rng, 1000)
    hard = 1.5 * rng.standard_normal(1000)[:, None]
    chance = 1.0 / (1.0 + np.exp(-(1.2 + 0.4 * rng.standard_normal(12) + hard)))
    votes = (np.where(rng.random((1000, 12)) < chance, 1, -1) * truth[:, None]).astype(np.int8)

    assert not any(groups for _, groups in looks(votes))


def test_without_two_witnesses_there_is_no_alarm() -> None:
    votes = clone_attack(2, 400, 3)

    assert find_copies(votes[:, [0, 4, 5, 6]]) == []
    assert find_copies(votes[:, [0, 1, 4, 5, 6]])[0].experts == (2, 3, 4)


def test_another_cluster_counts_as_one_witness() -> None:
    """Else a larger cluster of copies would make honest experts look dependent."""
    rng = np.random.default_rng(8)
    truth = outcomes(rng, 512)
    votes = votes_of(rng, truth, np.array([0.1, 0.1, 0.1, 0.45, 0.4]))
    crowd = np.concatenate(
        (votes[:, :3], np.repeat(votes[:, 3:4], 9, axis=1), np.repeat(votes[:, 4:], 5, axis=1)), axis=1
    )

    assert sorted(done_at_once(witnesses(PairTallies(crowd.astype(np.float32)))).tolist()) == [0, 1, 2, 3, 12]
    assert [group.experts for group in find_copies(crowd)] == [tuple(range(3, 12)), tuple(range(12, 17))]


def test_a_team_need_not_be_found() -> None:
    votes = clone_attack(2, 400, 3)

    assert find_copies(votes, teams=np.array([-1, -1, 0, 0, 7, 7, 7])) == []
    assert find_copies(votes, teams=np.array([-1, -1, -1, -1, 7, 7, -1]))[0].experts == (4, 5, 6)


def test_chunks_are_looked_through_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 5)
    votes = clone_attack(2, 400, 2)
    votes = np.concatenate((votes[:, 4:5], votes[:, :4], clone_attack(9, 400, 6)[:, :4], votes[:, 5:]), axis=1)

    found = [[group.experts for group in find_copies(votes, turn=turn)] for turn in range(3)]

    assert found == [[], [(0, 9)], []]
    assert find_copies(votes, known=[(0, 9)], turn=2)[0].experts == (0, 9)


def test_covariances_of_independent_votes_are_products_whatever_the_classes() -> None:
    rng = np.random.default_rng(3)
    truth = outcomes(rng, 200_000, 0.2)
    wrong = np.where(truth[:, None] > 0, [0.3, 0.1, 0.4, 0.2], [0.05, 0.2, 0.1, 0.3])
    votes = np.where(rng.random(wrong.shape) < wrong, -1, 1) * truth[:, None]
    found = covariances(tallies(votes.astype(np.float32), votes.astype(np.float32)))

    assert found[0, 1] == pytest.approx(found[0, 2] * found[1, 3] / found[2, 3], abs=0.01)


def test_suspicion_agrees_with_a_slow_twin() -> None:
    votes = clone_attack(7, 300, 2, 0.9)
    heard = [0, 1, 2, 3]
    centred = votes - votes.mean(axis=0)
    cov = centred.T @ centred / len(votes)
    pairs_of_witnesses = [(k, m) for k in heard for m in heard if k != m]
    above = sum(cov[4, k] * cov[5, m] for k, m in pairs_of_witnesses)
    shared = above / sum(cov[k, m] for k, m in pairs_of_witnesses)
    means = votes.mean(axis=0)

    found = done_at_once(suspicion(PairTallies(votes.astype(np.float32)), np.array([[4, 5]]), np.array(heard)))

    assert found.expected[0] == pytest.approx(0.5 * (1.0 - means[4] * means[5] - shared), abs=1e-12)
    assert found.disagreement[0] == pytest.approx(float((votes[:, 4] != votes[:, 5]).mean()), abs=1e-12)


def test_pairs_that_chance_alone_explains_are_not_judged_by_parts_of_the_questions() -> None:
    votes = PairTallies(clone_attack(7, 300, 2, 0.9).astype(np.float32))
    pair, heard = np.array([[4, 5]]), np.array([0, 1, 2, 3])

    (z,) = done_at_once(suspicion(votes, pair, heard)).z

    assert done_at_once(suspicion(votes, pair, heard, least=z)).z == [z]
    assert done_at_once(suspicion(votes, pair, heard, least=10 * z)).z == [-np.inf]


@pytest.mark.parametrize("questions", [10, 103, 700])
def test_tallies_of_parts_add_up_to_those_of_all_questions(questions: int) -> None:
    votes = np.random.default_rng(questions).integers(-1, 2, (questions, 70)).astype(np.float32)

    for of_all, of_parts in zip(tallies(votes, votes[:, :9]), tallies(votes, votes[:, :9], 10), strict=True):
        assert of_parts.shape == (10, 70, 9)
        assert np.array_equal(of_parts.sum(axis=0), of_all)
    last = votes[-(questions // 10) :]
    assert np.array_equal(tallies(votes, votes, 10).product[-1], last.T @ last)


@pytest.mark.parametrize("questions", [40, 63, 64, 300])
def test_bits_tell_of_pairs_what_tallies_do(questions: int) -> None:
    generator = np.random.default_rng(questions)
    votes = generator.choice(np.array([-1, 0, 1], np.int8), (questions, 30), p=[0.2, 0.1, 0.7])
    votes[:, 20] = votes[:, 3]
    by_bits, counted = VoteBits(votes), tallies(votes, votes)
    pairs = np.array([(3, 20), (0, 29), (7, 7), (29, 0)])
    both_yes, both_no, yes_no, no_yes = by_bits.of_pairs(pairs)
    assert np.array_equal(both_yes + both_no - yes_no - no_yes, counted.product[pairs[:, 0], pairs[:, 1]])
    assert np.array_equal(both_yes + yes_no - both_no - no_yes, counted.left[pairs[:, 0], pairs[:, 1]])
    assert np.array_equal(by_bits.said, counted.common.diagonal())
    apart = (counted.common - counted.product) / 2.0
    assert np.array_equal(by_bits.disagreements(np.arange(2, 9), np.arange(30)), apart[2:9])


@pytest.mark.parametrize("exact_first", [64, 100_000])
@pytest.mark.parametrize("yes", [0.5, 0.3])
def test_of_very_many_experts_the_same_copies_are_found_though_most_pairs_are_only_glanced_at(
    yes: float, exact_first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(5)
    truth = np.where(generator.random(200) < yes, 1, -1)
    crowd = np.where(generator.random((200, 300)) < generator.uniform(0.05, 0.4, 300), -1, 1) * truth[:, None]
    crowd[generator.random(crowd.shape) < 0.2] = 0
    votes = crowd.astype(np.int8)
    votes[:, 250] = votes[:, 17]
    counted = tallies(votes, votes)
    every_pair = done_at_once(copies_among(votes, (), None, 0, counted))
    monkeypatch.setattr(copies, "_EXACT_FIRST", exact_first)
    found = find_copies(votes)
    assert (17, 250) in [group.experts for group in found]
    assert found == every_pair

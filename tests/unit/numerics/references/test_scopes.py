import itertools

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray, IntArray
from stream_peer.numerics.peer_losses import unbiased_peer_loss
from stream_peer.numerics.references import (
    ReferenceRule,
    answers_of_all,
    answers_of_groups,
    answers_of_other_group,
    answers_of_others,
    ballots,
)

ALL_RULES = [(rule, None if rule == "majority" else np.array([2.0, 1.0, 1.0])) for rule in ReferenceRule]


@pytest.mark.case("C15")
@pytest.mark.parametrize("rule", ReferenceRule)
def test_without_experts_there_is_no_answer(rule: ReferenceRule) -> None:
    nobody = ballots(np.zeros(0), rule, weights=None if rule == "majority" else np.zeros(0))

    assert not answers_of_all(nobody, 1).given
    assert answers_of_others(nobody, 1).answers.shape == (0,)
    assert not any(group.given for group in answers_of_groups(nobody, np.zeros(0, dtype=np.bool_), (1, 1)))


@pytest.mark.case("C15")
@pytest.mark.parametrize(("rule", "weights"), ALL_RULES)
def test_an_expert_alone_has_no_reference(rule: ReferenceRule, weights: FloatArray | None) -> None:
    alone = ballots(np.array([0.9]), rule, weights=None if weights is None else weights[:1])

    for coin in (0, 1):
        others = answers_of_others(alone, coin)
        assert [part.tolist() for part in others] == [[coin], [True], [False]]
    assert [part.item() for part in answers_of_all(alone, 0)] == [1, False, True]


@pytest.mark.case("C15")
@pytest.mark.parametrize(("rule", "weights"), ALL_RULES)
def test_of_two_experts_each_is_the_others_reference(rule: ReferenceRule, weights: FloatArray | None) -> None:
    pair = ballots(np.array([0.9, 0.3]), rule, weights=None if weights is None else weights[:2])

    others = answers_of_others(pair, coin=0)

    assert [part.tolist() for part in others] == [[0, 1], [False, False], [True, True]]


@pytest.mark.case("C15")
@pytest.mark.parametrize(("rule", "weights"), ALL_RULES)
@pytest.mark.parametrize("in_a", [True, False])
def test_an_empty_group_gives_no_answer(rule: ReferenceRule, weights: FloatArray | None, in_a: bool) -> None:
    members = np.full(3, in_a)
    with np.errstate(all="raise"):
        groups = answers_of_groups(ballots(np.array([0.9, 0.8, 0.4]), rule, weights=weights), members, (0, 0))
        crossed = answers_of_other_group(groups, members)

    assert (bool(groups.a.given), bool(groups.b.given)) == (in_a, not in_a)
    assert not crossed.given.any()


def test_a_group_whose_members_are_all_absent_gives_no_answer() -> None:
    forecasts = np.array([[0.9, 0.8, np.nan], [0.9, np.nan, 0.4]])
    found = answers_of_groups(ballots(forecasts, present=~np.isnan(forecasts)), np.array([True, True, False]), (0, 0))

    assert found.a.given.tolist() == [True, True]
    assert found.b.given.tolist() == [False, True]


def test_each_group_is_asked_for_the_other() -> None:
    forecasts, in_a = np.array([0.9, 0.8, 0.7, 0.2, 0.1]), np.array([True, False, True, False, False])

    groups = answers_of_groups(ballots(forecasts), in_a, (0, 0))

    assert (int(groups.a.answers), int(groups.b.answers)) == (1, 0)
    assert answers_of_other_group(groups, in_a).answers.tolist() == [0, 1, 0, 1, 1]


def test_groups_may_be_drawn_afresh_each_round() -> None:
    forecasts = np.array([[0.9, 0.8, 0.1], [0.9, 0.8, 0.1]])
    in_a = np.array([[True, True, False], [False, True, True]])

    groups = answers_of_groups(ballots(forecasts, "mean"), in_a, (0, 0))

    assert groups.a.answers.tolist() == [1, 0]
    assert groups.b.answers.tolist() == [0, 1]
    assert answers_of_other_group(groups, in_a).answers.tolist() == [[0, 0, 1], [0, 1, 1]]


def test_tied_groups_each_have_their_own_coin() -> None:
    tied = ballots(np.array([0.75, 0.25, 0.75, 0.25]))

    groups = answers_of_groups(tied, np.array([True, True, False, False]), coins=(1, 0))

    assert (int(groups.a.answers), int(groups.b.answers)) == (1, 0)
    assert groups.a.ties
    assert groups.b.ties


def test_memberships_and_teams_must_be_one_per_expert() -> None:
    three = ballots(np.array([0.9, 0.8, 0.4]))

    with pytest.raises(FormulaInputError, match=r"\(2,\)"):
        answers_of_groups(three, np.array([True, False]), (0, 0))
    with pytest.raises(FormulaInputError, match=r"\(4,\)"):
        answers_of_others(three, 0, np.zeros(4, dtype=np.int64))


def test_e22_scoring_against_the_other_group_is_exactly_unbiased() -> None:
    """Exact: hard votes with known errors in two groups of unlike size; the expected unbiased loss is the error."""
    errors, in_a = np.array([0.20, 0.45, 0.35, 0.30, 0.40]), np.array([True, False, True, True, False])
    right = np.array(list(itertools.product((0.0, 1.0), repeat=5)))
    probability = np.prod(np.where(right == 1.0, 1 - errors, errors), axis=1)
    rounds = ballots(right)

    wrong, answers = np.zeros(5), []
    for coins in ((0, 0), (0, 1), (1, 0), (1, 1)):
        answers.append(answers_of_other_group(answers_of_groups(rounds, in_a, coins), in_a).answers)
        wrong += 0.25 * probability @ (answers[-1] == 0)

    for member, error in enumerate(errors):
        rate = float(wrong[member])
        votes = right[:, member]
        sides = (votes - 1.0) ** 2, votes**2
        losses = [unbiased_peer_loss(np.abs(votes - a[:, member]), *sides, rate, rate) for a in answers]
        assert float(np.mean([probability @ loss for loss in losses])) == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("coin", [2, np.array([0, 1, 0]), np.array([0, 3])])
def test_every_round_has_a_coin_that_is_0_or_1(coin: int | IntArray) -> None:
    cast = ballots(np.array([[0.9, 0.1], [0.5, 0.5]]))

    with pytest.raises(FormulaInputError, match="coin"):
        answers_of_all(cast, coin)
    with pytest.raises(FormulaInputError, match="coin"):
        answers_of_others(cast, coin)
    with pytest.raises(FormulaInputError, match="coin"):
        answers_of_groups(cast, np.array([True, False]), (0, coin))

"""How often reference answers are wrong, and how that reads in losses: exact where votes are all that matters."""

import itertools
from math import comb
from typing import Any

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.reference_rules import (
    ReferenceRule,
    answers_of_all,
    answers_of_groups,
    answers_of_other_group,
    answers_of_others,
    ballots,
)
from stream_peer.numerics.answers import leave_one_out
from stream_peer.numerics.arguments import FloatArray, SmallIntArray
from stream_peer.numerics.peer_losses import unbiased_peer_loss
from tests.reference.plain_formulas import vote_weights

UNIT = 2**40


@pytest.mark.case("C10")
@pytest.mark.parametrize(("sure", "answer"), [(0.9, 1), (0.1, 0)])
def test_opposite_hard_forecasts_among_five_thousand_leave_the_decision_to_the_others(sure: float, answer: int) -> None:
    """Unclipped, both products would be 0. Clipped, the 0 and the 1 cancel, and the other 4,998 decide."""
    forecasts = np.full(5_000, sure)
    forecasts[[17, 4_321]] = 0.0, 1.0

    with np.errstate(all="raise"):
        found = ballots(forecasts, ReferenceRule.PRODUCT)
        everybody = answers_of_all(found, 1 - answer)
        others = answers_of_others(found, 1 - answer)

    assert found.values[17] == -found.values[4_321] == round(-np.log(49.0) * UNIT)
    assert (int(everybody.answers), bool(everybody.ties)) == (answer, False)
    assert np.all(others.answers == answer)


@pytest.mark.case("C10")
def test_opposite_hard_forecasts_among_thousands_without_opinion_leave_the_decision_to_the_coin() -> None:
    forecasts = np.full(5_000, 0.5)
    forecasts[[17, 4_321]] = 0.0, 1.0
    found = ballots(forecasts, ReferenceRule.PRODUCT)

    for coin in (0, 1):
        others = answers_of_others(found, coin)
        assert int(answers_of_all(found, coin).answers) == coin
        assert (others.answers[17], others.answers[4_321]) == (1, 0)
        assert np.all(np.delete(others.answers, [17, 4_321]) == coin)


def test_weighting_by_log_odds_errs_least_among_all_votes_of_five() -> None:
    """Exact: no other answer to the 32 vote patterns of known errors is right more often than the likelier outcome."""
    errors = np.array([0.1, 0.2, 0.3, 0.4, 0.45])
    patterns = ((np.arange(32)[:, np.newaxis] >> np.arange(5)) % 2).astype(np.float64)
    if_one = np.prod(np.where(patterns == 1, 1 - errors, errors), axis=1)
    if_zero = np.prod(np.where(patterns == 0, 1 - errors, errors), axis=1)

    answers = answers_of_all(ballots(patterns, "weighted", weights=vote_weights(errors)), 0).answers

    error_rate = 0.5 * np.sum(np.where(answers == 1, if_zero, if_one))
    assert error_rate == pytest.approx(0.5 * np.sum(np.minimum(if_one, if_zero)), abs=1e-12)
    assert np.array_equal(answers, if_one > if_zero)


@pytest.mark.parametrize(
    ("rule", "weights", "fault"),
    [
        ("median", None, "'median', not one of majority, weighted, mean, product"),
        ("weighted", None, "'weighted' needs weights"),
        ("majority", np.ones(2), "'majority' takes no weights"),
        ("mean", np.array([1.0, np.nan]), "nan"),
        ("product", np.array([1.0, -np.inf]), "-inf"),
        ("weighted", np.array([1.0, 16.5]), "16.5"),
    ],
)
def test_rules_refuse_what_they_cannot_use(rule: str, weights: np.ndarray[Any, Any] | None, fault: str) -> None:
    with pytest.raises(FormulaInputError, match=fault):
        ballots(np.array([0.4, 0.6]), rule, weights=weights)


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


def binomial(size: int, error: float) -> FloatArray:
    """Chances that 0, 1, … of so many independent votes are right."""
    return np.array([comb(size, k) * (1 - error) ** k * error ** (size - k) for k in range(size + 1)])


def patterns_of_alike(size: int, error: float) -> tuple[FloatArray, FloatArray]:
    """Votes of experts alike, of whom the first k are right, with their chances; the outcome is 1."""
    right = (np.arange(size) < np.arange(size + 1)[:, np.newaxis]).astype(np.float64)
    return right, binomial(size, error)


def patterns_of_three_kinds(size: int) -> tuple[FloatArray, FloatArray]:
    """The same for errors .20, .45, and .35 of all others, who are exchangeable."""
    alike, chances = patterns_of_alike(size - 2, 0.35)
    first_two = [(a, b) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    right = np.vstack([np.column_stack([np.tile(pair, (len(alike), 1)), alike]) for pair in first_two])
    chance = [(0.8 if a else 0.2) * (0.55 if b else 0.45) for a, b in first_two]
    return right, np.concatenate([c * chances for c in chance])


def read_as(right: FloatArray, chances: FloatArray, answers: list[SmallIntArray]) -> tuple[FloatArray, float]:
    """Expected unbiased loss at the common rate of answers under either fall of the coin, and that rate.

    For hard votes the loss is 1 where vote and answer differ, and the unbiased one ``(it - η)/(1 - 2η)``.
    """
    size = right.shape[1]
    differ = sum(0.5 * np.einsum("k,ki->i", chances, right != said) for said in answers)
    wrong = sum(0.5 * np.einsum("k,ki->i", chances, np.broadcast_to(said == 0, right.shape)) for said in answers)
    of_alike = np.asarray(wrong)[2:]
    rate = (float(np.asarray(wrong)[:2].sum()) + float(of_alike.mean()) * (size - 2)) / size
    found = (np.asarray(differ) - rate) / (1 - 2 * rate)
    return np.array([found[0], found[1], found[2:].mean()]), rate


@pytest.mark.parametrize(
    ("size", "readings", "rate"),
    [
        (3, (0.320, 0.433, 0.343), 0.333),
        (5, (0.263, 0.442, 0.347), 0.267),
        (11, (0.223, 0.448, 0.350), 0.163),
        (51, (0.201, 0.450, 0.350), 0.015),
    ],
)
def test_e22_leaving_one_out_reads_errors_nearly_as_they_are(
    size: int, readings: tuple[float, float, float], rate: float
) -> None:
    """Exact, for errors of .20, .45 and .35: the order stays and the best is only slightly compressed."""
    right, chances = patterns_of_three_kinds(size)

    found, common = read_as(right, chances, [leave_one_out(right, coin).answers for coin in (0, 1)])

    assert found == pytest.approx(readings, abs=6e-4)
    assert common == pytest.approx(rate, abs=6e-4)


@pytest.mark.parametrize(
    ("size", "readings"),
    [
        (3, (-0.116, 0.037, -0.086)),
        (5, (0.013, 0.206, 0.105)),
        (11, (0.127, 0.355, 0.256)),
        (51, (0.196, 0.445, 0.345)),
    ],
)
def test_e22_a_majority_that_an_expert_voted_in_flatters_it(size: int, readings: tuple[float, float, float]) -> None:
    """Exact, for the same errors: why experts are not scored against the published answer."""
    right, chances = patterns_of_three_kinds(size)
    everybody = ballots(right)

    found, _ = read_as(right, chances, [answers_of_all(everybody, coin).answers[:, np.newaxis] for coin in (0, 1)])

    assert found == pytest.approx(readings, abs=6e-4)


def wrong_of_alike(size: int, error: float, coin: int) -> tuple[float, float]:
    """Chances that the majority is wrong with this coin if the outcome is 1, and that it is tied."""
    right, chances = patterns_of_alike(size, error)
    found = answers_of_all(ballots(right), coin)
    return float(np.sum(chances * (found.answers == 0))), float(np.sum(chances * found.ties))


@pytest.mark.parametrize("k", [2, 3, 5, 25])
def test_with_a_fair_coin_an_even_room_errs_as_one_expert_fewer(k: int) -> None:
    even = 0.5 * sum(wrong_of_alike(2 * k, 0.35, coin)[0] for coin in (0, 1))

    assert even == pytest.approx(wrong_of_alike(2 * k - 1, 0.35, 0)[0], abs=1e-12)


@pytest.mark.parametrize(("size", "zero", "one"), [(4, 0.127, 0.437), (10, 0.095, 0.249), (50, 0.010, 0.021)])
def test_ties_that_always_go_to_zero_would_make_error_rates_depend_on_the_outcome(
    size: int, zero: float, one: float
) -> None:
    """By symmetry the rate for an outcome of 0 is that for 1 with the opposite coin."""
    assert wrong_of_alike(size, 0.35, coin=1)[0] == pytest.approx(zero, abs=6e-4)
    assert wrong_of_alike(size, 0.35, coin=0)[0] == pytest.approx(one, abs=6e-4)


@pytest.mark.parametrize(("size", "error_rate", "tied"), [(4, 0.183, 0.31), (10, 0.112, 0.15)])
def test_answers_that_are_not_tied_err_less(size: int, error_rate: float, tied: float) -> None:
    wrong, ties = wrong_of_alike(size, 0.35, coin=1)

    assert wrong / (1 - ties) == pytest.approx(error_rate, abs=6e-4)
    assert ties == pytest.approx(tied, abs=6e-3)


# Pools of forecasters whose signals N(±μ, 1) are independent given the outcome. The expected table was measured in 20
# runs of pools whose strengths μ are not written down; with these here calibrated pools err as it says. Both are noisy
# by about .005, hence the band. The pool of 50 weak ones is another one than theirs where votes alone are counted.


BAND = 0.015

RULES = ("majority", "product, unclipped", "product", "mean", "weighted")

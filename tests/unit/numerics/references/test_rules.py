import itertools
from typing import Any

import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.references import ReferenceRule, answers_of_all, answers_of_others, ballots, vote_weights

UNIT = 2**40


def said(forecasts: list[float], rule: str, coin: int = 0, **more: Any) -> tuple[int, bool]:
    found = answers_of_all(ballots(np.array(forecasts), rule, **more), coin)
    return int(found.answers), bool(found.ties)


def test_each_rule_has_its_own_answer() -> None:
    """Two lean to no, one is nearly sure of yes: .99 has log odds 3.9 (clipped), .2 has -1.4 and .1 has -2.2."""
    forecasts = [0.99, 0.2, 0.1]

    assert said(forecasts, "majority") == (0, False)
    assert said(forecasts, "mean") == (0, False)
    assert said(forecasts, "product") == (1, False)
    assert said(forecasts, "weighted", weights=np.array([3.0, 1.0, 1.0])) == (1, False)


def test_weights_below_zero_count_as_zero() -> None:
    """Else the first expert, who says yes, would be a second vote for no."""
    weights = np.array([-5.0, 1.0, 1.0, 0.5])

    found = ballots(np.array([0.9, 0.8, 0.3, 0.9]), "weighted", weights=weights)

    assert found.values.tolist() == [0, UNIT, -UNIT, UNIT // 2]


def test_tied_weights_go_to_the_side_on_which_all_voters_lie_on_average() -> None:
    weights = np.array([1.0, 1.0, 0.0])

    assert said([0.9, 0.2, 0.3], "weighted", 1, weights=weights) == (0, True)
    assert said([0.9, 0.2, 0.5], "weighted", 0, weights=weights) == (1, True)
    assert said([0.75, 0.25, 0.5], "weighted", 1, weights=weights) == (1, True)


def test_a_tied_product_goes_to_the_side_of_the_mean() -> None:
    """Of clipped forecasts, .98 twice and .02 twice, none prevails; .01 makes the mean less than one half."""
    assert said([1.0, 0.0, 0.98, 0.01], "product", 1) == (0, True)
    assert said([1.0, 0.0], "product", 1) == (1, True)
    assert said([1.0, 0.0], "product", 0) == (0, True)


def test_a_tied_mean_goes_to_the_coin() -> None:
    assert [said([0.75, 0.5, 0.25], "mean", coin) for coin in (0, 1)] == [(0, True), (1, True)]


def test_thirds_and_tenths_tie_only_if_their_units_do() -> None:
    """As floating-point numbers .1 + .2 exceeds .3; as units of 2^-40 nobody is favoured by the order of sums."""
    in_any_order = {said(list(order), "mean", 1) for order in itertools.permutations([0.6, 0.7, 0.2])}

    assert len(in_any_order) == 1


def test_log_odds_are_taken_relative_to_those_of_the_own_threshold() -> None:
    forecasts, thresholds = np.array([0.3, 0.1]), np.array([0.2, 0.2])

    found = ballots(forecasts, "product", thresholds=thresholds).values / UNIT

    assert found == pytest.approx([np.log(3 / 7 * 4), np.log(1 / 9 * 4)], abs=1e-12)


def test_a_forecast_beyond_a_threshold_that_is_clipped_alike_still_casts_a_ballot() -> None:
    found = ballots(np.array([1.0, 0.98]), "product", thresholds=np.array([0.99, 0.99]))

    assert found.values.tolist() == [1, -1]


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


@pytest.mark.parametrize("rule", ReferenceRule)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 10_000])
@pytest.mark.parametrize("value", [0.0, 1e-300, 0.5, 1.0])
def test_no_rule_minds_extremes(rule: ReferenceRule, size: int, value: float) -> None:
    weights = None if rule == "majority" else np.full(size, 16.0)

    with np.errstate(all="raise"):
        found = ballots(np.full(size, value), rule, weights=weights)
        answers = answers_of_others(found, 1).answers

    assert answers.shape == (size,)
    expected = 1 if size <= 1 or value >= 0.5 else 0
    assert np.all(answers == expected)


def test_votes_are_weighted_by_the_log_odds_of_being_right_and_never_inverted() -> None:
    found = vote_weights(np.array([0.0, 0.02, 0.2, 0.5, 0.9, 1.0]))

    assert found == pytest.approx([np.log(49), np.log(49), np.log(4), 0.0, 0.0, 0.0], abs=1e-13)


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


def test_wrong_numbers_are_refused_with_their_value() -> None:
    with pytest.raises(ForecastRangeError, match=r"1\.5"):
        ballots(np.array([[0.1, 0.2], [0.3, 1.5]]), "mean")
    with pytest.raises(FormulaInputError, match=r"-0\.25"):
        ballots(np.array([0.4, 0.6]), "mean", thresholds=np.array([0.5, -0.25]))
    with pytest.raises(FormulaInputError, match=r"1\.25"):
        vote_weights(np.array([0.1, 1.25]))


@pytest.mark.parametrize("name", ["thresholds", "weights", "present"])
def test_what_is_said_of_experts_fits_the_forecasts(name: str) -> None:
    with pytest.raises(FormulaInputError, match=f"{name} has the shape"):
        ballots(np.array([0.5, 0.4]), "mean", **{name: np.ones(3, dtype=np.bool_ if name == "present" else np.float64)})

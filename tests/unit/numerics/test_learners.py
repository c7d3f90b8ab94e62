import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.learners import fixed_share
from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs, hedge, hedge_rate, softmax


def test_it_never_overflows() -> None:
    assert softmax(np.array([-1e308, 0.0, 1e300])).tolist() == [0.0, 0.0, 1.0]


def test_a_prior_multiplies_and_need_not_sum_to_one() -> None:
    assert softmax(np.log([1.0, 2.0]), prior=np.array([6.0, 1.0])) == pytest.approx([0.75, 0.25], abs=1e-15)


def test_who_is_asleep_gets_nothing_even_when_best() -> None:
    assert softmax(np.array([0.0, 700.0, 0.0]), awake=np.array([True, False, True])).tolist() == [0.5, 0.0, 0.5]


def test_nobody_awake_gets_no_weight() -> None:
    found = softmax(np.zeros((2, 3)), awake=np.array([[False] * 3, [True] * 3]))

    assert found.tolist() == [[0.0] * 3, [1 / 3] * 3]


def test_no_weight_for_anybody_falls_back_on_the_prior_and_then_on_equality() -> None:
    nothing = np.full(3, -np.inf)

    assert softmax(nothing, prior=np.array([1.0, 0.0, 3.0])).tolist() == [0.25, 0.0, 0.75]
    assert softmax(nothing, prior=np.zeros(3)).tolist() == [1 / 3] * 3
    assert softmax(nothing).tolist() == [1 / 3] * 3


def test_a_prior_of_those_awake_that_is_all_nought_is_none() -> None:
    found = softmax(np.zeros(3), prior=np.array([0.0, 1.0, 0.0]), awake=np.array([True, False, True]))

    assert found.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_a_prior_out_of_range_is_refused_with_its_value(wrong: float) -> None:
    with pytest.raises(FormulaInputError, match=str(wrong)):
        softmax(np.zeros(2), prior=np.array([1.0, wrong]))


def test_a_log_that_is_no_number_is_refused() -> None:
    with pytest.raises(FormulaInputError, match="within"):
        softmax(np.array([0.0, np.nan]))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_an_empty_pool_has_no_weights(shape: tuple[int, ...]) -> None:
    assert softmax(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("logs", [[0.0, np.inf], [-np.inf, np.inf], [np.inf, np.inf]])
def test_a_log_without_end_is_refused_and_nothing_is_warned_of(logs: list[float]) -> None:
    with pytest.raises(FormulaInputError, match="is inf"):
        softmax(np.array([[0.0, 0.0], logs]))


def test_who_is_asleep_may_have_any_log() -> None:
    assert softmax(np.array([0.0, np.inf, np.nan]), awake=np.array([True, False, False])).tolist() == [1.0, 0.0, 0.0]


def test_without_regrets_all_weigh_the_same() -> None:
    assert ada_normal_hedge(np.zeros(4), np.zeros(4)).tolist() == [0.25] * 4


def test_weights_are_differences_of_exponentials() -> None:
    regrets, absolute = np.array([3.0, 0.5, -0.5, 1.0]), np.array([4.0, 2.0, 1.0, 1.0])
    above, below = np.maximum(regrets + 1, 0) ** 2, np.maximum(regrets - 1, 0) ** 2
    plain = np.exp(above / (3 * (absolute + 1))) - np.exp(below / (3 * (absolute + 1)))

    np.testing.assert_allclose(ada_normal_hedge(regrets, absolute), plain / plain.sum(), rtol=1e-12)


def test_who_lags_by_one_or_more_gets_nothing() -> None:
    weights = ada_normal_hedge(np.array([0.0, -1.0, -7.0]), np.array([1.0, 1.0, 7.0]))

    assert weights.tolist() == [1.0, 0.0, 0.0]


def test_all_that_lag_weigh_the_same() -> None:
    assert ada_normal_hedge(np.array([-1.0, -3.0]), np.array([2.0, 5.0])).tolist() == [0.5, 0.5]


def test_an_expert_barely_above_the_limit_does_no_harm() -> None:
    weights = ada_normal_hedge(np.array([np.nextafter(-1.0, 0.0), 0.0]), np.array([1.0, 1.0]))

    assert weights == pytest.approx([0.0, 1.0], abs=1e-12)


def test_huge_regrets_stay_numbers() -> None:
    weights = ada_normal_hedge(np.array([1e6, 1e6 - 1, -1e6]), np.array([1e6, 1e6, 1e6]))

    assert np.isfinite(weights).all()
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] > weights[1] > weights[2] == 0.0


def test_a_prior_multiplies_the_weights() -> None:
    regrets, absolute, prior = np.array([1.0, 2.0, 0.0]), np.array([3.0, 3.0, 3.0]), np.array([0.2, 0.0, 0.8])
    plain = prior * ada_normal_hedge(regrets, absolute)

    np.testing.assert_allclose(ada_normal_hedge(regrets, absolute, prior), plain / plain.sum(), rtol=1e-12)


def test_nobody_awake_gets_no_weights() -> None:
    assert ada_normal_hedge(np.zeros(0), np.zeros(0)).size == 0


def test_who_all_lag_get_their_shares_of_the_prior() -> None:
    weights = ada_normal_hedge(np.array([-1.0, -3.0, -2.0]), np.array([2.0, 5.0, 2.0]), np.array([1.0, 3.0, 0.0]))

    assert weights.tolist() == [0.25, 0.75, 0.0]


def test_who_all_lag_among_the_awake_share_alike() -> None:
    awake = np.array([True, False, True])

    assert ada_normal_hedge(np.array([-1.0, 9.0, -2.0]), np.ones(3), awake=awake).tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("where", [0, 2])
def test_a_regret_that_is_no_number_is_refused(where: int) -> None:
    regrets = np.array([2.0, 1.0, 0.5])
    regrets[where] = np.nan

    with pytest.raises(FormulaInputError, match=rf"regrets\[{where}\] is nan"):
        ada_normal_hedge(regrets, np.ones(3))


def test_logs_are_ratios_of_weights_that_no_float_can_hold() -> None:
    logs = ada_normal_hedge_logs(np.array([500.0, 0.0]), np.array([500.0, 500.0]))

    leader = 501**2 / 1503 + np.log(-np.expm1(-2000 / 1503))
    assert logs[0] - logs[1] == pytest.approx(leader - np.log(np.expm1(1 / 1503)))


@pytest.mark.parametrize("wrong", [-0.5, np.nan, np.inf])
def test_a_sum_of_absolute_values_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(FormulaInputError, match=f"is {wrong}"):
        ada_normal_hedge(np.ones(2), np.array([1.0, wrong]))


def test_a_trace_below_nought_is_rounding() -> None:
    found = ada_normal_hedge(np.array([1.0, 0.0]), np.array([1.0, -1e-12]))

    assert found == pytest.approx(ada_normal_hedge(np.array([1.0, 0.0]), np.array([1.0, 0.0])), abs=1e-9)


def test_a_regret_without_end_is_refused() -> None:
    with pytest.raises(FormulaInputError, match="is inf"):
        ada_normal_hedge(np.array([np.inf, 0.0]), np.ones(2))
    assert ada_normal_hedge(np.array([-np.inf, 0.0]), np.ones(2)).tolist() == [0.0, 1.0]


def test_the_textbook_rate_is_its_formula() -> None:
    assert hedge_rate(10, 5000) == pytest.approx(math.sqrt(8 * math.log(10) / 5000))
    assert hedge_rate(10, 5000, loss_range=1.5) == pytest.approx(math.sqrt(8 * math.log(10) / 5000) / 1.5)


def test_before_the_first_question_the_rate_is_that_of_the_first() -> None:
    assert hedge_rate(5, 0) == hedge_rate(5, 1)


def test_many_runs_have_rates_of_their_own() -> None:
    found = hedge_rate(3, np.array([[1], [4]]))

    assert np.asarray(found)[:, 0] == pytest.approx([math.sqrt(8 * math.log(3)), math.sqrt(2 * math.log(3))])


@pytest.mark.parametrize(("n_experts", "questions", "loss_range"), [(0, 1, 1.0), (2, -1, 1.0), (2, 1, 0.0)])
def test_a_rate_out_of_range_is_refused(n_experts: int, questions: int, loss_range: float) -> None:
    with pytest.raises(FormulaInputError, match="within"):
        hedge_rate(n_experts, questions, loss_range)


def test_hedge_is_exponential_weights_of_cumulative_losses() -> None:
    losses = np.array([3.0, 4.0, 10.0])

    weights = hedge(-losses, 0.3)

    plain = np.exp(-0.3 * losses)
    np.testing.assert_allclose(weights, plain / plain.sum(), rtol=1e-14)


@pytest.mark.parametrize("rate", [-0.1, math.inf, math.nan])
def test_a_learning_rate_out_of_range_is_refused(rate: float) -> None:
    with pytest.raises(FormulaInputError, match="learning_rate"):
        hedge(np.zeros(2), rate)


def test_a_sleeping_leader_sets_no_scale() -> None:
    """Behind a sleeper by 1e300 all others would look alike."""
    awake = np.array([False, True, True])

    assert hedge(np.array([1e300, 1.0, 0.0]), 1.0, awake=awake)[1:] == pytest.approx(
        [1 / (1 + math.exp(-1)), 0.26894142]
    )


def test_a_single_expert_has_all_weight() -> None:
    assert hedge(np.array([-5.0]), hedge_rate(1, 10)).tolist() == [1.0]


def test_weights_fall_with_losses_at_the_rate() -> None:
    rate = math.sqrt(8 * math.log(7) / 40)

    assert hedge(-np.array([0.0, 2.0]), hedge_rate(7, 40))[1] == pytest.approx(1 / (1 + math.exp(2 * rate)))


def test_fixed_share_is_its_formula() -> None:
    weights, regrets = np.array([0.2, 0.3, 0.5]), np.array([0.4, -0.1, -0.1])
    learned = weights * np.exp(2.0 * regrets)
    learned /= learned.sum()

    np.testing.assert_allclose(fixed_share(weights, regrets, 2.0, 0.1), 0.9 * learned + 0.1 / 3, rtol=1e-14)


def test_sleepers_keep_their_share_while_the_others_share_theirs() -> None:
    weights, awake = np.array([0.2, 0.3, 0.5]), np.array([True, True, False])

    found = fixed_share(weights, np.array([1.0, 0.0, 99.0]), 1.0, 0.2, awake)

    assert found[2] == 0.5
    assert found.sum() == pytest.approx(1.0)
    assert found[0] == pytest.approx(0.5 * (0.8 * (0.2 * math.e / (0.2 * math.e + 0.3)) + 0.1))


def test_nobody_awake_leaves_all_shares_alone() -> None:
    weights = np.array([0.2, 0.8])

    assert fixed_share(weights, np.zeros(2), 1.0, 0.2, np.zeros(2, dtype=np.bool_)).tolist() == [0.2, 0.8]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(FormulaInputError, match="share is"):
        fixed_share(np.array([1.0]), np.zeros(1), 1.0, share)


def test_a_regret_without_end_is_refused_of_those_that_are_awake() -> None:
    regrets = np.array([[1.0, 0.0], [np.inf, -np.inf]])

    with pytest.raises(FormulaInputError, match="within"):
        hedge(regrets, 0.1)
    assert hedge(regrets, 0.1, awake=np.array([False, True])).tolist() == [[0.0, 1.0], [0.0, 1.0]]

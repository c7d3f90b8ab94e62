import math

import numpy as np
import pytest

from stream_peer.lab.formulas.learners import fixed_share
from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs, hedge, hedge_rate, softmax


def test_a_prior_multiplies_and_need_not_sum_to_one() -> None:
    assert softmax(np.log([1.0, 2.0]), prior=np.array([6.0, 1.0])) == pytest.approx([0.75, 0.25], abs=1e-15)


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


def test_who_is_asleep_may_have_any_log() -> None:
    assert softmax(np.array([0.0, np.inf, np.nan]), awake=np.array([True, False, False])).tolist() == [1.0, 0.0, 0.0]


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


def test_a_prior_multiplies_the_weights() -> None:
    regrets, absolute, prior = np.array([1.0, 2.0, 0.0]), np.array([3.0, 3.0, 3.0]), np.array([0.2, 0.0, 0.8])
    plain = prior * ada_normal_hedge(regrets, absolute)

    np.testing.assert_allclose(ada_normal_hedge(regrets, absolute, prior), plain / plain.sum(), rtol=1e-12)


def test_nobody_awake_gets_no_weights() -> None:
    assert ada_normal_hedge(np.zeros(0), np.zeros(0)).size == 0


def test_who_all_lag_get_their_shares_of_the_prior() -> None:
    weights = ada_normal_hedge(np.array([-1.0, -3.0, -2.0]), np.array([2.0, 5.0, 2.0]), np.array([1.0, 3.0, 0.0]))

    assert weights.tolist() == [0.25, 0.75, 0.0]


def test_logs_are_ratios_of_weights_that_no_float_can_hold() -> None:
    logs = ada_normal_hedge_logs(np.array([500.0, 0.0]), np.array([500.0, 500.0]))

    leader = 501**2 / 1503 + np.log(-np.expm1(-2000 / 1503))
    assert logs[0] - logs[1] == pytest.approx(leader - np.log(np.expm1(1 / 1503)))


def test_a_trace_below_nought_is_rounding() -> None:
    found = ada_normal_hedge(np.array([1.0, 0.0]), np.array([1.0, -1e-12]))

    assert found == pytest.approx(ada_normal_hedge(np.array([1.0, 0.0]), np.array([1.0, 0.0])), abs=1e-9)


def test_the_textbook_rate_is_its_formula() -> None:
    assert hedge_rate(10, 5000) == pytest.approx(math.sqrt(8 * math.log(10) / 5000))
    assert hedge_rate(10, 5000, loss_range=1.5) == pytest.approx(math.sqrt(8 * math.log(10) / 5000) / 1.5)


def test_before_the_first_question_the_rate_is_that_of_the_first() -> None:
    assert hedge_rate(5, 0) == hedge_rate(5, 1)


def test_hedge_is_exponential_weights_of_cumulative_losses() -> None:
    losses = np.array([3.0, 4.0, 10.0])

    weights = hedge(-losses, 0.3)

    plain = np.exp(-0.3 * losses)
    np.testing.assert_allclose(weights, plain / plain.sum(), rtol=1e-14)


def test_a_sleeping_leader_sets_no_scale() -> None:
    """Behind a sleeper by 1e300 all others would look alike."""
    awake = np.array([False, True, True])

    assert hedge(np.array([1e300, 1.0, 0.0]), 1.0, awake=awake)[1:] == pytest.approx(
        [1 / (1 + math.exp(-1)), 0.26894142]
    )


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

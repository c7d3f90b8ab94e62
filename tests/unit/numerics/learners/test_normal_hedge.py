import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import ada_normal_hedge, ada_normal_hedge_logs


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

import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import fixed_share, hedge, hedge_rate


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

import math

import numpy as np
import pytest

from stream_peer.lab.formulas.gradients import (
    SlopeSums,
    gradient_hedge,
    gradient_normal_hedge,
    outcome_gradients,
    peer_gradients,
    shared_with_all,
)
from stream_peer.lab.formulas.regret_sums import RegretSums
from stream_peer.numerics.learners import ada_normal_hedge
from tests.reference.plain_formulas import peer_mixer

PEER = np.array([0.2, -0.1, -0.1])


def test_before_any_outcome_peers_are_taken_at_their_word() -> None:
    assert float(SlopeSums.nothing().estimate()) == 1.0
    assert SlopeSums.nothing(2).estimate().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("questions", [1, 4, 40])
def test_the_slope_is_a_regression_with_one_more_question_on_which_both_agree(questions: int) -> None:
    """True regrets are half of the peers': (questions·½ + 1)/(questions + 1)."""
    sums = SlopeSums.nothing()
    for _ in range(questions):
        sums = sums.merge(SlopeSums.contribution(0.5 * PEER, PEER))

    assert float(sums.estimate()) == pytest.approx((questions / 2 + 1) / (questions + 1))


def test_the_slope_stays_between_nothing_and_all() -> None:
    misled = SlopeSums.contribution(-3.0 * PEER, PEER, weight=9.0)
    timid = SlopeSums.contribution(3.0 * PEER, PEER, weight=9.0)

    assert float(misled.estimate()) == 0.0
    assert float(timid.estimate()) == 1.0


def test_peers_without_an_opinion_keep_the_slope_at_one() -> None:
    for nothing in (np.zeros(3), 1e-17 * PEER):
        assert float(SlopeSums.contribution(-PEER, nothing).estimate()) == pytest.approx(1.0, abs=1e-4)


EVEN = np.array([0.5, 0.5])
FORECASTS = np.array([0.9, 0.3])


def test_linearised_regrets_are_those_worked_out_by_hand() -> None:
    """f = .6, ŷ = 1: 2(.6 - 1)(.6 - p) is .24 for .9 and -.24 for .3. At η = .1 ỹ = 1.125, and -1.05·(±.3) x .8."""
    sums = peer_gradients(EVEN, FORECASTS, 1, (0.1, 0.1))

    assert sums.against.tolist() == pytest.approx([0.24, -0.24])
    assert sums.if_zero.tolist() == pytest.approx([2 * 0.6 * -0.3, 2 * 0.6 * 0.3])
    assert (sums.if_zero - sums.if_one).tolist() == pytest.approx([2 * -0.3, 2 * 0.3])
    assert sums.priced(0.1, 0.1).tolist() == pytest.approx([0.252, -0.252])


def test_exponential_weights_have_the_textbook_rate_of_the_answers_of_those_present() -> None:
    uniform, forecasts, rates = np.full(3, 1 / 3), np.array([0.9, 0.3, 0.6]), (0.2, 0.1)
    awake = np.array([True, True, False])
    sums = peer_gradients(uniform, forecasts, 1, rates, 7.0).merge(peer_gradients(uniform, forecasts, 1, rates, 2.0))
    rate = math.sqrt(8 * math.log(5) / (9 + 1))
    plain = np.exp(rate * sums.priced(0.2, 0.1)) * awake

    weights = gradient_hedge(sums, (0.2, 0.1), n_experts=5, awake=awake)

    assert weights.tolist() == pytest.approx((0.25 * awake + 0.5 * plain / plain.sum()).tolist())


def test_at_the_plain_mean_the_shadows_learn_from_the_same_regrets() -> None:
    """Equal weights make f = b: (1-2η)·SU + η·SV - SVY, at the rate of the textbook and with its share."""
    forecasts, answers = np.array([0.9, 0.2, 0.6]), np.array([1, 0, 0])
    uniform, mean = np.full(3, 1 / 3), forecasts.mean()
    v = 2 * (mean - forecasts)
    sums = peer_gradients(uniform, forecasts, answers, (0.35, 0.35))

    of_gradients = gradient_hedge(sums, (0.35, 0.35), n_experts=3)
    textbook = math.sqrt(8 * math.log(3) / 2) * (1 + 40)
    of_the_shadow = peer_mixer(mean * v, v, v * answers, np.ones(3), nominal=0.35, rate=textbook, uniform_share=0.5)

    np.testing.assert_allclose(of_gradients, of_the_shadow, rtol=1e-12)


def test_normal_hedge_on_outcomes_alone_takes_no_rates() -> None:
    truth = outcome_gradients(EVEN, FORECASTS, 0, (0.3, 0.1))

    weights = gradient_normal_hedge(truth, (0.0, 0.0), uniform_share=0.0)

    by_hand = ada_normal_hedge(np.array([-0.36, 0.36]), np.array([0.36, 0.36]))
    assert weights.tolist() == pytest.approx(by_hand.tolist())
    assert truth.frozen.tolist() == pytest.approx([-0.6 * 0.36, 0.6 * 0.36])


def test_mixing_keeps_two_experts_whose_errors_cancel() -> None:
    """One says .9 always, the other .1; outcomes alternate. Either loses .41, their mean .25."""
    forecasts, sums = np.array([0.9, 0.1]), RegretSums.nothing(2)
    for question in range(400):
        weights = gradient_normal_hedge(sums, (0.0, 0.0), uniform_share=0.0)
        sums = sums.merge(outcome_gradients(weights, forecasts, question % 2))

    assert gradient_normal_hedge(sums, (0.0, 0.0), uniform_share=0.0).tolist() == pytest.approx([0.5, 0.5], abs=0.02)


def test_a_share_goes_to_all_that_are_awake() -> None:
    weights = shared_with_all(np.array([1.0, 0.0, 0.0]), 0.5, np.array([True, True, False]))

    assert weights.tolist() == [0.75, 0.25, 0.0]


def test_where_nobody_is_awake_nobody_gets_weight() -> None:
    nobody, sums = np.zeros(2, dtype=np.bool_), RegretSums.nothing(2)

    assert gradient_hedge(sums, (0.2, 0.2), 2, awake=nobody).tolist() == [0.0, 0.0]
    assert gradient_normal_hedge(sums, (0.2, 0.2), awake=nobody).tolist() == [0.0, 0.0]
    assert gradient_hedge(RegretSums.nothing(0), (0.2, 0.2), 1).size == 0
    assert gradient_normal_hedge(RegretSums.nothing(0), (0.2, 0.2)).size == 0

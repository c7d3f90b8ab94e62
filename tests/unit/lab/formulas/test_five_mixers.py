import numpy as np
import pytest

from stream_peer.lab.formulas.five_mixers import FIVE_MIXERS_PRIOR, FiveMixerSums, hybrid_sums
from stream_peer.lab.formulas.gradients import (
    gradient_hedge,
    gradient_normal_hedge,
    outcome_gradients,
    peer_gradients,
)
from stream_peer.lab.formulas.regret_sums import RegretSums
from stream_peer.numerics.arguments import FloatArray

RATES = (0.2, 0.2)


def learned(
    forecasts: FloatArray, answers: FloatArray, outcomes: list[float | None], awake: FloatArray | None = None
) -> FiveMixerSums:
    """A history of questions, each forecast with the weights of all before it."""
    sums = FiveMixerSums.nothing(forecasts.shape[-1])
    present = np.ones(forecasts.shape) if awake is None else awake
    rows = zip(forecasts, answers, outcomes, present > 0.0, strict=True)
    for forecast, answer, outcome, awake_now in rows:
        weights = sums.weights(RATES, forecasts.shape[-1], awake_now)
        new = FiveMixerSums.contribution(weights, forecast, answer, RATES, awake_now, outcome)
        sums = sums.merge(new)
    return sums


def history(questions: int, n_experts: int) -> tuple[FloatArray, FloatArray, list[float]]:
    """The first expert knows, the others guess; answers are often wrong."""
    random = np.random.default_rng(5)
    outcomes = random.integers(2, size=questions)
    forecasts = random.uniform(0.2, 0.8, size=(questions, n_experts))
    forecasts[:, 0] = 0.1 + 0.8 * outcomes
    answers = np.where(random.random((questions, n_experts)) < 0.3, 1 - outcomes[:, None], outcomes[:, None])
    return forecasts, answers, [float(y) for y in outcomes]


def test_without_outcomes_the_mixers_have_their_prior() -> None:
    forecasts, answers, _ = history(30, 4)

    shares = learned(forecasts, answers, [None] * 30).weights(RATES, 4).shares

    assert shares.tolist() == pytest.approx(list(FIVE_MIXERS_PRIOR))
    assert sum(FIVE_MIXERS_PRIOR) == pytest.approx(1.0)


def test_every_mixer_is_the_one_that_it_would_be_alone() -> None:
    forecasts, answers, outcomes = history(40, 4)
    hedge, normal, truth = (RegretSums.nothing(4) for _ in range(3))
    for forecast, answer, outcome in zip(forecasts, answers, outcomes, strict=True):
        by_hedge, by_normal = gradient_hedge(hedge, RATES, 4), gradient_normal_hedge(normal, RATES)
        by_truth = gradient_normal_hedge(truth, (0.0, 0.0), 0.0)
        hedge = hedge.merge(peer_gradients(by_hedge, forecast, answer, RATES))
        normal = normal.merge(peer_gradients(by_normal, forecast, answer, RATES))
        truth = truth.merge(outcome_gradients(by_truth, forecast, outcome))

    mixers = learned(forecasts, answers, list(outcomes)).weights(RATES, 4).mixers

    expected = [np.full(4, 0.25), gradient_hedge(hedge, RATES, 4), gradient_normal_hedge(normal, RATES)]
    np.testing.assert_allclose(mixers[:3], expected, rtol=1e-12)
    np.testing.assert_allclose(mixers[3], gradient_normal_hedge(truth, (0.0, 0.0), 0.0), rtol=1e-12)


def test_outcomes_move_the_mix_to_those_who_know() -> None:
    """The outcome is known of each fifth question. The plain mean gives the expert that knows a fifth."""
    forecasts, answers, outcomes = history(200, 5)
    some: list[float | None] = [y if n % 5 == 0 else None for n, y in enumerate(outcomes)]

    weights = learned(forecasts, answers, some).weights(RATES, 5)

    assert weights.mix[0] > 0.6
    assert weights.shares[0] < 0.01


def test_where_peers_mislead_the_slope_and_the_outcomes_say_so() -> None:
    """Answers are the opposite of the outcome."""
    forecasts, _, outcomes = history(120, 4)
    wrong = np.repeat(1.0 - np.array(outcomes)[:, None], 4, axis=1)

    sums = learned(forecasts, wrong, list(outcomes))

    assert float(sums.slope.estimate()) == 0.0
    shares = sums.weights(RATES, 4).shares
    assert shares[3] + shares[4] > 0.9


def test_an_outcome_takes_the_place_of_the_peer_regrets_of_the_hybrid_alone() -> None:
    forecasts, answers, _ = history(1, 3)
    weights = FiveMixerSums.nothing(3).weights(RATES, 3)
    peer, true = (FiveMixerSums.contribution(weights, forecasts[0], answers[0], RATES, outcome=y) for y in (None, 1.0))

    assert true.hedge.against.tolist() == peer.hedge.against.tolist()
    assert not true.hybrid_peer.questions.any()
    assert peer.hybrid_peer.questions.all()
    assert not peer.truth.questions.any()
    assert true.hybrid_truth.outcome.all()


def test_hybrid_regrets_are_three_truths_and_what_peers_are_worth() -> None:
    """On the unit scale at η = .1: 3·.8·.24 + ½·.252 = .702."""
    even = np.array([0.5, 0.5])
    truth = outcome_gradients(even, np.array([0.9, 0.3]), 1, (0.1, 0.1))
    peer = peer_gradients(even, np.array([0.9, 0.3]), 1, (0.1, 0.1))

    both = hybrid_sums(truth, peer, slope=0.5)

    assert both.priced(0.1, 0.1).tolist() == pytest.approx([0.702, -0.702])
    assert both.absolute.tolist() == pytest.approx([3 * 0.24 + 0.126] * 2)


def test_the_mix_is_the_shares_times_the_mixers() -> None:
    forecasts, answers, outcomes = history(25, 3)

    weights = learned(forecasts, answers, list(outcomes)).weights(RATES, 3)

    slow = [sum(weights.shares[k] * weights.mixers[k, i] for k in range(5)) for i in range(3)]
    assert weights.mix.tolist() == pytest.approx(slow)
    assert weights.mix.sum() == pytest.approx(1.0)


def test_runs_side_by_side_are_the_runs_one_by_one() -> None:
    forecasts, answers, outcomes = history(6, 3)
    both = FiveMixerSums.nothing(2, 3)
    for n in range(3):
        weights = both.weights(RATES, 3)
        pair = slice(n, None, 3)
        y = np.array(outcomes)[pair, None]
        both = both.merge(FiveMixerSums.contribution(weights, forecasts[pair], answers[pair], RATES, outcome=y))

    mixes = both.weights(RATES, 3).mix
    for run in range(2):
        own = slice(3 * run, 3 * run + 3)
        alone = learned(forecasts[own], answers[own], list(outcomes[own])).weights(RATES, 3).mix
        np.testing.assert_allclose(mixes[run], alone, rtol=1e-12)

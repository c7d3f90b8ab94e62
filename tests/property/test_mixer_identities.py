import itertools
from typing import NamedTuple, TypedDict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.lab.formulas.five_mixers import FiveMixerSums
from stream_peer.lab.formulas.gradients import (
    gradient_hedge,
    gradient_normal_hedge,
    outcome_gradients,
    peer_gradients,
)
from stream_peer.lab.formulas.regret_sums import RegretSums
from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.mixers import logit_mean
from stream_peer.numerics.outer_layer import outer_weights, safety_net_step, stretch_factor, stretched
from tests.reference.plain_formulas import denoised_answers, peer_mixer, truth_slow

PRIORS = [(0.30, 0.50, 0.12, 0.08), (0.25, 0.25, 0.25, 0.25), (0.0, 0.7, 0.2, 0.1), (0.5, 0.0, 0.5, 0.0)]

probabilities = st.floats(0.0, 1.0)
resolved_question = st.tuples(st.lists(st.floats(-0.6, 0.6), min_size=3, max_size=3), probabilities, st.integers(0, 1))
histories = st.lists(resolved_question, max_size=12)
priors = st.sampled_from(PRIORS).map(np.array)
repetitions = st.sampled_from([1, 50, 5000])
unhurried = settings(deadline=None)


class Known(TypedDict):
    """What the mixer's settings are by default."""

    nominal: float
    rate: float
    uniform_share: float


DEFAULTS: Known = {"nominal": 0.35, "rate": 24.0, "uniform_share": 0.5}


def moments(history: list[tuple[list[float], float, int]], times: int) -> tuple[FloatArray, FloatArray]:
    """M and h of a history that happened so many times."""
    second, cross = np.zeros((3, 3)), np.zeros(3)
    for relative, mean, outcome in history:
        q = np.array(relative)
        second += times * np.outer(q, q)
        cross += times * q * (outcome - mean)
    return second, cross


def objective(point: FloatArray, second: FloatArray, cross: FloatArray, prior: FloatArray) -> float:
    others, at_home = point[1:], prior > 0.0
    fit = float(others @ second @ others - 2 * others @ cross)
    return 16 * fit + float((((point - prior)[at_home]) ** 2 / (2 * prior[at_home])).sum())


@unhurried
@given(history=histories, prior=priors, times=repetitions)
def test_outer_weights_meet_the_conditions_of_the_minimum(
    history: list[tuple[list[float], float, int]], prior: FloatArray, times: int
) -> None:
    """Karush-Kuhn-Tucker: on the simplex, one slope for all shadows in use, none steeper among the others."""
    second, cross = moments(history, times)

    weights = outer_weights(second, cross, prior)

    assert (weights >= 0.0).all()
    assert abs(float(weights.sum()) - 1.0) < 1e-9
    assert (weights[prior == 0.0] == 0.0).all()
    eligible = prior > 0.0
    slope = np.concatenate([[0.0], 32 * (second @ weights[1:] - cross)])
    slope[eligible] += (weights - prior)[eligible] / prior[eligible]
    used = weights > 1e-9
    tolerance = 1e-7 * (1.0 + 32 * times)
    assert np.ptp(slope[used]) <= tolerance
    assert (slope[eligible] >= slope[used].max() - tolerance).all()


@unhurried
@given(history=histories, prior=priors, times=repetitions)
def test_no_other_mixture_is_better_than_the_outer_weights(
    history: list[tuple[list[float], float, int]], prior: FloatArray, times: int
) -> None:
    """Compared with every mixture in tenths."""
    second, cross = moments(history, times)
    tenths = (np.array(t) / 10 for t in itertools.product(range(11), repeat=4) if sum(t) == 10)
    others = (objective(t, second, cross, prior) for t in tenths if not t[prior == 0.0].any())

    least = objective(outer_weights(second, cross, prior), second, cross, prior)

    assert least <= min(others, default=least) + 1e-9 * (1 + times)


@unhurried
@given(
    room=st.lists(st.tuples(*[st.floats(-1e4, 1e4)] * 3, st.floats(0.0, 1e4)), min_size=1, max_size=8),
)
def test_mixing_weights_are_a_distribution_with_a_floor(room: list[tuple[float, float, float, float]]) -> None:
    mix_level, mix_slope, mix_answer, seen = (np.array(column) for column in zip(*room, strict=True))

    peer = peer_mixer(mix_level, mix_slope, mix_answer, seen, **DEFAULTS)
    slow = truth_slow(mix_level, seen, rate=24.0)

    for weights, floor in ((peer, 0.5 / len(room)), (slow, 0.0)):
        assert abs(float(weights.sum()) - 1.0) < 1e-12
        assert (weights >= floor - 1e-15).all()


@unhurried
@given(forecasts=st.lists(probabilities, min_size=2, max_size=8), answer=st.integers(0, 1))
def test_equal_forecasts_mix_equally_whatever_the_answers(forecasts: list[float], answer: int) -> None:
    """Who says what the mean says neither gains nor loses by it."""
    same = np.full(len(forecasts), forecasts[0])
    mean = float(np.add.reduce(same)) / same.size
    v = 2 * (mean - same)

    weights = peer_mixer(mean * v, v, answer * v, np.ones(same.size), **DEFAULTS)

    np.testing.assert_allclose(weights, 1 / same.size, atol=1e-12)


@unhurried
@given(history=st.lists(st.tuples(probabilities, st.integers(0, 1)), max_size=30))
def test_stretching_by_the_factor_never_does_worse_on_what_it_was_learned_from(
    history: list[tuple[float, int]],
) -> None:
    """Without the clip, β minimises the squared loss of ½ + (1+β)(f-½) plus 5β²."""
    product = sum((y - f) * (f - 0.5) for f, y in history)
    square = sum((f - 0.5) ** 2 for f, _ in history)

    factor = stretch_factor(product, square)

    before = sum((y - f) ** 2 for f, y in history)
    after = sum((y - 0.5 - (1 + factor) * (f - 0.5)) ** 2 for f, y in history) + 5 * factor**2
    assert after <= before + 1e-9
    assert all(0.0 <= stretched(f, factor) <= 1.0 for f, _ in history)


@unhurried
@given(share=probabilities, delta=st.floats(-1e6, 1e6), squares=st.floats(0.0, 1e6))
def test_the_net_stays_a_share_and_moves_slowly(share: float, delta: float, squares: float) -> None:
    moved = safety_net_step(share, delta, squares)

    assert 0.0 <= moved <= 1.0
    assert abs(moved - share) <= 0.05 + 1e-12


@unhurried
@given(forecasts=st.lists(probabilities, min_size=1, max_size=10))
def test_the_logit_mean_lies_between_the_clipped_forecasts(forecasts: list[float]) -> None:
    clipped = np.clip(forecasts, 0.02, 0.98)

    mean = logit_mean(np.array(forecasts))

    assert clipped.min() - 1e-12 <= mean <= clipped.max() + 1e-12
    assert abs(logit_mean(1.0 - np.array(forecasts)) - (1 - mean)) < 1e-9


class Asked(NamedTuple):
    """One question of the gradient mixers: who was there, with which weights, forecasts and reference answers."""

    awake: BoolArray
    weights: FloatArray
    forecasts: FloatArray
    answers: FloatArray
    outcome: int


@st.composite
def asked(draw: st.DrawFn, n_experts: int = 4) -> Asked:
    awake = np.array(draw(st.lists(st.booleans(), min_size=n_experts, max_size=n_experts)))
    raw = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=n_experts, max_size=n_experts))) * awake
    forecasts = np.array(draw(st.lists(probabilities, min_size=n_experts, max_size=n_experts)))
    answers = np.array(draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n_experts, max_size=n_experts)))
    return Asked(awake, raw / max(raw.sum(), 1e-9), forecasts, answers, draw(st.integers(0, 1)))


noise = st.tuples(st.floats(0.0, 0.4), st.floats(0.0, 0.4))
questions = st.lists(asked(), min_size=1, max_size=6)


def priced_afresh(history: list[Asked], rates: tuple[float, float]) -> FloatArray:
    """The three sums, then their price: Σ2f(f-p) and Σ2(f-p) and Σ2ŷ(f-p), of those who were there."""
    level, slope, answer = np.zeros(4), np.zeros(4), np.zeros(4)
    for question in history:
        f = float((question.weights * question.forecasts).sum())
        for i in np.flatnonzero(question.awake):
            ahead = f - question.forecasts[i]
            level[i] += 2 * f * ahead
            slope[i] += 2 * ahead
            answer[i] += 2 * question.answers[i] * ahead
    zero, one = rates
    informative = 1 - zero - one
    unbiased: FloatArray = level - (answer - zero * slope) / informative
    return informative * unbiased


@unhurried
@given(history=questions, once=noise, today=noise)
def test_repriced_gradients_are_those_computed_from_scratch(
    history: list[Asked], once: tuple[float, float], today: tuple[float, float]
) -> None:
    """Whatever the rates were at first, also if the sums are merged in another order."""
    parts = [peer_gradients(q.weights, q.forecasts, q.answers, once, awake=q.awake) for q in history]
    forwards, backwards = RegretSums.nothing(4), RegretSums.nothing(4)
    for one, other in zip(parts, reversed(parts), strict=True):
        forwards, backwards = forwards.merge(one), backwards.merge(other)

    np.testing.assert_allclose(forwards.priced(*today), priced_afresh(history, today), atol=1e-9)
    np.testing.assert_allclose(backwards.priced(*today), priced_afresh(history, today), atol=1e-9)
    np.testing.assert_allclose(forwards.frozen, priced_afresh(history, once), atol=1e-9)


@unhurried
@given(question=asked(), rates=noise)
def test_expected_gradients_of_noisy_answers_are_those_of_the_outcome(
    question: Asked, rates: tuple[float, float]
) -> None:
    """E[ỹ | y] = y, hence E[2(f - ỹ)(f - p) | y] = 2(f - y)(f - p): exactly, for either outcome, for each expert."""
    wrong, informative = rates[question.outcome], 1 - rates[0] - rates[1]
    facts = question.weights, question.forecasts
    right_one = peer_gradients(*facts, question.outcome, rates, awake=question.awake)
    wrong_one = peer_gradients(*facts, 1 - question.outcome, rates, awake=question.awake)

    expected = ((1 - wrong) * right_one.priced(*rates) + wrong * wrong_one.priced(*rates)) / informative
    answer = (1 - wrong) * denoised_answers(question.outcome, *rates) + wrong * denoised_answers(
        1 - question.outcome, *rates
    )

    true = outcome_gradients(*facts, question.outcome, rates, awake=question.awake)
    np.testing.assert_allclose(expected, true.outcome, atol=1e-12)
    np.testing.assert_allclose(answer, question.outcome, atol=1e-12)


@unhurried
@given(question=asked(), raw=st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4))
def test_gradients_bound_how_much_better_any_combination_would_have_done(question: Asked, raw: list[float]) -> None:
    """(f - y)² - (Σ u·p - y)² ≤ Σ u·2(f - y)(f - p), by convexity."""
    combination = np.array(raw) / sum(raw)
    everybody = question.weights if question.awake.all() else np.full(4, 0.25)
    mixed, other = everybody @ question.forecasts, combination @ question.forecasts

    regrets = outcome_gradients(everybody, question.forecasts, question.outcome).outcome

    gain = (mixed - question.outcome) ** 2 - (other - question.outcome) ** 2
    assert gain <= combination @ regrets + 1e-12
    assert abs(float(everybody @ regrets)) < 1e-12


def gradient_weights(history: list[Asked], rates: tuple[float, float], awake: BoolArray) -> list[FloatArray]:
    """What each gradient mixer says after a history in which every second outcome is known."""
    sums, five = RegretSums.nothing(4), FiveMixerSums.nothing(4)
    for number, q in enumerate(history):
        sums = sums.merge(peer_gradients(q.weights, q.forecasts, q.answers, rates, awake=q.awake))
        weights = five.weights(rates, 4, q.awake)
        outcome = q.outcome if number % 2 else None
        five = five.merge(FiveMixerSums.contribution(weights, q.forecasts, q.answers, rates, q.awake, outcome))
    mixes = five.weights(rates, 4, awake)
    return [
        gradient_hedge(sums, rates, 4, awake=awake),
        gradient_normal_hedge(sums, rates, 0.3, awake=awake),
        *mixes.mixers,
        mixes.mix,
    ]


@unhurried
@given(
    history=questions,
    rates=noise,
    present=st.lists(st.booleans(), min_size=4, max_size=4).map(np.array),
    order=st.permutations(range(4)),
)
def test_gradient_weights_are_distributions_and_follow_the_experts(
    history: list[Asked], rates: tuple[float, float], present: BoolArray, order: list[int]
) -> None:
    """Over those present, whoever comes first; nobody gets less than its part of the uniform share."""
    moved = [Asked(q.awake[order], q.weights[order], q.forecasts[order], q.answers[order], q.outcome) for q in history]

    weights = gradient_weights(history, rates, present)

    for mine, permuted in zip(weights, gradient_weights(moved, rates, present[order]), strict=True):
        assert abs(float(mine.sum()) - bool(present.any())) < 1e-12
        assert (mine >= 0.0).all()
        assert not mine[~present].any()
        np.testing.assert_allclose(permuted, mine[order], atol=1e-12)
    for mine, share in zip(weights[:2], (0.5, 0.3), strict=True):
        assert (mine[present] >= share / max(present.sum(), 1) - 1e-15).all()


@unhurried
@given(history=questions, rates=st.floats(0.0, 0.4))
def test_gradient_weights_do_not_care_which_answer_is_called_one(history: list[Asked], rates: float) -> None:
    """p, ŷ and y turned round: the same weights, if both error rates are the same."""
    turned = [q._replace(forecasts=1 - q.forecasts, answers=1 - q.answers, outcome=1 - q.outcome) for q in history]
    everybody = np.ones(4, dtype=np.bool_)

    straight, other = (gradient_weights(h, (rates, rates), everybody) for h in (history, turned))

    for mine, theirs in zip(straight, other, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)

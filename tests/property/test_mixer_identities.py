import itertools
from typing import TypedDict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.mixers import (
    logit_mean,
    outer_weights,
    peer_mixer,
    safety_net_step,
    stretch_factor,
    stretched,
    truth_slow,
)

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


DEFAULTS: Known = {"nominal": 0.35, "rate": 0.42, "uniform_share": 0.5}


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
    strangers=st.integers(0, 1000),
)
def test_mixing_weights_are_a_distribution_with_a_floor(
    room: list[tuple[float, float, float, float]], strangers: int
) -> None:
    su, sv, svy, seen = (np.array(column) for column in zip(*room, strict=True))
    n_experts = len(room) + strangers

    peer = peer_mixer(su, sv, svy, seen, n_experts, **DEFAULTS)
    slow = truth_slow(su, seen, n_experts, rate=0.25)

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

    weights = peer_mixer(mean * v, v, answer * v, np.ones(same.size), same.size, **DEFAULTS)

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

"""The steps of the proof of the certificate in docs/numerics.md, one by one, to 1e-12."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.certificate import (
    answer_variance,
    confidence_at_all_times,
    live_bounds,
    one_sided_boundary,
    regret_bounds,
)
from stream_peer.numerics.error_rates.rate import rate_corners
from tests.reference.plain_formulas import own_answer_spread

rates = st.floats(0.0, 0.5)
inner_rates = st.floats(1e-6, 1.0 - 1e-6)
deltas = st.floats(1e-6, 0.5)
variances = st.floats(0.0, 1e6)
probabilities = st.floats(0.0, 1.0)
pools = st.lists(st.tuples(probabilities, st.floats(0.01, 1.0)), min_size=1, max_size=4)


def error_bet(rate: float, tilt: float) -> float:
    """E exp(λ(b - η)), b = 1 with probability η."""
    return (1.0 - rate) * math.exp(-tilt * rate) + rate * math.exp(tilt * (1.0 - rate))


@given(rate=inner_rates, tilt=st.floats(-30.0, 30.0))
def test_an_error_is_no_wilder_than_a_normal_variable_of_its_variance(rate: float, tilt: float) -> None:
    variance = answer_variance(((rate, rate),))

    assert math.log(error_bet(rate, tilt)) <= tilt * tilt * variance / 2 + 1e-12 * (1 + tilt * tilt)


@given(rate=st.floats(0.001, 0.499))
def test_no_smaller_variance_would_do(rate: float) -> None:
    """At λ = 2 ln((1-η)/η) both sides are equal."""
    tilt = 2.0 * math.log((1.0 - rate) / rate)

    assert math.log(error_bet(rate, tilt)) == pytest.approx(
        tilt * tilt * answer_variance(((rate, rate),)) / 2, abs=1e-12 * (1 + tilt * tilt)
    )


@given(one=rates, other=rates, between=probabilities)
def test_the_variance_is_that_of_the_worst_rate_of_the_interval(one: float, other: float, between: float) -> None:
    inside = one + between * (other - one)

    assert answer_variance(((inside, inside),)) <= answer_variance(((one, one), (other, other))) + 1e-12
    assert 0.0 <= answer_variance(((one, other),)) <= 0.25


@given(rate=inner_rates)
def test_wrong_and_right_answers_vary_alike(rate: float) -> None:
    assert answer_variance(((rate, rate),)) == pytest.approx(answer_variance(((1 - rate, 1 - rate),)), abs=1e-12)


@given(pool=pools, outcome=st.integers(0, 1), zero=rates, one=rates, tilt=st.floats(-5.0, 5.0), data=st.data())
def test_however_own_answers_err_together_the_bet_cannot_be_expected_to_win(
    pool: list[tuple[float, float]], outcome: int, zero: float, one: float, tilt: float, data: st.DataObject
) -> None:
    """E exp(λΣ u_j(b_j - q)) ≤ exp(λ²c²κ/2), c = Σ|u_j|: each answer errs with its rate, their joint law is any.

    The law drawn is that of thresholds: one uniform number decides over all answers, each in its own part of [0, 1).
    """
    forecasts, raw = (np.array(column) for column in zip(*pool, strict=True))
    weights = raw / raw.sum()
    if_one, if_zero = (1 - forecasts) ** 2, forecasts**2
    scored = data.draw(st.integers(0, len(pool) - 1))
    moved = (weights - (np.arange(len(pool)) == scored)) * (if_one - if_zero)
    says_one = 1 - one if outcome else zero
    begins = np.array(data.draw(st.lists(probabilities, min_size=len(pool), max_size=len(pool))))

    cuts = np.unique(np.concatenate(([0.0, 1.0], begins, (begins + says_one) % 1.0)))
    chances, middles = np.diff(cuts), (cuts[1:] + cuts[:-1]) / 2
    answers = ((middles[:, None] - begins) % 1.0 < says_one).astype(float)
    bet = float(chances @ np.exp(tilt * ((answers - says_one) @ moved)))

    spread = own_answer_spread(weights, if_one, if_zero)[scored]
    assert spread == pytest.approx(np.abs(moved).sum(), abs=1e-12)
    assert bet <= math.exp(tilt * tilt * spread**2 * answer_variance(((zero, one),)) / 2) * (1 + 1e-9)


@given(
    rounds=st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=4), rate=rates, tilt=st.floats(-5, 5)
)
def test_rounds_of_a_question_may_err_together(rounds: list[tuple[float, float]], rate: float, tilt: float) -> None:
    """The mean of their terms moves by the mean of their spreads at most, though all share outcome and error."""
    spreads = np.array([2 * abs(own - mixed) for own, mixed in rounds])

    for alike in itertools.product((-1, 1), repeat=len(rounds)):
        moved = float(np.mean(np.array(alike) * spreads))
        bet = error_bet(rate, tilt * moved)
        variance = float(np.mean(spreads)) ** 2 * answer_variance(((rate, rate),))
        assert bet <= math.exp(tilt * tilt * variance / 2) * (1 + 1e-9)


@given(variance=variances, n_experts=st.integers(1, 10_000), delta=deltas, rho=st.floats(0.1, 100.0))
def test_at_the_boundary_the_one_sided_mixture_of_bets_has_reached_its_price(
    variance: float, n_experts: int, delta: float, rho: float
) -> None:
    """2Φ(x)·√(ρ/(V+ρ))·exp(x²/2) ≥ N/δ, x = S/√(V+ρ); so Ville's inequality bounds the chance to go beyond."""
    boundary = float(one_sided_boundary(np.array([variance]), n_experts, delta, rho)[0])
    x = boundary / math.sqrt(variance + rho)

    log_wealth = math.log(2 * NormalDist().cdf(x)) + 0.5 * math.log(rho / (variance + rho)) + x * x / 2

    assert log_wealth >= math.log(n_experts / delta) - 1e-12 * (1 + x * x)


@given(x=st.floats(-3.0, 6.0), variance=st.floats(0.0, 50.0), rho=st.floats(0.5, 50.0))
def test_the_mixture_over_positive_bets_is_its_closed_form(x: float, variance: float, rho: float) -> None:
    """∫ 2φ(z) exp(zS/√ρ - z²V/(2ρ)) dz over z > 0, by Simpson's rule."""
    at = x * math.sqrt(variance + rho)
    z: FloatArray = np.linspace(0.0, 12.0, 20_001)
    values = 2 / math.sqrt(2 * math.pi) * np.exp(z * at / math.sqrt(rho) - z * z * variance / (2 * rho) - z * z / 2)
    # the integrand is a normal density around x at most, of a variance of 1 at most: beyond 12 next to nothing is left
    summed = float(values[0] + values[-1] + 4 * values[1::2].sum() + 2 * values[2:-1:2].sum()) * (z[1] - z[0]) / 3

    closed = 2 * NormalDist().cdf(x) * math.sqrt(rho / (variance + rho)) * math.exp(x * x / 2)

    assert summed == pytest.approx(closed, rel=1e-8)


@given(questions=st.floats(1.0, 1e6), delta=st.floats(1e-4, 0.2))
def test_intervals_of_all_times_are_wider_than_that_of_one(questions: float, delta: float) -> None:
    assert confidence_at_all_times(questions, delta) > 1.0 - delta


@given(
    parts=st.tuples(*[st.floats(-100.0, 100.0)] * 3),
    spread=variances,
    low=st.floats(0.0, 0.3),
    wide=st.floats(0.0, 0.09),
    between=probabilities,
)
def test_no_rate_of_the_interval_has_a_larger_bound(
    parts: tuple[float, float, float], spread: float, low: float, wide: float, between: float
) -> None:
    against, if_one, if_zero, width = (np.array([part]) for part in (*parts, spread))
    ends = ((low, low), (low + wide, low + wide))
    inside = low + between * wide

    bound = regret_bounds(against, if_one, if_zero, width, ends, 5, 0.05)
    there = regret_bounds(against, if_one, if_zero, width, ((inside, inside),), 5, 0.05)

    assert there[0] <= bound[0] + 1e-9 * (1 + abs(bound[0]))


@given(
    parts=st.tuples(*[st.floats(-100.0, 100.0)] * 3),
    spread=variances,
    low=st.floats(0.0, 0.3),
    wide=st.floats(0.0, 0.09),
    halves=st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)),
    between=st.tuples(probabilities, probabilities),
)
def test_no_rates_of_a_mean_and_a_difference_within_bounds_have_a_larger_bound_than_the_corners(
    parts: tuple[float, float, float],
    spread: float,
    low: float,
    wide: float,
    halves: tuple[float, float],
    between: tuple[float, float],
) -> None:
    against, if_one, if_zero, width = (np.array([part]) for part in (*parts, spread))
    mean = low + between[0] * wide
    half = min(halves) + between[1] * (max(halves) - min(halves))
    half = min(max(half, -mean), mean)
    corners = rate_corners(low, low + wide, min(halves), max(halves))

    bound = regret_bounds(against, if_one, if_zero, width, corners, 5, 0.05)
    there = regret_bounds(against, if_one, if_zero, width, ((mean + half, mean - half),), 5, 0.05)

    assert min(min(pair) for pair in corners) >= 0.0
    assert there[0] <= bound[0] + 1e-9 * (1 + abs(bound[0]))


@given(
    spread=st.floats(0.0, 400.0), n_experts=st.integers(1, 1000), delta=st.floats(1e-4, 0.2), rate=st.floats(0.0, 0.39)
)
def test_for_up_to_hundreds_of_questions_it_is_below_the_certificate_of_version_1(
    spread: float, n_experts: int, delta: float, rate: float
) -> None:
    none, ends = np.zeros(1), ((rate, rate),)

    new = regret_bounds(none, none, none, np.array([spread]), ends, n_experts, delta)

    assert new[0] < live_bounds(none, none, none, np.array([spread / 4]), ends, n_experts, delta)[0]


def test_nothing_is_bounded_where_answers_say_little() -> None:
    none = np.zeros(2)

    assert np.isinf(regret_bounds(none, none, none, none, ((0.1, 0.1), (0.405, 0.4)), 2, 0.05)).all()

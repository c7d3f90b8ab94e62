import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.lab.formulas.apriori import direct_bound, printed_bound, repaired_bound, shared_answer_spread
from stream_peer.lab.formulas.flips import flipped_error_rate
from stream_peer.lab.formulas.heterogeneous import heterogeneous_bound, order_kept_beyond
from stream_peer.lab.formulas.online import hedge_regret
from stream_peer.lab.formulas.regret_sums import RegretSums, loss_parts
from stream_peer.numerics.certificate import live_bounds, noise_boundary
from stream_peer.numerics.learners import ada_normal_hedge
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.peer_losses import unit_peer_loss
from tests.reference.plain_formulas import own_answer_spread

probabilities = st.floats(0.0, 1.0)
rates = st.floats(0.0, 0.39)
pools = st.lists(st.tuples(probabilities, st.floats(0.01, 1.0)), min_size=1, max_size=6)


@given(n_experts=st.integers(1, 1000), questions=st.floats(1.0, 1e6), rate=rates, delta=st.floats(0.001, 0.5))
def test_the_direct_bound_is_the_smallest(n_experts: int, questions: float, rate: float, delta: float) -> None:
    given_ = hedge_regret(n_experts, questions), n_experts, questions, (rate, rate), delta

    direct, repaired, printed = (bound(*given_).formula for bound in (direct_bound, repaired_bound, printed_bound))

    assert direct <= repaired
    if n_experts <= 4 / delta:  # the printed one knows no union over experts, which is where it is too small
        assert repaired <= printed


@given(n_experts=st.integers(1, 1000), questions=st.floats(1.0, 1e6), rate=rates, best_loss=st.floats(0.0, 1e5))
def test_equal_rates_are_no_heterogeneous_ones(n_experts: int, questions: float, rate: float, best_loss: float) -> None:
    """Then w_max/w_min = 1, and the factor of L* vanishes."""
    online = hedge_regret(n_experts, questions)

    found = heterogeneous_bound(online, n_experts, questions, np.array([rate, rate]), best_loss, 0.05)

    assert found.formula == pytest.approx(direct_bound(online, n_experts, questions, (rate, rate), 0.05).formula)


@given(
    losses=st.lists(st.tuples(probabilities, probabilities, st.floats(0.0, 0.49)), min_size=1, max_size=12),
)
def test_e19_an_order_by_so_much_is_kept_by_the_weights(losses: list[tuple[float, float, float]]) -> None:
    best, other, error_rates = (np.array(column) for column in zip(*losses, strict=True))
    weights = 1 - 2 * error_rates

    if other.sum() - best.sum() >= order_kept_beyond(error_rates, float(best.sum())):
        assert weights @ other >= weights @ best - 1e-9


@given(first=st.floats(0.0, 0.5), second=st.floats(0.0, 0.49), flip=st.floats(0.0, 0.49))
def test_e18_flipping_leaves_ratios_of_weights_alone(first: float, second: float, flip: float) -> None:
    weights = [1 - 2 * rate for rate in (first, second)]

    flipped = [1 - 2 * float(flipped_error_rate(rate, flip)) for rate in (first, second)]

    assert flipped[0] * weights[1] == pytest.approx(flipped[1] * weights[0], abs=1e-12)


@given(pool=pools, outcome=st.integers(0, 1), zero=rates, one=rates)
def test_peer_regret_has_the_true_one_as_its_mean(
    pool: list[tuple[float, float]], outcome: int, zero: float, one: float
) -> None:
    """E[D_i | y] = (1 - η0 - η1)·true regret, exactly: both answers with their chances."""
    forecasts, raw = (np.array(column) for column in zip(*pool, strict=True))
    weights = raw / raw.sum()
    wrong = one if outcome else zero

    def peer_regret(answer: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return RegretSums.contribution(weights, loss_parts(forecasts, answer), (zero, one)).frozen

    mean = (1 - wrong) * peer_regret(outcome) + wrong * peer_regret(1 - outcome)

    losses = squared_loss(forecasts, outcome)
    np.testing.assert_allclose(mean, (1 - zero - one) * (float(weights @ losses) - losses), atol=1e-12)


@given(pool=pools, outcome=st.integers(0, 1), zero=rates, one=rates, tilt=st.floats(-20.0, 20.0))
def test_the_certificate_is_a_bet_that_cannot_be_expected_to_win(
    pool: list[tuple[float, float]], outcome: int, zero: float, one: float, tilt: float
) -> None:
    """E[exp(λ(D - E D) - λ²c²/8) | y] ≤ 1 for every λ and either outcome, so their product is a supermartingale.

    Mixed over λ ~ N(0, 1/ρ) and with Ville's inequality this is `noise_boundary`, whose V adds up c²/4.
    """
    forecasts, raw = (np.array(column) for column in zip(*pool, strict=True))
    weights = raw / raw.sum()
    parts = loss_parts(forecasts, 1)
    wrong = one if outcome else zero
    answers = {outcome: 1 - wrong, 1 - outcome: wrong}
    regret = {
        answer: RegretSums.contribution(weights, loss_parts(forecasts, answer), (zero, one)).frozen
        for answer in answers
    }
    mean = sum(chance * regret[answer] for answer, chance in answers.items())
    variance = shared_answer_spread(weights, parts.if_one, parts.if_zero) ** 2 / 4

    wealth = sum(
        chance * np.exp(tilt * (regret[answer] - mean) - tilt * tilt * variance / 2)
        for answer, chance in answers.items()
    )

    assert np.max(wealth) <= 1 + 1e-9


@given(variance=st.floats(0.0, 1e5), n_experts=st.integers(1, 1000), delta=st.floats(0.001, 0.5))
def test_the_boundary_is_where_the_mixture_of_bets_reaches_its_price(
    variance: float, n_experts: int, delta: float
) -> None:
    """√(ρ/(V+ρ))·exp(S²/(2(V+ρ))) = N/δ at S = boundary."""
    rho = 25.0
    boundary = float(noise_boundary(np.array([variance]), n_experts, delta, rho)[0])

    log_wealth = 0.5 * math.log(rho / (variance + rho)) + boundary**2 / (2 * (variance + rho))

    assert log_wealth == pytest.approx(math.log(n_experts / delta), rel=1e-9)


@given(pool=pools)
def test_answers_of_ones_own_are_certified_with_no_less_spread(pool: list[tuple[float, float]]) -> None:
    forecasts, raw = (np.array(column) for column in zip(*pool, strict=True))
    weights = raw / raw.sum()
    sides = squared_loss(forecasts, 1), squared_loss(forecasts, 0)

    own, shared = own_answer_spread(weights, *sides), shared_answer_spread(weights, *sides)

    assert (own >= shared - 1e-12).all()
    assert own.max() <= 2.0 + 1e-12


@given(questions=st.lists(st.tuples(st.lists(probabilities, min_size=3, max_size=3), st.integers(0, 1)), max_size=30))
def test_with_answers_that_never_err_the_certificate_is_above_any_regret(
    questions: list[tuple[list[float], int]],
) -> None:
    """Whoever chose forecasts and outcomes: at error rate 0 peer regret is true regret, and noise only adds."""
    sums, variance, true = RegretSums.nothing(3), np.zeros(3), np.zeros(3)
    for cells, outcome in questions:
        parts = loss_parts(np.array(cells), outcome)
        weights = ada_normal_hedge(sums.frozen, sums.absolute)
        sums = sums.merge(RegretSums.contribution(weights, parts, (0.0, 0.0)))
        variance += shared_answer_spread(weights, parts.if_one, parts.if_zero) ** 2 / 4
        true += float(weights @ parts.against) - parts.against

        ends = ((0.0, 0.0), (0.0, 0.0))
        assert live_bounds(sums.against, sums.if_one, sums.if_zero, variance, ends, 3, 0.05).max() > true.max()


@given(
    low=rates, high=rates, between=st.floats(0.0, 1.0), parts=st.lists(st.floats(-50.0, 50.0), min_size=3, max_size=3)
)
def test_a_certificate_between_the_ends_of_an_interval_is_no_larger(
    low: float, high: float, between: float, parts: list[float]
) -> None:
    """It is a Möbius function of a common shift of both rates."""
    low, high = sorted((low, high))
    middle = low + between * (high - low)
    against, if_one, if_zero = (np.array([value]) for value in parts)
    noise = noise_boundary(np.array([10.0]), 1, 0.05)

    inside = (unit_peer_loss(against, if_one, if_zero, middle, middle) + noise) / (1 - 2 * middle)

    ends = live_bounds(against, if_one, if_zero, np.array([10.0]), ((low, low), (high, high)), 1, 0.05)
    assert inside[0] <= ends[0] + 1e-9 * max(1.0, abs(float(ends[0])))


@given(pool=pools, outcome=st.integers(0, 1))
def test_e24_the_weighted_mean_forecast_is_no_worse_than_following_a_drawn_expert(
    pool: list[tuple[float, float]], outcome: int
) -> None:
    """Regret is that of the expected loss under the published weights; by convexity it bounds the mixture's as well."""
    forecasts, raw = (np.array(column) for column in zip(*pool, strict=True))
    weights = raw / raw.sum()

    followed = float(weights @ squared_loss(forecasts, outcome))

    mixed = np.array([np.clip(weights @ forecasts, 0.0, 1.0)])
    assert squared_loss(mixed, outcome)[0] <= followed + 1e-12

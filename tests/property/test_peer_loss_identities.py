import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.peer_losses import peer_loss, unbiased_peer_loss, unit_peer_loss

probabilities = st.floats(0.0, 1.0)
error_rates = st.floats(0.0, 0.5)
class_rates = st.tuples(st.floats(0.0, 0.475), st.floats(0.0, 0.475))
outcomes = st.integers(0, 1)
unhurried = settings(deadline=None)


def losses(probability: float) -> tuple[float, float]:
    """Loss of a forecast if the answer is 0 and if it is 1."""
    forecast = np.array([probability])
    return float(squared_loss(forecast, 0)[0]), float(squared_loss(forecast, 1)[0])


@unhurried
@given(probability=probabilities, error_rate=error_rates, outcome=outcomes)
def test_expected_peer_loss_is_an_affine_map_of_the_loss(probability: float, error_rate: float, outcome: int) -> None:
    """E[s | y] = (1 - 2η)·ℓ(p, y) + η, the identity behind Theorem 4."""
    forecasts = np.array([probability])
    if_right = peer_loss(forecasts, outcome, error_rate)
    if_wrong = peer_loss(forecasts, 1 - outcome, error_rate)

    expected_peer_loss = (1 - error_rate) * if_right + error_rate * if_wrong

    loss = squared_loss(forecasts, outcome)
    np.testing.assert_allclose(expected_peer_loss, (1 - 2 * error_rate) * loss + error_rate, atol=1e-12)


@unhurried
@given(probability=probabilities, rates=class_rates, outcome=outcomes)
def test_the_unbiased_peer_loss_is_unbiased_for_either_outcome(
    probability: float, rates: tuple[float, float], outcome: int
) -> None:
    """E[u | y] = ℓ(p, y) and E[s | y] = d·ℓ(p, y), with the class's own rate."""
    if_zero, if_one = losses(probability)
    told_one = rates[0] if outcome == 0 else 1 - rates[1]

    unbiased = told_one * unbiased_peer_loss(if_one, if_one, if_zero, *rates)
    unbiased += (1 - told_one) * unbiased_peer_loss(if_zero, if_one, if_zero, *rates)
    unit = told_one * unit_peer_loss(if_one, if_one, if_zero, *rates)
    unit += (1 - told_one) * unit_peer_loss(if_zero, if_one, if_zero, *rates)

    loss = if_one if outcome else if_zero
    np.testing.assert_allclose(unbiased, loss, atol=1e-12)
    np.testing.assert_allclose(unit, (1 - sum(rates)) * loss, atol=1e-12)


@unhurried
@given(probability=probabilities, error_rate=error_rates, answer=outcomes)
def test_the_papers_form_is_the_unit_form_plus_the_rate(probability: float, error_rate: float, answer: int) -> None:
    """Because ℓ(p, 0) + ℓ(p, 1) = 1 - 2p(1 - p)."""
    if_zero, if_one = losses(probability)
    against = if_one if answer else if_zero

    unit = unit_peer_loss(against, if_one, if_zero, error_rate, error_rate)

    paper = float(peer_loss(np.array([probability]), answer, error_rate)[0])
    np.testing.assert_allclose(paper, unit + error_rate, atol=1e-12)


@unhurried
@given(probability=probabilities, rates=class_rates, answer=outcomes)
def test_the_unit_form_is_natarajans(probability: float, rates: tuple[float, float], answer: int) -> None:
    """S = (1 - η_{1-ŷ})·ℓ(p, ŷ) - η_ŷ·ℓ(p, 1-ŷ)."""
    by_answer = losses(probability)

    unit = unit_peer_loss(by_answer[answer], by_answer[1], by_answer[0], *rates)

    theirs = (1 - rates[1 - answer]) * by_answer[answer] - rates[answer] * by_answer[1 - answer]
    np.testing.assert_allclose(unit, theirs, atol=1e-12)


@unhurried
@given(probability=probabilities, error_rate=error_rates, answer=outcomes)
def test_the_peer_loss_is_the_loss_of_the_forecast_sent_through_the_channel(
    probability: float, error_rate: float, answer: int
) -> None:
    """(ŷ - η - (1-2η)·p)² = (1-2η)·s + η² in the paper's form."""
    through = answer - error_rate - (1 - 2 * error_rate) * probability

    paper = float(peer_loss(np.array([probability]), answer, error_rate)[0])

    np.testing.assert_allclose(through**2, (1 - 2 * error_rate) * paper + error_rate**2, atol=1e-12)


@unhurried
@given(probability=probabilities, rates=class_rates, answer=outcomes)
def test_peer_losses_stay_in_their_ranges(probability: float, rates: tuple[float, float], answer: int) -> None:
    if_zero, if_one = losses(probability)

    unit = unit_peer_loss(if_one if answer else if_zero, if_one, if_zero, *rates)
    paper = float(peer_loss(np.array([probability]), answer, rates[0])[0])

    assert -max(rates) - 1e-12 <= unit <= 1 - min(rates) + 1e-12
    assert -1e-12 <= paper <= 1 + 1e-12


@unhurried
@given(said=probabilities, believed=probabilities, error_rate=st.floats(0.0, 0.49))
def test_honest_forecasts_are_best_against_noisy_answers(said: float, believed: float, error_rate: float) -> None:
    """E_ŷ[s(q, ŷ)] - E_ŷ[s(p, ŷ)] = (1 - 2η)(p - q)²: Theorem 4 with the divergence put right."""
    says_one = believed * (1 - error_rate) + (1 - believed) * error_rate
    forecasts = np.array([said, believed])

    other, honest = says_one * peer_loss(forecasts, 1, error_rate) + (1 - says_one) * peer_loss(
        forecasts, 0, error_rate
    )

    np.testing.assert_allclose(other - honest, (1 - 2 * error_rate) * (believed - said) ** 2, atol=1e-12)

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.losses import SQUARED, ProperLoss, portable_log, squared_loss
from tests.reference.slow_losses import EVERY_LOSS, PAIRS, slow_loss

edges = st.sampled_from([0.0, 1e-300, 1e-17, 0.001, 0.5, 0.999, 1.0 - 2.0**-53, 1.0])
probabilities = st.one_of(edges, st.floats(0.0, 1.0))
within_clip = st.floats(0.001, 0.999)
outcomes = st.integers(0, 1)
every_loss = st.sampled_from(EVERY_LOSS)
unhurried = settings(deadline=None)


def single(loss: ProperLoss, forecast: float, outcome: float) -> float:
    return float(loss(np.array([forecast]), outcome)[0])


@unhurried
@given(name=st.sampled_from(sorted(PAIRS)), probability=probabilities, outcome=outcomes)
def test_every_loss_equals_its_definition_in_fifty_digits(name: str, probability: float, outcome: int) -> None:
    loss = PAIRS[name][0]

    found = single(loss, probability, outcome)

    assert found == pytest.approx(float(slow_loss(name, probability, outcome)), abs=4e-13 * loss.upper)


@unhurried
@given(loss=every_loss, probability=probabilities, outcome=st.one_of(outcomes, st.floats(0.0, 1.0)))
def test_losses_lie_between_0_and_their_upper_end(loss: ProperLoss, probability: float, outcome: float) -> None:
    found = single(loss, probability, outcome)
    scaled = float(loss.scaled(np.array([probability]), outcome)[0])

    assert 0.0 <= found <= loss.upper * (1 + 1e-15)
    assert 0.0 <= scaled <= 1.0
    assert scaled * loss.upper == pytest.approx(found, abs=1e-14 * loss.upper)


@unhurried
@given(loss=every_loss, said=within_clip, believed=within_clip)
def test_nobody_expects_to_gain_by_forecasting_something_else(loss: ProperLoss, said: float, believed: float) -> None:
    """E_{y~q}[ℓ(p, y)] is smallest at p = q: what makes a loss proper."""
    if_one, if_zero = loss.sides(np.array([said, believed]))

    other, honest = believed * if_one + (1 - believed) * if_zero

    assert other >= honest - 1e-14 * loss.upper


@unhurried
@given(said=probabilities, believed=probabilities)
def test_the_squared_loss_costs_the_squared_distance_from_the_truth(said: float, believed: float) -> None:
    """E_{y~q}[ℓ(p, y)] - E_{y~q}[ℓ(q, y)] = (p - q)², Lemma 1."""
    if_one, if_zero = SQUARED.sides(np.array([said, believed]))

    other, honest = believed * if_one + (1 - believed) * if_zero

    assert other - honest == pytest.approx((said - believed) ** 2, abs=1e-15)


@unhurried
@given(loss=every_loss, probability=probabilities, outcome=st.floats(0.0, 1.0))
def test_soft_outcomes_are_read_linearly(loss: ProperLoss, probability: float, outcome: float) -> None:
    if_one, if_zero = single(loss, probability, 1), single(loss, probability, 0)

    exact = Fraction(outcome) * Fraction(if_one) + (1 - Fraction(outcome)) * Fraction(if_zero)

    assert single(loss, probability, outcome) == pytest.approx(float(exact), abs=1e-15 * loss.upper)


@unhurried
@given(loss=every_loss, probability=probabilities, outcome=outcomes)
def test_no_loss_tells_the_outcomes_apart(loss: ProperLoss, probability: float, outcome: int) -> None:
    """ℓ(1 - p, 1 - y) = ℓ(p, y), for the losses that are here."""
    turned = 1.0 - probability

    as_it_is = single(loss, 1.0 - turned, outcome)

    assert single(loss, turned, 1 - outcome) == pytest.approx(as_it_is, abs=1e-15 * loss.upper)


@unhurried
@given(loss=every_loss, rows=st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=4))
def test_batches_get_the_bits_of_single_forecasts(loss: ProperLoss, rows: list[tuple[float, float]]) -> None:
    batch = np.array(rows)
    answers = (batch > 0.5).astype(np.uint8)

    found = loss.scaled(batch, answers)

    for row, row_answers, row_found in zip(batch, answers, found, strict=True):
        singly = [loss.scaled(row[i : i + 1], int(row_answers[i]))[0] for i in range(2)]
        assert singly == row_found.tolist()


@unhurried
@given(probability=probabilities, outcome=outcomes)
def test_the_quick_squared_loss_has_the_bits_of_the_checked_one(probability: float, outcome: int) -> None:
    forecasts = np.array([probability])

    quick = squared_loss(forecasts, outcome)

    assert quick.tolist() == SQUARED(forecasts, outcome).tolist() == SQUARED.scaled(forecasts, outcome).tolist()


@unhurried
@given(value=st.one_of(st.floats(1e-3, 1e3), st.floats(min_value=5e-324, allow_infinity=False)))
def test_the_portable_logarithm_is_the_logarithm(value: float) -> None:
    with localcontext() as context:
        context.prec = 50
        exact = Decimal(value).ln()
        error = abs(Decimal(float(portable_log(np.array([value]))[0])) - exact)

    allowed = Decimal("2e-15") if 1e-3 <= value <= 1e3 else Decimal("5e-16") * max(abs(exact), Decimal(1))
    assert error <= allowed

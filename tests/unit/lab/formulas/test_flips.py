import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.flips import flip_answer, flip_question, flipped_error_rate, rates_after_flip
from stream_peer.lab.formulas.forms import peer_loss
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.peer_losses import unbiased_peer_loss

NOISE = (0.05, 0.35)
CHANCES = (np.arange(200_000) + 0.5) / 200_000
TIMID = np.maximum(CHANCES - 0.1, 0.0)


def expected(if_told_one: FloatArray, if_told_zero: FloatArray) -> float:
    """Mean over questions whose chance is uniform, outcomes, and reference answers wrong at the rates of NOISE."""
    says_one = CHANCES * (1 - NOISE[1]) + (1 - CHANCES) * NOISE[0]
    return float(np.mean(says_one * if_told_one + (1 - says_one) * if_told_zero))


def expected_reading(forecasts: FloatArray, assumed: tuple[float, float]) -> float:
    """What the unbiased peer loss says of a forecaster, at assumed rates."""
    return expected(*(unbiased_peer_loss(*loss_parts(forecasts, answer), *assumed) for answer in (1, 0)))


def expected_reading_after_flip(forecasts: FloatArray, assumed: tuple[float, float]) -> float:
    """The same where a fair coin turns each question round."""
    told = []
    for answer in (1, 0):
        left, turned = (flip_question(forecasts, answer, coin) for coin in (0, 1))
        readings = [unbiased_peer_loss(*loss_parts(*question), *assumed) for question in (left, turned)]
        told.append(0.5 * (readings[0] + readings[1]))
    return expected(*told)


def test_e16_flipping_to_one_rate_still_prefers_the_timid_to_the_perfect_forecaster() -> None:
    """Rates (.05, .35), forecasts "the chance less .1": loss .1760, flipped and symmetric .1285, by class .1760.

    A simulation of the same gave .1287 and .1762.
    """
    common = rates_after_flip(*NOISE)
    truly = float(np.mean(CHANCES * squared_loss(TIMID, 1) + (1 - CHANCES) * squared_loss(TIMID, 0)))

    flipped = expected_reading_after_flip(TIMID, common)
    by_class = expected_reading(TIMID, NOISE)
    perfect = expected_reading_after_flip(CHANCES, common)

    assert truly == pytest.approx(0.1760, abs=5e-5)
    assert flipped == pytest.approx(0.1285, abs=1e-6)
    assert flipped == pytest.approx(0.1287, abs=3e-4)
    assert by_class == pytest.approx(truly, abs=1e-12)
    assert by_class == pytest.approx(0.1762, abs=3e-4)
    assert perfect == pytest.approx(0.1667, abs=5e-5)
    assert flipped < perfect < by_class


def test_e16_the_flip_changes_no_reading() -> None:
    common = rates_after_flip(*NOISE)

    assert expected_reading_after_flip(TIMID, common) == pytest.approx(expected_reading(TIMID, common), abs=1e-15)


@pytest.mark.parametrize("forecast", [0.0, 0.3, 0.9])
def test_e16_one_common_rate_leaves_a_bias_that_depends_on_the_forecast(forecast: float) -> None:
    """(η1 - η0)/2·(2p - 1)/(1 - 2η̄)."""
    zero, one = NOISE
    mean = (zero + one) / 2
    told = [loss_parts(np.array([forecast]), answer) for answer in (0, 1)]

    for outcome, says_one in ((0, zero), (1, 1 - one)):
        read = [float(unbiased_peer_loss(*parts, mean, mean)[0]) for parts in told]
        bias = (1 - says_one) * read[0] + says_one * read[1] - (forecast - outcome) ** 2

        assert bias == pytest.approx((one - zero) / 2 * (2 * forecast - 1) / (1 - 2 * mean), abs=1e-15)


def test_the_common_rate_after_a_fair_flip_is_the_mean_over_questions() -> None:
    """The mean of the two rates, as the paper's proof has it, only if outcomes are balanced."""
    assert rates_after_flip(0.05, 0.35) == pytest.approx((0.2, 0.2))
    assert rates_after_flip(0.05, 0.35, share_of_zeros=0.9) == pytest.approx((0.08, 0.08))
    assert rates_after_flip(0.05, 0.35, share_of_zeros=0.5, flip_probability=0.1) == pytest.approx((0.08, 0.32))


def test_e17_flipped_answers_are_scored_at_the_flipped_rate_with_a_factor_of_2() -> None:
    """p = .3, η = .1, p̂ = .2: η̃ = .26. E[s | y] - η̃ = .48·ℓ(p, y); without the factor a term in p is left."""
    rate = float(flipped_error_rate(0.1, 0.2))
    forecasts = np.array([0.3])
    told = {answer: float(peer_loss(forecasts, answer, rate)[0]) for answer in (0, 1)}

    for outcome in (0, 1):
        expectation = (1 - rate) * told[outcome] + rate * told[1 - outcome]
        printed = expectation - rate * 0.3 * 0.7

        assert rate == pytest.approx(0.26)
        assert expectation - rate == pytest.approx(0.48 * (0.3 - outcome) ** 2, abs=1e-15)
        assert printed - rate != pytest.approx(0.48 * (0.3 - outcome) ** 2, abs=0.05)


@pytest.mark.parametrize(
    ("flip_probability", "best", "rival"),
    [(0.0, 9.0, 2.0), (0.49, 0.18, 0.04)],
)
def test_e18_flipping_keeps_the_wrong_order(flip_probability: float, best: float, rival: float) -> None:
    """The best expert errs on 10 easy questions (η = .05), the rival on 20 hard ones (η = .45)."""
    weights = 1 - 2 * np.asarray(flipped_error_rate(np.array([0.05, 0.45]), flip_probability))

    assert (10 * weights[0], 20 * weights[1]) == pytest.approx((best, rival), abs=1e-12)


def test_e18_no_flip_probability_changes_the_ratio_of_two_questions_weights() -> None:
    rates = np.array([0.05, 0.2, 0.45])

    for flip_probability in (0.0, 0.1, 0.3, 0.49):
        weights = 1 - 2 * np.asarray(flipped_error_rate(rates, flip_probability))
        np.testing.assert_allclose(weights / weights[0], (1 - 2 * rates) / 0.9, rtol=1e-13)


def test_a_flipped_answer_is_the_other_one_and_a_soft_one_is_mirrored() -> None:
    assert flip_answer(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert float(flip_answer(0.25, 1)) == 0.75


@pytest.mark.parametrize("flip_probability", [0.0, 1.0, float("nan")])
def test_a_coin_that_always_falls_alike_makes_no_symmetric_rates(flip_probability: float) -> None:
    with pytest.raises(FormulaInputError, match=f"flip_probability is {flip_probability!r}"):
        rates_after_flip(0.1, 0.2, flip_probability=flip_probability)

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.lab.formulas.flips import flip_answer, flip_question, flipped_error_rate, rates_after_flip
from stream_peer.lab.formulas.forms import natarajan_peer_loss, peer_loss
from stream_peer.lab.formulas.gaps import calibration_gap, noisy_label_gap, noisy_probability
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.numerics.losses import SQUARED, ProperLoss, squared_loss
from stream_peer.numerics.peer_losses import unbiased_peer_loss, unit_peer_loss
from tests.reference.plain_formulas import peer_loss_range
from tests.reference.savage import SavageLoss, savage_correction
from tests.reference.slow_losses import EVERY_LOSS

probabilities = st.one_of(st.sampled_from([0.0, 1e-300, 0.5, 1.0]), st.floats(0.0, 1.0))
within_clip = st.floats(0.001, 0.999)
error_rates = st.floats(0.0, 0.5)
class_rates = st.tuples(st.floats(0.0, 0.475), st.floats(0.0, 0.475))
outcomes = st.integers(0, 1)
every_loss = st.sampled_from(EVERY_LOSS)
savage_losses = st.sampled_from([loss for loss in EVERY_LOSS if isinstance(loss, SavageLoss)])
soft_answers = st.floats(0.0, 1.0)
unhurried = settings(deadline=None)


def chances_of_answers(rates: tuple[float, float], outcome: int) -> dict[int, float]:
    """How likely each reference answer is, given the outcome."""
    says_one = 1 - rates[1] if outcome else rates[0]
    return {0: 1 - says_one, 1: says_one}


def unit(loss: ProperLoss, forecasts: list[float], answer: float, rates: tuple[float, float]) -> list[float]:
    priced: list[float] = unit_peer_loss(*loss_parts(np.array(forecasts), answer, loss), *rates).tolist()
    return priced


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
@given(loss=every_loss, probability=probabilities, rates=class_rates, outcome=outcomes)
def test_every_unit_peer_loss_expects_the_informative_share_of_the_loss(
    loss: ProperLoss, probability: float, rates: tuple[float, float], outcome: int
) -> None:
    """E[s | y] = d·ℓ(p, y) and E[u | y] = ℓ(p, y), with the class's own rate."""
    forecasts = np.array([probability])
    expected_unit = expected_unbiased = 0.0

    for answer, chance in chances_of_answers(rates, outcome).items():
        parts = loss_parts(forecasts, answer, loss)
        expected_unit += chance * float(unit_peer_loss(*parts, *rates)[0])
        expected_unbiased += chance * float(unbiased_peer_loss(*parts, *rates)[0])

    truth = float(loss.scaled(forecasts, outcome)[0])
    assert expected_unit == pytest.approx((1 - sum(rates)) * truth, abs=1e-15)
    assert expected_unbiased == pytest.approx(truth, abs=3e-14)


@unhurried
@given(
    loss=every_loss,
    probability=probabilities,
    outcome=outcomes,
    answers=st.tuples(*[soft_answers] * 4),
    firsts=st.tuples(soft_answers, soft_answers),
)
def test_soft_reference_answers_keep_the_identity(
    loss: ProperLoss,
    probability: float,
    outcome: int,
    answers: tuple[float, float, float, float],
    firsts: tuple[float, float],
) -> None:
    """Two soft answers are possible for either outcome; η0 = E[ŷ | y=0], η1 = E[1 - ŷ | y=1]."""
    possible = [
        {answers[2 * side]: first, answers[2 * side + 1]: 1 - first}
        if answers[2 * side] != answers[2 * side + 1]
        else {answers[2 * side]: 1.0}
        for side, first in enumerate(firsts)
    ]
    means = [sum(answer * chance for answer, chance in of_class.items()) for of_class in possible]
    rates = (means[0], sum((1 - answer) * chance for answer, chance in possible[1].items()))

    expected = sum(chance * unit(loss, [probability], answer, rates)[0] for answer, chance in possible[outcome].items())

    truth = float(loss.scaled(np.array([probability]), outcome)[0])
    assert expected == pytest.approx((1 - sum(rates)) * truth, abs=2e-15)


@unhurried
@given(probability=probabilities, error_rate=error_rates, answer=st.one_of(outcomes, soft_answers))
def test_the_papers_form_is_the_unit_form_plus_the_rate(probability: float, error_rate: float, answer: float) -> None:
    """Because ℓ(p, 0) + ℓ(p, 1) = 1 - 2p(1 - p)."""
    paper = float(peer_loss(np.array([probability]), answer, error_rate)[0])

    ours = unit(SQUARED, [probability], answer, (error_rate, error_rate))[0] + error_rate

    assert paper == pytest.approx(ours, abs=1e-15)


@unhurried
@given(loss=every_loss, probability=probabilities, rates=class_rates, answer=st.one_of(outcomes, soft_answers))
def test_the_unit_form_is_natarajans(
    loss: ProperLoss, probability: float, rates: tuple[float, float], answer: float
) -> None:
    """S = (1 - η_{1-ŷ})·ℓ(p, ŷ) - η_ŷ·ℓ(p, 1-ŷ)."""
    theirs = natarajan_peer_loss(np.array([probability]), answer, *rates, loss)

    assert theirs.tolist() == pytest.approx(unit(loss, [probability], answer, rates), abs=1e-15)


@unhurried
@given(probability=probabilities, rates=class_rates, answer=outcomes)
def test_peer_losses_equal_exact_fractions(probability: float, rates: tuple[float, float], answer: int) -> None:
    """The form of Natarajan et al. and the paper's, in exact arithmetic."""
    p, by_class = Fraction(probability), [Fraction(rate) for rate in rates]
    exact_losses = [p * p, (1 - p) ** 2]
    natarajan = (1 - by_class[1 - answer]) * exact_losses[answer] - by_class[answer] * exact_losses[1 - answer]
    paper = (answer - p) ** 2 + 2 * by_class[0] * p * (1 - p)

    parts = loss_parts(np.array([probability]), answer)

    assert float(unit_peer_loss(*parts, *rates)[0]) == pytest.approx(float(natarajan), abs=1e-15)
    unbiased = float(unbiased_peer_loss(*parts, *rates)[0])
    assert unbiased == pytest.approx(float(natarajan / (1 - sum(by_class))), abs=1e-13)
    assert float(peer_loss(np.array([probability]), answer, rates[0])[0]) == pytest.approx(float(paper), abs=1e-15)


@unhurried
@given(loss=every_loss, probability=probabilities, error_rate=error_rates, answer=st.one_of(outcomes, soft_answers))
def test_a_question_turned_round_keeps_its_peer_loss(
    loss: ProperLoss, probability: float, error_rate: float, answer: float
) -> None:
    """score(1 - p, 1 - ŷ) = score(p, ŷ): why the flip to the symmetric case changes nothing."""
    forecasts = np.array([1.0 - probability])
    turned = flip_question(forecasts, answer, coin=1)

    left = unit(loss, forecasts.tolist(), answer, (error_rate, error_rate))
    right = unit(loss, turned.forecasts.tolist(), float(turned.reference_answer), (error_rate, error_rate))

    assert left == pytest.approx(right, abs=1e-15)
    assert peer_loss(forecasts, answer, error_rate).tolist() == pytest.approx(
        peer_loss(turned.forecasts, turned.reference_answer, error_rate).tolist(), abs=1e-15
    )


@unhurried
@given(probability=probabilities, error_rate=error_rates, answer=outcomes)
def test_the_peer_loss_is_the_loss_of_the_forecast_sent_through_the_channel(
    probability: float, error_rate: float, answer: int
) -> None:
    """(ŷ - η - (1-2η)·p)² = (1-2η)·s + η² in the paper's form."""
    through = noisy_probability(np.array([probability]), error_rate, error_rate)

    paper = peer_loss(np.array([probability]), answer, error_rate)

    np.testing.assert_allclose(squared_loss(through, answer), (1 - 2 * error_rate) * paper + error_rate**2, atol=1e-15)


@unhurried
@given(loss=every_loss, probability=probabilities, rates=class_rates, answer=st.one_of(outcomes, soft_answers))
def test_peer_losses_stay_in_their_ranges(
    loss: ProperLoss, probability: float, rates: tuple[float, float], answer: float
) -> None:
    low, high = peer_loss_range(*rates)

    found = unit(loss, [probability], answer, rates)[0]
    paper = float(peer_loss(np.array([probability]), answer, rates[0])[0])

    assert low - 1e-15 <= found <= high + 1e-15
    assert high - low == pytest.approx(1 + abs(rates[0] - rates[1]))
    assert -1e-15 <= paper <= 1 + 1e-15


@unhurried
@given(said=probabilities, believed=probabilities, error_rate=error_rates)
def test_honest_forecasts_are_best_against_noisy_answers(said: float, believed: float, error_rate: float) -> None:
    """E_ŷ[s(q, ŷ)] - E_ŷ[s(p, ŷ)] = (1 - 2η)(p - q)²: Theorem 4 with the divergence put right."""
    forecasts = np.array([said, believed])
    says_one = noisy_probability(forecasts, error_rate, error_rate)[1]

    other, honest = says_one * peer_loss(forecasts, 1, error_rate) + (1 - says_one) * peer_loss(
        forecasts, 0, error_rate
    )

    gap = float(calibration_gap(np.array([said]), believed, error_rate)[0])
    assert other - honest == pytest.approx(gap, abs=1e-15)


@unhurried
@given(said=probabilities, believed=probabilities, error_rate=error_rates)
def test_naive_labels_are_off_by_what_the_second_term_cancels(said: float, believed: float, error_rate: float) -> None:
    """E_ŷ[ℓ(q, ŷ)] - E_ŷ[ℓ(p, ŷ)] as the corrected lemma has it, and in exact fractions as the gap to p̂."""
    forecasts = np.array([said, believed])
    says_one = noisy_probability(forecasts, error_rate, error_rate)[1]
    p, q, rate = Fraction(believed), Fraction(said), Fraction(error_rate)
    through = p + rate * (1 - 2 * p)
    exact = (through - q) ** 2 - (through - p) ** 2

    other, honest = says_one * squared_loss(forecasts, 1) + (1 - says_one) * squared_loss(forecasts, 0)

    gap = float(noisy_label_gap(np.array([said]), believed, error_rate)[0])
    assert other - honest == pytest.approx(gap, abs=1e-15)
    assert gap == pytest.approx(float(exact), abs=1e-15)


@unhurried
@given(loss=every_loss, said=within_clip, believed=within_clip, rates=class_rates)
def test_every_loss_stays_calibrated_under_class_dependent_noise(
    loss: ProperLoss, said: float, believed: float, rates: tuple[float, float]
) -> None:
    """The gap of the expected peer losses is 1 - η0 - η1 times that of the expected losses, with no constant."""
    forecasts = [said, believed]
    says_one = float(noisy_probability(np.array([believed]), *rates)[0])
    told_one, told_zero = (np.array(unit(loss, forecasts, answer, rates)) for answer in (1, 0))

    other, honest = says_one * told_one + (1 - says_one) * told_zero

    if_one, if_zero = loss.scaled_sides(np.array(forecasts))
    truly = believed * if_one + (1 - believed) * if_zero
    assert other - honest == pytest.approx((1 - sum(rates)) * float(truly[0] - truly[1]), abs=2e-15)


@unhurried
@given(loss=savage_losses, forecast=within_clip, rival=within_clip, error_rate=error_rates, outcome=outcomes)
def test_the_savage_correction_cancels_all_that_depends_on_the_forecast(
    loss: SavageLoss, forecast: float, rival: float, error_rate: float, outcome: int
) -> None:
    """E[ℓ(p, ŷ)] + η·[2G + (1-2p)G'] - (1-2η)·ℓ(p, y) is the same number for any two forecasts."""
    forecasts = np.array([forecast, rival])
    right, wrong = loss(forecasts, outcome), loss(forecasts, 1 - outcome)
    correction = savage_correction(loss.potential, loss.slope, forecasts, error_rate)

    left_over = (1 - error_rate) * right + error_rate * wrong + correction - (1 - 2 * error_rate) * right

    assert left_over[0] == pytest.approx(left_over[1], abs=1e-12 * loss.upper)


@unhurried
@given(probability=probabilities, error_rate=error_rates, flip_probability=st.floats(0.0, 0.5), outcome=outcomes)
def test_flipped_answers_shrink_what_can_be_learnt_and_nothing_else(
    probability: float, error_rate: float, flip_probability: float, outcome: int
) -> None:
    """E[ℓ(p, ỹ) + 2η̃p(1-p) | y] = (1-2p̂)(1-2η)·ℓ(p, y) + η̃, over the coin and the noise."""
    forecasts = np.array([probability])
    rate = float(flipped_error_rate(error_rate, flip_probability))
    expected = 0.0

    for answer, coin in product((0, 1), (0, 1)):
        chance = (1 - error_rate if answer == outcome else error_rate) * (
            flip_probability if coin else 1 - flip_probability
        )
        expected += chance * float(peer_loss(forecasts, flip_answer(answer, coin), rate)[0])

    share = (1 - 2 * flip_probability) * (1 - 2 * error_rate)
    assert 1 - 2 * rate == pytest.approx(share, abs=1e-15)
    assert expected == pytest.approx(share * float(squared_loss(forecasts, outcome)[0]) + rate, abs=1e-15)


@unhurried
@given(
    rates=class_rates,
    share_of_zeros=st.floats(0.0, 1.0),
    flip_probability=st.floats(0.01, 0.99),
)
def test_rates_after_the_flip_are_those_of_all_that_can_happen(
    rates: tuple[float, float], share_of_zeros: float, flip_probability: float
) -> None:
    """Outcome, error and coin enumerated in exact fractions; with a fair coin both rates are the same."""
    zeros, flip = Fraction(share_of_zeros), Fraction(flip_probability)
    seen, wrong = [Fraction(0), Fraction(0)], [Fraction(0), Fraction(0)]
    for outcome, errs, turned in product((0, 1), (0, 1), (0, 1)):
        rate = Fraction(rates[outcome])
        chance = (1 - zeros if outcome else zeros) * (rate if errs else 1 - rate) * (flip if turned else 1 - flip)
        seen[outcome ^ turned] += chance
        wrong[outcome ^ turned] += chance * errs

    found = rates_after_flip(*rates, share_of_zeros, flip_probability)
    fair = rates_after_flip(*rates, share_of_zeros)

    assert found == pytest.approx([float(w / s) for w, s in zip(wrong, seen, strict=True)], abs=1e-14)
    assert fair[0] == pytest.approx(fair[1], abs=1e-15)


@unhurried
@given(loss=every_loss, batch=st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=4), data=st.data())
def test_rows_of_a_batch_are_priced_like_single_questions(
    loss: ProperLoss, batch: list[tuple[float, float]], data: st.DataObject
) -> None:
    rows = len(batch)
    answers = np.array(data.draw(st.lists(outcomes, min_size=rows, max_size=rows)))[:, np.newaxis]
    rates = np.array(data.draw(st.lists(class_rates, min_size=rows, max_size=rows)))
    zero, one = rates[:, :1], rates[:, 1:]

    together = unbiased_peer_loss(*loss_parts(np.array(batch), answers, loss), zero, one)

    for row in range(rows):
        parts = loss_parts(np.array(batch[row]), int(answers[row, 0]), loss)
        assert together[row].tolist() == unbiased_peer_loss(*parts, *map(float, rates[row])).tolist()

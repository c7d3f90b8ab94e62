import numpy as np
import pytest

from stream_peer.lab.formulas.regret_sums import RegretSums, loss_parts

WEIGHTS = np.array([0.5, 0.25, 0.25])
FORECASTS = np.array([0.9, 0.4, 0.2])


def one_question(rates: tuple[float, float] = (0.1, 0.3)) -> RegretSums:
    return RegretSums.contribution(WEIGHTS, loss_parts(FORECASTS, 1), rates)


def test_a_question_gives_the_regrets_of_its_three_parts() -> None:
    sums = one_question()

    # losses against 1: .01 .36 .64, mean .255; against 0: .81 .16 .04, mean .455
    assert sums.against == pytest.approx([0.245, -0.105, -0.385])
    assert sums.if_one == pytest.approx([0.245, -0.105, -0.385])
    assert sums.if_zero == pytest.approx([-0.355, 0.295, 0.415])
    assert sums.frozen == pytest.approx([0.327, -0.183, -0.471])
    assert sums.absolute == pytest.approx([0.327, 0.183, 0.471])
    assert sums.questions.tolist() == [1.0, 1.0, 1.0]


def test_who_was_absent_has_no_regret_whatever_its_forecast_holds() -> None:
    awake = np.array([True, False, True])
    parts = loss_parts(FORECASTS, 1)
    parts.against[1] = np.nan

    sums = RegretSums.contribution(np.array([0.5, 0.0, 0.5]), parts, (0.1, 0.1), awake=awake)

    assert sums.against[1] == sums.absolute[1] == sums.questions[1] == 0.0
    assert sums.against[0] == pytest.approx(0.315)


def test_an_outcome_counts_on_the_unit_scale() -> None:
    losses = (1 - FORECASTS) ** 2

    sums = RegretSums.outcome_contribution(WEIGHTS, losses, (0.1, 0.3), weight=2.0)

    assert sums.priced(0.2, 0.2) == pytest.approx(0.6 * 2 * np.array([0.245, -0.105, -0.385]))
    assert sums.frozen == pytest.approx(0.6 * 2 * np.array([0.245, -0.105, -0.385]))
    assert sums.absolute == pytest.approx([0.49, 0.21, 0.77])


def test_runs_with_rates_of_their_own_are_priced_apart() -> None:
    both = np.stack([FORECASTS, FORECASTS])
    rates = np.array([[0.1], [0.4]])

    sums = RegretSums.contribution(np.stack([WEIGHTS, WEIGHTS]), loss_parts(both, 1), (rates, rates))

    assert sums.priced(rates, rates)[1] == pytest.approx(one_question().priced(0.4, 0.4))
    np.testing.assert_allclose(sums.frozen, sums.priced(rates, rates))


def test_nothing_is_the_neutral_element() -> None:
    merged = RegretSums.nothing(3).merge(one_question())

    assert merged.priced(0.2, 0.1).tolist() == one_question().priced(0.2, 0.1).tolist()

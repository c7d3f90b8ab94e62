import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.losses import squared_loss
from stream_peer.tools.report.skill import (
    consistency_band,
    isotonic_fit,
    murphy_decomposition,
    reliability_bins,
    skill_score,
)


@pytest.mark.case("C19")
def test_who_answers_only_what_is_easy_has_a_smaller_loss_but_no_more_skill_than_its_equal() -> None:
    """Two experts of equal skill: one answers everything, one only the questions on which nobody errs much."""
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=4000)
    hardness = np.repeat([0.15, 0.45], 2000)
    crowd, thorough, picky = (
        np.clip(np.abs(truth - hardness) + rng.normal(0.0, 0.05, 4000), 0.0, 1.0) for _ in range(3)
    )
    reference = squared_loss(crowd, truth)

    everything = skill_score(squared_loss(thorough, truth), reference)
    easy_only = skill_score(squared_loss(picky, truth)[:2000], reference[:2000])

    assert easy_only.loss < everything.loss / 3
    assert easy_only.difficulty < everything.difficulty / 3
    assert easy_only.skill == pytest.approx(everything.skill, abs=0.03)


def test_deviation_is_that_of_repeated_draws() -> None:
    rng = np.random.default_rng(8)
    draws = [skill_score(rng.gamma(2.0, 0.1, 400), rng.gamma(2.0, 0.12, 400)) for _ in range(300)]

    spread = np.std([draw.skill for draw in draws if draw.skill is not None])

    assert np.mean([draw.deviation for draw in draws if draw.deviation is not None]) == pytest.approx(spread, rel=0.1)


def test_where_the_reference_never_errs_there_is_no_skill_to_tell() -> None:
    assert skill_score(np.array([0.1]), np.array([0.0])) == (1, 0.1, 0.0, None, None)


def test_one_question_has_no_deviation() -> None:
    assert skill_score(np.array([0.1]), np.array([0.2])) == (1, 0.1, 0.2, 0.5, None)


@pytest.mark.parametrize(("losses", "reference"), [([], []), ([0.1], [0.1, 0.2]), ([-0.1], [0.1]), ([np.nan], [0.1])])
def test_what_are_no_losses_on_the_same_questions_is_refused(losses: list[float], reference: list[float]) -> None:
    with pytest.raises(FormulaInputError):
        skill_score(np.array(losses), np.array(reference))


def test_equal_forecasts_get_one_value() -> None:
    fitted = isotonic_fit(np.array([0.3, 0.3, 0.3, 0.8]), np.array([1, 0, 0, 1]))

    assert fitted.tolist() == [1 / 3, 1 / 3, 1 / 3, 1.0]


def test_forecasts_that_fall_with_the_outcomes_all_become_the_base_rate() -> None:
    assert isotonic_fit(np.array([0.9, 0.5, 0.1]), np.array([0, 0, 1])).tolist() == [1 / 3] * 3


def test_of_no_forecasts_there_is_no_fit() -> None:
    assert isotonic_fit(np.array([]), np.array([], dtype=np.int64)).size == 0


@pytest.mark.parametrize(
    ("forecasts", "outcomes", "error"),
    [([0.5], [2], FormulaInputError), ([0.5, 0.5], [1], FormulaInputError), ([1.5], [1], ForecastRangeError)],
)
def test_what_is_no_resolved_forecast_is_refused(
    forecasts: list[float], outcomes: list[int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        isotonic_fit(np.array(forecasts), np.array(outcomes))


def test_whoever_always_says_the_base_rate_has_uncertainty_only() -> None:
    terms = murphy_decomposition(np.full(4, 0.25), np.array([0, 0, 1, 0]))

    assert terms == pytest.approx((0.1875, 0.0, 0.0, 0.1875))


def test_who_is_always_right_discriminates_all_that_was_uncertain() -> None:
    terms = murphy_decomposition(np.array([0.0, 1.0, 1.0]), np.array([0, 1, 1]))

    assert terms == pytest.approx((0.0, 0.0, 2 / 9, 2 / 9))


def test_who_knows_but_says_it_too_mildly_is_miscalibrated_only() -> None:
    terms = murphy_decomposition(np.array([0.4, 0.6]), np.array([0, 1]))

    assert terms == pytest.approx((0.16, 0.16, 0.25, 0.25))


def test_of_no_forecasts_there_is_no_score() -> None:
    with pytest.raises(FormulaInputError, match="of none"):
        murphy_decomposition(np.array([]), np.array([], dtype=np.int64))


def test_calibrated_forecasts_are_within_their_bands_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(11)
    inside = total = 0
    for _ in range(200):
        forecasts = rng.random(300)
        bins = reliability_bins(forecasts, (rng.random(300) < forecasts).astype(np.int64), level=0.9)
        inside += sum(each.low <= each.happened <= each.high for each in bins)
        total += len(bins)

    assert 0.9 <= inside / total <= 0.97


def test_overconfident_forecasts_are_outside_of_their_bands() -> None:
    forecasts = np.repeat([0.05, 0.95], 200)
    outcomes = np.tile([1, 0, 0, 0, 0], 80)
    outcomes[200:] = 1 - outcomes[200:]

    low, high = reliability_bins(forecasts, outcomes)

    assert low.happened > low.high
    assert high.happened < high.low


def test_a_forecast_of_one_belongs_to_the_last_bin() -> None:
    assert [each.questions for each in reliability_bins(np.array([0.0, 1.0]), np.array([0, 1]), n_bins=2)] == [1, 1]


@pytest.mark.parametrize("n_bins", [1, 3, 10, 20, 100])
def test_a_forecast_on_a_boundary_belongs_to_the_bin_above_it(n_bins: int) -> None:
    boundaries = np.array([k / n_bins for k in range(n_bins)])

    bins = reliability_bins(boundaries, np.zeros(n_bins, np.int64), n_bins)

    assert [each.forecast for each in bins] == boundaries.tolist()


def test_certain_forecasts_leave_no_room() -> None:
    assert consistency_band(np.array([1.0, 1.0, 0.0, 0.0])) == (0.5, 0.5)


def test_bands_of_very_many_forecasts_continue_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    forecasts = rng.uniform(0.1, 0.2, 4_001)

    exact, normal = consistency_band(forecasts[:4_000]), consistency_band(forecasts)

    assert exact == pytest.approx(normal, abs=2 / 4_000)


@pytest.mark.parametrize(("n_bins", "level"), [(0, 0.9), (5, 0.0), (5, 1.0)])
def test_what_no_diagram_can_be_drawn_with_is_refused(n_bins: int, level: float) -> None:
    with pytest.raises(FormulaInputError):
        reliability_bins(np.array([0.5]), np.array([1]), n_bins, level)


def test_of_no_forecasts_there_are_no_bins_and_no_band() -> None:
    assert reliability_bins(np.array([]), np.array([], dtype=np.int64)) == []
    with pytest.raises(FormulaInputError):
        consistency_band(np.array([]))

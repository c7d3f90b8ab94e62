"""Identities of calibration and skill, against slow and obvious implementations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_peer.numerics.losses import squared_loss
from stream_peer.tools.report.pairs import neighbourly_order
from stream_peer.tools.report.skill import (
    consistency_band,
    isotonic_fit,
    murphy_decomposition,
    reliability_bins,
    skill_score,
)

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

probabilities = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0]), st.floats(0.0, 1.0))
resolved = st.lists(st.tuples(probabilities, st.sampled_from([0, 1])), min_size=1, max_size=40).map(
    lambda pairs: (np.array([p for p, _ in pairs]), np.array([y for _, y in pairs]))
)
unhurried = settings(deadline=None)


def slow_isotonic(forecasts: Floats, outcomes: Whole) -> Floats:
    """The min-max formula: the largest, over where a run begins, of the smallest mean, over where it ends."""
    values = sorted(set(forecasts.tolist()))
    means = {
        (first, last): float(outcomes[(forecasts >= first) & (forecasts <= last)].mean())
        for first, last in product(values, values)
        if first <= last
    }
    fitted = {
        value: max(min(means[first, last] for last in values if last >= value) for first in values if first <= value)
        for value in values
    }
    return np.array([fitted[value] for value in forecasts.tolist()])


@unhurried
@given(given_questions=resolved)
def test_the_isotonic_fit_equals_the_min_max_formula(given_questions: tuple[Floats, Whole]) -> None:
    forecasts, outcomes = given_questions

    np.testing.assert_allclose(isotonic_fit(forecasts, outcomes), slow_isotonic(forecasts, outcomes), atol=1e-12)


@unhurried
@given(given_questions=resolved)
def test_the_isotonic_fit_rises_with_the_forecasts_and_keeps_the_share_of_ones(
    given_questions: tuple[Floats, Whole],
) -> None:
    forecasts, outcomes = given_questions

    fitted = isotonic_fit(forecasts, outcomes)

    order = np.argsort(forecasts, kind="stable")
    assert (np.diff(fitted[order]) >= 0.0).all()
    assert fitted.mean() == pytest.approx(outcomes.mean(), abs=1e-12)
    np.testing.assert_array_equal(isotonic_fit(fitted, outcomes), fitted)


@unhurried
@given(given_questions=resolved)
def test_the_terms_add_up_to_the_brier_score_and_none_is_negative(given_questions: tuple[Floats, Whole]) -> None:
    forecasts, outcomes = given_questions

    terms = murphy_decomposition(forecasts, outcomes)

    rate = outcomes.mean()
    fitted = isotonic_fit(forecasts, outcomes)
    brier = float(squared_loss(forecasts, outcomes).mean())
    assert terms.loss == pytest.approx(brier, abs=1e-12)
    assert terms.miscalibration - terms.discrimination + terms.uncertainty == pytest.approx(brier, abs=1e-12)
    assert terms.uncertainty == pytest.approx(outcomes.var(), abs=1e-12)
    assert terms.discrimination == pytest.approx(((fitted - rate) ** 2).mean(), abs=1e-12)
    assert min(terms.miscalibration, terms.discrimination) >= -1e-12


@unhurried
@given(ones=st.lists(st.integers(0, 6), min_size=2, max_size=6))
def test_where_shares_rise_with_the_forecasts_it_is_the_decomposition_by_bins(ones: list[int]) -> None:
    """Murphy's (1973) reliability and resolution, of bins in which all forecasts are equal."""
    rising = sorted(ones)
    levels = np.linspace(0.05, 0.9, len(rising))
    forecasts = np.repeat(levels, 6)
    outcomes = np.concatenate([np.repeat([1, 0], [k, 6 - k]) for k in rising])
    shares = np.array(rising) / 6

    terms = murphy_decomposition(forecasts, outcomes)

    assert terms.miscalibration == pytest.approx(((levels - shares) ** 2).mean(), abs=1e-12)
    assert terms.discrimination == pytest.approx(((shares - shares.mean()) ** 2).mean(), abs=1e-12)


@unhurried
@given(forecasts=st.lists(probabilities, min_size=1, max_size=9), level=st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_a_band_holds_the_share_of_ones_as_often_as_it_says_and_no_narrower_one_does(
    forecasts: list[float], level: float
) -> None:
    """Against the sum over all outcomes, one by one."""
    low, high = consistency_band(np.array(forecasts), level)

    n = len(forecasts)
    chances = np.zeros(n + 1)
    for outcomes in product((0, 1), repeat=n):
        chance = np.prod([p if y else 1 - p for p, y in zip(forecasts, outcomes, strict=True)])
        chances[sum(outcomes)] += chance
    inside = [k for k in range(n + 1) if low - 1e-9 <= k / n <= high + 1e-9]
    tail = (1 - level) / 2
    assume(min(abs(np.cumsum(chances) - tail).min(), abs(np.cumsum(chances[::-1]) - tail).min()) > 1e-12)
    assert chances[inside].sum() >= level - 1e-12
    assert chances[: inside[0] + 1].sum() > tail
    assert chances[inside[-1] :].sum() > tail


@unhurried
@given(given_questions=resolved, n_bins=st.integers(1, 12))
def test_bins_hold_every_question_once(given_questions: tuple[Floats, Whole], n_bins: int) -> None:
    forecasts, outcomes = given_questions

    bins = reliability_bins(forecasts, outcomes, n_bins)

    assert sum(each.questions for each in bins) == len(forecasts)
    assert sum(each.questions * each.happened for each in bins) == pytest.approx(outcomes.sum(), abs=1e-9)
    assert sum(each.questions * each.forecast for each in bins) == pytest.approx(forecasts.sum(), abs=1e-9)
    assert [each.forecast for each in bins] == sorted(each.forecast for each in bins)


losses_of_two = st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.01, 1.0)), min_size=2, max_size=30).map(
    lambda pairs: (np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))
)


@given(given_losses=losses_of_two, scale=st.floats(0.01, 100.0))
def test_skill_does_not_depend_on_the_unit_of_the_loss(given_losses: tuple[Floats, Floats], scale: float) -> None:
    one, other = skill_score(*given_losses), skill_score(*(scale * each for each in given_losses))

    assert (one.skill, one.deviation) == pytest.approx((other.skill, other.deviation), abs=1e-9)


@given(given_losses=losses_of_two, times=st.floats(0.0, 2.0))
def test_an_expert_that_loses_a_fixed_share_of_the_reference_has_the_same_skill_on_easy_and_on_hard_questions(
    given_losses: tuple[Floats, Floats], times: float
) -> None:
    _, reference = given_losses
    easy = np.sort(reference)[: len(reference) // 2]

    everywhere, easy_only = (skill_score(times * each, each) for each in (reference, easy))

    assert easy_only.difficulty <= everywhere.difficulty + 1e-12
    assert easy_only.skill == pytest.approx(everywhere.skill, abs=1e-9)
    assert everywhere.deviation == pytest.approx(0.0, abs=1e-9)


@given(places=st.permutations(range(9)))
def test_groups_stand_together_in_a_neighbourly_order_however_they_came(places: list[int]) -> None:
    groups = np.array(places) // 3
    similarity = np.where(groups[:, None] == groups[None, :], 4.0, 0.0)

    order = neighbourly_order(similarity)

    assert sorted(order.tolist()) == list(range(9))
    assert np.count_nonzero(np.diff(groups[order])) == 2

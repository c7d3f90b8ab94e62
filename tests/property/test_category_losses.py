"""Scores of options and of thresholds: their ranges, what they are on one question, and what coherence does to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.category_losses import multi_category_brier, ranked_probability_score
from stream_peer.numerics.coherent import isotonic_regression, simplex_projection
from tests.hypothesis_profiles import examples

EXACT = 1e-12
SAID = st.lists(st.one_of(st.floats(0, 1), st.sampled_from((0.0, 0.5, 1.0))), min_size=1, max_size=60)


@options(max_examples=examples(200))
@given(SAID)
def test_the_brier_score_of_options_never_grows_when_they_are_made_coherent(said: list[float]) -> None:
    p = np.array(said)
    for rest in (False, True):
        outcomes = [*np.eye(len(p), dtype=np.int8), *([np.zeros(len(p), np.int8)] if rest else [])]
        for outcome in outcomes:
            raw, coherent = (multi_category_brier(one, outcome) for one in (p, simplex_projection(p, rest=rest)))
            assert raw == pytest.approx(sum((a - b) ** 2 for a, b in zip(said, outcome.tolist(), strict=True)))
            assert coherent <= raw + EXACT
            assert 0.0 <= coherent <= 2.0 + EXACT


@options(max_examples=examples(200))
@given(SAID)
def test_the_score_of_a_cdf_is_the_mean_brier_score_of_its_thresholds_and_never_grows(said: list[float]) -> None:
    for above in range(len(said) + 1):
        outcome = [int(place >= above) for place in range(len(said))]
        raw, coherent = (ranked_probability_score(one, outcome) for one in (said, isotonic_regression(said)))
        assert raw == pytest.approx(sum((a - b) ** 2 for a, b in zip(said, outcome, strict=True)) / len(said))
        assert coherent <= raw + EXACT
        assert 0.0 <= raw <= 1.0


@given(st.floats(0, 1), st.sampled_from((0, 1)))
def test_two_options_score_twice_a_yes_or_no_question(p: float, outcome: int) -> None:
    score = multi_category_brier([p, 1.0 - p], [outcome, 1 - outcome])

    assert score == pytest.approx(2.0 * ranked_probability_score([p], [outcome]))


@pytest.mark.parametrize("outcomes", [[1, 1], [0, 2], []])
def test_of_options_at_most_one_comes_true(outcomes: list[int]) -> None:
    with pytest.raises(FormulaInputError):
        multi_category_brier([0.5] * len(outcomes), outcomes)


@pytest.mark.parametrize("outcomes", [[1, 0], [0, 1, 0], []])
def test_what_is_at_most_a_threshold_is_at_most_each_later_one(outcomes: list[int]) -> None:
    with pytest.raises(FormulaInputError):
        ranked_probability_score([0.5] * len(outcomes), outcomes)

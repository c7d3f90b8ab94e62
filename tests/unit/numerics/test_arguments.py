import re

import numpy as np
import pytest

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.arguments import FloatArray, check_answers, check_probabilities


@pytest.mark.parametrize("forecasts", [[], [0.0], [1.0], [0.0, 0.5, 1.0]])
def test_probabilities_pass_the_check(forecasts: list[float]) -> None:
    check_probabilities(np.array(forecasts))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), -1e-300, 1.0000000000000002, 55.0])
def test_what_is_no_probability_is_named_with_its_place(wrong: float) -> None:
    with pytest.raises(ForecastRangeError, match=re.escape(f"forecasts[1] is {wrong!r}")):
        check_probabilities(np.array([0.5, wrong, 0.5]))


def test_in_a_batch_places_are_counted_through_the_rows() -> None:
    with pytest.raises(ForecastRangeError, match=r"forecasts\[3\] is 1\.5"):
        check_probabilities(np.array([[0.5, 0.5], [0.5, 1.5]]))


@pytest.mark.parametrize("answers", [0, 1, 0.3, np.array([0, 1], dtype=np.uint8), np.array([[0.0, 0.7]]), np.array([])])
def test_answers_pass_the_check_hard_or_soft(answers: float | FloatArray) -> None:
    check_answers(answers)


@pytest.mark.parametrize("wrong", [2, -1, float("nan"), 1.5])
def test_what_is_no_answer_is_named_with_its_place(wrong: float) -> None:
    with pytest.raises(FormulaInputError, match=f"answers is {wrong!r}"):
        check_answers(wrong)
    with pytest.raises(FormulaInputError, match=rf"answers\[1\] is {wrong!r}"):
        check_answers(np.array([0, wrong]))

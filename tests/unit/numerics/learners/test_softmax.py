import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import softmax


def test_it_never_overflows() -> None:
    assert softmax(np.array([-1e308, 0.0, 1e300])).tolist() == [0.0, 0.0, 1.0]


def test_a_prior_multiplies_and_need_not_sum_to_one() -> None:
    assert softmax(np.log([1.0, 2.0]), prior=np.array([6.0, 1.0])) == pytest.approx([0.75, 0.25], abs=1e-15)


def test_who_is_asleep_gets_nothing_even_when_best() -> None:
    assert softmax(np.array([0.0, 700.0, 0.0]), awake=np.array([True, False, True])).tolist() == [0.5, 0.0, 0.5]


def test_nobody_awake_gets_no_weight() -> None:
    found = softmax(np.zeros((2, 3)), awake=np.array([[False] * 3, [True] * 3]))

    assert found.tolist() == [[0.0] * 3, [1 / 3] * 3]


def test_no_weight_for_anybody_falls_back_on_the_prior_and_then_on_equality() -> None:
    nothing = np.full(3, -np.inf)

    assert softmax(nothing, prior=np.array([1.0, 0.0, 3.0])).tolist() == [0.25, 0.0, 0.75]
    assert softmax(nothing, prior=np.zeros(3)).tolist() == [1 / 3] * 3
    assert softmax(nothing).tolist() == [1 / 3] * 3


def test_a_prior_of_those_awake_that_is_all_nought_is_none() -> None:
    found = softmax(np.zeros(3), prior=np.array([0.0, 1.0, 0.0]), awake=np.array([True, False, True]))

    assert found.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_a_prior_out_of_range_is_refused_with_its_value(wrong: float) -> None:
    with pytest.raises(FormulaInputError, match=str(wrong)):
        softmax(np.zeros(2), prior=np.array([1.0, wrong]))


def test_a_log_that_is_no_number_is_refused() -> None:
    with pytest.raises(FormulaInputError, match="within"):
        softmax(np.array([0.0, np.nan]))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_an_empty_pool_has_no_weights(shape: tuple[int, ...]) -> None:
    assert softmax(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("logs", [[0.0, np.inf], [-np.inf, np.inf], [np.inf, np.inf]])
def test_a_log_without_end_is_refused_and_nothing_is_warned_of(logs: list[float]) -> None:
    with pytest.raises(FormulaInputError, match="is inf"):
        softmax(np.array([[0.0, 0.0], logs]))


def test_who_is_asleep_may_have_any_log() -> None:
    assert softmax(np.array([0.0, np.inf, np.nan]), awake=np.array([True, False, False])).tolist() == [1.0, 0.0, 0.0]

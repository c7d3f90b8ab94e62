import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.skill import murphy_decomposition


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

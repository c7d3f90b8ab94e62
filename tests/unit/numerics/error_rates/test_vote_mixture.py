from fractions import Fraction

import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.error_rates import vote_mixture


@pytest.mark.parametrize("share_of_ones", [Fraction(1, 2), Fraction(1, 4), Fraction(3, 100), Fraction(97, 100)])
@pytest.mark.parametrize(
    ("if_one", "if_zero"),
    [
        (Fraction(4, 5), Fraction(1, 5)),
        (Fraction(1), Fraction(0)),
        (Fraction(11, 20), Fraction(1, 2)),
        (Fraction(3, 10), Fraction(1, 10)),
    ],
)
def test_the_closed_form_gives_back_the_mixture(share_of_ones: Fraction, if_one: Fraction, if_zero: Fraction) -> None:
    """Moments of a two-point mixture in exact fractions."""
    first, second, third = (share_of_ones * if_one**power + (1 - share_of_ones) * if_zero**power for power in (1, 2, 3))

    found = vote_mixture(float(first), float(second), float(third))

    assert found == pytest.approx((if_one, if_zero, 1 - share_of_ones), abs=1e-9)


def test_the_textbook_form_agrees() -> None:
    """(b ± √(b² - 4c))/2 with b = (m3 - m1·m2)/(m2 - m1²), c = b·m1 - m2; P1 = (m1 - v0)/(v1 - v0)."""
    first, second, third = 0.4, 0.21, 0.125
    b = (third - first * second) / (second - first**2)
    root = (b * b - 4 * (b * first - second)) ** 0.5
    if_one, if_zero = (b + root) / 2, (b - root) / 2

    expected = (if_one, if_zero, 1 - (first - if_zero) / (if_one - if_zero))
    assert vote_mixture(first, second, third) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("moments", [(0.5, 0.25, 0.125), (0.5, 0.2, 0.1), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)])
def test_votes_that_vary_no_more_than_coins_show_no_mixture(moments: tuple[float, float, float]) -> None:
    assert vote_mixture(*moments) is None


@pytest.mark.parametrize("moments", [(0.2, 0.3, 0.1), (0.5, 0.3, -0.1), (1.1, 0.5, 0.2), (0.5, float("nan"), 0.1)])
def test_numbers_that_are_no_moments_are_refused(moments: tuple[float, float, float]) -> None:
    with pytest.raises(FormulaInputError, match=r"factorial moments|within"):
        vote_mixture(*moments)

import pytest

from stream_peer.numerics.mixers import stretch_factor, stretched


def test_stretch_is_zero_without_outcomes_and_grows_with_timidity() -> None:
    """Fifty times .75 where the outcome was always 1: Σ(y-f)(f-½) = Σ(f-½)² = 3.125."""
    assert stretch_factor(0.0, 0.0) == 0.0
    assert stretch_factor(3.125, 3.125) == pytest.approx(3.125 / 8.125)


def test_a_stretched_forecast_stays_a_probability() -> None:
    assert [stretched(f, 0.5) for f in (0.0, 0.4, 0.5, 0.6, 1.0)] == pytest.approx([0.0, 0.35, 0.5, 0.65, 1.0])
    assert stretched(0.8, -0.5) == pytest.approx(0.65)


def test_a_crowd_that_was_always_wrong_is_not_turned_round() -> None:
    """A hundred questions at .9, all of them wrong: at less than -1 the next .9 would become less than 1/2."""
    factor = stretch_factor(100 * (0.0 - 0.9) * 0.4, 100 * 0.16)

    assert factor == -1.0
    assert stretched(0.9, factor) == 0.5

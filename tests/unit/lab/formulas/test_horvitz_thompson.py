import pytest

from stream_peer.lab.formulas.horvitz_thompson import HorvitzThompsonSums


def test_hidden_outcomes_count_as_questions_and_shown_errors_for_those_hidden() -> None:
    """One error shown and three questions hidden, at p* = ¼: one error in four questions of weight 1."""
    seen = HorvitzThompsonSums.contribution(1.0, 0.25)
    for _ in range(15):
        seen = seen.merge(HorvitzThompsonSums.contribution(None, 0.25))

    assert seen == HorvitzThompsonSums(16.0, 16.0, 4.0, 16.0)
    assert seen.estimate().zero == 0.25


def test_the_variance_with_known_reveal_probability_is_estimated_right() -> None:
    seen = HorvitzThompsonSums(1000.0, 1000.0, 60 / 0.2, 60 / 0.04)

    assert seen.estimate().variance == pytest.approx((0.3 / 0.2 - 0.3**2) / 1000, rel=1e-12)

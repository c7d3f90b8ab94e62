import numpy as np
import pytest

from stream_peer.numerics.references import ballots, soft_answers_of_others


def test_the_share_of_votes_leaves_out_those_who_do_not_vote() -> None:
    found = soft_answers_of_others(ballots(np.array([0.5, 0.9, 0.8, 0.1])))

    assert found.answers == pytest.approx([2 / 3, 1 / 2, 1 / 2, 1.0])
    assert found.given.all()


def test_the_mean_counts_those_who_do_not_vote() -> None:
    found = soft_answers_of_others(ballots(np.array([0.5, 0.9, 0.4]), "mean"))

    assert found.answers == pytest.approx([0.65, 0.45, 0.7], abs=1e-12)


def test_weights_weigh_shares_and_means() -> None:
    forecasts, weights = np.array([0.2, 0.9, 0.4]), np.array([1.0, 3.0, 1.0])

    shares = soft_answers_of_others(ballots(forecasts, "weighted", weights=weights)).answers
    means = soft_answers_of_others(ballots(forecasts, "mean", weights=weights)).answers

    assert shares == pytest.approx([3 / 4, 0.0, 3 / 4], abs=1e-12)
    assert means == pytest.approx([3.1 / 4, 0.3, 2.9 / 4], abs=1e-12)


def test_the_posterior_is_that_of_independent_signals() -> None:
    """Odds of .6 and .75 multiply: 1.5 times 3 are 4.5, of which the probability is 4.5/5.5."""
    found = soft_answers_of_others(ballots(np.array([0.1, 0.6, 0.75]), "product"))

    assert found.answers[0] == pytest.approx(4.5 / 5.5, abs=1e-12)


def test_own_thresholds_shift_the_line_and_the_mean_stays_a_probability() -> None:
    forecasts, thresholds = np.array([0.9, 1.0, 1.0]), np.array([0.05, 0.05, 0.05])

    found = soft_answers_of_others(ballots(forecasts, "mean", thresholds=thresholds))

    assert found.answers.tolist() == [1.0, 1.0, 1.0]


def test_where_nobody_else_has_a_say_the_answer_is_a_half_and_not_given() -> None:
    everyone_out = soft_answers_of_others(ballots(np.array([0.9, 0.8])), np.array([4, 4]))
    no_votes = soft_answers_of_others(ballots(np.array([0.9, 0.5])))
    no_weight = soft_answers_of_others(ballots(np.array([0.9, 0.8]), "mean", weights=np.array([0.0, 1.0])))

    assert [part.tolist() for part in everyone_out] == [[0.5, 0.5], [False, False]]
    assert [no_votes.answers.tolist(), no_votes.given.tolist()] == [[0.5, 1.0], [False, True]]
    assert no_weight.answers == pytest.approx([0.8, 0.5], abs=1e-12)
    assert no_weight.given.tolist() == [True, False]

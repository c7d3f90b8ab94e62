import numpy as np
import pytest

from stream_peer.numerics.mixers import SlopeSums

PEER = np.array([0.2, -0.1, -0.1])


def test_before_any_outcome_peers_are_taken_at_their_word() -> None:
    assert float(SlopeSums.nothing().estimate()) == 1.0
    assert SlopeSums.nothing(2).estimate().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("questions", [1, 4, 40])
def test_the_slope_is_a_regression_with_one_more_question_on_which_both_agree(questions: int) -> None:
    """True regrets are half of the peers': (questions·½ + 1)/(questions + 1)."""
    sums = SlopeSums.nothing()
    for _ in range(questions):
        sums = sums.merge(SlopeSums.contribution(0.5 * PEER, PEER))

    assert float(sums.estimate()) == pytest.approx((questions / 2 + 1) / (questions + 1))


def test_the_slope_stays_between_nothing_and_all() -> None:
    misled = SlopeSums.contribution(-3.0 * PEER, PEER, weight=9.0)
    timid = SlopeSums.contribution(3.0 * PEER, PEER, weight=9.0)

    assert float(misled.estimate()) == 0.0
    assert float(timid.estimate()) == 1.0


def test_peers_without_an_opinion_keep_the_slope_at_one() -> None:
    for nothing in (np.zeros(3), 1e-17 * PEER):
        assert float(SlopeSums.contribution(-PEER, nothing).estimate()) == pytest.approx(1.0, abs=1e-4)


def test_slopes_of_many_runs_are_those_of_each() -> None:
    true = np.array([[0.1, 0.2, -0.3], [0.0, -0.4, 0.4]])
    together = SlopeSums.contribution(true, np.stack([PEER, PEER])).estimate()

    assert together.tolist() == [float(SlopeSums.contribution(row, PEER).estimate()) for row in true]

from fractions import Fraction

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.mixers import SlopeSums, shrunk_means

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


def slow_shrunk_means(losses: list[list[Fraction]], peers: list[Fraction], slope: Fraction) -> list[Fraction]:
    """The docstring, one expert after the other."""
    seen = [(row, peer) for row, peer in zip(losses, peers, strict=True) if row]
    means = [sum(row, Fraction(0)) / len(row) for row, _ in seen]
    total = sum(len(row) for row, _ in seen)
    squares = sum(((x - mean) ** 2 for (row, _), mean in zip(seen, means, strict=True) for x in row), Fraction(0))
    within = squares / (total - len(seen))
    off = [len(row) * (mean - slope * peer) ** 2 for (row, peer), mean in zip(seen, means, strict=True)]
    left = (sum(off, Fraction(0)) - len(seen) * within) / total
    between = left if left > 0 else Fraction(0)
    result = []
    for row, peer in zip(losses, peers, strict=True):
        expected = slope * peer
        if row:
            mean = sum(row, Fraction(0)) / len(row)
            expected += between / (between + within / len(row)) * (mean - expected)
        result.append(expected)
    return result


@pytest.mark.parametrize("spread", [1, 30])
def test_shrunk_means_are_those_of_exact_arithmetic(spread: int) -> None:
    """At spread 30 the experts' means differ by less than chance: then there is nothing of their own left."""
    noise = [Fraction(n % 2 * 2 - 1, 100) * spread for n in range(12)]
    losses = [[noise[n] + Fraction(i - 2, 20) for n in range(count)] for i, count in enumerate([8, 6, 0, 1, 12])]
    peers, slope = [Fraction(i - 1, 25) for i in range(5)], Fraction(3, 4)
    sums = np.array([float(sum(row, Fraction(0))) for row in losses])
    squares = np.array([float(sum((x * x for x in row), Fraction(0))) for row in losses])
    counts = np.array([float(len(row)) for row in losses])

    shrunk = shrunk_means(sums, squares, counts, np.array([float(p) for p in peers]), float(slope))

    exact = slow_shrunk_means(losses, peers, slope)
    np.testing.assert_allclose(shrunk, [float(x) for x in exact], atol=1e-12)
    assert (exact == [slope * peer for peer in peers]) is (spread == 30)


def test_without_a_second_outcome_of_anyone_only_peers_speak() -> None:
    none = np.zeros(0)
    shrunk = shrunk_means(np.array([0.9, 0.0]), np.array([0.81, 0.0]), np.array([1.0, 0.0]), np.array([0.2, -0.2]), 0.5)

    assert shrunk.tolist() == [0.1, -0.1]
    assert shrunk_means(none, none, none, none).size == 0


def test_losses_without_noise_speak_for_themselves() -> None:
    counts, means = np.array([4.0, 2.0]), np.array([0.5, -0.5])

    shrunk = shrunk_means(counts * means, counts * means**2, counts, np.array([-0.2, 0.3]))

    assert shrunk.tolist() == pytest.approx(means.tolist())


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(FormulaInputError, match=r"-1"):
        shrunk_means(np.zeros(1), np.zeros(1), np.array([-1.0]), np.zeros(1))

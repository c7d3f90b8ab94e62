import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.mixers import SideBySide, logit_mean, mixers_side_by_side
from tests.reference.plain_formulas import peer_mixer, truth_slow


def test_nobody_has_no_mean() -> None:
    with pytest.raises(FormulaInputError, match="of nobody"):
        logit_mean(np.zeros(0))


SETTINGS = {"nominal": 0.35, "rate": 24.0, "uniform_share": 0.0}


def test_the_peer_mixer_follows_the_regret_a_question_of_forty_more() -> None:
    mix_level, mix_slope, mix_answer = (
        np.array([1.0, -2.0, 0.5]),
        np.array([0.3, 0.1, -4.0]),
        np.array([0.2, 0.6, -1.0]),
    )
    counts = np.array([10.0, 30.0, 5.0])
    plain = np.exp(24.0 * (0.3 * mix_level + 0.35 * mix_slope - mix_answer) / (15.0 + 40.0))

    weights = peer_mixer(mix_level, mix_slope, mix_answer, counts, **SETTINGS)
    shared = peer_mixer(mix_level, mix_slope, mix_answer, counts, **{**SETTINGS, "uniform_share": 0.5})

    np.testing.assert_allclose(weights, plain / plain.sum(), rtol=1e-12)
    np.testing.assert_allclose(shared, 0.5 / 3 + 0.5 * weights, rtol=1e-12)


def test_the_linearised_peer_regret_favours_the_better_expert() -> None:
    """The mean is .5; whoever says .9 where others say yes gains on whoever says .1."""
    u, v = np.array([2 * 0.5 * (0.5 - 0.9), 2 * 0.5 * (0.5 - 0.1)]), np.array([2 * (0.5 - 0.9), 2 * (0.5 - 0.1)])

    weights = peer_mixer(u, v, v * 1, np.ones(2), **SETTINGS)

    assert weights[0] > 0.5 > weights[1]


def test_more_questions_of_the_same_kind_make_an_expert_known_and_not_almighty() -> None:
    """Twice as many questions at the same mean regret bring weights nearer to a limit that they never pass."""
    regret = np.array([0.1, -0.1])
    limit = 1 / (1 + math.exp(-24.0 * 0.2))

    slow = [truth_slow(n * regret, np.full(2, float(n)), rate=24.0)[0] for n in (1, 10, 100, 10**6)]

    assert slow == sorted(slow)
    assert slow[-1] == pytest.approx(limit, abs=1e-4)


def test_truth_slow_follows_the_regret_a_question_of_ten_more() -> None:
    mix_regret, resolved = np.array([3.0, -1.0]), np.array([8.0, 4.0])
    plain = np.exp(24.0 * mix_regret / (6.0 + 10.0))

    np.testing.assert_allclose(truth_slow(mix_regret, resolved, rate=24.0), plain / plain.sum(), rtol=1e-12)


def test_each_row_is_what_its_mixer_says_alone() -> None:
    random = np.random.default_rng(3)
    sums, scored, resolved = random.normal(size=(4, 6)), random.random(6) * 20, random.random(6) * 9
    peers, slow = [(0.35, 24.0), (0.0, 2.0)], [24.0, 3.0]
    answered = scored + resolved

    found = mixers_side_by_side(SideBySide.of(peers, slow), sums, float(answered.mean()), float(resolved.mean()))

    expected = [
        *(
            peer_mixer(sums[0], sums[1], sums[2], answered, nominal=nominal, rate=rate, uniform_share=0.0)
            for nominal, rate in peers
        ),
        *(truth_slow(sums[3], resolved, rate=rate) for rate in slow),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)

import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import ada_normal_hedge
from stream_peer.numerics.mixers import peer_mixer, truth_fast, truth_slow

SETTINGS = {"nominal": 0.35, "rate": 0.42, "uniform_share": 0.5}


def test_the_peer_mixer_is_half_uniform_half_exponential_weights() -> None:
    su, sv, svy = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -4.0]), np.array([0.2, 0.6, -1.0])
    counts, n_experts = np.array([10.0, 30.0, 5.0]), 7
    rate = 0.42 * math.sqrt(8 * math.log(n_experts) / (15.0 + 1))
    plain = np.exp(rate * (0.3 * su + 0.35 * sv - svy))

    weights = peer_mixer(su, sv, svy, counts, n_experts, **SETTINGS)

    np.testing.assert_allclose(weights, 0.5 / 3 + 0.5 * plain / plain.sum(), rtol=1e-12)


def test_the_linearised_peer_regret_favours_the_better_expert() -> None:
    """The mean is .5; whoever says .9 where others say yes gains on whoever says .1."""
    u, v = np.array([2 * 0.5 * (0.5 - 0.9), 2 * 0.5 * (0.5 - 0.1)]), np.array([2 * (0.5 - 0.9), 2 * (0.5 - 0.1)])

    weights = peer_mixer(u, v, v * 1, np.ones(2), 2, **SETTINGS)

    assert weights[0] > 0.5 > weights[1] >= 0.25


def test_truth_slow_is_exponential_weights_at_its_rate() -> None:
    rh, resolved = np.array([3.0, -1.0]), np.array([8.0, 4.0])
    plain = np.exp(0.25 * math.sqrt(8 * math.log(5) / 7) * rh)

    np.testing.assert_allclose(truth_slow(rh, resolved, 5, rate=0.25), plain / plain.sum(), rtol=1e-12)


def test_truth_fast_is_ada_normal_hedge() -> None:
    rh, ah = np.array([3.0, -1.5, 0.2]), np.array([5.0, 4.0, 1.0])

    assert truth_fast(rh, ah).tolist() == ada_normal_hedge(rh, ah).tolist()


def test_a_single_expert_gets_everything() -> None:
    one = np.ones(1)

    assert peer_mixer(one, one, one, one, 1, **SETTINGS).tolist() == [1.0]
    assert truth_slow(one, one, 1, rate=0.25).tolist() == [1.0]


def test_nobody_present_gets_no_weights() -> None:
    none = np.zeros(0)

    assert peer_mixer(none, none, none, none, 3, **SETTINGS).size == 0
    assert truth_slow(none, none, 3, rate=0.25).size == 0
    assert truth_fast(none, none).size == 0


@pytest.mark.parametrize(("n_experts", "questions"), [(0, 1.0), (2, -1.0), (2, math.nan)])
def test_a_rate_needs_experts_and_a_number_of_questions(n_experts: int, questions: float) -> None:
    with pytest.raises(FormulaInputError, match="n_experts"):
        truth_slow(np.array([1.0]), np.array([questions]), n_experts, rate=0.25)

"""From sums to the forecast that is published: mixers, their shares, the safety net and the stretch."""

import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.mixers import (
    SideBySide,
    logit_mean,
    mixers_side_by_side,
    peer_mixer_logs,
    pooled_regrets,
    truth_slow_logs,
)
from stream_peer.numerics.outer_layer import outer_weights, safety_net_step, stretch_factor, stretched
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


def test_pooled_regrets_are_those_of_own_questions_and_forty_of_an_average_expert() -> None:
    regrets, counts = np.array([9.0, -3.0, 0.0, 2.0]), np.array([60.0, 40.0, 20.0, 10.0])
    average = 8.0 / 130.0

    pooled = pooled_regrets(regrets, counts, 40.0)
    floored = pooled_regrets(regrets, counts, 40.0, np.maximum(counts, 32.5))

    np.testing.assert_allclose(pooled, (regrets + 40.0 * average) / (counts + 40.0) - average, rtol=1e-12)
    np.testing.assert_array_equal(floored[:3], pooled[:3])
    assert floored[3] == pytest.approx((2.0 - 10.0 * average) / (32.5 + 40.0), rel=1e-12)
    np.testing.assert_array_equal(pooled_regrets(np.zeros(2), np.zeros(2), 40.0), np.zeros(2))


def test_who_shares_a_voice_moves_the_average_no_further_than_one_expert_does() -> None:
    three, five = [0, 1, 2], [0, 1, 2, 2, 2]
    regrets, counts, known = np.array([9.0, -3.0, -60.0]), np.array([60.0, 40.0, 90.0]), np.array([5.0, 0.0, 9.0])
    sums, voices = np.array([regrets, 0.3 * regrets, 0.1 * regrets, 0.5 * regrets]), np.array([1.0, 1.0, *[1 / 3] * 3])

    def found(who: list[int], by: FloatArray | None) -> FloatArray:
        """Of the first two: pooled regrets, the logarithms of two mixers, and the weights of both side by side."""
        own, n, m = sums[:, who], counts[who], known[who]
        side = mixers_side_by_side(SideBySide.of([(0.35, 24.0)], [20.0]), own, n - m, m, by)
        parts = (
            pooled_regrets(own[0], n, 40.0, voices=by),
            peer_mixer_logs(own, n, m, by, nominal=0.3, rate=1.0, own_counts=True),
            truth_slow_logs(own[3], m, by, rate=2.0, own_counts=True),
            *(row / row[1] for row in side),
        )
        return np.array([part[:2] for part in parts])

    np.testing.assert_allclose(found(five, voices), found(three, None), rtol=1e-12)
    assert found(five, None)[0, 0] > 1.4 * found(three, None)[0, 0]


def peers(regrets: list[float], counts: list[float]) -> list[float]:
    """The peer mixer's logarithms of regrets by reference answers alone, at a rate of 1."""
    nothing = np.zeros(len(counts))
    sums = np.array([nothing, nothing, -np.array(regrets), nothing])
    logs = peer_mixer_logs(sums, np.array(counts), nothing, nominal=0.35, rate=1.0, own_counts=True)
    return [float(log) for log in logs]


def test_to_stay_away_earns_nothing_by_peers_and_what_was_earned_fades() -> None:
    """The first two are equally good; the second stays away from the half on which little can be gained."""
    full, picky, _ = peers([12.0, 10.0, -22.0], [200.0, 100.0, 200.0])
    later = peers([18.0, 10.0, -28.0], [300.0, 100.0, 300.0])

    assert full > picky > later[1] > 0.0
    assert later[0] > later[1]


def test_a_throwaway_id_is_an_average_expert_and_less_than_one_that_answered_well() -> None:
    good, _, thrown_away = peers([10.0, -4.0, 0.0], [100.0, 50.0, 0.0])

    assert good > thrown_away == 0.0


def test_an_expert_that_answers_much_is_not_charged_for_it_under_pooled_regrets() -> None:
    """Nearly everybody's regret is a little negative; the one who answered nine hundred has the smallest."""
    counts = np.array([900.0, 100.0, 100.0])
    mix_answer = np.array([0.04, 0.06, 0.06]) * counts
    nothing = np.zeros(3)
    terms = np.array([nothing, nothing, mix_answer, nothing]), counts, nothing

    former = peer_mixer_logs(*terms, nominal=0.35, rate=24.0, own_counts=False)
    pooled = peer_mixer_logs(*terms, nominal=0.35, rate=24.0, own_counts=True)

    assert former.argmin() == 0
    assert pooled.argmax() == 0


def test_an_outcome_counts_in_the_peer_mixer_as_five_reference_answers() -> None:
    nothing, regret, resolved = np.zeros(2), np.array([3.0, -1.0]), np.array([4.0, 4.0])

    sums = np.array([nothing, nothing, nothing, regret])
    logs = peer_mixer_logs(sums, resolved, resolved, nominal=0.35, rate=24.0, own_counts=True)

    np.testing.assert_allclose(logs, 24.0 * pooled_regrets(2.0 * regret, 5.0 * resolved, 40.0), rtol=1e-12)


def test_pooled_regrets_side_by_side_are_those_of_each_mixer() -> None:
    sums, counts = np.array([[1.0, -2.0], [0.3, 0.1], [0.2, 0.6], [3.0, -1.0]]), np.array([30.0, 2.0])
    known = np.array([4.0, 0.0])

    mixers = SideBySide.of([(0.35, 24.0)], [20.0])
    peer, slow = mixers_side_by_side(mixers, sums, counts - known, known, own_counts=True)

    expected = np.exp(peer_mixer_logs(sums, counts, known, nominal=0.35, rate=24.0, own_counts=True))
    np.testing.assert_allclose(peer, expected / expected.sum(), rtol=1e-12)
    expected = np.exp(20.0 * pooled_regrets(sums[3], known, 10.0))
    np.testing.assert_allclose(slow, expected / expected.sum(), rtol=1e-12)


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

    found = mixers_side_by_side(SideBySide.of(peers, slow), sums, scored, resolved, own_counts=False)

    expected = [
        *(
            peer_mixer(sums[0], sums[1], sums[2], answered, nominal=nominal, rate=rate, uniform_share=0.0)
            for nominal, rate in peers
        ),
        *(truth_slow(sums[3], resolved, rate=rate) for rate in slow),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


PRIOR = np.array([0.30, 0.50, 0.12, 0.08])


def test_without_outcomes_the_shadows_have_their_prior() -> None:
    assert outer_weights(np.zeros((3, 3)), np.zeros(3), PRIOR).tolist() == pytest.approx(PRIOR.tolist(), abs=1e-15)


def test_the_net_moves_a_twentieth_at_a_time() -> None:
    """Z = 3.2/√(1 - .001 + .001): the goal is 1, then z = -1: the goal is 0."""
    shares = [0.0]
    for delta in [3.2] * 22 + [-1.0] * 3:
        shares.append(safety_net_step(shares[-1], delta, 0.999))

    assert shares[1] == pytest.approx(0.05)
    assert shares[20:23] == pytest.approx([1.0, 1.0, 1.0])
    assert shares[-1] == pytest.approx(0.85)


def test_the_net_stops_at_its_goal() -> None:
    assert safety_net_step(0.28, net_difference=1.6, net_square=0.999) == pytest.approx(0.3)
    assert safety_net_step(0.02, net_difference=0.0, net_square=0.0) == 0.0


def test_stretch_is_zero_without_outcomes_and_grows_with_timidity() -> None:
    """Fifty times .75 where the outcome was always 1: Σ(y-f)(f-½) = Σ(f-½)² = 3.125."""
    assert stretch_factor(0.0, 0.0) == 0.0
    assert stretch_factor(3.125, 3.125) == pytest.approx(3.125 / 8.125)


def test_a_crowd_that_was_always_wrong_is_not_turned_round() -> None:
    """A hundred questions at .9, all of them wrong: at less than -1 the next .9 would become less than 1/2."""
    factor = stretch_factor(100 * (0.0 - 0.9) * 0.4, 100 * 0.16)

    assert factor == -1.0
    assert stretched(0.9, factor) == 0.5

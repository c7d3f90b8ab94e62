"""The formulas of version 2 of the method, each derived once more from what it is for, in exact fractions."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.events.outputs import TrustState
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.published_rates import class_errors_high
from stream_peer.feeds.reading.trust import PEER_STEP, PEER_TRUST, next_peer_trust
from stream_peer.feeds.reading.weights import LARGEST_PEER_PRIOR, PeerTrust, shared_by_groups, shares_of
from stream_peer.feeds.vote_units import Groups
from stream_peer.numerics.agreement import agreement_evidence, cross_agreement, peer_stretch
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.dependence import ClassErrors, DependenceSums, class_errors
from stream_peer.numerics.mixers import peer_mixer_logs, truth_slow_logs
from stream_peer.settings.feed.model import MixerSettings

SECOND = Method(trust_prior=True)
CENTS = st.integers(0, 100).map(lambda cents: Fraction(cents, 100))
ANSWERED = st.tuples(CENTS, CENTS, st.integers(0, 1), st.booleans())
"""Forecast, plain mean, answer or outcome, and whether it is an outcome that is known."""
EXPERTS = st.lists(st.lists(ANSWERED, max_size=6), min_size=2, max_size=5)

Question = tuple[Fraction, Fraction, int, bool]


def regrets(questions: Sequence[Question]) -> tuple[Fraction, Fraction, int]:
    """Of an expert: regret by answers at the nominal rate .35 on the unit scale, by outcomes, and known outcomes.

    Of squared losses linearised at the mean b, the loss of p is 2(b - y)p; without its noise an answer is
    (ŷ - η)/(1 - 2η). Half of the curvature, (b - p)²/2, is taken off where the outcome is known.
    """
    rate, by_answers, by_outcomes = Fraction(35, 100), Fraction(0), Fraction(0)
    for p, b, answer, is_known in questions:
        unbiased = (answer - rate) / (1 - 2 * rate)
        by_answers += (1 - 2 * rate) * (2 * (b - unbiased) * b - 2 * (b - unbiased) * p)
        if is_known:
            by_outcomes += 2 * (b - answer) * b - 2 * (b - answer) * p - (b - p) ** 2 / 2
    return by_answers, by_outcomes, sum(is_known for *_, is_known in questions)


def columns(experts: Sequence[Sequence[Question]]) -> FloatArray:
    """Level, slope, answer, regret by outcomes, questions, known outcomes: as a feed adds them up."""
    rows = [
        [
            (
                2 * b * (b - p),
                2 * (b - p),
                2 * (b - p) * y,
                (2 * (b - p) * (b - y) - (b - p) ** 2 / 2) * known,
                1,
                known,
            )
            for p, b, y, known in questions
        ]
        for questions in experts
    ]
    return np.array([[float(sum(column)) for column in zip(*row, strict=True)] or [0.0] * 6 for row in rows]).T


@given(EXPERTS)
def test_the_peer_mixer_goes_by_regrets_a_question_above_the_average_shrunk_by_forty(
    experts: list[list[Question]],
) -> None:
    *sums, counts, known = columns(experts)
    found = [regrets(questions) for questions in experts]
    total = [peers + 2 * outcomes for peers, outcomes, _ in found]
    answers = [len(questions) for questions in experts]
    n = [count + 4 * resolved for count, (_, _, resolved) in zip(answers, found, strict=True)]
    average = Fraction(sum(total)) / (sum(n) or 1)
    wanted = []
    for regret, count, own, (_, _, resolved) in zip(total, answers, n, found, strict=True):
        above = regret - own * average
        divisor = max(Fraction(count), Fraction(sum(answers), len(answers))) + 4 * resolved if above > 0 else own
        wanted.append(float(24 * above / (divisor + 40)))

    logs = peer_mixer_logs(np.array(sums), counts, known, nominal=0.35, rate=24.0, own_counts=True)

    assert logs.tolist() == pytest.approx(wanted, abs=1e-12)


@given(EXPERTS)
def test_the_slow_truth_mixer_goes_by_known_regrets_above_the_average_shrunk_by_ten(
    experts: list[list[Question]],
) -> None:
    *_, mix_regret, _, known = columns(experts)
    found = [regrets(questions) for questions in experts]
    average = Fraction(sum(outcomes for _, outcomes, _ in found)) / (sum(m for *_, m in found) or 1)
    wanted = [float(24 * ((outcomes + 10 * average) / (m + 10) - average)) for _, outcomes, m in found]

    assert truth_slow_logs(mix_regret, known, rate=24.0, own_counts=True).tolist() == pytest.approx(wanted, abs=1e-12)


@given(EXPERTS, st.floats(-1.0, 1.0))
def test_a_regret_that_all_have_in_each_question_costs_nobody_anything(
    experts: list[list[Question]], each: float
) -> None:
    level, slope, answer, _, counts, _ = columns(experts)
    nothing = np.zeros(len(counts))

    logs, moved = (
        peer_mixer_logs(
            np.array([level + more, slope, answer, nothing]), counts, nothing, nominal=0.35, rate=24.0, own_counts=True
        )
        for more in (nothing, each * counts)
    )

    assert moved.tolist() == pytest.approx(logs.tolist(), abs=1e-11)
    assert logs[counts == 0.0].tolist() == [0.0] * int((counts == 0.0).sum())


@given(st.lists(st.integers(1, 20), min_size=4, max_size=4), st.floats(0.0, 2.0))
def test_trust_multiplies_the_prior_of_the_peer_mixer_and_the_others_keep_their_ratios(
    parts: list[int], factor: float
) -> None:
    mean, peer, slow, fast = (part / sum(parts) for part in parts)
    mixer = MixerSettings(prior_mean=mean, prior_peer=peer, prior_truth_slow=slow, prior_truth_fast=fast)

    shares = shares_of([0] * 9, mixer, SECOND, PeerTrust(factor))

    assert sum(shares) == pytest.approx(1.0, abs=1e-11)
    assert shares[1] == pytest.approx(min(factor * peer, max(LARGEST_PEER_PRIOR, peer)), abs=1e-11)
    others = [shares[0] / mean, shares[2] / slow, shares[3] / fast]
    assert others == pytest.approx([others[0]] * 3, abs=1e-9)


@given(
    st.sampled_from([*PEER_TRUST]),
    st.floats(0.0, 1.0),
    st.floats(PEER_STEP, 1.0),
    st.floats(0.0, 2.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e6),
)
def test_what_is_heeded_moves_by_a_step_towards_its_goal_and_never_past_it(
    state: TrustState, evidence: float, prior: float, factor: float, stretch: float, resolved: float
) -> None:
    told = PEER_TRUST[state]._replace(stretch=max(PEER_TRUST[state].stretch, resolved / (resolved + 40.0)))
    before, goal = PeerTrust(factor, stretch), [evidence * part for part in told]

    after = next_peer_trust(before, state, evidence, prior, resolved)

    assert prior * abs(after.prior - before.prior) <= PEER_STEP + 1e-12
    assert abs(after.stretch - before.stretch) <= PEER_STEP + 1e-12
    for old, new, aim in zip(before, after, goal, strict=True):
        assert min(old, aim) - 1e-12 <= new <= max(old, aim) + 1e-12
    if prior * abs(goal[0] - factor) <= PEER_STEP:
        assert prior * after.prior == pytest.approx(prior * goal[0], abs=1e-9)


@given(
    st.lists(st.tuples(st.floats(0.1, 4.0), st.integers(0, 9)), min_size=1, max_size=9),
    st.integers(2, 9),
    st.integers(-9, 9),
)
def test_evidence_is_how_far_weighted_products_exceed_chance_in_standard_deviations(
    questions: list[tuple[float, int]], voters: int, tilt: int
) -> None:
    by_chance = (Fraction(tilt, 10)) ** 2
    pair = square = chance = Fraction(0)
    for weight, said in questions:
        votes = [1] * min(said, voters) + [-1] * (voters - min(said, voters))
        products = [one * other for one, other in permutations(votes, 2)]
        product, w = Fraction(sum(products), len(products)), Fraction(weight)
        pair, square, chance = pair + w * product, square + (w * product) ** 2, chance + w * by_chance
    z = float(pair - chance) / math.sqrt(square) if square else 0.0

    evidence = agreement_evidence(float(pair), float(square), float(chance))

    assert evidence == pytest.approx(min(max((z - 1.0) / 2.0, 0.0), 1.0), abs=1e-12)


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.lists(st.integers(1, 9), min_size=2, max_size=6),
    st.integers(1, 400),
)
def test_the_stretch_by_peers_is_the_regression_on_outcomes_of_alike_calibrated_experts(
    tenths: int, slope: int, parts: list[int], questions: int
) -> None:
    """Each says π on average, and a(y - π) more as the outcome is y; whatever else it says is its own."""
    share, goes = Fraction(tenths, 10), Fraction(slope, 10)
    weights = [Fraction(part, sum(parts)) for part in parts]
    centre, varies = share - Fraction(1, 2), share * (1 - share)
    own_noise = Fraction(1, 50)
    pair = centre**2 + varies * goes**2
    square = pair + sum(weight**2 for weight in weights) * own_noise
    with_outcome = centre**2 + varies * goes
    cross = sum(weight * pair for weight in weights)
    wanted = (questions * (with_outcome - square)) / (questions * square + 5)

    sums = [float(questions * one) for one in (pair, cross, square, centre, centre)]
    factor = peer_stretch(float(questions), *sums)

    assert factor == pytest.approx(min(max(float(wanted), 0.0), 1.0), abs=1e-9)


@given(st.lists(st.tuples(CENTS, st.integers(1, 9), st.sampled_from([-1, 0, 1])), min_size=2, max_size=6))
def test_the_mix_agrees_with_those_who_are_not_of_the_same_team(crowd: list[tuple[Fraction, int, int]]) -> None:
    total = sum(part for _, part, _ in crowd)
    voters = [[one for one in crowd if one[2] == team] for team in (0, 1)]
    voters = [team for team in voters if team] + [[one] for one in crowd if one[2] < 0]
    means = [sum(p - Fraction(1, 2) for p, _, _ in voter) / len(voter) for voter in voters]
    cross = sum(
        Fraction(part, total) * (p - Fraction(1, 2)) * (sum(means) - mean) / max(len(voters) - 1, 1)
        for voter, mean in zip(voters, means, strict=True)
        for p, part, _ in voter
    )

    forecasts, weights, teams = (np.array([float(one[at]) for one in crowd]) for at in range(3))
    found = cross_agreement(forecasts, weights / total, teams.astype(np.int64))

    assert (found is None) == (len(voters) < 2)
    if found is not None:
        assert found.cross == pytest.approx(float(cross), abs=1e-12)
        assert found.centre == pytest.approx(float(sum(means) / len(means)), abs=1e-12)


WEIGHTLESS = 2
UNITS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([-1, -1, 0, 1, WEIGHTLESS])), min_size=1, max_size=8)


@given(UNITS)
def test_the_weightless_change_no_weight_of_the_others(crowd: list[tuple[int, int]]) -> None:
    others = [(part, group) for part, group in crowd if group != WEIGHTLESS]
    if not others or not any(part for part, _ in others):
        return
    size = [sum(group == other for _, other in others) if group >= 0 else 1 for _, group in others]
    own = [Fraction(part, n) for (part, _), n in zip(others, size, strict=True)]

    total = sum(part for part, _ in crowd)
    numbers = np.array([group for _, group in crowd])
    shared = shared_by_groups(np.array([part / total for part, _ in crowd]), Groups(numbers, numbers == WEIGHTLESS))

    weighed = [float(weight) for weight, (_, group) in zip(shared, crowd, strict=True) if group != WEIGHTLESS]
    assert weighed == pytest.approx([float(part / sum(own)) for part in own], abs=1e-11)
    assert float(shared.sum()) == pytest.approx(1.0, abs=1e-11)


@given(st.integers(1, 9), st.integers(1, 49), st.integers(1, 49), st.integers(1, 12))
def test_errors_on_each_outcome_are_those_of_the_voters_whose_moments_they_are(
    tenths: int, of_zero: int, of_one: int, half: int
) -> None:
    share, yes, no = Fraction(tenths, 10), 1 - Fraction(of_one, 100), Fraction(of_zero, 100)
    moments = [float(60 * (share * yes**k + (1 - share) * no**k)) for k in range(1, 5)]
    voters = 2 * half + 1

    found = class_errors(DependenceSums(np.array([[60.0, 60.0, *moments]] * 25)), float(voters))

    wrong = [
        float(sum(math.comb(voters, k) * right**k * (1 - right) ** (voters - k) for k in range(half + 1)))
        for right in (1 - no, yes)
    ]
    if max(wrong) > 0.26:
        assert found is not None
        assert (found.zero, found.one) == pytest.approx(wrong, abs=1e-6)


@given(st.floats(0.0, 0.5), st.floats(0.0, 0.5), st.floats(0.0, 0.2), st.floats(0.0, 0.2))
def test_the_interval_of_a_misled_crowd_is_that_of_the_mean_of_two_independent_rates(
    zero: float, one: float, of_zero: float, of_one: float
) -> None:
    deviation = math.sqrt(of_zero**2 + of_one**2) / 2.0

    high = class_errors_high(ClassErrors(zero, one, (of_zero, of_one), 9.0), 0.95)

    assert high == pytest.approx((zero + one) / 2.0 + 1.9599639845400545 * deviation, abs=1e-12)

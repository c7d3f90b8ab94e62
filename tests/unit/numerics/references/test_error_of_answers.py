"""How often reference answers are wrong, and how that reads in losses: exact where votes are all that matters."""

from math import comb, erf, sqrt

import numpy as np
import pytest

from stream_peer.numerics.losses import FloatArray, SmallIntArray
from stream_peer.numerics.references import (
    answers_of_all,
    ballots,
    leave_one_out,
    vote_weights,
)


def binomial(size: int, error: float) -> FloatArray:
    """Chances that 0, 1, … of so many independent votes are right."""
    return np.array([comb(size, k) * (1 - error) ** k * error ** (size - k) for k in range(size + 1)])


def patterns_of_alike(size: int, error: float) -> tuple[FloatArray, FloatArray]:
    """Votes of experts alike, of whom the first k are right, with their chances; the outcome is 1."""
    right = (np.arange(size) < np.arange(size + 1)[:, np.newaxis]).astype(np.float64)
    return right, binomial(size, error)


def patterns_of_three_kinds(size: int) -> tuple[FloatArray, FloatArray]:
    """The same for errors .20, .45, and .35 of all others, who are exchangeable."""
    alike, chances = patterns_of_alike(size - 2, 0.35)
    first_two = [(a, b) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    right = np.vstack([np.column_stack([np.tile(pair, (len(alike), 1)), alike]) for pair in first_two])
    chance = [(0.8 if a else 0.2) * (0.55 if b else 0.45) for a, b in first_two]
    return right, np.concatenate([c * chances for c in chance])


def read_as(right: FloatArray, chances: FloatArray, answers: list[SmallIntArray]) -> tuple[FloatArray, float]:
    """Expected unbiased loss at the common rate of answers under either fall of the coin, and that rate.

    For hard votes the loss is 1 where vote and answer differ, and the unbiased one ``(it - η)/(1 - 2η)``.
    """
    size = right.shape[1]
    differ = sum(0.5 * np.einsum("k,ki->i", chances, right != said) for said in answers)
    wrong = sum(0.5 * np.einsum("k,ki->i", chances, np.broadcast_to(said == 0, right.shape)) for said in answers)
    of_alike = np.asarray(wrong)[2:]
    rate = (float(np.asarray(wrong)[:2].sum()) + float(of_alike.mean()) * (size - 2)) / size
    found = (np.asarray(differ) - rate) / (1 - 2 * rate)
    return np.array([found[0], found[1], found[2:].mean()]), rate


@pytest.mark.parametrize(
    ("size", "readings", "rate"),
    [
        (3, (0.320, 0.433, 0.343), 0.333),
        (5, (0.263, 0.442, 0.347), 0.267),
        (11, (0.223, 0.448, 0.350), 0.163),
        (51, (0.201, 0.450, 0.350), 0.015),
    ],
)
def test_e22_leaving_one_out_reads_errors_nearly_as_they_are(
    size: int, readings: tuple[float, float, float], rate: float
) -> None:
    """Exact, for errors of .20, .45 and .35: the order stays and the best is only slightly compressed."""
    right, chances = patterns_of_three_kinds(size)

    found, common = read_as(right, chances, [leave_one_out(right, coin).answers for coin in (0, 1)])

    assert found == pytest.approx(readings, abs=6e-4)
    assert common == pytest.approx(rate, abs=6e-4)


@pytest.mark.parametrize(
    ("size", "readings"),
    [
        (3, (-0.116, 0.037, -0.086)),
        (5, (0.013, 0.206, 0.105)),
        (11, (0.127, 0.355, 0.256)),
        (51, (0.196, 0.445, 0.345)),
    ],
)
def test_e22_a_majority_that_an_expert_voted_in_flatters_it(size: int, readings: tuple[float, float, float]) -> None:
    """Exact, for the same errors: why experts are not scored against the published answer."""
    right, chances = patterns_of_three_kinds(size)
    everybody = ballots(right)

    found, _ = read_as(right, chances, [answers_of_all(everybody, coin).answers[:, np.newaxis] for coin in (0, 1)])

    assert found == pytest.approx(readings, abs=6e-4)


def wrong_of_alike(size: int, error: float, coin: int) -> tuple[float, float]:
    """Chances that the majority is wrong with this coin if the outcome is 1, and that it is tied."""
    right, chances = patterns_of_alike(size, error)
    found = answers_of_all(ballots(right), coin)
    return float(np.sum(chances * (found.answers == 0))), float(np.sum(chances * found.ties))


@pytest.mark.parametrize("k", [2, 3, 5, 25])
def test_with_a_fair_coin_an_even_room_errs_as_one_expert_fewer(k: int) -> None:
    even = 0.5 * sum(wrong_of_alike(2 * k, 0.35, coin)[0] for coin in (0, 1))

    assert even == pytest.approx(wrong_of_alike(2 * k - 1, 0.35, 0)[0], abs=1e-12)


def test_with_a_fair_coin_four_experts_err_as_three() -> None:
    assert 0.5 * sum(wrong_of_alike(4, 0.35, coin)[0] for coin in (0, 1)) == pytest.approx(0.2817, abs=1e-4)


@pytest.mark.parametrize(("size", "zero", "one"), [(4, 0.127, 0.437), (10, 0.095, 0.249), (50, 0.010, 0.021)])
def test_ties_that_always_go_to_zero_would_make_error_rates_depend_on_the_outcome(
    size: int, zero: float, one: float
) -> None:
    """By symmetry the rate for an outcome of 0 is that for 1 with the opposite coin."""
    assert wrong_of_alike(size, 0.35, coin=1)[0] == pytest.approx(zero, abs=6e-4)
    assert wrong_of_alike(size, 0.35, coin=0)[0] == pytest.approx(one, abs=6e-4)


@pytest.mark.parametrize(("size", "error_rate", "tied"), [(4, 0.183, 0.31), (10, 0.112, 0.15)])
def test_answers_that_are_not_tied_err_less(size: int, error_rate: float, tied: float) -> None:
    wrong, ties = wrong_of_alike(size, 0.35, coin=1)

    assert wrong / (1 - ties) == pytest.approx(error_rate, abs=6e-4)
    assert ties == pytest.approx(tied, abs=6e-3)


# Pools of forecasters whose signals N(±μ, 1) are independent given the outcome. The expected table was measured in 20
# runs of pools whose strengths μ are not written down; with these here calibrated pools err as it says. Both are noisy
# by about .005, hence the band. The pool of 50 weak ones is another one than theirs where votes alone are counted.


def signals(
    rng: np.random.Generator, shape: tuple[int, int], strengths: tuple[float, float]
) -> tuple[FloatArray, SmallIntArray, FloatArray]:
    """Log odds of calibrated experts, outcomes, and the experts' errors."""
    strength = rng.uniform(*strengths, shape[1])
    outcomes = rng.integers(0, 2, shape[0]).astype(np.int8)
    seen = rng.normal(size=shape) + np.outer(2 * outcomes - 1, strength)
    errors = np.array([0.5 * (1 - erf(s / sqrt(2))) for s in strength.tolist()])
    return 2 * strength * seen, outcomes, errors


def error_rates_of_rules(forecasts: FloatArray, outcomes: SmallIntArray, errors: FloatArray) -> list[float]:
    """Of majority with coins for ties, product without clipping, product, mean, accuracy-weighted majority."""
    coins = np.arange(outcomes.size) % 2
    votes = (forecasts > 0.5).astype(np.float64)
    nearly_hard = np.clip(forecasts, 1e-6, 1 - 1e-6)
    unclipped = np.sum(np.log(nearly_hard / (1 - nearly_hard)), axis=1) > 0
    said = [
        answers_of_all(ballots(votes), coins).answers,
        unclipped,
        answers_of_all(ballots(forecasts, "product"), coins).answers,
        answers_of_all(ballots(forecasts, "mean"), coins).answers,
        answers_of_all(ballots(forecasts, "weighted", weights=vote_weights(errors)), coins).answers,
    ]
    return [float(np.mean(answers != outcomes)) for answers in said]


def pool(kind: str, runs: int = 40, n_rounds: int = 2_000) -> FloatArray:
    """Mean error rates of the rules in one kind of pool."""
    rng = np.random.default_rng(2_020)
    strengths, size = ((0.05, 0.35), 50) if kind == "weak" else ((0.1, 0.8), 10)
    rows = []
    for _ in range(runs):
        log_odds, outcomes, errors = signals(rng, (n_rounds, size), strengths)
        if kind == "mis-scaled":
            log_odds = log_odds * np.exp(rng.uniform(np.log(0.4), np.log(2.5), size))
        forecasts = 0.5 + 0.5 * np.tanh(0.5 * log_odds)
        if kind == "worthless":
            forecasts[:, -1] = 0.5 + 0.5 * np.tanh(10.0 * rng.normal(size=n_rounds))
            errors[-1] = 0.5
        if kind == "hard":
            forecasts[:, -1] = np.where(rng.random(n_rounds) < 0.54, outcomes, 1 - outcomes)
            errors[-1] = 0.46
        rows.append(error_rates_of_rules(forecasts, outcomes, errors))
    return np.asarray(np.mean(rows, axis=0), dtype=np.float64)


BAND = 0.015

RULES = ("majority", "product, unclipped", "product", "mean", "weighted")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("calibrated", (0.137, 0.063, 0.063, 0.065, 0.109)),
        ("mis-scaled", (0.131, 0.076, 0.076, 0.073, 0.102)),
        ("worthless", (0.171, 0.414, 0.222, 0.150, 0.127)),
        ("hard", (0.158, 0.458, 0.210, 0.136, 0.116)),
    ],
)
def test_rules_err_in_small_pools_as_often_as_expected(kind: str, expected: tuple[float, ...]) -> None:
    found = dict(zip(RULES, pool(kind), strict=True))

    assert found == pytest.approx(dict(zip(RULES, expected, strict=True)), abs=BAND)


@pytest.mark.parametrize("kind", ["worthless", "hard"])
def test_one_wildly_confident_expert_spoils_the_product_and_clipping_limits_the_damage(kind: str) -> None:
    majority, unclipped, product, mean, weighted = pool(kind)

    assert weighted < mean < majority < product < unclipped - 0.15


def test_in_a_large_pool_of_weak_experts_how_sure_they_are_is_worth_more_than_knowing_who_errs() -> None:
    majority, unclipped, product, mean, weighted = pool("weak")

    assert (unclipped, product, mean) == pytest.approx((0.060, 0.060, 0.056), abs=BAND)
    assert max(product, mean) < weighted - 0.02
    assert weighted < majority - 0.01

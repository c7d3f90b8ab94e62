"""What the agreement of experts says about the mix, on experts whose errors are known."""

import numpy as np
import pytest

from stream_peer.numerics.agreement import agreement_evidence, cross_agreement, peer_stretch
from stream_peer.numerics.arguments import FloatArray

EVEN = np.full(3, 1.0 / 3.0)


def test_a_single_voter_agrees_with_nobody() -> None:
    assert cross_agreement(np.array([0.9]), np.ones(1)) is None
    assert cross_agreement(np.array([0.9, 0.8]), np.full(2, 0.5), np.array([4, 4])) is None


def test_a_forecast_that_has_all_weight_agrees_with_the_others_alone() -> None:
    found = cross_agreement(np.array([1.0, 0.5, 0.0]), np.array([1.0, 0.0, 0.0]))

    assert found == pytest.approx((-1 / 12, -0.125, 0.0))


def test_copies_in_a_team_are_one_voter() -> None:
    one = cross_agreement(np.array([0.9, 0.3, 0.6]), EVEN)
    copied = cross_agreement(np.array([0.9, 0.9, 0.3, 0.6]), np.array([1, 1, 2, 2]) / 6.0, np.array([7, 7, -1, -1]))

    assert copied == pytest.approx(one)


@pytest.mark.parametrize("seed", range(4))
def test_votes_that_are_coins_are_no_evidence(seed: int) -> None:
    products = [pair for pair, _ in _agreements(np.random.default_rng(seed), np.full(7, 0.5), 400)]

    assert agreement_evidence(sum(products), sum(pair * pair for pair in products), 0.0) < 0.9
    assert agreement_evidence(40.0, 16.0, 0.0) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_votes_that_are_coins_which_prefer_a_side_are_no_evidence(seed: int) -> None:
    votes = np.where(np.random.default_rng(seed).random((400, 9)) < 0.7, 1.0, -1.0)
    totals = votes.sum(axis=1)
    products = (totals * totals - 9.0) / 72.0

    assert agreement_evidence(products.sum(), (products**2).sum(), 0.0) == 1.0
    assert agreement_evidence(products.sum(), (products**2).sum(), 400.0 * votes.mean() ** 2) < 0.9


@pytest.mark.parametrize("seed", range(4))
def test_the_stretch_by_peers_is_that_of_outcomes_if_experts_err_independently(seed: int) -> None:
    random, errors = np.random.default_rng(seed), np.linspace(0.15, 0.4, 12)
    outcomes = random.integers(0, 2, 4000)
    right = random.random((4000, 12)) >= errors
    forecasts = np.where(right, outcomes[:, None], 1 - outcomes[:, None]).astype(np.float64)
    weights = np.linspace(2.0, 1.0, 12) / 18.0
    rounds = [cross_agreement(forecast, weights) for forecast in forecasts]
    mixed = forecasts @ weights - 0.5
    by_outcomes = float(((outcomes - 0.5) * mixed).sum() / (mixed * mixed).sum()) - 1.0

    level, cross, centre = np.sum([one for one in rounds if one], axis=0)

    factor = peer_stretch(4000.0, level, cross, float((mixed * mixed).sum()), centre, mixed.sum())
    assert factor == pytest.approx(by_outcomes, abs=0.06)


@pytest.mark.parametrize("share", [0.5, 0.3, 0.2, 0.1])
def test_the_stretch_by_peers_is_that_of_outcomes_if_experts_are_calibrated_and_one_outcome_is_rare(
    share: float,
) -> None:
    random, n_rounds = np.random.default_rng(7), 20_000
    outcomes = random.random(n_rounds) < share
    signals = np.where(outcomes, 0.5, -0.5)[:, None] + random.normal(size=(n_rounds, 3))
    forecasts = 1.0 / (1.0 + np.exp(-(np.log(share / (1.0 - share)) + signals)))  # the posterior given the own signal
    weights = np.full(3, 1 / 3)
    mixed = forecasts @ weights - 0.5
    by_outcomes = ((outcomes - 0.5) * mixed).sum() / (mixed * mixed).sum() - 1.0

    rounds = [one for forecast in forecasts if (one := cross_agreement(forecast, weights))]
    level, cross, centre = np.sum(rounds, axis=0)

    factor = peer_stretch(n_rounds, level, cross, (mixed * mixed).sum(), centre, mixed.sum())
    assert factor == pytest.approx(min(by_outcomes, 1.0), abs=0.08)


def test_the_stretch_by_peers_is_at_most_1() -> None:
    assert peer_stretch(100.0, 0.01, 4.0, 1.0, 0.0, 0.0) == 1.0


def _agreements(random: np.random.Generator, errors: FloatArray, questions: int) -> list[tuple[float, float]]:
    votes = np.where(random.random((questions, len(errors))) < errors, -1.0, 1.0)
    size = len(errors)
    products = (votes.sum(axis=1) ** 2 - size) / (size * (size - 1))
    return [(float(product), 0.0) for product in products]

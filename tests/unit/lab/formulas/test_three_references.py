import math
from dataclasses import astuple
from fractions import Fraction
from itertools import permutations
from math import prod

import numpy as np
import pytest

from stream_peer.lab.formulas.three_references import (
    SUBSETS,
    ThreeReferenceClassSums,
    ThreeReferenceRates,
    ThreeReferenceSums,
    class_rates,
)
from stream_peer.numerics.arguments import FloatArray
from tests.reference.plain_formulas import three_reference_class_solution, three_reference_solution

SKEWED = ((0.2, 0.1), (0.25, 0.2), (0.3, 0.05))
SYMMETRIC = ((0.1, 0.1), (0.2, 0.2), (0.3, 0.3))


def shares_of(share_of_zeros: float, rates: tuple[tuple[float, float], ...]) -> FloatArray:
    """How often each, each two and all three say yes, if they err independently; rates are pairs (η0, η1)."""
    ones = [prod(1 - rates[k][1] for k in subset) for subset in SUBSETS]
    zeros = [prod(rates[k][0] for k in subset) for subset in SUBSETS]
    return share_of_zeros * np.array(zeros) + (1 - share_of_zeros) * np.array(ones)


def class_sums(shares: FloatArray, questions: float = 1e8) -> ThreeReferenceClassSums:
    return ThreeReferenceClassSums(questions, questions, *(questions * shares).tolist())


def symmetric_sums(shares: FloatArray, questions: float = 1e8) -> ThreeReferenceSums:
    return ThreeReferenceSums(questions, questions, *(questions * shares).tolist())


def drawn_shares(
    rng: np.random.Generator, share_of_zeros: float, rates: tuple[tuple[float, float], ...], questions: int
) -> FloatArray:
    outcomes = rng.random(questions) >= share_of_zeros
    flips = np.array(rates)
    wrong = rng.random((questions, 3)) < np.where(outcomes[:, None], flips[:, 1], flips[:, 0])
    answers = wrong ^ outcomes[:, None]
    return np.array([answers[:, list(subset)].all(axis=1).mean() for subset in SUBSETS])


def rates_in(found: ThreeReferenceRates) -> list[float]:
    return [rate for pair in found.rates for rate in pair[:2]]


@pytest.mark.parametrize("share_of_zeros", [0.1, 0.3, 0.5, 0.8])
def test_class_dependent_rates_are_found_at_any_share_of_zeros(share_of_zeros: float) -> None:
    found = class_sums(shares_of(share_of_zeros, SKEWED)).estimate_references()

    assert rates_in(found) == pytest.approx([0.2, 0.1, 0.25, 0.2, 0.3, 0.05], abs=1e-4)
    assert found.share_of_zeros == pytest.approx(share_of_zeros, abs=1e-4)
    assert {rate.status for rate in found.rates} == {"ok"}


def test_the_symmetric_solution_squared_is_that_of_exact_fractions() -> None:
    """a_1² = G12·G13/G23."""
    g12, g13, g23 = Fraction(12, 25), Fraction(8, 25), Fraction(6, 25)

    found = three_reference_solution(float(g12), float(g13), float(g23))

    squares = (g12 * g13 / g23, g12 * g23 / g13, g13 * g23 / g12)
    assert squares == (Fraction(16, 25), Fraction(9, 25), Fraction(4, 25))
    assert found == pytest.approx([(1 - math.sqrt(square)) / 2 for square in squares], abs=1e-15)


def test_central_moments_of_exact_fractions_satisfy_the_class_dependent_closed_form() -> None:
    """q_jk = P1·P0·a_j·a_k and T = P1·P0·(1 - 2·P1)·a_1·a_2·a_3, whence r² = (1 - 2·P1)²/(P1·P0)."""
    zeros = Fraction(7, 10)
    ones = 1 - zeros
    yes = [(Fraction(1, 5), Fraction(9, 10)), (Fraction(1, 4), Fraction(4, 5)), (Fraction(3, 10), Fraction(19, 20))]
    c = {s: zeros * prod(yes[k][0] for k in s) + ones * prod(yes[k][1] for k in s) for s in SUBSETS}
    q = {(j, k): c[j, k] - c[j,] * c[k,] for j, k in SUBSETS[3:6]}
    third = zeros * prod(yes[k][0] - c[k,] for k in range(3)) + ones * prod(yes[k][1] - c[k,] for k in range(3))
    r_squared = third**2 / (q[0, 1] * q[0, 2] * q[1, 2])

    assert r_squared == (1 - 2 * ones) ** 2 / (ones * zeros)
    assert q[0, 1] * q[0, 2] / q[1, 2] == (yes[0][1] - yes[0][0]) ** 2 * ones * zeros

    found = three_reference_class_solution(np.array([float(c[s]) for s in SUBSETS]))

    assert found is not None
    assert found.zero.tolist() == pytest.approx([0.2, 0.25, 0.3], abs=1e-12)
    assert found.one.tolist() == pytest.approx([0.1, 0.2, 0.05], abs=1e-12)
    assert found.share_of_zeros == pytest.approx(0.7, abs=1e-12)


def test_derivatives_of_class_dependent_rates_are_those_of_small_steps() -> None:
    central = np.array([0.375, 0.39, 0.46, 0.072, 0.085, 0.067, 0.02])

    _, slopes = class_rates(central)

    for column in range(7):
        step = np.where(np.arange(7) == column, 1e-7, 0.0)
        difference = (class_rates(central + step)[0] - class_rates(central - step)[0]) / 2e-7
        np.testing.assert_allclose(slopes[:, column], difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_references_may_be_named_in_any_order(order: tuple[int, int, int]) -> None:
    rates = (SKEWED[order[0]], SKEWED[order[1]], SKEWED[order[2]])

    found = class_sums(shares_of(0.6, rates), 5_000).estimate_references()
    straight = class_sums(shares_of(0.6, SKEWED), 5_000).estimate_references()

    for place, source in enumerate(order):
        assert found.rates[place][:5] == pytest.approx(straight.rates[source][:5], abs=1e-9)


@pytest.mark.parametrize("share_of_zeros", [0.3, 0.5])
def test_intervals_cover_at_their_confidence(share_of_zeros: float) -> None:
    rng = np.random.default_rng(11)
    covered = []
    for _ in range(200):
        symmetric = symmetric_sums(drawn_shares(rng, share_of_zeros, SYMMETRIC, 2_000), 2_000).estimate_references()
        covered += [rate.low <= truth <= rate.high for rate, (truth, _) in zip(symmetric.rates, SYMMETRIC, strict=True)]
    assert np.mean(covered) >= 0.90

    covered = []
    for _ in range(200):
        classes = class_sums(drawn_shares(rng, share_of_zeros, SKEWED, 4_000), 4_000).estimate_references()
        means = [(zero + one) / 2 for zero, one in SKEWED]
        covered += [rate.low <= mean <= rate.high for rate, mean in zip(classes.rates, means, strict=True)]
    assert np.mean(covered) >= 0.90


@pytest.mark.parametrize("share_of_zeros", [0.3, 0.5])
def test_variances_are_those_of_a_simulation(share_of_zeros: float) -> None:
    rng = np.random.default_rng(12)
    runs = [drawn_shares(rng, share_of_zeros, SKEWED, 20_000) for _ in range(200)]
    found = [class_sums(shares, 20_000).estimate() for shares in runs]
    plain = [symmetric_sums(drawn_shares(rng, share_of_zeros, SYMMETRIC, 20_000), 20_000).estimate() for _ in runs]

    of_classes = max(np.var([rate.zero for rate in found]), np.var([rate.one for rate in found]))

    assert np.mean([rate.variance for rate in found]) == pytest.approx(of_classes, rel=0.25)
    assert np.mean([rate.variance for rate in plain]) == pytest.approx(np.var([rate.zero for rate in plain]), rel=0.25)


def test_with_class_dependent_errors_one_rate_for_each_class_beats_any_symmetric_estimate() -> None:
    """Mean error of (η0+η1)/2 with 50,000 questions: .0046 against .020 and more."""
    rng = np.random.default_rng(13)
    errors: dict[str, list[float]] = {"classes": [], "symmetric": []}
    for zeros in (0.1, 0.3, 0.7, 0.9):
        shares = drawn_shares(rng, zeros, ((0.1, 0.35), (0.15, 0.3), (0.05, 0.4)), 50_000)
        for name, rate in (
            ("classes", class_sums(shares, 50_000).estimate()),
            ("symmetric", symmetric_sums(shares, 50_000).estimate()),
        ):
            errors[name] += [abs(rate.zero - 0.1), abs(rate.one - 0.35)]

    assert np.mean(errors["classes"]) < 0.01
    assert np.mean(errors["symmetric"]) > 0.02


def test_without_data_the_rates_are_the_prior_and_anything_is_possible() -> None:
    for sums in (ThreeReferenceSums(), ThreeReferenceClassSums()):
        found = sums.estimate_references()

        assert set(found.rates) == {(0.25, 0.25, 0.0, 0.475, 0.0, "insufficient", 0.25)}
        assert found.share_of_zeros is None


@pytest.mark.case("C18")
@pytest.mark.parametrize("always", [(1, 1, 1), (0, 0, 0), (1, 1, 0)])
def test_answers_that_never_change_are_not_taken_for_perfect_ones(always: tuple[int, int, int]) -> None:
    for kind in (ThreeReferenceSums, ThreeReferenceClassSums):
        rate = kind(*(200 * value for value in astuple(kind.contribution(*always)))).estimate()

        assert rate.status == "uninformative"
        assert rate.zero in {0.25, 0.475}
        assert rate[2:4] == (0.0, 0.475)


def test_disagreement_is_no_signal() -> None:
    shares = np.array([0.5, 0.5, 0.5, 0.05, 0.25, 0.25, 0.02])

    assert three_reference_solution(-0.8, 0.2, 0.2) is None
    assert three_reference_class_solution(shares) is None
    assert symmetric_sums(shares, 40).estimate()[:4] == (0.25, 0.25, 0.0, 0.475)
    assert symmetric_sums(shares, 1_000).estimate()[:4] == (0.475, 0.475, 0.0, 0.475)
    assert class_sums(shares, 1_000).estimate()[:4] == (0.25, 0.25, 0.0, 0.475)


def test_agreement_that_no_rates_can_give_is_contradicted() -> None:
    """Two pairs agree often, the third hardly: a_1 would be far above 1."""
    cells = np.zeros((2, 2, 2))
    cells[0, 0, 0] = cells[1, 1, 1] = 0.36
    cells[0, 0, 1] = cells[1, 1, 0] = cells[0, 1, 0] = cells[1, 0, 1] = 0.07
    shares = np.array([cells[tuple(1 if k in s else slice(None) for k in range(3))].sum() for s in SUBSETS])

    symmetric = symmetric_sums(shares, 1e5).estimate_references().rates[0]
    classes = class_sums(shares, 1e5).estimate_references().rates[0]

    assert (symmetric.status, classes.status) == ("contradicted", "contradicted")
    assert symmetric[:4] == classes[:4] == (0.0, 0.0, 0.0, 0.475)

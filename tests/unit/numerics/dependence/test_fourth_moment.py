import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from stream_peer.numerics.arguments import FloatArray, SmallIntArray
from stream_peer.numerics.dependence import Dependence, DependenceSums
from tests.reference.plain_formulas import vote_moments
from tests.unit.numerics.dependence.worlds import world

N_RUNS = 20


def sums_of(votes: SmallIntArray) -> DependenceSums:
    """Of many questions at once, 25 subsamples of consecutive ones."""
    n = votes.shape[1]
    yes = (votes > 0).sum(axis=1)
    moments = np.cumprod([(yes - k) / (n - k) for k in range(4)], axis=0).T
    ones = np.ones((len(votes), 2))
    return DependenceSums(np.hstack([ones, moments]).reshape(25, -1, 6).sum(axis=1))


def flagged_share(kind: str, n_experts: int) -> float:
    flags = [
        sums_of(world(kind, np.random.default_rng([run, n_experts]), n_experts)).reading().flagged
        for run in range(N_RUNS)
    ]
    return float(np.mean(flags))


def mixture_sums(points: list[tuple[Fraction, Fraction]], questions: int = 1000) -> DependenceSums:
    """Moments of votes that are yes with one of these probabilities, with these weights, the same in each subsample."""
    moments = [float(sum(weight * yes**k for yes, weight in points)) for k in range(1, 5)]
    each = questions / 25
    return DependenceSums(np.tile([each, each, *(each * moment for moment in moments)], (25, 1)))


def test_many_voters_are_no_problem() -> None:
    everybody: npt.NDArray[np.int8] = np.ones(10_000, dtype=np.int8)

    assert vote_moments(everybody) == (1.0, 1.0, 1.0, 1.0)
    assert vote_moments(-everybody) == (0.0, 0.0, 0.0, 0.0)


def test_a_third_kind_of_question_leaves_a_gap() -> None:
    points = [(Fraction(4, 5), Fraction(1, 3)), (Fraction(1, 2), Fraction(1, 3)), (Fraction(1, 5), Fraction(1, 3))]
    m1, m2, m3, m4 = (sum(weight * yes**k for yes, weight in points) for k in range(1, 5))
    b = (m3 - m1 * m2) / (m2 - m1**2)

    reading = mixture_sums(points).reading()

    assert m4 - (b * m3 - (b * m1 - m2) * m2) == Fraction(9, 5000)
    assert reading.gap == pytest.approx(9 / 5000)
    assert reading.flagged


def test_the_jackknife_leaves_out_each_block_once() -> None:
    sums = sums_of(world("clusters", np.random.default_rng(3), 12))

    def gap(subsamples: FloatArray) -> float:
        m1, m2, m3, m4 = subsamples.sum(axis=0)[2:] / subsamples.sum(axis=0)[0]
        b = (m3 - m1 * m2) / (m2 - m1**2)
        return float(m4 - b * m3 + (b * m1 - m2) * m2)

    without = [gap(np.delete(sums.subsamples, subsample, axis=0)) for subsample in range(25)]
    reading = sums.reading()

    assert reading.gap == pytest.approx(gap(sums.subsamples))
    assert reading.deviation == pytest.approx(math.sqrt(24 / 25 * sum((g - np.mean(without)) ** 2 for g in without)))
    assert reading.z == pytest.approx(gap(sums.subsamples) / (reading.deviation or math.nan))


def test_the_deviation_is_that_of_a_simulation() -> None:
    found = [sums_of(world("none", np.random.default_rng([run, 7]), 12)).reading() for run in range(60)]

    simulated = np.std([reading.gap for reading in found if reading.gap is not None])

    assert np.mean([reading.deviation for reading in found if reading.deviation]) == pytest.approx(simulated, rel=0.3)


@pytest.mark.parametrize("n_experts", [12, 40])
@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("none", 0.0, 0.15),
        ("clusters", 0.95, 1.0),
        ("difficulty", 0.95, 1.0),
        ("outcome noise", 0.95, 1.0),
        ("shock", 0.0, 0.15),
    ],
)
def test_dependence_is_flagged_and_independence_and_shared_shocks_are_not(
    kind: str, least: float, most: float, n_experts: int
) -> None:
    """2,000 questions: 0/.05 without, 1/1 with clusters, difficulty or outcome noise, 0/0 with shocks."""
    assert least <= flagged_share(kind, n_experts) <= most


def test_herding_is_flagged_where_many_herd_and_less_where_few_do() -> None:
    """.15 of 12 experts and 1 of 40, where everyone leans on the crowd at a quarter of the votes."""
    few, many = flagged_share("herding", 12), flagged_share("herding", 40)

    assert 0.05 <= few <= 0.4
    assert many >= 0.95


def test_too_little_is_not_judged() -> None:
    none = Dependence(None, None, None, flagged=False, effective_questions=0.0, status="insufficient")

    assert DependenceSums().reading() == none
    one_subsample = DependenceSums()
    one_subsample.subsamples[4] = 1000.0, 1000.0, 500.0, 300.0, 200.0, 150.0
    assert one_subsample.reading().status == "insufficient"
    assert mixture_sums([(Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 4), Fraction(1, 2))], 199).reading().z is None


@pytest.mark.parametrize("votes", [np.ones((1000, 6)), -np.ones((1000, 6)), np.tile([1, -1], (1000, 3))])
def test_votes_that_never_change_are_not_judged(votes: FloatArray) -> None:
    reading = sums_of(votes.astype(np.int8)).reading()

    assert reading[:4] == (None, None, None, False)
    assert reading.status == "uninformative"


def test_experts_of_different_skill_shift_the_gap_down_and_never_up() -> None:
    """So only a positive gap is an alarm: z of half of the experts at .55 and half at .95, against z of equal ones."""
    generator = np.random.default_rng(8)
    skills = np.tile([0.55, 0.95], 5)
    found = []
    for _ in range(N_RUNS):
        outcomes = np.where(generator.random(4000) < 0.5, 1, -1)[:, None]
        votes = np.where(generator.random((4000, 10)) < skills, outcomes, -outcomes).astype(np.int8)
        found.append(sums_of(votes).reading().z or 0.0)

    assert np.mean(found) < -3.0
    assert max(found) < 2.0


def test_panels_of_different_skill_are_questions_of_different_difficulty() -> None:
    """Who errs .1 of the time answers some questions, who errs .4 the others: all independent, and flagged."""
    generator = np.random.default_rng(8)
    outcomes, panels = (np.where(generator.random(2000) < 0.5, 1, -1)[:, None] for _ in range(2))
    wrong = generator.random((2000, 8)) < np.where(panels > 0, 0.1, 0.4)

    assert (sums_of(np.where(wrong, -outcomes, outcomes).astype(np.int8)).reading().z or 0.0) > 10.0


@pytest.mark.parametrize("fewest", [30.0, 200.0])
def test_as_many_questions_are_needed_as_are_asked_for(fewest: float) -> None:
    sums = sums_of(world("none", np.random.default_rng(1), 8)[:100])

    assert (sums.reading(fewest).z is None) == (fewest > 100.0)

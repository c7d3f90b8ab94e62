import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from stream_peer.lab.formulas.two_groups import EqualGroupSums, two_group_deviations, two_group_solution
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates.groups import TwoGroupRates, TwoGroupSums, vary_together

Ints = npt.NDArray[np.int64]


def shares_of(share_of_zeros: float, first: float, second: float) -> tuple[float, float, float]:
    """How often A, B and both say yes, if they err independently."""
    zeros, ones = share_of_zeros, 1 - share_of_zeros
    return (
        zeros * first + ones * (1 - first),
        zeros * second + ones * (1 - second),
        zeros * first * second + ones * (1 - first) * (1 - second),
    )


def sums_of(c1: float, c2: float, c3: float, questions: float = 1e6) -> TwoGroupSums:
    return TwoGroupSums(questions, questions, questions * c1, questions * c2, questions * c3)


def drawn_counts(rng: np.random.Generator, shares: tuple[float, float, float], questions: int, runs: int) -> FloatArray:
    """Numbers of questions that A, B and both answer with yes in so many runs, (runs, 3)."""
    c1, c2, c3 = shares
    cells = rng.multinomial(questions, [c3, c1 - c3, c2 - c3, 1 - c1 - c2 + c3], size=runs)
    return np.stack([cells[:, 0] + cells[:, 1], cells[:, 0] + cells[:, 2], cells[:, 0]], axis=1).astype(np.float64)


def estimates(rng: np.random.Generator, share_of_zeros: float, questions: int, runs: int) -> list[TwoGroupRates]:
    """Of simulated groups with error rates .2 and .25."""
    counts = drawn_counts(rng, shares_of(share_of_zeros, 0.2, 0.25), questions, runs)
    return [TwoGroupSums(questions, questions, *row).estimate_groups() for row in counts.tolist()]


def plain_rates(counts: FloatArray, questions: int) -> FloatArray:
    """η_A and η_B of `two_group_solution` in each run, (runs, 2)."""
    found = [two_group_solution(*row) for row in (counts / questions).tolist()]
    return np.array([(0.5, 0.5) if solution is None else solution[:2] for solution in found])


def as_printed(c1: float, c2: float, c3: float) -> tuple[float, float, float]:
    """The paper's d1, d2, d3."""
    return 3 + 2 * c1 + 2 * c2 - 4 * c3, 4 * c1 + 4 * c2 - 4 * c3 + 7, (c1 + 2) * (c2 + 2) - c3


def test_e12_the_paper_s_quadratic_misses_the_truth_and_has_no_root_near_it() -> None:
    d1, d2, d3 = as_printed(*shares_of(0.3, 0.1, 0.2))
    root = math.sqrt(d2 * d2 - 4 * d1 * d3)

    assert d1 * 0.3**2 - d2 * 0.3 + d3 == pytest.approx(3.752, abs=5e-4)
    assert ((d2 + root) / (2 * d1), (d2 - root) / (2 * d1)) == pytest.approx((1.896, 0.968), abs=5e-4)


def test_e12_the_corrected_quadratic_is_zero_at_the_truth_and_at_its_mirror_image() -> None:
    zeros, first, second = Fraction(3, 10), Fraction(1, 10), Fraction(1, 5)
    ones = 1 - zeros
    c1 = zeros * first + ones * (1 - first)
    c2 = zeros * second + ones * (1 - second)
    c3 = zeros * first * second + ones * (1 - first) * (1 - second)
    leading, w = 1 - 2 * c1 - 2 * c2 + 4 * c3, c3 - c1 * c2

    assert leading == (1 - 2 * first) * (1 - 2 * second)
    assert leading * zeros**2 - leading * zeros + w == 0
    assert leading * ones**2 - leading * ones + w == 0
    assert 1 - first == (zeros - c1) / (2 * zeros - 1)
    found = two_group_solution(float(c1), float(c2), float(c3))
    assert found == pytest.approx((0.1, 0.2, 0.3), abs=1e-12)


@pytest.mark.parametrize(
    ("share_of_zeros", "deviation", "questions"),
    [(0.1, 0.58, 523), (0.3, 0.92, 1_297), (0.4, 1.69, 4_394), (0.45, 3.30, 16_783), (0.49, 16.4, 413_000)],
)
def test_e13_the_error_grows_without_bound_towards_equal_shares(
    share_of_zeros: float, deviation: float, questions: int
) -> None:
    """And with it the number of questions for ±.05 with 95 %."""
    found, _ = two_group_deviations(*shares_of(share_of_zeros, 0.2, 0.25))

    assert found == pytest.approx(deviation, rel=0.003, abs=0.005)
    assert (1.96 * found / 0.05) ** 2 == pytest.approx(questions, rel=0.001)


def test_the_delta_method_says_what_a_simulation_shows() -> None:
    """.919 by the formula, .922 in a simulation, at P0 = .3 and η = (.2, .25)."""
    shares = shares_of(0.3, 0.2, 0.25)
    counts = drawn_counts(np.random.default_rng(1), shares, 20_000, 2_000)

    simulated = plain_rates(counts, 20_000).std(axis=0) * math.sqrt(20_000)

    assert two_group_deviations(*shares)[0] == pytest.approx(0.919, abs=5e-4)
    assert tuple(simulated) == pytest.approx(two_group_deviations(*shares), rel=0.05)


def test_e14_at_equal_shares_different_rates_look_alike() -> None:
    """(1 - 2η_A)(1 - 2η_B) is .3 for both pairs."""
    assert shares_of(0.5, 0.2, 0.25) == pytest.approx(shares_of(0.5, 0.25, 0.2), abs=1e-15)
    assert two_group_solution(*shares_of(0.5, 0.2, 0.25)) == pytest.approx(
        (0.5 - 0.5 * math.sqrt(0.3), 0.5 - 0.5 * math.sqrt(0.3), 0.5)
    )


def test_e15_the_first_two_equations_say_nothing_at_equal_shares() -> None:
    assert {shares_of(0.5, first, 0.3)[0] for first in (0.0, 0.125, 0.25, 0.375)} == {0.5}


def test_e15_the_plain_solution_is_useless_at_equal_shares_and_good_elsewhere() -> None:
    """Mean absolute error with 50,000 questions: .067 at P0 = ½ against .001 at P0 = .1; here of groups of η = .08."""
    rng = np.random.default_rng(2)

    errors = [
        float(np.abs(plain_rates(drawn_counts(rng, shares_of(zeros, 0.08, 0.08), 50_000, 500), 50_000) - 0.08).mean())
        for zeros in (0.5, 0.1)
    ]

    assert errors[0] == pytest.approx(0.067, abs=0.015)
    assert errors[1] == pytest.approx(0.001, abs=0.0005)


def test_where_shares_are_equal_the_estimate_does_not_pretend() -> None:
    """The plain solution is off by .08 there, on average; the estimate by half of what the groups differ."""
    found = estimates(np.random.default_rng(3), 0.5, 50_000, 200)

    assert np.mean([rates.status == "balanced" for rates in found]) >= 0.98
    assert np.mean([abs(rates.first.zero - 0.2) for rates in found]) <= 0.03
    assert all(rates.first.low <= 0.2 and rates.second.high >= 0.25 for rates in found)


def test_e21_with_rates_that_differ_between_questions_agreement_reads_too_little() -> None:
    """η_t is .05 or .45 for both groups at once: .250 on average, .180 by agreement; with p̂ = .2 .350 and .308."""
    agree = np.mean([eta**2 + (1 - eta) ** 2 for eta in (0.05, 0.45)])
    flipped = [eta * 0.8 + (1 - eta) * 0.2 for eta in (0.05, 0.45)]
    agree_flipped = np.mean([eta**2 + (1 - eta) ** 2 for eta in flipped])

    assert np.mean(flipped) == pytest.approx(0.350)
    for agreement, expected in ((agree, 0.180), (agree_flipped, 0.3075)):
        both = float(agreement) / 2
        rate = EqualGroupSums(1e8, 1e8, 5e7, 5e7, 1e8 * both).estimate()
        assert rate.zero == pytest.approx(expected, abs=0.001)


def test_equal_groups_need_291_questions_at_any_share_of_zeros() -> None:
    """For ±.05 (95 %) at (.2, .25), by √(g(1-g)/(4(2g-1)t))."""
    for zeros in (0.1, 0.3, 0.5):
        questions = 1e8
        shares = shares_of(zeros, 0.2, 0.25)
        rate = EqualGroupSums(questions, questions, *(questions * share for share in shares)).estimate()

        assert (1.96 / 0.05) ** 2 * rate.variance * questions == pytest.approx(291, abs=0.5)


def test_the_estimate_of_the_sums_is_that_of_the_first_group() -> None:
    sums = sums_of(*shares_of(0.3, 0.1, 0.2))

    assert sums.estimate(0.9) == sums.estimate_groups(0.9).first


@pytest.mark.parametrize("zeros", [0.1, 0.3, 0.8])
def test_intervals_cover_at_their_confidence(zeros: float) -> None:
    found = estimates(np.random.default_rng(4), zeros, 3_000, 400)

    told = [rates for rates in found if rates.status == "ok"]
    covered = [
        rates.first.low <= 0.2 <= rates.first.high and rates.second.low <= 0.25 <= rates.second.high for rates in told
    ]
    assert len(told) >= 380
    assert np.mean(covered) >= 0.90


def test_without_data_the_rate_is_the_prior_and_anything_is_possible() -> None:
    for rate in (TwoGroupSums().estimate(), EqualGroupSums().estimate()):
        assert rate == (0.25, 0.25, 0.0, 0.475, 0.0, "insufficient", 0.25)


@pytest.mark.parametrize("always", [(1, 1), (0, 0), (1, 0)])
def test_answers_that_never_change_are_not_taken_for_perfect_ones(always: tuple[int, int]) -> None:
    one = TwoGroupSums.contribution(*always)
    many = TwoGroupSums(*(1_000 * value for value in (1, 1, one.c1, one.c2, one.c3)))

    rates = many.estimate_groups()

    assert rates.status == "uninformative"
    assert rates.first.zero in {0.25, 0.475}
    assert rates.first[2:4] == (0.0, 0.475)
    assert EqualGroupSums(1_000, 1_000, many.c1, many.c2, many.c3).estimate()[2:4] == (0.0, 0.475)


def test_the_variance_of_the_covariance_is_that_of_the_four_cells() -> None:
    """With w = c3 - c1·c2 at exactly three standard deviations, one question more or less decides."""
    c1, c2, c3 = 0.3, 0.4, 0.2
    cells = {(1, 1): c3, (1, 0): c1 - c3, (0, 1): c2 - c3, (0, 0): 1 - c1 - c2 + c3}
    w = c3 - c1 * c2
    variance = sum(share * ((x - c1) * (y - c2)) ** 2 for (x, y), share in cells.items()) - w * w
    needed = 9 * variance / (w * w)

    assert not vary_together(c1, c2, c3, needed - 0.01)
    assert vary_together(c1, c2, c3, needed + 0.01)


def test_groups_that_lean_to_different_answers_contradict_symmetric_rates() -> None:
    rates = sums_of(0.7, 0.3, 0.28, questions=10_000).estimate_groups()

    assert rates.status == "contradicted"
    assert rates.first[2:4] == (0.0, 0.475)
    assert rates.first.variance == 0.25


def test_rates_far_below_zero_contradict_symmetric_rates_and_are_cut() -> None:
    """Class-dependent answers with so different leans that a = √(G·u/v) is far above 1."""
    rates = sums_of(0.9, 0.55, 0.54, questions=100_000).estimate_groups()

    assert (rates.status, rates.first.status) == ("contradicted", "contradicted")
    assert rates.first[:4] == (0.0, 0.0, 0.0, 0.475)
    assert rates.share_of_zeros is None


@pytest.mark.case("C18")
@pytest.mark.parametrize(
    ("zeros", "questions", "statuses"),
    [
        (0.5, 2_000, {"balanced"}),
        (0.03, 2_000, {"ok", "uninformative"}),
        (0.97, 2_000, {"ok", "uninformative"}),
        (0.03, 50_000, {"ok"}),
        (0.97, 50_000, {"ok"}),
        (0.3, 40, {"insufficient"}),
        (0.5, 20, {"insufficient"}),
        (0.97, 10, {"insufficient"}),
    ],
)
def test_what_cannot_be_told_has_a_status_an_interval_and_the_documented_fallback(
    zeros: float, questions: int, statuses: set[str]
) -> None:
    found = estimates(np.random.default_rng(5), zeros, questions, 100)

    assert np.mean([rates.status in statuses for rates in found]) >= 0.97
    for rates in found:
        for rate in (rates.first, rates.second):
            assert all(math.isfinite(number) for number in (*rate[:5], rate.variance))
            assert 0.0 <= rate.low <= rate.zero <= rate.high <= 0.475
        if rates.status == "uninformative":
            assert rates.first.zero in {0.25, 0.475}
            assert rates.first[2:4] == (0.0, 0.475)
        if rates.status == "balanced":
            assert rates.first == rates.second
            assert rates.first.low == 0.0


@pytest.mark.case("C18")
def test_groups_with_the_same_rate_are_told_apart_from_nothing_and_found_equal() -> None:
    rates = sums_of(*shares_of(0.3, 0.2, 0.2), questions=1e8).estimate_groups()

    assert rates.first == pytest.approx(rates.second)
    assert rates.first.zero == pytest.approx(0.2, abs=1e-4)
    assert rates.status == "ok"


@pytest.mark.case("C18")
def test_groups_with_the_same_answers_are_read_as_right_and_without_nonsense() -> None:
    """Agreement alone cannot know better; the tests of dependence and outcomes can."""
    rates = sums_of(0.6, 0.6, 0.6, questions=2_000).estimate_groups()

    assert rates.first == pytest.approx(rates.second)
    assert rates.first.zero < 0.01
    assert math.isfinite(rates.first.variance)


@pytest.mark.case("C18")
def test_the_rate_starts_at_the_prior_and_jumps_only_where_its_status_changes() -> None:
    """Then by .25 at most, here; from question to question of one status by less than .025."""
    rng = np.random.default_rng(6)
    for zeros, eta in ((0.5, 0.2), (0.45, 0.3), (0.3, 0.05), (0.1, 0.05), (0.03, 0.2), (0.97, 0.2)):
        outcomes = rng.random(1_000) >= zeros
        answers = np.stack([outcomes ^ (rng.random(1_000) < error) for error in (eta, 0.3)], axis=1).astype(int)
        sums, last = TwoGroupSums(), TwoGroupSums().estimate()
        for first, second in answers.tolist():
            sums = sums.merge(TwoGroupSums.contribution(first, second))
            rate = sums.estimate()
            steady = rate.status == last.status and rate.status in {"ok", "balanced"}
            assert abs(rate.zero - last.zero) <= (0.025 if steady else 0.25)
            last = rate


def test_a_few_disagreements_are_no_reason_to_give_up() -> None:
    rate = sums_of(0.5, 0.5, 0.0, questions=20).estimate()

    assert rate == (0.25, 0.25, 0.0, 0.475, 20.0, "insufficient", 0.25)


def test_groups_drawn_once_are_off_for_good_and_groups_drawn_anew_are_not() -> None:
    """Ten experts of different skill: the estimate against the group's own error, with 200,000 questions."""
    rng = np.random.default_rng(7)
    errors = np.array([0.1, 0.15, 0.2, 0.2, 0.25, 0.4, 0.4, 0.42, 0.42, 0.45])
    questions = 200_000
    outcomes = rng.random(questions) < 0.5
    votes = np.where((rng.random((questions, 10)) < errors) ^ outcomes[:, None], 1, -1)
    fixed = np.tile(np.arange(10) < 5, (questions, 1))
    anew = rng.random((questions, 10)).argsort(axis=1) < 5

    off = []
    for in_first in (fixed, anew):
        first, second = (votes * in_first).sum(axis=1) > 0, (votes * ~in_first).sum(axis=1) > 0
        counts = (float(first.sum()), float(second.sum()), float((first & second).sum()))
        rate = EqualGroupSums(questions, questions, *counts).estimate()
        off.append(abs(rate.zero - float((first != outcomes).mean())))

    assert off[0] > 0.024
    assert off[1] < 0.012

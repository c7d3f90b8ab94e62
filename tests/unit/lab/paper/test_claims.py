"""Each claim measures what it says, and marks a wrong formula as missed."""

import math

import numpy as np
import pytest

from stream_peer.lab.formulas.two_groups import TwoGroupSolution
from stream_peer.lab.paper import certificates as certificates_claim
from stream_peer.lab.paper import estimators, following
from stream_peer.lab.paper import heterogeneous as heterogeneous_claim
from stream_peer.lab.paper import wrong_expert as wrong_expert_claim
from stream_peer.lab.paper.blow_up import EXACT, GAPS, HORIZON, WORST
from stream_peer.lab.paper.certificates import QUICK, Row, promises
from stream_peer.lab.paper.certificates import play as play_certified
from stream_peer.lab.paper.estimators import group_checks, revealed_checks, two_groups
from stream_peer.lab.paper.heterogeneous import heterogeneous, heterogeneous_promises
from stream_peer.lab.paper.limited_truth import REVEALED
from stream_peer.lab.paper.limited_truth import play as play_limited
from stream_peer.lab.paper.results import ClaimCheck, Size
from stream_peer.lab.paper.sublinear import SHARP
from stream_peer.lab.paper.sublinear import play as play_sublinear
from stream_peer.lab.paper.worlds import Shares, printed_first_rate
from stream_peer.lab.paper.wrong_expert import chances_to_be_elected, duel, wrong_expert
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import TruthSums, TwoGroupSums
from stream_peer.numerics.error_rates.rate import ErrorRate
from stream_peer.numerics.learners import hedge
from stream_peer.numerics.losses import squared_loss
from tests.unit.lab.paper.samples import SEED


def naive(forecasts: FloatArray, reference_answer: FloatArray, error_rate: float) -> FloatArray:
    """What a peer loss is without its correction."""
    del error_rate
    return squared_loss(forecasts, reference_answer.astype(np.int64))


def test_naive_losses_in_the_place_of_peer_losses_are_marked_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrong_expert_claim, "peer_loss", naive)

    missed = [check.what for check in wrong_expert(np.random.default_rng([SEED, 2]), Size.QUICK).missed]

    assert "peer: right expert elected at η = 0.35, κ = 0, share of runs" in missed
    assert "panel: right expert elected by peer losses, η estimated without outcomes, share" in missed
    assert not [what for what in missed if what.startswith("naive")]


@pytest.mark.parametrize(("error_rate", "shrinkage"), [(0.2, 0.4), (0.45, 0.4), (0.1, 0.4)])
def test_shares_of_runs_are_those_that_the_normal_approximation_expects(error_rate: float, shrinkage: float) -> None:
    played = duel(np.random.default_rng(5), error_rate, shrinkage, runs=400)
    naive_share, peer_share = chances_to_be_elected(error_rate, shrinkage)

    assert played.naive.mean() == pytest.approx(naive_share, abs=0.1)
    assert played.peer.mean() == pytest.approx(peer_share, abs=0.1)


@pytest.mark.parametrize("place", [0, WORST])
def test_expected_regret_is_that_of_all_paths_of_the_difference_of_two_sums(place: int) -> None:
    """The difference moves up if only the worse expert errs, down if only the better one does."""
    gap = GAPS[place]
    worse, better = 0.5 + 0.5 * gap, 0.5 - 0.5 * gap
    up, down = worse * (1 - better), better * (1 - worse)
    chances = np.zeros(2 * HORIZON + 3)
    chances[HORIZON + 1] = 1.0
    difference = np.arange(chances.size) - HORIZON - 1
    rate = math.sqrt(8.0 * math.log(2.0) / HORIZON)
    weight_of_worse = 1.0 / (1.0 + np.exp(np.minimum(rate * difference, 700.0)))

    regret = 0.0
    for _ in range(HORIZON):
        regret += gap * float(chances @ weight_of_worse)
        moved = (1.0 - up - down) * chances
        moved[1:] += up * chances[:-1]
        moved[:-1] += down * chances[1:]
        chances = moved

    assert regret == pytest.approx(EXACT[place], abs=0.005)


def test_the_worst_of_the_gaps_is_where_regret_is_largest() -> None:
    assert np.argmax(EXACT) == WORST


def test_the_same_generator_gives_the_same_questions_to_panels_of_any_size() -> None:
    small, large = (play_limited(np.random.default_rng(1), n, runs=24, questions=400) for n in (4, 32))

    together = np.corrcoef(small.excess[0], large.excess[0])[0, 1]
    assert together > 0.8


def test_a_rate_measured_on_half_of_the_outcomes_costs_little() -> None:
    found = play_limited(np.random.default_rng(1), 8, runs=24, questions=400)

    assert REVEALED[-1] == 0.5
    assert abs(found.excess[-1].mean()) < 0.2 * found.known.mean()


def test_a_flip_that_does_not_flip_is_marked_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def untouched(reference_answer: FloatArray, coin: FloatArray) -> FloatArray:
        return reference_answer + 0.0 * coin

    monkeypatch.setattr(heterogeneous_claim, "flip_answer", untouched)

    missed = {check.what for check in heterogeneous(np.random.default_rng([SEED, 5]), Size.QUICK).missed}

    assert "aligned: regret at p̂ = 0.4, summed loss" in missed


def test_bounds_are_the_figures_worked_out_by_hand() -> None:
    found = heterogeneous_promises(np.array([0.05, 0.45] * 2000), best_loss=400.9, n_experts=4)

    assert [round(value) for value in found] == [5606, 17_939]


def test_regret_on_naive_losses_is_a_fixed_share_and_on_peer_losses_falls_behind() -> None:
    course = play_sublinear(np.random.default_rng(1), runs=4, marks=(300, 1500))

    for regret in (course.hedge, course.normal):
        share = regret / np.array([[300.0], [1500.0]])
        assert share[-1, 3] == pytest.approx(SHARP**2, rel=0.06)
        assert (share[-1, :3] < 0.9 * share[0, :3]).all()
        assert (share[-1, :3] < 0.3 * share[-1, 3]).all()


def test_a_learner_that_reads_its_losses_upside_down_is_far_from_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "hedge", lambda regrets, rate: hedge(-regrets, rate))

    course = play_sublinear(np.random.default_rng(1), runs=4, marks=(300, 1000))

    assert (course.hedge[-1, :3] > 100.0).all()


def as_printed(sums: TwoGroupSums) -> ErrorRate:
    """What Theorem 7 gives with the quadratic of its proof."""
    shares = Shares(sums.c1 / sums.weight, sums.c2 / sums.weight, sums.c3 / sums.weight, int(sums.weight))
    rate = printed_first_rate(shares)
    return ErrorRate(rate, rate, 0.0, 0.475, sums.weight, "ok", 0.25)


def missed_by(checks: list[ClaimCheck]) -> set[str]:
    return {check.what for check in checks if not check.met}


def test_the_papers_own_quadratic_is_marked_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def solution(c1: float, c2: float, c3: float) -> TwoGroupSolution:
        return TwoGroupSolution(printed_first_rate(Shares(c1, c2, c3, 1)), 0.25, 0.5)

    monkeypatch.setattr(estimators, "two_group_solution", solution)
    monkeypatch.setattr(TwoGroupSums, "estimate", as_printed)

    rng = np.random.default_rng(SEED)
    missed = missed_by(group_checks(rng, two_groups(rng, runs=100), runs=400))

    assert "two groups: deviation of η̂_A × √T at P0 = 0.3" in missed
    assert "two groups, P0 = .5, T = 50,000: mean error of η̂_A" in missed


def test_agreements_counted_for_disagreements_are_marked_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned_round(*, right_zero: float, wrong_zero: float) -> object:
        return TruthSums(right_zero=wrong_zero, wrong_zero=right_zero)

    monkeypatch.setattr(estimators, "TruthSums", turned_round)

    checks = revealed_checks(estimators.revealed_spreads(np.random.default_rng(SEED), runs=2000))

    assert "Hájek: wrong / revealed: mean" in missed_by(checks)


def test_variances_of_revealed_estimates_are_those_of_theory() -> None:
    found = estimators.revealed_spreads(np.random.default_rng(1), runs=4000)

    np.testing.assert_allclose(found.variances, [1.05, 1.41, 3.01], rtol=4 * math.sqrt(2 / 4000))
    np.testing.assert_allclose(found.means, [0.3, 0.3, 0.7], atol=0.002)


@pytest.mark.parametrize(
    ("n_experts", "questions", "rate", "direct", "repaired", "printed"),
    [
        (4, 500, 0.1, 106, 385, 1030),
        (4, 5000, 0.3, 671, 1927, 5723),
        (32, 5000, 0.1, 434, 1431, 3298),
        (32, 5000, 0.45, 3473, 7360, 20_868),
        (32, 50_000, 0.3, 2745, 7205, 18_368),
    ],
)
def test_promises_are_the_figures_worked_out_by_hand(
    n_experts: int, questions: int, rate: float, direct: int, repaired: int, printed: int
) -> None:
    found = promises(n_experts, questions, rate)

    assert [round(value) for value in found] == [direct, repaired, printed]


def test_a_certificate_that_is_too_small_is_seen_as_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates_claim, "regret_bounds", lambda *_: np.full((5, 4), 0.01))

    assert play_certified(np.random.default_rng(1), Row(4, 200, 0.1, (0, 0, 0)), runs=5).violations == 5


def test_where_reference_answers_are_nearly_coins_the_certificate_is_the_largest_possible_regret() -> None:
    found = play_certified(np.random.default_rng(1), Row(4, 50, 0.45, (0, 0, 0)), runs=2)

    assert found.violations == 0
    assert (found.regret < found.live).all()
    assert (found.live < 50.0).all()


def test_quick_settings_are_small() -> None:
    assert sum(row.questions for row in QUICK) <= 3000

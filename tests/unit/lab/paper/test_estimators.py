import math

import numpy as np
import pytest

from stream_peer.lab.formulas.two_groups import TwoGroupSolution
from stream_peer.lab.paper import estimators
from stream_peer.lab.paper.estimators import group_checks, revealed_checks, two_groups
from stream_peer.lab.paper.results import ClaimCheck
from stream_peer.lab.paper.worlds import Shares, printed_first_rate
from stream_peer.numerics.error_rates import TruthSums, TwoGroupSums
from stream_peer.numerics.error_rates.rate import ErrorRate
from tests.unit.lab.paper.samples import SEED


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

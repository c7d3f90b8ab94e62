from dataclasses import astuple
from functools import reduce

import numpy as np
import pytest

from stream_peer.numerics.answers import leave_one_out, votes
from stream_peer.numerics.error_rates import MomentSums, MomentTerms, moment_terms
from tests.unit.numerics.error_rates.streams import (
    majority_error,
    moment_rows,
    moment_sums,
    others_majority,
    outcomes_of,
    votes_of,
)

NO_DATA = MomentSums()


def sums_of(pair: float, rest: float, questions: float) -> MomentSums:
    """Sums of so many equal questions."""
    one = MomentSums.contribution(MomentTerms(pair, rest))
    return MomentSums(*(questions * value for value in (1, 1, one.pair, one.rest, one.pair2, one.rest2, one.pair_rest)))


def test_more_voters_than_a_small_integer_counts_are_no_problem() -> None:
    everybody = np.ones(1000, dtype=np.int8)

    assert moment_terms(everybody, everybody) == MomentTerms(pair=1.0, rest=1.0)


def test_without_data_the_rate_is_the_prior_and_anything_is_possible() -> None:
    rate = NO_DATA.estimate()

    assert rate[:6] == (0.25, 0.25, 0.0, 0.475, 0.0, "insufficient")
    assert 0.0 < rate.variance <= 0.25


def test_the_estimate_is_the_shrunk_ratio_of_moments() -> None:
    """200 questions of pair .36 and rest .48, 20 pseudo-questions of pair .1 and rest ½√.1."""
    pair = (200 * 0.36 + 20 * 0.1) / 220
    rest = (200 * 0.48 + 20 * 0.5 * 0.1**0.5) / 220

    assert sums_of(0.36, 0.48, 200).estimate().zero == pytest.approx(0.5 * (1 - rest / pair**0.5), abs=1e-12)


def test_the_status_is_insufficient_below_fifty_effective_questions() -> None:
    halves = MomentSums.contribution(MomentTerms(0.36, 0.48), weight=0.5)
    many = reduce(MomentSums.merge, 49 * [halves])

    assert many.estimate().status == "insufficient"
    assert many.estimate().effective_questions == pytest.approx(49)
    assert many.merge(halves).estimate().status == "ok"


def test_simulated_sums_are_those_of_the_rounds_one_by_one() -> None:
    """The fast sums of the simulations are those of `moment_terms` and of the product's own references."""
    rng = np.random.default_rng(1)
    given = votes_of(rng, outcomes_of(rng, 40, 0.4), np.array([0.1, 0.2, 0.4, 0.3]))
    answers = others_majority(np.random.default_rng(2), given)
    coins = np.random.default_rng(2).integers(0, 2, (40, 1))

    one_by_one = []
    for row, coin in zip(given, coins[:, 0], strict=True):
        forecasts = (row > 0).astype(np.float64)
        terms = moment_terms(votes(forecasts), leave_one_out(forecasts, int(coin)).answers)
        assert terms is not None
        one_by_one.append(MomentSums.contribution(terms))

    expected = astuple(reduce(MomentSums.merge, one_by_one))
    assert astuple(moment_sums(moment_rows(given, answers))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("share_of_zeros", [0.5, 0.8, 0.97])
@pytest.mark.parametrize(("n_experts", "questions"), [(6, 300), (6, 2000), (20, 300), (20, 2000)])
def test_the_interval_covers_the_true_rate(n_experts: int, questions: int, share_of_zeros: float) -> None:
    """At least 90 of 100 seeded streams, at confidence .95."""
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, n_experts])
        errors = rng.uniform(0.2, 0.48, n_experts)
        given = votes_of(rng, outcomes_of(rng, questions, share_of_zeros), errors)
        rate = moment_sums(moment_rows(given, others_majority(rng, given))).estimate()
        covered += rate.low <= majority_error(errors) <= rate.high

    assert covered >= 90

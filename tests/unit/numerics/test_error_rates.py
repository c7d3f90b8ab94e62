from functools import reduce

import numpy as np
import pytest

from stream_peer.numerics.error_rates import (
    ErrorRate,
    MomentSums,
    MomentTerms,
    combine_with_truth,
    interval_ends,
    moment_terms,
    priced,
)
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.references import leave_one_out, votes

NO_DATA = MomentSums()


def sums_of(pair: float, rest: float, questions: float) -> MomentSums:
    """Sums of so many equal questions."""
    one = MomentSums.contribution(MomentTerms(pair, rest))
    return MomentSums(*(questions * value for value in (1, 1, one.pair, one.rest, one.pair2, one.rest2, one.pair_rest)))


def simulated(errors: FloatArray, questions: int, share_of_zeros: float, seed: int) -> MomentSums:
    """Questions on which experts err independently."""
    rng = np.random.default_rng(seed)
    outcomes = (rng.random(questions) >= share_of_zeros).astype(np.int64)
    wrong = rng.random((questions, errors.size)) < errors
    coins = rng.integers(0, 2, questions)
    total = MomentSums()
    for outcome, mistaken, coin in zip(outcomes, wrong, coins, strict=True):
        forecasts = np.where(mistaken, 1.0 - outcome, outcome)
        terms = moment_terms(votes(forecasts), leave_one_out(forecasts, int(coin)).answers)
        assert terms is not None
        total = total.merge(MomentSums.contribution(terms))
    return total


def leave_one_out_error(errors: FloatArray) -> float:
    """Exact share of wrong leave-one-out answers: the distribution of the others' wrong votes, expert by expert."""
    rates = []
    for left_out in range(errors.size):
        wrong_votes = np.array([1.0])
        for error in np.delete(errors, left_out):
            wrong_votes = np.convolve(wrong_votes, [1 - error, error])
        n_others = errors.size - 1
        more = float(wrong_votes[n_others // 2 + 1 :].sum())
        rates.append(more if n_others % 2 else more + 0.5 * float(wrong_votes[n_others // 2]))
    return float(np.mean(rates))


def test_moments_of_a_round_by_hand() -> None:
    """Votes + + -, references - + +: Σv = 1, so pair = (1 - 3)/6; rest = (-1 + 1 - 1)/3."""
    found = moment_terms(np.array([1, 1, -1], dtype=np.int8), np.array([0, 1, 1], dtype=np.int8))

    assert found == MomentTerms(pair=-1 / 3, rest=-1 / 3)


@pytest.mark.parametrize("given", [[], [1], [0, 0, 0], [0, -1, 0]])
def test_a_round_with_fewer_than_two_voters_says_nothing(given: list[int]) -> None:
    found = np.array(given, dtype=np.int8)

    assert moment_terms(found, np.zeros(found.size, dtype=np.int8)) is None


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


def test_much_data_leaves_nothing_of_the_prior() -> None:
    """A = .48/√.36 = .8, so η = .1."""
    rate = sums_of(0.36, 0.48, 1e9).estimate()

    assert rate.zero == pytest.approx(0.1, abs=1e-6)
    assert (rate.low, rate.high) == pytest.approx((0.095, 0.105), abs=1e-4)
    assert rate.status == "ok"


def test_the_status_is_insufficient_below_fifty_effective_questions() -> None:
    halves = MomentSums.contribution(MomentTerms(0.36, 0.48), weight=0.5)
    many = reduce(MomentSums.merge, 49 * [halves])

    assert many.estimate().status == "insufficient"
    assert many.estimate().effective_questions == pytest.approx(49)
    assert many.merge(halves).estimate().status == "ok"


@pytest.mark.parametrize("moments", [(-0.2, 0.5), (0.5, -0.3), (-1.0, -1.0), (0.36, 0.0)])
def test_votes_that_do_not_agree_say_nothing(moments: tuple[float, float]) -> None:
    rate = sums_of(*moments, 10_000).estimate()

    assert (rate.zero, rate.one, rate.status) == (0.475, 0.475, "uninformative")
    assert rate.high == 0.475


def test_perfect_agreement_is_read_as_no_error() -> None:
    """The limit is 0; the pseudo-questions hold the estimate a little above it."""
    rate = sums_of(1.0, 1.0, 100_000).estimate()

    assert 0.0 <= rate.zero < 1e-3
    assert rate.low == 0.0


def test_a_wider_confidence_gives_a_wider_interval() -> None:
    narrow, wide = (sums_of(0.2, 0.3, 200).estimate(level) for level in (0.5, 0.99))

    assert wide.low < narrow.low < narrow.zero < narrow.high < wide.high


@pytest.mark.parametrize(
    ("n_experts", "share_of_zeros"), [(6, 0.5), (6, 0.8), (20, 0.5)], ids=["six", "six-skewed", "twenty"]
)
def test_the_interval_covers_the_true_rate(n_experts: int, share_of_zeros: float) -> None:
    """At least 90 of 100 seeded streams of 300 questions, at confidence .95."""
    covered = 0
    for seed in range(100):
        errors = np.random.default_rng([seed, n_experts]).uniform(0.2, 0.48, n_experts)
        rate = simulated(errors, 300, share_of_zeros, seed).estimate()
        covered += rate.low <= leave_one_out_error(errors) <= rate.high

    assert covered >= 90


def test_without_outcomes_truth_changes_nothing() -> None:
    free = sums_of(0.2, 0.3, 500).estimate()

    rate = combine_with_truth(free, 0, 0, 0, 0)

    assert rate._replace(low=0.0, high=0.0) == free._replace(low=0.0, high=0.0)
    assert (rate.low, rate.high) == pytest.approx((free.low, free.high), abs=1e-12)


def test_the_truth_free_rate_counts_as_at_most_thirty_labels() -> None:
    free = ErrorRate(0.2, 0.2, 0.15, 0.25, 1000.0, "ok", 1e-5)

    rate = combine_with_truth(free, wrong0=30, revealed0=70, wrong1=0, revealed1=0)

    assert rate.zero == pytest.approx((30 + 30 * 0.2) / (70 + 30), abs=1e-12)
    assert rate.one == 0.2


def test_a_vague_truth_free_rate_counts_as_few_labels() -> None:
    """V = .016 is that of a binomial with ten labels at .2."""
    free = ErrorRate(0.2, 0.2, 0.0, 0.4, 60.0, "ok", 0.016)

    assert combine_with_truth(free, 0, 0, 5, 10).one == pytest.approx((5 + 10 * 0.2) / 20, abs=1e-12)


def test_disagreements_are_counted_not_agreements() -> None:
    """The paper's indicator would tend to .7 here."""
    free = sums_of(0.2, 0.3, 500).estimate()

    rate = combine_with_truth(free, 300_000, 1_000_000, 300_000, 1_000_000)

    assert (rate.zero, rate.one) == pytest.approx((0.3, 0.3), abs=1e-4)
    assert rate.high - rate.low < 0.003


def test_a_first_wrong_answer_does_not_overturn_a_rate_of_zero() -> None:
    free = ErrorRate(0.0, 0.0, 0.0, 0.005, 5000.0, "ok", 1e-6)

    assert combine_with_truth(free, 1, 1, 0, 0).zero == pytest.approx(1 / 31, abs=1e-12)


def test_measured_errors_make_a_stuck_estimate_useful_again() -> None:
    free = sums_of(-0.1, 0.0, 500).estimate()

    rate = combine_with_truth(free, 100, 1000, 200, 1000)

    assert (free.status, rate.status) == ("uninformative", "ok")


def test_rates_are_priced_with_a_sum_of_at_most_four_fifths() -> None:
    assert priced(0.3, 0.5) == (0.3, 0.5, False)
    assert priced(0.475, 0.475) == pytest.approx((0.4, 0.4, True))
    zero, one, capped = priced(0.3, 0.6)
    assert (zero + one, one / zero, capped) == pytest.approx((0.8, 2.0, True))


def test_both_rates_move_alike_between_the_ends_of_the_interval() -> None:
    (zero_low, one_low), (zero_high, one_high) = interval_ends(ErrorRate(0.02, 0.3, 0.1, 0.2, 500.0, "ok", 0.001))

    assert (zero_low, one_low) == pytest.approx((0.0, 0.24))
    assert (zero_high, one_high) == pytest.approx((0.06, 0.34))

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.error_rates import ErrorRate, TruthSums, contradiction, reveal_shift
from stream_peer.numerics.error_rates.rate import unknown_rate
from stream_peer.numerics.losses import FloatArray
from tests.unit.numerics.error_rates.streams import (
    moment_rows,
    moment_sums,
    others_majority,
    outcomes_of,
    truth_sums,
    votes_of,
)

FREE = ErrorRate(0.1, 0.1, 0.06, 0.14, 2000.0, "ok", 0.0004)


def measured(wrong: float, revealed: float) -> TruthSums:
    return TruthSums(right_zero=(revealed - wrong) / 2, wrong_zero=wrong / 2, right_one=(revealed - wrong) / 2,
                     wrong_one=wrong / 2)  # fmt: skip


def test_what_is_expected_follows_the_outcomes_that_were_revealed() -> None:
    free = FREE._replace(zero=0.1, one=0.4)
    found = contradiction(TruthSums(right_zero=90, wrong_zero=10, right_one=180, wrong_one=120), free)

    assert found is not None
    assert found.expected == pytest.approx((100 * 0.1 + 300 * 0.4) / 400)
    assert found.measured == pytest.approx(130 / 400)
    assert found.z < 0.0


def test_more_errors_than_allowed_contradict_and_fewer_do_not() -> None:
    states = {wrong: contradiction(measured(wrong, 400), FREE) for wrong in (0, 40, 60, 100, 200)}

    assert [found.found for found in states.values() if found] == [False, False, False, True, True]
    assert [found.z for found in states.values() if found] == sorted(found.z for found in states.values() if found)


def test_nothing_is_judged_by_few_outcomes_or_without_an_estimate() -> None:
    assert contradiction(measured(49, 49), FREE) is None
    assert contradiction(measured(50, 50), FREE) is not None
    assert contradiction(measured(200, 200), FREE._replace(status="insufficient")) is None
    assert contradiction(measured(200, 200), unknown_rate(1000.0)) is None


class World:
    """Simulated experts: of independent ones, or such as all go wrong together on a share of the questions."""

    def __init__(self, seed: int, *, experts: int, shocks: float) -> None:
        rng = np.random.default_rng(seed)
        self.outcomes = outcomes_of(rng, 1000, 0.4)
        votes = votes_of(rng, self.outcomes, rng.uniform(0.15, 0.42, experts))
        votes = np.where((rng.random(1000) < shocks)[:, None], np.where(self.outcomes, -1, 1)[:, None], votes)
        answers = others_majority(rng, votes)
        self.free = moment_sums(moment_rows(votes, answers)).estimate()
        self.wrong: FloatArray = (answers != self.outcomes[:, None]).mean(axis=1)


def test_independent_experts_are_not_contradicted_and_shared_shocks_are() -> None:
    """At every number of outcomes on the way, not only at the end."""
    for experts in (4, 12, 40):
        for seed in range(8):
            clean, shaken = (World(seed, experts=experts, shocks=share) for share in (0.0, 0.12))
            told = [contradiction(truth_sums(clean.outcomes[:n], clean.wrong[:n]), clean.free) for n in range(50, 1000)]
            assert not any(found.found for found in told if found)
            if experts > 4:
                seen = contradiction(truth_sums(shaken.outcomes, shaken.wrong), shaken.free)
                assert seen is not None
                assert seen.found


def test_a_random_sample_is_no_shift_and_a_chosen_one_is() -> None:
    rng = np.random.default_rng(3)
    values = rng.random(2000)
    for share in (0.1, 0.5, 0.9):
        for _ in range(20):
            drawn = rng.random(2000) < share
            found = reveal_shift(2000, values.sum(), float(values @ values), drawn.sum(), values[drawn].sum())
            assert found is not None
            assert not found.found
            assert found.others == pytest.approx(values[~drawn].mean())
        chosen = values < share
        found = reveal_shift(2000, values.sum(), float(values @ values), chosen.sum(), values[chosen].sum())
        assert found is not None
        assert found.found


def test_a_small_shift_is_let_pass_however_many_questions_there_are() -> None:
    found = reveal_shift(2e9, 1e9, 1e9, 1e9, 0.52e9)

    assert found is not None
    assert not found.found


def test_all_or_few_revealed_questions_are_not_compared() -> None:
    assert reveal_shift(1000, 500, 500, 49, 0) is None
    assert reveal_shift(1000, 500, 500, 951, 500) is None
    assert reveal_shift(1000, 500, 500, 1000, 500) is None
    assert reveal_shift(0, 0, 0, 0, 0) is None


def test_numbers_that_never_vary_are_no_shift() -> None:
    found = reveal_shift(1000, 1000, 1000, 300, 300)

    assert found is not None
    assert not found.found


@pytest.mark.parametrize("weights", [(100.0, 101.0), (100.0, -1.0), (float("nan"), 10.0)])
def test_more_outcomes_than_questions_are_refused(weights: tuple[float, float]) -> None:
    with pytest.raises(FormulaInputError, match=r"no more than there are|within"):
        reveal_shift(weights[0], 1.0, 1.0, weights[1], 1.0)

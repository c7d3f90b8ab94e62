import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import follow_the_leader, shrunk_regrets, tempered, top_committee


def test_the_best_share_the_weight() -> None:
    assert top_committee(np.array([1.0, 5.0, 3.0, 4.0]), 2).tolist() == [0.0, 0.5, 0.0, 0.5]


def test_ties_share_the_last_seats() -> None:
    assert top_committee(np.array([1.0, 5.0, 1.0, 1.0]), 2) == pytest.approx([1 / 6, 1 / 2, 1 / 6, 1 / 6])


def test_a_committee_larger_than_the_pool_is_the_pool() -> None:
    awake = np.array([True, True, False])

    assert top_committee(np.array([1.0, 5.0, 9.0]), 5, awake).tolist() == [0.5, 0.5, 0.0]


def test_nobody_awake_makes_no_committee() -> None:
    assert top_committee(np.ones(3), 2, np.zeros(3, dtype=np.bool_)).tolist() == [0.0, 0.0, 0.0]
    assert top_committee(np.zeros(0), 2).size == 0


def test_the_leader_gets_everything() -> None:
    assert follow_the_leader(np.array([0.0, -1.0, 0.25])).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("regrets", "size"), [([1.0], 0), ([math.nan], 1)])
def test_a_committee_out_of_range_is_refused(regrets: list[float], size: int) -> None:
    with pytest.raises(FormulaInputError, match="within"):
        top_committee(np.array(regrets), size)


def test_one_lucky_question_does_not_lead_the_shrunk() -> None:
    regrets, counts = np.array([1.0, 30.0]), np.array([1.0, 100.0])

    assert follow_the_leader(shrunk_regrets(regrets, counts, 0.0)).tolist() == [1.0, 0.0]
    assert follow_the_leader(shrunk_regrets(regrets, counts, 20.0)).tolist() == [0.0, 1.0]


def test_nobody_answered_and_nothing_is_shrunk() -> None:
    assert shrunk_regrets(np.zeros(2), np.zeros(2), 0.0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("count", "shrinkage"), [(-1.0, 1.0), (1.0, -1.0)])
def test_shrinking_out_of_range_is_refused(count: float, shrinkage: float) -> None:
    with pytest.raises(FormulaInputError, match="within"):
        shrunk_regrets(np.zeros(1), np.array([count]), shrinkage)


def test_tempered_weights_are_roots() -> None:
    assert tempered(np.array([0.64, 0.36, 0.0])) == pytest.approx([0.8 / 1.4, 0.6 / 1.4, 0.0])


def test_tempering_with_one_changes_nothing_and_with_zero_all() -> None:
    weights = np.array([0.7, 0.3, 0.0])

    assert tempered(weights, 1.0) == pytest.approx(weights)
    assert tempered(weights, 0.0).tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(("weight", "exponent"), [(0.5, 1.1), (-0.5, 0.5), (math.nan, 0.5)])
def test_tempering_out_of_range_is_refused(weight: float, exponent: float) -> None:
    with pytest.raises(FormulaInputError, match="within"):
        tempered(np.array([weight]), exponent)

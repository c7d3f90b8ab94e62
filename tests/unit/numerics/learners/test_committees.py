import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import follow_the_leader, top_committee


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

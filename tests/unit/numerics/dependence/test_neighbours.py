import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.dependence import neighbourly_order


def test_a_chain_is_put_in_its_order() -> None:
    chain = np.array([0, 3, 1, 4, 2])
    similarity = -np.abs(chain[:, None] - chain[None, :]).astype(np.float64)

    ordered = chain[neighbourly_order(similarity)].tolist()

    assert ordered in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])


def test_of_nobody_there_is_no_order() -> None:
    assert neighbourly_order(np.zeros((0, 0))).size == 0


@pytest.mark.parametrize("similarity", [np.zeros((2, 3)), np.full((2, 2), np.nan)])
def test_what_is_no_table_of_pairs_is_refused(similarity: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    with pytest.raises(FormulaInputError):
        neighbourly_order(similarity)

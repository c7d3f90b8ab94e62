import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.engine.medians import LEAST_HISTORY, binned, own_medians
from stream_peer.engine.sums import BINS, SCALE
from stream_peer.numerics.losses import IntArray

probabilities = st.floats(0.0, 1.0)


def histogram(forecasts: list[float]) -> IntArray:
    counts = np.zeros((1, BINS), np.int64)
    put = binned(np.zeros(len(forecasts), np.int32), np.array(forecasts), int(SCALE))
    np.add.at(counts.reshape(-1), put.cells, put.amount)
    return counts


@given(st.lists(probabilities, min_size=10, max_size=60))
def test_the_median_is_off_by_less_than_a_bin(forecasts: list[float]) -> None:
    ordered = sorted(forecasts)
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]

    threshold = own_medians(histogram(forecasts))[0]

    assert lower - 1 / BINS <= threshold <= upper + 1 / BINS


def test_half_of_evenly_spread_forecasts_lie_on_either_side() -> None:
    forecasts = ((np.arange(1000) + 0.5) / 1000 * 0.2 + 0.05).tolist()

    assert own_medians(histogram(forecasts))[0] == pytest.approx(0.15, abs=0.001)


@pytest.mark.parametrize(("questions", "threshold"), [(0, 0.5), (9, 0.5), (10, 0.25 + 0.5 / BINS)])
def test_an_expert_with_little_history_votes_at_one_half(questions: int, threshold: float) -> None:
    assert LEAST_HISTORY == 10
    assert own_medians(histogram([0.25] * questions))[0] == threshold


def test_forecasts_of_zero_and_one_have_bins() -> None:
    assert binned(np.array([2, 3], np.int32), np.array([0.0, 1.0]), 7).cells.tolist() == [2 * BINS, 4 * BINS - 1]


def test_many_experts_have_the_medians_that_each_has_alone() -> None:
    histograms = np.random.default_rng(7).integers(0, 3, (2500, BINS)) * int(SCALE)

    assert own_medians(histograms).tolist() == [own_medians(row[np.newaxis])[0] for row in histograms]

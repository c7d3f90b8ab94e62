import numpy as np

from stream_peer.lab.paper.panels import merged, seen
from stream_peer.numerics.answers import leave_one_out, majority


def test_a_panel_sees_question_by_question_what_the_service_would() -> None:
    rng = np.random.default_rng(1)
    forecasts, coins = rng.random((40, 5)), rng.integers(0, 2, 40).astype(np.int8)

    panel = seen(forecasts, coins)

    for place, (row, coin) in enumerate(zip(forecasts, coins, strict=True)):
        assert panel.own[place].tolist() == leave_one_out(row, int(coin)).answers.tolist()
        assert panel.published[place] == majority(row, int(coin)).answer
    assert merged(panel.moments).weight == 40


def test_rounds_without_two_voters_add_no_moments() -> None:
    panel = seen(np.array([[0.5, 0.5, 0.9], [0.2, 0.5, 0.9]]), np.array([0, 1], dtype=np.int8))

    assert len(panel.moments) == 1

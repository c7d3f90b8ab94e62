import math

import numpy as np
import pytest

from stream_peer.lab.paper.blow_up import EXACT, GAPS, HORIZON, WORST


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

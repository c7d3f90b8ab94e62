"""Agreement of experts against sums over all pairs, and what it does not depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.numerics.agreement import cross_agreement, peer_stretch
from stream_peer.numerics.outer_layer import stretch_factor

PROBABILITY = st.floats(0.0, 1.0)
CROWD = st.lists(st.tuples(PROBABILITY, st.floats(0.01, 1.0), st.integers(-1, 3)), min_size=1, max_size=9)


@given(CROWD)
def test_agreement_is_the_mean_over_pairs_of_different_teams(crowd: list[tuple[float, float, int]]) -> None:
    forecasts, weights, teams = (np.array(column) for column in zip(*crowd, strict=True))
    weights = weights / weights.sum()
    units = [np.flatnonzero(teams == team) for team in sorted(set(teams.tolist())) if team >= 0]
    units += [np.array([place]) for place in np.flatnonzero(teams < 0)]
    said = [float(np.mean(forecasts[unit])) - 0.5 for unit in units]
    mixed = [float(np.sum(weights[unit] * (forecasts[unit] - 0.5))) for unit in units]
    n = len(units)

    found = cross_agreement(forecasts, weights, teams)

    if n < 2:
        assert found is None
        return
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    level = sum(said[u] * said[v] for u, v in pairs) / len(pairs)
    cross = sum(mixed[u] * said[v] for u, v in pairs) / (n - 1)
    assert found == pytest.approx((level, cross, sum(said) / n), abs=1e-12)


@given(CROWD)
def test_equal_weights_agree_as_the_mean_does(crowd: list[tuple[float, float, int]]) -> None:
    forecasts = np.array([one for one, _, _ in crowd])
    found = cross_agreement(forecasts, np.full(len(forecasts), 1.0 / len(forecasts)))

    assert found is None or found.cross == pytest.approx(found.level, abs=1e-12)


@given(CROWD)
def test_yes_and_no_may_change_places(crowd: list[tuple[float, float, int]]) -> None:
    forecasts, weights = np.array([one for one, _, _ in crowd]), np.array([one for _, one, _ in crowd])
    weights = weights / weights.sum()

    found, turned = cross_agreement(forecasts, weights), cross_agreement(1.0 - forecasts, weights)

    assert (found is None) == (turned is None)
    if found is not None and turned is not None:
        assert turned == pytest.approx((found.level, found.cross, -found.centre), abs=1e-12)


ANY = st.floats(-1e3, 1e3)


@given(st.floats(0.0, 1e4), ANY, ANY, st.floats(0.0, 1e3), ANY, ANY)
def test_the_stretch_by_peers_is_a_share_and_that_of_no_outcomes(
    rounds: float, level: float, cross: float, square: float, centre: float, told: float
) -> None:
    factor = peer_stretch(rounds, level, cross, square, centre, told)

    assert 0.0 <= factor <= 1.0
    assert stretch_factor(0.0, 0.0, factor, 2.5) == pytest.approx(factor, abs=1e-12)

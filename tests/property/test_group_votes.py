"""Groups that vote once: unanimity wins, groups of one change nothing, and a slow twin agrees."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.feeds.reading.weights import shared_by_groups
from stream_peer.feeds.vote_units import NONE, Groups, united, united_numbers
from stream_peer.numerics.answers import leave_one_out_of, majority, votes
from stream_peer.numerics.arguments import FloatArray, IntArray

EIGHTHS = st.integers(0, 8).map(lambda eighths: eighths / 8)


class Crowd(NamedTuple):
    forecasts: FloatArray
    groups: IntArray
    teams: IntArray
    coin: int


@st.composite
def crowds(draw: st.DrawFn) -> Crowd:
    n = draw(st.integers(1, 8))
    forecasts = np.array(draw(st.lists(EIGHTHS, min_size=n, max_size=n)))
    groups, teams = (np.array(draw(st.lists(st.integers(NONE, 2), min_size=n, max_size=n))) for _ in range(2))
    return Crowd(forecasts, groups, united_numbers(teams, groups), draw(st.integers(0, 1)))


def decided(units: list[tuple[int, float]], coin: int) -> int:
    """The side of most units; if there are as many of either, that on which their forecasts lie; else the coin."""
    lead = sum(side for side, _ in units)
    lean = sum(forecast - 0.5 for side, forecast in units if side)
    return int((lead or lean or coin - 0.5) > 0)


def slow_units(crowd: Crowd) -> list[tuple[set[int], int, float]]:
    """Members, vote and forecast of every unit."""
    sides = votes(crowd.forecasts).tolist()
    grouped = [np.flatnonzero(crowd.groups == group).tolist() for group in range(3)]
    alone = [[expert] for expert in np.flatnonzero(crowd.groups == NONE).tolist()]
    found = []
    for members in filter(None, (*grouped, *alone)):
        side = int(np.sign(sum(sides[member] for member in members)))
        speaker = next((member for member in members if side and sides[member] == side), None)
        found.append((set(members), side, 0.5 if speaker is None else float(crowd.forecasts[speaker])))
    return found


@given(crowds())
def test_groups_vote_as_a_slow_twin_says(crowd: Crowd) -> None:
    units, slow = united(votes(crowd.forecasts), crowd.forecasts, None, crowd.groups, crowd.teams), slow_units(crowd)
    answers = units.leave_one_out(crowd.coin).answers.tolist()

    assert units.majority(crowd.coin).answer == decided([(side, p) for _, side, p in slow], crowd.coin)
    for expert, answer in enumerate(answers):
        team = crowd.teams[expert]
        mates = set(np.flatnonzero(crowd.teams == team).tolist()) if team >= 0 else {expert}
        others = [(side, p) for members, side, p in slow if not members & mates]
        assert answer == decided(others, crowd.coin)


@pytest.mark.case("C17")
@given(crowds(), st.sampled_from([0.0, 0.125, 0.875, 1.0]))
def test_unanimity_wins_whatever_the_groups(crowd: Crowd, said: float) -> None:
    """Those who say nothing, at exactly 1/2, do not stand in the way."""
    forecasts = np.where(crowd.forecasts == 0.5, 0.5, said)
    units = united(votes(forecasts), forecasts, None, crowd.groups, crowd.teams)
    if (forecasts != 0.5).any():
        assert units.majority(crowd.coin).answer == int(said > 0.5)


@given(crowds())
def test_groups_of_one_change_nothing(crowd: Crowd) -> None:
    single = np.arange(len(crowd.forecasts))
    sides = votes(crowd.forecasts)
    units = united(sides, crowd.forecasts, None, single, crowd.teams)

    assert units.majority(crowd.coin) == majority(crowd.forecasts, crowd.coin)
    for found, plain in zip(
        units.leave_one_out(crowd.coin), leave_one_out_of(sides, crowd.forecasts, crowd.coin, crowd.teams), strict=True
    ):
        assert found.tolist() == plain.tolist()


@given(crowds())
def test_teams_hold_groups_together_and_keep_their_members(crowd: Crowd) -> None:
    teams = crowd.teams
    for group in range(3):
        assert len(set(teams[crowd.groups == group].tolist())) <= 1
        assert (teams[crowd.groups == group] >= 0).all()
    assert (united_numbers(teams, crowd.groups) == teams).all()


@given(crowds())
def test_a_group_has_the_weight_of_one_and_its_members_keep_their_ratios(crowd: Crowd) -> None:
    weights = (1.0 + crowd.forecasts) / float(np.sum(1.0 + crowd.forecasts))
    shared = shared_by_groups(weights, Groups(crowd.groups, np.zeros(len(weights), np.bool_)))

    assert float(shared.sum()) == pytest.approx(1.0, abs=1e-10)
    size = np.array([np.count_nonzero(crowd.groups == group) if group >= 0 else 1 for group in crowd.groups.tolist()])
    factor = shared * size / weights
    assert factor == pytest.approx(np.full(len(size), factor[0]), abs=1e-9)

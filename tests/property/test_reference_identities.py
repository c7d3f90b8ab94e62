from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.references import leave_one_out, majority

coarse = st.sampled_from([k / 16 for k in range(17)])
fine = st.floats(0.0, 1.0)
rooms = st.lists(st.one_of(coarse, fine), max_size=12)
coins = st.integers(0, 1)
unhurried = settings(deadline=None)


def distance(forecast: float, line: float) -> Fraction:
    """Exact distance in units of 2^-40, at least one unit."""
    units = round(Fraction(forecast) * 2**40) - round(Fraction(line) * 2**40)
    return Fraction(units or (forecast > line) - (forecast < line))


def slow_answer(others: list[float], coin: int, thresholds: list[float] | None = None) -> tuple[int, bool]:
    """The majority of these forecasts, in exact arithmetic, as one would write it down."""
    lines = thresholds or [0.5] * len(others)
    voters = [(forecast, line) for forecast, line in zip(others, lines, strict=True) if forecast != line]
    lead = sum(1 if forecast > line else -1 for forecast, line in voters)
    if lead:
        return int(lead > 0), False
    lean = sum((distance(forecast, line) for forecast, line in voters), start=Fraction(0))
    return (int(lean > 0) if lean else coin), True


@unhurried
@given(room=rooms, coin=coins)
def test_leave_one_out_equals_a_vote_without_each_expert(room: list[float], coin: int) -> None:
    found = leave_one_out(np.array(room), coin)

    expected = [slow_answer(room[:i] + room[i + 1 :], coin) for i in range(len(room))]
    assert list(zip(found.answers.tolist(), found.ties.tolist(), strict=True)) == expected


@unhurried
@given(room=st.lists(st.tuples(st.one_of(coarse, fine), st.integers(-1, 3)), max_size=12), coin=coins)
def test_leave_team_out_equals_a_vote_without_each_team(room: list[tuple[float, int]], coin: int) -> None:
    forecasts, teams = np.array([f for f, _ in room]), np.array([t for _, t in room], dtype=np.int64)

    found = leave_one_out(forecasts, coin, teams)

    for i, (_, team) in enumerate(room):
        others = [f for j, (f, other) in enumerate(room) if j != i and (team < 0 or other != team)]
        assert (int(found.answers[i]), bool(found.ties[i])) == slow_answer(others, coin)


@unhurried
@given(room=st.lists(st.tuples(st.one_of(coarse, fine), st.one_of(coarse, fine)), max_size=12), coin=coins)
def test_own_thresholds_move_the_line_of_every_vote(room: list[tuple[float, float]], coin: int) -> None:
    forecasts, thresholds = np.array([f for f, _ in room]), np.array([t for _, t in room])

    found = leave_one_out(forecasts, coin, thresholds=thresholds)

    for i in range(len(room)):
        others = room[:i] + room[i + 1 :]
        expected = slow_answer([f for f, _ in others], coin, [t for _, t in others])
        assert (int(found.answers[i]), bool(found.ties[i])) == expected


@unhurried
@given(room=rooms, coin=coins)
def test_the_majority_equals_a_vote_of_all(room: list[float], coin: int) -> None:
    found = majority(np.array(room), coin)

    assert (found.answer, found.tie) == slow_answer(room, coin)
    assert found.voters == sum(f != 0.5 for f in room)
    assert found.yes == sum(f > 0.5 for f in room)


@unhurried
@given(room=rooms, coin=coins, seed=st.integers(0, 1000))
def test_the_order_of_experts_does_not_matter(room: list[float], coin: int, seed: int) -> None:
    forecasts = np.array(room)
    order = np.random.default_rng(seed).permutation(len(room))

    shuffled = leave_one_out(forecasts[order], coin)

    assert shuffled.answers.tolist() == leave_one_out(forecasts, coin).answers[order].tolist()
    assert majority(forecasts[order], coin) == majority(forecasts, coin)


@unhurried
@given(room=st.lists(coarse, max_size=12), coin=coins)
def test_the_opposite_forecasts_get_the_opposite_answers(room: list[float], coin: int) -> None:
    forecasts = np.array(room)

    mirrored = leave_one_out(1.0 - forecasts, 1 - coin)

    assert mirrored.answers.tolist() == (1 - leave_one_out(forecasts, coin).answers).tolist()

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.learners import ada_normal_hedge

scores = st.tuples(st.floats(-50.0, 50.0), st.floats(0.0, 200.0))
rooms = st.lists(scores, min_size=1, max_size=10)
unhurried = settings(deadline=None)


def slow_weights(room: list[tuple[float, float]]) -> list[float]:
    """The formula as printed, one expert at a time."""
    plain = []
    for regret, absolute in room:
        above = max(regret + 1, 0.0) ** 2 / (3 * (absolute + 1))
        below = max(regret - 1, 0.0) ** 2 / (3 * (absolute + 1))
        plain.append(math.exp(above - below) - 1.0 if below == 0.0 else math.exp(below) * math.expm1(above - below))
    total = sum(plain)
    return [value / total for value in plain] if total > 0.0 else [1 / len(room)] * len(room)


@unhurried
@given(room=st.lists(st.tuples(st.floats(-3.0, 20.0), st.floats(0.0, 50.0)), min_size=1, max_size=10))
def test_weights_equal_the_printed_formula(room: list[tuple[float, float]]) -> None:
    regrets, absolute = (np.array(column) for column in zip(*room, strict=True))

    np.testing.assert_allclose(ada_normal_hedge(regrets, absolute), slow_weights(room), atol=1e-12)


@unhurried
@given(room=st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0.0, 1e9)), min_size=1, max_size=10))
def test_weights_are_a_distribution_whatever_the_sums(room: list[tuple[float, float]]) -> None:
    regrets, absolute = (np.array(column) for column in zip(*room, strict=True))

    weights = ada_normal_hedge(regrets, absolute)

    assert (weights >= 0.0).all()
    assert abs(float(weights.sum()) - 1.0) < 1e-12


@unhurried
@given(room=rooms, absent=st.data())
def test_sleeping_experts_leave_the_ratios_of_the_others_alone(
    room: list[tuple[float, float]], absent: st.DataObject
) -> None:
    regrets, absolute = (np.array(column) for column in zip(*room, strict=True))
    awake = np.array(absent.draw(st.lists(st.booleans(), min_size=len(room), max_size=len(room))))
    everybody = ada_normal_hedge(regrets, absolute)[awake]

    present = ada_normal_hedge(regrets[awake], absolute[awake])

    if everybody.sum() > 1e-200:
        np.testing.assert_allclose(present, everybody / everybody.sum(), atol=1e-9)


@unhurried
@given(room=rooms, better=st.floats(0.0, 10.0))
def test_more_regret_never_means_less_weight(room: list[tuple[float, float]], better: float) -> None:
    regrets, absolute = (np.array(column) for column in zip(*room, strict=True))
    raised = regrets.copy()
    raised[0] += better
    if (regrets <= -1.0).all():
        return  # nobody has earned anything: all weigh the same

    assert ada_normal_hedge(raised, absolute)[0] >= ada_normal_hedge(regrets, absolute)[0] - 1e-12

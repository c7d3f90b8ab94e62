import pytest

from stream_peer.numerics.mixers import safety_net_step


def test_the_net_moves_a_twentieth_at_a_time() -> None:
    """Z = 3.2/√(1 - .001 + .001): the goal is 1, then z = -1: the goal is 0."""
    shares = [0.0]
    for delta in [3.2] * 22 + [-1.0] * 3:
        shares.append(safety_net_step(shares[-1], delta, 0.999))

    assert shares[1] == pytest.approx(0.05)
    assert shares[20:23] == pytest.approx([1.0, 1.0, 1.0])
    assert shares[-1] == pytest.approx(0.85)


def test_the_net_stops_at_its_goal() -> None:
    assert safety_net_step(0.28, sum_delta=1.6, sum_delta_squares=0.999) == pytest.approx(0.3)
    assert safety_net_step(0.02, sum_delta=0.0, sum_delta_squares=0.0) == 0.0

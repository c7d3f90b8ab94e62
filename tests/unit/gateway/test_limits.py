"""A producer sends a second's worth at once and so much a second on average; posts in memory are bounded."""

from stream_peer.gateway.limits import Rate, Room


def test_what_is_overdrawn_is_waited_for() -> None:
    now = [0.0]
    rate = Rate(100, lambda: now[0])
    assert rate.wait() == 0
    rate.take(250)
    assert rate.wait() == 1.5
    now[0] = 1.5
    assert rate.wait() == 0


def test_a_pause_saves_no_more_than_a_second() -> None:
    now = [0.0]
    rate = Rate(100, lambda: now[0])
    now[0] = 3_600.0
    assert rate.wait() == 0
    rate.take(101)
    assert rate.wait() > 0


def test_there_is_never_more_than_the_room_holds() -> None:
    room = Room(10)
    assert room.take(6)
    assert not room.take(5)
    room.give_back(6)
    assert room.take(10)
    assert room.taken == 10

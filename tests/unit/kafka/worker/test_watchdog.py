"""When the process must end, by a clock that the test turns."""

import contextlib
import threading

import pytest

from stream_peer.kafka.worker.heartbeats import Deadlines, Exit, Heartbeats
from stream_peer.kafka.worker.process import Watchdog, now
from tests.integration.support.waiting import wait_until
from tests.unit.clock import Clock

LIMITS = Deadlines(silence=3.0, shutdown=8.0, broker=20.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heartbeats(clock: Clock) -> Heartbeats:
    return Heartbeats(LIMITS, clock)


def pass_time(clock: Clock, heartbeats: Heartbeats, seconds: float) -> None:
    clock.at += seconds
    heartbeats.beat()


def pass_well(clock: Clock, heartbeats: Heartbeats, seconds: int) -> None:
    """Let time pass in which brokers answer every second."""
    for _ in range(seconds):
        pass_time(clock, heartbeats, 1.0)
        heartbeats.broker_answered()


def test_a_turning_loop_with_an_answering_broker_is_left_alone(clock: Clock, heartbeats: Heartbeats) -> None:
    pass_time(clock, heartbeats, 19.0)

    assert heartbeats.fault() is None


def test_a_blocked_loop_ends_the_process(clock: Clock, heartbeats: Heartbeats) -> None:
    clock.at += 3.1

    assert heartbeats.fault() == Exit(70, "the event loop was blocked for 3.1 s")


def test_a_write_without_acknowledgement_is_waited_for_as_long_as_patience_allows(
    clock: Clock, heartbeats: Heartbeats
) -> None:
    with heartbeats.writing():
        pass_time(clock, heartbeats, 19.0)
        heartbeats.broker_answered()
        before = heartbeats.fault()
        pass_time(clock, heartbeats, 1.1)
        fault = heartbeats.fault()
    after = heartbeats.fault()

    assert (before, after) == (None, None)
    assert fault == Exit(69, "a write was not acknowledged for 20 s (broker_patience)")


def test_no_broker_under_load_is_waited_for_as_long_as_without(clock: Clock, heartbeats: Heartbeats) -> None:
    with heartbeats.writing():
        pass_time(clock, heartbeats, 19.0)
        before = heartbeats.fault()
        pass_time(clock, heartbeats, 1.1)

        assert (before, heartbeats.fault()) == (None, Exit(69, "no broker answered for 20 s (broker_patience)"))


@pytest.mark.parametrize("writes", [False, True])
def test_work_that_waits_for_brokers_is_not_stuck_and_has_its_whole_time_when_they_answer_again(
    clock: Clock, heartbeats: Heartbeats, *, writes: bool
) -> None:
    heartbeats.progress("question 3", 17, 10.0)

    with heartbeats.writing() if writes else contextlib.nullcontext():
        pass_time(clock, heartbeats, 19.0)
        away = heartbeats.fault(), heartbeats.stuck(), heartbeats.outage()
        heartbeats.broker_answered()
    back = heartbeats.fault(), heartbeats.stuck(), heartbeats.outage()
    pass_well(clock, heartbeats, 10)
    whole = heartbeats.fault()
    pass_well(clock, heartbeats, 1)

    assert away == (None, None, "no broker has answered for 19 s")
    assert (back, whole) == ((None, None, None), None)
    assert heartbeats.fault() == Exit(70, "question 3 stood still for 10 s")


def test_a_silent_broker_is_waited_for_as_long_as_patience_allows(clock: Clock, heartbeats: Heartbeats) -> None:
    pass_time(clock, heartbeats, 15.0)
    heartbeats.broker_answered()
    pass_time(clock, heartbeats, 19.0)
    before = heartbeats.fault()
    pass_time(clock, heartbeats, 2.0)

    assert before is None
    assert heartbeats.fault() == Exit(69, "no broker answered for 20 s (broker_patience)")


def test_work_that_stands_still_ends_the_process_and_work_that_moves_does_not(
    clock: Clock, heartbeats: Heartbeats
) -> None:
    heartbeats.progress("question 3", 17, 10.0)
    pass_well(clock, heartbeats, 9)
    heartbeats.progress("question 3", 18, 10.0)
    pass_well(clock, heartbeats, 9)
    moving = heartbeats.fault()
    heartbeats.progress("question 3", 18, 10.0)
    pass_well(clock, heartbeats, 2)

    assert moving is None
    assert heartbeats.fault() == Exit(70, "question 3 stood still for 10 s")
    assert heartbeats.stuck() == "question 3"


def test_work_that_is_done_or_given_away_cannot_stand_still(clock: Clock, heartbeats: Heartbeats) -> None:
    heartbeats.progress("question 3", 17, 10.0)
    heartbeats.progress("question 4", 17, 10.0)
    heartbeats.progress("question 3", None, 10.0)
    heartbeats.retain({"question 3"})
    pass_well(clock, heartbeats, 11)

    assert heartbeats.fault() is None


@pytest.mark.parametrize(("writes", "code"), [(False, 70), (True, 69)])
def test_a_stop_that_takes_too_long_ends_hard(clock: Clock, heartbeats: Heartbeats, *, writes: bool, code: int) -> None:
    heartbeats.stopping()
    heartbeats.stopping()
    pass_time(clock, heartbeats, 8.1)
    heartbeats.broker_answered()

    if writes:
        with heartbeats.writing():
            fault = heartbeats.fault()
    else:
        fault = heartbeats.fault()

    assert fault == Exit(code, "stopping took longer than 8 s")


def test_the_thread_leaves_with_the_reason_and_then_is_quiet() -> None:
    left: list[tuple[int, threading.Thread]] = []
    heartbeats = Heartbeats(Deadlines(silence=0.05, shutdown=8.0, broker=20.0), now)

    Watchdog(heartbeats, lambda code, _: left.append((code, threading.current_thread()))).start()
    wait_until(lambda: left, 5.0, "a blocked loop was not noticed")
    left[0][1].join()

    assert [code for code, _ in left] == [70]

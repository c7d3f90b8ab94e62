"""When the process must end, by a clock that the test turns."""

import pytest

from stream_peer.kafka.worker.watchdog import Exit, Limits, Vitals, Watchdog
from tests.integration.support.waiting import wait_until

LIMITS = Limits(silence=3.0, write=5.0, shutdown=8.0, broker=20.0)


class Clock:
    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vitals(clock: Clock) -> Vitals:
    return Vitals(LIMITS, clock)


def pass_time(clock: Clock, vitals: Vitals, seconds: float) -> None:
    clock.at += seconds
    vitals.beat()


def test_a_turning_loop_with_an_answering_broker_is_left_alone(clock: Clock, vitals: Vitals) -> None:
    pass_time(clock, vitals, 19.0)

    assert vitals.fault() is None


def test_a_blocked_loop_ends_the_process(clock: Clock, vitals: Vitals) -> None:
    clock.at += 3.1

    assert vitals.fault() == Exit(70, "the event loop was blocked for 3.1 s")


def test_a_write_without_acknowledgement_ends_the_process_as_a_lost_broker(clock: Clock, vitals: Vitals) -> None:
    with vitals.writing():
        pass_time(clock, vitals, 5.1)
        fault = vitals.fault()
    after = vitals.fault()

    assert fault is not None
    assert fault.code == 69
    assert "batch_deadline" in fault.reason
    assert after is None


def test_a_silent_broker_is_waited_for_as_long_as_patience_allows(clock: Clock, vitals: Vitals) -> None:
    pass_time(clock, vitals, 15.0)
    vitals.broker_answered()
    pass_time(clock, vitals, 19.0)
    before = vitals.fault()
    pass_time(clock, vitals, 2.0)

    assert before is None
    assert vitals.fault() == Exit(69, "no broker answered for 20 s (broker_patience)")


def test_work_that_stands_still_ends_the_process_and_work_that_moves_does_not(clock: Clock, vitals: Vitals) -> None:
    vitals.progress("question 3", 17, 10.0)
    pass_time(clock, vitals, 9.0)
    vitals.progress("question 3", 18, 10.0)
    pass_time(clock, vitals, 9.0)
    moving = vitals.fault()
    vitals.progress("question 3", 18, 10.0)
    vitals.broker_answered()
    pass_time(clock, vitals, 2.0)

    assert moving is None
    assert vitals.fault() == Exit(70, "question 3 stood still for 10 s")
    assert vitals.stuck() == "question 3"


def test_work_that_is_done_or_given_away_cannot_stand_still(clock: Clock, vitals: Vitals) -> None:
    vitals.progress("question 3", 17, 10.0)
    vitals.progress("question 4", 17, 10.0)
    vitals.progress("question 3", None, 10.0)
    vitals.retain({"question 3"})
    pass_time(clock, vitals, 11.0)

    assert vitals.fault() is None


@pytest.mark.parametrize(("writes", "code"), [(False, 70), (True, 69)])
def test_a_stop_that_takes_too_long_ends_hard(clock: Clock, vitals: Vitals, *, writes: bool, code: int) -> None:
    vitals.stopping()
    vitals.stopping()
    pass_time(clock, vitals, 8.1)
    vitals.broker_answered()

    if writes:
        with vitals.writing():
            fault = vitals.fault()
    else:
        fault = vitals.fault()

    assert fault == Exit(code, "stopping took longer than 8 s")


def test_the_thread_leaves_with_the_reason_and_then_is_quiet() -> None:
    left: list[tuple[int, str]] = []
    vitals = Vitals(Limits(silence=0.05, write=5.0, shutdown=8.0, broker=20.0))
    watchdog = Watchdog(vitals, lambda code, reason: left.append((code, reason)))

    watchdog.start()
    wait_until(lambda: left, 5.0, "a blocked loop was not noticed")
    watchdog.stop()

    assert [code for code, _ in left] == [70]

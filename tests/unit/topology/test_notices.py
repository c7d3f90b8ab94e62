"""Warnings of the stages in the log."""

import pytest
from structlog.testing import capture_logs

from stream_peer.engine.stage import Warned
from stream_peer.topology.notices import MOST, WITHIN_SECONDS, Notices


class Clock:
    at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def warned(number: int, code: str = "contradictory-times") -> Warned:
    return Warned(code, "econ", f"q{number}", "closes before it opens")


def test_a_warning_is_one_kind_of_event_whatever_its_code(clock: Clock) -> None:
    with capture_logs() as logs:
        Notices(clock).note([warned(1)])

    assert logs == [
        {
            "event": "question_noted",
            "code": "contradictory-times",
            "log_level": "warning",
            "feed": "econ",
            "question": "q1",
            "message": "closes before it opens",
        }
    ]


def test_of_one_code_so_many_are_told_within_a_minute_and_the_rest_as_a_number_once(clock: Clock) -> None:
    notices = Notices(clock)
    with capture_logs() as logs:
        notices.note(warned(number) for number in range(MOST + 20))
        notices.note([warned(0, "other")])
        notices.close()
        meanwhile = len(logs)
        clock.at += WITHIN_SECONDS
        notices.close()
        notices.close()
        notices.note([warned(7)])

    assert meanwhile == MOST + 1
    assert [entry["event"] for entry in logs[meanwhile:]] == ["warnings_left_out", "question_noted"]
    assert logs[meanwhile]["code"] == "contradictory-times"
    assert logs[meanwhile]["count"] == 20


def test_at_the_end_nothing_is_left_untold(clock: Clock) -> None:
    notices = Notices(clock)
    with capture_logs() as logs:
        notices.note(warned(number) for number in range(MOST + 3))
        notices.close(all_of_them=True)

    assert logs[-1]["count"] == 3

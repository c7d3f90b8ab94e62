"""Warnings of the stages in the log."""

import pytest
from structlog.testing import capture_logs

from stream_peer.kafka.worker.notices import (
    MOST,
    MOST_FEEDS,
    MOST_FIELDS,
    UNUSED_EVERY_SECONDS,
    WITHIN_SECONDS,
    Notices,
)
from stream_peer.log.stage import Warned
from tests.unit.clock import Clock


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


def test_of_refused_events_the_log_has_a_line_at_once_and_then_one_a_minute(clock: Clock) -> None:
    notices = Notices(clock, "kcat …")
    with capture_logs() as logs:
        notices.note_refused({("dead-letter", "late"): 2, ("event", "forecast"): 9})
        notices.note_refused({("dead-letter", "not-json"): 1})
        notices.note_refused({("dead-letter", "late"): 2, ("dead-letter", "not-json"): 2})
        notices.close()
        clock.at += WITHIN_SECONDS
        notices.close()
        notices.note_refused({("dead-letter", "late"): 1})
        notices.close(all_of_them=True)
        notices.close(all_of_them=True)

    assert [(entry["event"], entry["count"], entry["reasons"]) for entry in logs] == [
        ("events_refused", 2, {"late": 2}),
        ("events_refused", 5, {"not-json": 3, "late": 2}),
        ("events_refused", 1, {"late": 1}),
    ]
    assert {entry["shown_by"] for entry in logs} == {"kcat …"}


def test_of_forecasts_that_are_not_used_the_log_has_a_line_a_feed_and_hour(clock: Clock) -> None:
    notices = Notices(clock)
    with capture_logs() as logs:
        notices.note_unused({("econ", "late"): 2, ("econ", "history-trimmed"): 1, ("sport", "repeated"): 3})
        notices.note_unused({("econ", "late"): 5, ("econ", "scored"): 7})
        clock.at += UNUSED_EVERY_SECONDS
        notices.close()
        notices.close()
        clock.at += UNUSED_EVERY_SECONDS
        notices.close()
        notices.note_unused({("econ", "late"): 1})

    line = {"event": "forecasts_not_used", "log_level": "warning"}
    assert logs == [
        {**line, "feed": "econ", "late": 2, "history_trimmed": 1},
        {**line, "feed": "sport", "repeated": 3},
        {**line, "feed": "econ", "late": 5},
        {**line, "feed": "econ", "late": 1},
    ]


def test_feeds_beyond_a_number_share_their_lines(clock: Clock) -> None:
    notices = Notices(clock)
    with capture_logs() as logs:
        notices.note_unused({(f"f{number}", "late"): 1 for number in range(MOST_FEEDS + 500)})

    assert [entry["feed"] for entry in logs[MOST_FEEDS:]] == ["(others)"]


def test_an_unknown_field_is_named_once_a_feed_and_no_more_than_so_many_are(clock: Clock) -> None:
    notices = Notices(clock)
    with capture_logs() as logs:
        notices.note_unknown([("econ", "forecast.x"), ("econ", "forecast.x"), ("sport", "forecast.x")])
        notices.note_unknown({("econ", "forecast.x"): 7})
        notices.note_unknown(("econ", f"forecast.{number}") for number in range(2 * MOST_FIELDS))

    assert logs[0] == {"event": "unknown_field", "log_level": "warning", "feed": "econ", "field": "forecast.x"}
    assert logs[1]["feed"] == "sport"
    assert len(logs) == MOST_FIELDS


def test_an_expert_that_sends_often_is_named_once(clock: Clock) -> None:
    notices = Notices(clock)
    with capture_logs() as logs:
        notices.note_busy([("econ", "robot"), ("econ", "robot")])
        notices.note_busy([("econ", "robot"), ("sport", "robot")])

    assert [(entry["event"], entry["feed"], entry["expert"]) for entry in logs] == [
        ("expert_sends_often", "econ", "robot"),
        ("expert_sends_often", "sport", "robot"),
    ]

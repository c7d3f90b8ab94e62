"""Moments are whole milliseconds."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.events.times import NEVER, to_iso, to_milliseconds


@given(st.integers(min_value=0, max_value=4_102_444_800_000))
def test_text_gives_the_moment_back(moment: int) -> None:
    assert to_milliseconds(datetime.fromisoformat(to_iso(moment))) == moment


def test_parts_of_a_millisecond_are_dropped() -> None:
    assert to_milliseconds(datetime(1970, 1, 1, 0, 0, 0, 1_999, tzinfo=UTC)) == 1


def test_a_naive_moment_is_utc() -> None:
    aware = datetime(2026, 3, 1, 12, tzinfo=UTC)

    assert to_milliseconds(aware.replace(tzinfo=None)) == to_milliseconds(aware)


def test_an_offset_is_honoured() -> None:
    there = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))

    assert to_iso(to_milliseconds(there)) == "2026-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("moment", "text"),
    [(0, "1970-01-01T00:00:00Z"), (1, "1970-01-01T00:00:00.001Z"), (1_500, "1970-01-01T00:00:01.500Z")],
)
def test_milliseconds_show_only_where_there_are_any(moment: int, text: str) -> None:
    assert to_iso(moment) == text


def test_a_moment_after_the_last_year_that_can_be_written_is_shown_as_its_end() -> None:
    assert to_iso(253_402_300_799_999) == to_iso(253_402_300_800_000) == to_iso(NEVER) == "9999-12-31T23:59:59.999Z"


def test_a_moment_before_the_year_1_is_shown_as_its_beginning() -> None:
    before = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23)))

    assert to_iso(to_milliseconds(before)) == "0001-01-01T00:00:00Z"

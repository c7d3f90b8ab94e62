"""Moments are whole milliseconds."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.events.times import NEVER, from_iso, to_iso, to_milliseconds


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


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-03-01", "2026-03-01T00:00:00"),
        ("20260301", "2026-03-01T00:00:00"),
        ("2026-W09-7", "2026-03-01T00:00:00"),
        ("2026W097", "2026-03-01T00:00:00"),
        ("2026-W10", "2026-03-02T00:00:00"),
        ("2026-060", "2026-03-01T00:00:00"),
        ("2024366", "2024-12-31T00:00:00"),
        ("2026-03-01 09:00:00.684+00", "2026-03-01T09:00:00.684000+00:00"),
        ("2026-03-01T09:00:00+02", "2026-03-01T09:00:00+02:00"),
        ("2026-03-01T09:00:00 +02:00", "2026-03-01T09:00:00+02:00"),
        ("2026-03-01t09:00:00-0330", "2026-03-01T09:00:00-03:30"),
        ("2026-03-01T09:38Z", "2026-03-01T09:38:00+00:00"),
        ("2026-03-01T09", "2026-03-01T09:00:00"),
        ("20260301T093801z", "2026-03-01T09:38:01+00:00"),
        ("20260301T0938", "2026-03-01T09:38:00"),
        ("2026-03-01T09:00:00,1234567Z", "2026-03-01T09:00:00.123456+00:00"),
        ("2026-03-01T09:00,5Z", "2026-03-01T09:00:30+00:00"),
        ("2026-03-01T09.25", "2026-03-01T09:15:00"),
        ("2026-03-01T24:00:00Z", "2026-03-02T00:00:00+00:00"),
    ],
)
def test_every_form_of_iso_8601_that_names_a_day_is_read(text: str, same: str) -> None:
    assert from_iso(text) == datetime.fromisoformat(same)


@pytest.mark.parametrize(
    "text",
    [
        *("", "2026", "2026-03", "202603", "2026-3-1", "26-03-01", "2026-02-30", "2026-000", "2026-366", "2026-W54-1"),
        *("2026-W10-8", "2026-03-01T", "2026-03-01x09:00", "2026-03-01T9:00", "2026-03-01T09:0038", "2026-03-01T09:60"),
        *("2026-03-01T25:00", "2026-03-01T24:01", "2026-03-01T09:00:60Z", "2026-03-01T09:00+25", "2026-03-01T09:00.Z"),
        *(
            "2026-03-01T09:00+02:60",
            "9999-12-31T24:00",
            "0000-01-01",
            " 2026-03-01",
            "٢٠٢٦-03-01",
            "yesterday",
            "1736121600",
        ),
    ],
)
def test_what_is_no_such_form_is_no_time(text: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        from_iso(text)


@given(st.datetimes(timezones=st.timezones() | st.none()))
def test_what_python_writes_is_read_as_it_was(moment: datetime) -> None:
    assert from_iso(moment.isoformat()) == datetime.fromisoformat(moment.isoformat())

"""Moments as whole milliseconds since 1970 UTC: exact, ordered and cheap; ISO 8601 only at the edges."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache

Milliseconds = int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

YEAR_1900: Milliseconds = -2_208_988_800_000
"""The earliest moment that events may state."""
YEAR_2000: Milliseconds = 946_684_800_000
NEVER: Milliseconds = 1 << 62
"""Later than every moment."""

_END_OF_9999: Milliseconds = 253_402_300_799_999
_START_OF_1: Milliseconds = -62_135_596_800_000


_DATE = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d(?:-?[1-7])?|(\d{4})-?(\d{3}))(?:[T ](.+))?", re.ASCII)
_TIME = re.compile(
    r"(\d\d)(?:(:?)(\d\d)(?:\2(\d\d))?)?(?:[.,](\d+))? ?(?:Z|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)?", re.ASCII
)
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
TAKEN = "a date, or a date and a time, such as 2026-03-01, 2026-03-01T09:00Z or 2026-03-01 09:00:00.5+02"
"""What ``from_iso`` takes, for messages."""


def from_iso(text: str) -> datetime:
    """A moment in any form of ISO 8601 that names a day: a date alone is its beginning.

    The day is one of a month, of a week or of the year. ``T`` or a blank stands before the time, whose minutes and
    seconds may be left out; its last number may have a fraction. An offset is ``Z``, or hours, or hours and minutes.
    Hyphens and colons may be left out.

    Raises
    ------
    ValueError, OverflowError
        If it is none, or lies beyond the year 9999.

    Examples
    --------
    >>> [from_iso(text).isoformat() for text in ("2026-03-01", "20260301T24Z", "2026-060 09:00,5+02")]
    ['2026-03-01T00:00:00', '2026-03-02T00:00:00+00:00', '2026-03-01T09:00:30+02:00']
    """
    found = _DATE.fullmatch(text.upper())
    if found is None:
        raise ValueError(text)
    written, year, of_year, time = found.groups()
    if year is None:
        day = date.fromisoformat(written)
    else:
        day = date(int(year), 1, 1) + timedelta(days=int(of_year) - 1)
        if day.year != int(year):
            raise ValueError(text)
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a time without an offset is one of UTC
    return midnight if time is None else _at(midnight, time)


def _at(midnight: datetime, time: str) -> datetime:
    found = _TIME.fullmatch(time)
    if found is None:
        raise ValueError(time)
    hour, _, minute, second, fraction, sign, *shift = found.groups()
    hours, minutes, seconds = (int(part or 0) for part in shift)
    unit = _HOUR if minute is None else _MINUTE if second is None else _SECOND
    since = int(hour) * _HOUR + int(minute or 0) * _MINUTE + int(second or 0) * _SECOND
    since += int(fraction or 0) * unit // 10 ** len(fraction or "")
    if since > 24 * _HOUR or max(int(minute or 0), int(second or 0), minutes, seconds) > 59:
        raise ValueError(time)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds) * (-1 if sign == "-" else 1)
    zone = timezone(offset) if sign or time.endswith("Z") else None
    return (midnight + timedelta(microseconds=since)).replace(tzinfo=zone)


def to_milliseconds(moment: datetime) -> Milliseconds:
    """Milliseconds since 1970 UTC, rounded down; a naive moment is UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


@lru_cache(1024)  # the same moment stands in several outputs of a record
def to_iso(moment: Milliseconds) -> str:
    """ISO 8601 in UTC with a ``Z``; milliseconds only where there are any.

    A moment after the year 9999, such as a close ``max_open`` after an opening may be, is shown as the end of it; one
    before the year 1, as one of that year in another zone may be, as its beginning.

    Examples
    --------
    >>> to_iso(1_772_366_400_000)
    '2026-03-01T12:00:00Z'
    """
    moment = max(_START_OF_1, min(moment, _END_OF_9999))
    precision = "milliseconds" if moment % 1000 else "seconds"
    text = (_EPOCH + moment * _MILLISECOND).isoformat(timespec=precision)
    return text.removesuffix("+00:00") + "Z"

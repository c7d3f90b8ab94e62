"""Moments as whole milliseconds since 1970 UTC: exact, ordered and cheap; ISO 8601 only at the edges."""

from datetime import UTC, datetime, timedelta

Milliseconds = int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

YEAR_2000: Milliseconds = 946_684_800_000
NEVER: Milliseconds = 1 << 62
"""Later than every moment."""

_END_OF_9999: Milliseconds = 253_402_300_799_999
_START_OF_1: Milliseconds = -62_135_596_800_000


def to_milliseconds(moment: datetime) -> Milliseconds:
    """Milliseconds since 1970 UTC, rounded down; a naive moment is UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


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

"""What the fields of files mean: moments, probabilities, ids. What means nothing is refused, never guessed."""

import math
from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal

from stream_peer.errors import RejectedEvent
from stream_peer.events.rejections import Reason
from stream_peer.events.times import TAKEN, YEAR_1900, YEAR_2000, Milliseconds, from_iso, to_milliseconds

Unit = Literal["probability", "percent"]

YEAR_2200: Milliseconds = 7_258_118_400_000
_SECONDS = range(YEAR_2000 // 1000, YEAR_2000)
"""Numbers that count seconds since 1970: moments from 2000 on. Larger ones count milliseconds, smaller ones nothing:
20260301 is a date."""


class Unused(StrEnum):
    """Why a row is not used, beside the reasons of dead letters."""

    UNREADABLE = "unreadable"
    """It has another number of fields than the header, or is no JSON."""
    NOT_YES_NO = "not-yes-no"
    """Its question has other answers than yes and no."""
    UNKNOWN_QUESTION = "unknown-question"
    """No file describes its question."""
    AGGREGATE = "aggregate"
    """It is a forecast of the platform, made of others."""
    NO_FORECAST = "no-forecast"
    """It says nothing of what somebody expects: an automatic trade, an order that was not filled, no probability."""
    AFTER_OUTCOME = "after-outcome"
    """The platform marks it as made when the outcome was known."""
    NO_THRESHOLD = "no-threshold"
    """Nothing was observed before, so that the question has no threshold."""


def moment_of(value: Any, field: str = "time") -> Milliseconds:
    """A moment: text in ISO 8601, seconds or milliseconds since 1970, or a date or time of Parquet.

    Raises
    ------
    RejectedEvent
        If it is none, or not between 1900 and 2200.

    Examples
    --------
    >>> moment_of("2026-03-01 12:00:00 UTC") == moment_of(1772366400) == moment_of("1772366400000")
    True
    >>> moment_of(20260301) == moment_of("2026-03-01")
    True
    """
    found = _moment(value, field)
    if not YEAR_1900 <= found < YEAR_2200:
        msg = f"{field} is {value!r}, which is not between 1900 and 2200"
        raise RejectedEvent(Reason.TIME_RANGE, field=field, message=msg)
    return found


def _moment(value: Any, field: str) -> Milliseconds:
    if isinstance(value, datetime):
        return to_milliseconds(value)
    if isinstance(value, date):
        return to_milliseconds(datetime(value.year, value.month, value.day))  # noqa: DTZ001 - as text without a zone
    if value is None:
        raise missing(field)
    since = _number(value)
    if not _SECONDS.start <= since < math.inf:
        return _moment_of_text(identity(value, field), field)
    return round(since * 1000) if since < _SECONDS.stop else round(since)


def _number(value: Any) -> float:
    """A number, also one that is text; NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _moment_of_text(value: str, field: str) -> Milliseconds:
    try:
        return to_milliseconds(from_iso(value.removesuffix(" UTC")))
    except (ValueError, OverflowError):
        msg = f"{field} is {value!r}, not {TAKEN}, or a number since 1970"
        raise RejectedEvent(Reason.TIME_FORMAT, field=field, message=msg) from None


def moment_or_none(value: Any, field: str) -> Milliseconds | None:
    """A moment, or None where there is nothing."""
    return None if value is None else moment_of(value, field)


def finite(value: Any, field: str) -> float:
    """A finite number.

    Raises
    ------
    RejectedEvent
        If it is none.
    """
    if value is None:
        raise missing(field)
    found = _number(value)
    if not math.isfinite(found):
        msg = f"{field} is {value!r}, not a number"
        raise RejectedEvent(Reason.WRONG_TYPE, field=field, message=msg)
    return found


def probability(value: Any, unit: Unit = "probability") -> float:
    """A probability in 0..1; ``unit`` says what the file counts in, and is never guessed.

    Raises
    ------
    RejectedEvent
        If it is none.

    Examples
    --------
    >>> probability("0.62"), probability("62%", "percent")
    (0.62, 0.62)
    """
    text = value.strip().removesuffix("%") if isinstance(value, str) and unit == "percent" else value
    advice = " (percent? then say --unit percent)" if unit == "probability" else ""
    if isinstance(text, str) and text.strip().endswith("%"):
        msg = f"probability is {value!r}, not a number within 0..1{advice}"
        raise RejectedEvent(Reason.PROBABILITY_RANGE, field="probability", message=msg)
    found = finite(text, "probability") / (100 if unit == "percent" else 1)
    if not 0.0 <= found <= 1.0:
        msg = f"probability is {value!r}, not within 0..{100 if unit == 'percent' else 1}{advice}"
        raise RejectedEvent(Reason.PROBABILITY_RANGE, field="probability", message=msg)
    return found


def identity(value: Any, field: str) -> str:
    """An id as text; a whole number has no fraction.

    Raises
    ------
    RejectedEvent
        If there is none.
    """
    if value is None or isinstance(value, Mapping | list):
        raise missing(field)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def missing(field: str) -> RejectedEvent:
    """The refusal of a row without a field."""
    return RejectedEvent(Reason.MISSING_FIELD, field=field, message=f"{field} is missing")

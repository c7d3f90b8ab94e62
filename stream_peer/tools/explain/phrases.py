"""How explanations word moments, numbers and lists."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from stream_peer.events.times import Milliseconds

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def year(moment: Milliseconds) -> int:
    """The year of a moment, in UTC."""
    return _utc(moment).year


def date_of(moment: Milliseconds, beside: Milliseconds) -> str:
    """A moment in UTC; its year only if it is another one than that of the moment it stands beside.

    Examples
    --------
    >>> date_of(1_772_366_400_000, 1_772_000_000_000), date_of(1_772_366_400_000, 1_700_000_000_000)
    ('1 Mar 12:00', '1 Mar 2026 12:00')
    """
    at = _utc(moment)
    of_year = "" if at.year == year(beside) else f" {at.year}"
    seconds = f":{at.second:02}" if at.second else ""
    return f"{at.day} {_MONTHS[at.month - 1]}{of_year} {at.hour:02}:{at.minute:02}{seconds}"


def joined(words: Sequence[str]) -> str:
    """Words as one lists them in a sentence.

    Examples
    --------
    >>> joined(["ann"]), joined(["ann", "bob"]), joined(["ann", "bob", "cleo"])
    ('ann', 'ann and bob', 'ann, bob and cleo')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def shortened(words: Iterable[str], most: int) -> str:
    """The first words, separated by commas, and how many there are besides.

    Examples
    --------
    >>> shortened(["a", "b", "c", "d"], 2), shortened(["a", "b", "c"], 2)
    ('a, b and 2 more', 'a, b and c')
    """
    listed = list(words)
    if len(listed) <= most + 1:
        return joined(listed)
    return f"{', '.join(listed[:most])} and {len(listed) - most:,} more"


def many(number: int, thing: str) -> str:
    """A number of things.

    Examples
    --------
    >>> many(1, "line"), many(2, "line")
    ('1 line', '2 lines')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def chance(probability: float | None) -> str:
    """A probability, to three decimals at most.

    Examples
    --------
    >>> chance(0.3), chance(0.25), chance(0.123456), chance(None)
    ('0.30', '0.25', '0.123', 'none')
    """
    if probability is None:
        return "none"
    shown = f"{probability:.3f}"
    return shown.removesuffix("0")


def _utc(moment: Milliseconds) -> datetime:
    return datetime.fromtimestamp(moment / 1000, UTC)

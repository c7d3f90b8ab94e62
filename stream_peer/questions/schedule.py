"""When a question opens and closes, and the moments in between at which its forecasts make a round."""

from typing import NamedTuple

import msgspec

from stream_peer.events.times import Milliseconds
from stream_peer.settings.feed.model import FeedSettings

MAX_REGULAR = 32
DOUBLES_AFTER = 8


class Terms(msgspec.Struct, frozen=True, array_like=True):
    """The settings that decide a question's rounds. It keeps those of its first round in its feed."""

    round_every: Milliseconds | None
    quorum: int | None
    grace: Milliseconds
    max_open: Milliseconds
    forecast_for: Milliseconds | None = None

    @classmethod
    def of(cls, settings: FeedSettings) -> "Terms":
        """The terms that a feed's settings offer."""
        return cls(settings.round_every, settings.quorum, settings.grace, settings.max_open, settings.forecast_for)


class RoundPlan(NamedTuple):
    """A question's moments: the boundaries ascending, ``close`` among them unless it lies before ``opens``.

    ``quorum`` is the boundary at which the quorum stood, None if it did not or none is asked for.
    """

    opens: Milliseconds | None
    close: Milliseconds | None
    boundaries: list[Milliseconds]
    quorum: Milliseconds | None = None


def close_of(
    opens: Milliseconds | None, stated: Milliseconds | None, cut: Milliseconds | None, max_open: Milliseconds
) -> Milliseconds | None:
    """A question's close: the earliest of the stated one, what its resolution says, and the longest it may be open."""
    longest = None if opens is None else opens + max_open
    moments = [moment for moment in (stated, cut, longest) if moment is not None]
    return min(moments, default=None)


def regular_boundaries(
    opens: Milliseconds, close: Milliseconds, round_every: Milliseconds | None
) -> list[Milliseconds]:
    """Boundaries before ``close``: every ``round_every``, an interval that doubles after every 8; at most 32.

    None if there is no such interval: then the close is the only boundary that time brings.

    Examples
    --------
    >>> regular_boundaries(0, 14, 1)
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
    >>> regular_boundaries(0, 14, None)
    []
    """
    if round_every is None:
        return []
    boundaries = []
    moment = opens
    for number in range(MAX_REGULAR):
        moment += round_every << (number // DOUBLES_AFTER)
        if moment >= close:
            break
        boundaries.append(moment)
    return boundaries

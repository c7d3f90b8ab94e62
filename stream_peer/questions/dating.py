"""From when a forecast counts: a function of when it was stated, when it arrived, and the settings of that time.

A settings document is in force for everything that arrives from its ``since`` on, even for what a partition has read
before the document reached it. So the moments do not depend on where in the log the document lies.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.settings.feed.model import FeedSettings

BEGINNING: Milliseconds = -(1 << 60)
"""Earlier than every arrival: the first document that was ever applied is in force from here."""

UNKNOWN: Milliseconds = -NEVER
"""Stands for an arrival that an earlier release did not keep."""

_NO_LIMIT = 1 << 60
_MOST_PERIODS = 100  # of documents that date otherwise than the one before; of more the oldest become one

Moments = NDArray[np.int64]


class Dating(msgspec.Struct, frozen=True, array_like=True):
    """The settings of a feed that decide from when its forecasts count."""

    backdate_limit: Milliseconds | None
    history: bool
    refuses: bool

    @classmethod
    def of(cls, settings: FeedSettings) -> "Dating":
        """The dating by a feed's settings."""
        return cls(settings.backdate_limit, settings.history, settings.late_forecasts == "refuse")


class Rules:
    """How forecasts of one feed are dated: each ``since`` begins a period with a dating of its own."""

    __slots__ = ("_after", "_limits", "_refuses", "_since", "periods")

    def __init__(self, *periods: tuple[Milliseconds, Dating]) -> None:
        self.periods = periods
        datings = [dating for _, dating in periods]
        limits = [_NO_LIMIT if one.backdate_limit is None else one.backdate_limit for one in datings]
        self._since = np.array([since for since, _ in periods[1:]], dtype=np.int64)
        self._limits = np.array(limits, dtype=np.int64)
        self._after = np.array([not one.history for one in datings])
        self._refuses = np.array([one.refuses for one in datings])

    def __eq__(self, other: object) -> bool:
        """Whether both date every forecast alike."""
        return isinstance(other, Rules) and self.periods == other.periods

    def __hash__(self) -> int:
        """Hash of the periods."""
        return hash(self.periods)

    def at(self, arrived: Milliseconds) -> Dating:
        """The dating that applies to arrivals at a moment."""
        return self.periods[int(np.searchsorted(self._since, arrived, side="right"))][1]

    def moments(self, stated: Moments, arrived: Moments, after: NDArray[np.bool_]) -> Moments:
        """From when forecasts count: not earlier than ``backdate_limit`` before they arrived.

        Those that arrived ``after`` their question's resolution count from their arrival, unless the feed is
        historical. NEVER: it would count from another moment than stated, and ``late_forecasts`` is ``refuse``.
        """
        place = np.searchsorted(self._since, arrived, side="right")
        at = np.maximum(stated, arrived - self._limits[place])
        at = np.where(after & self._after[place], np.maximum(at, arrived), at)
        at = np.where(self._refuses[place] & (at != stated), NEVER, at)
        return np.where(arrived < BEGINNING, arrived - UNKNOWN, at)


BUILT_IN = Rules((BEGINNING, Dating.of(FeedSettings())))


class LateForecasts(NamedTuple):
    """Late forecasts that are not used, because they say nothing new."""

    repeated: NDArray[np.bool_]
    overtaken: NDArray[np.bool_]


def unused(who: Moments, stated: Moments, said: Moments, late: NDArray[np.bool_]) -> LateForecasts:
    """Find forecasts that are late and say nothing new. Forecasts are in the order of arrival.

    Parameters
    ----------
    who, stated, said : (n,) int64
        Whose it is, when it was stated, and the bits of its probability.
    late : (n,) bool
        Whether it counts from another moment than stated.

    Returns
    -------
    Unused
        ``repeated``: the expert has said the same before. ``overtaken``: it had stated a newer one before.
    """
    _, rank = np.unique(stated, return_inverse=True)
    _, said = np.unique(said, return_inverse=True)
    by_expert = np.argsort(who, kind="stable")
    ordered, ranks = who[by_expert], rank[by_expert]
    span = len(stated) + 1
    newest = np.maximum.accumulate(ordered * span + ranks) - ordered * span  # of the same expert, up to itself
    overtaken = np.zeros(len(stated), dtype=bool)
    overtaken[by_expert] = ranks < newest
    alike = np.lexsort((said, rank, who))  # stable: of equal ones the first to arrive comes first
    repeats = np.zeros(len(stated), dtype=bool)
    columns = (who[alike], rank[alike], said[alike])
    repeats[alike[1:]] = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return LateForecasts(late & repeats, late & overtaken & ~repeats)


class Period(msgspec.Struct, frozen=True, array_like=True):
    """The datings of one settings document: ``feeds`` that differ, and the common one of the ``others``."""

    since: Milliseconds
    others: Dating
    feeds: dict[str, Dating]

    def of(self, feed: str) -> Dating:
        """The dating of a feed."""
        return self.feeds.get(feed, self.others)


class Periods:
    """The datings of all documents that are in force for some arrivals, oldest first.

    Attributes
    ----------
    since : int
        From when the newest one is in force.
    """

    __slots__ = ("_periods", "_rules", "since")

    def __init__(self, book: FeedSettingsBook) -> None:
        self.since = BEGINNING
        self._periods = [_period(book, BEGINNING)]
        self._rules: dict[str, Rules] = {}

    def of(self, feed: str) -> Rules:
        """The rules of a feed."""
        rules = self._rules.get(feed)
        if rules is None:
            if len(self._rules) >= _MOST_RULES:
                self._rules.clear()
            rules = self._rules[feed] = self._found(feed)
        return rules

    def begin(self, book: FeedSettingsBook, since: Milliseconds) -> None:
        """Apply a document to arrivals from ``since`` on. It replaces periods that begin later."""
        before = [period for period in self._periods if period.since < since]
        new = _period(book, since)
        if before and (before[-1].others, before[-1].feeds) == (new.others, new.feeds):
            new = before.pop()
        self._keep([*before, new])
        self.since = since

    def stored(self) -> list[Period]:
        """The periods, for ``load``."""
        return self._periods

    def load(self, periods: list[Period]) -> None:
        """Load stored periods."""
        if periods:
            self._keep(periods)

    def _keep(self, periods: list[Period]) -> None:
        kept = periods[-_MOST_PERIODS:]
        self._periods = [msgspec.structs.replace(kept[0], since=BEGINNING), *kept[1:]]
        self.since = kept[-1].since
        self._rules.clear()

    def _found(self, feed: str) -> Rules:
        found: list[tuple[Milliseconds, Dating]] = []
        for period in self._periods:
            dating = period.of(feed)
            if not found or found[-1][1] != dating:
                found.append((period.since, dating))
        return Rules(*found)


_MOST_RULES = 10_000


def _period(book: FeedSettingsBook, since: Milliseconds) -> Period:
    others = Dating.of(book.default)
    named: Mapping[str, Dating] = {feed: Dating.of(settings) for feed, settings in book.feeds.items()}
    return Period(since, others, {feed: dating for feed, dating in named.items() if dating != others})

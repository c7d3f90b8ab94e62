"""What this worker accepted and did not use, by feed, for the status page: forecasts, and unknown fields."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from stream_peer.log.stage import UNUSED

MOST_FEEDS = 1_000
MOST_FIELDS = 1_000
MOST_LABELS = 50
OTHER_FIELDS = "(others)"


class UnusedInput(NamedTuple):
    """What became of forecasts of a feed, since the worker started, by kind."""

    feed: str
    counts: Mapping[str, int]


class UnknownField(NamedTuple):
    """A field that events of a feed had and their type has not, and how often since the worker started."""

    feed: str
    field: str
    events: int


class UnknownFields:
    """Counts by feed and field."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._names: set[str] = set()

    def count(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add what a run of records had, by feed and field."""
        for key, number in counts.items():
            if key in self._counts or len(self._counts) < MOST_FIELDS:
                self._counts[key] += number

    def label(self, field: str) -> str:
        """What a field is called in metrics: so many by their names, all others together."""
        if len(self._names) < MOST_LABELS:
            self._names.add(field)
        return field if field in self._names else OTHER_FIELDS

    def largest(self, most: int) -> list[UnknownField]:
        """The most frequent ones."""
        order = sorted(self._counts.items(), key=lambda one: (-one[1], one[0]))
        return [UnknownField(feed, field, count) for (feed, field), count in order[:most]]


class UnusedCounts:
    """Counts by feed and kind."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def count(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add what a run of records caused, by feed and kind."""
        for (feed, kind), number in counts.items():
            if kind in UNUSED and (feed in self._counts or len(self._counts) < MOST_FEEDS):
                self._counts.setdefault(feed, Counter())[kind] += number

    def largest(self, most: int) -> list[UnusedInput]:
        """The feeds with most of it, largest first."""
        feeds = sorted(self._counts, key=lambda feed: (-self._counts[feed].total(), feed))
        return [UnusedInput(feed, dict(self._counts[feed])) for feed in feeds[:most]]

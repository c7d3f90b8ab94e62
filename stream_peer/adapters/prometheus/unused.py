"""Forecasts that this worker accepted and did not use, by feed, for the status page."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from stream_peer.engine.stage import UNUSED

MOST_FEEDS = 1_000


class UnusedInput(NamedTuple):
    """What became of forecasts of a feed, since the worker started, by kind."""

    feed: str
    counts: Mapping[str, int]


class Unused:
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

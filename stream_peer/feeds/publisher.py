"""Which feeds changed since they were last published, and what was published of them last.

It decides when records of a feed are published, never what stands in them.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from stream_peer.feeds.feed import Feed
from stream_peer.feeds.outputs import feed_outputs
from stream_peer.feeds.views import FeedView, ListedExperts, NewestRecords, feed_records, feed_view, list_experts
from stream_peer.log.stage import Output
from stream_peer.numerics.arguments import FloatArray

LEAST_MOVE = 1e-4
"""A smaller change of all weights is not worth a message; the next snapshot publishes it."""


class Publication(NamedTuple):
    """What was last published of a feed: for knowing whether there is news.

    ``alarms``: its trust, what drifts, who says the same as whom, and who was renamed; ``experts``: places of those
    that were listed; ``weights``: for the mix, and to follow one of them.
    """

    alarms: tuple[object, ...]
    experts: bytes
    weights: tuple[FloatArray, FloatArray]

    def agrees(self, other: "Publication", least: float) -> bool:
        """Whether alarms and experts are those of another one, and no weight differs by ``least`` or more."""
        if self.alarms != other.alarms or self.experts != other.experts:
            return False
        if not self.experts:
            return True
        pairs = zip(self.weights, other.weights, strict=True)
        return all(float(np.maximum.reduce(np.abs(one - two))) < least for one, two in pairs)


class Publisher:
    """Keeps what was published, the newest records of each feed, and what was shown of them."""

    def __init__(self) -> None:
        self._unpublished: set[str] = set()
        self._published: dict[str, Publication] = {}
        self._records: dict[str, NewestRecords] = {}
        self._views: dict[str, FeedView] = {}
        self._outdated: set[str] = set()

    def changed(self, feed: Feed) -> None:
        """A record changed the feed."""
        self._unpublished.add(feed.name)
        self._outdated.add(feed.name)

    def end(self, name: str) -> None:
        """There is no such feed any more."""
        self._unpublished.discard(name)
        self._outdated.discard(name)
        self._published.pop(name, None)
        self._records.pop(name, None)
        self._views.pop(name, None)

    def unpublished(self, among: Iterable[str] | None = None) -> list[str]:
        """Feeds changed since they were last published, by name."""
        return sorted(self._unpublished if among is None else self._unpublished.intersection(among))

    def publish(self, feed: Feed, *, only_news: bool) -> list[Output]:
        """The newest outputs of a feed; nothing, with ``only_news``, if no weight moved and alarms are the same."""
        listed = list_experts(feed)
        now = Publication(_alarms(feed), listed.experts.tobytes(), (listed.mix, listed.select))
        last = self._published.get(feed.name)
        if only_news and last and now.agrees(last, LEAST_MOVE):
            return []
        self._published[feed.name] = now
        self._unpublished.discard(feed.name)
        return feed_outputs(feed, self._newest(feed, listed))

    def _newest(self, feed: Feed, listed: ListedExperts | None = None) -> NewestRecords:
        """The newest records of a feed; ``listed`` if it is at hand."""
        records = self._records.get(feed.name)
        if records is None or feed.name in self._outdated:
            records = feed_records(feed, list_experts(feed) if listed is None else listed)
            self._records[feed.name] = records
            self._views.pop(feed.name, None)
            self._outdated.discard(feed.name)
        return records

    def view(self, feed: Feed) -> FeedView:
        """The newest outputs of a feed as objects."""
        self._newest(feed)
        return self.latest(feed)

    def latest(self, feed: Feed) -> FeedView:
        """The outputs of a feed as they were last published or asked for, so that frequent calls cost nothing."""
        view = self._views.get(feed.name)
        if view is None:
            records = self._records.get(feed.name) or self._newest(feed)
            view = self._views[feed.name] = feed_view(records)
        return view


def _alarms(feed: Feed) -> tuple[object, ...]:
    path_state, names = feed.path_state, feed.roster.names
    groups = [(group.kind, tuple(group.experts)) for group in path_state.groups]
    return path_state.trust, path_state.drift.alarms, groups, [(first, names.shown(first)) for first in names.given]

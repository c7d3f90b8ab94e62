"""Which feeds have news, and what was last said of them. When something is said depends on it; its bytes do not."""

from collections.abc import Iterable
from typing import NamedTuple

from stream_peer.feeds.feed import Feed
from stream_peer.feeds.outputs import feed_outputs
from stream_peer.feeds.views import FeedView, ListedExperts, feed_view, list_experts
from stream_peer.log.stage import Output

LEAST_MOVE = 1e-4
"""A smaller change of all weights is not worth a message; the next snapshot publishes it."""


class Publication(NamedTuple):
    """What was last published of a feed: for knowing whether there is news.

    ``alarms``: its trust, what drifts, who says the same as whom, and who was renamed.
    """

    alarms: tuple[object, ...]
    listed: ListedExperts


class Publisher:
    """Keeps what was published and the newest view of each feed."""

    def __init__(self) -> None:
        self._unpublished: set[str] = set()
        self._published: dict[str, Publication] = {}
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
        self._views.pop(name, None)

    def unpublished(self, among: Iterable[str] | None = None) -> list[str]:
        """Feeds changed since they were last published, by name."""
        return sorted(self._unpublished if among is None else self._unpublished.intersection(among))

    def publish(self, feed: Feed, *, only_news: bool) -> list[Output]:
        """The newest outputs of a feed; nothing, with ``only_news``, if no weight moved and alarms are the same."""
        listed, path_state = list_experts(feed), feed.path_state
        groups = ((group.kind, tuple(group.experts)) for group in path_state.groups)
        names = ((first, feed.roster.names.shown(first)) for first in feed.roster.names.given)
        alarms = path_state.trust, path_state.drift.alarms, *groups, *names
        last = self._published.get(feed.name)
        if only_news and last and last.alarms == alarms and not listed.moved(last.listed, LEAST_MOVE):
            return []
        self._published[feed.name] = Publication(alarms, listed)
        self._unpublished.discard(feed.name)
        return feed_outputs(feed, self.view(feed, listed))

    def view(self, feed: Feed, listed: ListedExperts | None = None) -> FeedView:
        """The newest outputs of a feed as objects; ``listed`` if it is at hand."""
        view = self._views.get(feed.name)
        if view is None or feed.name in self._outdated:
            view = feed_view(feed, list_experts(feed) if listed is None else listed)
            self._views[feed.name] = view
            self._outdated.discard(feed.name)
        return view

    def latest(self, feed: Feed) -> FeedView:
        """The outputs of a feed as they were last published or asked for, so that frequent calls cost nothing."""
        return self._views.get(feed.name) or self.view(feed)

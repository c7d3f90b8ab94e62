"""Feeds that are being imported into one partition of the feed-log: the parts that are there, and what they hold."""

from collections.abc import Iterator, Mapping

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import FeedImported, Round
from stream_peer.feeds.feed_import import Incoming, fresh
from stream_peer.feeds.feeds import Feeds
from stream_peer.log.stage import Record
from stream_peer.log.transfers import Transfers


class Imports:
    """Feeds on their way. Parts are stored as they came; what they hold is read again from them after a restart."""

    def __init__(self) -> None:
        self._transfers = Transfers()
        self._incoming: dict[str, Incoming] = {}

    def add(self, event: FeedImported, record: Record, feeds: Feeds) -> list[Round]:
        """Deal with a part of a feed; with the last one, the feed is taken up among ``feeds``.

        Rounds of which parts are missing come with it.

        Raises
        ------
        RejectedEvent
            If nothing can be made of the part, or of the whole; what has come of the feed is let go of then.
        """
        try:
            whole = self._transfers.add(event)
            if event.part == 0:
                fresh(feeds, event.feed)
                self._incoming[event.feed] = Incoming(feeds, event.feed)
            incoming = self._incoming[event.feed]
            if event.part == incoming.parts:
                incoming.add(event.data)
            if whole is None:
                return []
            waiting = incoming.take_up(event, whole, record)
        except RejectedEvent:
            self.drop(event.feed)
            raise
        self.drop(event.feed)
        return waiting

    def drop(self, feed: str) -> None:
        """Let go of what has come of a feed."""
        self._transfers.drop(feed)
        self._incoming.pop(feed, None)

    def clear(self) -> None:
        """Let go of all that has come."""
        self._transfers.clear()
        self._incoming.clear()

    def snapshot(self) -> dict[bytes, bytes | None]:
        """State records changed since the last call."""
        return self._transfers.snapshot()

    def load(self, entries: Mapping[bytes, bytes]) -> None:
        """Take up the parts that an earlier owner left; a ``recount`` must follow."""
        self._transfers.load(entries)

    def recount(self, feeds: Feeds) -> Iterator[None]:
        """Read again what the parts hold, a part an item."""
        for name in self._transfers.feeds():
            incoming = self._incoming[name] = Incoming(feeds, name)
            for data in self._transfers.waiting(name):
                incoming.add(data)
                yield

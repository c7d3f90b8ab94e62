"""Accounts of weights, kept while files are replayed."""

from collections.abc import Sequence

from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_follower import WeightFollower
from stream_peer.tools.replay.run import Blind


class WeightWitness(Blind):
    """A witness (see ``Witness``) that keeps accounts of some experts of a feed.

    Parameters
    ----------
    feed : str
    accounts : sequence of Account

    Attributes
    ----------
    feeds : set of str
        All that the files speak of.
    """

    def __init__(self, feed: str, accounts: Sequence[Account]) -> None:
        self.feeds: set[str] = set()
        self.follower = WeightFollower(feed, accounts)
        self._record: LogRecord | None = None
        self._home: FeedStage | None = None

    def logs(self, record: LogRecord, stage: FeedStage) -> None:
        """A record of the feed-log is about to be folded."""
        self._record = record
        self.follower.before(record, stage)

    def logged(self, effects: Effects, stage: FeedStage) -> None:
        """It was folded."""
        del effects
        if self._record is not None:
            self.follower.after(self._record, stage)
        self.feeds.update(stage.feeds.by_name)
        if self.follower.feed in stage.feeds.by_name:
            self._home = stage

    def finish(self) -> None:
        """The replay has ended."""
        if self._home is not None:
            self.follower.finish(self._home)

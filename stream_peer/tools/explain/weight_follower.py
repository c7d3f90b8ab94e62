"""Follows a feed record by record and keeps accounts of some of its experts' weights."""

from collections.abc import Sequence

import msgspec

from stream_peer.events.feed_log import AnyFeedLogRecord, decode_feed_log
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.fold import FeedFold
from stream_peer.log.stage import Record
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.tools.explain.weight_account import Account, Place
from stream_peer.tools.explain.weight_terms import Moment, moment_of, terms_of


class WeightFollower:
    """Keeps accounts while somebody folds the feed-log: call ``before`` and ``after`` for each of its records.

    Parameters
    ----------
    feed : str
    accounts : sequence of Account
        Of whom, and over which spans.

    Attributes
    ----------
    experts : sequence of str
        Of the feed, so far, by all their ids.
    """

    def __init__(self, feed: str, accounts: Sequence[Account]) -> None:
        self.feed = feed
        self.accounts = accounts
        self.experts: Sequence[str] = ()
        self._keys = (SETTINGS_KEY, feed.encode())
        self._time: Milliseconds = 0
        self._base = 0
        self._stands = self._latest = Place(-1, 0)
        self._exists = False
        self._moment: Moment | None = None
        self._record: AnyFeedLogRecord | None = None

    def before(self, record: Record, stage: FeedFold) -> None:
        """A record is about to be folded."""
        self._time = max(self._time, record.timestamp)
        self._record = _decoded(record) if record.key in self._keys else None
        if self._record is None:
            return
        feed = stage.feeds.by_name.get(self.feed)
        self._base = self._base if feed is None else feed.standing.base
        self._latest = place = self._place(record)
        wanting = [account for account in self.accounts if account.begins(place) or account.wants(place)]
        if wanting and feed is not None and self._moment is None:
            self._moment = moment_of(feed)
        for account in wanting:
            account.begin(self._moment, self._stands)

    def after(self, record: Record, stage: FeedFold) -> None:
        """It was folded, and so was whatever had to be folded anew because of it."""
        event, feed = self._record, stage.feeds.by_name.get(self.feed)
        if event is None or not self._has_changed(feed):
            return
        before, self._moment = self._moment, None
        self._stands = place = self._place(record) if feed is None else Place(feed.standing.revision, self._time)
        self._exists = feed is not None
        wanting = [account for account in self.accounts if account.wants(place)]
        awaiting = [account for account in self.accounts if account.awaits(place)]
        if feed is not None:
            self.experts = feed.roster.ids()
            self._moment = moment_of(feed) if wanting or awaiting else None
        terms = terms_of(before, self._moment, event, [account.expert for account in wanting]) if wanting else {}
        for account in wanting:
            account.take(place, event, terms.get(account.expert, ()), self._moment)
        for account in awaiting:
            if self._moment is not None and self._moment.lists(account.expert):
                account.begin(self._moment, place)

    def finish(self, stage: FeedFold) -> None:
        """The log has ended: spans that would begin later begin and end here."""
        feed = stage.feeds.by_name.get(self.feed)
        late = [account for account in self.accounts if account.since is not None and account.start is None]
        moment = moment_of(feed) if late and feed is not None else None
        for account in late:
            account.begin_late(moment, self._stands, self._latest)

    def is_over(self, record: Record) -> bool:
        """Whether nobody wants to know of a record, nor of any after it."""
        self._time = max(self._time, record.timestamp)
        self._latest = place = self._place(record)
        return all(account.is_over(place) for account in self.accounts)

    def _place(self, record: Record) -> Place:
        return Place(self._base + record.offset, self._time)

    def _has_changed(self, feed: Feed | None) -> bool:
        return self._exists if feed is None else feed.standing.revision > self._stands.revision


def _decoded(record: Record) -> AnyFeedLogRecord | None:
    try:
        found: AnyFeedLogRecord = decode_feed_log(record.value or b"")
    except msgspec.MsgspecError:
        return None
    return found

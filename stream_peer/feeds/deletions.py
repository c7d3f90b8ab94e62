"""When feeds were deleted last, and which records of the feed-log were written for a feed before it was deleted.

A deletion goes to the feed-log and to every partition of ``forecast-events``, and nothing orders these. A partition
that has not read it yet goes on to write rounds for the feed; one that has read it may write rounds for a feed that
begins again, before the deletion is in the feed-log. So each record of the question stage says which deletion of its
feed was the last that its partition had read.
"""

from collections.abc import Iterable
from enum import Enum

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.events.times import Milliseconds

LONGEST_WAIT = 6 * 3_600_000
"""Six hours, by the time of the log, for what earlier releases never write: hand-overs, and which deletion was read."""


class Life(Enum):
    """Of which life of its feed a record is. ``NEXT``: the deletion that ends the present one is not read yet."""

    FORMER = "former"
    PRESENT = "present"
    NEXT = "next"


class Deletions:
    """The last deletion of each feed.

    Parameters
    ----------
    at : iterable of (str, int), optional
        Feeds, and when each was deleted last.

    Attributes
    ----------
    at : dict of str to int
    """

    def __init__(self, at: Iterable[tuple[str, Milliseconds]] = ()) -> None:
        self.at: dict[str, Milliseconds] = dict(at)

    def life_of(self, event: FeedLogRecord, timestamp: Milliseconds) -> Life:
        """Of which life of its feed a record is; all that the question stage did not write are of the present one.

        A record that was caused more than six hours after a deletion is of the present one, whatever it says: a
        partition of an earlier release never says it, nor does one whose input was lost.
        """
        at = self.at.get(event.feed, 0)
        if event.deleted_at == at or event.src.topic != topics.FORECAST_EVENTS:
            return Life.PRESENT
        if event.deleted_at > at:
            return Life.NEXT
        return Life.FORMER if timestamp < at + LONGEST_WAIT else Life.PRESENT

    def delete(self, event: FeedLogRecord) -> bool:
        """Note a deletion, as a control or a record of the feed's next life says it; False if it was noted before.

        Earlier releases write controls that do not say when: they are always news.
        """
        if not event.deleted_at:
            return True
        is_news = event.deleted_at > self.at.get(event.feed, 0)
        if is_news:
            self.at[event.feed] = event.deleted_at
        return is_news

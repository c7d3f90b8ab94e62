"""Records that wait for the end of a rebuild, in their order; those of other feeds are folded meanwhile.

What is said in rounds and outcomes concerns one feed. So these of other feeds give the same outputs, whether they are
folded before the rebuild has ended or after it. All other records may concern several feeds: the first of them waits,
and until it was folded nothing may follow.
"""

from collections import deque
from collections.abc import Iterable, Set
from typing import NamedTuple

from stream_peer.events.feed_log import FeedLogRecord, OutcomeRevealed, ProvisionalOutcome, Round, RoundWithdrawn
from stream_peer.log.stage import Record

MOST = 2_000
"""Records that wait at most; then nothing is folded until the rebuild ends."""

CONCERN_ONE_FEED = (Round, RoundWithdrawn, OutcomeRevealed, ProvisionalOutcome)


class Waiting(NamedTuple):
    """A record, and what it says if its source and its time were noted already."""

    record: Record
    event: FeedLogRecord | None


class Postponed:
    """What waits while feeds are rebuilt.

    Attributes
    ----------
    feeds : set of str
        Those whose records wait; empty: no rebuild is under way.
    may_follow : bool
        Whether a record may be stepped.
    waiting : deque of Waiting
    """

    def __init__(self) -> None:
        self.feeds: Set[str] = frozenset()
        self.may_follow = False
        self.waiting: deque[Waiting] = deque()

    def begin(self, feeds: Iterable[str]) -> None:
        """A rebuild begins. What still waits for the one before waits for this one."""
        earlier = {waiting.event.feed for waiting in self.waiting if waiting.event is not None}
        self.feeds = earlier.union(feeds)
        self.may_follow = len(self.waiting) < MOST and all(waiting.event is not None for waiting in self.waiting)

    def end(self) -> None:
        """The rebuild has ended, and nothing may be stepped before what waits."""
        self.feeds, self.may_follow = frozenset(), False

    def put(self, record: Record, event: FeedLogRecord | None) -> None:
        """Let a record wait. ``event`` None: nothing of it was noted, and nothing may follow it."""
        self.waiting.append(Waiting(record, event))
        self.may_follow = event is not None and len(self.waiting) < MOST

    def __bool__(self) -> bool:
        """Whether any record waits."""
        return bool(self.waiting)

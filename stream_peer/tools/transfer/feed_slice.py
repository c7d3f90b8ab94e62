"""What the feed-log holds of one feed, as it moves: see the package."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import msgspec

from stream_peer.errors import FeedTransferError, RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    BlockNamed,
    ExpertChanged,
    FeedChanged,
    FeedImported,
    HandedOver,
    QuestionArrived,
    QuestionMoved,
    Round,
    RoundWithdrawn,
    SettingsChanged,
    Source,
    encode_feed_log,
    read_feed_log,
)
from stream_peer.feeds.deletions import Deletions, Life
from stream_peer.feeds.roster import Roster
from stream_peer.feeds.round_parts import Assembly
from stream_peer.log.ids import Names
from stream_peer.log.sources import DedupWatermarks
from stream_peer.log.stage import LogRecord, Record
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.tools.replay.files import KeptLog
from stream_peer.tools.transfer.feed_file import RecordLine

_replace = msgspec.structs.replace


class KnownUpTo(NamedTuple):
    """Up to which record of its partition of ``forecast-events`` the stored questions go."""

    generation: int
    applied: int


class FeedSlice:
    """Takes the records of a partition of the feed-log one by one, and keeps those of a feed. A context manager.

    Parameters
    ----------
    feed : str

    Attributes
    ----------
    known : mapping of int to KnownUpTo
        By partition of ``forecast-events``: what the questions that move with it know. What they do not know comes
        again where they go, so it is left out.
    """

    def __init__(self, feed: str) -> None:
        self.known: Mapping[int, KnownUpTo] = {}
        self._feed = feed
        self._keys = (feed.encode(), SETTINGS_KEY)
        self._seen = DedupWatermarks()
        self._deletions = Deletions()
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def _begin(self) -> None:
        self._log = KeptLog()
        self._last = -1
        self._parts = Assembly()
        self._roster = Roster(self._feed, b"")
        self._forgotten: set[str] = set()
        self._has_former = False

    def add(self, record: Record) -> None:
        """The next record of the partition."""
        if record.key not in self._keys:
            return
        try:
            event = read_feed_log(record.value)
            if self._seen.add(event.src) and not self._is_ahead(event.src):
                self._take_of_life(event, record)
        except RejectedEvent:  # the fold refuses it as well
            return

    def _is_ahead(self, source: Source) -> bool:
        known = self.known.get(source.partition) if source.topic == topics.FORECAST_EVENTS else None
        return known is not None and source.generation == known.generation and source.offset > known.applied

    def _take_of_life(self, event: AnyFeedLogRecord, record: Record) -> None:
        """Take a record of the feed's present life."""
        life = self._deletions.life_of(event, record.timestamp)
        is_deletion = isinstance(event, FeedChanged) and event.delete
        if (is_deletion or life is Life.NEXT) and self._deletions.delete(event):
            self._log.close()
            self._begin()
        if not is_deletion and life is not Life.FORMER:
            self._take(event, record)

    def _take(self, event: AnyFeedLogRecord, record: Record) -> None:
        if isinstance(event, SettingsChanged):
            event = _replace(event, document=settings_of(event.document, self._feed))
        found = self._of_feed(event)
        if found is not None:
            found = _replace(found, deleted_at=0)  # of where it comes from
            self._last = record.offset
            self._log.append(LogRecord(record.offset, record.timestamp, None, encode_feed_log(found)))

    def _of_feed(self, event: AnyFeedLogRecord) -> AnyFeedLogRecord | None:
        """The record as it moves; None if nothing of it does."""
        if isinstance(event, Round):
            whole = self._parts.add(event)
            return None if whole is None else _replace(self._roster.admitted(whole), part=0, parts=1)
        if isinstance(event, ExpertChanged):
            return None if event.digest is not None else self._of_expert(event)  # the state knows it as well
        if isinstance(event, QuestionMoved | QuestionArrived | HandedOver):
            return None  # what other feeds publish does not bind it where it goes
        if isinstance(event, FeedImported):
            self._has_former = True
            return event if event.partition is None else None  # its questions are in their state
        return event

    def _of_expert(self, event: ExpertChanged) -> ExpertChanged:
        """A control that names its expert by the first id."""
        names: Names = self._roster.names
        first = names.first(event.expert_id)
        if event.rename is not None:
            names.give(first, event.rename)
        if event.forget:
            self._forgotten.update(names.all_of(first))
            names.drop(first)
        return _replace(event, expert_id=first)

    def lines(self) -> Iterator[RecordLine]:
        """What was kept, in order, without erased experts.

        Raises
        ------
        FeedTransferError
            If they stand in what an earlier release moved here.
        """
        if self._has_former and self._forgotten:
            msg = "an earlier release moved it here, and experts were forgotten since: it cannot move without them"
            raise FeedTransferError(msg)
        for record in self._log.up_to(self._last):
            event = self._without_forgotten(read_feed_log(record.value))
            if event is not None:
                yield RecordLine(at=record.timestamp, record=event)

    def _without_forgotten(self, event: AnyFeedLogRecord) -> AnyFeedLogRecord | None:
        gone = self._forgotten
        if isinstance(event, ExpertChanged):
            return None if event.expert_id in gone else event
        if isinstance(event, BlockNamed):
            stay = [[one for one in block.experts if one not in gone] for block in event.blocks]
            blocks = [_replace(block, experts=ids) for block, ids in zip(event.blocks, stay, strict=True)]
            return _replace(event, blocks=blocks)
        if not isinstance(event, Round) or gone.isdisjoint(event.experts):
            return event
        rows = zip(event.experts, event.probabilities, strict=True)
        left = {expert: probability for expert, probability in rows if expert not in gone}
        if not left:
            src, question_id = event.src, event.question_id
            return RoundWithdrawn(src=src, feed=event.feed, question_id=question_id, boundary=event.boundary)
        return _replace(event, experts=list(left), probabilities=list(left.values()))


def settings_of(document: Mapping[str, Any], feed: str) -> dict[str, Any]:
    """What of a settings document is about one feed."""
    own = (document.get("feeds") or {}).get(feed)
    found = {"defaults": document.get("defaults") or {}, "feeds": {feed: own} if own else {}}
    return {name: value for name, value in found.items() if value}


def slice_of(feed: str, known: Mapping[int, KnownUpTo], records: Iterable[Record]) -> FeedSlice:
    """The slice of records that are at hand."""
    found = FeedSlice(feed)
    found.known = known
    for record in records:
        found.add(record)
    return found

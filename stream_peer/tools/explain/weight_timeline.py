"""How an expert's weight went between two ends of a feed's log: where it stood, and step by step what moved it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    Verdict,
    decode_feed_log,
)
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.fold import FeedFold
from stream_peer.log.stage import Effects, Record
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.serve.explanation import Bound
from stream_peer.tools.explain.causes import Cause, WeightReading, explain, weight_reading
from stream_peer.tools.replay.run import ReplayProbe


class LogPosition(NamedTuple):
    """A record's revision, and the time of the log when it came."""

    revision: int
    at: Milliseconds

    def is_after(self, bound: Bound | None) -> bool:
        """Whether a record here comes after the bound of a span; never if there is none."""
        if bound is None:
            return False
        if bound.revision is not None:
            return self.revision > bound.revision
        return bound.at is not None and self.at > bound.at


class Point(NamedTuple):
    """How an expert stood after a record; ``revision`` -1: before the first. ``experts``: how many had weights."""

    revision: int
    at: Milliseconds
    mix: float
    select: float
    listed: bool
    experts: int


class Step(NamedTuple):
    """A record that moved the weights, and why; ``question`` and ``boundary`` are None where it is of none."""

    question: str | None
    boundary: Milliseconds | None
    causes: Sequence[Cause]


class LatestForecast(NamedTuple):
    """An expert's forecast in the latest round of a question, the others' answer, and what is known of the outcome."""

    probability: float
    reference_answer: int
    outcome: Verdict


class WeightTimeline:
    """What moved the weights of one expert.

    Parameters
    ----------
    expert : str
    since, until : Bound, optional
        Its span. Without ``since`` it begins where the expert is listed first, without ``until`` it ends with the log.

    Attributes
    ----------
    start, end : Point or None
        Where the weights stood at its ends; None before anything is known of it.
    steps : list of Step
        Their causes add up to what lies between.
    forecasts : dict of str to LatestForecast
        Of the questions whose rounds or outcomes moved the expert's own record.
    reading : WeightReading or None
        What the weights at ``end`` were read from.
    is_backwards : bool
        Whether the span ended before it began; of a revision and a moment only the log can tell.
    """

    def __init__(self, expert: str, since: Bound | None = None, until: Bound | None = None) -> None:
        self.expert, self.since, self.until = expert, since, until
        self.start: Point | None = None
        self.end: Point | None = None
        self.steps: list[Step] = []
        self.forecasts: dict[str, LatestForecast] = {}
        self.reading: WeightReading | None = None
        self.is_backwards = False

    def begins_before(self, position: LogPosition) -> bool:
        """Whether the span has not begun yet, and must before a record that comes here."""
        return self.start is None and position.is_after(self.since)

    def is_within(self, position: LogPosition) -> bool:
        """Whether the span has begun, and a record here belongs to it."""
        return self.start is not None and not position.is_after(self.until)

    def awaits_listing(self, position: LogPosition) -> bool:
        """Whether the span begins when the expert is listed, which a record here may do."""
        return self.since is None and self.start is None and not position.is_after(self.until)

    def begin(self, reading: WeightReading | None, position: LogPosition) -> None:
        """Begin the span here, unless it has begun."""
        if self.start is None:
            self.start = self.end = self._point(reading, position)
            self.is_backwards = position.revision >= 0 and position.is_after(self.until)

    def add(
        self, event: AnyFeedLogRecord, causes: Sequence[Cause], after: WeightReading | None, position: LogPosition
    ) -> None:
        """Add a record, with the causes of what it moved."""
        self.end = self._point(after, position)
        if causes:
            self.steps.append(Step(getattr(event, "question_id", None), getattr(event, "boundary", None), causes))
        if after is not None and any(cause.kind in ("peer-loss", "truth") for cause in causes):
            self._note_forecast(event, after)

    def _note_forecast(self, event: AnyFeedLogRecord, after: WeightReading) -> None:
        if not isinstance(event, Round | RoundWithdrawn | OutcomeRevealed):
            return
        entry, place = after.feed.ledger.entries.get(event.question_id), after.feed.roster.place(self.expert)
        for facts in reversed(entry.facts() if entry is not None else []):
            rows = (facts.experts == place).nonzero()[0]
            if entry is not None and len(rows):
                row = int(rows[0])
                latest = LatestForecast(float(facts.forecasts[row]), int(facts.answers[row]), entry.evidence)
                self.forecasts[event.question_id] = latest
                return

    def _point(self, reading: WeightReading | None, position: LogPosition) -> Point:
        self.reading = reading
        if reading is None:
            return Point(*position, 0.0, 0.0, listed=False, experts=0)
        listed, experts = reading.lists(self.expert), len(reading.listed)
        return Point(*position, *reading.of(self.expert), listed=listed, experts=experts)


class WeightProbe(ReplayProbe):
    """Keeps timelines of some experts of a feed while its log is folded. Weights are read within their spans only.

    Parameters
    ----------
    feed : str
    timelines : sequence of WeightTimeline

    Attributes
    ----------
    experts : sequence of str
        Of the feed, so far, by all their ids.
    feeds : set of str
        All that the log has records of, so far.
    """

    def __init__(self, feed: str, timelines: Sequence[WeightTimeline]) -> None:
        self.feed, self.timelines = feed, timelines
        self.experts: Sequence[str] = ()
        self.feeds: set[str] = set()
        self._keys = (SETTINGS_KEY, feed.encode())
        self._time: Milliseconds = 0
        self._base = 0
        self._changed = self._latest = LogPosition(-1, 0)
        self._exists = False
        self._event: AnyFeedLogRecord | None = None
        self._reading: WeightReading | None = None
        self._stage: FeedFold | None = None

    def is_over(self, record: Record) -> bool:
        """Whether neither this record nor a later one belongs to a span."""
        self._time = max(self._time, record.timestamp)
        self._latest = position = self._position(record)
        return all(position.is_after(timeline.until) for timeline in self.timelines)

    def note_feeds(self, records: Iterable[Record]) -> None:
        """Note the feeds of records, also of those that are not folded."""
        keys = {record.key for record in records} - {SETTINGS_KEY}
        self.feeds.update(key.decode(errors="replace") for key in keys if key)

    def before_record(self, record: Record, stage: FeedFold) -> None:
        """Read the weights, if a span begins here or goes on."""
        self._time = max(self._time, record.timestamp)
        self.note_feeds((record,))
        self._event = event_of(record) if record.key in self._keys else None
        if self._event is None:
            return
        feed = stage.feeds.by_name.get(self.feed)
        self._base = self._base if feed is None else feed.path_state.base
        self._latest = position = self._position(record)
        beginning = [timeline for timeline in self.timelines if timeline.begins_before(position)]
        if self._reading is None and feed is not None and (beginning or self._within(position)):
            self._reading = weight_reading(feed)
        for timeline in beginning:
            timeline.begin(self._reading, self._changed)

    def after_record(self, effects: Effects, stage: FeedFold) -> None:
        """Explain what the record moved; what had to be folded again because of it has been."""
        del effects
        event, feed = self._event, stage.feeds.by_name.get(self.feed)
        if event is None or not self._has_changed(feed):
            return
        self._exists, self._stage = feed is not None, stage
        self._changed = position = self._latest if feed is None else LogPosition(feed.path_state.revision, self._time)
        before, self._reading = self._reading, None
        within = self._within(position)
        awaiting = [timeline for timeline in self.timelines if timeline.awaits_listing(position)]
        if feed is not None:
            self.experts = feed.roster.ids()
            self._reading = weight_reading(feed) if within or awaiting else None
        causes = explain(before, event, self._reading, [timeline.expert for timeline in within]) if within else {}
        for timeline in within:
            timeline.add(event, causes.get(timeline.expert, ()), self._reading, position)
        for timeline in awaiting:
            if self._reading is not None and self._reading.lists(timeline.expert):
                timeline.begin(self._reading, position)

    def finish(self) -> None:
        """The log has ended: spans that would begin later begin and end here."""
        feed = None if self._stage is None else self._stage.feeds.by_name.get(self.feed)
        late = [timeline for timeline in self.timelines if timeline.since is not None and timeline.start is None]
        reading = weight_reading(feed) if late and feed is not None else None
        for timeline in late:
            timeline.begin(reading, self._changed)
            if not self._latest.is_after(timeline.since):
                timeline.is_backwards = self._latest.is_after(timeline.until)

    def _within(self, position: LogPosition) -> list[WeightTimeline]:
        return [timeline for timeline in self.timelines if timeline.is_within(position)]

    def _position(self, record: Record) -> LogPosition:
        return LogPosition(self._base + record.offset, self._time)

    def _has_changed(self, feed: Feed | None) -> bool:
        return self._exists if feed is None else feed.path_state.revision > self._changed.revision


def event_of(record: Record) -> AnyFeedLogRecord | None:
    """What a record of the feed-log says; None if this release cannot read it."""
    try:
        found: AnyFeedLogRecord = decode_feed_log(record.value or b"")
    except msgspec.MsgspecError:
        return None
    return found

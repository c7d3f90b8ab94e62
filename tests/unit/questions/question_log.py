"""A partition of forecast-events for tests: events in few words, and what the emitted records add up to."""

from typing import Any

import msgspec

from stream_peer.events import topics
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    OutcomeRevealed,
    ProvisionalOutcome,
    Round,
    RoundWithdrawn,
    Source,
    decode_feed_log,
)
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.log.producers import Producers
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Effects, Headers, LogRecord, Output
from stream_peer.questions.history import History
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import FeedSettingsBook, document_hash, load_document

T0: Milliseconds = 1_772_366_400_000
SECOND = 1000
HOUR = 3_600_000
DAY = 86_400_000
GRACE = 60 * SECOND

Settings = dict[str, Any]
Content = tuple[bool, float, dict[str, float]]


def event(kind: str, **fields: Any) -> bytes:
    times = ("at", "opens_at", "closes_at", "closed_at", "now")
    plain = {name: to_iso(value) if name in times else value for name, value in fields.items() if value is not ...}
    return msgspec.json.encode({"type": kind, **plain})


def question(question_id: str = "q", **fields: Any) -> bytes:
    return event("question", question_id=question_id, **fields)


def forecast(expert_id: str, probability: float | None, at: Milliseconds, question_id: str = "q", **more: Any) -> bytes:
    return event("forecast", question_id=question_id, expert_id=expert_id, probability=probability, at=at, **more)


def resolution(outcome: object, at: Milliseconds, question_id: str = "q", **more: Any) -> bytes:
    return event("resolution", question_id=question_id, outcome=outcome, at=at, **more)


def tick(now: Milliseconds) -> bytes:
    return event("tick", now=now)


def settings_event(document: Settings, **more: Any) -> bytes:
    return event("settings", document=document, hash=document_hash(document), **more)


def forget(expert_id: str, feed: str = "econ") -> bytes:
    return event("expert", feed=feed, expert_id=expert_id, at=T0, forget=True)


def delete(feed: str = "econ") -> bytes:
    return event("feed", feed=feed, delete=True)


def broadcast(offset: int = 0) -> Source:
    """The source that a control event at an offset gives what it hands on."""
    return Source(topics.CONTROL_EVENTS, 0, 0, offset, 0)


def signed(value: bytes | None, source: Source | None = None, *, key: bytes = b"key", partition: int = 0) -> Headers:
    """The headers of a record that the service wrote itself to a partition."""
    return Signatures().signed(Output(topics.FORECAST_EVENTS, key, value, 0, partition), source).headers


def book(**defaults: Any) -> FeedSettingsBook:
    return load_document({"defaults": defaults})


def stage(
    settings: FeedSettingsBook | None = None,
    partition: int = 0,
    partitions: int = 1,
    feed_log_partitions: int = 4,
    secret: bytes = b"secret",
    producers: Producers | None = None,
) -> QuestionStage:
    return QuestionStage(
        topic="prod.forecast-events",
        partition=partition,
        partitions=partitions,
        feed_log_partitions=feed_log_partitions,
        settings=settings,
        secret=secret,
        producers=producers,
    )


def said(history: History, expert_id: str, at: Milliseconds, probability: float | None) -> bool:
    """Add an entry that arrives when it is stated."""
    return history.add(expert_id, probability, at, at, at)


def all_said(history: History, forecasts: dict[str, float | None], at: Milliseconds) -> bool:
    """Add entries that arrive when they are stated."""
    return history.add_all(forecasts, at, at, at)


class Partition:
    """Feeds a stage, partition ``number``. ``now`` is the record time of what is sent without one."""

    def __init__(
        self, stage_: QuestionStage | None = None, now: Milliseconds = T0, number: int = 0, **defaults: Any
    ) -> None:
        self.stage = stage_ or stage(book(**defaults))
        self.number = number
        self.now = now
        self.offset = 0
        self.effects = Effects()
        self.stored: dict[bytes, bytes] = {}

    def send(
        self,
        *values: bytes | None,
        now: Milliseconds | None = None,
        headers: Headers = (),
        source: Source | None = None,
    ) -> list[Output]:
        """Fold records; what they caused. What names a source is signed, and so are ticks."""
        self.now = self.now if now is None else now
        before = len(self.effects.outputs)
        for value in values:
            is_ours = source is not None or (not headers and (value or b"").startswith(b'{"type":"tick"'))
            named = signed(value, source, partition=self.number) if is_ours else headers
            self.stage.step(LogRecord(self.offset, self.now, b"key", value, named), self.effects)
            self.offset += 1
        return self.effects.outputs[before:]

    def apply(self, document: Settings) -> list[Output]:
        """Settings as the control stage hands them on; what they caused."""
        return self.control(settings_event(document))

    def control(self, value: bytes) -> list[Output]:
        """A control event as the control stage hands it on; what it caused."""
        return self.send(value, source=broadcast(self.offset))

    def pass_to(self, now: Milliseconds) -> list[AnyFeedLogRecord]:
        """Time passes: a tick; the feed-log records it caused."""
        return records(self.send(tick(now), now=now))

    def count(self, kind: str, detail: str = "") -> int:
        return self.effects.counts[kind, detail]

    def restart(self, successor: QuestionStage) -> None:
        """Another owner takes the partition over, from what was stored."""
        snapshot = self.stage.snapshot()
        for key, value in snapshot.entries.items():
            if value is None:
                self.stored.pop(key, None)
            else:
                self.stored[key] = value
        self.stage = successor
        self.stage.load(snapshot.head, self.stored)

    @property
    def records(self) -> list[AnyFeedLogRecord]:
        return records(self.effects.outputs)

    @property
    def told(self) -> "Told":
        return Told(self.records)


class Told:
    """What feed-log records add up to: rounds that stand, by (feed, question, boundary), and outcomes of both kinds."""

    def __init__(self, log: list[AnyFeedLogRecord]) -> None:
        self.rounds: dict[tuple[str, str, Milliseconds], Content] = {}
        self.outcomes: dict[tuple[str, str], object] = {}
        self.provisional: dict[tuple[str, str], object] = {}
        self.add(log)

    def add(self, log: list[AnyFeedLogRecord]) -> None:
        """More records."""
        for record in log:
            if isinstance(record, Round):
                content = record.final, record.weight, dict(zip(record.experts, record.probabilities, strict=True))
                self.rounds[record.feed, record.question_id, record.boundary] = content
            elif isinstance(record, RoundWithdrawn):
                del self.rounds[record.feed, record.question_id, record.boundary]
            elif isinstance(record, OutcomeRevealed):
                self.outcomes[record.feed, record.question_id] = record.outcome
            elif isinstance(record, ProvisionalOutcome):
                self.provisional[record.feed, record.question_id] = record.outcome

    def forecasts(self, question_id: str = "q") -> dict[Milliseconds, dict[str, float]]:
        """Rounds of one question by boundary."""
        return {key[2]: content[2] for key, content in self.rounds.items() if key[1] == question_id}


def records(outputs: list[Output]) -> list[AnyFeedLogRecord]:
    return [decode_feed_log(output.value or b"") for output in outputs if output.topic == topics.FEED_LOG]


CLOSE = T0 + 2 * DAY


def opened(**defaults: Any) -> Partition:
    """A partition with one question, open for two days, and forecasts of two experts."""
    partition = Partition(**defaults)
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    partition.send(forecast("ann", 0.7, T0 + HOUR), forecast("bob", 0.2, T0 + HOUR), now=T0 + HOUR)
    return partition


def closed(**defaults: Any) -> Partition:
    """The same after its close."""
    partition = opened(**defaults)
    partition.pass_to(CLOSE + GRACE)
    return partition


def reasons(outputs: list[Output]) -> list[str]:
    return [dict(output.headers)["stream-peer-reason"].decode() for output in outputs]

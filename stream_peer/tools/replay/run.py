"""The stages of all partitions of a replay, and the logs between them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from stream_peer.events.times import NEVER, YEAR_1900, YEAR_2000, Milliseconds, to_iso
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.dead_letters import refusal_of, refuse
from stream_peer.log.driver import fold_and_publish, publish_before, pump
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Effects, LogRecord, Output, Record, Stateful, Warned
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.tools.replay.file_events import FileEvent
from stream_peer.tools.replay.files import KeptLog
from stream_peer.tools.replay.history import ReplayHistory
from stream_peer.tools.transfer.feed_export import StageState, exported, known_of, origin, questions_of
from stream_peer.tools.transfer.feed_file import Line
from stream_peer.tools.transfer.feed_slice import slice_of

KEPT = 1_000
"""So many refused lines and so many warnings are kept; all are counted."""
CONTROLS = frozenset(("expert", "feed"))
THE_END = "the end"
"""The place of the tick with which a replay ends."""

Write = Callable[[Output], None]


class RefusedLine(NamedTuple):
    """A line that could not be used."""

    place: str
    reason: str
    message: str


class InputRecord(NamedTuple):
    """An input record: the line of a file that it is, and where and when it stands in its topic."""

    event: FileEvent
    topic: str
    partition: int
    offset: int
    time: Milliseconds


class ReplayProbe:
    """Is called around each record that is folded, and changes nothing. Every call may be left out."""

    def before_input(self, arrival: InputRecord, stage: QuestionStage | ControlStage) -> None:
        """Called before ``stage`` folds an input record."""

    def after_input(self, effects: Effects, stage: QuestionStage | ControlStage) -> None:
        """Called after it; what it wrote to the feed-log is folded next."""

    def before_record(self, record: Record, stage: FeedStage) -> None:
        """Called before ``stage`` folds a record of the feed-log."""

    def after_record(self, effects: Effects, stage: FeedStage) -> None:
        """Called after it, and after the rebuilds that it called for."""


class ReplayPlan(NamedTuple):
    """What a run is made of.

    ``keeps_log``: the feed-log may be rebuilt, or a feed exported; ``publishes``: error rates and weights along the
    way, not at the end only.
    """

    book: FeedSettingsBook
    partitions: int = 1
    feed_log_partitions: int = 1
    secret: bytes = b""
    keeps_log: bool = False
    publishes: bool = True
    write: Write | None = None
    probes: Sequence[ReplayProbe] = ()
    method_of: MethodOf = served_method


def _feed_stage(plan: ReplayPlan, partition: int) -> FeedStage:
    return FeedStage(
        topic=topics.FEED_LOG, partition=partition, secret=plan.secret, settings=plan.book, method_of=plan.method_of
    )


class Run:
    """Folds events of files through all stages, as the service would. A context manager, for what it keeps on disk."""

    def __init__(self, plan: ReplayPlan) -> None:
        self.history = ReplayHistory()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.refused: list[RefusedLine] = []
        self.warnings: list[Warned] = []
        self.warned: Counter[str] = Counter()
        self._line = FileEvent(THE_END, b"")
        self._write = plan.write
        self.plan = plan
        self._probes = plan.probes
        self._questions = [
            QuestionStage(
                topic=topics.FORECAST_EVENTS,
                partition=partition,
                partitions=plan.partitions,
                feed_log_partitions=plan.feed_log_partitions,
                settings=plan.book,
                secret=plan.secret,
            )
            for partition in range(plan.partitions)
        ]
        self._controls = ControlStage(
            topic=topics.CONTROL_EVENTS,
            partition=0,
            forecast_partitions=plan.partitions,
            feed_log_partitions=plan.feed_log_partitions,
        )
        self._feeds = [_feed_stage(plan, partition) for partition in range(plan.feed_log_partitions)]
        self._kept = [KeptLog() for _ in self._feeds] if plan.keeps_log else []
        self._offsets = [count() for _ in self._questions]
        self._control_offsets = count()
        self._log_offsets = [count() for _ in self._feeds]
        self._log_times = [YEAR_1900 for _ in self._feeds]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for kept in self._kept:
            kept.close()

    def fold(self, event: FileEvent, time: Milliseconds) -> None:
        """Fold one event of a file, and whatever it causes."""
        self._line = event
        key = None if event.question_id is None else event.question_id.encode()
        if event.kind in CONTROLS:
            self._control(LogRecord(next(self._control_offsets), time, None, event.payload))
            return
        partition = partition_of(key, len(self._questions)) if key else 0
        if event.kind == "settings":
            self._refuse_settings(event, partition, time)
        elif event.kind == "tick":  # of a topic that was written to a file
            self._step(partition, _signed_tick(event.payload, time, partition))
        else:
            self._step(partition, LogRecord(0, time, key, event.payload))

    def end(self, now: Milliseconds) -> None:
        """Let time pass in every partition, and publish what is unpublished. Ticks take no time before 2000."""
        now = max(now, YEAR_2000)
        tick = msgspec.json.encode({"type": "tick", "now": to_iso(now)})
        self._line = FileEvent(THE_END, tick, "tick", at=now)
        for partition in range(len(self._questions)):
            self._step(partition, _signed_tick(tick, now, partition))
        for stage in self._feeds:
            effects = Effects()
            stage.publish(effects)
            self._take(effects)

    def log(self, partition: int, up_to: int = NEVER) -> Iterator[LogRecord]:
        """The records of a partition of the feed-log, as far as ``up_to``; only a run that keeps its log has them."""
        return self._kept[partition].up_to(up_to)

    def log_size(self, partition: int) -> int:
        """How many records ``log`` gives."""
        return len(self._kept[partition])

    def exported(self, feed: str, document: Mapping[str, Any]) -> Iterator[Line]:
        """A feed as it is at the end, for ``stream-peer import``; ``document``: the settings it was folded under.

        Raises
        ------
        FeedTransferError
            If there is no such feed.
        """
        questions, feeds = self._stored
        of_questions, home = [questions_of(feed, state) for state in questions], partition_of(feed, len(feeds))
        with slice_of(feed, known_of(of_questions), self.log(home, feeds[home].applied)) as found:
            yield from exported(feed, feeds[home], of_questions, found, origin(document))

    @cached_property
    def _stored(self) -> tuple[list[StageState], list[StageState]]:
        """What all stages would have stored; nothing may be folded after it."""
        return _states(self._questions, self._offsets), _states(self._feeds, self._log_offsets)

    def _step(self, partition: int, record: LogRecord) -> None:
        """Fold a record at the end of a partition of the forecast events."""
        stage, record = self._questions[partition], record._replace(offset=next(self._offsets[partition]))
        self._fold_input(
            InputRecord(self._line, topics.FORECAST_EVENTS, partition, record.offset, record.timestamp), record, stage
        )

    def _control(self, record: LogRecord) -> None:
        arrival = InputRecord(self._line, topics.CONTROL_EVENTS, 0, record.offset, record.timestamp)
        self._fold_input(arrival, record, self._controls)

    def _fold_input(self, arrival: InputRecord, record: LogRecord, stage: QuestionStage | ControlStage) -> None:
        effects = Effects()
        for probe in self._probes:
            probe.before_input(arrival, stage)
        stage.step(record, effects)
        for probe in self._probes:
            probe.after_input(effects, stage)
        self._take(effects)

    def _take(self, effects: Effects) -> None:
        if effects.counts:
            self.counts.update(effects.counts)
        for warning in effects.warnings:
            self._warn(warning)
        for output in effects.outputs:
            if self._write is not None:
                self._write(output)
            if output.topic == topics.FEED_LOG:
                self._append(output)
            elif output.topic == topics.FORECAST_EVENTS:
                handed_on = LogRecord(0, output.timestamp, output.key, output.value, output.headers)
                self._step(output.partition or 0, handed_on)
            elif output.topic == topics.DEAD_LETTERS:
                self._refuse(output)
            else:
                self.history.add(output.topic, output.value, output.headers, output.key)

    def _append(self, output: Output) -> None:
        """A record of the feed-log, folded at once; if its time is later, what changed before is published first."""
        partition = output.partition
        if partition is None:  # a hand-over, of which one feed does not know where the other is
            partition = partition_of(output.key or b"", len(self._feeds))
        stage, effects = self._feeds[partition], Effects()
        record = LogRecord(next(self._log_offsets[partition]), output.timestamp, output.key, output.value)
        if self.plan.publishes:
            self._log_times[partition] = publish_before(stage, record, self._log_times[partition], effects)
            self._take(effects)
        if self._kept:
            self._kept[partition].append(record)
        effects = Effects()
        for probe in self._probes:
            probe.before_record(record, stage)
        steps = fold_and_publish(stage, record, effects)
        pump(steps, lambda up_to: self.log(partition, up_to))
        for probe in self._probes:
            probe.after_record(effects, stage)
        self._take(effects)

    def _refuse_settings(self, event: FileEvent, partition: int, time: Milliseconds) -> None:
        effects = Effects()
        msg = "settings of a file are not followed: give them to the replay"
        rejection = RejectedEvent(Reason.NOT_SUPPORTED, field="type", message=msg)
        record = LogRecord(next(self._offsets[partition]), time, None, event.payload)
        refuse(record, topics.FORECAST_EVENTS, partition, rejection, effects)
        self._take(effects)

    def _refuse(self, output: Output) -> None:
        self.history.add(output.topic, output.value, output.headers)
        if len(self.refused) < KEPT:
            refusal = refusal_of(output.headers, output.value)
            self.refused.append(RefusedLine(self._line.place, refusal.reason, refusal.message))

    def _warn(self, warning: Warned) -> None:
        self.warned[warning.code] += 1
        if len(self.warnings) < KEPT:
            self.warnings.append(warning)


def _signed_tick(value: bytes, time: Milliseconds, partition: int) -> LogRecord:
    signed = Signatures().signed(Output(topics.FORECAST_EVENTS, b"tick", value, time, partition))
    return LogRecord(0, time, signed.key, value, signed.headers)


def _states(stages: Sequence[Stateful], offsets: Sequence["count[int]"]) -> list[StageState]:
    states = []
    for partition, (stage, offset) in enumerate(zip(stages, offsets, strict=True)):
        entries, head = stage.snapshot()
        stored = {key: value for key, value in entries.items() if value is not None}
        states.append(StageState(partition, next(offset) - 1, head, stored))
    return states

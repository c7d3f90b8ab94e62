"""Adapters: how the service folds a life. The only file here that imports the product: it changes when modules move.

``replay`` lives run through the product's own replay. ``worker`` lives run through its driver, as a worker runs it:
settings and controls through the control stage, rebuilds from the start of the feed-log, and, with ``kill``, owners
that leave a changelog and are gone. Two things differ from a worker on purpose, so that a life is a function of its
records: a feed publishes whenever the time of the feed-log moves on (a worker goes by its own clock), and then always
(a worker leaves out what moved no weight, as the replay does).
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import YEAR_1900, to_iso
from stream_peer.events.topics import FEED_LOG, FORECAST_EVENTS, KEYED_BY_FEED
from stream_peer.feeds.columns import EXPERT, FEED, SUBSAMPLE, VOTE_RULES
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.sums import Sums
from stream_peer.lab.methods.replayed import replayed_method
from stream_peer.log import driver
from stream_peer.log.changelog import ChangelogReader, ChangelogRow, Writer, token_row
from stream_peer.log.producers import Producer, Producers
from stream_peer.log.signatures import Signatures
from stream_peer.log.sources import source_of
from stream_peer.log.stage import Effects, LogRecord, Output, Stateful
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from stream_peer.tools.replay.files import FileLine
from stream_peer.tools.replay.replay import ReplayOptions, replay
from stream_peer.tools.replay.run import ReplayProbe
from stream_peer.tools.transfer.feed_export import Origin, StageState, exported, known_of, questions_of
from stream_peer.tools.transfer.feed_import import log_records, question_events
from stream_peer.tools.transfer.feed_slice import slice_of
from tests.golden.records import EVERY, Life, Numbers, Sent, Tape, Written, bytes_of, digest_of
from tests.order_free import order_free

__all__ = ["fold", "order_free"]

SECRET = b"golden"
OUTPUT_PARTITIONS = 4
KILLED_EVERY = 97

Rows = list[ChangelogRow]
_DELETED_AT = re.compile(rb',"deleted_at":\d+')
S = TypeVar("S", bound=Stateful)


def fold(life: Life, *, kill: int = 0, questions: Sequence[Rows] = ()) -> Tape:
    """What the service writes.

    Parameters
    ----------
    life : Life
    kill : int
        Records between two snapshots of all stages, whose owners are gone halfway to the next; 0: they live on. Only
        of ``worker`` lives.
    questions : sequence of rows
        Changelogs of the question stage's partitions that are taken up in the middle of the life in place of its state.
    """
    tape = Tape()
    if life.driver == "replay":
        _replay(life, tape)
        return tape
    worker = _Worker(life, tape)
    for number, sent in enumerate(life.sent, 1):
        tape.after = number
        if sent.topic == "move":
            worker = worker.moved(sent.key or "", sent.at)
        else:
            worker.send(sent)
        if kill:
            worker.restart(number, kill)
        if questions and number == len(life.sent) // 2:
            worker.take_up(questions)
        if number % EVERY == 0:
            tape.look(_numbers(worker.feed_stages()))
    worker.finish()
    tape.look(_numbers(worker.feed_stages()))
    return tape


def question_changelogs(life: Life) -> list[Rows]:
    """What the question stage's changelogs hold in the middle of a life."""
    worker = _Worker(life, Tape())
    for number, sent in enumerate(life.sent[: len(life.sent) // 2], 1):
        worker.send(sent)
        worker.restart(number, KILLED_EVERY)
    return worker.question_changelogs()


class _Looking(ReplayProbe):
    """Looks at the sums of a replay."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._stages: dict[int, FeedStage] = {}

    def before_input(self, *_: object) -> None:
        if self._tape.after and self._tape.after % EVERY == 0:
            self.look()
        self._tape.after += 1

    def before_record(self, _: object, stage: FeedStage) -> None:
        self._stages[id(stage)] = stage

    def look(self) -> None:
        self._tape.look(_numbers([*self._stages.values()]))


def _replay(life: Life, tape: Tape) -> None:
    looking = _Looking(tape)
    lines = [FileLine(f"{life.name}:{n}", bytes_of(sent.value) or b"") for n, sent in enumerate(life.sent, 1)]
    options = ReplayOptions(
        document=life.settings,
        secret=SECRET,
        partitions=life.partitions,
        feed_log_partitions=life.feed_log_partitions,
        method_of=replayed_method,
    )
    replay([lines], options, write=lambda output: tape.take(_written(output, tape.after)), probes=[looking])
    looking.look()


def _written(output: Output, after: int) -> Written:
    output = _undated(output)
    key, partition = output.key, output.partition
    if partition is None:
        partition = partition_of(key, OUTPUT_PARTITIONS) if key else 0
    return Written(after, output.topic, partition, key, output.value, output.timestamp, tuple(output.headers))


def _undated(output: Output) -> Output:
    """A record without the moment at which a feed was deleted: the release that recorded the lives wrote none."""
    value = output.value or b""
    if output.topic == FEED_LOG:
        return output._replace(value=_DELETED_AT.sub(b"", value))
    if output.topic == FORECAST_EVENTS and b'"delete":true' in value:
        plain = {"type": "feed", "feed": json.loads(value)["feed"], "delete": True}
        return Signatures().signed(output._replace(value=json.dumps(plain).encode()), source_of(output.headers))
    return output


class _Owned(Generic[S]):
    """A partition: its log, its stage, and the changelog that its owners leave."""

    def __init__(self, make: Callable[[], S], number: int) -> None:
        self.make, self.number = make, number
        self.log: list[LogRecord] = []
        self.stage = make()
        self.rows: Rows = []
        self._owners = count()
        self._covered = -1
        self._since: list[Output] = []
        self._begin_to_write()

    def step(self, record: LogRecord) -> list[Output]:
        """Fold a record at the end of the log; what comes of it."""
        record = record._replace(offset=len(self.log))
        self.log.append(record)
        outputs = self._fold(record)
        self._since += outputs
        return outputs

    def _fold(self, record: LogRecord) -> list[Output]:
        effects = Effects()
        if isinstance(self.stage, FeedStage):
            driver.pump(driver.fold_and_publish(self.stage, record, effects), self._up_to)
        else:
            self.stage.step(record, effects)
        return effects.outputs

    def _up_to(self, offset: int) -> Sequence[LogRecord]:
        return self.log[: offset + 1]

    def publish(self) -> list[Output]:
        """What there is to say of changed feeds."""
        effects = Effects()
        if isinstance(self.stage, FeedStage):
            self.stage.publish(effects)
        return effects.outputs

    # --- state ---

    def snapshot(self) -> None:
        """Make the state durable: entries, then the head."""
        applied = len(self.log) - 1
        if applied > self._covered:
            snapshot = self.stage.snapshot()
            rows = [*self._writer.entry_rows(snapshot, applied), self._writer.head_row(snapshot, applied)]
            self.rows += rows
            self._writer.appended(-1, len(rows))
            self._writer.committed(snapshot, applied)
            self._covered, self._since = applied, []

    def take_over(self) -> None:
        """Another owner: recovers, and folds once more what the state does not cover. It must say the same."""
        since, self._since = self._since, []
        self.recover()
        again = [output for record in self.log[self._covered + 1 :] for output in self._fold(record)]
        assert _of_questions(again) == _of_questions(since), f"partition {self.number} says other things once more"
        self._since = since

    def recover(self) -> None:
        """A new stage from the changelog."""
        self.stage = self.make()
        self._begin_to_write()
        found = self._changelog.recovered()
        self._covered = found.applied
        self.stage.load(found.head, found.entries)
        if isinstance(self.stage, FeedStage):
            for _ in self.stage.recount():
                pass
            while self.stage.needs_rebuild:
                driver.pump(driver.rebuild(self.stage, found.applied), self._up_to)

    def state(self) -> StageState:
        """All that is stored."""
        self.snapshot()
        found = self._changelog.recovered()
        return StageState(self.number, found.applied, found.head, dict(found.entries))

    def _begin_to_write(self) -> None:
        token = f"owner-{next(self._owners)}"
        self.rows.append(token_row(self.number, token))
        self._changelog = ChangelogReader()
        for offset, row in enumerate(self.rows):
            self._changelog.add(offset, *row)
        self._writer = Writer(self._changelog, self.number, token, len(self.rows))


class _Worker:
    """All stages, and the logs between them."""

    def __init__(self, life: Life, tape: Tape) -> None:
        self._life, self._tape = life, tape
        self._controls = ControlStage(
            topic="control-events",
            partition=0,
            forecast_partitions=life.partitions,
            feed_log_partitions=life.feed_log_partitions,
        )
        self._control_offsets = count()
        self._questions = [_Owned(_question_stage(life, number), number) for number in range(life.partitions)]
        self._feeds = [_Owned(_feed_stage(number), number) for number in range(life.feed_log_partitions)]
        self._times = [YEAR_1900 for _ in self._feeds]
        self._all: list[_Owned[Any]] = [*self._questions, *self._feeds]

    def feed_stages(self) -> list[FeedStage]:
        return [feed.stage for feed in self._feeds]

    def question_changelogs(self) -> list[Rows]:
        for questions in self._questions:
            questions.snapshot()
        return [questions.rows for questions in self._questions]

    def send(self, sent: Sent) -> None:
        """Fold a record, and whatever it causes."""
        key, value = bytes_of(sent.key), bytes_of(sent.value)
        headers = [(name, bytes_of(text) or b"") for name, text in sent.headers]
        if sent.topic == "control-events" and (former := former_import(value)):
            self._append(Output("feed-log", key or b"", former, sent.at, partition_of(key or b"", len(self._feeds))))
        elif sent.topic == "control-events":
            effects = Effects()
            self._controls.step(LogRecord(next(self._control_offsets), sent.at, key, value, headers), effects)
            self._take(effects.outputs)
        elif sent.topic == "tick":
            value = msgspec.json.encode({"type": "tick", "now": to_iso(sent.at)})
            for number, questions in enumerate(self._questions):
                signed = Signatures().signed(Output("forecast-events", b"tick", value, sent.at, number))
                self._take(questions.step(LogRecord(0, sent.at, signed.key, value, signed.headers)))
        else:
            partition = partition_of(key, self._life.partitions) if key else 0
            self._take(self._questions[partition].step(LogRecord(0, sent.at, key, value, headers)))

    def _take(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            self._tape.take(_written(output, self._tape.after))
            if output.topic == "feed-log":
                self._append(output)
            elif output.topic == "forecast-events":
                record = LogRecord(0, output.timestamp, output.key, output.value, output.headers)
                self._take(self._questions[output.partition or 0].step(record))

    def _append(self, output: Output) -> None:
        number = output.partition
        if number is None:  # a hand-over
            number = partition_of(output.key or b"", len(self._feeds))
        feeds = self._feeds[number]
        if output.timestamp > self._times[number]:
            self._times[number] = output.timestamp
            self._take(feeds.publish())
        self._take(feeds.step(LogRecord(0, output.timestamp, output.key, output.value)))

    def finish(self) -> None:
        """Publish what is unpublished; the sums must follow from the ledgers."""
        for feeds in self._feeds:
            self._take(feeds.publish())
            for _ in feeds.stage.audit():
                pass
            assert not feeds.stage.needs_rebuild, "sums and ledger differ"

    # --- owners ---

    def restart(self, number: int, every: int) -> None:
        """Snapshots, or the end of all owners, if it is time for that."""
        if number % every == 0:
            for feeds in self._feeds:
                self._take(feeds.publish())
            for owned in self._all:
                owned.snapshot()
        elif number % every == every // 2 and number > every:
            for owned in self._all:
                owned.take_over()

    def take_up(self, changelogs: Sequence[Rows]) -> None:
        """Question stages go on from changelogs that somebody else has left."""
        for questions, rows in zip(self._questions, changelogs, strict=True):
            questions.rows = list(rows)
            questions.recover()

    # --- moving a feed ---

    def moved(self, feed: str, at: int) -> "_Worker":
        """Another deployment, which has the feed from this one."""
        home = partition_of(feed, len(self._feeds))
        state = self._feeds[home].state()
        questions = [questions_of(feed, owned.state()) for owned in self._questions]
        with slice_of(feed, known_of(questions), self._feeds[home].log) as found:
            lines = list(exported(feed, state, questions, found, Origin("0.0", to_iso(at))))
        there = _Worker(self._life, self._tape)
        for record in log_records(lines, "moved", at):
            there._append(Output("feed-log", record.key or b"", record.value, record.timestamp, home))
        for event in question_events(lines, "moved", self._life.partitions):
            there.send(Sent("control-events", at, feed, msgspec.json.encode(event).decode()))
        return there


def former_import(value: bytes | None) -> bytes | None:
    """What a feed-log holds of an event by which an earlier release moved a feed, but for its questions."""
    event = msgspec.json.decode(value or b"{}")
    if event.get("type") != "feed-import" or event.get("partition") is not None:
        return None
    event["src"] = ["control-events", 0, 0, event["part"], 0]
    return msgspec.json.encode(event)


def _question_stage(life: Life, number: int) -> Callable[[], QuestionStage]:
    return lambda: QuestionStage(
        topic="forecast-events",
        partition=number,
        partitions=life.partitions,
        feed_log_partitions=life.feed_log_partitions,
        secret=SECRET,
        producers=_producers(life),
    )


def _producers(life: Life) -> Producers | None:
    if life.producers is None:
        return None
    named = [
        Producer(name=name, **{**rights, "keys": tuple(key.encode() for key in rights["keys"])})
        for name, rights in life.producers.items()
    ]
    return Producers(named)


def _feed_stage(number: int) -> Callable[[], FeedStage]:
    return lambda: FeedStage(topic="feed-log", partition=number, secret=SECRET)


def _of_questions(outputs: Sequence[Output]) -> list[Output]:
    """Outputs without those of feeds, which are published at other moments after a restart."""
    return [output for output in outputs if output.topic not in KEYED_BY_FEED]


# --- sums ---


def _numbers(stages: Sequence[FeedStage]) -> Numbers:
    """Sums of all feeds that are not zero, by feed, bucket and column; of columns of experts a digest of the row."""
    found: dict[str, int | str] = {}
    for stage in stages:
        for feed in stage.feeds.by_name.values():
            for name, value in _of_feed(feed):
                found[f"{feed.name}/{name}"] = value
    return found


def _of_feed(feed: Feed) -> Iterator[tuple[str, int | str]]:
    yield "experts", digest_of([repr([*feed.roster.experts]).encode()])
    yield "ledger", digest_of([repr(sorted(feed.ledger.entries)).encode()])
    for bucket, sums in sorted(feed.buckets.by_number.items()):
        for name, value in _of_sums(sums, len(feed.roster.experts)):
            yield f"{bucket}/{name}", value


def _of_sums(sums: Sums, n_experts: int) -> Iterator[tuple[str, int | str]]:
    for name, rule in _FEED_COLUMNS:
        if value := sums.feed[FEED.at(name, rule)]:
            yield f"{name} ({rule})", value
    yield from _of_votes(sums)
    for name, rule in _EXPERT_COLUMNS:
        yield from _row(f"expert {name} ({rule})", sums.matrix[EXPERT.at(name, rule), :n_experts])
    yield from _row("histograms", sums.histograms[:n_experts])
    for shadow, columns in sums.shadows.items():
        yield from _row(f"shadow {shadow}", columns)


def _of_votes(sums: Sums) -> Iterator[tuple[str, int]]:
    for rule, of_rule in zip(VOTE_RULES, sums.votes.tolist(), strict=True):
        for subsample, amounts in enumerate(of_rule):
            for name, value in zip(SUBSAMPLE.names(by_rule=True), amounts, strict=True):
                if value:
                    yield f"block_{subsample}_{name.removeprefix('votes_')} ({rule})", value


def _row(name: str, row: Any) -> Iterator[tuple[str, str]]:
    """A digest of what is not zero: there may be room for more experts than there are."""
    where = np.flatnonzero(row)
    if len(where):
        yield name, digest_of([where.astype("<i8").tobytes(), row.reshape(-1)[where].astype("<i8").tobytes()])


_FEED_COLUMNS = [
    *((name, VOTE_RULES[name.startswith("class_")]) for name in FEED.names()),
    *((name, rule) for rule in VOTE_RULES for name in FEED.names(by_rule=True)),
]
_EXPERT_COLUMNS = [
    *((name, VOTE_RULES[0]) for name in EXPERT.names()),
    *((name, rule) for rule in VOTE_RULES for name in EXPERT.names(by_rule=True)),
]

"""A feed is read from changelogs that a consumer hands out, while somebody may still be writing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kafka import TopicPartition

from stream_peer.errors import FeedTransferError, NotCaughtUpError
from stream_peer.events.feed_log import ExpertChanged, Round
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.changelog import ChangelogReader, ChangelogRow, Writer, token_row
from stream_peer.questions.moved import QuestionLine
from stream_peer.settings.process import Partitions, Settings
from stream_peer.tools.transfer import feed_export
from stream_peer.tools.transfer.feed_export import export_feed
from stream_peer.tools.transfer.feed_file import Header, RecordLine
from tests.feed_histories import changed, expert, folded, log_of, round_of
from tests.unit.questions.question_log import DAY, T0, Partition, forecast, question

SETTINGS = Settings(prefix="x-", partitions=Partitions(forecast_events=1, feed_log=1), broker_patience=0.0)
PATIENT = msgspec.structs.replace(SETTINGS, broker_patience=30.0)
LOG = TopicPartition(SETTINGS.topic("feed-log"), 0)
OF_QUESTIONS = TopicPartition(SETTINGS.changelog("question"), 0)
OF_FEEDS = TopicPartition(SETTINGS.changelog("feed"), 0)
FORECASTS = {"ann": 0.3, "bob": 0.6, "cyd": 0.9}
PAST = log_of(
    [expert("ann", team="red"), round_of("q0", FORECASTS), changed("g", reset=True), round_of("q1", FORECASTS)]
)

ABORTED: Any = None
"""In place of a record: it has an offset, and is never handed out."""


class Consumer:
    """Hands out two records at a time. If it ``catches_up``, the feed stage does once its changelog was read."""

    def __init__(self, logs: dict[TopicPartition, list[Any]], catch_up: Callable[[], None]) -> None:
        self.logs = logs
        self.catch_up = catch_up
        self.catches_up = False
        self._positions: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._positions = dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: len(self.logs[tp]) for tp in partitions}

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._positions[tp] = offset

    def pause(self, tp: TopicPartition) -> None:
        self._paused.add(tp)

    def resume(self, *partitions: TopicPartition) -> None:
        self._paused.difference_update(partitions)

    def position(self, tp: TopicPartition) -> int:
        if self.catches_up and tp == OF_FEEDS and self._positions[tp] == len(self.logs[tp]):
            self.catches_up = False
            self.catch_up()
        return self._positions[tp]

    def poll(self, *, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        assert timeout_ms
        found = {}
        for tp in self._positions.keys() - self._paused:
            start = self._positions[tp]
            found[tp] = [record for record in self.logs[tp][start : start + 2] if record is not ABORTED]
            self._positions[tp] = min(start + 2, len(self.logs[tp]))
        return found


class Changelog:
    """What an owner writes of a stage."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        fold = ChangelogReader()
        self._append([token_row(0, "owner")])
        fold.add(0, self.records[0].key, self.records[0].value)
        self._writer = Writer(fold, 0, "owner", 1)

    def take(self, stage: Any, applied: int) -> None:
        snapshot = stage.snapshot()
        rows = [*self._writer.entry_rows(snapshot, applied), self._writer.head_row(snapshot, applied)]
        self._append(rows)
        self._writer.committed(snapshot, applied)

    def _append(self, rows: Sequence[ChangelogRow]) -> None:
        for row in rows:
            self.records.append(SimpleNamespace(offset=len(self.records), **row._asdict()))


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Consumer:
    """Both changelogs, of a feed stage that is one record behind its log until somebody waits for it."""
    questions, feeds = Changelog(), Changelog()
    partition = Partition()
    partition.send(question("q", at=T0, feed="f", closes_at=T0 + DAY), forecast("ann", 0.3, T0, "q"))
    questions.take(partition.stage, partition.offset - 1)
    stage, _ = folded(PAST[:-1])
    feeds.take(stage, PAST[-2].offset)
    logs = {OF_QUESTIONS: questions.records, OF_FEEDS: feeds.records, LOG: list(PAST)}
    consumer = Consumer(logs, lambda: catch_up(stage, feeds))

    @contextmanager
    def groupless_reader(_: Settings) -> Iterator[Consumer]:
        yield consumer

    def partitions_of(_: Consumer, topic: str) -> list[TopicPartition]:
        return [tp for tp in logs if tp.topic == topic]

    monkeypatch.setattr(feed_export, "groupless_reader", groupless_reader)
    monkeypatch.setattr(feed_export, "partitions_of", partitions_of)
    monkeypatch.setattr(feed_export, "_PAUSE_SECONDS", 0.001)
    return consumer


def catch_up(stage: FeedStage, feeds: Changelog) -> None:
    folded(PAST[-1:], stage)
    feeds.take(stage, PAST[-1].offset)


def test_what_the_questions_have_emitted_is_awaited_in_the_feeds_state(there: Consumer) -> None:
    there.catches_up = True

    header, *lines = export_feed(PATIENT, "f")

    assert isinstance(header, Header)
    assert (header.revision, header.forecasts) == (PAST[-1].offset, {0: 1})
    assert [line.question_id for line in lines if isinstance(line, QuestionLine)] == ["q"]


@pytest.mark.parametrize("aborted", [1, 2, 40])
def test_no_state_is_waited_for_that_covers_aborted_records_at_the_end_of_the_log(
    there: Consumer, aborted: int
) -> None:
    there.logs[LOG] += [ABORTED] * aborted
    there.catches_up = True

    header, *_ = export_feed(PATIENT, "f")

    assert isinstance(header, Header)
    assert header.revision == PAST[-1].offset


def test_without_a_worker_that_catches_up_nothing_is_exported(there: Consumer) -> None:
    assert not there.catches_up
    with pytest.raises(NotCaughtUpError, match="1 records behind in partition 0"):
        list(export_feed(SETTINGS, "f"))


def test_a_feed_stage_that_never_stored_anything_is_not_said_to_be_no_records_behind(there: Consumer) -> None:
    for place in (OF_FEEDS, OF_QUESTIONS, LOG):
        there.logs[place].clear()

    with pytest.raises(NotCaughtUpError, match="has no whole state yet of partition 0 of the feed-log: start a worker"):
        list(export_feed(SETTINGS, "f"))


def test_a_feed_that_is_not_there_is_named_with_those_that_are(there: Consumer) -> None:
    there.catch_up()

    with pytest.raises(FeedTransferError, match="there is no feed g; its partition of the feed-log knows f"):
        list(export_feed(SETTINGS, "g"))


def test_rounds_that_the_stored_questions_do_not_know_yet_come_again_and_are_left_out(there: Consumer) -> None:
    there.catches_up = True

    _, *lines = export_feed(PATIENT, "f")

    records = [line.record for line in lines if isinstance(line, RecordLine)]
    assert [type(record) for record in records] == [ExpertChanged, Round]  # the questions know two events of the log
    assert [line.at for line in lines if isinstance(line, RecordLine)] == [record.timestamp for record in PAST[:2]]


def test_a_log_whose_start_is_gone_is_not_exported(there: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    def beginning_offsets(partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 2)

    monkeypatch.setattr(there, "beginning_offsets", beginning_offsets)

    with pytest.raises(FeedTransferError, match="the start of partition 0 of the feed-log is gone"):
        list(export_feed(PATIENT, "f"))

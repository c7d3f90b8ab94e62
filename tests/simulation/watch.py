"""What must hold at every moment while a deployment runs: who writes, what is committed, how much is kept."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping

import msgspec

from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.worker import inbox
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.log.changelog import HeadRecord, TokenRecord
from stream_peer.log.observer import Observer
from stream_peer.log.stage import LogRecord
from stream_peer.questions.stage import QuestionStage
from tests.simulation.broker import LARGEST_FETCH, Group, Log
from tests.simulation.plan import CHANGELOGS, Plan

_MOST = 10  # problems that are told
_head = msgspec.msgpack.Decoder(HeadRecord).decode
_token = msgspec.msgpack.Decoder(TokenRecord).decode


class _Durable:
    """Up to where a changelog partition covers its input, read as it grows."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._place = 0
        self._token = ""
        self._applied = -1

    @property
    def applied(self) -> int:
        """The last input offset that the durable state covers."""
        new, self._place = self._log.archive[self._place :], len(self._log.archive)
        for record in new:
            kind = (record.key or b"").partition(b"/")[2]
            if kind.startswith(b"claim/"):
                self._token = _token(record.value or b"").token
            elif kind == b"head" and record.value is not None:
                head = _head(record.value)
                self._applied = head.applied if head.token == self._token else self._applied
        return self._applied


class Watch(Observer):
    """Notes what is wrong while a deployment runs.

    Attributes
    ----------
    problems : list of str
        What was wrong, the first of it.
    lost : Counter
        By topic partition: how many records workers reported as lost.
    """

    def __init__(self, plan: Plan, logs: Mapping[TopicPartition, Log]) -> None:
        self.problems: list[str] = []
        self.lost: Counter[TopicPartition] = Counter()
        self._plan, self._logs = plan, logs
        self._durable = {
            tp: _Durable(logs[TopicPartition(CHANGELOGS[tp.topic], tp.partition)])
            for tp in logs
            if tp.topic in CHANGELOGS
        }

    def _note(self, problem: str) -> None:
        if len(self.problems) < _MOST:
            self.problems.append(problem)

    def input_lost(self, topic: str, partition: int, records: int) -> None:
        """Part of the observer that workers report to."""
        self.lost[TopicPartition(topic, partition)] += records

    def sent(self, name: str, group: Group, term: int, tp: TopicPartition) -> None:
        """A worker sends records of a term: the coordinator has begun no later one."""
        if group.generation != term:
            self._note(f"{name} writes to {tp.topic}-{tp.partition} in term {term}, and others own it in a later one")

    def committed(self, tp: TopicPartition, offset: int) -> None:
        """A worker acknowledges input: the durable state covers it."""
        if tp in self._durable:
            archive, applied = self._logs[tp].archive, self._durable[tp].applied
            place = bisect_right(archive, applied, key=_offset)
            if place < len(archive) and archive[place].offset < offset:
                self._note(f"{tp.topic}-{tp.partition}: {offset} is committed, and durable state covers {applied}")

    def durable(self, tp: TopicPartition) -> int:
        """The last offset that durable state covers."""
        return self._durable[tp].applied

    def bounded(self, partition: OwnedPartition) -> None:
        """What a partition keeps in memory has limits."""
        waiting = partition._inbox._size
        if waiting > inbox.ROOM + LARGEST_FETCH:
            self._note(f"{partition.tp}: {waiting} records wait in memory")
        stage = partition.stage
        sources = self._plan.partitions + self._plan.feed_log_partitions + 1
        if isinstance(stage, FeedStage):
            for feed in stage.feeds.by_name.values():
                kept, most = max(len(feed.ledger.entries), len(feed.ledger.expired)), feed.settings.ledger_max
                if kept > most + 1:  # the next record takes out what is too many
                    self._note(f"{partition.tp}: the ledger of {feed.name} keeps {kept} questions, and {most} at most")
            if len(list(stage.seen)) > sources:
                self._note(f"{partition.tp}: {len(list(stage.seen))} sources are remembered")
        elif isinstance(stage, QuestionStage) and len(list(stage._seen)) > sources:
            self._note(f"{partition.tp}: {len(list(stage._seen))} sources are remembered")


def _offset(record: LogRecord) -> int:
    return record.offset

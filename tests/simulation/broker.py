"""Kafka in memory, on simulated time: what a worker can meet, and nothing that Kafka excludes."""

import asyncio
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.log.stage import Headers, LogRecord
from tests.simulation.loop import Process, SimulatedLoop

SESSION_SECONDS, REBALANCE_SECONDS = 6.0, 8.0
LARGEST_FETCH = 40
_REMEMBERED = 5  # sequences of a producer that a leader knows


class NewRecord(NamedTuple):
    """A record to append."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Commit(NamedTuple):
    """A group's offset, and the id of the topic that it is of."""

    offset: int
    topic_id: str


class Log:
    """One partition.

    Attributes
    ----------
    high : int
        Up to where it is replicated; readers see no further, and no leader loses it.
    open_from : int or None
        Where a transaction begins that has not ended; readers see no further.
    commits : bool
        How that transaction will end.
    archive : list of LogRecord
        Everything that could be read at some time.
    """

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.archive: list[LogRecord] = []
        self.begin = self.end = self.high = 0
        self.open_from: int | None = None
        self.commits = False
        self._in_transaction: set[int] = set()
        self._archived = 0
        self._go_at: dict[int, float] = {}  # of tombstones that compaction has met
        self.epoch = 0
        self.has_no_leader_until = 0.0
        self.sequences: dict[int, dict[int, int]] = {}

    def append(self, records: Sequence[NewRecord]) -> int:
        """Put records at the end; return the offset of the first."""
        base = self.end
        self.records += [LogRecord(base + n, *record) for n, record in enumerate(records)]
        self.end += len(records)
        return base

    def replicated(self, end: int) -> None:
        """Everything before ``end`` can be read."""
        self.high = max(self.high, end)
        self._archive()

    def _archive(self) -> None:
        stable = self.stable
        self.archive += [record for record in self.records[self._place(self._archived) :] if record.offset < stable]
        self._archived = max(self._archived, stable)

    def read(self, offset: int, most: int) -> tuple[list[LogRecord], int]:
        """Records from an offset on, and the position behind them."""
        place, stable = self._place(offset), self.stable
        found = [record for record in self.records[place : place + most] if record.offset < stable]
        return found, found[-1].offset + 1 if len(found) == most else max(offset, stable)

    @property
    def stable(self) -> int:
        """Up to where readers see: records and gaps."""
        return self.high if self.open_from is None else min(self.high, self.open_from)

    @property
    def last(self) -> int:
        """The offset of the last record; -1: there is none."""
        return self.archive[-1].offset if self.archive else -1

    def write_in_transaction(self, records: Sequence[NewRecord]) -> None:
        """Append records of the transaction, a new one if none is open: readers see them once it is committed."""
        base = self.append(records)
        self.open_from = base if self.open_from is None else self.open_from
        self._in_transaction.update(range(base, self.end))
        self.replicated(self.end)

    def end_transaction(self) -> None:
        """End it, if there is one, by a marker: it is committed, or aborted, and nobody will ever read it."""
        if self.open_from is not None:
            if not self.commits:
                self.records = [record for record in self.records if record.offset not in self._in_transaction]
            self._in_transaction.clear()
            self.open_from = None
            self.end += 1
            self.replicated(self.end)

    def remove(self, before: int) -> None:
        """Remove the start of the log, as retention does."""
        self.begin = max(self.begin, min(before, self.high))
        self.records = self.records[self._place(self.begin) :]

    def _place(self, offset: int) -> int:
        return bisect_left(self.records, offset, key=lambda record: record.offset)

    def change_leader(self, until: float) -> None:
        """Another leader, which has only what was replicated, takes over after a while."""
        self.records = [record for record in self.records if record.offset < self.high]
        self.end = self.high
        self.epoch += 1
        self.has_no_leader_until = until
        for known in self.sequences.values():
            for sequence in [sequence for sequence, base in known.items() if base >= self.high]:
                del known[sequence]

    def compact(self, before: int, now: float, *, spares: float = 0.0) -> None:
        """Of each key keep the last record that lies before an offset; others of them go.

        A tombstone stays for so many seconds after the first time: who has read what was before it will read it too.
        """
        last = {record.key: record for record in self.records if record.offset < min(before, self.high)}
        tombstones = [record.offset for record in last.values() if record.value is None]
        self._go_at = {offset: self._go_at.get(offset, now + spares) for offset in tombstones}
        self.records = [
            record
            for record in self.records
            if record.offset >= min(before, self.high)
            or (last[record.key] is record and self._go_at.get(record.offset, math.inf) > now)
        ]


class Rates(NamedTuple):
    """Shares of what goes wrong. ``rebuild_seconds``: what a rebuild takes for each batch of its log, besides."""

    lost_requests: float = 0.0
    lost_acknowledgements: float = 0.0
    lost_fetches: float = 0.0
    slow: float = 0.0
    rebuild_seconds: float = 0.0


class Broker:
    """Logs, producers' sequences and consumer groups.

    Attributes
    ----------
    cut_off : dict
        Until when no heartbeat of a process reaches a coordinator, though everything else of it reaches its broker.
    """

    def __init__(self, loop: SimulatedLoop, partitions: Mapping[str, int], rates: Rates) -> None:
        self.loop, self.random, self.rates = loop, loop.random, rates
        self.partitions = partitions
        self.logs = {TopicPartition(name, n): Log() for name, count in partitions.items() for n in range(count)}
        self.topic_ids = {name: f"{number:08x}" + 24 * "0" for number, name in enumerate(partitions, 1)}
        self.groups: dict[str, Group] = {}
        self.committed: dict[tuple[str, TopicPartition], Commit] = {}
        self.timeline: list[str] = []
        self.cut_off: dict[str, float] = {}
        self._producers = 0

    def producer(self) -> int:
        """The id of a new producer."""
        self._producers += 1
        return self._producers

    def group(self, name: str, topics: Sequence[str]) -> "Group":
        """A consumer group, a new one if need be."""
        if name not in self.groups:
            inputs = [TopicPartition(topic, n) for topic in topics for n in range(self.partitions[topic])]
            self.groups[name] = Group(self, name, inputs)
        return self.groups[name]

    def reaches_coordinator(self, process: Process) -> bool:
        """Whether a heartbeat of a process arrives."""
        return self.loop.now >= self.cut_off.get(process.name, 0.0) and not self.happens(self.rates.lost_requests)

    def note(self, text: str) -> None:
        """Keep a line for the timeline of a seed that fails."""
        self.timeline.append(f"{self.loop.now:9.3f}  {text}")

    def happens(self, rate: float) -> bool:
        """Whether something of this rate goes wrong now."""
        return self.random.random() < rate

    def latency(self) -> float:
        """Seconds on the way."""
        return self.random.uniform(0.3, 3.0) if self.happens(self.rates.slow) else self.random.uniform(0.001, 0.02)

    def write(self, tp: TopicPartition, records: Sequence[NewRecord]) -> None:
        """Append input from outside, replicated at once."""
        log = self.logs[tp]
        log.append(records)
        log.replicated(log.end)

    def receive(
        self,
        tp: TopicPartition,
        producer: int,
        sequence: int,
        records: Sequence[NewRecord],
        answer: Callable[..., None],
    ) -> None:
        """A request of an idempotent producer reaches the leader; ``answer`` gets a base offset, or None: try again."""
        log = self.logs[tp]
        known = log.sequences.setdefault(producer, {})
        is_next = not known or sequence == max(known) + 1
        if self.loop.now < log.has_no_leader_until or not (is_next or sequence <= max(known)):
            self.loop.later(self.latency(), answer, None)
            return
        if is_next:
            known[sequence] = log.append(records)
            if len(known) > _REMEMBERED:
                del known[min(known)]
        base, end, epoch = known.get(sequence, -1), log.end, log.epoch
        self.loop.later(self.random.uniform(0.0005, 0.01), self._replicated, log, epoch, end, base, answer)

    def _replicated(self, log: Log, epoch: int, end: int, base: int, answer: Callable[..., None]) -> None:
        if log.epoch == epoch:  # else it went with the former leader, and the producer tries again
            log.replicated(end)
            if not self.happens(self.rates.lost_acknowledgements):
                self.loop.later(self.latency(), answer, base)


class Beat(Enum):
    """What a coordinator answers to a heartbeat."""

    WELL = "well"
    REBALANCES = "rebalances"
    UNKNOWN = "unknown"


class Joined(NamedTuple):
    """What a member gets: the generation, and its share of the inputs."""

    generation: int
    share: frozenset[TopicPartition]


class Group:
    """A coordinator: generations, sessions that expire, rebalances for which everybody joins again."""

    def __init__(self, broker: Broker, name: str, inputs: Sequence[TopicPartition]) -> None:
        self.name, self.inputs = name, inputs
        self.generation = 0
        self._broker, self._loop = broker, broker.loop
        self._seen: dict[str, float] = {}
        self._joined: dict[str, tuple[Process, asyncio.Future[Joined]]] = {}
        self._preparing = 0
        self._attempts = 0
        self._watch()

    def join(self, process: Process) -> "asyncio.Future[Joined]":
        """What the member gets in the next generation."""
        future = self._loop.create_future()
        self._seen[process.name], self._joined[process.name] = self._loop.now, (process, future)
        self.rebalance()
        return future

    def beat(self, process: Process, generation: int) -> Beat:
        """A heartbeat comes."""
        if process.name not in self._seen or generation != self.generation:
            return Beat.UNKNOWN
        self._seen[process.name] = self._loop.now
        return Beat.REBALANCES if self._preparing else Beat.WELL

    def rebalance(self) -> None:
        """Begin another generation: when all members have joined, or without those who are late."""
        if not self._preparing:
            self._attempts += 1
            self._preparing = self._attempts
            self._loop.later(REBALANCE_SECONDS, self._complete, self._preparing, True)
        self._loop.later(0.05, self._complete, self._preparing, False)

    def _watch(self) -> None:
        for name in [name for name, seen in self._seen.items() if self._is_silent(name, seen)]:
            del self._seen[name]
            self._joined.pop(name, None)
            self._broker.note(f"{self.name}: the session of {name} expired")
            self.rebalance()
        self._loop.later(1.0, self._watch)

    def _is_silent(self, name: str, seen: float) -> bool:
        """Whether a session expired. Of a member that waits to join: whether it is gone."""
        joining = self._joined.get(name)
        silent = self._loop.now - seen if joining is None else joining[0].has_stood_for
        return silent > SESSION_SECONDS

    def _complete(self, attempt: int, late: bool) -> None:
        if attempt != self._preparing or not (late or all(name in self._joined for name in self._seen)):
            return
        self._seen = dict.fromkeys(self._joined, self._loop.now)
        self._preparing = 0
        self.generation += 1
        names = sorted(self._seen)
        self._broker.random.shuffle(names)
        shares = {name: frozenset(self.inputs[n :: len(names)]) for n, name in enumerate(names)}
        self._broker.note(f"{self.name}: generation {self.generation}: {', '.join(names) or 'nobody'}")
        for name, share in shares.items():
            _, future = self._joined.pop(name)
            if not future.done():
                future.set_result(Joined(self.generation, share))

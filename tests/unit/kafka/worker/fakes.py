"""Stand-ins for Kafka and Faust: what a partition needs of them, in memory."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from stream_peer.errors import LeaseEndedError
from stream_peer.kafka.worker.lease import Lease
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.port import Appended, LogEnd, TopicPartition, WorkerContext
from stream_peer.kafka.worker.process import SystemRuntime
from stream_peer.log.changelog import ChangelogRow
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Blank, Effects, LogRecord, Output, Record, Snapshot
from stream_peer.settings.process import SnapshotEvery

LONG = SnapshotEvery(seconds=3600.0)


class FakeProducer:
    """Acknowledges at once unless held; remembers what was written, in order."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Any]] = []
        self.changelog: list[ChangelogRow] = []
        self.foreign = 0
        self.topic_id = ""
        self.is_leased = True
        self.gate = asyncio.Event()
        self.gate.set()

    async def hold(self) -> None:
        if not self.is_leased:
            msg = "others own the partitions"
            raise LeaseEndedError(msg)

    async def send(self, outputs: Sequence[Output]) -> None:
        await self.gate.wait()
        self.written += [("output", output.key) for output in outputs]

    async def append(self, topic: str, partition: int, rows: Sequence[ChangelogRow], timestamp: int) -> list[Appended]:
        await self.gate.wait()
        base = len(self.changelog) + self.foreign
        self.changelog += rows
        self.written += [("row", row.key) for row in rows]
        return [Appended(base, len(rows))]

    async def topic_ids(self, names: Iterable[str]) -> Mapping[str, str]:
        return dict.fromkeys(names, self.topic_id) if self.topic_id else {}

    def under(self, lease: Lease) -> Self:
        return self


class FakeSource:
    """A consumer that has proofs or not."""

    def __init__(self, *, start: int = 0) -> None:
        self.proofs: set[tuple[int, int]] = set()
        self.asked: list[int] = []
        self.accepted: list[Any] = []
        self.forgotten: list[Any] = []
        self.again: list[int] = []
        self.start = start
        self.end = 0
        self.looks = 0
        self.answers = asyncio.Event()
        self.answers.set()

    def admits(self, tp: Any, want: int, first: int) -> bool:
        self.asked.append(want)
        return (want, first) in self.proofs

    def accept(self, message: Any) -> None:
        self.accepted.append(message)

    def forget(self, message: Any) -> None:
        self.forgotten.append(message)

    def read_again(self, tp: Any, want: int) -> None:
        self.again.append(want)

    async def log_start(self, tp: Any) -> int:
        await self.answers.wait()
        return self.start

    async def end_now(self, tp: Any) -> int:
        self.looks += 1
        try:
            await self.answers.wait()
        finally:
            self.looks -= 1
        return self.end


class FakeLogs:
    """A log to read from its start, a few records at a time, while the gate is open."""

    def __init__(self, log: Sequence[Record]) -> None:
        self.log = list(log)
        self.gate = asyncio.Event()
        self.gate.set()
        self.opened = self.closed = 0
        self._portion = 2

    @contextlib.asynccontextmanager
    async def reading(self, tp: Any, up_to: int | None, first: int = 0) -> AsyncIterator["FakeReading"]:
        self.opened += 1
        try:
            read = [r for r in self.log if first <= r.offset and (up_to is None or r.offset <= up_to)]
            yield FakeReading(self, read, self._portion)
        finally:
            self.closed += 1


class FakeReading:
    """One reading of it."""

    def __init__(self, logs: FakeLogs, rest: list[Record], portion: int) -> None:
        self.begin = logs.log[0].offset if logs.log else 0
        self._logs, self._rest, self._portion = logs, rest, portion

    async def batch(self) -> Sequence[Record]:
        await self._logs.gate.wait()
        batch, self._rest = self._rest[: self._portion], self._rest[self._portion :]
        return batch


class FakeMember:
    """A client in a group, in a state that a test chooses."""

    group = "acme-feed"
    address = "http://worker-0:8080"
    is_started = True

    def __init__(
        self,
        *,
        rebalances: int = 1,
        rebalancing: bool = False,
        is_member: bool = True,
        assigned: Iterable[TopicPartition] = (),
        position: Any = None,
    ) -> None:
        self.rebalances, self.rebalancing, self.is_member = rebalances, rebalancing, is_member
        self.assigned, self.position = set(assigned), position
        self.told: dict[str, list[int]] = {}
        self.to_recover: dict[TopicPartition, int] = {}

    @property
    def is_settled(self) -> bool:
        return self.rebalances > 0 and not self.rebalancing

    def assignment(self) -> set[TopicPartition]:
        return self.assigned

    def remaining(self) -> Mapping[TopicPartition, int]:
        return self.to_recover

    def owners(self, _topic: str) -> Mapping[int, str]:
        return {partition: url for url, partitions in self.told.items() for partition in partitions}


class FakeEvent:
    """A batch as an agent sees it."""

    end: LogEnd | None = None

    def __init__(self, records: Sequence[Record], log: list[tuple[str, Any]] | None = None) -> None:
        self.records = records
        self.message = self
        self.tp = TopicPartition("forecast-events", 0)
        self.offset = records[-1].offset
        self.acked = False
        self._log = [] if log is None else log

    def ack(self) -> None:
        self.acked = True
        self._log.append(("ack", self.records[-1].offset))


class SumStage:
    """Counts records by key; one output a record."""

    clock = 0

    def __init__(self) -> None:
        self.counts: Counter[bytes] = Counter()
        self.offsets: list[int] = []
        self.dirty: set[bytes] = set()
        self.due: int | None = None
        self.loaded: tuple[bytes | None, dict[bytes, bytes]] | None = None

    def step(self, record: Record, effects: Effects) -> None:
        key = record.key or b""
        self.counts[key] += 1
        self.offsets.append(record.offset)
        self.dirty.add(key)
        effects.outputs.append(Output("feed-log", key, b"", record.timestamp))

    def begin_topic(self, generation: int, base: int, *, keep: bool) -> None:
        """Its counts do not depend on it."""

    def snapshot(self) -> Snapshot:
        entries: dict[bytes, bytes | None] = {b"k/" + key: b"%d" % self.counts[key] for key in sorted(self.dirty)}
        self.dirty.clear()
        return Snapshot(entries, b"head")

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        self.loaded = (head, dict(entries))

    def deadline(self) -> int | None:
        return self.due


MARKER = b"marker"


class UnsignedStage(SumStage):
    """Its state is from before signatures, until it meets a record with the key ``MARKER``."""

    needs_marker = True

    def is_marker(self, record: Record) -> bool:
        return record.key == MARKER


MEANING = b"meaning"


class RebuildingStage(SumStage):
    """A record with the key ``MEANING`` doubles what every record counts, those before it too."""

    revision = 0

    def __init__(self) -> None:
        super().__init__()
        self.changed: dict[str, int] = {}
        self.needs_rebuild = False
        self.unit = 1
        self.lost_records: list[int] = []
        self.rebuilds: list[RebuildingStage] = []
        self.corrections: list[Output] = []
        self.hand_overs: list[Output] = []
        self.pieces: list[bool] = []
        self.audited = 0

    def step(self, record: Record, effects: Effects) -> None:
        assert not self.needs_rebuild
        super().step(record, effects)
        if record.key == MEANING:
            self.unit *= 2
            self.needs_rebuild = True

    def pass_time(self, record: Record) -> None:
        """It has no clock."""

    @property
    def may_step(self) -> bool:
        return not self.needs_rebuild

    def begin(self, record: Record, effects: Effects) -> None:
        self.step(record, effects)

    def go_on(self) -> bool:
        return False

    def step_postponed(self, effects: Effects) -> bool:
        return False

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        for feed in list(self.changed if feeds is None else feeds):
            del self.changed[feed]
            effects.outputs.append(Output("weights", feed.encode(), b"", 0))

    def changed_feeds(self) -> Mapping[str, int]:
        return dict(self.changed)

    def snapshot(self) -> Snapshot:
        assert not self.needs_rebuild
        return super().snapshot()

    def blank(self) -> "Blank[RebuildingStage]":
        self.rebuilds.append(blank := _Blank(self.unit))
        return Blank(blank, None)

    def adopt(self, rebuilt: "RebuildingStage") -> Iterator[Output]:
        self.counts, self.dirty = rebuilt.counts, set(rebuilt.counts)
        self.changed = {"econ": 1_000}
        self.needs_rebuild = False
        return iter(self.corrections)

    def hand_overs_due(self) -> list[Output]:
        return self.hand_overs

    def handed_over(self) -> None:
        self.hand_overs = []

    def recount(self) -> Iterator[None]:
        return iter(())

    def audit(self) -> Iterator[None]:
        for agrees in self.pieces:
            self.audited += 1
            self.needs_rebuild = not agrees
            yield

    def lost(self, records: int) -> None:
        self.lost_records.append(records)

    def generations(self) -> Mapping[int, int]:
        return {}

    def rebase(self, base: int) -> None:
        """It has no revisions."""

    def rebuild_all(self) -> None:
        self.needs_rebuild = True


class _Blank(RebuildingStage):
    """What every record counts in it is fixed."""

    def __init__(self, unit: int) -> None:
        super().__init__()
        self.unit = unit

    def step(self, record: Record, effects: Effects) -> None:
        self.offsets.append(record.offset)
        self.counts[record.key or b""] += self.unit


class Telling(Observer):
    """An observer that remembers what it was told."""

    def __init__(self) -> None:
        self.rebuilds: list[tuple[int, int]] = []
        self.audits: list[bool] = []
        self.lost: list[int] = []
        self.ended = 0

    def rebuilding(self, stage_name: str, partition: int, done: int, total: int) -> None:
        self.rebuilds.append((done, total))

    def rebuilt(self, stage_name: str, partition: int) -> None:
        self.ended += 1

    def audited(self, stage_name: str, agrees: bool) -> None:
        self.audits.append(agrees)

    def input_lost(self, topic: str, partition: int, records: int) -> None:
        self.lost.append(records)


def no_fault(_place: str) -> None:
    """Nothing breaks."""


def surroundings(
    producer: FakeProducer,
    *,
    every: SnapshotEvery = LONG,
    fault: Callable[[str], None] = no_fault,
    observer: Any = None,
    logs: "FakeLogs | None" = None,
) -> tuple[WorkerContext, list[BaseException]]:
    """What partitions share, and the errors that would have ended the process."""
    errors: list[BaseException] = []
    around = WorkerContext(
        producer,
        observer or Observer(),
        every,
        errors.append,
        fault,
        turn=asyncio.Lock(),
        logs=logs or FakeLogs([]),
        rebuilds=asyncio.Lock(),
        notices=Notices(SystemRuntime.now),
        runtime=SystemRuntime(),
    )
    return around, errors


def records(first: int, last: int, key: bytes = b"a") -> list[LogRecord]:
    """Records at offsets ``first`` to ``last``, both included."""
    return [LogRecord(offset, 1_000 + offset, key, b"{}") for offset in range(first, last + 1)]


async def eventually(condition: Callable[[], object]) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - any condition, not an event
            await asyncio.sleep(0)

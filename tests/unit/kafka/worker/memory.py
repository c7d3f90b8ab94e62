"""The port in memory: topics, a consumer and a clock. What is above the port runs on it as on Kafka."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.ownership import Ownership
from stream_peer.kafka.worker.port import Appended, Delivery, LogBounds, LogEnd, TopicPartition, WorkerContext, Writing
from stream_peer.kafka.worker.producer import BatchProducer
from stream_peer.log.observer import NullObserver
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Headers, LogRecord, Record
from stream_peer.settings.process import SnapshotEvery

T = TypeVar("T")

FETCH = 50
"""Records of a batch."""


class MemoryRuntime:
    """A clock that goes on by a millisecond whenever it is read, and ids that count."""

    def __init__(self) -> None:
        self.reads = self.ids = 0

    def now(self) -> float:
        self.reads += 1
        return self.reads / 1000

    def wall(self) -> int:
        return 1_700_000_000_000 + self.reads

    def fresh_id(self) -> str:
        self.ids += 1
        return f"id-{self.ids}"

    async def aside(self, work: Callable[[], T]) -> T:
        return work()


class MemoryTopics:
    """Logs of partitions; every write is acknowledged at once."""

    retries = 0

    def __init__(self, partitions: Mapping[str, int]) -> None:
        self.logs: dict[TopicPartition, list[LogRecord]] = defaultdict(list)
        self.committed: dict[TopicPartition, int] = {}
        self._partitions = partitions

    def append(self, tp: TopicPartition, at: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        self.logs[tp].append(LogRecord(len(self.logs[tp]), at, key, value, headers))
        return len(self.logs[tp]) - 1

    async def produce(self, rows: Mapping[TopicPartition, Sequence[Writing]]) -> list[list[Appended]]:
        places = []
        for tp, writings in rows.items():
            base = len(self.logs[tp])
            for writing in writings:
                self.append(tp, *writing)
            places.append([Appended(base, len(writings))])
        await asyncio.sleep(0)
        return places

    async def partitions(self, topic: str) -> int:
        return self._partitions.get(topic, 1)

    async def ids(self, names: Iterable[str]) -> Ids:
        return Ids("memory", {})

    async def asked(self, names: Iterable[str]) -> Ids | None:
        return await self.ids(names)

    @contextlib.asynccontextmanager
    async def reading(self, tp: TopicPartition, up_to: int | None, first: int = 0) -> AsyncIterator["MemoryReading"]:
        yield MemoryReading(self.logs[tp][first : None if up_to is None else up_to + 1])

    def end(self, tp: TopicPartition) -> LogEnd:
        return LogEnd(len(self.logs[tp]), len(self.logs[tp]))


class MemoryReading:
    """A log from its start."""

    begin = 0

    def __init__(self, rest: list[LogRecord]) -> None:
        self._rest = rest

    async def batch(self) -> Sequence[Record]:
        batch, self._rest = self._rest[:FETCH], self._rest[FETCH:]
        await asyncio.sleep(0)
        return batch


class MemoryDelivery(NamedTuple):
    """A batch."""

    tp: TopicPartition
    records: Sequence[Record]
    end: LogEnd
    topics: MemoryTopics

    def ack(self) -> None:
        self.topics.committed[self.tp] = self.records[-1].offset + 1


class MemoryConsumer:
    """A consumer of all partitions there are: nothing gets lost in it."""

    def __init__(self, topics: MemoryTopics, assigned: Collection[TopicPartition]) -> None:
        self._topics, self._assigned = topics, set(assigned)
        self._positions: dict[TopicPartition, int] = {}

    def assignment(self) -> set[TopicPartition]:
        return self._assigned

    async def bounds(self, tps: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        await asyncio.sleep(0)
        return {tp: LogBounds(0, self._topics.end(tp), self._topics.committed.get(tp)) for tp in tps}

    async def log_start(self, tp: TopicPartition) -> int:
        return 0

    def accept(self, delivery: Delivery) -> None:
        """Commits go by acknowledgements."""

    def forget(self, delivery: Delivery) -> None:
        """Nothing waits for it."""

    def admits(self, tp: TopicPartition, want: int, first: int) -> bool:
        self.seek(tp, want)
        return False

    def read_again(self, tp: TopicPartition, want: int) -> None:
        self.seek(tp, want)

    def seek(self, tp: TopicPartition, want: int) -> None:
        self._positions[tp] = want

    def fetch(self, tp: TopicPartition) -> MemoryDelivery | None:
        position = self._positions[tp]
        records = self._topics.logs[tp][position : position + FETCH]
        self._positions[tp] = position + len(records)
        return MemoryDelivery(tp, records, self._topics.end(tp), self._topics) if records else None


class MemoryWorker:
    """What a worker is above the port: the partitions of both apps, on topics in memory."""

    def __init__(self, topics: MemoryTopics, runtime: MemoryRuntime) -> None:
        self.errors: list[BaseException] = []
        heartbeats = Heartbeats(Deadlines(1e9, 1e9, 1e9, 1e9), runtime.now)
        self.context = WorkerContext(
            BatchProducer(topics, str, heartbeats, Signatures()),
            NullObserver(),
            SnapshotEvery(seconds=3600.0, records=200),
            self.errors.append,
            lambda _place: None,
            turn=asyncio.Lock(),
            logs=topics,
            rebuilds=asyncio.Lock(),
            notices=Notices(runtime.now),
            runtime=runtime,
        )
        self._topics = topics
        self._listeners: list[Ownership] = []
        self._consumers: list[MemoryConsumer] = []

    async def own(self, listener: Ownership, partitions: Mapping[str, int]) -> None:
        """Have a listener own all partitions of its inputs, as an app would."""
        assigned = [TopicPartition(name, number) for name in listener.stages for number in range(partitions[name])]
        consumer = MemoryConsumer(self._topics, assigned)
        await listener.assigned(assigned)
        for stage in listener.stages.values():
            if stage.input.changelog is not None:
                for number in range(partitions[stage.input.topic]):
                    changelog = TopicPartition(stage.input.changelog, number)
                    begin, end = listener.unread(changelog)
                    listener.recover(changelog, self._topics.logs[changelog][begin:end])
        for tp, place in (await listener.recovered(consumer)).items():
            consumer.seek(tp, place.want)
        self._listeners.append(listener)
        self._consumers.append(consumer)

    async def read_all(self) -> None:
        """Deliver what there is, and what comes of it, until everything is folded."""
        while not self._has_read():
            for listener, consumer in zip(self._listeners, self._consumers, strict=True):
                for partition in listener.partitions():
                    delivery = consumer.fetch(partition.tp)
                    if delivery is not None:
                        await listener.deliver(delivery, consumer)
            await asyncio.sleep(0)
            if self.errors:
                raise self.errors[0]

    def _has_read(self) -> bool:
        partitions = [partition for listener in self._listeners for partition in listener.partitions()]
        return all(each.reached == self._topics.end(each.tp).high and not each.rebuilding for each in partitions)

    async def leave(self) -> None:
        """Give all partitions back."""
        for listener in self._listeners:
            await listener.revoked()

    def die(self) -> None:
        """Be gone, as after a kill: what is not durable is nowhere."""
        for listener in self._listeners:
            listener.lost()

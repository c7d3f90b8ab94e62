"""A worker process on the simulated broker: the product's ownership, partitions and stages, and its port to Kafka."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from stream_peer.errors import BrokerUnavailableError
from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.worker.monitor import Ticker
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.ownership import Ownership, StageInput, StagePartitions
from stream_peer.kafka.worker.port import Appended, LogBounds, LogEnd, TopicPartition, WorkerContext
from stream_peer.log.changelog import ChangelogRow
from stream_peer.log.observer import NullObserver
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import LogRecord, Output
from stream_peer.settings.process import SnapshotEvery
from tests.simulation.broker import Broker, Group, Member, NewRecord
from tests.simulation.loop import Process

T = TypeVar("T")

START = 1_772_366_400_000
"""The time of day at which every simulation begins, in milliseconds."""

_REQUEST_SECONDS, _ATTEMPTS = 1.5, 12
_HEARTBEAT_SECONDS = 0.5
_TICK_SECONDS = 0.5
_LOOK_SECONDS = 2.0


class Runtime:
    """The clock and the ids of a process. ``ahead``: by how many milliseconds its time of day is wrong."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.ahead = 0
        self._ids = 0

    def now(self) -> float:
        return self._process.loop.now

    def wall(self) -> int:
        return START + int(self._process.loop.now * 1000) + self.ahead

    def fresh_id(self) -> str:
        self._ids += 1
        return f"{self._process.name}.{self._ids}"

    async def aside(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(0.01)
        return work()


class Producer:
    """An idempotent producer: every request is repeated until it is acknowledged; one at a time for a partition."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._id = broker.producer()
        self._sequences: dict[TopicPartition, int] = defaultdict(int)
        self._locks: dict[TopicPartition, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def send(self, outputs: Sequence[Output]) -> None:
        records: dict[TopicPartition, list[NewRecord]] = defaultdict(list)
        for output in outputs:
            count = self._broker.partitions[output.topic]
            partition = partition_of(output.key or b"", count) if output.partition is None else output.partition
            place = TopicPartition(output.topic, partition)
            records[place].append(NewRecord(output.timestamp, output.key, output.value, tuple(output.headers)))
        await asyncio.gather(*(self._write(tp, of_partition) for tp, of_partition in records.items()))

    async def append(self, topic: str, partition: int, rows: Sequence[ChangelogRow], timestamp: int) -> list[Appended]:
        records = [NewRecord(timestamp, row.key, row.value) for row in rows]
        return await self._write(TopicPartition(topic, partition), records)

    async def topic_ids(self, names: Iterable[str]) -> Mapping[str, str]:
        return {}

    async def _write(self, tp: TopicPartition, records: Sequence[NewRecord]) -> list[Appended]:
        # The producer's own task: it goes on if the caller is cancelled, as a client that batches would.
        return await asyncio.shield(asyncio.ensure_future(self._requests(tp, records)))

    async def _requests(self, tp: TopicPartition, records: Sequence[NewRecord]) -> list[Appended]:
        async with self._locks[tp]:
            done, start = [], 0
            while start < len(records):
                some = records[start : start + self._broker.random.choice((2, 8, 100))]
                done.append(Appended(await self._request(tp, some), len(some)))
                start += len(some)
            return done

    async def _request(self, tp: TopicPartition, records: Sequence[NewRecord]) -> int:
        broker, loop = self._broker, self._broker.loop
        sequence = self._sequences[tp]
        self._sequences[tp] += 1
        for _ in range(_ATTEMPTS):
            answer: asyncio.Future[int | None] = loop.create_future()

            def answered(base: int | None, answer: "asyncio.Future[int | None]" = answer) -> None:
                if not answer.done():
                    answer.set_result(base)

            if not broker.happens(broker.rates.lost_requests):
                loop.later(broker.latency(), broker.receive, tp, self._id, sequence, records, answered)
            timer = loop.call_later(_REQUEST_SECONDS, answered, None)
            base = await answer
            timer.cancel()
            if base is not None:
                return base
            await asyncio.sleep(0.1)
        msg = f"no acknowledgement of {tp}"
        raise BrokerUnavailableError(msg)


class Reading:
    """One reading of a log, up to an offset."""

    def __init__(self, broker: Broker, tp: TopicPartition, begin: int, end: int) -> None:
        log = broker.logs[tp]
        self.begin = log.begin
        self._broker, self._log = broker, log
        self._position, self._end = max(begin, log.begin), end

    async def batch(self) -> Sequence[LogRecord]:
        while self._position < self._end:
            await asyncio.sleep(self._broker.latency())
            found, self._position = self._log.read(self._position, self._broker.random.choice((5, 50)))
            if records := [record for record in found if record.offset < self._end]:
                return records
        return ()


class Logs:
    """Reads logs beside the consumers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @contextlib.asynccontextmanager
    async def reading(self, tp: TopicPartition, up_to: int | None, first: int = 0) -> AsyncIterator[Reading]:
        end = self._broker.logs[tp].high if up_to is None else up_to + 1
        yield Reading(self._broker, tp, first, end)


class Delivery:
    """A batch, as the consumer delivers it."""

    def __init__(self, consumer: "Consumer", tp: TopicPartition, records: Sequence[LogRecord], end: LogEnd) -> None:
        self.tp, self.records, self.end = tp, records, end
        self.is_done = False
        self._consumer = consumer

    def ack(self) -> None:
        self.is_done = True
        self._consumer.commit(self.tp)


class Unordered(frozenset[TopicPartition]):
    """Iterates in another order in every process, as sets of text may: nothing may depend on it."""

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(sorted(super().__iter__(), key=lambda tp: hash(str(tp))))


class Consumer:
    """A member of a group that fetches for a listener. See ``port.Listener`` for what it may expect."""

    def __init__(self, broker: Broker, process: Process, group: Group, ownership: Ownership) -> None:
        self._broker, self._process, self._group, self._ownership = broker, process, group, ownership
        self._assignment: frozenset[TopicPartition] = frozenset()
        self._positions: dict[TopicPartition, int] = {}
        self._seeks: dict[TopicPartition, int] = {}
        self._proof: tuple[TopicPartition, int] | None = None
        self._accepted: dict[TopicPartition, list[Delivery]] = {}
        self._is_over = asyncio.Event()

    # --- what ownership and partitions ask ---

    def assignment(self) -> frozenset[TopicPartition]:
        return self._assignment

    async def bounds(self, tps: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        await asyncio.sleep(self._broker.latency())
        found = {}
        for tp in tps:
            log = self._broker.logs[tp]
            committed = self._broker.committed.get((self._group.name, tp))
            found[tp] = LogBounds(log.begin, LogEnd(log.high, log.high), committed)
        return found

    def accept(self, delivery: Any) -> None:
        self._accepted.setdefault(delivery.tp, []).append(delivery)

    def forget(self, delivery: Any) -> None:
        waiting = self._accepted.get(delivery.tp, [])
        if delivery in waiting:
            waiting.remove(delivery)

    def admits(self, tp: TopicPartition, want: int, first: int) -> bool:
        if self._proof == (tp, want):
            return True
        self._seeks[tp] = want
        return False

    def read_again(self, tp: TopicPartition, want: int) -> None:
        self._seeks[tp] = want

    async def log_start(self, tp: TopicPartition) -> int:
        await asyncio.sleep(self._broker.latency())
        return self._broker.logs[tp].begin

    def commit(self, tp: TopicPartition) -> None:
        waiting = self._accepted.get(tp, [])
        while waiting and waiting[0].is_done:
            offset = waiting.pop(0).records[-1].offset + 1
            self._broker.loop.later(self._broker.latency(), self._committed, tp, offset, self._group.generation)

    def _committed(self, tp: TopicPartition, offset: int, generation: int) -> None:
        if generation == self._group.generation:
            self._broker.committed[self._group.name, tp] = offset

    # --- membership ---

    async def run(self) -> None:
        """Join, and serve the listener, until the process ends."""
        while True:
            self._is_over = asyncio.Event()
            self._assignment = Unordered(await self._group.join(Member(self._process, self._is_over.set)))
            self._positions, self._seeks, self._accepted = {}, {}, {}
            await self._ownership.assigned(self._assignment)
            fetching = asyncio.ensure_future(self._serve())
            await self._is_over.wait()
            await asyncio.sleep(self._broker.random.uniform(0, _HEARTBEAT_SECONDS))
            fetching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await fetching
            if self._group.has(self._process):
                await self._ownership.revoked()
            else:
                self._ownership.lost()

    async def _serve(self) -> None:
        try:
            await self._recover()
            places = await self._ownership.recovered(self)
            for tp, place in sorted(places.items()):
                self._seeks[tp] = place.want
            await self._fetch()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is
            self._ownership.failed(error)

    async def _recover(self) -> None:
        for stage in self._ownership.stages.values():
            changelog = stage.input.changelog
            for partition in stage.assigned(self._assignment) if changelog else ():
                tp = TopicPartition(str(changelog), partition)
                begin, end = self._ownership.unread(tp)
                end = self._broker.logs[tp].high if end is None else end
                reading = Reading(self._broker, tp, begin, end)
                while records := await reading.batch():
                    self._ownership.recover(tp, records)

    async def _fetch(self) -> None:
        broker = self._broker
        while True:
            await asyncio.sleep(broker.latency() + 0.02)
            for tp in sorted(self._assignment):
                sought = self._seeks.pop(tp, None)
                at = self._positions.get(tp) if sought is None else sought
                if at is None:
                    continue
                log = broker.logs[tp]
                records, self._positions[tp] = log.read(max(at, log.begin), broker.random.choice((1, 3, 10, 40)))
                if records and not broker.happens(broker.rates.lost_fetches):
                    self._proof = None if sought is None else (tp, sought)
                    await self._ownership.deliver(Delivery(self, tp, records, LogEnd(log.high, log.high)), self)


class Worker:
    """One worker: both apps, and the ticks of its clock.

    Parameters
    ----------
    broker : Broker
    process : Process
    stages : sequence of StageInput
        Of the two apps: question and control stage share a group.
    every : SnapshotEvery
    ended : callable
        Called with the error that ends the process.
    """

    def __init__(
        self,
        broker: Broker,
        process: Process,
        stages: Sequence[StageInput],
        every: SnapshotEvery,
        ended: Callable[[BaseException], None],
    ) -> None:
        self.process = process
        self.runtime = Runtime(process)
        self._producer = Producer(broker)
        self._ticker = Ticker(Signatures())
        context = WorkerContext(
            self._producer,
            NullObserver(),
            every,
            ended,
            lambda _place: None,
            asyncio.Lock(),
            Logs(broker),
            asyncio.Lock(),
            Notices(self.runtime.now),
            self.runtime,
        )
        apps = [s for s in stages if s.topic != topics.FEED_LOG], [s for s in stages if s.topic == topics.FEED_LOG]
        self.ownerships = []
        for name, inputs in zip(("question", "feed"), apps, strict=True):
            ownership = Ownership([StagePartitions(each, context) for each in inputs], ended, self._producer.topic_ids)
            group = broker.group(name, [each.topic for each in inputs])
            self.ownerships.append(ownership)
            process.spawn(Consumer(broker, process, group, ownership).run())
        process.spawn(self._tick(ended))

    async def _tick(self, ended: Callable[[BaseException], None]) -> None:
        """Write ticks for questions that only the clock can close."""
        try:
            while True:
                await asyncio.sleep(_TICK_SECONDS)
                await self._producer.send(self._ticker.due(self.ownerships[0].partitions(), self.runtime.wall()))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is
            ended(error)

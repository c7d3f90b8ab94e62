"""A worker process on the simulated broker: the product's ownership, partitions and stages, and its port to Kafka."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from stream_peer.errors import LeaseEndedError, StateError
from stream_peer.events import topics
from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.lease import NO_TERM, Lease, Right
from stream_peer.kafka.worker.monitor import HealthMonitor, StallLimits
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.ownership import Ownership, RunningApp, StageInput, StagePartitions
from stream_peer.kafka.worker.port import Appended, LogBounds, LogEnd, TopicPartition, WorkerContext, Writing
from stream_peer.kafka.worker.producer import BatchProducer, BrokerClock
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import LogRecord
from stream_peer.settings.process import SnapshotEvery
from tests.simulation.broker import (
    LARGEST_FETCH,
    REBALANCE_SECONDS,
    SESSION_SECONDS,
    Beat,
    Broker,
    Commit,
    Group,
    NewRecord,
)
from tests.simulation.loop import Process
from tests.simulation.plan import START
from tests.simulation.watch import Watch

T = TypeVar("T")

_REQUEST_SECONDS = 1.5
_HEARTBEAT_SECONDS = 0.5
_WATCH_SECONDS = 0.5
_IDLE_SECONDS = 0.1
_DEADLINES = Deadlines(silence=SESSION_SECONDS / 2, shutdown=20.0, broker=60.0)


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


class Sender:
    """An idempotent producer: every request is repeated until it is acknowledged; one at a time for a partition.

    Attributes
    ----------
    strike : callable or None
        Called once, before a request: its records were handed over, and are not sent yet.
    is_time : callable
        Takes the partition of a request, and says whether it is that one.
    groups : dict
        The groups that leases are of.
    """

    def __init__(self, broker: Broker, watch: Watch, name: str) -> None:
        self.retries = 0
        self.strike: Callable[[], None] | None = None
        self.is_time: Callable[[TopicPartition], bool] = lambda _: True
        self.groups: dict[Lease, Group] = {}
        self._watch, self._name = watch, name
        self._broker = broker
        self._ids: dict[TopicPartition, int] = defaultdict(broker.producer)
        self._sequences: dict[TopicPartition, int] = defaultdict(int)
        self._locks: dict[TopicPartition, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def produce(
        self, rows: Mapping[TopicPartition, Sequence[Writing]], lease: Lease | None = None
    ) -> list[list[Appended]]:
        tenure = None if lease is None else Tenure(lease, lease.term)
        return await asyncio.gather(*(self._write(tp, records, tenure) for tp, records in rows.items()))

    async def partitions(self, topic: str) -> int:
        return self._broker.partitions[topic]

    async def ids(self, names: Iterable[str]) -> Ids:
        return Ids("", {name: self._broker.topic_ids[name] for name in names})

    async def asked(self, names: Iterable[str]) -> Ids | None:
        return await self.ids(names)

    async def _write(self, tp: TopicPartition, rows: Sequence[Writing], tenure: "Tenure | None") -> list[Appended]:
        # A task of its own: it goes on if the caller is cancelled, as a client that batches would.
        records = [NewRecord(*row) for row in rows]
        return await asyncio.shield(asyncio.ensure_future(self._requests(tp, records, tenure)))

    async def _requests(
        self, tp: TopicPartition, records: Sequence[NewRecord], tenure: "Tenure | None"
    ) -> list[Appended]:
        async with self._locks[tp]:
            done, start = [], 0
            while start < len(records):
                some = records[start : start + self._broker.random.choice((2, 8, 100))]
                base = await self._request(tp, some, tenure)
                at = START + int(self._broker.loop.now * 1000)  # about when it was appended
                done.append(Appended(base, len(some), at))
                start += len(some)
            return done

    async def _request(self, tp: TopicPartition, records: Sequence[NewRecord], tenure: "Tenure | None") -> int:
        broker, loop = self._broker, self._broker.loop
        sequence = self._sequences[tp]
        self._sequences[tp] += 1
        while True:
            if self.strike is not None and self.is_time(tp):
                strike, self.strike = self.strike, None
                strike()
                await asyncio.sleep(0)
            await self._allowed(tp, tenure)
            if tenure is not None:
                self._watch.sent(self._name, self.groups[tenure.lease], tenure.term, tp)
            answer: asyncio.Future[int | None] = loop.create_future()
            if not broker.happens(broker.rates.lost_requests):
                answered = partial(_settle, answer)
                loop.later(broker.latency(), broker.receive, tp, self._ids[tp], sequence, records, answered)
            timer = loop.call_later(_REQUEST_SECONDS, _settle, answer, None)
            base = await answer
            timer.cancel()
            if base is not None:
                return base
            self.retries += 1
            await asyncio.sleep(0.1)

    async def _allowed(self, tp: TopicPartition, tenure: "Tenure | None") -> None:
        """Wait until the lease holds; nothing is awaited after the look that found it so."""
        while tenure is not None and (right := tenure.lease.right(tenure.term)) is not Right.HOLDS:
            if right is Right.OVER:
                self._ids[tp], self._sequences[tp] = self._broker.producer(), 0  # a sequence number is missing now
                msg = f"nothing was sent to {tp}"
                raise LeaseEndedError(msg)
            await asyncio.sleep(0.1)


class Tenure(NamedTuple):
    """The lease under which records are written, and the term in which they were handed over."""

    lease: Lease
    term: int


class Reading:
    """One reading of a log, up to an offset."""

    def __init__(self, broker: Broker, tp: TopicPartition, begin: int, end: int, seconds: float = 0.0) -> None:
        log = broker.logs[tp]
        self.begin = log.begin
        self._broker, self._log = broker, log
        self._position, self._end = max(begin, log.begin), end
        self._seconds = seconds  # of every batch, besides its way

    async def batch(self) -> Sequence[LogRecord]:
        while self._position < self._end:
            await asyncio.sleep(self._broker.latency() + self._seconds)
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
        end = self._broker.logs[tp].stable if up_to is None else up_to + 1
        yield Reading(self._broker, tp, first, end, self._broker.rates.rebuild_seconds)


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

    def __init__(
        self, broker: Broker, watch: Watch, process: Process, group: Group, ownership: Ownership, lease: Lease
    ) -> None:
        self._broker, self._process, self._group, self._ownership = broker, process, group, ownership
        self._watch, self._lease = watch, lease
        self.beats = False  # a heartbeat is under way
        self.strike: Callable[[], None] | None = None  # called once: its fencing tokens are written, nothing is read
        self._generation = NO_TERM
        self._terms, self._is_settled = 0, False
        lease.follow(lambda: self._generation)
        self._assignment: frozenset[TopicPartition] = frozenset()
        self._positions: dict[TopicPartition, int] = {}
        self._seeks: dict[TopicPartition, int] = {}
        self._proof: tuple[TopicPartition, int] | None = None
        self._sought: dict[TopicPartition, int] = {}
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
            commit = self._broker.committed.get((self._group.name, tp), ())
            found[tp] = LogBounds(log.begin, LogEnd(log.high, log.stable), *commit)
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

    async def end_now(self, tp: TopicPartition) -> int:
        await asyncio.sleep(self._broker.latency())
        return self._broker.logs[tp].high

    def commit(self, tp: TopicPartition) -> None:
        waiting = self._accepted.get(tp, [])
        while waiting and waiting[0].is_done:
            offset = waiting.pop(0).records[-1].offset + 1
            self._watch.committed(tp, offset)
            self._broker.loop.later(self._broker.latency(), self._committed, tp, offset, self._generation)

    def _committed(self, tp: TopicPartition, offset: int, generation: int) -> None:
        if generation == self._group.generation:
            self._broker.committed[self._group.name, tp] = Commit(offset, self._broker.topic_ids[tp.topic])

    # --- what the monitor asks: it is a `GroupMember`, and its own position ---

    address, is_started = "", True

    @property
    def group(self) -> str:
        return self._group.name

    @property
    def rebalances(self) -> int:
        return self._terms

    @property
    def is_settled(self) -> bool:
        return self._is_settled

    @property
    def is_member(self) -> bool:
        return self._generation != NO_TERM

    @property
    def position(self) -> "Consumer":
        return self

    def remaining(self) -> Mapping[TopicPartition, int]:
        return {}

    def owners(self, topic: str) -> Mapping[int, str]:
        return {}

    def log_end(self, tp: TopicPartition) -> LogEnd | None:
        log = self._broker.logs[tp]
        return LogEnd(log.high, log.stable)

    async def position_of(self, tp: TopicPartition) -> int | None:
        await asyncio.sleep(0)
        return self._positions.get(tp)

    def found_nothing(self, tp: TopicPartition, want: int) -> bool:
        return self._sought.get(tp) == want

    def pass_over(self, tp: TopicPartition, end: int) -> None:
        self._watch.committed(tp, end)
        self._broker.loop.later(self._broker.latency(), self._committed, tp, end, self._generation)

    # --- membership ---

    async def run(self) -> None:
        """Join, and serve the listener, until the process ends."""
        while True:
            self._is_over = asyncio.Event()
            self._lease.joins()
            asked = self._broker.loop.now
            self._generation, share = await self._group.join(self._process)
            self._lease.joined(asked)
            self._assignment = Unordered(share)
            self._positions, self._seeks, self._sought, self._accepted = {}, {}, {}, {}
            self._terms += 1
            beating = asyncio.ensure_future(self._beat())
            fetching = asyncio.ensure_future(self._take_over_and_serve())
            await self._is_over.wait()
            self._is_settled = False
            await _ended(fetching)
            await self._ownership.revoked()
            self._ownership.lost()
            await _ended(beating)

    async def _beat(self) -> None:
        """Heartbeats, which show whether the generation is over."""
        loop = self._broker.loop
        while self._generation != NO_TERM:
            sent, answer = loop.now, loop.create_future()
            loop.later(self._broker.latency(), self._beat_comes, self._generation, answer)
            timer = loop.call_later(_REQUEST_SECONDS, _settle, answer, None)
            self.beats = True
            said = await answer
            self.beats = False
            timer.cancel()
            if said in (Beat.WELL, Beat.REBALANCES):
                self._lease.answered(sent, self._generation, rebalances=said is Beat.REBALANCES)
            if said is Beat.UNKNOWN:
                self._generation = NO_TERM
            if said in (Beat.UNKNOWN, Beat.REBALANCES):
                self._is_over.set()
            await asyncio.sleep(_HEARTBEAT_SECONDS)

    def _beat_comes(self, generation: int, answer: "asyncio.Future[Beat | None]") -> None:
        if self._broker.reaches_coordinator(self._process):
            said = self._group.beat(self._process, generation)
            self._broker.loop.later(self._broker.latency(), _settle, answer, said)

    async def _take_over_and_serve(self) -> None:
        try:
            await self._ownership.assigned(self._assignment)
        except LeaseEndedError:
            return
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is
            self._ownership.failed(error)
        await self._serve()

    async def _serve(self) -> None:
        try:
            await self._recover()
            places = await self._ownership.recovered(self)
            for tp, place in sorted(places.items()):
                self._seeks[tp] = place.want
            self._is_settled = True
            await self._fetch()
        except LeaseEndedError:
            return
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is
            self._ownership.failed(error)

    async def _recover(self) -> None:
        if self.strike is not None:
            strike, self.strike = self.strike, None
            strike()
            await asyncio.sleep(0)
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
        broker, places, pause = self._broker, sorted(self._assignment), 0.0
        while True:
            await asyncio.sleep(broker.latency() + pause)
            pause = _IDLE_SECONDS
            for tp in places:
                sought = self._seeks.pop(tp, None)
                at = self._positions.get(tp) if sought is None else sought
                if at is None:
                    continue
                if sought is not None:
                    self._sought[tp] = sought
                log = broker.logs[tp]
                records, self._positions[tp] = log.read(
                    max(at, log.begin), broker.random.choice((1, 3, 10, LARGEST_FETCH))
                )
                if records:
                    pause = 0.0
                    self._sought.pop(tp, None)
                if records and not broker.happens(broker.rates.lost_fetches):
                    self._proof = None if sought is None else (tp, sought)
                    await self._ownership.deliver(Delivery(self, tp, records, LogEnd(log.high, log.stable)), self)


def _settle(answer: "asyncio.Future[T]", result: T) -> None:
    if not answer.done():
        answer.set_result(result)


async def _ended(task: "asyncio.Future[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class Worker:
    """One worker: both apps, and the monitor, which writes the ticks of its clock.

    Parameters
    ----------
    broker : Broker
    watch : Watch
    process : Process
    stages : sequence of StageInput
        Of the two apps: feed and control stage share a group.
    every : SnapshotEvery
    ended : callable
        Called with the error that ends the process.
    """

    def __init__(
        self,
        broker: Broker,
        watch: Watch,
        process: Process,
        stages: Sequence[StageInput],
        every: SnapshotEvery,
        ended: Callable[[BaseException], None],
    ) -> None:
        self.process = process
        self.runtime = Runtime(process)
        self._heartbeats = Heartbeats(_DEADLINES, self.runtime.now)
        self._ended = ended
        clock = BrokerClock(self.runtime.now)
        self.sender = Sender(broker, watch, process.name)
        producer = BatchProducer(self.sender, str, self._heartbeats, clock=clock)
        context = WorkerContext(
            producer,
            watch,
            every,
            ended,
            lambda _place: None,
            asyncio.Lock(),
            Logs(broker),
            asyncio.Lock(),
            Notices(self.runtime.now),
            self.runtime,
        )
        questions = [each for each in stages if each.topic == topics.FORECAST_EVENTS]
        feeds = [each for each in stages if each.topic != topics.FORECAST_EVENTS]
        self.apps: list[RunningApp] = []
        self.consumers: list[Consumer] = []
        for name, inputs in (("question", questions), ("feed", feeds)):
            lease = Lease(SESSION_SECONDS, REBALANCE_SECONDS, self.runtime.now)
            under = context.under(lease)
            ownership = Ownership([StagePartitions(each, under) for each in inputs], ended, under.producer)
            group = broker.group(name, [each.topic for each in inputs])
            self.sender.groups[lease] = group
            consumer = Consumer(broker, watch, process, group, ownership, lease)
            self.consumers.append(consumer)
            self.apps.append(RunningApp(consumer, ownership))
            process.spawn(consumer.run())
        stalls = StallLimits(SESSION_SECONDS, REBALANCE_SECONDS, _DEADLINES.broker)
        monitor = HealthMonitor(self.apps, producer, self._heartbeats, stalls, Signatures(), context, clock)
        process.spawn(self._look(monitor))
        process.spawn(self._watch())

    async def _look(self, monitor: HealthMonitor) -> None:
        try:
            await monitor.look()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is
            self._ended(error)

    async def _watch(self) -> None:
        """As the watchdog does, but that a process which was frozen goes on."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            self._heartbeats.beat()
            self._heartbeats.broker_answered()
            if (fault := self._heartbeats.fault()) is not None:
                self._ended(StateError(fault.reason))

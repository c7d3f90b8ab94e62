"""Beside folding: the heartbeat of the event loop, progress, lag, open transactions, clock skew and ticks."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import structlog

from stream_peer.events import topics
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.kafka.worker.health import TOLD_AFTER_SECONDS
from stream_peer.kafka.worker.heartbeats import Heartbeats
from stream_peer.kafka.worker.ownership import QUESTION, RunningApp
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.port import FetchPosition, GroupMember, LogEnd, TopicPartition, WorkerContext
from stream_peer.kafka.worker.producer import BatchProducer, BrokerClock
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output, Timed

log = structlog.get_logger(__name__)


class _Wait(NamedTuple):
    stable: int
    since: float
    is_told: bool = False


class OpenTransactions:
    """Since when partitions wait, and a line of the log at the beginning and the end of a wait."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waits: dict[TopicPartition, _Wait] = {}

    def look(self, tp: TopicPartition, end: LogEnd | None, *, has_read: bool) -> float | None:
        """How many seconds a partition has waited for the same transaction; None: it does not wait.

        Parameters
        ----------
        tp : TP
        end : LogEnd or None
            As the last fetch said.
        has_read : bool
            Whether it has read up to the last stable offset.
        """
        known = self._waits.get(tp)
        if end is None or not (has_read and end.holds_open_transaction):
            self._end(tp, known)
            return None
        if known is None or known.stable != end.stable:  # another transaction
            self._end(tp, known)
            known = _Wait(end.stable, self._clock())
        seconds = self._clock() - known.since
        if seconds >= TOLD_AFTER_SECONDS and not known.is_told:
            behind = end.high - end.stable
            log.warning(
                "waiting_for_transaction", topic=tp.topic, partition=tp.partition, offset=end.stable, behind=behind
            )
            known = known._replace(is_told=True)
        self._waits[tp] = known
        return seconds

    def retain(self, places: set[TopicPartition]) -> None:
        """Forget all other partitions: they are not this worker's any more."""
        self._waits = {tp: wait for tp, wait in self._waits.items() if tp in places}

    def _end(self, tp: TopicPartition, known: _Wait | None) -> None:
        self._waits.pop(tp, None)
        if known is not None and known.is_told:
            seconds = round(self._clock() - known.since, 1)
            log.info("transaction_ended", topic=tp.topic, partition=tp.partition, offset=known.stable, seconds=seconds)


_SETTLED_SECONDS = 5.0  # after which a fetch from the wanted offset would have brought what is there
_AGAIN_SECONDS = 10.0


class Lag(NamedTuple):
    """What is not folded yet of what can be read.

    ``position``: where the consumer is while nothing waits to be folded. It moves as long as it reads, also through
    aborted records, of which nothing comes.
    """

    records: int
    position: int | None = None


class _Sought(NamedTuple):
    want: int
    end: int
    first: float
    last: float
    is_empty: bool = False


class Lags:
    """Lag by partition. Where only another read shows whether records are missing, it asks for one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sought: dict[TopicPartition, _Sought] = {}

    async def of(self, partition: OwnedPartition, end: LogEnd | None, consumer: FetchPosition) -> Lag:
        """How far the partition is behind the last stable offset of its log."""
        lag = 0 if end is None else max(0, end.stable - partition.reached)
        if end is None or not (lag and partition.idle):
            self._sought.pop(partition.tp, None)
            return Lag(lag)
        position = await consumer.position_of(partition.tp)
        if position is None:  # revoked meanwhile
            return Lag(0)
        return Lag(lag, position) if position < end.stable else self._past_the_end(partition, end.stable, lag, consumer)

    def _past_the_end(self, partition: OwnedPartition, end: int, lag: int, consumer: FetchPosition) -> Lag:
        """Nothing comes up to the end: because there is no record, or because it got lost on the way."""
        at, tp, want = self._clock(), partition.tp, partition.want
        known = self._sought.get(tp)
        if known is None or (known.want, known.end) != (want, end):
            known = _Sought(want, end, at, float("-inf"))
        found_nothing = consumer.found_nothing(tp, want)
        if found_nothing and known.is_empty:  # in two looks: what was fetched at the first has arrived at the second
            partition.pass_over(end)
            if partition.covered or not partition.has_state:  # a group ahead of no state looks like a lost changelog
                consumer.pass_over(tp, end)
            lag = 0
        elif not found_nothing and at - known.last > _AGAIN_SECONDS:
            consumer.read_again(tp, want)
            known = known._replace(last=at)
        self._sought[tp] = known._replace(is_empty=found_nothing)
        return Lag(0 if at - known.first > _SETTLED_SECONDS else lag)


_AGAIN_AFTER: Milliseconds = (
    30_000  # a tick that did not move the clock was ignored: our clock is ahead of the broker's
)


class Ticker:
    """Remembers which ticks are under way, so that each deadline is met once."""

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._written: dict[int, Milliseconds] = {}

    def due(self, partitions: Iterable[OwnedPartition], at: Milliseconds) -> list[Output]:
        """Ticks to write now, at the time ``at``, for partitions that have read all there is."""
        return [self._tick(partition, at) for partition in partitions if self._is_due(partition, at)]

    def _is_due(self, partition: OwnedPartition, at: Milliseconds) -> bool:
        stage, last = partition.stage, self._written.get(partition.tp.partition, 0)
        if not isinstance(stage, Timed):
            return False
        deadline = stage.deadline()
        if deadline is None or deadline > at or stage.clock >= at:
            return False
        is_corrected = at < last  # the time of the tick under way was too late, and is ignored
        return is_corrected or at >= last + _AGAIN_AFTER or stage.clock >= last

    def _tick(self, partition: OwnedPartition, at: Milliseconds) -> Output:
        number = partition.tp.partition
        self._written[number] = at
        value = msgspec.json.encode({"type": "tick", "now": to_iso(at)})
        return self._signatures.signed(Output(topics.FORECAST_EVENTS, b"tick", value, at, number))


_ASK_SECONDS = 3.0
_BEAT_SECONDS = 0.05
_LOOK_SECONDS = 0.5


class StallLimits:
    """How long work may stand still, in seconds."""

    def __init__(self, session: float, rebalance_timeout: float, broker_patience: float) -> None:
        self.folding = max(session / 2, 10.0)
        self.rebuilding = self.folding + broker_patience  # nothing comes from a log whose broker is away
        self.joining = session + rebalance_timeout + 30.0


class HealthMonitor:
    """Runs while the apps do.

    ``signatures`` sign ticks. ``clock`` tells the brokers' time.
    """

    def __init__(
        self,
        apps: Sequence[RunningApp],
        producer: BatchProducer,
        heartbeats: Heartbeats,
        stalls: StallLimits,
        signatures: Signatures,
        context: WorkerContext,
        clock: BrokerClock,
    ) -> None:
        self._apps = apps
        self._producer = producer
        self._heartbeats = heartbeats
        self._stalls = stalls
        self._ticker = Ticker(signatures)
        self._lags = Lags(context.runtime.now)
        self._transactions = OpenTransactions(context.runtime.now)
        self._wall = context.runtime.wall
        self._clock = clock
        self._retries = 0
        self._observer = context.observer
        self._notices = context.notices

    def stop(self) -> None:
        """Log what was left out of the log."""
        self._notices.close(all_of_them=True)

    async def beat(self) -> None:
        """Show the watchdog that the event loop turns."""
        while True:
            self._heartbeats.beat()
            await asyncio.sleep(_BEAT_SECONDS)

    async def ask_broker(self) -> None:
        """Show the watchdog that a broker answers."""
        pause = min(self._heartbeats.deadlines.broker / 10, _ASK_SECONDS)
        while True:
            if await self._producer.answers():
                self._heartbeats.broker_answered()
            await asyncio.sleep(pause)

    async def look(self) -> None:
        """Look at all partitions: progress, lag, open transactions, ticks that are due."""
        while True:
            names: set[str] = set()
            places: set[TopicPartition] = set()
            caught_up: list[OwnedPartition] = []
            for app in self._apps:
                if app.member.is_started:
                    names |= self._look_at_joining(app, places) | self._look_at_membership(app.member)
                    for partition in app.ownership.partitions() if app.member.is_settled else ():
                        names.add(await self._look_at(app.member.position, partition, caught_up))
                        places.add(partition.tp)
            self._heartbeats.retain(names)
            self._transactions.retain(places)
            self._tell_of_clients()
            ticks = self._ticker.due(caught_up, self._clock.time() or self._wall())
            await self._producer.send(ticks)
            self._notices.close()
            await asyncio.sleep(_LOOK_SECONDS)

    def _tell_of_clients(self) -> None:
        brokers = self._clock.time()
        self._observer.skewed(None if brokers is None else (self._wall() - brokers) / 1000)
        if self._producer.retries > self._retries:
            self._observer.retried(self._producer.retries - self._retries)
            self._retries = self._producer.retries

    async def _look_at(
        self, consumer: FetchPosition, partition: OwnedPartition, caught_up: list[OwnedPartition]
    ) -> str:
        end = consumer.log_end(partition.tp)
        lag, position = await self._lags.of(partition, end, consumer)
        has_read = lag == 0 and partition.idle
        partition.waiting = self._transactions.look(partition.tp, end, has_read=has_read)
        place = partition.stage_name, partition.tp.partition
        self._observer.lag(*place, None if end is None else lag, partition.oldest, partition.waiting or 0.0)
        if has_read and partition.stage_name == QUESTION:
            caught_up.append(partition)
        name = f"{partition.stage_name} {partition.tp.partition}"
        rebuild = partition.rebuilding
        if rebuild is None:
            self._heartbeats.progress(name, (partition.progress_token, position) if lag else None, self._stalls.folding)
        else:
            self._heartbeats.progress(
                name, partition.progress_token if rebuild.total else None, self._stalls.rebuilding
            )
        return name

    def _look_at_membership(self, member: GroupMember) -> set[str]:
        """A client that is in no group any more, and does not come back, will never be given work again."""
        name = f"{member.group} coming back into its group"
        is_out = member.is_settled and not member.is_member
        self._heartbeats.progress(name, member.rebalances if is_out else None, self._stalls.joining)
        return {name}

    def _look_at_joining(self, app: RunningApp, places: set[TopicPartition]) -> set[str]:
        """A rebalance or recovery that does not move on is fatal, unless a changelog holds an open transaction."""
        member, ownership = app
        if member.is_settled:
            return set()
        name = f"{member.group} joining"
        remaining = member.remaining()
        places |= set(remaining)
        waits = [tp for tp, records in remaining.items() if self._waits_in_recovery(member.position, tp, records)]
        token = member.rebalances, tuple(sorted(remaining.items()))
        self._heartbeats.progress(name, None if waits else token, self._stalls.joining)
        for tp, records in remaining.items():
            self._observer.recovering(ownership.stage_name_of(tp.topic), tp.partition, max(0, records))
        return {name}

    def _waits_in_recovery(self, consumer: FetchPosition, changelog: TopicPartition, records: int) -> bool:
        """Whether records up to our fencing token are still unread, and some of them follow an open transaction."""
        return self._transactions.look(changelog, consumer.log_end(changelog), has_read=records > 0) is not None

"""The port between the work on partitions and Kafka: what is asked of a broker. ``faust_bridge`` implements it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, Self, TypeVar

from stream_peer.events.times import Milliseconds
from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker.lease import Lease
from stream_peer.log.changelog import ChangelogRow
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Headers, Output, Record, Warned
from stream_peer.settings.process import SnapshotEvery

_T = TypeVar("_T")


class TopicPartition(NamedTuple):
    """A partition of a topic by its physical name. It equals the tuples of Faust and aiokafka, and hashes as they."""

    topic: str
    partition: int


Writing = tuple[Milliseconds, bytes | None, bytes | None, Headers]
"""A record about to be written: timestamp, key, value, headers."""


class Appended(NamedTuple):
    """Where a run of records was put; ``base`` is -1 if the broker did not say.

    ``at``: the time that the broker gave to them; None if the topic keeps the time of who wrote them.
    """

    base: int
    rows: int
    at: Milliseconds | None = None


class LogEnd(NamedTuple):
    """Two ends of one log, each an offset that is not included.

    Attributes
    ----------
    high : int
        The high watermark: behind the last record, whatever becomes of its transaction. It tells whether a log became
        shorter.
    stable : int
        The last stable offset: before it every transaction has ended. A reader of committed records gets no further,
        so lag and progress are measured up to it.
    """

    high: int
    stable: int

    @property
    def holds_open_transaction(self) -> bool:
        """Whether records lie behind a transaction that has not ended."""
        return self.stable < self.high


def log_end(high: int | None, stable: int | None) -> LogEnd | None:
    """What a fetch said of a log; None: nothing was fetched yet. ``stable`` None or < 0: the broker does not say."""
    if high is None:
        return None
    return LogEnd(high, high if stable is None or stable < 0 else min(high, stable))


class Delivery(Protocol):
    """Records of one partition as the consumer delivers them, in order; offsets may have gaps."""

    @property
    def tp(self) -> TopicPartition:
        """Whose records."""

    @property
    def records(self) -> Sequence[Record]:
        """At least one."""

    @property
    def end(self) -> LogEnd | None:
        """Where the log ended at the last fetch; None: not known."""

    def ack(self) -> None:
        """Say that the durable state covers all of its records."""


class LogBounds(NamedTuple):
    """One partition of an input as the broker describes it.

    ``first``: the first offset that is still there; ``committed``: the group's offset, None if it has none;
    ``committed_of``: the id of the topic that it was committed of, empty if it names none.
    """

    first: int
    end: LogEnd
    committed: int | None = None
    committed_of: str = ""


class BatchSource(Protocol):
    """The consumer, as a partition sees it: it fetches, and seeks when it is asked to."""

    def accept(self, delivery: Delivery) -> None:
        """Queue it for the commit, in the order of the log."""

    def forget(self, delivery: Delivery) -> None:
        """Take note that it will not be processed, so that nothing waits for it."""

    def admits(self, tp: TopicPartition, want: int, first: int) -> bool:
        """Whether it is proven that nothing lies between; else a seek to ``want`` is asked for."""

    def read_again(self, tp: TopicPartition, want: int) -> None:
        """Seek to ``want``: records behind it were dropped."""

    async def log_start(self, tp: TopicPartition) -> int:
        """The first offset that the broker still has."""

    async def end_now(self, tp: TopicPartition) -> int:
        """Where a log ends now, be it assigned or not: the offset behind its last record."""


class Assigned(BatchSource, Protocol):
    """The consumer, as ownership sees it."""

    def assignment(self) -> Set[TopicPartition]:
        """All partitions that the group gives to this worker now, those of changelogs too."""

    async def bounds(self, tps: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        """Where logs begin and end, and what the group has committed."""


class FetchPosition(Protocol):
    """The consumer, as the monitor sees it."""

    def log_end(self, tp: TopicPartition) -> LogEnd | None:
        """Where a log ended at the last fetch; None: not known."""

    async def position_of(self, tp: TopicPartition) -> int | None:
        """The offset that is fetched next; None: the partition is not assigned, or nothing is known within 2 s."""

    def found_nothing(self, tp: TopicPartition, want: int) -> bool:
        """Whether it was read again from ``want``, and no record has come since."""

    def read_again(self, tp: TopicPartition, want: int) -> None:
        """Seek to ``want``."""

    def pass_over(self, tp: TopicPartition, end: int) -> None:
        """Commit ``end``, before which there is no further record."""


class StartPlace(NamedTuple):
    """Where an input is read from; ``covered``: the group's offset from now on, None if it stays as it is."""

    want: int
    covered: int | None


class Unread(NamedTuple):
    """The part of a changelog that recovery is still to read; ``end`` None: up to its end."""

    begin: int
    end: int | None


class Listener(Protocol):
    """What a bridge calls of the work on partitions, and nothing else.

    A term is: `assigned`; `recover` until all that is `unread` was read; `recovered`; `deliver`; `revoked` or `lost`.
    A term may end after each of these calls, and the next one begins with `assigned`. A process that ends calls none
    of them: everything must be right when it is killed at any moment.
    """

    async def assigned(self, tps: Iterable[TopicPartition]) -> None:
        """Release what was owned, and write fencing tokens for ``tps``: all that the group assigns.

        No recovery begins before it returns.
        """

    def unread(self, changelog: TopicPartition) -> Unread:
        """What recovery is to read."""

    def recover(self, changelog: TopicPartition, records: Iterable[Record]) -> None:
        """Read records of a changelog, in order."""

    async def recovered(self, source: Assigned) -> Mapping[TopicPartition, StartPlace]:
        """Own every assigned partition whose recovery has met its fencing token; return where they are read from."""

    async def deliver(self, delivery: Delivery, source: BatchSource) -> None:
        """Take a batch; return when there is room for the next."""

    async def revoked(self) -> Mapping[TopicPartition, int]:
        """Make durable what was folded, and end all partitions; return up to where each one's state reaches."""

    def lost(self) -> None:
        """End all partitions at once. What is not durable is dropped: the next owner reads it again."""

    def failed(self, error: BaseException) -> None:
        """End the process: the library that calls would only log the error."""


class GroupMember(Protocol):
    """A client in a consumer group, as the probes, the monitor and the search for owners see it."""

    @property
    def group(self) -> str:
        """The id of the group."""

    @property
    def address(self) -> str:
        """The address that it advertises to the other members."""

    @property
    def is_started(self) -> bool:
        """Whether it has a consumer."""

    @property
    def rebalances(self) -> int:
        """How many it has seen."""

    @property
    def is_settled(self) -> bool:
        """Whether no rebalance or recovery is under way, and there was one."""

    @property
    def is_member(self) -> bool:
        """Whether it is in its group, as far as the client knows: it may have been expelled, or have given up."""

    @property
    def position(self) -> FetchPosition:
        """Its consumer, once it is started."""

    def assignment(self) -> Set[TopicPartition]:
        """All partitions that the group gives to it now."""

    def remaining(self) -> Mapping[TopicPartition, int]:
        """How many records of changelogs recovery is still to read."""

    def owners(self, topic: str) -> Mapping[int, str]:
        """The address of each partition's owner, as the group's leader told all members."""


class BoundedLog(Protocol):
    """A log that is read from its start, up to an offset."""

    @property
    def begin(self) -> int:
        """The first offset that the broker still has."""

    async def batch(self) -> Sequence[Record]:
        """The next records, in order; none: that was all."""


class Logs(Protocol):
    """Reads logs beside the consumers of the apps."""

    def reading(self, tp: TopicPartition, up_to: int | None, first: int = 0) -> AbstractAsyncContextManager[BoundedLog]:
        """Read a partition from ``first`` or its start up to ``up_to`` or its end, included; closed in every case."""


class RecordWriter(Protocol):
    """Writes records to partitions."""

    @property
    def retries(self) -> int:
        """How often a batch was sent once more, because a broker did not take it."""

    async def produce(
        self, rows: Mapping[TopicPartition, Sequence[Writing]], lease: Lease | None = None
    ) -> list[list[Appended]]:
        """Write in order per partition; return when all are acknowledged: for each partition, where they were put.

        Each request is sent only while the lease holds. Without a lease (None) it is always sent: for records that do
        no harm if the partitions have another owner.

        Raises
        ------
        LeaseEndedError
            If the term in which this was called is over. What was not sent by then is not written.
        """

    async def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""

    async def ids(self, names: Iterable[str]) -> Ids:
        """The ids of the cluster and of topics."""

    async def asked(self, names: Iterable[str]) -> Ids | None:
        """The ids that a broker gives to its cluster and topics now; None: no broker answers."""


class Producing(Protocol):
    """The producer, as partitions and ownership see it: it writes under their lease."""

    async def send(self, outputs: Sequence[Output]) -> None:
        """Write outputs and wait for all acknowledgements.

        Raises
        ------
        LeaseEndedError
            If others own the partitions by now.
        """

    async def append(self, topic: str, partition: int, rows: Sequence[ChangelogRow], timestamp: int) -> list[Appended]:
        """Write rows and say where they were put.

        Raises
        ------
        LeaseEndedError
            If others own the partitions by now.
        """

    def under(self, lease: Lease) -> Self:
        """The same producer, which writes under this lease."""

    async def hold(self) -> None:
        """Wait until the lease holds.

        Raises
        ------
        LeaseEndedError
            If others own the partitions by now.
        """

    async def topic_ids(self, names: Iterable[str]) -> Mapping[str, str]:
        """The broker's ids of topics by name, as far as there are any."""


class Noticing(Protocol):
    """Logs what a stage warns of."""

    def note(self, warnings: Iterable[Warned]) -> None:
        """Log them, without flooding."""

    def note_refused(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Note how many events were refused, by kind and reason."""

    def note_unused(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Log what became of forecasts that are not used as stated, by feed and kind."""

    def note_unknown(self, fields: Iterable[tuple[str, str]]) -> None:
        """Log fields of events that their type does not have, by feed and field."""

    def note_busy(self, experts: Iterable[tuple[str, str]]) -> None:
        """Log experts that send more forecasts of a question than are kept."""

    def close(self, *, all_of_them: bool = False) -> None:
        """Say what was left out of the log lately; at the end, ever since."""


class Runtime(Protocol):
    """Time, chance and threads of the process; no file above the port asks the operating system for them."""

    def now(self) -> float:
        """Seconds on a clock that neither steps nor stops while a machine is suspended."""

    def wall(self) -> Milliseconds:
        """The time of day as the machine believes it. It may jump: for timestamps only, never for durations."""

    def fresh_id(self) -> str:
        """An id that no other call of any process returns."""

    async def aside(self, work: Callable[[], _T]) -> _T:
        """Compute something long while the event loop serves others; nothing may change what ``work`` reads."""


class WorkerContext(NamedTuple):
    """What all partitions of a worker share.

    ``turn`` is held while one of them steps through records; ``rebuilds`` while one of them is rebuilt, since its state
    is in memory twice meanwhile.
    """

    producer: Producing
    observer: Observer
    every: SnapshotEvery
    fail: Callable[[BaseException], None]
    fault: Callable[[str], None]
    turn: asyncio.Lock
    logs: Logs
    rebuilds: asyncio.Lock
    notices: Noticing
    runtime: Runtime

    def under(self, lease: Lease) -> Self:
        """The same, for the partitions of a group's member: everything that they write is under its lease."""
        return self._replace(producer=self.producer.under(lease))

    def start(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Start a task, which its caller owns and cancels. An error in it ends the process: state may be half done."""
        return asyncio.ensure_future(self._watched(work))

    async def _watched(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is
            self.fail(error)

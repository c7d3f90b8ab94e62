"""Everything that this worker overrides in Faust, mode and aiokafka, or relies on there, with the reason beside it.

In this order: the private names that are relied on, checked at start; the assignor; the table, of which only recovery
is used; heartbeats, which renew a lease and name an instance; the client's thread; the consumer; the app; the writer;
the process; what all clients share; the reader of a log.
Of the rest of ``kafka.worker`` ``worker`` assembles this, ``feed_owners`` asks it for the members of a group, and all
else meets Kafka through ``port`` only, which rules of the import linter enforce.
"""

import asyncio
import contextlib
import copy
import importlib.util
import inspect
import json
import math
import re
import signal
import time
import uuid
import zlib
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import faust
import mode
import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as ClientPartition
from aiokafka import errors as kafka
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import READ_UNCOMMITTED, Fetcher, FetchResult, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.producer.message_accumulator import MessageAccumulator, MessageBatch
from aiokafka.producer.sender import Sender, SendProduceReqHandler
from aiokafka.producer.transaction_manager import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, PidAndEpoch, TransactionManager
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.types import Int16, Int32, Schema, String
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import OffsetAndMetadata
from faust.assignor.partition_assignor import PartitionAssignor
from faust.tables import TableManager
from faust.tables.recovery import Recovery
from faust.transport.consumer import Consumer
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from mode import Service
from yarl import URL

from stream_peer.errors import (
    BrokerUnavailableError,
    LeaseEndedError,
    RecordTooLargeError,
    SharedInstanceError,
    StateError,
    StreamPeerError,
    TopicsError,
    out_of_memory,
)
from stream_peer.events.times import YEAR_2000, to_iso
from stream_peer.events.topics import MAX_RECORD_BYTES
from stream_peer.kafka.client.method_in_force import with_served
from stream_peer.kafka.client.read import AnyNames
from stream_peer.kafka.client.security import ISOLATION, read_token, security_options, token_file
from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker.heartbeats import Heartbeats
from stream_peer.kafka.worker.lease import EXPELLED, Lease, Right
from stream_peer.kafka.worker.port import (
    Appended,
    Delivery,
    Listener,
    LogBounds,
    LogEnd,
    TopicPartition,
    Writing,
    log_end,
)
from stream_peer.kafka.worker.process import leave, now
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Headers, Record
from stream_peer.settings.process import Security, Settings

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

# Private names with the signatures that are known. The versions are pinned; this finds an installation that ignores the
# pin, or lacks the compiled stream iterator, whose Python twin acknowledges messages that it skips.

COMPILED = "faust._cython.streams"

METHODS = {
    (Consumer, "getmany"): ("self", "timeout"),
    (Consumer, "_wait_next_records"): ("self", "timeout"),
    (Consumer, "_new_offset"): ("self", "tp"),
    (Consumer, "_add_gap"): ("self", "tp", "offset_from", "offset_to"),
    (Consumer, "_is_changelog_tp"): ("self", "tp"),
    (Consumer, "on_partitions_revoked"): ("self", "revoked"),
    (Consumer, "on_partitions_assigned"): ("self", "assigned", "generation_id"),
    (Consumer, "wait_empty"): ("self",),
    (Consumer, "perform_seek"): ("self",),
    (Consumer, "verify_event_path"): ("self", "now", "tp"),
    (driver.Consumer, "_new_consumer_thread"): ("self",),
    (driver.AIOKafkaConsumerThread, "on_thread_stop"): ("self",),
    (driver.AIOKafkaConsumerThread, "_create_worker_consumer"): ("self", "transport"),
    (Fetcher, "end_offsets"): ("self", "partitions", "timeout_ms"),
    (FetchResult, "getall"): ("self", "max_records"),
    (PartitionRecords, "_consumer_record"): ("self", "tp", "record"),
    (driver.Consumer, "_getmany"): ("self", "active_partitions", "timeout"),
    (driver.Consumer, "seek_wait"): ("self", "partitions"),
    (driver.Consumer, "earliest_offsets"): ("self", "partitions"),
    (driver.Consumer, "highwaters"): ("self", "partitions"),
    (Recovery, "active_remaining"): ("self",),
    (TableManager, "on_start"): ("self",),
    (TableManager, "_update_channels"): ("self",),
    (mode.Worker, "_sentinel_task"): ("self",),
    (AIOKafkaClient, "send"): ("self", "node_id", "request", "group"),
    (faust.App, "_create_directories"): ("self",),
    (PartitionAssignor, "on_assignment"): ("self", "assignment"),
    (PartitionAssignor, "metadata"): ("self", "topics"),
    (PartitionAssignor, "external_topics_metadata"): ("self",),
    (GroupCoordinator, "_coordination_routine"): ("self",),
    (GroupCoordinator, "commit_offsets"): ("self", "assignment", "offsets"),
    (GroupCoordinator, "fetch_committed_offsets"): ("self", "partitions"),
    (GroupCoordinator, "_maybe_leave_group"): ("self",),
    (GroupCoordinator, "close"): ("self",),
    (GroupCoordinator, "_do_heartbeat"): ("self",),
    (GroupCoordinator, "_send_req"): ("self", "request"),
    (GroupCoordinator, "_start_heartbeat_task"): ("self",),
    (GroupCoordinator, "_on_join_complete"): (
        "self",
        "generation",
        "member_id",
        "protocol",
        "member_assignment_bytes",
    ),
    (AIOKafkaProducer, "create_batch"): ("self",),
    (AIOKafkaProducer, "send_batch"): ("self", "batch", "topic", "partition"),
    (MessageAccumulator, "reenqueue"): ("self", "batch"),
    (Sender, "_send_produce_req"): ("self", "node_id", "batches"),
    (SendProduceReqHandler, "do"): ("self", "node_id"),
    (_DefaultRecordBatchPy, "_maybe_uncompress"): ("self",),
}
ATTRIBUTES: dict[type[Any], tuple[str, ...]] = {
    Consumer: (
        "_acked",
        "_acked_index",
        "_buffered_partitions",
        "_committed_offset",
        "_read_offset",
        "_unacked_messages",
        "flow_active",
        "can_resume_flow",
    ),
    AIOKafkaClient: ("_conns",),
    AIOKafkaConnection: ("_requests",),
    AIOKafkaConsumer: ("_client", "_coordinator", "_fetcher", "_isolation_level"),
    Fetcher: ("_isolation_level",),
    AIOKafkaProducer: ("_message_accumulator", "_request_timeout_ms", "_sender"),
    MessageBatch: ("_builder", "_retry_count"),
    SendProduceReqHandler: ("_batches", "_client", "_to_reenqueue"),
    Sender: ("_in_flight", "_muted_partitions", "_txn_manager"),
    TransactionManager: ("_pid_and_epoch", "_pid_waiter", "_sequence_numbers"),
    MessageAccumulator: ("_batch_ttl",),
    GroupCoordinator: ("_coordination_task", "_coordinator_dead_fut", "coordinator_id", "generation", "member_id"),
}


def breaches() -> list[str]:
    """What is not as relied on."""
    return [*_changed_methods(), *_missing_attributes(), *_missing_extension()]


def check() -> None:
    """Refuse to run on a Faust that is not the one we know.

    Raises
    ------
    StateError
        Names everything that differs.
    """
    found = breaches()
    if found:
        msg = f"the installed Faust or aiokafka is not the pinned one: {'; '.join(found)}"
        raise StateError(msg)


def _changed_methods() -> Iterable[str]:
    for (owner, name), known in METHODS.items():
        method = getattr(owner, name, None)
        actual = None if method is None else tuple(inspect.signature(method).parameters)
        if actual != known:
            yield f"{owner.__module__}.{owner.__name__}.{name} takes {actual}, not {known}"


def _missing_attributes() -> Iterable[str]:
    for owner, names in ATTRIBUTES.items():
        source = inspect.getsource(owner)
        gone = (name for name in names if not re.search(rf"\b{name}(:| = )", source))
        yield from (f"{owner.__name__}.{name} is gone" for name in gone)


def _missing_extension() -> Iterable[str]:
    from faust import streams

    if importlib.util.find_spec(COMPILED) is None:
        yield f"{COMPILED} is not compiled"
    elif streams.NO_CYTHON:
        yield "NO_CYTHON is set"


# The assignor.

_BY_ADDRESS = ("changelog_distribution", "external_topic_distribution")


class Assignor(PartitionAssignor):
    """Takes up what was assigned to a former life of this member, and tells the group what this release serves.

    A member with an ``instance`` that restarts within its session is given what it had before, without a rebalance,
    and with the address that it advertised then. Faust asserts that this is today's, and leaves a client that does
    nothing any more.
    """

    def metadata(self, topics: set[str]) -> ConsumerProtocolMemberMetadata:
        """What the member tells its group when it joins: the newest version of the method that it serves, too."""
        told = super().metadata(topics)
        return ConsumerProtocolMemberMetadata(told.version, told.subscription, with_served(told.user_data))

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Take it up under the address of this life."""
        told = readdressed(assignment.user_data, str(self._url))
        super().on_assignment(ConsumerProtocolMemberAssignment(assignment.version, assignment.assignment, told))


def readdressed(user_data: bytes, url: str) -> bytes:
    """What the group's leader told a member, with the member at ``url``.

    Parameters
    ----------
    user_data : bytes
        Compressed JSON, as Faust writes it.
    url : str
    """
    told: dict[str, Any] = json.loads(zlib.decompress(user_data))
    if told["url"] == url:
        return user_data
    for name in _BY_ADDRESS:
        told[name] = {url if address == told["url"] else address: owned for address, owned in told[name].items()}
    return zlib.compress(json.dumps({**told, "url": url}).encode())


_OWNERS_SECONDS = 5.0


async def owners_in_group(options: Mapping[str, Any], group: str, topic: str) -> dict[int, str]:
    """Ask the brokers for the owners of a topic's partitions in a group of ours: by partition, the address.

    Empty while the group is being settled, and if no broker answers in time.
    """
    admin = AIOKafkaAdminClient(**options)
    try:
        async with asyncio.timeout(_OWNERS_SECONDS):
            try:
                await admin.start()
                (answer,) = await admin.describe_consumer_groups([group])
            finally:
                await admin.close()
    except (kafka.KafkaError, OSError):  # TimeoutError is one
        return {}
    _, _, state, _, _, members, *_ = answer.groups[0]
    return dict(owners_of((member[4] for member in members), topic)) if state == "Stable" else {}


def owners_of(assignments: Iterable[bytes], topic: str) -> Iterable[tuple[int, str]]:
    """Partitions of a topic, each with the address that its owner advertised.

    Parameters
    ----------
    assignments : iterable of bytes
        Of each member, as the brokers keep them: with what Faust's assignor adds.
    topic : str
    """
    for encoded in assignments:
        assignment = ConsumerProtocolMemberAssignment.decode(encoded)
        url = json.loads(zlib.decompress(assignment.user_data))["url"]
        for name, partitions in assignment.assignment:
            if name == topic:
                yield from ((partition, url) for partition in partitions)


# The table of an app: Faust fetches its changelog, the listener reads the records, and the store stays empty.


class BatchSchema(faust.Schema):
    """Of topics whose messages are whole batches of raw records."""

    def loads_key(self, _app: Any, _message: Any, **_formats: Any) -> None:
        """No key: records have theirs."""

    def loads_value(self, _app: Any, message: Any, **_formats: Any) -> Any:
        """Return the batch as it is."""
        return message.value


class FoldTable(faust.Table):
    """Recovery only; snapshots write the changelog."""

    def apply_changelog_batch(self, batch: Any) -> None:
        """Read batches of changelog records. Faust would log an error here and go on with half a state: leave."""
        listener: Listener = self.app.listener
        try:
            for event in batch:
                listener.recover(TopicPartition(*event.message.tp), event.message.value)
        except BaseException as error:  # noqa: BLE001 - see above
            listener.failed(error)

    def persisted_offset(self, tp: Any) -> int:
        """The last changelog offset that was read, -1 for none: recovery reads on from there."""
        return int(self.app.listener.unread(TopicPartition(*tp)).begin) - 1


class Tables(TableManager):
    """The tables of an app, which are all there when it starts: Faust would wait a second for more."""

    async def on_start(self) -> None:
        """Start the tables, and recovery."""
        await self._update_channels()
        await self.recovery.start()


# Heartbeats renew the lease under which a member of a group writes.

_HEARTBEAT = 12
_REBALANCES = 27


def renew_by_heartbeats(coordinator: Any, lease: Lease) -> None:
    """Have answered heartbeats renew the lease, from the first moment of a generation on.

    aiokafka sends none before the partitions were taken over, and a take-over writes: it would wait for itself.
    """
    send, joined = coordinator._send_req, coordinator._on_join_complete  # noqa: SLF001 - nothing of it is public
    lease.follow(lambda: int(coordinator.generation))

    async def sent(request: Any) -> Any:
        at, term = now(), coordinator.generation
        if isinstance(request, JoinGroupRequest):
            lease.joins()
        answer = await send(request)
        code = getattr(answer, "error_code", None)
        if isinstance(request, SyncGroupRequest) and code == 0:
            lease.joined(at)
        if isinstance(request, HeartbeatRequest) and code in (0, _REBALANCES):
            lease.answered(at, term, rebalances=code == _REBALANCES)
        return answer

    async def beats_and_completes(*generation: Any) -> None:
        coordinator._start_heartbeat_task()  # noqa: SLF001
        await coordinator._do_heartbeat()  # noqa: SLF001
        await joined(*generation)

    coordinator._send_req, coordinator._on_join_complete = sent, beats_and_completes  # noqa: SLF001


# Two workers with one `instance`: the former one has to notice that the other took its place in the group.

_FENCED_INSTANCE_ID = 82


class _HeartbeatAnswer(Response):
    API_KEY = _HEARTBEAT
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16))


class _NamedHeartbeat(RequestStruct):
    """A heartbeat that names the instance. Those of aiokafka do not: a broker answers that it knows no such member."""

    API_KEY = _HEARTBEAT
    API_VERSION = 3
    RESPONSE_TYPE = _HeartbeatAnswer
    SCHEMA = Schema(
        ("group_id", String()), ("generation_id", Int32), ("member_id", String()), ("group_instance_id", String())
    )


class _SendNamedHeartbeat(Request[_NamedHeartbeat]):
    API_KEY = _HEARTBEAT

    def __init__(self, coordinator: Any) -> None:
        self._fields = coordinator.group_id, coordinator.generation, coordinator.member_id
        self._instance = coordinator._group_instance_id  # noqa: SLF001

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(*self._fields, self._instance)


def notice_replacement(coordinator: Any, fail: Callable[[BaseException], None]) -> None:
    """Tell apart, where a broker does not know a member any more: its session is over, or another took its instance."""
    send = coordinator._send_req  # noqa: SLF001

    async def sent(request: Any) -> Any:
        answer = await send(request)
        code = getattr(answer, "error_code", 0)
        if code == kafka.UnknownMemberIdError.errno:
            with contextlib.suppress(kafka.KafkaError, NotImplementedError):
                code = (await send(_SendNamedHeartbeat(coordinator))).error_code
        if code == _FENCED_INSTANCE_ID:
            fail(_shared(coordinator))
        return answer

    coordinator._send_req = sent  # noqa: SLF001


def _shared(coordinator: Any) -> SharedInstanceError:
    group, member = coordinator.group_id, coordinator._group_instance_id  # noqa: SLF001
    instance = member.removesuffix(f"-{group}")
    return SharedInstanceError(
        f"another worker has joined the group {group} with the same instance, {instance!r}, and brokers keep the newer "
        "one; give each worker an `instance` of its own (--instance, STREAM_PEER_INSTANCE), or none"
    )


# The thread in which Faust runs the Kafka client of a consumer.


class ClientThread(driver.AIOKafkaConsumerThread):
    """The thread, which always comes to its end. Its client reads committed records only.

    ``committed_of``: the ids of the topics that the group's offsets name, as far as they were asked for.
    """

    committed_of: Mapping[Any, str] = MappingProxyType({})

    def _create_worker_consumer(self, transport: Any) -> Any:
        """Make the client. Faust reads committed records only if it also writes in transactions, which we do not."""
        client = super()._create_worker_consumer(transport)
        start = client.start
        client.start = lambda: patiently(start)  # brokers may have gone since they were asked
        fetch_apart(client._client)  # noqa: SLF001
        client._isolation_level = ISOLATION  # noqa: SLF001 - the start of the client hands it to its fetcher
        return client

    def log_end(self, tp: Any) -> LogEnd | None:
        """Where a log ended at the last fetch; None: nothing was fetched of it, or it is not ours any more."""
        client = self._consumer
        try:
            return None if client is None else log_end(client.highwater(tp), client.last_stable_offset(tp))
        except (kafka.KafkaError, AssertionError):  # aiokafka asserts that it is assigned
            return None

    async def log_ends(self, places: Sequence[Any]) -> Mapping[Any, LogEnd]:
        """Where logs end now."""
        ends: Mapping[Any, LogEnd] = await self.call_thread(self._log_ends, places)
        return ends

    async def _log_ends(self, places: Sequence[Any]) -> Mapping[Any, LogEnd]:
        client = self._ensure_consumer()
        stable = await client.end_offsets(places)  # before the high watermarks: a log only grows
        return {tp: LogEnd(high, min(high, stable[tp])) for tp, high in (await high_watermarks(client, places)).items()}

    async def on_start(self) -> None:
        """Start the client, and end the worker if another process takes its place in the group."""
        await super().on_start()
        coordinator = self._consumer._coordinator  # noqa: SLF001 - nothing of it is public
        self.committed_of = name_topics(coordinator, self._consumer._client)  # noqa: SLF001
        renew_by_heartbeats(coordinator, self.consumer.app.lease)
        if coordinator._group_instance_id is not None:  # noqa: SLF001
            notice_replacement(coordinator, self.consumer.app.listener.failed)

    async def on_thread_stop(self) -> None:
        """Close the client.

        It cancels a fetch that waits to be tried again, and raises that as if it had been cancelled itself: the thread
        would end without a word, and the worker would wait for one until its time to stop is over.
        """
        if self._consumer is not None and self._consumer._coordinator is not None:  # noqa: SLF001 - it is in a group
            _leave_apart(self._consumer)
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._consumer is None or (task is not None and task.cancelling()):
                raise
            await self._consumer._client.close()  # noqa: SLF001 - what the client left undone


def name_topics(coordinator: Any, client: Any) -> Mapping[Any, str]:
    """Have each commit name its topic by the id that this process met; what is returned tells whose those found are.

    A topic that was recreated has the name of the former one: the group's offset alone may be of either.
    """
    commit, fetch = coordinator.commit_offsets, coordinator.fetch_committed_offsets
    ids: dict[str, str] = {}
    found_of: dict[Any, str] = {}

    async def commits(assignment: Any, offsets: Mapping[Any, Any]) -> None:
        named = {tp: OffsetAndMetadata(each.offset, ids.get(tp.topic, "")) for tp, each in offsets.items()}
        await commit(assignment, named)

    async def fetches(places: Sequence[Any]) -> Mapping[Any, Any]:
        if unknown := {tp.topic for tp in places} - ids.keys():
            ids.update((await patiently(lambda: cluster_ids(client, unknown))).topics)
        found: Mapping[Any, Any] = await fetch(places)
        found_of.update({tp: each.metadata for tp, each in found.items()})
        return found

    coordinator.commit_offsets, coordinator.fetch_committed_offsets = commits, fetches
    return found_of


_FETCHES = max(ConnectionGroup) + 1


def fetch_apart(client: Any) -> None:
    """Have an aiokafka client fetch on a connection of its own.

    A broker answers one request of a connection after the other: behind a fetch that waits for records each question
    takes 1.5 s, and a start or a rebalance asks several, one after the other.
    """
    send = client.send

    async def sent(node: int, request: Any, *, group: int = ConnectionGroup.DEFAULT) -> Any:
        return await send(node, request, group=_FETCHES if isinstance(request, FetchRequest) else group)

    client.send = sent


def _leave_apart(client: Any) -> None:
    """Have a client close without waiting for other members of its group, and leave the group on a new connection.

    A broker holds a join back until all members have come, and answers one request of a connection after the other:
    a client that stops meanwhile would wait for them twice, until its time to stop is over. The join ends with its
    connection, and is not tried again by a coordinator that closes.
    """
    coordinator = client._coordinator  # noqa: SLF001 - nothing of it is public
    close, leave = coordinator.close, coordinator._maybe_leave_group  # noqa: SLF001
    node: int | None = None

    async def closed() -> None:
        nonlocal node
        node = coordinator.coordinator_id
        connection = client._client._conns.get((node, ConnectionGroup.COORDINATION))  # noqa: SLF001
        if connection is not None and connection._requests:  # noqa: SLF001 - that it waits for
            connection.close()
        await close()

    async def left() -> None:
        if coordinator.coordinator_id is None:  # given up with the connection
            coordinator.coordinator_id = node
            coordinator._coordinator_dead_fut = asyncio.get_running_loop().create_future()  # noqa: SLF001
        if coordinator.member_id:  # which the broker knows it by, although its first join has not ended
            coordinator.generation = max(coordinator.generation, 1)
        await leave()

    coordinator.close, coordinator._maybe_leave_group = closed, left  # noqa: SLF001


# The consumer: one message per partition and fetch, whose value is the list of records. Everything that Faust does per
# message (flow control, generation check, acknowledgement, commit) then runs once per batch. It also closes three gaps
# through which a rebalance can lose or hold back records, and proves where records are missing.

BATCH_RECORDS = 20_000
"""Longest batch that is handed over as one message."""

_SMALL_FETCH = 2_000  # records, below which it is worth while to gather
_POSITION_SECONDS = 2.0


_ASK_AGAIN_SECONDS = 0.5


class OrderProof:
    """Whether nothing lies between the offset that is wanted and the one that came.

    A fetch after a seek to ``want`` that begins at ``first`` proves it for this pair: aborted records, markers of
    transactions, retention and compaction leave such gaps. The seek is asked for here and done by the fetch loop, in
    which no other fetch is in flight; one begun elsewhere could take records from the new position and prove a lie.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked: dict[TopicPartition, int] = {}
        self._sought: dict[TopicPartition, int] = {}
        self._proofs: dict[TopicPartition, tuple[int, int]] = {}
        self._last: dict[TopicPartition, tuple[int, float]] = {}

    def admits(self, tp: TopicPartition, want: int, first: int) -> bool:
        """Whether it is proven; otherwise ask for a seek, at most every half second for the same offset."""
        if self._proofs.get(tp) == (want, first):
            return True
        last_want, at = self._last.get(tp, (-1, 0.0))
        if last_want != want or self._clock() - at > _ASK_AGAIN_SECONDS:
            self._last[tp] = (want, self._clock())
            self._asked[tp] = want
        return False

    def ask(self, tp: TopicPartition, want: int) -> None:
        """Ask for a seek."""
        self._asked[tp] = want

    def asked(self, assignment: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Seeks to do now, of assigned partitions."""
        mine = set(assignment)
        asked = {tp: want for tp, want in self._asked.items() if tp in mine}
        self._asked.clear()
        return asked

    def sought(self, places: Mapping[TopicPartition, int]) -> None:
        """Remember seeks that are done: whatever is fetched from now on begins there, or behind."""
        self._sought.update(places)

    def found_nothing(self, tp: TopicPartition, want: int) -> bool:
        """Whether no record has come since a seek to ``want``."""
        return self._sought.get(tp) == want

    def fetched(self, tp: TopicPartition, first: int) -> None:
        """Remember where the first fetch after a seek began."""
        want = self._sought.pop(tp, None)
        if want is not None:
            self._proofs[tp] = (want, first)

    def clear(self) -> None:
        """Forget everything: the consumer's positions were reset."""
        for known in (self._asked, self._sought, self._proofs, self._last):
            known.clear()


class BatchConsumer(driver.Consumer):
    """The consumer of an app all of whose topics are read in batches."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._accepted: dict[Any, deque[Any]] = {}
        self._proof = OrderProof(now)
        self._reading: dict[Any, int] = {}  # next offset of changelogs, which have no other check of order
        self._catch_up: dict[Any, int] = {}  # group offsets to commit although nothing was acknowledged
        self._polled = now()
        super().__init__(*args, **kwargs)

    def _new_consumer_thread(self) -> ClientThread:
        return ClientThread(self, loop=self.loop, beacon=self.beacon)

    def verify_event_path(self, now: float, tp: Any) -> None:
        """Disabled: Faust reports partitions that are idle, or rebuilt, as streams that hang.

        Whether work stands still is told by the watchdog and by ``/healthz/live``.
        """

    # Fetching.

    async def _getmany(self, active_partitions: Any, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's signature
        """Fetch from a copy of the active partitions: the live set is shared with a thread, and empty means all."""
        if active_partitions is None:
            return await super()._getmany(None, timeout)
        copied = frozenset(active_partitions)
        return await super()._getmany(copied, timeout) if copied else {}

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's signature
        began = time.perf_counter()
        if self.flow_active:
            asked = self._proof.asked(self.assignment())
            await self._seek_all(asked)
            self._proof.sought(asked)
        records, active = await super()._wait_next_records(timeout)
        for tp, batch in (records or {}).items():
            self._proof.fetched(tp, batch[0].offset)
        gather = self.app.gather - (time.perf_counter() - began)
        if records and gather > 0 and sum(map(len, records.values())) < _SMALL_FETCH:
            await asyncio.sleep(gather)
        return records, active

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[Any, Any]]:  # noqa: ASYNC109 - Faust's signature
        """Fetch, and yield one message per partition. What cannot be delivered is sought back."""
        if not self.flow_active:
            await self.wait(self.can_resume_flow)
        if self.should_stop:
            return
        generation = self.app.consumer_generation_id  # not before the flow resumed: the fetch belongs to this one
        records, active = await self._wait_next_records(timeout)
        self._report_poll()
        if self.should_stop:
            return
        back: dict[Any, int] = {}
        for tp, batch in _cut(records or {}):
            if tp in back:
                continue
            if self._deliverable(tp, active, generation) and self._in_order(tp, batch):
                yield tp, self._message(tp, batch, generation)
            else:
                back[tp] = batch[0].offset
        await self._seek_back(back)

    async def _seek_back(self, undelivered: Mapping[Any, int]) -> None:
        if not undelivered:
            return
        if self.flow_active:
            mine = self.assignment()
            await self._seek_all({tp: offset for tp, offset in undelivered.items() if tp in mine})
        else:
            await self._seek_while_stopped()

    def _report_poll(self) -> None:
        at = now()
        self.app.observer.polled(at - self._polled)
        self._polled = at

    async def _seek_while_stopped(self) -> None:
        try:
            await self.perform_seek()
        except Exception as error:  # noqa: BLE001 - as Faust does: the recovery that follows seeks again
            log.warning("seek_failed", reason=repr(error))

    def _deliverable(self, tp: Any, active: Any, generation: int) -> bool:
        if not self.flow_active or self.app.consumer_generation_id != generation:
            return False
        return active is None or tp in active or tp in self._buffered_partitions

    def _in_order(self, tp: Any, batch: Any) -> bool:
        """Check changelogs here; inputs are checked where they are folded."""
        want = self._reading.get(tp)
        if want is not None:
            if batch[0].offset > want and not self._proof.admits(tp, want, batch[0].offset):
                return False
            self._reading[tp] = max(want, batch[-1].offset + 1)
        return True

    def _message(self, tp: Any, batch: Any, generation: int) -> Any:
        self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
        last = batch[-1]
        at = (last.timestamp or 0) / 1000
        return ConsumerMessage(
            tp.topic, tp.partition, last.offset, at, last.timestamp_type, None, None, batch, None, 0, 0, tp,
            generation_id=generation,
        )  # fmt: skip

    # Acknowledging: whole batches, in the order in which their partition accepted them.

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Offsets inside a batch are no gap."""

    def _new_offset(self, tp: Any) -> int | None:
        """What may be committed: up to the first batch that is not acknowledged."""
        accepted = self._accepted.get(tp) or deque()
        offset: int | None = self._catch_up.pop(tp, None)
        while accepted and accepted[0].acked:
            offset = max(offset or 0, accepted.popleft().offset + 1)
        self._acked[tp].clear()
        self._acked_index[tp].clear()
        return offset

    def accept(self, delivery: Delivery) -> None:
        """Queue a message for commit. Not earlier: one that Faust drops on the way would hold up all that follow."""
        message = delivery.message  # type: ignore[attr-defined]  # it is a `Delivered`
        self._accepted.setdefault(message.tp, deque()).append(message)

    def forget(self, delivery: Delivery) -> None:
        """Drop a message that will not be processed, so that Faust does not wait for it."""
        self._unacked_messages.discard(delivery.message)  # type: ignore[attr-defined]  # it is a `Delivered`

    async def position_of(self, tp: TopicPartition) -> int | None:
        """The offset that is fetched next; None: the partition is not assigned, or nothing is known within 2 s."""
        try:
            position: int | None = await asyncio.wait_for(self.position(tp), _POSITION_SECONDS)
        except (kafka.KafkaError, TimeoutError):
            return None
        return position

    # Ownership.

    @property
    def is_member(self) -> bool:
        """Whether it is in its group, as far as the client knows: it may have been expelled, or have given up."""
        consumer = self._thread._consumer  # noqa: SLF001 - there is no public way
        if consumer is None:
            return False
        coordinator = consumer._coordinator  # noqa: SLF001
        return coordinator.generation > 0 and not coordinator._coordination_task.done()  # noqa: SLF001

    def admits(self, tp: Any, want: int, first: int) -> bool:
        """Whether nothing lies between ``want`` and ``first``; else a seek is asked for."""
        admitted = self._proof.admits(tp, want, first)
        log.debug("input_order", topic=tp.topic, partition=tp.partition, want=want, first=first, admitted=admitted)
        return admitted

    def read_again(self, tp: Any, want: int) -> None:
        """Go back to ``want``: what lies behind it may have got lost on the way."""
        log.debug("input_read_again", topic=tp.topic, partition=tp.partition, want=want)
        self._proof.ask(tp, want)

    def found_nothing(self, tp: Any, want: int) -> bool:
        """Whether it was read again from ``want``, and no record has come since."""
        return self._proof.found_nothing(tp, want)

    def pass_over(self, tp: Any, end: int) -> None:
        """Commit an end before which there is no record any more, as a client does that commits its position."""
        self._align_group(tp, end)

    def log_end(self, tp: Any) -> LogEnd | None:
        """Where a log ended at the last fetch; None: not known."""
        end: LogEnd | None = self._thread.log_end(tp)
        return end

    async def log_ends(self, *partitions: Any) -> Mapping[Any, LogEnd]:
        """Where logs end now."""
        ends: Mapping[Any, LogEnd] = await self._thread.log_ends(partitions)
        return ends

    async def highwaters(self, *partitions: Any) -> Mapping[Any, int]:
        """Where Faust shall end the recovery of changelogs: behind our fencing tokens; nothing later counts.

        At the end of a changelog there may be no record, and recovery would wait for one; and the last stable offset
        may lie before the fencing token, which recovery has to meet.
        """
        ends = {tp: self.app.listener.unread(TopicPartition(*tp)).end for tp in partitions}
        unknown = [tp for tp, end in ends.items() if end is None]
        there = super().highwaters
        return {**ends, **(await patiently(lambda: there(*unknown)) if unknown else {})}

    async def earliest_offsets(self, *partitions: Any) -> Mapping[Any, int]:
        """The first offsets that brokers still have. Recovery asks too, and would end without an answer."""
        there = super().earliest_offsets
        found: Mapping[Any, int] = await patiently(lambda: there(*partitions))
        return found

    async def log_start(self, tp: Any) -> int:
        """The first offset that the broker still has."""
        return int((await self.earliest_offsets(tp))[tp])

    async def end_now(self, tp: Any) -> int:
        """Where a log ends now, be it assigned or not: the offset behind its last record."""
        return (await patiently(lambda: self.log_ends(tp)))[tp].high

    async def on_partitions_assigned(self, assigned: Any, generation_id: int = 0) -> None:
        """Write the fencing tokens before Faust recovers: before it asks where the changelogs end."""
        self._accepted.clear()
        self._reading.clear()
        self._catch_up.clear()
        try:
            await self.app.listener.assigned(sorted(TopicPartition(*tp) for tp in assigned))
        except LeaseEndedError as error:  # nothing is owned, and the next assignment follows
            log.warning("assignment_over", group=self.app.group, reason=str(error))
        except Exception as error:  # noqa: BLE001 - without a fencing token nothing may be owned
            self.app.listener.failed(error)
        self.app.observer.rebalanced()
        await super().on_partitions_assigned(assigned, generation_id)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Have Faust wait for the last snapshots; if it does not, because it stops, the partitions are lost."""
        await super().on_partitions_revoked(revoked)
        self.app.listener.lost()
        for tp in revoked:
            self._accepted.pop(tp, None)
            self._catch_up.pop(tp, None)

    async def wait_empty(self) -> None:
        """Take the last snapshots: Faust waits here, on stop and revoke, before tables and producers stop."""
        for tp, covered in (await self.app.listener.revoked()).items():
            self._align_group(tp, covered)
        await super().wait_empty()

    async def seek_wait(self, partitions: Mapping[Any, int]) -> None:
        """Seek; of changelogs remember where reading begins."""
        for tp, offset in partitions.items():
            if self._is_changelog_tp(tp):
                self._reading[TP(tp.topic, tp.partition)] = offset
        await super().seek_wait(partitions)

    async def perform_seek(self) -> None:
        """Begin the work on what was recovered, and seek to where each partition begins."""
        await super().perform_seek()
        try:
            places = await self.app.listener.recovered(self)
        except LeaseEndedError as error:  # nothing is owned, and the next assignment follows
            log.warning("assignment_over", group=self.app.group, reason=str(error))
            return
        except Exception as error:  # noqa: BLE001 - the caller only logs
            self.app.listener.failed(error)
            return
        for tp, (want, covered) in places.items():
            self._align_group(tp, want if covered is None else covered, want)
        self._proof.clear()
        await self._seek_all({tp: place.want for tp, place in places.items()})

    def _align_group(self, tp: Any, reached: int, want: float = math.inf) -> None:
        """The group's offset is for monitoring; it may lie on either side of where the state is.

        If it lies behind ``want``, the offset that is read next, it is that of a former topic of this name.
        """
        committed = self._committed_offset.get(tp) or 0
        if committed > want:
            self._committed_offset[tp] = None  # a commit below it would be refused
        elif committed > reached:  # what is rebuilt was read before
            self._committed_offset[tp] = reached  # else acknowledgements below it would be refused
            return
        elif committed == reached:
            return
        self._catch_up[tp] = reached
        self._acked[tp] = []  # the next commit looks at partitions that are listed here

    async def bounds(self, tps: Collection[Any]) -> dict[TopicPartition, LogBounds]:
        """Where logs begin and end, and what the group has committed."""
        ends = await patiently(lambda: self.log_ends(*tps))
        firsts = await self.earliest_offsets(*tps)
        committed, of = self._committed_offset, self._thread.committed_of
        return {
            TopicPartition(*tp): LogBounds(firsts[tp], end, committed.get(TP(*tp)), of.get(tp, ""))
            for tp, end in ends.items()
        }

    async def _seek_all(self, places: Mapping[Any, int]) -> None:
        if places:
            await self.seek_wait(places)
            self._read_offset.update({tp: offset or None for tp, offset in places.items()})


def _cut(records: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Batches of bounded length, partition by partition, each in order."""
    for key, fetched in records.items():
        tp = TP(key.topic, key.partition)
        if len(fetched) <= BATCH_RECORDS:
            yield tp, fetched
        else:
            yield from ((tp, fetched[start : start + BATCH_RECORDS]) for start in range(0, len(fetched), BATCH_RECORDS))


class BatchTransport(driver.Transport):
    """The transport that brings the consumer into an app."""

    Consumer = BatchConsumer


# The app.

_QUEUE_OF_BATCHES = 64
_FETCH_BYTES = 262_144  # of a partition: it bounds the memory of a worker that catches up; a larger record still comes
_RECOVERY_BATCHES = 4  # gathered before they are read; 1 means something else to Faust
_LEAST_REQUEST_SECONDS = 90.0


class StageApp(faust.App):
    """A Faust app that tells a listener what happens: the consumer and the tables find it here. A `GroupMember`."""

    listener: Listener
    observer: Observer
    lease: Lease
    gather: float

    def _create_directories(self) -> None:
        """Make none: the store is memory, and there may be no place that can be written to."""

    @property
    def group(self) -> str:
        """The id of the app and of its group."""
        return str(self.conf.id)

    @property
    def address(self) -> str:
        """The address that it advertises to the other members."""
        return str(self.conf.canonical_url)

    @property
    def is_started(self) -> bool:
        """Whether it has a consumer."""
        return bool(self.started) and self.consumer is not None

    @property
    def rebalances(self) -> int:
        """How many it has seen."""
        return int(self.rebalancing_count)

    @property
    def is_settled(self) -> bool:
        """Whether no rebalance or recovery is under way, and there was one."""
        return self.is_started and self.rebalances > 0 and not self.rebalancing

    @property
    def is_member(self) -> bool:
        """Whether it is in its group, as far as the client knows."""
        return bool(self.consumer.is_member)

    @property
    def position(self) -> BatchConsumer:
        """Its consumer."""
        consumer: BatchConsumer = self.consumer
        return consumer

    def assignment(self) -> set[TopicPartition]:
        """All partitions that the group gives to it now."""
        return {TopicPartition(*tp) for tp in self.position.assignment()}

    def remaining(self) -> dict[TopicPartition, int]:
        """How many records of changelogs recovery is still to read."""
        active = self.tables.recovery.active_remaining() if self.in_recovery else {}
        return {TopicPartition(*tp): records for tp, records in active.items()}

    def owners(self, topic: str) -> dict[int, str]:
        """The address of each partition's owner, as the group's leader told all members."""
        members = self.assignor.external_topics_metadata()
        return {partition: url for url, owned in members.items() for partition in owned.get(topic, ())}


class StateTable(NamedTuple):
    """The state of an app: the table's name, as it stands in the changelog's, and its partitions."""

    name: str
    partitions: int


def stage_app(
    app_id: str,
    settings: Settings,
    listener: Listener,
    observer: Observer,
    lease: Lease,
    inputs: Mapping[str, str],
    table: StateTable,
) -> StageApp:
    """Make an app that reads ``inputs`` (by stage, the topic), one agent each, and keeps state in ``table``."""
    app = StageApp(app_id, **_options(app_id, settings, table.partitions))
    app.listener, app.observer, app.lease = listener, observer, lease
    app.gather = settings.gather
    app.transport = BatchTransport(_brokers(settings), app)
    app.Table(
        table.name,
        key_type=bytes,
        value_type=bytes,
        schema=BatchSchema(),
        partitions=table.partitions,
        recovery_buffer_size=_RECOVERY_BATCHES,
    )
    for stage_name, topic in inputs.items():
        _add_agent(app, stage_name, topic)
    return app


class Delivered:
    """A batch as the agent of a topic receives it."""

    def __init__(self, event: Any, end: LogEnd | None) -> None:
        self.message, self.ack = event.message, event.ack
        self.tp: TopicPartition = TopicPartition(*event.message.tp)
        self.records: Sequence[Record] = event.value
        self.end = end


def _add_agent(app: StageApp, stage_name: str, input_topic: str) -> None:
    topic = app.topic(input_topic, schema=BatchSchema())
    topic.maxsize = _QUEUE_OF_BATCHES  # the argument of app.topic is ignored

    async def hand_over(stream: Any) -> None:
        """Hand batches to the tasks of their partitions, which acknowledge them by snapshots."""
        async for event in stream.noack().events():
            delivered = Delivered(event, app.position.log_end(event.message.tp))
            await app.listener.deliver(delivered, app.position)

    app.agent(topic, name=f"fold-{stage_name}")(hand_over)


def _brokers(settings: Settings) -> list[URL]:
    return [URL(f"kafka://{address.strip()}") for address in settings.bootstrap.split(",") if address.strip()]


def _options(app_id: str, settings: Settings, partitions: int) -> dict[str, Any]:
    embedded = settings.broker == "embedded"
    named = {"consumer_group_instance_id": f"{settings.instance}-{app_id}"} if settings.instance else {}
    if settings.http.advertise is not None:
        named["canonical_url"] = settings.http.advertise  # what the group's members are told of each other
    return named | {
        "broker": _brokers(settings),
        "broker_credentials": credentials(settings.security),
        "broker_session_timeout": settings.session,
        "broker_heartbeat_interval": min(3.0, settings.session / 5),
        "broker_rebalance_timeout": settings.rebalance_timeout,
        "broker_request_timeout": max(_LEAST_REQUEST_SECONDS, settings.session, settings.rebalance_timeout),
        "broker_commit_interval": min(1.0, settings.snapshot_every.seconds),
        "broker_max_poll_records": None,
        "broker_check_crcs": not embedded,
        "consumer_max_fetch_size": _FETCH_BYTES,
        "consumer_auto_offset_reset": "earliest",
        "store": "memory://",
        "Table": FoldTable,
        "TableManager": Tables,
        "PartitionAssignor": Assignor,
        "table_standby_replicas": 0,
        "topic_partitions": partitions,
        "topic_replication_factor": settings.replication,
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "web_enabled": False,
        "autodiscover": False,
        "datadir": Path(app_id),  # has to be named, and is never made
    }


def credentials(security: Security) -> Any:
    """The security block as Faust wants it; None for plaintext."""
    options = aiokafka_options(security)
    context = options.get("ssl_context")
    if security.protocol == "plaintext":
        return None
    if security.protocol == "ssl":
        return faust.SSLCredentials(context)
    if "sasl_oauth_token_provider" in options:
        return faust.OAuthCredentials(oauth_cb=options["sasl_oauth_token_provider"], ssl_context=context)
    return faust.SASLCredentials(
        username=options["sasl_plain_username"],
        password=options["sasl_plain_password"],
        mechanism=options["sasl_mechanism"],
        ssl_context=context,
    )


# Writing: whole record batches, acknowledged.

RECORD_LIMIT = 1_048_576
"""Bytes of a record with its key and headers: what brokers take unless told otherwise."""

_OVERHEAD = 100  # batch and record headers


class KafkaWriter(Service):
    """An idempotent producer of ready-made batches.

    Parameters
    ----------
    options : mapping
        ``bootstrap_servers`` and the security of aiokafka's clients.
    compression : str or None
        Of everything that is written.
    patience : float
        Seconds that a write waits for brokers; the watchdog ends the process before that.

    Attributes
    ----------
    retries : int
        How often a batch was put back: a broker did not take it, or the lease had to be renewed first.
    """

    def __init__(self, options: Mapping[str, Any], compression: str | None, patience: float = 60.0) -> None:
        super().__init__()
        self._patience = patience
        self._options = dict(options)
        self._compression = compression
        self._turns: dict[TopicPartition, asyncio.Lock] = {}
        self._client: Any = None
        self.retries = 0

    async def on_start(self) -> None:
        """Connect."""
        self._client = AIOKafkaProducer(
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=MAX_RECORD_BYTES,
            max_request_size=RECORD_LIMIT,
            compression_type=self._compression,
            **self._options,
        )
        hold_to_leases(self._client._sender)  # noqa: SLF001 - nothing of it is public
        self._count_retries(self._client._message_accumulator)  # noqa: SLF001 - aiokafka counts them for itself
        # Not as `request_timeout_ms`, for which a single request to a frozen broker would be waited for as well.
        self._client._request_timeout_ms = round(2000 * self._patience)  # noqa: SLF001
        self._client._message_accumulator._batch_ttl = 2 * self._patience  # noqa: SLF001
        try:
            async with _within(self._patience, "no write could begin"):  # the watchdog begins later
                await patiently(self._client.start)
        except BrokerUnavailableError as error:
            leave(error.exit_code, str(error))

    def _count_retries(self, accumulator: Any) -> None:
        reenqueue = accumulator.reenqueue

        def counted(batch: Any) -> None:
            self.retries += 1
            reenqueue(batch)

        accumulator.reenqueue = counted

    async def on_stop(self) -> None:
        """Disconnect; everything that counts was awaited before."""
        if self._client is not None:
            await self._client.stop()

    async def asked(self, names: Iterable[str]) -> Ids | None:
        """The ids that a broker gives to its cluster and topics now; None: no broker answers."""
        try:
            client = self._client.client
            return await cluster_ids(client, names) if await client.force_metadata_update() else None
        except kafka.KafkaError:
            return None

    async def ids(self, names: Iterable[str]) -> Ids:
        """The ids of the cluster and of topics."""
        return await patiently(lambda: cluster_ids(self._client.client, names))

    async def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return len(await patiently(lambda: self._client.partitions_for(topic)))

    async def produce(
        self, rows: Mapping[TopicPartition, Sequence[Writing]], lease: Lease | None = None
    ) -> list[list[Appended]]:
        """Write in order per partition; return when all are acknowledged: for each partition, where they were put.

        Raises
        ------
        LeaseEndedError
            If the term in which this was called is over. What was not sent by then is not written.
        """
        tenure = None if lease is None else _Tenure(lease, lease.term)
        submitted = [await self._submit(tp, records, tenure) for tp, records in rows.items()]
        return [await _acknowledged(tp, batches) for tp, batches in zip(rows, submitted, strict=True)]

    async def _submit(self, tp: TopicPartition, records: Sequence[Writing], tenure: "_Tenure | None") -> list["_Batch"]:
        client = self._client
        batches: list[_Batch] = []
        start = 0
        while start < len(records):
            builder = client.create_batch()
            builder.tenure = tenure
            end = _fill(builder, records, start, tp.topic)
            # In turn: aiokafka lets those who wait for a slot race for it, and adds up what each lost round took.
            async with self._turns.setdefault(tp, asyncio.Lock()):
                future = await client.send_batch(builder, tp.topic, partition=tp.partition)
            batches.append(_Batch(future, records[start:end]))
            start = end
        return batches


class _Batch(NamedTuple):
    future: asyncio.Future[Any]
    records: Sequence[Writing]


class _Tenure(NamedTuple):
    """The lease under which a batch is written, and the term in which it was handed over."""

    lease: Lease
    term: int


def _right(batch: Any) -> Right:
    tenure: _Tenure | None = batch._builder.tenure  # noqa: SLF001 - nothing of a batch is public
    return Right.HOLDS if tenure is None else tenure.lease.right(tenure.term)


class LeasedSend(SendProduceReqHandler):
    """A request of the producer, of those batches whose lease holds when it is sent."""

    _batches: dict[Any, Any]

    async def do(self, node_id: int) -> None:
        """Connect, look at the leases, and send: nothing is awaited after the look.

        Batches whose lease has to be renewed first are put back, each before all later ones of its partition.
        """
        is_connected = await self._client.ready(node_id)
        rights = {tp: _right(batch) for tp, batch in self._batches.items()}
        for batch in (batch for tp, batch in self._batches.items() if rights[tp] is Right.OVER):
            self._drop(batch)
        left = {tp: batch for tp, batch in self._batches.items() if rights[tp] is not Right.OVER}
        self._batches = {tp: batch for tp, batch in left.items() if is_connected and rights[tp] is Right.HOLDS}
        self._to_reenqueue = [batch for tp, batch in left.items() if tp not in self._batches]
        if self._batches:
            await super().do(node_id)
        elif self._to_reenqueue:
            await self._put_back()

    async def _put_back(self) -> None:
        await asyncio.sleep(self._default_backoff)
        for batch in self._to_reenqueue:
            self._sender._message_accumulator.reenqueue(batch)  # noqa: SLF001
        await self._client._maybe_wait_metadata()  # noqa: SLF001 - a refresh, if connecting failed

    def _drop(self, batch: Any) -> None:
        """Leave a batch out for good. Its sequence number is gone: a producer with another id goes on."""
        batch.failure(LeaseEndedError(f"records were not sent: {EXPELLED}"))
        batch.future.exception()  # nobody may wait for it any more
        manager = self._sender._txn_manager  # noqa: SLF001
        manager._pid_and_epoch = PidAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)  # noqa: SLF001
        if manager._pid_waiter.done():  # noqa: SLF001 - the future of the former id; nothing waits for it any more
            manager._pid_waiter = asyncio.get_running_loop().create_future()  # noqa: SLF001
        manager._sequence_numbers.clear()  # noqa: SLF001


def hold_to_leases(sender: Any) -> None:
    """Have a producer send by `LeasedSend`."""

    async def send(node_id: int, batches: Mapping[Any, Any]) -> None:
        await LeasedSend(sender, dict(batches)).do(node_id)
        sender._in_flight.remove(node_id)  # noqa: SLF001 - as the method does that this replaces
        sender._muted_partitions.difference_update(batches)  # noqa: SLF001

    sender._send_produce_req = send  # noqa: SLF001


def _fill(builder: Any, records: Sequence[Writing], start: int, topic: str) -> int:
    """Append records to the batch until it is full; return the index of the first that did not go in."""
    append = builder.append
    for index in range(start, len(records)):
        timestamp, key, value, headers = records[index]
        if value is not None and len(value) > MAX_RECORD_BYTES - 10_000:
            _check_size(topic, key, value, headers)
        if append(timestamp=timestamp, key=key, value=value, headers=list(headers)) is None:
            if index == start:
                raise _too_large(topic, key, _size(key, value, headers), MAX_RECORD_BYTES)
            return index
    builder.close()
    return len(records)


def _check_size(topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
    """Refuse a record that no broker would take."""
    size = _size(key, value, headers)
    if size > RECORD_LIMIT:
        raise _too_large(topic, key, size, RECORD_LIMIT)


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    return _OVERHEAD + len(key or b"") + len(value or b"") + sum(len(k) + len(v or b"") + 4 for k, v in headers)


def _too_large(topic: str, key: bytes | None, size: int, limit: int | str) -> RecordTooLargeError:
    return RecordTooLargeError(f"the record of key {key!r} for {topic} has {size} bytes, the limit is {limit}")


_REFUSES_THE_TIME = (
    "the brokers refuse a record for {topic} of the time {time}: the clock of this machine is wrong, and the topic "
    "keeps it (message.timestamp.type); run `stream-peer topics apply`, and set the clock"
)


async def _acknowledged(tp: TopicPartition, batches: Sequence[_Batch]) -> list[Appended]:
    places = []
    for batch in batches:
        try:
            metadata = await batch.future
        except kafka.MessageSizeTooLargeError:
            largest = max(batch.records, key=lambda record: len(record[2] or b""))
            limit = "max.message.bytes of the topic"
            raise _too_large(f"{tp.topic}-{tp.partition}", largest[1], _size(*largest[1:]), limit) from None
        except kafka.InvalidTimestampError:
            raise TopicsError(_REFUSES_THE_TIME.format(topic=tp.topic, time=to_iso(batch.records[0][0]))) from None
        at = metadata.timestamp or -1  # the demo's embedded broker gives every record the same time, of 1970
        places.append(Appended(metadata.offset, len(batch.records), at if at >= YEAR_2000 else None))
    return places


# The process: jobs, signals, exit codes.

_NOT_AUTHORISED = (
    kafka.TopicAuthorizationFailedError,
    kafka.GroupAuthorizationFailedError,
    kafka.ClusterAuthorizationFailedError,
    kafka.SaslAuthenticationFailed,
    kafka.AuthenticationFailedError,
)
_UNAVAILABLE = (kafka.KafkaConnectionError, kafka.NoBrokersAvailable, kafka.RequestTimedOutError, OSError)


def exit_code(error: BaseException | None) -> int:
    """Exit code that says what an operator may do about the error."""
    if error is None:
        return 0
    if isinstance(error, StreamPeerError):
        return error.exit_code
    if isinstance(error, _NOT_AUTHORISED):
        return 77
    return 69 if isinstance(error, _UNAVAILABLE) else 70


class Jobs(Service):
    """Runs coroutines until the worker stops: an error in one of them ends the worker."""

    def __init__(
        self, *jobs: Callable[[], Coroutine[Any, Any, None]], begin: Callable[[], None], end: Callable[[], None]
    ) -> None:
        super().__init__()
        self._jobs, self._begin, self._end = jobs, begin, end
        self._tasks: list[asyncio.Future[Any]] = []

    async def on_start(self) -> None:
        """Begin, and start the jobs."""
        self._begin()
        self._tasks = [self.add_future(job()) for job in self._jobs]

    async def on_stop(self) -> None:
        """End the jobs, which have no end of their own: mode would wait for them."""
        self._end()
        for task in self._tasks:
            task.cancel()


def _behind(end: SystemExit) -> BaseException | None:
    """The error that made the process end; mode tells of one that comes while services start by context alone."""
    error: BaseException | None = end.__context__
    while isinstance(error, SystemExit | asyncio.CancelledError):
        error = error.__context__
    return error


class StageWorker(mode.Worker):
    """Runs services until a signal; a second signal ends the process at once."""

    def __init__(self, heartbeats: Heartbeats, *services: Any) -> None:
        super().__init__(*services, daemon=True, override_logging=False, quiet=True)
        self._heartbeats = heartbeats

    def run(self) -> int:
        """Run to the end; return the exit code."""
        crash: BaseException | None = None
        try:
            self.execute_from_commandline()
        except SystemExit as end:
            crash = _behind(end)
        error = self.crash_reason or crash
        if reason := out_of_memory(error):
            log.critical("worker_ends", code=exit_code(error), reason=reason)
        return exit_code(error)

    async def _sentinel_task(self) -> None:
        """Wait for tasks that were cancelled at the end. Mode waits for a second, even if there are none."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            await asyncio.wait(left, timeout=1.0)

    def _on_sigint(self) -> None:
        self._stop_or_leave(signal.SIGINT)

    def _on_sigterm(self) -> None:
        self._stop_or_leave(signal.SIGTERM)

    def _on_sigusr1(self) -> None:
        """Nothing. Mode would print the local variables of all frames: forecasts and secrets."""

    def _on_sigusr2(self) -> None:
        """Nothing. Mode would wait in a debugger for somebody to type."""

    def _stop_or_leave(self, number: signal.Signals) -> None:
        if self._heartbeats.is_stopping:
            leave(70, "told to stop a second time")
        self._heartbeats.stopping()
        log.info("worker_stops", signal=number.name)
        self._schedule_shutdown(number)


# What the clients share: patience, options, names of headers that are not UTF-8, ids, ends of logs.


async def patiently(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Ask until brokers answer. The watchdog ends the process when they are away for longer than `broker_patience`."""
    while True:
        try:
            return await ask()
        except kafka.KafkaError as error:
            if not (error.retriable or isinstance(error, kafka.KafkaTimeoutError)):
                raise
            log.debug("broker_asked_again", reason=repr(error))
        await asyncio.sleep(_ASK_AGAIN_SECONDS)


@contextlib.asynccontextmanager
async def _within(patience: float, what_fails: str) -> AsyncIterator[None]:
    """Bound what asks patiently where the watchdog sees nothing of it."""
    try:
        async with asyncio.timeout(patience):
            yield
    except TimeoutError:
        msg = f"{what_fails} for {patience:g} s (broker_patience)"
        raise BrokerUnavailableError(msg) from None


def aiokafka_options(security: Security) -> dict[str, Any]:
    """Options of aiokafka's clients, and the material for Faust's credentials.

    With them a consumer reads records whatever the names of their headers.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    read_any_names()
    options = security_options(security)
    file = token_file(security)
    if file is not None:
        options["sasl_oauth_token_provider"] = _TokenFile(file)
    return options


class _TokenFile(AbstractTokenProvider):
    def __init__(self, file: Path) -> None:
        self._file = file

    async def token(self) -> str:
        return read_token(self._file)


_BATCH_LENGTH = slice(8, 12)  # of a batch, behind its first offset: the bytes that follow
_BATCH_BEFORE = 12


def read_any_names() -> None:
    """From here on consumers of aiokafka read records whatever the names of their headers, and hand them out bare."""
    fetcher.MemoryRecords = _Records
    fetcher.PartitionRecords = _BareRecords
    fetcher.FetchResult = _BareFetch


class _BareFetch(FetchResult):
    """What was fetched of a partition; nobody sets ``max_records``."""

    def getall(self, max_records: int | None = None) -> list[Record]:
        return list(chain.from_iterable(super().getall(max_records)))


class _BareRecords(PartitionRecords):
    """Records of a partition as the decoder makes them, a list of each batch.

    To make a `ConsumerRecord` of each, or only to hand each on, would cost more than to decode them.
    """

    def _consumer_record(self, _tp: Any, record: "_WholeBatch") -> Sequence[Record]:
        first = self.next_fetch_offset
        return record if record[0].offset >= first else [one for one in record if one.offset >= first]


class _WholeBatch(list[Record]):
    """Records of a batch, which aiokafka takes for one record: the last."""

    __slots__ = ()

    @property
    def offset(self) -> int:
        return self[-1].offset


class _Records:
    """``MemoryRecords``, whose batches read any names."""

    def __init__(self, content: bytes) -> None:
        self._records = MemoryRecords(content)
        self._left = memoryview(content)

    def size_in_bytes(self) -> int:
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        size = _BATCH_BEFORE + int.from_bytes(self._left[_BATCH_LENGTH], "big")
        content, self._left = self._left[:size], self._left[size:]
        return _NamedBatch(batch, content)


class _NamedBatch:
    """A batch that is read as always; only if that fails for a name it is read again, slowly."""

    __slots__ = ("_batch", "_content")

    def __init__(self, batch: Any, content: memoryview) -> None:
        self._batch = batch
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[_WholeBatch]:
        try:
            records = _WholeBatch(self._batch)
        except UnicodeDecodeError:
            records = _WholeBatch(_SlowBatch(self._content))
        if records:
            yield records


class _SlowBatch(_DefaultRecordBatchPy):
    """A batch in which a name is text whatever its bytes are."""

    _buffer: bytearray

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        if not isinstance(self._buffer, AnyNames):
            self._buffer = AnyNames(self._buffer)


_METADATA_VERSION = 10
_RETRIES = 2
_NO_ID = uuid.UUID(int=0)


class _TopicsAnswer(Response):
    API_KEY = MetadataRequest.API_KEY
    API_VERSION = _METADATA_VERSION
    SCHEMA = Schema()

    @classmethod
    def decode(cls, data: Any) -> Any:
        return MetadataResponse.decode(data, version=_METADATA_VERSION)


class _Topics(RequestStruct):
    """Kafka's request for metadata in the version that tells ids (2.8), as kafka-python writes it: aiokafka has 5."""

    FLEXIBLE_VERSION = True
    API_KEY = MetadataRequest.API_KEY
    API_VERSION = _METADATA_VERSION
    RESPONSE_TYPE = _TopicsAnswer
    SCHEMA = Schema()

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        self._question = MetadataRequest(topics=asked, allow_auto_topic_creation=False, version=_METADATA_VERSION)

    def encode(self) -> bytes:
        return bytes(self._question.encode())


class _AskForTopics(Request[_Topics]):
    API_KEY = MetadataRequest.API_KEY

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(self._names)


async def cluster_ids(client: Any, names: Iterable[str]) -> Ids:
    """The ids of the cluster and of topics; empty from a broker that knows no ids of topics.

    Parameters
    ----------
    client : AIOKafkaClient
        Connected.

    Raises
    ------
    KafkaError
        If no broker answers.
    """
    for _ in range(_RETRIES):
        try:
            return await _ask(client, names)
        except kafka.KafkaError:
            await client.force_metadata_update()
    return await _ask(client, names)


async def _ask(client: Any, names: Iterable[str]) -> Ids:
    try:
        answer = await client.send(client.get_random_node(), _AskForTopics(names))
    except (NotImplementedError, kafka.IncompatibleBrokerVersion):  # a broker before 2.8
        return Ids("", {})
    topics = {t.name: str(t.topic_id) for t in answer.topics if not t.error_code and t.topic_id != _NO_ID}
    return Ids(answer.cluster_id or "", topics)


async def high_watermarks(consumer: Any, places: Sequence[Any]) -> Mapping[Any, int]:
    """Where logs end, whether committed or not.

    ``end_offsets`` of a consumer that reads committed records gives last stable offsets. The isolation is an attribute
    of its fetcher; a copy asks over the same connections.
    """
    asked = copy.copy(consumer._fetcher)  # noqa: SLF001 - aiokafka has no other way
    asked._isolation_level = READ_UNCOMMITTED  # noqa: SLF001
    return dict(await asked.end_offsets(places, None))


# Reading a partition from its start beside the consumer of the app: what a rebuild folds.

_LOG_FETCH_BYTES = 1_048_576  # what waits while records are folded; a larger record still comes
_LOG_POLL_MILLISECONDS = 500


class LogReader:
    """Makes a consumer without a group for each reading.

    Parameters
    ----------
    options : mapping
        ``bootstrap_servers`` and the security of aiokafka's clients.
    patience : float
        Seconds that a reading waits for brokers before it begins.
    check_crcs : bool
        The embedded broker writes none for its control records.
    """

    def __init__(self, options: Mapping[str, Any], patience: float = 60.0, *, check_crcs: bool = True) -> None:
        self._options = {**options, "check_crcs": check_crcs}
        self._patience = patience

    @contextlib.asynccontextmanager
    async def reading(self, tp: Any, up_to: int | None, first: int = 0) -> AsyncIterator["LogReading"]:
        """Read a partition from ``first``, or from its start, up to ``up_to``, included; closed in every case.

        Without ``up_to`` it is read to where it ends now.

        Raises
        ------
        BrokerUnavailableError
            If no broker tells within ``broker_patience`` where the log begins and ends.
        StateError
            If the log ends before ``up_to``.
        """
        place = ClientPartition(tp.topic, tp.partition)
        consumer = AIOKafkaConsumer(
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_bytes=_LOG_FETCH_BYTES,
            max_partition_fetch_bytes=_LOG_FETCH_BYTES,
            isolation_level=ISOLATION,
            **self._options,
        )
        try:
            async with _within(self._patience, f"{tp.topic}-{tp.partition} could not be read"):
                await patiently(consumer.start)
                consumer.assign([place])
                begin = (await patiently(lambda: consumer.beginning_offsets([place])))[place]
                end = (await high_watermarks(consumer, [place]))[place]
                if up_to is None:  # what an open transaction holds back is no part of the log yet
                    up_to = (await patiently(lambda: consumer.end_offsets([place])))[place] - 1
            if end <= up_to:
                msg = f"{tp.topic}-{tp.partition} ends at {end}, but was folded up to {up_to}: it was recreated"
                raise StateError(msg)
            first = min(max(first, begin), end)
            consumer.seek(place, first)
            yield LogReading(consumer, place, begin, first, up_to)
        finally:
            await asyncio.shield(asyncio.ensure_future(consumer.stop()))


class LogReading:
    """One reading of a partition. ``begin``: the first offset that the broker still has."""

    def __init__(self, consumer: Any, place: ClientPartition, begin: int, first: int, up_to: int) -> None:
        self.begin = begin
        self._consumer = consumer
        self._place = place
        self._up_to = up_to
        self._next = first

    async def batch(self) -> Sequence[Record]:
        """The next records, in order; none: that was all. Waits as long as it takes."""
        while self._next <= self._up_to:
            found = await self._consumer.getmany(self._place, timeout_ms=_LOG_POLL_MILLISECONDS)
            self._next = await self._consumer.position(self._place)
            records = [record for record in found.get(self._place, ()) if record.offset <= self._up_to]
            if records:
                return records
        return ()

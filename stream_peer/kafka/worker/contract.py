"""What we rely on inside Faust and aiokafka: private names with the signatures that we know, checked at start.

The versions are pinned; this catches an installation that ignores the pin, or lacks the compiled stream iterator,
whose Python twin acknowledges messages that it skips.
"""

import importlib.util
import inspect
import re
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.record.default_records import _DefaultRecordBatchPy
from faust.assignor.partition_assignor import PartitionAssignor
from faust.tables.recovery import Recovery
from faust.transport.consumer import Consumer
from faust.transport.drivers import aiokafka as driver

from stream_peer.errors import StateError

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
    (driver.Consumer, "_getmany"): ("self", "active_partitions", "timeout"),
    (driver.Consumer, "seek_wait"): ("self", "partitions"),
    (driver.Consumer, "earliest_offsets"): ("self", "partitions"),
    (driver.Consumer, "highwaters"): ("self", "partitions"),
    (Recovery, "active_remaining"): ("self",),
    (PartitionAssignor, "on_assignment"): ("self", "assignment"),
    (PartitionAssignor, "external_topics_metadata"): ("self",),
    (GroupCoordinator, "_coordination_routine"): ("self",),
    (GroupCoordinator, "_maybe_leave_group"): ("self",),
    (GroupCoordinator, "close"): ("self",),
    (AIOKafkaProducer, "create_batch"): ("self",),
    (AIOKafkaProducer, "send_batch"): ("self", "batch", "topic", "partition"),
    (MessageAccumulator, "reenqueue"): ("self", "batch"),
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
    AIOKafkaProducer: ("_message_accumulator",),
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

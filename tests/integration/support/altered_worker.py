"""``stream-peer`` as it is not: with other constants, on a wrong machine, of an earlier release, or held up by a test.

``python -m tests.integration.support.altered_worker NAME worker``; `ALTERATIONS` has the names.
"""

import asyncio
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from faust.assignor.partition_assignor import PartitionAssignor

from stream_peer.cli import main
from stream_peer.errors import SettingFault
from stream_peer.feeds import stage as feed
from stream_peer.feeds import store as feed_store
from stream_peer.kafka.client import topic_plan
from stream_peer.kafka.client.topics_watch import TopicsWatch
from stream_peer.kafka.worker import ownership, partition, recreated, state_writer
from stream_peer.kafka.worker.faust_bridge import Assignor, LogReader, LogReading
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.state_writer import StateWriter
from stream_peer.log import changelog as state_log
from stream_peer.log.stage import Snapshot
from stream_peer.settings.feed import document

_PORTION = 100
_SLICE_BYTES = 20_000


def looks_always() -> None:
    """Idle partitions look at the ends of their changelogs all the time, not once a minute."""
    partition.LOOK_SECONDS = 0.0


def takes_any_topics() -> None:
    """Topics are taken as they are, though they are compacted or deleted sooner than the plan says."""
    topic_plan._DAY = 0


def compares_topics_every_second() -> None:
    """Topics are compared with the plan every second, not every 30 s."""
    TopicsWatch.__init__.__defaults__ = (1.0,)


def cannot_write_files() -> None:
    """The process cannot write to any file, its log neither."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def has_a_wrong_clock() -> None:
    """The time of day is wrong by as many seconds as a file says (``CLOCK``); it may jump. Steady seconds stay."""
    file, of_machine = Path(os.environ["CLOCK"]), time.time_ns

    def time_ns() -> int:
        return of_machine() + int(file.read_text()) * 1_000_000_000

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def is_before_method_versions() -> None:
    """A release that tells its group no version of the method, and refuses settings that name one."""
    resolve = document._resolve

    def resolved(path: str, layers: list[Any], origin: str, faults: list[SettingFault], **how: Any) -> Any:
        if any("method_version" in layer for layer in layers):
            faults.append(SettingFault(f"{path}.method_version", origin, "no such setting"))
        return resolve(path, layers, origin, faults, **how)

    Assignor.metadata = PartitionAssignor.metadata  # type: ignore[method-assign]  # as it was
    document._resolve = resolved


class FormerHead(msgspec.Struct, frozen=True):
    """A head from before it said which topic it speaks of."""

    schema: int
    claim: str
    applied: int
    value: bytes


def is_the_former_release() -> None:
    """Today's code with the former forms of state; every topic is the first under its name."""

    def head_row(writer: Any, snapshot: Snapshot, applied: int) -> state_log.ChangelogRow:
        head = FormerHead(state_log.SCHEMA, writer._token, applied, snapshot.head)
        return state_log.ChangelogRow(writer._prefix + b"head", msgspec.msgpack.encode(head))

    former_schema = feed_store.SCHEMA - 1
    for module in (feed, feed_store):
        module.SCHEMA = former_schema  # type: ignore[attr-defined]  # whatever imports it has its own
    state_log.Writer.head_row = head_row  # type: ignore[method-assign,assignment]  # as it was
    for module in (ownership, recreated):
        module.topic_generation = lambda _topic_id: 0  # type: ignore[attr-defined]  # as it was


async def passed(place: str) -> None:
    """Wait while the gate is closed."""
    gates = Path(os.environ["GATES"])
    while (gates / place).exists():
        (gates / f"{place}.reached").touch()
        await asyncio.sleep(0.02)


def has_gates() -> None:
    """Wait for the test: before folding, before or in a rebuild, or in a snapshot.

    The environment names a directory (``GATES``): while it holds a file ``fold``, ``connect``, ``rebuild`` or
    ``snapshot``, the worker waits at that place and leaves a file ``fold.reached`` and the like. Portions and slices
    are small, so that there is a middle.
    """
    handle, batch, append = OwnedPartition._handle, LogReading.batch, StateWriter._append
    reading = LogReader.reading
    slices: Counter[int] = Counter()
    waiting: list[Any] = []  # records of the one log that is read at a time

    async def gated_handle(self: OwnedPartition) -> None:
        await passed("fold")
        await handle(self)

    @asynccontextmanager
    async def gated_reading(self: LogReader, *place: Any) -> AsyncIterator[LogReading]:
        await passed("connect")
        async with reading(self, *place) as opened:
            yield opened

    async def gated_batch(self: LogReading) -> Any:
        if waiting:
            await passed("rebuild")
        else:
            waiting.extend(await batch(self))
        portion = waiting[:_PORTION]
        del waiting[:_PORTION]
        return portion

    async def gated_append(self: StateWriter, partition: int, rows: Any, context: Any) -> None:
        await append(self, partition, rows, context)
        slices[partition] = 0 if len(rows) == 1 else slices[partition] + 1  # alone is the head
        if slices[partition] > 1:
            await passed("snapshot")

    state_writer._SLICE_BYTES = _SLICE_BYTES
    OwnedPartition._handle = gated_handle  # type: ignore[method-assign]  # on purpose
    LogReader.reading = gated_reading  # type: ignore[assignment]  # on purpose
    LogReading.batch = gated_batch  # type: ignore[method-assign]  # on purpose
    StateWriter._append = gated_append  # type: ignore[method-assign]  # on purpose


ALTERATIONS: tuple[Callable[[], None], ...] = (
    looks_always,
    takes_any_topics,
    compares_topics_every_second,
    cannot_write_files,
    has_a_wrong_clock,
    is_before_method_versions,
    is_the_former_release,
    has_gates,
)

if __name__ == "__main__":
    {alter.__name__: alter for alter in ALTERATIONS}[sys.argv.pop(1)]()
    main()

"""A stage that counts, so that one record too few, too many or out of order shows; and a worker that runs it.

``python -m tests.integration.support.counting_stage`` is a worker as ``stream-peer worker`` is one, with counting
stages. It reads ``COUNTING_SETTINGS`` (JSON) and ``STREAM_PEER_FAULT``; ``COUNTING_DROP`` is the share of batches that
get lost between the consumer and the stage, ``COUNTING_ZOMBIE`` leaves the watchdog out, ``COUNTING_FREEZE`` is after
how many requests the process stops itself, with the records of the next one taken from its producer's queue.
"""

import json
import logging
import os
import random
import signal
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import structlog
from aiokafka.producer.message_accumulator import MessageAccumulator

from stream_peer.errors import StreamPeerError
from stream_peer.events import topics
from stream_peer.events.times import Milliseconds
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.worker import worker
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.process import Watchdog
from stream_peer.kafka.worker.worker import StageMakers
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Effects, Output, Record, Snapshot
from stream_peer.settings.process import Http, Partitions, Settings, SnapshotEvery


class CountingStage:
    """State: key → [number, running hash]. One output a record, which names its source offset and the state after it.

    ``remember_sources``: as the feed stage does, skip records whose ``[partition, offset]`` was seen already.
    """

    def __init__(self, partition: int, output_topic: str, *, remember_sources: bool = False) -> None:
        self._partition = partition
        self._topic = output_topic
        self._remember = remember_sources
        self._state: dict[bytes, list[int]] = {}
        self._seen: dict[str, int] = {}
        self._dirty: set[bytes] = set()
        self.clock: Milliseconds = 0

    def step(self, record: Record, effects: Effects) -> None:
        """Count the record under its key."""
        event = json.loads(record.value or b"{}")
        if self._remember:
            source = str(event["src"][0])
            if event["src"][1] <= self._seen.get(source, -1):
                effects.counts["repeated", ""] += 1
                return
            self._seen[source] = event["src"][1]
        key = record.key or b""
        number, running = self._state.get(key, [0, 7])
        self._state[key] = state = [number + 1, (running * 31 + event["x"]) % 1_000_000_007]
        self._dirty.add(b"k/" + key)
        value = {"src": [self._partition, record.offset], "x": event["x"], "state": state}
        effects.outputs.append(Output(self._topic, key, json.dumps(value).encode(), record.timestamp))

    def begin_topic(self, generation: int, base: int, *, keep: bool) -> None:
        """Its counters do not depend on it."""

    def snapshot(self) -> Snapshot:
        """Every counter that changed."""
        entries = {key: msgspec.msgpack.encode(self._state[key[2:]]) for key in self._dirty}
        self._dirty.clear()
        return Snapshot(entries, msgspec.msgpack.encode(self._seen))

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Go on from there."""
        self._seen = msgspec.msgpack.decode(head) if head else {}
        self._state = {key[2:]: msgspec.msgpack.decode(value) for key, value in entries.items()}


def expected(records: Iterable[tuple[int, int, bytes, bytes]], *, remember_sources: bool = False) -> dict[Any, bytes]:
    """The slow obvious way: output bytes by (partition, offset) of the input record."""
    stages: dict[int, CountingStage] = {}
    values: dict[Any, bytes] = {}
    for partition, offset, key, value in records:
        stage = stages.setdefault(partition, CountingStage(partition, "", remember_sources=remember_sources))
        effects = Effects()
        stage.step(_Plain(offset, key, value), effects)
        if effects.outputs:
            values[partition, offset] = effects.outputs[0].value or b""
    return values


class _Plain(msgspec.Struct):
    offset: int
    key: bytes
    value: bytes
    timestamp: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


def counting_stages() -> StageMakers:
    """forecast-events → feed-log → weights."""
    return StageMakers(
        question=lambda partition: CountingStage(partition, topics.FEED_LOG),
        feed=lambda partition: CountingStage(partition, topics.WEIGHTS, remember_sources=True),
        control=lambda partition: CountingStage(partition, topics.DEAD_LETTERS),
    )


def settings_from(options: Mapping[str, Any]) -> Settings:
    """Settings for a test: short sessions, frequent snapshots."""
    partitions = Partitions(forecast_events=4, control_events=4, feed_log=4, dead_letters=4)
    defaults: dict[str, Any] = {
        "session": 6.0,
        "rebalance_timeout": 8.0,
        "shutdown_deadline": 8.0,
        "broker_patience": 20.0,
        "compression": "none",
    }
    every = SnapshotEvery(seconds=options.get("snapshot_seconds", 1.0))
    rest = {name: value for name, value in options.items() if name != "snapshot_seconds"}
    return Settings(partitions=partitions, snapshot_every=every, http=Http(port=0), **{**defaults, **rest})


def fault_from(environment: Mapping[str, str]) -> Any:
    """``place:probability`` → a hook that kills this process at the place, that often."""
    place, _, probability = environment.get("STREAM_PEER_FAULT", ":0").partition(":")

    def fault(here: str) -> None:
        if here == place and random.random() < float(probability):
            sys.stderr.write(f"FAULT {here}\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def sabotage(environment: Mapping[str, str]) -> None:
    """Break what the environment says."""
    share = float(environment.get("COUNTING_DROP", "0"))
    put = OwnedPartition.put

    async def lossy_put(self: OwnedPartition, event: Any) -> None:
        if random.random() < share:
            self._source.forget(event)
        else:
            await put(self, event)

    OwnedPartition.put = lossy_put  # type: ignore[method-assign]  # on purpose
    if environment.get("COUNTING_ZOMBIE"):
        Watchdog.start = _watch_nothing  # type: ignore[assignment,method-assign]  # on purpose
    if requests := int(environment.get("COUNTING_FREEZE", "0")):
        _freeze_after(requests)


def _watch_nothing(_watchdog: Watchdog) -> None:
    """Let frozen workers live on."""


def _freeze_after(requests: int) -> None:
    drain, left = MessageAccumulator.drain_by_nodes, requests

    def drain_and_stop(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal left
        drained = drain(self, *args, **options)
        if any(place.topic.endswith(topics.FEED_LOG) for batches in drained[0].values() for place in batches):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGSTOP)
        return drained

    MessageAccumulator.drain_by_nodes = drain_and_stop


def main() -> int:
    """Run the worker of the environment; return its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # told to stop before it runs, as `stream-peer worker` does
    processors: list[Any] = [
        structlog.processors.TimeStamper("%H:%M:%S.%f"),
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(key_order=["timestamp", "event"]),
    ]
    structlog.configure(processors, logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    sabotage(os.environ)
    settings = settings_from(json.loads(os.environ["COUNTING_SETTINGS"]))
    try:
        if settings.broker == "embedded":
            KafkaAdmin(settings).check()  # makes the topics; on a real Kafka they are there, in another shape
        else:
            preflight(settings)
        fault = fault_from(os.environ)
        return worker.run(settings, Observer(), worker.Keys(), stages=counting_stages(), fault=fault)
    except StreamPeerError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

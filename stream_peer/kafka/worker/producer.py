"""Whole record batches to Kafka, acknowledged: outputs by the partition of their key, state rows where they belong."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import aiokafka
import structlog
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from mode import Service

from stream_peer.errors import RecordTooLargeError
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import Milliseconds
from stream_peer.events.topics import FORECAST_EVENTS
from stream_peer.kafka.client.topic_ids import cluster_ids
from stream_peer.kafka.worker.watchdog import Vitals
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Headers, Output

log = structlog.get_logger(__name__)

RECORD_LIMIT = 1_048_576
"""Bytes of a record with its key and headers: what brokers take unless told otherwise."""

_BATCH_LIMIT = 900_000
_OVERHEAD = 100  # batch and record headers

Writing = tuple[Milliseconds, bytes | None, bytes | None, Headers]
"""A record about to be written: timestamp, key, value, headers."""


class Appended(NamedTuple):
    """Where a run of records was put; ``base`` is -1 if the broker did not say."""

    base: int
    rows: int


class BatchProducer(Service):
    """An idempotent producer of ready-made batches. Every write is under the batch deadline of ``vitals``.

    Parameters
    ----------
    options : mapping
        ``bootstrap_servers`` and the security of aiokafka's clients.
    topic : callable
        Physical name of a logical topic.
    compression : str or None
        Of everything that is written.
    signatures : Signatures or None
        Bound to the present ``forecast-events`` whenever ids are asked for.

    Attributes
    ----------
    retries : int
        How often a batch was sent once more, because a broker did not take it.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        topic: Callable[[str], str],
        compression: str | None,
        vitals: Vitals,
        signatures: Signatures | None = None,
    ) -> None:
        super().__init__()
        self._options = dict(options)
        self._topic = topic
        self._compression = compression
        self._vitals = vitals
        self._signatures = signatures
        self._partitions: dict[str, int] = {}
        self._turns: dict[tuple[str, int], asyncio.Lock] = {}
        self._client: Any = None
        self.retries = 0

    async def on_start(self) -> None:
        """Connect."""
        self._client = aiokafka.AIOKafkaProducer(
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=_BATCH_LIMIT,
            max_request_size=RECORD_LIMIT,
            compression_type=self._compression,
            **self._options,
        )
        self._count_retries(self._client._message_accumulator)  # noqa: SLF001 - aiokafka counts them for itself
        await self._client.start()

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

    async def answers(self) -> bool:
        """Whether a broker answers a question about its topics."""
        try:
            if not await self._client.client.force_metadata_update():
                return False
            await self.topic_ids(())  # a feed worker reads no forecast-events: nothing else tells it of a new one
        except KafkaError:
            return False
        return True

    async def topic_ids(self, names: Iterable[str]) -> Mapping[str, str]:
        """The broker's ids of topics by name, as far as there are any."""
        signed = self._topic(FORECAST_EVENTS)
        ids = await cluster_ids(self._client.client, {*names, signed})
        if self._signatures is not None and signed in ids.topics:
            self._signatures.bind(ids.cluster, ids.topics[signed])
        return ids.topics

    async def send(self, outputs: Sequence[Output]) -> None:
        """Write outputs, in order per partition, and wait until all are acknowledged."""
        if not outputs:
            return
        with self._vitals.writing():
            groups = await self._grouped(outputs)
            submitted = [await self._submit(*place, group) for place, group in groups.items()]
            for place, group in zip(groups, submitted, strict=True):
                await _acknowledged(*place, group)

    async def append(
        self, topic: str, partition: int, rows: Iterable[tuple[bytes, bytes]], timestamp: Milliseconds
    ) -> list[Appended]:
        """Write rows to one partition of a topic by its physical name, and say where they were put."""
        with self._vitals.writing():
            submitted = await self._submit(topic, partition, [(timestamp, key, value, ()) for key, value in rows])
            return await _acknowledged(topic, partition, submitted)

    async def _grouped(self, outputs: Sequence[Output]) -> dict[tuple[str, int], list[Writing]]:
        names: dict[str, str] = {}
        for logical in {output.topic for output in outputs}:
            names[logical] = self._topic(logical)
            await self._count_partitions(names[logical])
        groups: dict[tuple[str, int], list[Writing]] = {}
        for logical, key, value, timestamp, partition, headers in outputs:
            name = names[logical]
            chosen = _partition(key, self._partitions[name]) if partition is None else partition
            groups.setdefault((name, chosen), []).append((timestamp, key, value, headers))
        return groups

    async def _count_partitions(self, topic: str) -> None:
        if topic not in self._partitions:
            self._partitions[topic] = len(await self._client.partitions_for(topic))

    async def _submit(self, topic: str, partition: int, records: Sequence[Writing]) -> list["_Batch"]:
        client = self._client
        batches: list[_Batch] = []
        start = 0
        while start < len(records):
            builder = client.create_batch()
            end = _fill(builder, records, start, topic)
            # In turn: aiokafka lets those who wait for a slot race for it, and adds up what each lost round took.
            async with self._turns.setdefault((topic, partition), asyncio.Lock()):
                future = await client.send_batch(builder, topic, partition=partition)
            batches.append(_Batch(future, records[start:end]))
            start = end
        return batches


class _Batch(NamedTuple):
    future: asyncio.Future[Any]
    records: Sequence[Writing]


def _fill(builder: Any, records: Sequence[Writing], start: int, topic: str) -> int:
    """Append records to the batch until it is full; return the index of the first that did not go in."""
    append = builder.append
    for index in range(start, len(records)):
        timestamp, key, value, headers = records[index]
        if value is not None and len(value) > _BATCH_LIMIT - 10_000:
            check_size(topic, key, value, headers)
        if append(timestamp=timestamp, key=key, value=value, headers=list(headers)) is None:
            if index == start:
                raise _too_large(topic, key, _size(key, value, headers), _BATCH_LIMIT)
            return index
    builder.close()
    return len(records)


def check_size(topic: str, key: bytes | None, value: bytes | None, headers: Headers, limit: int = RECORD_LIMIT) -> None:
    """Refuse a record that no broker would take.

    Raises
    ------
    RecordTooLargeError
        Names topic, key, size and limit.
    """
    size = _size(key, value, headers)
    if size > limit:
        raise _too_large(topic, key, size, limit)


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    return _OVERHEAD + len(key or b"") + len(value or b"") + sum(len(k) + len(v or b"") + 4 for k, v in headers)


def _too_large(topic: str, key: bytes | None, size: int, limit: int | str) -> RecordTooLargeError:
    return RecordTooLargeError(f"the record of key {key!r} for {topic} has {size} bytes, the limit is {limit}")


async def _acknowledged(topic: str, partition: int, batches: Sequence[_Batch]) -> list[Appended]:
    places = []
    for batch in batches:
        try:
            metadata = await batch.future
        except MessageSizeTooLargeError:
            largest = max(batch.records, key=lambda record: len(record[2] or b""))
            limit = "max.message.bytes of the topic"
            raise _too_large(f"{topic}-{partition}", largest[1], _size(*largest[1:]), limit) from None
        places.append(Appended(metadata.offset, len(batch.records)))
    return places


@lru_cache(maxsize=65_536)
def _partition(key: bytes | None, partitions: int) -> int:
    return partition_of(key or b"", partitions)

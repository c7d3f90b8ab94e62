"""Puts a workload on its topic, in batches and in order, as fast as the broker takes it."""

import asyncio
from collections.abc import Callable

from aiokafka import AIOKafkaProducer

from benchmarks.deployment import SIGNING_KEY
from benchmarks.workload import Message, Workload
from stream_peer.kafka.worker.faust_bridge import cluster_ids
from stream_peer.log.signatures import Signatures


async def _send(producer: AIOKafkaProducer, topic: str, partition: int, messages: list[Message]) -> None:
    batch = producer.create_batch()
    for message in messages:
        record = {"key": message.key, "value": message.value, "headers": list(message.headers)}
        if batch.append(timestamp=None, **record) is None:
            await (await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(timestamp=None, **record)
    await (await producer.send_batch(batch, topic, partition=partition))


async def _feed(
    bootstrap: str, topic: str, partitions: int, workload: Workload, when_built: Callable[[], object]
) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, max_batch_size=500_000
    ) as producer:
        ids = await cluster_ids(producer.client, [topic])
        signatures = Signatures((SIGNING_KEY,), ids.cluster, ids.topics.get(topic, ""))
        told = [workload.partition(partition, partitions, signatures) for partition in range(partitions)]
        when_built()
        for partition, messages in enumerate(told):
            await _send(producer, topic, partition, messages)


def feed(
    bootstrap: str,
    topic: str,
    partitions: int,
    workload: Workload,
    when_built: Callable[[], object] = lambda: None,
) -> None:
    """Send all of it, signed as the deployment's own; ``when_built`` is called before the first is sent."""
    asyncio.run(_feed(bootstrap, topic, partitions, workload, when_built))

"""Puts a workload on its topic, in batches and in order, as fast as the broker takes it."""

import asyncio

from aiokafka import AIOKafkaProducer

from benchmarks.workload import Message, Workload


async def _send(producer: AIOKafkaProducer, topic: str, partition: int, messages: list[Message]) -> None:
    batch = producer.create_batch()
    for message in messages:
        if batch.append(key=message.key, value=message.value, timestamp=None) is None:
            await (await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(key=message.key, value=message.value, timestamp=None)
    await (await producer.send_batch(batch, topic, partition=partition))


async def _feed(bootstrap: str, topic: str, partitions: int, workload: Workload) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, max_batch_size=500_000
    ) as producer:
        for partition in range(partitions):
            await _send(producer, topic, partition, workload.partition(partition, partitions))


def feed(bootstrap: str, topic: str, partitions: int, workload: Workload) -> None:
    """Send all of it."""
    asyncio.run(_feed(bootstrap, topic, partitions, workload))

"""Reading topics as an onlooker: no group, no commits, from where one likes to where the log ends now."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as TopicPartition
from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, TopicsError
from stream_peer.kafka.client.preflight import preflight_async
from stream_peer.kafka.client.security import ISOLATION, aiokafka_options
from stream_peer.settings.process import Settings

_POLL_MILLISECONDS = 500


@asynccontextmanager
async def onlooker(settings: Settings, **options: Any) -> AsyncIterator[Any]:
    """A started consumer without a group, whose errors are ours; ``options`` are more of the client's.

    Raises
    ------
    BrokerUnavailableError
        If no broker answers within ``broker_patience``.
    NotAuthorisedError
        If the brokers refuse us.
    """
    await preflight_async(settings)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap,
        client_id=f"{settings.prefix}{settings.id}-onlooker",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level=ISOLATION,
        **options,
        **aiokafka_options(settings.security),
    )
    with kafka_errors(settings):
        try:
            await consumer.start()
            yield consumer
        finally:
            await consumer.stop()


class kafka_errors:  # noqa: N801 - a context manager that reads like a function
    """Turns aiokafka's errors into ours."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, kafka.TopicAuthorizationFailedError):
            topics = error.args[0] if error.args else "the topic"
            msg = f"No right to read or write {topics}; `stream-peer topics plan --offline` lists the rights needed."
            raise NotAuthorisedError(msg) from None
        if isinstance(error, kafka.KafkaError):
            msg = f"The brokers at {self._settings.bootstrap} do not answer any more: {error}."
            raise BrokerUnavailableError(msg) from None


async def partitions_of(settings: Settings, topic: str) -> list[TopicPartition]:
    """All partitions of a topic.

    Raises
    ------
    TopicsError
        If there is no such topic.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap, **aiokafka_options(settings.security))
    with kafka_errors(settings):
        try:
            await admin.start()
            described = await admin.describe_topics()  # of all: asking for one by name may make it
        finally:
            await admin.close()
    counts = {found["topic"]: len(found["partitions"]) for found in described if not found["error_code"]}
    if topic not in counts:
        msg = (
            f"There is no topic {topic}, or we may not see it (is the prefix right?); "
            "`stream-peer topics apply` makes it."
        )
        raise TopicsError(msg)
    return [TopicPartition(topic, partition) for partition in range(counts[topic])]


async def read_to_end(consumer: Any, partitions: Sequence[TopicPartition]) -> AsyncGenerator[list[Any], None]:
    """Records of the partitions from their starts to where they end now, in batches of one partition, in order.

    The end is the last stable offset, and is met by position: there may be no record before it, as where a log ends in
    an aborted transaction.
    """
    consumer.assign(partitions)
    ends = await consumer.end_offsets(partitions)
    await consumer.seek_to_beginning(*partitions)
    left = {tp for tp in partitions if await consumer.position(tp) < ends[tp]}
    while left:
        for tp, records in (await consumer.getmany(*left, timeout_ms=_POLL_MILLISECONDS)).items():
            wanted = [record for record in records if record.offset < ends[tp]]
            if wanted:
                yield wanted
        left = {tp for tp in left if await consumer.position(tp) < ends[tp]}

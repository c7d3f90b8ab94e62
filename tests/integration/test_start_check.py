"""The start-up check on brokers."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer

from stream_peer.adapters.embedded_broker import EmbeddedBroker
from stream_peer.events import topics
from stream_peer.settings import Settings
from stream_peer.topology.start_check import check
from tests.integration.support.client import KafkaClient


@pytest.mark.real_kafka
def test_whoever_may_use_the_groups_passes(kafka: KafkaClient, topic_prefix: str) -> None:
    check(Settings(bootstrap=kafka.bootstrap, prefix=topic_prefix, broker_patience=20.0))


def test_an_embedded_broker_has_all_topics_afterwards() -> None:
    async def names(bootstrap: str) -> set[str]:
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            return set(await consumer.topics())

    with EmbeddedBroker() as broker:
        settings = Settings(bootstrap=broker.bootstrap, broker="embedded", broker_patience=20.0)

        check(settings)

        made = asyncio.run(names(broker.bootstrap))
    assert {*topics.ALL, settings.changelog("question"), settings.changelog("feed")} <= made

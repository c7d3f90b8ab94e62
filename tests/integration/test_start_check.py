"""What is asked of brokers before a worker starts."""

import pytest

from stream_peer.events import topics
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.read import groupless_reader
from stream_peer.kafka.client.topic_plan import worker_rights
from stream_peer.settings.process import Settings
from stream_peer.tools.demo.brokers import EmbeddedBroker
from tests.integration.support.client import KafkaClient


@pytest.mark.real_kafka
def test_brokers_without_acls_grant_every_right(kafka: KafkaClient, topic_prefix: str) -> None:
    settings = Settings(bootstrap=kafka.bootstrap, prefix=topic_prefix, broker_patience=20.0)
    KafkaAdmin(settings).apply()

    KafkaAdmin(settings).check(worker_rights(settings))


def test_an_embedded_broker_has_all_topics_afterwards() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(bootstrap=broker.bootstrap, broker="embedded", broker_patience=20.0)

        KafkaAdmin(settings).check(worker_rights(settings))

        with groupless_reader(settings) as consumer:
            made = set(consumer.topics())
    assert {*topics.ALL, settings.changelog("question"), settings.changelog("feed")} <= made

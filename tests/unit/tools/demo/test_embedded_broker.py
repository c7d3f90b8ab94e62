"""The broker inside the process."""

import sys

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from stream_peer.errors import SettingsError, TopicsError
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.control_events import apply_document, apply_everywhere, newest_document
from stream_peer.kafka.worker.faust_bridge import cluster_ids
from stream_peer.settings.process import Settings
from stream_peer.tools.demo.brokers import EmbeddedBroker


def test_topics_exist_from_the_start_with_four_partitions_each() -> None:
    with EmbeddedBroker(["first", "second"]) as broker:
        seen = Producer({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics

    assert {name: len(topic.partitions) for name, topic in seen.items()} == {"first": 4, "second": 4}


def test_a_topic_that_exists_can_be_asked_for_again() -> None:
    with EmbeddedBroker(["first"]) as broker:
        broker.create_topics(["first"])


def test_without_confluent_kafka_it_says_which_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(SettingsError, match=r"stream-peer\[demo\]"), EmbeddedBroker():
        pass


def test_commands_write_to_it_and_read_what_they_wrote() -> None:
    with EmbeddedBroker(["control-events"]) as broker:
        settings = Settings(bootstrap=broker.bootstrap, broker="embedded", broker_patience=20.0)
        assert newest_document(settings) is None

        written = [apply_document(settings, {"feeds": {}, "defaults": {"min_experts": n}}) for n in (3, 4)]

        assert newest_document(settings) == written[1]
        with pytest.raises(TopicsError, match="There is no topic forecast-events"):
            apply_everywhere(settings, {}, 1.0)


async def test_commands_and_workers_see_the_same_ids_of_it_so_that_they_believe_each_others_signatures() -> None:
    with EmbeddedBroker(["forecast-events"]) as broker:
        names = ["forecast-events", "unknown"]
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            of_worker = await cluster_ids(producer.client, names)

        of_command = KafkaAdmin(Settings(bootstrap=broker.bootstrap, broker="embedded")).ids(names)

    assert of_command == of_worker
    assert of_worker.cluster
    assert set(of_worker.topics) == {"forecast-events"}

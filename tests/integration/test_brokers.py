"""The ladder's own promises, on whatever rung this machine gives."""

from collections.abc import Callable, Mapping

import pytest

from stream_peer.events.partitioning import partition_of
from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.kafka_broker import KafkaBroker


def test_records_come_back_in_order_with_key_and_headers(kafka: KafkaClient, topic_prefix: str) -> None:
    topic = f"{topic_prefix}echo"
    kafka.create_topics({topic: 4})
    sent = [Message(b"q1", str(n).encode(), 2, 1_700_000_000_000 + n, (("h", b"v"),)) for n in range(50)]

    offsets = kafka.produce(topic, sent)

    assert offsets == list(range(50))
    read = kafka.read_all(topic)
    assert [m._replace(offset=-1) for m in read] == sent
    assert kafka.end_offsets(topic) == {0: 0, 1: 0, 2: 50, 3: 0}


def test_a_key_lands_where_murmur2_says(kafka: KafkaClient, topic_prefix: str) -> None:
    topic = f"{topic_prefix}hashed"
    kafka.create_topics({topic: 4})
    keys = [f"question-{n}".encode() for n in range(40)]

    kafka.produce(topic, [(key, b"{}") for key in keys])

    landed = {m.key: m.partition for m in kafka.read_all(topic)}
    assert landed == {key: partition_of(key, 4) for key in keys}


@pytest.mark.real_kafka
def test_topics_of_a_prefix_can_be_deleted(kafka: KafkaClient, topic_prefix: str) -> None:
    kafka.create_topics({f"{topic_prefix}a": 1, f"{topic_prefix}b": 3}, {"cleanup.policy": "compact"})
    assert {f"{topic_prefix}a", f"{topic_prefix}b"} <= kafka.topics()

    kafka.delete_topics(topic_prefix)

    assert not [name for name in kafka.topics() if name.startswith(topic_prefix)]


@pytest.mark.slow
def test_a_killed_broker_comes_back_with_its_records(own_kafka: Callable[[Mapping[str, str]], KafkaBroker]) -> None:
    broker = own_kafka({})
    client = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))
    client.create_topics({"kept": 1})
    client.produce("kept", [(b"k", b"before")])

    broker.kill()
    broker.start()

    client.produce("kept", [(b"k", b"after")])
    assert [m.value for m in client.read_all("kept")] == [b"before", b"after"]

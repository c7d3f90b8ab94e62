"""The broker inside the process."""

import sys

import pytest
from confluent_kafka import Producer

from stream_peer.errors import SettingsError
from stream_peer.tools.demo.embedded_broker import PARTITIONS, EmbeddedBroker


def test_topics_exist_from_the_start_with_four_partitions_each() -> None:
    with EmbeddedBroker(["first", "second"]) as broker:
        seen = Producer({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics

    assert {name: len(topic.partitions) for name, topic in seen.items()} == {"first": PARTITIONS, "second": PARTITIONS}


def test_a_topic_that_exists_can_be_asked_for_again() -> None:
    with EmbeddedBroker(["first"]) as broker:
        broker.create_topics(["first"])


def test_without_confluent_kafka_it_says_which_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(SettingsError, match=r"stream-peer\[demo\]"), EmbeddedBroker():
        pass

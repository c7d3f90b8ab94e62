"""The start-up check on a broker: what is wrong is listed whole, with the command that mends it."""

from collections.abc import Mapping
from typing import Literal

import pytest

from stream_peer.errors import TopicsError
from stream_peer.events import topics
from stream_peer.settings import Partitions, Settings
from stream_peer.topology.start_check import check, expected_partitions
from tests.integration.support.client import KafkaClient

PARTITIONS = Partitions(forecast_events=4, control_events=4, feed_log=4, dead_letters=4)


@pytest.fixture
def settings(kafka: KafkaClient, topic_prefix: str) -> Settings:
    broker: Literal["kafka", "embedded"] = "kafka" if kafka.broker.rung.is_real else "embedded"
    return Settings(
        bootstrap=kafka.bootstrap, prefix=topic_prefix, partitions=PARTITIONS, broker=broker, broker_patience=20.0
    )


def make_topics(
    kafka: KafkaClient, settings: Settings, *, stamped: str = "LogAppendTime", counts: Mapping[str, int] | None = None
) -> None:
    wanted = {**expected_partitions(settings), **(counts or {})}
    forecasts = settings.topic(topics.FORECAST_EVENTS)
    kafka.create_topics({forecasts: wanted.pop(forecasts)}, {"message.timestamp.type": stamped})
    kafka.create_topics(wanted)


def test_topics_as_expected_pass(kafka: KafkaClient, settings: Settings) -> None:
    make_topics(kafka, settings)

    check(settings)


@pytest.mark.real_kafka
@pytest.mark.case("C28")
def test_a_changelog_with_other_partitions_than_its_input_is_named_with_both_counts_and_the_command(
    kafka: KafkaClient, settings: Settings
) -> None:
    changelog = settings.changelog("question")
    make_topics(kafka, settings, stamped="CreateTime", counts={changelog: 2})

    with pytest.raises(TopicsError) as caught:
        check(settings)

    assert f"topic {changelog} has 2 partitions, the settings say 4" in str(caught.value)
    assert "message.timestamp.type=CreateTime, it must be LogAppendTime" in str(caught.value)
    assert f"stream-peer topics apply --bootstrap {settings.bootstrap} --prefix {settings.prefix}" in str(caught.value)


@pytest.mark.real_kafka
def test_all_missing_topics_are_listed_at_once(settings: Settings) -> None:
    with pytest.raises(TopicsError) as caught:
        check(settings)

    assert all(f"topic {name} is missing" in str(caught.value) for name in expected_partitions(settings))

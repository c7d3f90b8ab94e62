"""What is wrong with the topics, as sentences."""

import socket

import pytest

from stream_peer.errors import BrokerUnavailableError
from stream_peer.settings import Partitions, Settings
from stream_peer.topology.start_check import Found, check, expected_partitions, topic_faults

SETTINGS = Settings(
    prefix="acme-", partitions=Partitions(forecast_events=8, control_events=2, feed_log=3, dead_letters=1)
)


def found(changes: dict[str, int | None] | None = None, stamped: str | None = "LogAppendTime") -> Found:
    partitions = {**expected_partitions(SETTINGS), **(changes or {})}
    return Found({name: count for name, count in partitions.items() if count is not None}, stamped)


def test_topics_as_planned_have_no_faults() -> None:
    assert list(topic_faults(SETTINGS, found())) == []


@pytest.mark.case("C28")
def test_every_topic_that_is_missing_or_has_another_partition_count_is_named_with_both_counts() -> None:
    changelog = SETTINGS.changelog("feed")
    faults = list(topic_faults(SETTINGS, found({"acme-feed-log": 16, changelog: 5, "acme-weights": None})))

    assert faults == [
        "topic acme-feed-log has 16 partitions, the settings say 3",
        "topic acme-weights is missing (3 partitions)",
        f"topic {changelog} has 5 partitions, the settings say 3",
    ]


def test_forecast_events_must_be_stamped_by_the_broker() -> None:
    faults = list(topic_faults(SETTINGS, found(stamped="CreateTime")))

    assert faults == [
        "topic acme-forecast-events has message.timestamp.type=CreateTime, it must be LogAppendTime",
    ]


def test_an_embedded_broker_needs_topics_to_exist_and_no_more() -> None:
    embedded = Settings(broker="embedded")
    partitions = dict.fromkeys(expected_partitions(embedded), 4)
    del partitions["weights"]

    faults = list(topic_faults(embedded, Found(partitions, "CreateTime")))

    assert faults == ["topic weights is missing (16 partitions)"]


def test_a_broker_that_does_not_answer_is_waited_for_and_then_named() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(BrokerUnavailableError, match=f"{address} within 1 s"):
            check(Settings(bootstrap=address, broker_patience=1.0))

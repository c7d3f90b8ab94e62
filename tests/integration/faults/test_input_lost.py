"""Records that Kafka deleted before they were read, at the end of a partition: reported though nothing follows."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, forecast, question
from tests.integration.support.service import Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]

PARTITIONS = 2
NAMES = [f"q{n}" for n in range(60) if partition_of(f"q{n}", PARTITIONS) == 0]
LOST = "stream_peer_input_lost_records_total"


@pytest.fixture
def made(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    with service(kafka, tmp_path, shape=Shape(PARTITIONS, 1)) as started:
        yield started.set_up()


def said(which: int) -> Event:
    return forecast(NAMES[which], "ann", 0.7, 24.0)


def deleted(made: Service) -> None:
    """Everything that the partition holds goes, as by retention."""
    topic = made.topic(topics.FORECAST_EVENTS)
    end = made.kafka.end_offsets(topic)[0]
    with made.kafka.admin() as admin:
        admin.delete_records({TopicPartition(topic, 0): end})


def lost(made: Service) -> float:
    return made.metric(LOST)


@pytest.mark.induces("retention that takes what a stopped worker had not read")
def test_input_that_went_in_a_night_is_reported_at_the_next_start_although_nothing_comes_and_only_once(
    made: Service,
) -> None:
    worker = made.workers["w1"].wait_ready()
    made.send([question(NAMES[0], "econ", 48.0), said(0)])
    made.settle()
    worker.terminate()

    made.send([said(which) for which in range(7)])
    deleted(made)
    made.start().wait_ready()
    wait_until(lambda: lost(made) == 7, 30, made.logs)
    made.settle()  # the group's offset says so too: no lag is left
    heard = made.workers["w1"].said()
    made.restart().wait_ready()
    made.send([said(1)])
    made.settle()

    assert heard.count("input_lost") == 1
    assert "records=7" in heard
    assert lost(made) == 0

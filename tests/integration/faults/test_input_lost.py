"""Records that Kafka deleted before they were read, at the end of a partition: reported though nothing follows."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, crowd, forecast, milliseconds, question
from tests.integration.support.kafka_broker import COMPACT_SOON, KafkaBroker
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


def expired(made: Service) -> None:
    """Retention of a broker deletes all segments of the partition; then the topic is as planned again."""
    topic = made.topic(topics.FORECAST_EVENTS)
    place = TopicPartition(topic, 0)
    with made.kafka.admin() as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1"})])
    with made.kafka.consumer() as consumer:
        end = consumer.end_offsets([place])[place]
        wait_until(
            lambda: consumer.beginning_offsets([place])[place] == end, 60, "retention deleted nothing", every=0.2
        )
    made.run("topics", "apply")


@pytest.mark.induces("segments of forecast-events deleted by retention while the worker is down")
def test_segments_that_retention_deleted_are_reported_at_the_assignment_and_the_worker_goes_on(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker], tmp_path: Path, found: Callable[[str], None]
) -> None:
    client = KafkaClient(RunningBroker(own_kafka(COMPACT_SOON).bootstrap, Rung.JARS))
    with service(client, tmp_path, shape=Shape(PARTITIONS, 1)) as made:
        worker = made.set_up().workers["w1"].wait_ready()
        made.send([question(NAMES[0], "econ", 48.0), *crowd(NAMES[0], 6, 1.0)])
        made.settle()
        assert worker.terminate() == 0
        gone = [question(NAMES[1], "econ", 48.0), *crowd(NAMES[1], 6, 1.0)]
        made.send(gone)
        expired(made)

        again = made.start().wait_ready()
        wait_until(lambda: lost(made) == len(gone), 30, made.logs)
        made.send([question(NAMES[2], "econ", 48.0), *crowd(NAMES[2], 6, 1.0)])
        made.settle()
        made.tick(milliseconds(49))
        made.settle()

        assert again.said().count("input_lost") == 1
        assert set(made.last(topics.PEER_LOSSES, "econ")) == {NAMES[0], NAMES[2]}
        found(f"{len(gone)} records reported once, none of the others lost")

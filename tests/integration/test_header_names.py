"""Headers that clients of other languages may write, on real Kafka: names that are not UTF-8, and very many of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, forecast, milliseconds, question
from tests.integration.support.service import Service, service

pytestmark = pytest.mark.real_kafka

DAY = 24
Headers = tuple[tuple[str, bytes], ...]


class Name(str):
    """A name that is sent as other bytes than its text."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        return b"\xff\xfe"


@pytest.fixture
def uncompressed(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    with service(kafka, tmp_path, compression="none") as made:
        yield made.set_up()


def test_no_name_and_no_number_of_headers_ends_a_worker(uncompressed: Service) -> None:
    feed = "named"
    home = partition_of("q", uncompressed.shape.questions)
    names: Headers = ((Name("  "), b"x"),)
    many: Headers = (("", b""),) * 480_000
    topic = uncompressed.topic(topics.FORECAST_EVENTS)
    producer = KafkaProducer(bootstrap_servers=uncompressed.kafka.bootstrap, max_request_size=2_000_000)

    def send(event: Event | str, headers: Headers, partition: int = home) -> None:
        producer.send(topic, json.dumps(event).encode(), b"q", headers=list(headers), partition=partition).get(30)

    send(question("q", feed, DAY), names)
    send(forecast("q", "ann", 0.8, 1), names)
    send(forecast("q", "bob", 0.7, 1), names, (home + 1) % uncompressed.shape.questions)
    send("none" * 20_000, many)
    send(forecast("q", "bob", 0.1, 2), many, (home + 1) % uncompressed.shape.questions)
    uncompressed.settle()
    uncompressed.tick(milliseconds(2 * DAY))
    uncompressed.settle()
    producer.close()

    told = uncompressed.last(topics.PEER_LOSSES, feed)["q"]
    assert {each["id"]: each["probability"] for each in told["experts"]} == {"ann": 0.8, "bob": 0.7}
    reasons = sorted(letter.reason for letter in uncompressed.dead_letters().values())
    assert reasons == sorted([Reason.NOT_JSON, Reason.RECORD_TOO_LARGE])

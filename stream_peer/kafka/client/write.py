"""Writing records, each acknowledged by every in-sync replica."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaProducer, TopicPartition

from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.client.read import kafka_errors
from stream_peer.kafka.client.security import client_options
from stream_peer.settings.process import Settings

_REQUEST_MILLISECONDS = 30_000
DELIVERY_SECONDS = 40
"""In which a record is written, with all retries, or fails."""


@contextmanager
def producer(settings: Settings, *, idempotent: bool = False, linger_milliseconds: int = 0) -> Iterator[Any]:
    """A connected producer, whose errors are ours.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError
        If the brokers cannot be used.
    """
    preflight(settings)
    options = {
        "client_id": f"{settings.prefix}{settings.id}-writer",
        "acks": "all",
        "enable_idempotence": idempotent,
        "max_in_flight_requests_per_connection": 1,  # a batch that is sent again never comes behind the next one
        "linger_ms": linger_milliseconds,
        "request_timeout_ms": _REQUEST_MILLISECONDS,
        "delivery_timeout_ms": 1000 * DELIVERY_SECONDS,
        "metrics_enabled": False,
        "bootstrap_timeout_ms": round(settings.broker_patience * 1000),
        **client_options(settings),
    }
    with kafka_errors(settings):
        made = KafkaProducer(**options)
        try:
            yield made
        finally:
            made.close(timeout=DELIVERY_SECONDS)


def write(
    to: Any, place: TopicPartition, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
) -> int:
    """Write a record; return its offset when every in-sync replica has it."""
    sent = to.send(place.topic, value, key=key, partition=place.partition, headers=list(headers))
    return int(sent.get(timeout=DELIVERY_SECONDS).offset)

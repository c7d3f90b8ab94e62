"""Writing records, each acknowledged by every in-sync replica."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from kafka import KafkaProducer, TopicPartition
from kafka import errors as kafka

from stream_peer.errors import BrokerUnavailableError, RecordTooLargeError, StreamPeerError
from stream_peer.events import topics
from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.client.read import groupless_reader, kafka_errors, partitions_of
from stream_peer.kafka.client.security import client_options
from stream_peer.log.stage import LogRecord
from stream_peer.settings.process import Settings

_REQUEST_MILLISECONDS = 30_000
_DELIVERY_SECONDS = 40  # a record is written within these, retries included, or fails
_APPENDED_AT_ONCE = 500
_APPEND_LINGER_MILLISECONDS = 5

_Item = TypeVar("_Item")


class SignedRecord(NamedTuple):
    """An event with its key, and the header by which its producer signs both."""

    key: bytes
    value: bytes
    header: tuple[str, bytes]


@contextmanager
def producer(
    settings: Settings,
    *,
    idempotent: bool = False,
    linger_milliseconds: int = 0,
    delivery_seconds: float = _DELIVERY_SECONDS,
) -> Iterator[Any]:
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
        "request_timeout_ms": min(_REQUEST_MILLISECONDS, round(500 * delivery_seconds)),
        "delivery_timeout_ms": round(1000 * delivery_seconds),
        "metrics_enabled": False,
        "bootstrap_timeout_ms": round(settings.broker_patience * 1000),
        **client_options(settings),
    }
    with kafka_errors(settings):
        made = KafkaProducer(**options)
        try:
            yield made
        finally:
            made.close(timeout=delivery_seconds)


def write(
    to: Any, place: TopicPartition, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
) -> int:
    """Write a record; return its offset when every in-sync replica has it."""
    sent = to.send(place.topic, value, key=key, partition=place.partition, headers=list(headers))
    return int(sent.get(timeout=_DELIVERY_SECONDS).offset)


class EventWriter:
    """Sends events to ``forecast-events`` without waiting, and tells when every in-sync replica has them.

    The producer is idempotent: what it sends again is written once, and in its order. Making one waits for a broker.

    Parameters
    ----------
    settings : Settings
    delivery_seconds : float
        An event is written within these, retries included, or counts as not written.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topic cannot be written.
    """

    def __init__(self, settings: Settings, delivery_seconds: float) -> None:
        self._settings = settings
        self._topic = settings.topic(topics.FORECAST_EVENTS)
        with groupless_reader(settings) as consumer:
            partitions_of(consumer, self._topic)
        self._stack = ExitStack()
        made = producer(settings, idempotent=True, delivery_seconds=delivery_seconds)
        self._to = self._stack.enter_context(made)
        try:
            with kafka_errors(settings):
                self._to.partitions_for(self._topic)  # before the first event: sending would wait for the answer
        except BaseException:
            self._stack.close()
            raise

    def send(self, events: Sequence[SignedRecord], done: Callable[[StreamPeerError | None], None]) -> None:
        """Send events in their order; ``done`` is called once, from any thread: all are written, or why one is not."""
        rest = _Unwritten(len(events), lambda fault: done(None if fault is None else self._as_ours(fault)))
        for event in events:
            try:
                sent = self._to.send(self._topic, event.value, event.key, headers=[event.header])
            except kafka.KafkaError as error:
                rest.take(error)
            else:
                sent.add_callback(rest.take_written)
                sent.add_errback(rest.take)

    def close(self) -> None:
        """Wait for what was sent, and disconnect."""
        self._stack.close()

    def _as_ours(self, fault: Exception) -> StreamPeerError:
        if isinstance(fault, kafka.MessageSizeTooLargeError | kafka.RecordListTooLargeError):
            return RecordTooLargeError(f"{self._topic} takes no event of this size; see its max.message.bytes")
        ours = kafka_errors(self._settings).of(fault)
        return ours or BrokerUnavailableError(f"The events could not be written: {fault!r}")


class _Unwritten:
    """Counts events that are not written yet, and calls ``done`` after the last one with the first fault."""

    def __init__(self, left: int, done: Callable[[Exception | None], None]) -> None:
        self._lock, self._left, self._done = Lock(), left, done
        self._fault: Exception | None = None

    def take(self, fault: Exception | None) -> None:
        with self._lock:
            self._fault = self._fault or fault
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._done(self._fault)

    def take_written(self, _where: object) -> None:
        self.take(None)


def append_to_feed_log(
    settings: Settings,
    place: TopicPartition,
    records: Iterable[LogRecord],
    progress: Callable[[int], None] | None = None,
) -> int:
    """Append records of a feed that moves to a partition, with their times; return how many.

    Returns when every in-sync replica has all of them. The producer is idempotent: a broker takes a record only after
    all records before it.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError
        If they cannot be written.
    """

    def send(to: Any, one: LogRecord) -> Any:
        return to.send(place.topic, one.value, one.key, partition=place.partition, timestamp_ms=one.timestamp)

    return _send_all(settings, records, send, progress)


def send_events(
    settings: Settings,
    events: Iterable[tuple[bytes, bytes]],
    *,
    sign: Callable[[bytes, bytes], tuple[str, bytes]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Send events, each with its key, to ``forecast-events`` in their order; return how many.

    ``sign`` makes the header of a producer, of key and value.

    Returns when every in-sync replica has all of them.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be written.
    """
    topic = settings.topic(topics.FORECAST_EVENTS)
    with groupless_reader(settings) as consumer:
        partitions_of(consumer, topic)  # a producer would wait a minute for a topic that is not there

    def send(to: Any, event: tuple[bytes, bytes]) -> Any:
        key, value = event
        return to.send(topic, value, key, headers=[] if sign is None else [sign(key, value)])

    return _send_all(settings, events, send, progress)


def _send_all(
    settings: Settings,
    items: Iterable[_Item],
    send: Callable[[Any, _Item], Any],
    progress: Callable[[int], None] | None,
) -> int:
    """Send items, as many at a time as are waited for together; return how many, once all are acknowledged."""
    done, rest = 0, iter(items)
    with producer(settings, idempotent=True, linger_milliseconds=_APPEND_LINGER_MILLISECONDS) as to:
        while some := list(islice(rest, _APPENDED_AT_ONCE)):
            for sent in [send(to, one) for one in some]:
                sent.get(timeout=_DELIVERY_SECONDS)
            done += len(some)
            if progress is not None:
                progress(done)
    return done

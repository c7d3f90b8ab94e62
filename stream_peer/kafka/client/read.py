"""Read partitions without a consumer group, from a start to the current end; errors are those of this package.

kafka-python needs one more package for each compression, and cannot read header names that are not UTF-8, though Kafka
accepts them from anybody: `read_any_record` teaches it both.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import cramjam
from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka
from kafka.record import memory_records
from kafka.record.default_records import DefaultRecordBatch

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, StreamPeerError, TopicsError
from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.client.security import ISOLATION, client_options
from stream_peer.settings.process import Settings

_BLOCKS = b"\x82SNAPPY\x00"  # snappy as Java writes it: this, two versions, then blocks, each behind its length
_FIRST_BLOCK = 16
_LENGTH_BYTES = 4


def read_any_record() -> None:
    """From here on consumers of kafka-python read records whatever their compression and the names of their headers."""
    memory_records.DefaultRecordBatch = _Batch


class _Batch(DefaultRecordBatch):
    _buffer: Any
    _pos: int
    _decompressed: bool

    def _maybe_uncompress(self) -> None:
        decode = None if self._decompressed else _DECODERS.get(self.compression_type)
        if decode is not None:
            self._buffer = bytearray(decode(bytes(memoryview(self._buffer)[self._pos :])))
            self._pos, self._decompressed = 0, True
        super()._maybe_uncompress()

    def _read_msg(self, *args: Any) -> Any:
        """The next record. If a name fails, it is read again from its first byte, slowly."""
        try:
            return super()._read_msg(*args)
        except UnicodeDecodeError:
            self._buffer = AnyNames(self._buffer)
            return super()._read_msg(*args)


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_BLOCKS):
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks, at = [], _FIRST_BLOCK
    while at < len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "big")
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[start:at])))
    return b"".join(blocks)


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: cramjam.lz4.decompress,
    DefaultRecordBatch.CODEC_ZSTD: cramjam.zstd.decompress,
}


class AnyNames(bytearray):
    """The bytes of a batch, of which each part reads as text whatever it is."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _Name(found) if isinstance(place, slice) else found


class _Name(bytearray):
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002 - as it is asked for
        return super().decode(encoding, "backslashreplace")


__all__ = ["TopicPartition", "groupless_reader", "kafka_errors", "partitions_of", "poll", "read_to_end"]

_POLL_MILLISECONDS = 500
_REQUEST_MILLISECONDS, _LEAST_REQUEST_MILLISECONDS = 40_000, 5_000
_RECORDS = 1_000  # of a poll


@contextmanager
def groupless_reader(settings: Settings, **options: Any) -> Iterator[Any]:
    """A consumer without a group, whose errors are ours; ``options`` are more of the client's.

    Raises
    ------
    BrokerUnavailableError
        If no broker answers within ``broker_patience``.
    NotAuthorisedError
        If the brokers refuse us.
    """
    preflight(settings)
    read_any_record()
    patience = round(settings.broker_patience * 1000)
    chosen: dict[str, Any] = {
        "client_id": f"{settings.prefix}{settings.id}-reader",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
        "check_crcs": False,  # kafka-python counts them in Python, at 3 MB/s; the broker did when it took the records
        "max_poll_records": _RECORDS,
        "metrics_enabled": False,
        "bootstrap_timeout_ms": patience,
        "request_timeout_ms": min(max(patience, _LEAST_REQUEST_MILLISECONDS), _REQUEST_MILLISECONDS),
        **client_options(settings),
        **options,
    }
    with kafka_errors(settings):
        consumer = KafkaConsumer(isolation_level=ISOLATION, **chosen)
        try:
            yield consumer
        finally:
            consumer.close(autocommit=False)


class kafka_errors:  # noqa: N801 - a context manager that reads like a function
    """Turns kafka-python's errors into ours."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if (ours := self.of(error)) is not None:
            raise ours from None

    def of(self, error: BaseException | None) -> StreamPeerError | None:
        """Our error for one of kafka-python's; None for any other."""
        if isinstance(error, kafka.TopicAuthorizationFailedError):
            topics = error.args[0] if error.args else "the topic"
            msg = f"No right to read or write {topics}; `stream-peer topics plan --offline` lists the rights needed."
            return NotAuthorisedError(msg)
        if isinstance(error, kafka.KafkaError):
            return BrokerUnavailableError(f"The brokers at {self._settings.bootstrap} do not answer any more: {error}.")
        return None


def partitions_of(consumer: Any, topic: str) -> list[TopicPartition]:
    """All partitions of a topic.

    Raises
    ------
    TopicsError
        If there is no such topic.
    """
    if topic not in consumer.topics():  # asks for all topics: asking for one by name may make it
        msg = (
            f"There is no topic {topic}, or we may not see it (is the prefix right?); "
            "`stream-peer topics apply` makes it."
        )
        raise TopicsError(msg)
    return [TopicPartition(topic, partition) for partition in sorted(consumer.partitions_for_topic(topic))]


def poll(consumer: Any, milliseconds: int = _POLL_MILLISECONDS) -> dict[TopicPartition, list[Any]]:
    """What has come of the assigned partitions, in order; waits so long if there is nothing."""
    found: dict[TopicPartition, list[Any]] = consumer.poll(timeout_ms=milliseconds)
    return found


def read_to_end(consumer: Any, partitions: Sequence[TopicPartition]) -> Generator[list[Any], None, None]:
    """Records of the partitions from their starts to where they end now, in batches of one partition, in order.

    The end is the last stable offset, and is met by position: there may be no record before it, as where a log ends in
    an aborted transaction.
    """
    consumer.assign(partitions)
    consumer.resume(*partitions)
    ends = consumer.end_offsets(partitions)
    for tp, start in consumer.beginning_offsets(partitions).items():
        consumer.seek(tp, start)
    left = set(partitions)
    while left:
        for tp in [tp for tp in left if consumer.position(tp) >= ends[tp]]:
            left.discard(tp)
            consumer.seek(tp, ends[tp])  # what came meanwhile is left for a caller who reads on
            consumer.pause(tp)
        for tp, records in poll(consumer).items() if left else ():
            wanted = [record for record in records if record.offset < ends[tp]]
            if wanted:
                yield wanted
    consumer.resume(*partitions)

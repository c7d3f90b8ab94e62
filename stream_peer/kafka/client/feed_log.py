"""Appending to the feed-log from outside: what a feed that moves brings with it."""

from collections.abc import Callable, Iterable
from itertools import islice

from stream_peer.kafka.client.read import TopicPartition
from stream_peer.kafka.client.write import DELIVERY_SECONDS, producer
from stream_peer.log.stage import LogRecord
from stream_peer.settings.process import Settings

_AT_ONCE = 500
_LINGER_MILLISECONDS = 5


def append_to_feed_log(
    settings: Settings,
    place: TopicPartition,
    records: Iterable[LogRecord],
    progress: Callable[[int], None] | None = None,
) -> int:
    """Append records to a partition, with their times; how many. Return when every in-sync replica has them all.

    The producer is idempotent: brokers take none of its records without those before it.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError
        If they cannot be written.
    """
    written, rest = 0, iter(records)
    with producer(settings, idempotent=True, linger_milliseconds=_LINGER_MILLISECONDS) as to:
        while some := list(islice(rest, _AT_ONCE)):
            sent = [
                to.send(place.topic, r.value, r.key, partition=place.partition, timestamp_ms=r.timestamp) for r in some
            ]
            for one in sent:
                one.get(timeout=DELIVERY_SECONDS)
            written += len(some)
            if progress is not None:
                progress(written)
    return written

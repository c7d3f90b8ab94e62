"""The newest weights of every feed, read from the compacted topic by commands, without a group."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from stream_peer.events import topics
from stream_peer.events.outputs import Weights
from stream_peer.kafka.client.read import groupless_reader, partitions_of, poll, read_to_end
from stream_peer.serve.feed_records import FeedRecords
from stream_peer.settings.process import Settings


def read_newest(settings: Settings) -> dict[str, Weights]:
    """The newest weights of every feed, as they stand now.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be read.
    """
    with groupless_reader(settings) as consumer:
        records = _read_all(consumer, settings)
    return {feed: weights for feed in records.feeds() if (weights := records.weights(feed)) is not None}


def follow(settings: Settings, feed: str) -> Iterator[Weights]:
    """The newest weights of a feed, then each newer one as it comes, for ever.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be read.
    """
    with groupless_reader(settings) as consumer:
        records = _read_all(consumer, settings)
        newest = records.weights(feed)
        if newest is not None:
            yield newest
        while True:
            for found in poll(consumer).values():
                yield from news_of(feed, records, found)


def news_of(feed: str, records: FeedRecords, found: Iterable[Any]) -> Iterator[Weights]:
    """Add what was found of the topic; each weights of the feed that thereby become the newest."""
    for record in found:
        before, _ = records.revisions(feed)
        records.add_weights(record.key or b"", record.value)
        newest = records.weights(feed)
        if newest is not None and newest.revision != before:
            yield newest


def _read_all(consumer: Any, settings: Settings) -> FeedRecords:
    records = FeedRecords(most_bytes=sys.maxsize)
    for found in read_to_end(consumer, partitions_of(consumer, settings.topic(topics.WEIGHTS))):
        for record in found:
            records.add_weights(record.key or b"", record.value)
    return records

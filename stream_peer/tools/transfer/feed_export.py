"""A feed read from the changelogs of both stages, while its workers go on and know nothing of it."""

import time
from collections.abc import Iterator
from typing import Any

from stream_peer.errors import NotCaughtUpError
from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.client.read import TopicPartition, onlooker, partitions_of, poll, read_to_end
from stream_peer.log.changelog import ChangelogReader
from stream_peer.log.portable import Line
from stream_peer.settings.process import Settings
from stream_peer.tools.transfer.feed_file import origin
from stream_peer.tools.transfer.stored_feed import Questions, StageState, exported, questions_of

_PAUSE_SECONDS = 0.5


def export_feed(settings: Settings, feed: str) -> Iterator[Line]:
    """The lines of a feed as its stored state is now.

    The questions are read first. Then what they have emitted is awaited in the feed's own state, up to
    ``broker_patience``: so the feed knows every round that its questions know of.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    NotCaughtUpError
        If no worker folds what the feed-log holds.
    FeedTransferError
        If there is no such feed.
    """
    of_feeds, of_questions = _read(settings, feed)
    return exported(feed, of_feeds, of_questions, origin())


def _read(settings: Settings, feed: str) -> tuple[StageState, list[Questions]]:
    with onlooker(settings) as consumer:
        questions = []
        for place in partitions_of(consumer, settings.changelog("question")):
            fold = ChangelogReader()
            for records in read_to_end(consumer, [place]):
                _add(fold, records)
            questions.append(questions_of(feed, _state(place, fold)))
        log = partitions_of(consumer, settings.topic(topics.FEED_LOG))
        home = partition_of(feed, len(log))
        wanted = _last_record(consumer, log[home])
        changelog = TopicPartition(settings.changelog("feed"), home)
        fold = _fold_up_to(consumer, changelog, wanted, settings.broker_patience)
        return _state(changelog, fold), questions


def _last_record(consumer: Any, place: TopicPartition) -> int:
    """The offset of the last committed record of a partition now; -1: it holds none.

    It may stand before the end by any number of aborted records, for which a state never waits.
    """
    consumer.assign([place])
    (first,), (end,) = [ask([place]).values() for ask in (consumer.beginning_offsets, consumer.end_offsets)]
    last, span, until = -1, 1, end
    while last < 0 and until > first:
        begin = max(first, end - span)
        consumer.seek(place, begin)
        while consumer.position(place) < until:
            for records in poll(consumer).values():
                last = max([last, *(record.offset for record in records if record.offset < end)])
        until, span = begin, span * 2
    return last


def _fold_up_to(consumer: Any, place: TopicPartition, wanted: int, patience: float) -> ChangelogReader:
    """The state of a partition, once it covers its input up to the offset ``wanted``."""
    fold, deadline = ChangelogReader(), time.monotonic() + patience
    consumer.assign([place])
    consumer.seek(place, consumer.beginning_offsets([place])[place])
    while True:
        end = consumer.end_offsets([place])[place]
        while consumer.position(place) < end:
            for records in poll(consumer).values():
                _add(fold, records)
        behind = wanted - (fold.applied - fold.origin.base)
        if behind <= 0 and fold.origin.whole_at <= wanted:
            return fold
        if time.monotonic() > deadline:
            what = f"is {behind:,} records behind in" if behind > 0 else "has no whole state yet of"
            msg = (
                f"the feed stage {what} partition {place.partition} of the feed-log: "
                "start a worker, or wait until it has caught up"
            )
            raise NotCaughtUpError(msg)
        time.sleep(_PAUSE_SECONDS)


def _add(fold: ChangelogReader, records: list[Any]) -> None:
    for record in records:
        fold.add(record.offset, record.key, record.value)


def _state(place: TopicPartition, fold: ChangelogReader) -> StageState:
    return StageState(place.partition, *fold.recovered())

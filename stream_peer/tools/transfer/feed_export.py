"""A feed read from its log and from the changelogs of both stages, while its workers go on and know nothing of it."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from stream_peer import __version__
from stream_peer.errors import FeedTransferError, NotCaughtUpError
from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import to_iso
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, poll, read_to_end
from stream_peer.log.changelog import ChangelogReader
from stream_peer.settings.process import Settings
from stream_peer.tools.transfer.feed_file import Line
from stream_peer.tools.transfer.feed_slice import FeedSlice
from stream_peer.tools.transfer.reshape import Origin, Questions, StageState, exported, known_of, questions_of

_PAUSE_SECONDS = 0.5


def export_feed(settings: Settings, feed: str) -> Iterator[Line]:
    """The lines of a feed as its log and its stored state are now.

    The questions are read first, then the log, so that it has every round that they know of. Then the feed's own state
    is awaited, up to ``broker_patience``: it names the erased experts.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    NotCaughtUpError
        If no worker folds what the feed-log holds.
    FeedTransferError
        If there is no such feed, or it cannot move.
    """
    with FeedSlice(feed) as found:
        of_feeds, of_questions = _read(settings, feed, found)
        yield from exported(feed, of_feeds, of_questions, found, origin())


def origin(document: Any = None) -> Origin:
    """The release that runs, and the time; ``document``: settings, where the state names none."""
    return Origin(__version__, to_iso(int(datetime.now(tz=UTC).timestamp() * 1000)), document or {})


def _read(settings: Settings, feed: str, found: FeedSlice) -> tuple[StageState, list[Questions]]:
    with groupless_reader(settings) as consumer:
        questions = []
        for place in partitions_of(consumer, settings.changelog("question")):
            fold = ChangelogReader()
            for records in read_to_end(consumer, [place]):
                _add(fold, records)
            questions.append(questions_of(feed, _state(place, fold)))
        log = partitions_of(consumer, settings.topic(topics.FEED_LOG))
        home = partition_of(feed, len(log))
        found.known, last = known_of(questions), -1
        for records in read_to_end(consumer, [log[home]]):
            for record in records:
                found.add(record)
            last = records[-1].offset
        if (consumer.beginning_offsets([log[home]]))[log[home]]:
            msg = f"the start of partition {home} of the feed-log is gone: a feed without its past cannot move"
            raise FeedTransferError(msg)
        changelog = TopicPartition(settings.changelog("feed"), home)
        fold = _fold_up_to(consumer, changelog, last, settings.broker_patience)
        return _state(changelog, fold), questions


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

"""The lines of a feed, from its slice of the log and the stored state of both stages: of a replay, or of Kafka.

In Kafka they are read while the feed's workers go on and know nothing of it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stream_peer import __version__
from stream_peer.errors import FeedTransferError, NotCaughtUpError
from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import to_iso
from stream_peer.feeds.feed import decode_feed
from stream_peer.feeds.store import SCHEMA as FEED_SCHEMA
from stream_peer.feeds.store import Head, decode_head, schema_and_secret, stored_feeds
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, poll, read_to_end
from stream_peer.log.changelog import ChangelogReader
from stream_peer.questions.moved import QuestionLine
from stream_peer.questions.state import Stub, decode_question_entry, encode_stub, encode_whole, question_key
from stream_peer.questions.store import SCHEMA as QUESTION_SCHEMA
from stream_peer.questions.store import decode_question_head
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.settings.process import Settings
from stream_peer.tools.transfer.feed_file import Header, Line
from stream_peer.tools.transfer.feed_slice import FeedSlice, KnownUpTo, settings_of

_PAUSE_SECONDS = 0.5


_QUESTION = question_key("")


class StageState(NamedTuple):
    """Stored state of one partition of a stage: after the input record at offset ``applied``."""

    partition: int
    applied: int
    head: bytes | None
    entries: Mapping[bytes, bytes]


class Questions(NamedTuple):
    """A feed's questions in one partition of the question stage."""

    partition: int
    known: KnownUpTo
    lines: list[QuestionLine]


class Origin(NamedTuple):
    """Which release makes the lines, and when (ISO 8601). ``document``: settings, where the state names none."""

    product: str
    made_at: str
    document: Mapping[str, Any] = {}


def known_of(questions: Iterable[Questions]) -> dict[int, KnownUpTo]:
    """By partition: what the stored questions know."""
    return {found.partition: found.known for found in questions}


def exported(
    feed: str, of_feeds: StageState, of_questions: Iterable[Questions], found: FeedSlice, origin: Origin
) -> Iterator[Line]:
    """The lines of a feed: header, its records of the feed-log, then its questions.

    Parameters
    ----------
    feed : str
    of_feeds : StageState
        The feed stage's partition that the feed belongs to. It must have folded all that is in the slice.
    of_questions : iterable of Questions
        Of all partitions of the question stage.
    found : FeedSlice
        Filled.
    origin : Origin

    Raises
    ------
    FeedTransferError
        If there is no such feed, or it cannot move.
    StateError
        If the state cannot be read.
    """
    head = _head(of_feeds, feed)
    questions = list(of_questions)
    stored = decode_feed(stored_feeds(of_feeds.entries)[feed][0])
    document = head.settings or origin.document
    yield Header(
        product=origin.product,
        feed=feed,
        made_at=origin.made_at,
        revision=head.path_states[feed].revision,
        forecasts={part.partition: part.known.applied for part in questions},
        settings=settings_of(document, feed),
        settings_hash=document_hash(document),
        meaning=stored.meaning,
        secret=head.secret,
        forgotten=stored.roster.erased,
        names=stored.roster.names,
        question_schema=QUESTION_SCHEMA,
    )
    yield from found.lines()
    for part in questions:
        yield from part.lines


def questions_of(feed: str, state: StageState) -> Questions:
    """The questions of a feed in a partition of the question stage.

    Raises
    ------
    StateError
        If the state cannot be read.
    """
    head = None if state.head is None else decode_question_head(state.head)
    known = KnownUpTo(head.generation if head else 0, state.applied)
    return Questions(state.partition, known, list(_question_lines(feed, head.clock if head else 0, state.entries)))


def _head(state: StageState, feed: str) -> Head:
    """The head of the feed stage's partition, if it knows the feed."""
    schema = FEED_SCHEMA if state.head is None else schema_and_secret(state.head)[0]
    if schema != FEED_SCHEMA:
        msg = (
            f"the state has schema {schema}, this release reads {FEED_SCHEMA}: let a worker of this release take it up"
        )
        raise FeedTransferError(msg)
    head = None if state.head is None else decode_head(state.head)
    if head is None or feed not in head.path_states:
        there = ", ".join(sorted(head.path_states)) if head else ""
        msg = f"there is no feed {feed}; its partition of the feed-log knows {there or 'none yet'}"
        raise FeedTransferError(msg)
    return head


def _question_lines(feed: str, clock: int, entries: Mapping[bytes, bytes]) -> Iterator[QuestionLine]:
    settings = FeedSettings()
    for key in sorted(key for key in entries if key.startswith(_QUESTION)):
        question_id = key[len(_QUESTION) :].decode()
        found = decode_question_entry(question_id, entries[key], entries, settings)
        if found.feed == feed:
            stored = encode_stub(found) if isinstance(found, Stub) else encode_whole(found)
            yield QuestionLine(question_id=question_id, clock=clock, stored=stored)


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
        home = _home(consumer, settings, feed, len(log))
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


def _home(consumer: Any, settings: Settings, feed: str, partitions: int) -> int:
    """The partition that knows the feed: where partitions were added, the one from before."""
    homes = [partition_of(feed, count) for count in (partitions, settings.partitions.feed_log) if count <= partitions]
    for home in homes if len(set(homes)) > 1 else ():
        place, fold = TopicPartition(settings.changelog("feed"), home), ChangelogReader()
        for records in read_to_end(consumer, [place]):
            _add(fold, records)
        if feed in stored_feeds(_state(place, fold).entries):
            return home
    return homes[0]


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
        fold.add(record.offset, record.key, record.value, record.headers)


def _state(place: TopicPartition, fold: ChangelogReader) -> StageState:
    return StageState(place.partition, *fold.recovered())

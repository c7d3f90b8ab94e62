"""Writing to control-events: controls of experts and feeds, imports, and the settings document, which is read too."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from stream_peer.errors import NotCaughtUpError, RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import SettingsChanged, Source, read_feed_log
from stream_peer.events.incoming import ExpertControl, FeedControl, FeedImport, SettingsControl, decode
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, poll, read_to_end
from stream_peer.kafka.client.write import producer, write
from stream_peer.log.sources import source_of
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.questions.repair import Controls
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.process import Settings

Control = ExpertControl | FeedControl | FeedImport | SettingsControl
Progress = Callable[[int, int], None]


class Written(NamedTuple):
    """Where an event stands on control-events."""

    partition: int
    offset: int


class Applied(NamedTuple):
    """A settings document on control-events, and where it stands."""

    document: Mapping[str, Any]
    hash: str
    partition: int
    offset: int


def newest_document(settings: Settings) -> Applied | None:
    """The document that was applied last; None if none ever was.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If control-events cannot be read.
    """
    newest = None
    with groupless_reader(settings) as consumer:
        place = _place(consumer, settings)
        for records in read_to_end(consumer, [place]):
            for record in records:
                newest = _applied(record) or newest
    return newest


def all_controls(settings: Settings) -> Controls:
    """What stands on control-events now.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If control-events cannot be read.
    """
    controls = Controls()
    with groupless_reader(settings) as consumer:
        places = partitions_of(consumer, settings.topic(topics.CONTROL_EVENTS))
        for records in read_to_end(consumer, places):
            for record in records:
                controls.add(record.partition, record)
    return controls


def apply_document(settings: Settings, document: Mapping[str, Any]) -> Applied:
    """Write the document to control-events; return when every in-sync replica has it.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If it cannot be written.
    """
    event = SettingsControl(document=dict(document), hash=document_hash(document))
    (written,) = _write(settings, SETTINGS_KEY, [event])
    return Applied(document, event.hash, *written)


def apply_everywhere(
    settings: Settings, document: Mapping[str, Any], patience: float, progress: Progress | None = None
) -> Applied:
    """The same, but return when every partition of forecast-events and of the feed-log holds it.

    Events that are sent after that count under it. ``progress`` gets the number of partitions that hold it.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If it cannot be written.
    NotCaughtUpError
        If no worker has handed it on within ``patience`` seconds; it is stored.
    """
    logs = (topics.FORECAST_EVENTS, topics.FEED_LOG)
    with groupless_reader(settings) as consumer:
        places = [place for log in logs for place in partitions_of(consumer, settings.topic(log))]
        consumer.assign(places)
        for place, end in (consumer.end_offsets(places)).items():
            consumer.seek(place, end)
        applied = apply_document(settings, document)
        lacking = set(places)
        _find(consumer, applied, lacking, time.monotonic() + patience, progress)
    if lacking:
        msg = (
            f"Feed settings {applied.hash} are stored, not in force: no worker has handed them on to {len(lacking)} of "
            f"{len(places)} partitions within {patience:g} s. They come into force when a worker runs, and count from "
            "the moment at which they were stored."
        )
        raise NotCaughtUpError(msg)
    return applied


def write_control(settings: Settings, event: ExpertControl | FeedControl) -> Written:
    """Write a control of an expert or a feed to control-events; return when every in-sync replica has it.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If it cannot be written.
    """
    (written,) = _write(settings, event.feed.encode(), [event])
    return written


def write_import(settings: Settings, parts: Sequence[FeedImport]) -> list[Written]:
    """Write the parts of one feed to control-events, each acknowledged before the next: they must stand in order.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If they cannot be written.
    """
    return _write(settings, parts[0].feed.encode(), parts)


def import_parts(settings: Settings, import_id: str) -> set[tuple[int | None, int]]:
    """The parts of an import that stand on control-events: the partition that each is for, and its number.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If control-events cannot be read.
    """
    found = set()
    with groupless_reader(settings) as consumer:
        for records in read_to_end(consumer, partitions_of(consumer, settings.topic(topics.CONTROL_EVENTS))):
            for record in records:
                with suppress(RejectedEvent):
                    event = decode(record.value)
                    if isinstance(event, FeedImport) and event.import_id == import_id:
                        found.add((event.partition, event.part))
    return found


def _write(settings: Settings, key: bytes, events: Sequence[Control]) -> list[Written]:
    with groupless_reader(settings) as consumer:
        place = _place(consumer, settings, key)
    with producer(settings) as to:
        return [Written(place.partition, write(to, place, key, msgspec.json.encode(event))) for event in events]


def _find(
    consumer: Any, applied: Applied, lacking: set[TopicPartition], deadline: float, progress: Progress | None
) -> None:
    """Read on until a document was found in every partition, or it is too late; those found leave ``lacking``."""
    total = len(lacking)
    while lacking and time.monotonic() < deadline:
        for place, records in poll(consumer).items():
            if any(hands_on(record, applied) for record in records):
                lacking.discard(place)
                consumer.pause(place)
        if progress is not None:
            progress(total - len(lacking), total)


def hands_on(record: Any, applied: Applied) -> bool:
    """Whether a record of forecast-events or of the feed-log hands a document on.

    This is for the user's patience only: without the signing key no command can tell a forged header from ours.
    """
    if record.key != SETTINGS_KEY:
        return False
    source = source_of(record.headers) or _source_in(record.value)
    return source is not None and (source.topic, source.partition, source.offset) == (
        topics.CONTROL_EVENTS,
        applied.partition,
        applied.offset,
    )


def _source_in(value: bytes | None) -> Source | None:
    try:
        found = read_feed_log(value)
    except RejectedEvent:
        return None
    return found.src if isinstance(found, SettingsChanged) else None


def _place(consumer: Any, settings: Settings, key: bytes = SETTINGS_KEY) -> TopicPartition:
    """Where every event of a key is written, so that their order is the order of the log."""
    topic = settings.topic(topics.CONTROL_EVENTS)
    partitions = partitions_of(consumer, topic)
    return TopicPartition(topic, partition_of(key, len(partitions)))


def _applied(record: Any) -> Applied | None:
    try:
        event = decode(record.value)
    except RejectedEvent:  # the control stage refuses it too
        return None
    if not isinstance(event, SettingsControl):
        return None
    return Applied(event.document, event.hash, record.partition, record.offset)

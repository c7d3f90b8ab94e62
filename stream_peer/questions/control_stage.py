"""The control stage: checks each event of ``control-events`` and sends it to every partition that needs it.

Settings are for all partitions of the feed-log and of ``forecast-events``. A control of an expert or a feed goes to
the feed's partition of the feed-log; if it concerns forecasts (an expert renamed or erased, a feed deleted), also to
every partition of ``forecast-events``, since a feed's questions lie in all of them.

It keeps nothing: a repeat writes the same records again, and who reads them knows repeats by their source.
"""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from stream_peer.errors import RejectedEvent, SettingsError, UnservedMethodError
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    ExpertChanged,
    FeedChanged,
    FeedLogRecord,
    SettingsChanged,
    Source,
    encode_feed_log,
    shared_fields,
)
from stream_peer.events.incoming import (
    MAX_EVENT_BYTES,
    AnyEvent,
    ExpertControl,
    FeedControl,
    FeedImport,
    SettingsControl,
    decode,
    moment,
)
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from stream_peer.log.dead_letters import refuse
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Effects, Output, Record
from stream_peer.settings.feed.document import document_hash, load_document
from stream_peer.settings.feed.model import NEWEST_METHOD

SETTINGS_KEY = b"settings"

_encode = msgspec.json.Encoder().encode


class ControlStage:
    """The fold of one partition of ``control-events``.

    Parameters
    ----------
    topic : str
        Physical name of the topic, for dead letters.
    partition : int
        Which partition of it this is.
    forecast_partitions, feed_log_partitions : int
        Partitions of the topics to which settings are broadcast.
    signatures : Signatures, optional
        Sign what goes to ``forecast-events``.
    """

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        forecast_partitions: int,
        feed_log_partitions: int,
        signatures: Signatures | None = None,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._forecast_partitions = forecast_partitions
        self._feed_log_partitions = feed_log_partitions
        self._generation = 0
        self._signatures = signatures or Signatures()

    def step(self, record: Record, effects: Effects) -> None:
        """Fold one record."""
        try:
            self._fold(record, effects)
        except RejectedEvent as rejection:
            refuse(record, self._topic, self._partition, rejection, effects)

    def begin_topic(self, generation: int, base: int, *, keep: bool) -> None:  # noqa: ARG002 - there is no state
        """The topic was recreated, or is read for the first time.

        The broker's id of the topic gives the number, so that it needs no state that could be lost with the topic:
        every owner of the partition finds the same, and of a recreated topic another. A count would need one, and the
        time of the topic's first record would be the producer's word.
        """
        self._generation = generation

    def _fold(self, record: Record, effects: Effects) -> None:
        event = decode(record.value, unknown := list[str]())
        if unknown:
            effects.note_unknown(getattr(event, "feed", ""), str(event.__struct_config__.tag), unknown)
        outputs = self._handed_on(event, record)
        effects.outputs.extend(outputs)
        effects.counts["event", str(event.__struct_config__.tag)] += 1

    def _handed_on(self, event: AnyEvent, record: Record) -> list[Output]:
        """The records that an event causes. Raises RejectedEvent if the event cannot be carried out."""
        if isinstance(event, SettingsControl):
            check_settings(event)
            return [*self._settings(event, record), *self._broadcast(SETTINGS_KEY, record, _since(event, record))]
        if isinstance(event, ExpertControl):
            check_control(event)
            return self._of_a_feed(ExpertChanged, event, record, everywhere=event.forget or event.rename is not None)
        if isinstance(event, FeedControl):
            check_control(event)
            return self._of_a_feed(FeedChanged, event, record, everywhere=event.delete)
        if isinstance(event, FeedImport):
            return [self._questions(event, record)]
        msg = "this type belongs on forecast-events"
        raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=msg)

    def _questions(self, event: FeedImport, record: Record) -> Output:
        """A part of a feed's questions for their partition, if partition counts are those that the import assumed.

        Raises
        ------
        RejectedEvent
            If they are not, or if the part is none.
        """
        if event.part >= event.parts or (event.partition is None) is not (event.partitions is None):
            msg = f"part {event.part} of {event.parts}, for partition {event.partition} of {event.partitions}, is none"
            raise RejectedEvent(Reason.CONTRADICTORY, field="part", message=msg)
        if event.partition is None or event.partitions is None:
            msg = "an earlier release exported it with the state of the feed: export and import the feed again"
            raise RejectedEvent(Reason.IMPORT_REFUSED, field="partition", message=msg)
        if event.partitions != self._forecast_partitions or event.partition >= event.partitions:
            there = f"forecast-events has {self._forecast_partitions} partitions"
            msg = f"it is for partition {event.partition} of {event.partitions}, and {there}: import the file again"
            raise RejectedEvent(Reason.IMPORT_REFUSED, field="partitions", message=msg)
        part = Output(topics.FORECAST_EVENTS, event.feed.encode(), record.value, record.timestamp, event.partition)
        return self._signatures.signed(part, self._source(record))

    def _settings(self, event: SettingsControl, record: Record) -> Iterator[Output]:
        """The settings for every partition of the feed-log."""
        for partition in range(self._feed_log_partitions):
            source = self._source(record, partition)
            changed = encode_feed_log(SettingsChanged(src=source, document=event.document, hash=event.hash))
            yield Output(topics.FEED_LOG, SETTINGS_KEY, changed, record.timestamp, partition)

    def _of_a_feed(
        self, kind: type[FeedLogRecord], event: AnyEvent, record: Record, *, everywhere: bool
    ) -> list[Output]:
        """An event as a change for its feed's partition of the feed-log; ``everywhere``: for all questions as well."""
        is_deleted = isinstance(event, FeedControl) and event.delete
        deleted_at = max(0, record.timestamp) if is_deleted else 0
        changed = kind(src=self._source(record), deleted_at=deleted_at, **shared_fields(event, kind))
        key = changed.feed.encode()
        home = partition_of(key, self._feed_log_partitions)
        told = Output(topics.FEED_LOG, key, encode_feed_log(changed), record.timestamp, home)
        value = _since(event, record) if is_deleted else None
        return [told, *self._broadcast(key, record, value)] if everywhere else [told]

    def _broadcast(self, key: bytes, record: Record, value: bytes | None = None) -> Iterator[Output]:
        """The event itself, or another ``value``, for every partition of ``forecast-events``."""
        value = record.value if value is None else value
        for partition in range(self._forecast_partitions):
            told = Output(topics.FORECAST_EVENTS, key, value, record.timestamp, partition)
            yield self._signatures.signed(told, self._source(record, partition))

    def _source(self, record: Record, index: int = 0) -> Source:
        return Source(topics.CONTROL_EVENTS, self._partition, self._generation, record.offset, index)


def _since(event: AnyEvent, record: Record) -> bytes:
    """Settings or a deletion with the moment from which they count: a partition reads the broadcast later than that."""
    value = _encode(msgspec.structs.replace(event, since=record.timestamp))
    if len(value) > MAX_EVENT_BYTES:
        msg = f"with the moment from which it counts it has {len(value):,} bytes, more than {MAX_EVENT_BYTES:,}"
        raise RejectedEvent(Reason.TOO_LARGE, message=msg)
    return value


def check_settings(event: SettingsControl) -> None:
    """Refuse a document that is invalid, or that its hash does not match.

    Raises
    ------
    RejectedEvent
        As a dead letter's reason says.
    UnservedMethodError
        If the document is of the next release: its worker hands it on.
    """
    try:
        load_document(event.document)
    except SettingsError as error:
        raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
    except UnservedMethodError as error:
        if error.version == NEWEST_METHOD + 1:  # of the next release, which may run beside this one
            raise
        raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
    expected = document_hash(event.document)
    if event.hash != expected:
        msg = f"hash is {event.hash!r}, that of the document is {expected!r}"
        raise RejectedEvent(Reason.SETTINGS_INVALID, field="hash", message=msg)


def check_control(event: ExpertControl | FeedControl) -> None:
    """Refuse a control that asks for nothing, or for two things that exclude each other.

    Raises
    ------
    RejectedEvent
        As a dead letter's reason says.
    """
    if isinstance(event, ExpertControl):
        _check_expert(event)
    elif event.reset == event.delete:
        both = "a feed is reset or deleted, not both"
        msg = both if event.reset else "nothing is asked for: name reset (true) or delete (true)"
        raise RejectedEvent(Reason.CONTRADICTORY, field="delete" if event.reset else "", message=msg)


def _check_expert(event: ExpertControl) -> None:
    moment(event.at)
    changes = event.team is not UNSET or event.excluded is not UNSET
    if event.rename is not None and (changes or event.forget or event.rename == event.expert_id):
        msg = "a rename stands alone, and gives the expert another id than the one that it names"
        raise RejectedEvent(Reason.CONTRADICTORY, field="rename", message=msg)
    if event.forget and changes:
        msg = "an expert that is to be forgotten is in no team and neither excluded nor included"
        raise RejectedEvent(Reason.CONTRADICTORY, field="forget", message=msg)
    if not event.forget and not changes and event.rename is None:
        msg = "nothing is asked for: name team (null: none), excluded (true or false), rename, or forget (true)"
        raise RejectedEvent(Reason.CONTRADICTORY, message=msg)

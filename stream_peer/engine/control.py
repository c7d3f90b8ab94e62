"""The control stage: checks what stands on ``control-events`` and hands it to every partition that must know.

It keeps nothing: a repeat writes the same records again, and who reads them knows repeats by their source.
"""

from collections.abc import Iterable, Mapping

from stream_peer.engine.dead_letters import refuse
from stream_peer.engine.sources import source_header
from stream_peer.engine.stage import Effects, NeverRefolds, Output, Record, Snapshot
from stream_peer.errors import RejectedEvent, SettingsError
from stream_peer.events import topics
from stream_peer.events.feed_log import SettingsChanged, Source, encode_feed_log
from stream_peer.events.feed_settings import document_hash, load_document
from stream_peer.events.incoming import ExpertControl, FeedControl, SettingsControl, decode
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds

SETTINGS_KEY = b"settings"


class ControlStage(NeverRefolds):
    """The fold of one partition of ``control-events``.

    Parameters
    ----------
    topic : str
        Physical name of the topic, for dead letters.
    partition : int
        Which partition of it this is.
    forecast_partitions, feed_log_partitions : int
        Partitions of the topics to which settings are broadcast.
    incarnation : int
        How often the topic was found deleted and made anew.
    """

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        forecast_partitions: int,
        feed_log_partitions: int,
        incarnation: int = 0,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._forecast_partitions = forecast_partitions
        self._feed_log_partitions = feed_log_partitions
        self._incarnation = incarnation

    @property
    def clock(self) -> Milliseconds:
        """Always 0: controls have no deadlines."""
        return 0

    def step(self, record: Record, effects: Effects) -> None:
        """Fold one record."""
        try:
            self._fold(record, effects)
        except RejectedEvent as rejection:
            refuse(record, self._topic, self._partition, rejection, effects)

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        """Nothing: this stage has no outputs per feed."""

    def changed_feeds(self) -> Mapping[str, Milliseconds]:
        """None, ever."""
        return {}

    def deadline(self) -> Milliseconds | None:
        """None, ever."""
        return None

    def snapshot(self) -> Snapshot:
        """No state."""
        return Snapshot({}, b"")

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Nothing to take up."""

    def _fold(self, record: Record, effects: Effects) -> None:
        event = decode(record.value)
        if isinstance(event, SettingsControl):
            _check(event)
            effects.outputs.extend(self._broadcast(event, record))
            effects.counts["event", "settings"] += 1
            return
        if isinstance(event, ExpertControl | FeedControl):
            msg = "this release has no controls of experts and feeds"
            raise RejectedEvent(Reason.NOT_SUPPORTED, field="type", message=msg)
        msg = "this type belongs on forecast-events"
        raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=msg)

    def _broadcast(self, event: SettingsControl, record: Record) -> Iterable[Output]:
        """The settings for every partition of the feed-log and of the forecast-events."""
        place = topics.CONTROL_EVENTS, self._partition, self._incarnation, record.offset
        time = record.timestamp
        for partition in range(self._feed_log_partitions):
            source = Source(*place, partition)
            changed = encode_feed_log(SettingsChanged(src=source, document=event.document, hash=event.hash))
            yield Output(topics.FEED_LOG, SETTINGS_KEY, changed, time, partition)
        for partition in range(self._forecast_partitions):
            headers = (source_header(Source(*place, partition)),)
            yield Output(topics.FORECAST_EVENTS, SETTINGS_KEY, record.value, time, partition, headers)


def _check(event: SettingsControl) -> None:
    try:
        load_document(event.document)
    except SettingsError as error:
        raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
    expected = document_hash(event.document)
    if event.hash != expected:
        msg = f"hash is {event.hash!r}, that of the document is {expected!r}"
        raise RejectedEvent(Reason.SETTINGS_INVALID, field="hash", message=msg)

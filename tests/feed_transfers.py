"""Feeds on their way from one stage to another, for tests."""

from collections.abc import Iterable, Mapping

import msgspec

from stream_peer.events import topics
from stream_peer.events.incoming import FeedImport
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.portable import Header, Line
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.log.transfers import transfer_of
from stream_peer.questions.control_stage import ControlStage
from stream_peer.tools.transfer.stored_feed import Origin, Questions, StageState, exported
from tests.feed_histories import HOUR, START

LATER = START + HOUR
ORIGIN = Origin("0.0", "2026-03-01T12:00:00Z")


def state_of(stage: FeedStage, applied: int, before: Mapping[bytes, bytes] | None = None) -> StageState:
    """All that a stage stores, if nothing was stored before, or else on top of that."""
    snapshot = stage.snapshot()
    entries = {**(before or {}), **snapshot.entries}
    return StageState(0, applied, snapshot.head, {key: value for key, value in entries.items() if value is not None})


def lines_of(
    stage: FeedStage, applied: int, feed: str = "f", questions: Iterable[Questions] = (), origin: Origin = ORIGIN
) -> list[Line]:
    """A feed as it is exported."""
    return list(exported(feed, state_of(stage, applied), questions, origin))


def import_log(
    lines: Iterable[Line], *, first: int = 0, partitions: int = 1, import_id: str = "moved"
) -> list[LogRecord]:
    """The records that an import leaves in the feed-log, from the offset ``first`` on."""
    controls = ControlStage(topic="control-events", partition=0, forecast_partitions=partitions, feed_log_partitions=1)
    effects = Effects()
    header, *rest = lines
    assert isinstance(header, Header)
    for offset, event in enumerate(transfer_of(header, rest, import_id, partitions), first):
        controls.step(LogRecord(offset, LATER, event.feed.encode(), msgspec.json.encode(event)), effects)
    assert all(output.topic == topics.FEED_LOG for output in effects.outputs)
    return [LogRecord(offset, LATER, output.key, output.value) for offset, output in enumerate(effects.outputs, first)]


def published(outputs: Iterable[Output]) -> dict[tuple[str, bytes | None, int], bytes]:
    """Bytes by topic, key and revision."""
    found: dict[tuple[str, bytes | None, int], bytes] = {}
    for output in outputs:
        if output.topic in (*topics.KEYED_BY_FEED, *topics.KEYED_BY_QUESTION) and output.value is not None:
            place = output.topic, output.key, int(msgspec.json.decode(output.value)["revision"])
            assert found.setdefault(place, output.value) == output.value
    return found


def events_of(outputs: Iterable[Output]) -> list[FeedImport]:
    """What was handed on to forecast-events."""
    values = [output.value or b"" for output in outputs if output.topic == topics.FORECAST_EVENTS]
    return [msgspec.json.decode(value, type=FeedImport) for value in values]

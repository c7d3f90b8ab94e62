"""Feeds on their way from one log to another, for tests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import LogRecord, Output
from stream_peer.tools.transfer.feed_export import Origin, Questions, StageState, exported, known_of
from stream_peer.tools.transfer.feed_file import Line
from stream_peer.tools.transfer.feed_import import log_records
from stream_peer.tools.transfer.feed_slice import slice_of
from tests.feed_histories import HOUR, START, expert, folded, log_of, outcome, round_of, stage

LATER = START + HOUR
ORIGIN = Origin("0.0", "2026-03-01T12:00:00Z")
FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
PAST: list[FeedLogRecord] = [
    expert("bob", team="red"),
    *(round_of(f"q{k}", {**FORECASTS, "cyd": 0.1 * k}, boundary=k % 3) for k in range(8)),
    outcome("q1", 1),
    outcome("q2", 0),
    expert("dan", excluded=True),
    outcome("q3", "annulled"),
]


def state_of(feed_stage: FeedStage, applied: int, before: Mapping[bytes, bytes] | None = None) -> StageState:
    """All that a stage stores, if nothing was stored before, or else on top of that."""
    snapshot = feed_stage.snapshot()
    entries = {**(before or {}), **snapshot.entries}
    return StageState(0, applied, snapshot.head, {key: value for key, value in entries.items() if value is not None})


def lines_of(
    feed_stage: FeedStage, log: Sequence[LogRecord], feed: str = "f", questions: Sequence[Questions] = ()
) -> list[Line]:
    """A feed as it is exported: of a stage that has folded a log."""
    with slice_of(feed, known_of(questions), log) as found:
        return list(exported(feed, state_of(feed_stage, log[-1].offset), questions, found, ORIGIN))


def exported_lines(events: Sequence[FeedLogRecord] = PAST, **defaults: Any) -> list[Line]:
    """Events as a file has them."""
    log = log_of(events)
    return lines_of(folded(log, stage(**defaults))[0], log)


def import_log(lines: Iterable[Line], *, first: int = 0, import_id: str = "moved", now: int = LATER) -> list[LogRecord]:
    """The records that an import leaves in the feed-log, from the offset ``first`` on."""
    return [record._replace(offset=first + record.offset) for record in log_records(lines, import_id, now)]


def published(outputs: Iterable[Output]) -> dict[tuple[str, bytes | None, int], bytes]:
    """Bytes by topic, key and revision."""
    found: dict[tuple[str, bytes | None, int], bytes] = {}
    for output in outputs:
        if output.topic in topics.OF_FEEDS and output.value is not None:
            place = output.topic, output.key, int(msgspec.json.decode(output.value)["revision"])
            assert found.setdefault(place, output.value) == output.value
    return found

"""Whatever stands in a field, an event is used or refused: the stages go on, and their state can be stored."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from stream_peer.feeds.stage import FeedStage
from stream_peer.log.signatures import MAC_HEADER, Signatures
from stream_peer.log.sources import SOURCE_HEADER
from stream_peer.log.stage import Effects, Headers, LogRecord, Stage, Stateful
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import document_hash

NOON = "2026-03-01T12:00:00Z"
ARRIVED = 1_772_366_400_000
FORECAST = {"type": "forecast", "question_id": "q", "expert_id": "ann", "probability": 0.5, "at": NOON}
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "question", "question_id": "q", "at": NOON, "feed": "f", "opens_at": NOON, "closes_at": NOON, "weight": 1},
    {**FORECAST, "feed": "f", "event_id": "1", "schema": 1, "unknown": 0},
    {"type": "forecasts", "question_id": "q", "at": NOON, "forecasts": {"ann": 0.5}},
    {"type": "resolution", "question_id": "q", "outcome": 1, "at": NOON, "closed_at": NOON},
    {"type": "tick", "now": NOON},
    {"type": "settings", "document": {"defaults": {"round_every": 1}}, "hash": "0"},
)
LITERALS = (
    "1" * 5_000,
    "1" * 400,
    "-" + "1" * 40,
    "1e999",
    "1e308",
    "0." + "0" * 6_000 + "1",
    "NaN",
    r'"\ud800"',
    r'"\u0000"',
    '{"a":' * 2_000 + "1" + "}" * 2_000,
    "[" * 20_000 + "]" * 20_000,
    "true",
    "null",
    "{}",
    '"9999-12-31T23:59:59-23:59"',
    '"0001-01-01T00:00:00+14:00"',
    '"2016-12-31T23:59:60Z"',
)


def stages() -> list[Stage]:
    return [
        QuestionStage(topic="forecast-events", partition=0, partitions=1, feed_log_partitions=1),
        ControlStage(topic="control-events", partition=0, forecast_partitions=2, feed_log_partitions=2),
        FeedStage(topic="feed-log", partition=0),
    ]


def with_literal(event: dict[str, Any], literal: str) -> Iterator[bytes]:
    """The event with each field in turn, and each value within one, replaced by a literal."""
    for with_mark in marked(event):
        yield json.dumps(with_mark).replace('"@"', literal).encode()


def marked(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in event.items():
        yield {**event, name: "@"}
        if isinstance(value, dict):
            yield from ({**event, name: inner} for inner in marked(value))


def fold(stage: Stage, payload: bytes, source: bytes | None = None, offset: int = 0) -> Effects:
    """Fold a record; with a source it is signed, whatever the source is."""
    headers: Headers = ()
    if source is not None:
        mac = Signatures()._mac(b"", 0, (source, b"q", payload))
        headers = ((SOURCE_HEADER, source), (MAC_HEADER, mac))
    effects = Effects()
    stage.step(LogRecord(offset, ARRIVED, b"q", payload, headers), effects)
    if isinstance(stage, Stateful):
        stage.snapshot()
    return effects


@pytest.mark.parametrize("literal", LITERALS, ids=lambda literal: literal[:30])
def test_no_value_of_a_field_stops_a_stage(literal: str) -> None:
    payloads = [payload for event in EVENTS for payload in with_literal(event, literal)]

    for stage in stages():
        for offset, payload in enumerate(payloads):
            fold(stage, payload, b'["control-events",0,0,%d,0]' % offset, offset)


@pytest.mark.parametrize("value", [b"1e9", b"1" * 30, b"1" * 5_000, b"-1", b"null", b'"1"'])
def test_a_source_that_no_broker_could_name_is_none(value: bytes) -> None:
    header = b'["forecast-events",0,0,%b,0]' % value

    effects = fold(stages()[0], json.dumps(FORECAST).encode(), header)

    assert effects.counts["event", "forecast"] == 1
    assert not effects.counts["unsigned", "event"]


def test_settings_that_no_clock_could_count_are_refused_by_whoever_reads_them() -> None:
    document = {"defaults": {"round_every": 1e308}}
    payload = json.dumps({"type": "settings", "document": document, "hash": document_hash(document)}).encode()

    header = b'["control-events",0,0,0,0]'
    for stage in stages()[:2]:
        assert fold(stage, payload, header).counts["dead-letter", "settings-invalid"] == 1

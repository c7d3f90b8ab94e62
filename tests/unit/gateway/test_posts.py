"""What is posted is checked as at a worker's door, signed, and named by the idempotency key."""

import json
from pathlib import Path

import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import MAX_EVENT_BYTES, decode
from stream_peer.events.rejections import Reason
from stream_peer.gateway.posts import Door
from stream_peer.log.stage import LogRecord
from stream_peer.settings.process import read_producers
from tests.unit.gateway.gateways import FORECAST, files

TOPIC = "acme-forecast-events"
QUESTION = {"type": "question", "question_id": "q", "feed": "econ", "at": "2026-03-01T12:00:00Z"}


@pytest.fixture
def door(tmp_path: Path) -> Door:
    producers = read_producers(files(tmp_path))
    assert producers is not None
    return Door(producers, TOPIC)


def payload(**changed: object) -> bytes:
    return json.dumps({**FORECAST, **changed}).encode()


def test_a_worker_accepts_the_signature(door: Door, tmp_path: Path) -> None:
    (record,) = door.read({1: payload()}, "house", None).records
    producers = read_producers(files(tmp_path))
    assert producers is not None
    event = decode(record.value)

    read = LogRecord(0, 0, record.key, record.value, (record.header,))

    assert record.key == b"q"
    producers.check(event, read, TOPIC, ["econ"])  # type: ignore[arg-type]
    with pytest.raises(RejectedEvent):
        producers.check(event, read, "another-topic", ["econ"])  # type: ignore[arg-type]


def test_the_same_post_gives_the_same_bytes_and_another_key_other_ids(door: Door) -> None:
    lines = {1: payload(), 2: payload(expert_id="house-2")}
    first, again, other = (door.read(lines, "house", key) for key in ("a", "a", "b"))

    assert first == again
    ids = {result.event_id for post in (first, other) for result in post.results}
    assert len(ids) == 4
    assert [decode(record.value).event_id for record in first.records] == [r.event_id for r in first.results]  # type: ignore[union-attr]


def test_an_event_keeps_its_own_id_and_needs_none(door: Door) -> None:
    own, none = door.read({1: payload(event_id="mine")}, "house", "a"), door.read({1: payload()}, "house", None)

    assert (own.results[0].event_id, own.records[0].value) == ("mine", payload(event_id="mine"))
    assert none.records[0].value == payload()


def test_who_misspells_a_type_reads_which_there_are(door: Door) -> None:
    (result,) = door.read({1: payload(type="foreccast")}, "house", None).results

    assert str(result.detail).startswith("type: Invalid value 'foreccast'")
    assert "; did you mean forecast or forecasts? Producers send question, forecast, forecasts, " in str(result.detail)


@pytest.mark.parametrize(
    ("said", "producer", "reason", "status"),
    [
        (b"", "house", Reason.EMPTY, 400),
        (b"{", "house", Reason.NOT_JSON, 400),
        (b"[1]", "house", Reason.NOT_JSON, 400),
        (b'{"type": "forecast"', "house", Reason.NOT_JSON, 400),
        (payload(type="vote"), "house", Reason.UNKNOWN_TYPE, 422),
        (payload(probability=40), "house", Reason.PROBABILITY_RANGE, 422),
        (payload(at="soon"), "house", Reason.TIME_FORMAT, 422),
        (payload(schema=9), "house", Reason.UNKNOWN_VERSION, 422),
        (payload(feed="no name"), "house", Reason.FEED_NAME, 422),
        (b'{"type": "tick", "now": "2026-03-01"}', "house", Reason.UNEXPECTED_TYPE, 422),
        (b'{"type": "feed", "feed": "econ", "delete": true}', "house", Reason.UNEXPECTED_TYPE, 422),
        (
            json.dumps(
                {
                    "type": "forecasts",
                    "question_id": "q",
                    "at": "2026-03-01",
                    "forecasts": {"house-1": 0.5, "house-2": 5},
                }
            ).encode(),
            "house",
            Reason.PROBABILITY_RANGE,
            422,
        ),
        (payload(expert_id="rival-1"), "house", Reason.PRODUCER_FORBIDDEN, 403),
        (payload(feed="sport"), "house", Reason.PRODUCER_FORBIDDEN, 403),
        (json.dumps(QUESTION).encode(), "house", Reason.PRODUCER_FORBIDDEN, 403),
        (json.dumps({**QUESTION, "at": None}).encode(), "platform", Reason.MISSING_FIELD, 422),
        (payload(), "nobody", Reason.PRODUCER_UNKNOWN, 403),
        (payload().ljust(MAX_EVENT_BYTES), "house", Reason.TOO_LARGE, 413),
    ],
)
def test_what_is_refused_has_the_reason_of_a_dead_letter(
    door: Door, said: bytes, producer: str, reason: Reason, status: int
) -> None:
    post = door.read({7: said}, producer, "key")

    (result,) = post.results
    assert (post.records, result.line, result.reason, result.status) == ([], 7, reason, status)
    assert result.detail


def test_others_of_a_post_are_written_in_their_order(door: Door) -> None:
    post = door.read({1: payload(probability=0.1), 2: b"x", 4: payload(probability=0.2)}, "house", None)

    assert [json.loads(record.value)["probability"] for record in post.records] == [0.1, 0.2]
    assert [(result.line, result.status) for result in post.results] == [(1, 202), (2, 400), (4, 202)]


def test_events_of_groups_can_be_posted(door: Door) -> None:
    said = {"type": "forecast", "question_id": "chair", "expert_id": "house-1", "at": "2026-03-01"}
    forecast = json.dumps({**said, "options": {"Ada": 0.5}}).encode()
    falls = json.dumps({**said, "cdf": {"1": 0.5, "2": 0.4}}).encode()

    post = door.read({1: forecast, 2: falls}, "house", None)

    assert [record.value for record in post.records] == [forecast]
    assert [result.reason for result in post.results[1:]] == [Reason.CONTRADICTORY]

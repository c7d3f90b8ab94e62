"""Whatever cannot be used becomes a dead letter with its reason, untouched, and is counted; on real Kafka."""

import json
from typing import Any, NamedTuple

import pytest

from stream_peer.events import topics
from stream_peer.events.rejections import Reason
from stream_peer.settings.feed.document import document_hash
from tests.integration.support.client import Message
from tests.integration.support.events import Event, at, forecast, question, resolution
from tests.integration.support.service import DeadLetter, Service

pytestmark = pytest.mark.real_kafka

FEED = "malformed"
HEADER = ("trace", b"\x00\xff untouched")


class Malformed(NamedTuple):
    """Something that cannot be used: why, and what the dead letter's message must say."""

    name: str
    value: bytes | None
    reason: Reason
    says: str = ""
    topic: str = topics.FORECAST_EVENTS
    key: bytes = b"q-malformed"


def _forecast(name: str, reason: Reason, says: str = "", **fields: Any) -> Malformed:
    return _event(name, {**forecast("q-malformed", "e1", 0.5, 1, feed=FEED), **fields}, reason, says)


def _event(name: str, event: Event, reason: Reason, says: str = "") -> Malformed:
    return Malformed(name, json.dumps(event).encode(), reason, says)


def _control(name: str, event: Event, reason: Reason, says: str = "") -> Malformed:
    return _event(name, event, reason, says)._replace(topic=topics.CONTROL_EVENTS, key=b"settings")


def _settings(document: dict[str, Any]) -> Event:
    return {"type": "settings", "document": document, "hash": document_hash(document)}


MALFORMED = [
    Malformed("no bytes", b"", Reason.EMPTY),
    Malformed("tombstone", None, Reason.EMPTY),
    Malformed("more than a megabyte", b" " * 1_000_001, Reason.TOO_LARGE, "1,000,000"),
    Malformed("half an object", b'{"type":"forecast","question_id":"q', Reason.NOT_JSON),
    Malformed("a list", b'[{"type":"tick"}]', Reason.NOT_JSON),
    Malformed("Latin-1", '{"type":"question","question_id":"Köln"}'.encode("latin-1"), Reason.NOT_JSON),
    Malformed("NaN", b'{"type":"forecast","probability":NaN}', Reason.NOT_JSON),
    _event("no type", {"question_id": "q-malformed"}, Reason.UNKNOWN_TYPE),
    _event("unknown type", {"type": "bet", "question_id": "q-malformed"}, Reason.UNKNOWN_TYPE, "bet"),
    _event("control event", {"type": "feed", "feed": FEED, "reset": True}, Reason.UNEXPECTED_TYPE, "control-events"),
    _event("settings among forecasts", _settings({}), Reason.UNEXPECTED_TYPE, "stream-peer settings apply"),
    _forecast("other major version", Reason.UNKNOWN_VERSION, "schema is 2", schema=2),
    _event(
        "no expert", {"type": "forecast", "question_id": "q", "probability": 0.5}, Reason.MISSING_FIELD, "expert_id"
    ),
    _forecast("probability as text", Reason.WRONG_TYPE, "0.3", probability="0.3"),
    _forecast("percent", Reason.PROBABILITY_RANGE, "62", probability=62),
    _forecast("below zero", Reason.PROBABILITY_RANGE, "-0.001", probability=-0.001),
    _event("fractional outcome", resolution("q-malformed", 0.49, 1), Reason.OUTCOME_UNKNOWN, "0.49"),
    _forecast("seconds since 1970", Reason.TIME_FORMAT, "1736121600", at=1736121600),
    _forecast("no time", Reason.TIME_FORMAT, "yesterday", at="yesterday"),
    _forecast("before 1900", Reason.TIME_RANGE, "1899", at="1899-12-31T23:59:59Z"),
    _forecast("beyond the horizon", Reason.TIME_RANGE, "milliseconds passed where seconds", at="2099-01-01T00:00:00Z"),
    _event(
        "closes too far ahead", question("q-malformed", FEED, 1, closes_at="2099-01-01T00:00:00Z"), Reason.TIME_RANGE
    ),
    _forecast("no id", Reason.ID_LENGTH, "expert_id", expert_id=""),
    _forecast("long id", Reason.ID_LENGTH, "expert_id", expert_id="e" * 257),
    _forecast("id of many bytes", Reason.ID_LENGTH, "300 bytes", expert_id="é" * 150),
    _forecast("feed with a blank", Reason.FEED_NAME, "my feed", feed="my feed"),
    _event("no weight", question("q-malformed", FEED, 1, weight=0), Reason.WEIGHT_RANGE, "0"),
    _event("weight of two", question("q-malformed", FEED, 1, weight=2), Reason.WEIGHT_RANGE, "2"),
    _forecast("key not UTF-8", Reason.KEY_NOT_UTF8)._replace(key=b"\x00\xff\x85"),
    _control("expert control", {"type": "expert", "feed": FEED, "expert_id": "e1", "at": at(1)}, Reason.CONTRADICTORY),
    _control("feed control", {"type": "feed", "feed": FEED}, Reason.CONTRADICTORY),
    _control("forecast among controls", forecast("q", "e1", 0.5, 1), Reason.UNEXPECTED_TYPE, "forecast-events"),
    _control(
        "settings with faults", _settings({"defaults": {"grase": "1h"}}), Reason.SETTINGS_INVALID, "defaults.grase"
    ),
    _control("settings with another hash", {**_settings({}), "hash": "00000000"}, Reason.SETTINGS_INVALID, "00000000"),
    _control(
        "settings at odds with each other",
        _settings({"defaults": {"guard": "on", "preset": "paper"}}),
        Reason.SETTINGS_INVALID,
        "guards the default reference answers",
    ),
]


class Refusals(NamedTuple):
    """What became of all of them: dead letters by name, and how often each reason was counted meanwhile."""

    letters: dict[str, DeadLetter]
    counted: dict[Reason, float]


@pytest.fixture(scope="module")
def refusals(_deployment: Service) -> Refusals:
    _deployment.workers["w1"].wait_ready()
    before = _counts(_deployment)
    places: dict[str, tuple[str, int, int]] = {}
    for topic in (topics.FORECAST_EVENTS, topics.CONTROL_EVENTS):
        chosen = [each for each in MALFORMED if each.topic == topic]
        sent = _deployment.produce(topic, [Message(each.key, each.value, headers=(HEADER,)) for each in chosen])
        places |= {each.name: (_deployment.topic(topic), *place) for each, place in zip(chosen, sent, strict=True)}
    _deployment.settle()
    letters = _deployment.dead_letters()
    after = _counts(_deployment)
    return Refusals(
        {name: letters[place] for name, place in places.items() if place in letters},
        {reason: after[reason] - before[reason] for reason in Reason},
    )


def _counts(service: Service) -> dict[Reason, float]:
    counted = {sample.labels["reason"]: sample.value for sample in service.samples("stream_peer_dead_letters_total")}
    return {reason: counted.get(reason, 0.0) for reason in Reason}


@pytest.mark.case("C23")
@pytest.mark.parametrize("malformed", MALFORMED, ids=lambda malformed: malformed.name.replace(" ", "-"))
def test_what_cannot_be_used_is_a_dead_letter_with_its_reason(malformed: Malformed, refusals: Refusals) -> None:
    letter = refusals.letters[malformed.name]

    assert letter.reason == malformed.reason, letter.text
    assert malformed.says in letter.text
    assert letter.message.key == malformed.key
    assert (letter.message.value or b"") == (malformed.value or b"")[:65_536]
    assert HEADER in letter.message.headers


def test_every_refusal_is_counted_by_its_reason(refusals: Refusals) -> None:
    expected = {reason: sum(each.reason == reason for each in MALFORMED) for reason in Reason}

    assert refusals.counted == expected


def test_what_cannot_be_used_changes_nothing(refusals: Refusals, served: Service) -> None:
    assert not served.outputs(topics.REFERENCE_ANSWERS, FEED)
    assert not served.outputs(topics.WEIGHTS, FEED)

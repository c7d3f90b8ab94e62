"""What passes the door, and why the rest does not."""

import difflib
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import (
    MAX_EVENT_BYTES,
    ExpertControl,
    FeedControl,
    Forecast,
    Forecasts,
    PartialForecasts,
    Question,
    Resolution,
    SettingsControl,
    Tick,
    decode,
    moment,
)
from stream_peer.events.rejections import Reason
from stream_peer.events.spelling import near_names
from stream_peer.events.times import YEAR_1900, YEAR_2000

NOON = "2026-03-01T12:00:00Z"
FORECAST: dict[str, Any] = {"type": "forecast", "question_id": "q", "expert_id": "e", "probability": 0.5, "at": NOON}
RESOLUTION: dict[str, Any] = {"type": "resolution", "question_id": "q", "outcome": 1, "at": NOON}


def encoded(event: dict[str, Any], **changes: Any) -> bytes:
    return json.dumps({**event, **changes}).encode()


def refused(payload: bytes | None) -> RejectedEvent:
    with pytest.raises(RejectedEvent) as caught:
        decode(payload)
    return caught.value


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "question", "question_id": "q"}, Question),
        (FORECAST, Forecast),
        ({"type": "forecasts", "question_id": "q", "at": NOON, "forecasts": {"a": 0.1, "b": None}}, Forecasts),
        (RESOLUTION, Resolution),
        ({"type": "expert", "feed": "f", "expert_id": "e", "at": NOON}, ExpertControl),
        ({"type": "feed", "feed": "f", "reset": True}, FeedControl),
        ({"type": "settings", "document": {}, "hash": "9f3c"}, SettingsControl),
        ({"type": "tick", "now": NOON}, Tick),
    ],
)
def test_each_type_decodes_from_its_required_fields(event: dict[str, Any], kind: type) -> None:
    assert type(decode(encoded(event))) is kind


@pytest.mark.parametrize(
    ("event", "required"),
    [
        ({"type": "question", "question_id": "q"}, ["question_id"]),
        (FORECAST, ["question_id", "expert_id", "probability", "at"]),
        (
            {"type": "forecasts", "question_id": "q", "at": NOON, "forecasts": {}},
            ["question_id", "at", "forecasts"],
        ),
        (RESOLUTION, ["question_id", "outcome", "at"]),
        ({"type": "expert", "feed": "f", "expert_id": "e", "at": NOON}, ["feed", "expert_id", "at"]),
        ({"type": "feed", "feed": "f", "reset": True}, ["feed"]),
    ],
)
def test_each_required_field_is_missed_by_name(event: dict[str, Any], required: list[str]) -> None:
    for name in required:
        error = refused(encoded({key: value for key, value in event.items() if key != name}))

        assert error.reason == Reason.MISSING_FIELD
        assert f"`{name}`" in error.message


def test_unknown_fields_are_ignored() -> None:
    assert decode(encoded(FORECAST, colour="blue")) == decode(encoded(FORECAST))


@pytest.mark.parametrize("payload", [None, b""])
def test_a_tombstone_is_empty(payload: bytes | None) -> None:
    assert refused(payload).reason == Reason.EMPTY


@pytest.mark.parametrize(
    "payload",
    [
        b"hello",
        b"{",
        b'{"type": "forecast"',
        b"\xff\xfe{}",
        encoded(FORECAST)[:-1] + b',"event_id":"\xc3("}',
        encoded(FORECAST).replace(b"0.5", b"NaN"),
        encoded(FORECAST).replace(b"0.5", b"Infinity"),
        encoded(FORECAST) + b"{}",
        b"[" * 100_000,
        encoded(FORECAST)[:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["text", "cut", "cut-late", "utf-16", "broken-utf-8", "NaN", "Infinity", "two-objects", "deep", "deep-inside"],
)
def test_what_is_not_one_json_object_in_utf8_is_refused_as_such(payload: bytes) -> None:
    assert refused(payload).reason == Reason.NOT_JSON


@pytest.mark.parametrize("payload", [b"[]", b"1", b'"forecast"', b"null"])
def test_json_that_is_no_object_is_refused(payload: bytes) -> None:
    assert refused(payload).reason == Reason.NOT_JSON


def test_an_event_over_a_megabyte_is_refused_by_its_size() -> None:
    error = refused(encoded(FORECAST, padding="x" * MAX_EVENT_BYTES))

    assert error.reason == Reason.TOO_LARGE
    assert "1,000,000" in error.message


@pytest.mark.parametrize("kind", ["prediction", "", "Forecast", 7, None])
def test_an_unknown_type_is_refused_by_name(kind: object) -> None:
    error = refused(encoded(FORECAST, type=kind))

    assert error.reason == Reason.UNKNOWN_TYPE


def test_a_missing_type_is_an_unknown_type() -> None:
    assert refused(b'{"question_id": "q"}').reason == Reason.UNKNOWN_TYPE


def test_a_version_of_the_future_is_refused() -> None:
    assert refused(encoded(FORECAST, schema=2)).reason == Reason.UNKNOWN_VERSION


@pytest.mark.case("C12")
@pytest.mark.parametrize("probability", [83, 1.0000001, -0.1, 1e300])
def test_a_probability_outside_the_unit_interval_is_refused_with_its_value(probability: float) -> None:
    error = refused(encoded(FORECAST, probability=probability))

    assert error.reason == Reason.PROBABILITY_RANGE
    assert error.field == "probability"
    assert repr(probability) in error.message
    assert "percent" in error.message


@pytest.mark.case("C12")
@pytest.mark.parametrize("probability", ["0.5", True, [0.5], {"p": 0.5}])
def test_a_probability_of_another_type_is_refused(probability: object) -> None:
    error = refused(encoded(FORECAST, probability=probability))

    assert error.reason == Reason.WRONG_TYPE
    assert error.field == "probability"


def test_one_bad_probability_among_many_is_named_and_the_others_are_kept() -> None:
    message = {"type": "forecasts", "question_id": "q", "at": NOON, "forecasts": {"a": 0.1, "b": 12, "ü" * 129: 0.5}}

    event = decode(encoded(message))

    assert isinstance(event, PartialForecasts)
    assert event.forecasts == {"a": 0.1}
    assert [(one.expert_id[:1], one.value, one.reason) for one in event.refused] == [
        ("b", "12", Reason.PROBABILITY_RANGE),
        ("ü", "0.5", Reason.ID_LENGTH),
    ]
    assert list(event.named) == ["a", "b", "ü" * 129]


@pytest.mark.parametrize("order", [1, -1])
def test_a_bad_forecast_among_many_and_a_time_of_an_unusual_form_go_together(order: int) -> None:
    fields = [("at", "2026-03-01 12:00"), ("forecasts", {"a": 0.1, "b": "x"})][::order]

    event = decode(encoded({"type": "forecasts", "question_id": "q", **dict(fields)}))

    assert isinstance(event, PartialForecasts)
    assert event.forecasts == {"a": 0.1}


def test_a_message_whose_other_fields_are_wrong_too_is_refused_as_a_whole() -> None:
    message = {"type": "forecasts", "question_id": "", "at": NOON, "forecasts": {"a": 0.1, "b": 12}}

    error = refused(encoded(message))

    assert error.field == "question_id"


@pytest.mark.case("C10")
@pytest.mark.parametrize("probability", [0, 1, 0.0, 1.0, 5e-324])
def test_exactly_zero_and_one_pass(probability: float) -> None:
    event = decode(encoded(FORECAST, probability=probability))

    assert isinstance(event, Forecast)
    assert event.probability == probability


def test_a_null_probability_withdraws() -> None:
    event = decode(encoded(FORECAST, probability=None))

    assert isinstance(event, Forecast)
    assert event.probability is None


@pytest.mark.case("C05")
@pytest.mark.parametrize(
    ("spelling", "verdict"),
    [(s, 1) for s in (1, 1.0, True, "1", "1.0", "yes", "YES", "Yes ", " true", "TRUE")]
    + [(s, 0) for s in (0, 0.0, False, "0", "0.0", "no", "NO", "No", "\tfalse\n", "False")],
)
def test_outcomes_of_all_spellings_are_one_outcome(spelling: object, verdict: int) -> None:
    event = decode(encoded(RESOLUTION, outcome=spelling))

    assert isinstance(event, Resolution)
    assert event.verdict == verdict


@pytest.mark.case("C03")
def test_a_null_outcome_annuls() -> None:
    event = decode(encoded(RESOLUTION, outcome=None))

    assert isinstance(event, Resolution)
    assert event.verdict == "annulled"


@pytest.mark.case("C02")
@pytest.mark.parametrize("spelling", ["open", "Open", " OPEN "])
def test_open_retracts(spelling: str) -> None:
    event = decode(encoded(RESOLUTION, outcome=spelling))

    assert isinstance(event, Resolution)
    assert event.verdict == "open"


@pytest.mark.case("C04")
@pytest.mark.parametrize("outcome", [0.49, 0.5, 2, -1, "0.49", "50-50", "MKT", "", "maybe", "null", 1e-9])
def test_an_outcome_that_is_neither_is_never_thresholded(outcome: object) -> None:
    error = refused(encoded(RESOLUTION, outcome=outcome))

    assert error.reason == Reason.OUTCOME_UNKNOWN
    assert error.field == "outcome"
    assert repr(outcome) in error.message


@pytest.mark.parametrize("outcome", [[], {}])
def test_an_outcome_of_another_type_is_refused(outcome: object) -> None:
    assert refused(encoded(RESOLUTION, outcome=outcome)).reason == Reason.WRONG_TYPE


@pytest.mark.parametrize("at", ["yesterday", "", "2026-13-01T00:00:00Z", "2026-02-30", 1_772_366_400, None, 1.5])
def test_a_time_that_is_no_iso_text_is_refused(at: object) -> None:
    error = refused(encoded(FORECAST, at=at))

    assert error.reason == Reason.TIME_FORMAT
    assert error.field == "at"


def test_a_naive_time_is_utc_and_an_offset_is_honoured() -> None:
    naive, shifted = decode(encoded(FORECAST, at=NOON[:-1])), decode(encoded(FORECAST, at="2026-03-01T14:00:00+02:00"))

    assert isinstance(naive, Forecast)
    assert isinstance(shifted, Forecast)
    assert moment(naive.at) == moment(shifted.at) == 1_772_366_400_000


@pytest.mark.parametrize("at", ["2026-03-01", "2026-03-01 00:00:00.000+00", "20260301T00Z", "2026-03-01T02:00+02"])
@pytest.mark.parametrize("event", [FORECAST, RESOLUTION])
def test_times_may_have_any_form_of_iso_8601_that_names_a_day(event: dict[str, Any], at: str) -> None:
    read, usual = decode(encoded(event, at=at)), decode(encoded(event, at="2026-03-01T00:00:00Z"))

    assert isinstance(read, Forecast | Resolution)
    assert isinstance(usual, Forecast | Resolution)
    assert moment(read.at) == moment(usual.at)
    assert read == msgspec.structs.replace(usual, at=read.at)


def test_another_fault_beside_such_a_time_is_still_named() -> None:
    error = refused(encoded(FORECAST, at="2026-03-01", probability=70))

    assert (error.reason, error.field) == (Reason.PROBABILITY_RANGE, "probability")


def test_a_refused_time_is_shown_with_what_is_taken() -> None:
    said = refused(encoded(FORECAST, at="1 March")).message

    assert "'1 March'" in said
    assert "2026-03-01, 2026-03-01T09:00Z" in said


def test_a_moment_before_2000_is_taken_from_1900_on_in_historical_feeds_alone() -> None:
    old = datetime(1900, 1, 1, tzinfo=UTC)

    assert moment(old, is_history=True) == YEAR_1900
    for value, is_history in ((old, False), (old - timedelta(seconds=1), True)):
        with pytest.raises(RejectedEvent, match=r"before (1900|2000)"):
            moment(value, is_history=is_history)


def test_a_moment_before_2000_is_refused() -> None:
    assert moment(datetime(2000, 1, 1, tzinfo=UTC)) == YEAR_2000

    with pytest.raises(RejectedEvent) as caught:
        moment(datetime(1970, 1, 21, tzinfo=UTC), "closes_at")

    assert caught.value.reason == Reason.TIME_RANGE
    assert "closes_at is 1970-01-21T00:00:00+00:00" in caught.value.message


@pytest.mark.parametrize("name", ["question_id", "expert_id"])
@pytest.mark.parametrize("value", ["", "x" * 257, "ü" * 129, "\N{GRINNING FACE}" * 65])
def test_an_id_is_one_to_256_bytes(name: str, value: str) -> None:
    error = refused(encoded(FORECAST, **{name: value}))

    assert error.reason == Reason.ID_LENGTH
    assert error.field == name


@pytest.mark.parametrize("value", ["x", "x" * 256, "ü" * 128, "a/b c\u0000", "<img onerror>"])
def test_any_text_of_that_length_is_an_id(value: str) -> None:
    event = decode(encoded(FORECAST, expert_id=value))

    assert isinstance(event, Forecast)
    assert event.expert_id == value


def test_ids_among_many_forecasts_are_checked_too() -> None:
    event = {"type": "forecasts", "question_id": "q", "at": NOON, "forecasts": {"ü" * 129: 0.5}}

    assert refused(encoded(event)).reason == Reason.ID_LENGTH


@pytest.mark.parametrize("feed", ["", "a b", "-a", "x" * 101, "ü", "a/b", "econ\n"])
def test_a_feed_name_of_other_letters_is_refused(feed: str) -> None:
    error = refused(encoded(FORECAST, feed=feed))

    assert error.reason == Reason.FEED_NAME
    assert error.field == "feed"


@pytest.mark.parametrize("weight", [0, -1, 1.01])
def test_a_weight_outside_its_interval_is_refused(weight: float) -> None:
    error = refused(encoded({"type": "question", "question_id": "q"}, weight=weight))

    assert error.reason == Reason.WEIGHT_RANGE


@pytest.mark.parametrize(
    "event",
    [
        {**FORECAST, "question_id": 7},
        {**FORECAST, "feed": 7},
        {"type": "forecasts", "question_id": "q", "at": NOON, "forecasts": [0.1]},
        {"type": "expert", "feed": "f", "expert_id": "e", "at": NOON, "excluded": "yes"},
        {"type": "settings", "document": [], "hash": "x"},
    ],
)
def test_a_field_of_another_json_type_is_refused(event: dict[str, Any]) -> None:
    assert refused(encoded(event)).reason == Reason.WRONG_TYPE


@pytest.mark.parametrize("data", [b"\x02q1\x06ann", encoded(FORECAST)])
def test_the_frame_of_a_schema_registry_is_called_by_its_name(data: bytes) -> None:
    refusal = refused(b"\x00\x00\x00\x00\x2a" + data)

    assert refusal.reason == Reason.NOT_JSON
    assert "in the frame of a schema registry (magic byte 0, schema 42, then the data)" in refusal.message


@pytest.mark.parametrize(
    ("envelope", "name"),
    [
        ({"schema": {"type": "struct"}, "payload": FORECAST}, "Kafka Connect (schema, payload)"),
        ({"schema": None, "payload": {"before": None, "after": FORECAST}}, "Kafka Connect (schema, payload)"),
        ({"before": None, "after": FORECAST, "op": "c", "source": {}}, "Debezium (before, after)"),
        ({"specversion": "1.0", "type": "org.example.forecast", "id": "1", "data": FORECAST}, "CloudEvents"),
    ],
)
def test_an_envelope_is_called_by_its_name(envelope: dict[str, Any], name: str) -> None:
    refusal = refused(json.dumps(envelope).encode())

    assert refusal.reason == Reason.UNKNOWN_TYPE
    assert f"the message is in an envelope of {name}" in refusal.message
    assert "; s" in refusal.message  # what to do: send or set


def test_an_event_of_ours_with_a_field_of_an_envelope_is_no_envelope() -> None:
    assert isinstance(decode(encoded(FORECAST, payload={}, before=1, after=2, specversion="1.0")), Forecast)


@pytest.mark.parametrize("at", ["2026-03-01T12:00:00Z", "2026-03-01 12:00"])
@pytest.mark.parametrize("order", [1, -1])
def test_unknown_fields_are_named_and_nothing_of_the_others_changes(at: str, order: int) -> None:
    fields = [*{**FORECAST, "at": at, "x": [1, {"y": 2}], "probability": 0.1234567890123456789}.items()][::order]
    unknown: list[str] = []

    event = decode(encoded(dict(fields)), unknown)

    assert unknown == ["x"]
    assert event == decode(encoded({**FORECAST, "at": at, "probability": 0.1234567890123456789}))


def test_an_unknown_field_does_not_hide_what_is_wrong_with_another() -> None:
    error = refused(encoded({"x": 1, **FORECAST, "probability": "many"}))

    assert (error.reason, error.field) == (Reason.WRONG_TYPE, "probability")
    assert "'many'" in error.message


@pytest.mark.parametrize("value", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000])
def test_an_unknown_field_may_hold_anything_and_stops_nothing(value: str) -> None:
    message = encoded(FORECAST)[:-1] + b',"x":' + value.encode() + b"}"

    assert refused(message).reason == Reason.NOT_JSON


def test_near_names_are_found_by_likeness_and_by_what_they_hold() -> None:
    known = ["fed-cut-june", "cpi-may", "eu-cpi"]

    assert near_names("fed-cut-jun", known) == ["fed-cut-june"]
    assert near_names("c", known) == ["cpi-may", "eu-cpi", "fed-cut-june"]
    assert near_names("CPI", known) == ["cpi-may", "eu-cpi"]
    assert near_names("zzz", known) == near_names("", known) == []


def test_likeness_of_thousands_of_long_names_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [f"{'ab' * 120}{number}" for number in range(1000)]

    def fail(*_: Any, **__: Any) -> list[str]:
        msg = "it would take minutes"
        raise AssertionError(msg)

    monkeypatch.setattr(difflib, "get_close_matches", fail)

    assert near_names(long[7][:-1], long)[:1] == [long[0]]
    assert near_names("ba" * 120, long) == []


def test_reasons_are_short_hyphenated_words() -> None:
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", reason) for reason in Reason)


def test_a_rejection_tells_reason_field_and_message() -> None:
    error = RejectedEvent(Reason.WEIGHT_RANGE, field="weight", message="weight is 2")

    assert (error.reason, error.field, error.message) == ("weight-range", "weight", "weight is 2")
    assert str(error) == "weight-range: weight is 2"

"""What is refused, forwarded or known already, and what is published of it."""

from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, Source
from stream_peer.events.partitioning import partition_of
from stream_peer.log.signatures import MAC_HEADER, Signatures
from stream_peer.log.sources import SOURCE_HEADER, source_header
from stream_peer.log.stage import Headers, LogRecord, Output
from stream_peer.questions.store import decode_question_head
from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    SECOND,
    T0,
    Partition,
    broadcast,
    event,
    forecast,
    forget,
    opened,
    question,
    reasons,
    records,
    resolution,
    settings_event,
    signed,
    stage,
    tick,
)


def record(offset: int, key: bytes, value: bytes) -> LogRecord:
    return LogRecord(offset, T0, key, value)


# --- refusals, forwarding, repeats ---


def test_times_before_2000_are_taken_in_a_historical_feed_alone() -> None:
    nineties = 800_000_000_000
    partition = Partition(now=T0)
    partition.apply({"feeds": {"old": {"history": True}}})

    live, old = (
        partition.send(
            question(name, feed=feed, opens_at=nineties, closes_at=nineties + DAY),
            *(forecast(e, 0.7, nineties + HOUR, name) for e in "abc"),
            resolution(1, nineties + 2 * DAY, name),
        )
        for name, feed in (("p", "live"), ("q", "old"))
    )

    assert reasons(live) == ["time-range"] * 5
    assert {output.topic for output in old} == {topics.FEED_LOG}
    assert [type(record) for record in records(old)].count(OutcomeRevealed) == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        (b"\xff", "not-json"),
        (b'{"type":"poll"}', "unknown-type"),
        (event("feed", feed="econ", reset=True), "unexpected-type"),
        (forecast("ann", 70, T0), "probability-range"),
        (resolution(0.49, T0), "outcome-unknown"),
        (forecast("ann", 0.5, 1_000_000), "time-range"),
        (question(closes_at=T0 + 11 * 365 * DAY), "time-range"),
        (event("tick", now=12), "time-range"),
    ],
)
def test_bad_input_becomes_a_dead_letter_and_leaves_no_trace(value: bytes | None, reason: str) -> None:
    partition = Partition()

    refused = partition.send(value)

    assert reasons(refused) == [reason]
    assert partition.count("dead-letter", reason) == 1
    assert partition.stage.snapshot().entries == {}


@pytest.mark.case("C24")
def test_a_key_that_is_not_utf8_is_refused() -> None:
    partition = Partition()
    bad = forecast("ann", 0.5, T0)

    partition.stage.step(record(0, b"\x00\xff\x85", bad), partition.effects)
    partition.stage.step(record(1, "é".encode() * 4096, bad), partition.effects)

    assert reasons(partition.effects.outputs) == ["key-not-utf8"]
    assert list(partition.stage.snapshot().entries) == [b"q/q"]


@pytest.mark.case("C25")
def test_an_event_on_the_wrong_partition_is_forwarded_once_and_untouched() -> None:
    home = partition_of("q", 8)
    wrong = Partition(stage(partition=(home + 1) % 8, partitions=8))
    right = Partition(stage(partition=home, partitions=8))
    value = forecast("ann", 0.7, T0)

    (forwarded,) = wrong.send(value, headers=[("trace", b"1")])
    right.send(forwarded.value, headers=forwarded.headers)
    right.send(forwarded.value, headers=forwarded.headers)

    assert forwarded.topic == topics.FORECAST_EVENTS
    assert (forwarded.key, forwarded.value, forwarded.partition) == (b"key", value, home)
    assert forwarded.headers[0] == ("trace", b"1")
    assert wrong.count("forwarded") == 1
    assert wrong.stage.clock == 0
    assert right.count("event", "forecast") == right.count("duplicate") == 1


@pytest.mark.case("C25")
def test_a_forwarded_event_is_never_forwarded_again() -> None:
    home = partition_of("q", 8)
    wrong = Partition(stage(partition=(home + 1) % 8, partitions=8), number=(home + 1) % 8)

    kept = wrong.send(forecast("ann", 0.7, T0), source=Source(topics.FORECAST_EVENTS, (home + 2) % 8, 0, 17, 0))
    next_one = wrong.send(forecast("ann", 0.8, T0))

    assert kept == []
    assert [output.topic for output in next_one] == [topics.FORECAST_EVENTS]
    assert wrong.count("event", "forecast") == 1


def test_a_record_that_a_mirror_copied_with_its_headers_is_an_ordinary_one() -> None:
    """Of a forwarded event at its home, and at the wrong partition, from where it is forwarded as any other."""
    home = partition_of("q", 8)
    away = (home + 1) % 8
    there = Signatures((b"", b"of this topic"), "cluster", "former topic")
    value, source = forecast("ann", 0.7, T0), Source(topics.FORECAST_EVENTS, away, 0, 10**12, 0)
    copied = there.signed(Output(topics.FORECAST_EVENTS, b"key", value, 0, home, (("trace", b"1"),)), source).headers
    at_home, astray = (Partition(stage(partition=number, partitions=8), number=number) for number in (home, away))

    for probability in (0.7, 0.8):
        at_home.send(forecast("ann", probability, T0), headers=copied)
    (forwarded,) = astray.send(value, headers=copied)

    assert at_home.count("event", "forecast") == at_home.count("unsigned", "event") == 2
    assert at_home.count("duplicate") == 0
    assert len(at_home.effects.warnings) == 1
    assert [name for name, _ in forwarded.headers] == ["trace", SOURCE_HEADER, MAC_HEADER]
    assert at_home.send(forwarded.value, headers=forwarded.headers) == []
    assert at_home.count("event", "forecast") == 3


def test_headers_of_ours_without_a_signature_are_one_warning_an_hour() -> None:
    partition = Partition()
    forged = [source_header(Source(topics.FORECAST_EVENTS, 3, 0, 17, 0))]

    for minutes in (0, 1, 59, 60, 61):
        partition.send(forecast("ann", 0.5, T0), headers=forged, now=T0 + minutes * 60 * SECOND)

    assert [(warning.code, warning.feed) for warning in partition.effects.warnings] == [("unsigned-record", "")] * 2
    assert "prod.forecast-events-0, offset 0" in partition.effects.warnings[0].message


@pytest.mark.parametrize("headers", [(), (("trace", b"1"),), signed(b"another value")])
def test_a_tick_of_anybody_else_is_refused_and_moves_no_clock(headers: Headers) -> None:
    partition = opened()
    before = partition.stage.clock

    value = tick(CLOSE + GRACE)
    partition.stage.step(LogRecord(9, CLOSE + DAY, b"key", value, headers), partition.effects)

    assert reasons(partition.effects.outputs) == ["unexpected-type"]
    assert partition.count("unsigned", "tick") == 1
    assert partition.stage.clock == before


def test_what_was_seen_is_remembered_over_a_restart() -> None:
    home = partition_of("q", 8)
    partition = Partition(stage(partition=home, partitions=8), number=home)
    source = Source(topics.FORECAST_EVENTS, (home + 1) % 8, 0, 17, 0)
    partition.send(forecast("ann", 0.7, T0), source=source)

    partition.restart(stage(partition=home, partitions=8))
    partition.send(forecast("ann", 0.7, T0), source=source)

    assert partition.count("duplicate") == 1


@pytest.mark.parametrize(
    "source",
    [
        Source(topics.CONTROL_EVENTS, 0, 9, 10**9, 0),
        Source(topics.FORECAST_EVENTS, 0, 9, 10**9, 0),
        Source(topics.FORECAST_EVENTS, 64, 9, 10**9, 0),
        Source(topics.FORECAST_EVENTS, -1, 9, 10**9, 0),
    ],
)
def test_a_source_that_no_forecast_can_have_hides_nothing_and_is_not_kept(source: Source) -> None:
    partition = Partition()

    for probability in (0.7, 0.8):
        partition.send(forecast("ann", probability, T0), source=source)
    partition.send(settings_event({}), source=broadcast(7))

    assert partition.count("event", "forecast") == 2
    assert partition.count("event", "settings") == 1
    assert decode_question_head(partition.stage.snapshot().head).seen == [Source(topics.CONTROL_EVENTS, 0, 0, 7, 0)]


def test_settings_and_ticks_are_never_forwarded() -> None:
    partition = Partition(stage(partition=5, partitions=8), number=5)

    caused = [*partition.apply({}), *partition.send(tick(T0))]

    assert caused == []
    assert partition.count("event", "settings") == partition.count("event", "tick") == 1


# --- messages of many forecasts, of which some cannot be used ---


def test_of_a_message_the_forecasts_that_can_be_used_count_and_one_dead_letter_names_the_others() -> None:
    partition = opened()
    panel: dict[str, Any] = {"gfs": 0.2, "ecmwf": 0.4, "arpege": 0.3, "icon": "missing", "llama": 1.5, "": 0.1}
    message = event("forecasts", question_id="q", at=T0 + HOUR, forecasts=panel)

    (letter,) = partition.send(message)
    partition.pass_to(CLOSE + GRACE)

    assert reasons([letter]) == ["wrong-type"]
    assert letter.value == message
    assert dict(letter.headers)["__streams.errors.message"].decode() == (
        "3 of 6 forecasts cannot be used; 'icon' \"missing\": Expected `float | null`, got `str`; 'llama' 1.5: "
        "Expected `float` <= 1.0 (percent? convert at the source); '' 0.1: the expert's id has 0 bytes, not 1 to 256"
    )
    used = {"gfs": 0.2, "ecmwf": 0.4, "arpege": 0.3}
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2, **used}}
    assert (partition.count("event", "forecasts"), partition.count("dead-letter", "wrong-type")) == (1, 1)


def test_of_many_entries_that_cannot_be_used_the_first_are_named_and_the_rest_counted() -> None:
    partition = opened()
    panel: dict[str, Any] = {"good": 0.5, **{f"bad{number}": 2 for number in range(30)}}

    (letter,) = partition.send(event("forecasts", question_id="q", at=T0 + HOUR, forecasts=panel))

    message = dict(letter.headers)["__streams.errors.message"].decode()
    assert message.startswith("30 of 31 forecasts cannot be used; 'bad0' 2: ")
    assert message.endswith("; and 22 more")


def test_a_message_of_which_nothing_can_be_used_or_whose_question_is_elsewhere_is_told_of_once() -> None:
    one, other = Partition(stage(partition=0, partitions=2)), Partition(stage(partition=1, partitions=2), number=1)
    bad = event("forecasts", question_id="q", at=T0, forecasts={"a": "x", "b": []})
    mixed = event("forecasts", question_id="q", at=T0, forecasts={"a": "x", "b": 0.5})

    told = [reasons(partition.send(bad)) for partition in (one, other)]
    outputs = [partition.send(mixed) for partition in (one, other)]

    assert told == [["wrong-type"], ["wrong-type"]]
    assert sorted(output.topic for sent in outputs for output in sent) == [topics.DEAD_LETTERS, topics.FORECAST_EVENTS]


def test_a_dead_letter_of_some_entries_tells_nothing_of_who_is_forgotten() -> None:
    partition = opened()
    partition.control(forget("zoe"))
    panel: dict[str, Any] = {"gfs": 0.2, "icon": "missing", "zoe": 0.5}

    letters = partition.send(event("forecasts", question_id="q", at=T0 + HOUR, forecasts=panel))

    assert reasons(letters) == ["wrong-type", "forgotten"]
    assert all((letter.key, letter.value) == (None, None) for letter in letters)
    assert b"icon" not in dict(letters[0].headers)["__streams.errors.message"]


# --- fields that a type does not have ---


def test_fields_that_a_type_does_not_have_are_accepted_and_counted_by_name_and_feed() -> None:
    partition = opened()

    partition.send(
        resolution(1, T0 + 2 * HOUR, preliminary=True),
        forecast("cyd", 0.5, T0 + HOUR, "other", feed="sport", confidence=3, source={"a": [1]}),
        forecast("cyd", 0.5, T0 + HOUR, "other", confidence=3),
    )

    assert partition.stage._live["q"].resolved
    assert partition.effects.unknown_fields == {
        ("econ", "resolution.preliminary"): 1,
        ("sport", "forecast.confidence"): 2,
        ("sport", "forecast.source"): 1,
    }

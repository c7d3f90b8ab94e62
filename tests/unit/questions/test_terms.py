"""Which settings a question has."""

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import Round, Source
from stream_peer.log.sources import SOURCE_HEADER, source_header
from stream_peer.log.stage import Headers
from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    broadcast,
    forecast,
    opened,
    question,
    reasons,
    records,
    settings_event,
    signed,
    stage,
)


def test_settings_apply_from_their_place_on() -> None:
    partition = opened()

    partition.apply({"defaults": {"round_every": "1d"}})
    partition.restart(stage())
    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + DAY, CLOSE]


def test_a_question_keeps_the_terms_of_its_first_round() -> None:
    partition = opened()
    partition.apply({"defaults": {"round_every": "1d"}})
    partition.pass_to(T0 + DAY + GRACE)

    partition.now += 1
    partition.apply({"defaults": {"round_every": "5h", "grace": "1h", "max_open": "25h", "quorum": 1}})
    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + DAY, CLOSE]


@pytest.mark.case("C14")
def test_a_question_whose_feed_is_learnt_late_has_the_terms_of_its_feed_as_if_it_had_been_known_at_once() -> None:
    document = {"defaults": {"round_every": "1d"}, "feeds": {"econ": {"round_every": "18h"}}}
    late, at_once = Partition(stage()), Partition(stage())
    opening, named = question(opens_at=T0, closes_at=CLOSE, at=T0), question(feed="econ", at=T0)
    for partition, first in ((late, [opening]), (at_once, [opening, named])):
        partition.apply(document)
        partition.send(*first, forecast("ann", 0.7, T0))
        partition.pass_to(T0 + DAY + GRACE)
    under_default_terms = list(late.told.rounds)

    late.send(named)
    for partition in (late, at_once):
        partition.restart(stage())
        partition.pass_to(CLOSE + GRACE)

    assert under_default_terms == [("default", "q", T0 + DAY)]
    assert late.told.rounds == at_once.told.rounds
    assert list(at_once.told.forecasts()) == [T0 + 18 * HOUR, T0 + 36 * HOUR, CLOSE]


def test_settings_that_make_a_boundary_due_emit_it_at_once() -> None:
    partition = opened()
    partition.pass_to(T0 + DAY)

    caused = records(partition.apply({"feeds": {"econ": {"round_every": "12h"}}}))

    assert [record.boundary for record in caused if isinstance(record, Round)] == [T0 + 12 * HOUR]


def test_faulty_settings_are_refused_and_change_nothing() -> None:
    partition = opened()

    refused = partition.apply({"defaults": {"round_every": "often"}})

    assert reasons(refused) == ["settings-invalid"]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("trace", b"1")],
        [(SOURCE_HEADER, b"control-events")],
        [source_header(Source(topics.CONTROL_EVENTS, 0, 0, 17, 0))],
        signed(b"something else", Source(topics.CONTROL_EVENTS, 0, 0, 17, 0)),
        signed(settings_event({"defaults": {"round_every": "1d"}}), Source(topics.FORECAST_EVENTS, 3, 0, 17, 0)),
    ],
)
def test_settings_that_did_not_come_by_control_events_are_refused_and_change_nothing(headers: Headers) -> None:
    partition = opened()

    refused = partition.send(settings_event({"defaults": {"round_every": "1d"}}), headers=headers)
    partition.pass_to(CLOSE + GRACE)

    assert reasons(refused) == ["unexpected-type"]
    assert b"stream-peer settings apply" in dict(refused[0].headers)["__streams.errors.message"]
    assert list(partition.told.forecasts()) == [CLOSE]


def test_a_repeated_broadcast_of_settings_is_a_duplicate() -> None:
    partition = Partition()

    for _ in range(2):
        partition.send(settings_event({}), source=broadcast(7))

    assert partition.count("event", "settings") == partition.count("duplicate") == 1

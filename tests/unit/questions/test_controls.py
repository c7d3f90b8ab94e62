"""What the question stage does when an expert asks to be forgotten, or a feed is deleted."""

from typing import Any

import pytest

from stream_peer.errors import ForeignSecretError
from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, Round, RoundWithdrawn, Source
from stream_peer.log.sources import source_header
from stream_peer.log.stage import Headers, Output
from tests.unit.questions.question_log import (
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    book,
    broadcast,
    delete,
    event,
    forecast,
    forget,
    question,
    records,
    resolution,
    stage,
)

CLOSE = T0 + 2 * DAY


def opened(**defaults: Any) -> Partition:
    """A question of the feed econ, open for two days, with forecasts of ann, bob and the one who is to be forgotten."""
    partition = Partition(**defaults)
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    for expert, probability in (("ann", 0.7), ("bob", 0.2), ("zoe-of-york", 0.9)):
        partition.send(forecast(expert, probability, T0 + HOUR), now=T0 + HOUR)
    return partition


def refusals(outputs: list[Output]) -> list[str]:
    return [dict(output.headers)["stream-peer-reason"].decode() for output in outputs]


def all_state(partition: Partition) -> bytes:
    snapshot = partition.stage.snapshot()
    for key, value in snapshot.entries.items():
        partition.stored.pop(key, None)
        partition.stored.update({} if value is None else {key: value})
    return snapshot.head + b"".join(partition.stored) + b"".join(partition.stored.values())


# --- forget ---


def test_a_forgotten_expert_leaves_state_and_later_rounds_and_no_round_is_emitted_for_it() -> None:
    partition = opened(round_every="1d")
    partition.pass_to(T0 + DAY + GRACE)
    held_before = b"zoe" in all_state(partition)

    silent = partition.control(forget("zoe-of-york"))
    forgotten = all_state(partition)
    partition.restart(stage(book(round_every="1d")))
    later = partition.pass_to(CLOSE + GRACE)

    assert held_before
    assert silent == []
    assert b"zoe" not in forgotten
    assert [(record.boundary, record.experts) for record in later if isinstance(record, Round)] == [
        (CLOSE, ["ann", "bob"])
    ]


def test_what_was_emitted_counts_as_emitted_without_the_forgotten() -> None:
    partition = opened()
    partition.pass_to(CLOSE + GRACE)
    partition.control(forget("zoe-of-york"))
    partition.restart(stage())

    unchanged = partition.send(question(closes_at=CLOSE, at=CLOSE))
    changed = records(partition.send(question(weight=0.5, at=CLOSE)))

    assert unchanged == []
    assert [record.experts for record in changed if isinstance(record, Round)] == [["ann", "bob"]]


def test_a_boundary_at_which_nobody_else_stands_is_let_go_of_without_a_record() -> None:
    partition = Partition(round_every="1d")
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), forecast("zoe", 0.9, T0))
    partition.pass_to(T0 + DAY + GRACE)

    silent = partition.control(forget("zoe"))
    moved = records(partition.send(question(opens_at=T0 + HOUR, at=T0 + DAY), forecast("ann", 0.5, T0 + DAY)))
    closed = partition.pass_to(CLOSE + GRACE)

    assert silent == []
    assert moved == []
    assert [(type(record), record.boundary) for record in closed if isinstance(record, Round)] == [
        (Round, T0 + DAY + HOUR),
        (Round, CLOSE),
    ]


def test_a_quorum_that_stood_with_the_forgotten_stands_where_the_others_make_it() -> None:
    partition = opened(quorum=3, round_every="30d")
    partition.send(forecast("cyd", 0.5, T0 + 5 * HOUR), now=T0 + 5 * HOUR)
    partition.pass_to(T0 + DAY)

    moved = records(partition.control(forget("zoe-of-york")))

    assert [(type(record), record.boundary) for record in moved if isinstance(record, Round | RoundWithdrawn)] == [
        (RoundWithdrawn, T0 + HOUR),
        (Round, T0 + 5 * HOUR),
    ]


def test_the_opening_that_the_forgotten_gave_stays() -> None:
    partition = Partition(round_every="1d")
    partition.send(forecast("zoe", 0.9, T0, feed="econ"), forecast("ann", 0.7, T0 + HOUR, feed="econ"))

    partition.control(forget("zoe"))
    partition.restart(stage(book(round_every="1d")))
    partition.pass_to(T0 + DAY + GRACE)

    assert partition.told.forecasts() == {T0 + DAY: {"ann": 0.7}}


def test_forecasts_of_the_forgotten_are_refused_without_payload_key_and_headers() -> None:
    partition = opened()
    partition.control(forget("zoe-of-york"))
    partition.restart(stage())

    headers = [("trace", b"zoe-of-york")]
    refused = partition.send(forecast("zoe-of-york", 0.9, T0 + HOUR, feed="sport"), headers=headers)
    of_the_past = partition.send(forecast("zoe-of-york", 0.9, 1_000_000))
    new = partition.send(forecast("zoe-of-york", 0.9, T0 + HOUR, "another", feed="econ"))

    assert refusals([*refused, *of_the_past, *new]) == ["forgotten"] * 3
    for letter in (*refused, *of_the_past, *new):
        assert letter.key is None
        assert letter.value is None
        assert b"zoe" not in b"".join(value for _, value in letter.headers)
    assert "another" not in partition.stage._live


def test_elsewhere_the_id_is_welcome() -> None:
    partition = opened()
    partition.control(forget("zoe-of-york"))

    partition.send(forecast("zoe-of-york", 0.9, T0 + HOUR, "other", feed="sport"))

    assert "zoe-of-york" in partition.stage._live["other"].history.experts


def test_in_a_message_of_many_the_others_count() -> None:
    partition = opened()
    partition.control(forget("zoe-of-york"))

    many = event("forecasts", question_id="q", at=T0 + 2 * HOUR, forecasts={"cyd": 0.4, "zoe-of-york": 0.9})
    refused = partition.send(many, now=T0 + 2 * HOUR)
    alone = event("forecasts", question_id="q", at=T0 + 2 * HOUR, forecasts={"zoe-of-york": 0.9})
    refused += partition.send(alone, now=T0 + 2 * HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert refusals(refused) == ["forgotten", "forgotten"]
    assert [letter.value for letter in refused] == [None, None]
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2, "cyd": 0.4}}
    assert partition.count("event", "forecasts") == 1


def test_a_message_of_many_that_is_refused_for_another_reason_does_not_tell_the_forgotten_either() -> None:
    partition = opened(backdate_limit="1h", late_forecasts="refuse")
    partition.control(forget("zoe-of-york"))

    many = event("forecasts", question_id="q", at=T0, forecasts={"cyd": 0.4, "zoe-of-york": 0.9})
    refused = partition.send(many, now=T0 + DAY)

    assert refusals(refused) == ["forgotten", "late"]
    assert [(letter.key, letter.value) for letter in refused] == [(None, None)] * 2


@pytest.mark.parametrize("how", ["question", "forecast", "resolution"])
def test_a_question_that_comes_to_the_feed_afterwards_leaves_the_forgotten_behind(how: str) -> None:
    partition = Partition()
    partition.control(forget("zoe-of-york"))
    partition.send(question(opens_at=T0, closes_at=CLOSE))
    partition.send(forecast("ann", 0.7, T0), forecast("zoe-of-york", 0.9, T0))
    partition.pass_to(CLOSE + GRACE)
    before = partition.told.forecasts()

    moving = {
        "question": question(feed="econ", at=CLOSE),
        "forecast": forecast("bob", 0.1, CLOSE + HOUR, feed="econ"),
        "resolution": resolution(1, CLOSE, feed="econ"),
    }
    partition.send(moving[how])

    assert before == {CLOSE: {"ann": 0.7, "zoe-of-york": 0.9}}
    assert partition.told.rounds == {("econ", "q", CLOSE): (True, 1.0, {"ann": 0.7})}
    assert b"zoe" not in all_state(partition)


def test_a_chunked_question_is_written_without_the_forgotten_in_two_snapshots_over_a_restart() -> None:
    partition = Partition()
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    for start in range(0, 8_000, 4_000):
        many = {f"expert-{number:04d}-{'x' * 60}": 0.25 for number in range(start, start + 4_000)}
        partition.send(event("forecasts", question_id="q", at=T0, forecasts=many))
    whole = partition.stage.snapshot().entries

    partition.control(forget(f"expert-0007-{'x' * 60}"))
    partition.restart(stage())
    first = dict(partition.stored)
    again = partition.stage.snapshot().entries
    afterwards = partition.stage.snapshot().entries

    assert len(whole) > 2
    assert set(again) == set(whole) == set(first)
    assert all(b"expert-0007" not in (value or b"") for value in again.values())
    assert afterwards == {}


def test_a_question_is_written_twice_so_that_its_record_holds_no_version_with_the_forgotten() -> None:
    partition = opened()
    partition.stage.snapshot()

    partition.control(forget("zoe-of-york"))
    written = [set(partition.stage.snapshot().entries) for _ in range(3)]

    assert written == [{b"q/q"}, {b"q/q"}, set()]


def test_a_repeated_control_is_a_duplicate() -> None:
    partition = opened()

    for _ in range(2):
        partition.send(forget("zoe-of-york"), source=broadcast(7))
        partition.send(delete("sport"), source=broadcast(8))

    assert partition.count("event", "expert") == partition.count("event", "feed") == 1
    assert partition.count("duplicate") == 2


@pytest.mark.parametrize(
    "value",
    [forget("zoe-of-york"), delete(), event("expert", feed="econ", expert_id="ann", at=T0, rename="anna")],
)
@pytest.mark.parametrize("headers", [[], [source_header(Source(topics.CONTROL_EVENTS, 3, 0, 17, 0))]])
def test_controls_that_did_not_come_by_control_events_are_refused_and_change_nothing(
    value: bytes, headers: Headers
) -> None:
    partition = opened()

    refused = partition.send(value, headers=headers)
    partition.pass_to(CLOSE + GRACE)

    assert refusals(refused) == ["unexpected-type"]
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2, "zoe-of-york": 0.9}}


@pytest.mark.parametrize(
    "value",
    [event("expert", feed="econ", expert_id="ann", at=T0, excluded=True), event("feed", feed="econ", reset=True)],
)
def test_controls_that_are_for_the_feed_alone_are_refused(value: bytes) -> None:
    assert refusals(opened().control(value)) == ["unexpected-type"]


def test_state_with_forgotten_ids_is_not_taken_up_under_another_secret() -> None:
    partition = opened()
    unbound = partition.stage.snapshot()
    partition.control(forget("zoe-of-york"))
    bound = partition.stage.snapshot()

    stage(secret=b"another").load(unbound.head, {})
    with pytest.raises(ForeignSecretError):
        stage(secret=b"another").load(bound.head, {})


# --- delete ---


def test_a_deleted_feed_leaves_no_question_no_stub_and_no_record() -> None:
    partition = opened()
    partition.send(question("old", feed="econ", opens_at=T0, closes_at=T0 + HOUR), forecast("ann", 0.5, T0, "old"))
    partition.send(question("kept", feed="sport", opens_at=T0, closes_at=CLOSE), forecast("ann", 0.5, T0, "kept"))
    partition.pass_to(T0 + 2 * HOUR)
    partition.restart(stage())

    silent = partition.control(delete())
    partition.restart(stage())
    later = partition.pass_to(CLOSE + GRACE)

    assert silent == []
    assert list(partition.stored) == [b"q/kept"]
    assert [(record.feed, record.question_id) for record in later if isinstance(record, Round)] == [("sport", "kept")]


def test_stubs_of_a_deleted_feed_are_gone() -> None:
    partition = opened(history_for="1h")
    partition.send(question("kept", feed="sport", opens_at=T0, closes_at=CLOSE), forecast("ann", 0.5, T0, "kept"))
    partition.pass_to(CLOSE + DAY)
    partition.restart(stage(book(history_for="1h")))
    were = sorted(partition.stage._store.stubs)

    partition.control(delete())
    told = partition.send(resolution(1, CLOSE), resolution(1, CLOSE, "kept"))
    partition.restart(stage(book(history_for="1h")))

    assert were == ["kept", "q"]
    outcomes = [(record.feed, record.question_id) for record in records(told) if isinstance(record, OutcomeRevealed)]
    assert outcomes == [("sport", "kept")]
    assert list(partition.stage._store.stubs) == ["kept"]


def test_who_was_forgotten_in_a_deleted_feed_stays_refused() -> None:
    partition = opened()
    partition.control(forget("zoe-of-york"))
    partition.control(delete())
    partition.restart(stage())

    refused = partition.send(forecast("zoe-of-york", 0.5, T0 + HOUR, feed="econ"))
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), forecast("ann", 0.5, T0 + HOUR))
    partition.pass_to(CLOSE + GRACE)

    assert refusals(refused) == ["forgotten"]
    assert partition.told.rounds == {("econ", "q", CLOSE): (True, 1.0, {"ann": 0.5})}


def test_records_of_a_feed_that_begins_again_say_when_it_was_deleted() -> None:
    partition = opened()
    partition.pass_to(CLOSE + GRACE)
    assert {record.deleted_at for record in partition.records} == {0}
    partition.control(event("feed", feed="econ", delete=True, since=CLOSE))
    partition.restart(stage())
    partition.send(question(question_id="new", feed="econ", opens_at=T0, closes_at=CLOSE))
    before = len(partition.records)
    partition.send(forecast("ann", 0.7, T0 + HOUR, question_id="new"))
    partition.pass_to(CLOSE + 2 * GRACE)

    found = partition.records[before:]
    assert {(record.feed, record.deleted_at) for record in found} == {("econ", CLOSE)}

"""Questions of an exported feed taken up by another partition, which goes on as the first does."""

from collections.abc import Iterable, Sequence

import msgspec
import pytest

from stream_peer.events.feed_log import AnyFeedLogRecord, OutcomeRevealed, Round, RoundWithdrawn, Source
from stream_peer.events.incoming import FeedImport
from stream_peer.log.ids import digest_of_id
from stream_peer.log.stage import Output
from stream_peer.tools.transfer.feed_export import StageState, questions_of
from stream_peer.tools.transfer.feed_file import Header, Line
from stream_peer.tools.transfer.feed_import import question_events
from stream_peer.tools.transfer.reshape import Pseudonyms, all_with_pseudonyms, renamed
from tests.unit.questions.question_log import (
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    broadcast,
    event,
    forecast,
    question,
    records,
    resolution,
    stage,
)

NAMES = Pseudonyms(b"a key of some length", questions=True)
LATER = T0 + 9 * DAY


def lived() -> Partition:
    """A partition with questions of every kind, of one of which only a stub is left."""
    there = Partition(history_for="1d", round_every="2d", ledger_for="50y")
    there.send(
        question("old", at=T0, feed="econ", closes_at=T0 + DAY),
        *(forecast(f"e{n}", 0.1 * n, T0 + HOUR, "old") for n in range(4)),
        question("other", at=T0, feed="sport", closes_at=T0 + 8 * DAY),
        forecast("e1", 0.5, T0 + HOUR, "other"),
    )
    there.send(tick_at(T0 + 6 * DAY), now=T0 + 6 * DAY)
    there.send(
        question("open", at=T0 + 6 * DAY, feed="econ", closes_at=T0 + 20 * DAY, weight=0.5),
        *(forecast(f"e{n}", 0.2 * n, T0 + 6 * DAY + HOUR, "open") for n in range(5)),
        forecast("e9", 0.9, T0 + 6 * DAY, "early", feed="econ"),
    )
    there.send(tick_at(LATER), now=LATER)
    return there


def tick_at(now: int) -> bytes:
    return event("tick", now=now)


def header(feed: str = "econ", **fields: object) -> Header:
    made = Header(
        product="0.0",
        feed=feed,
        made_at="2026-03-10T12:00:00Z",
        revision=1,
        forecasts={0: 9},
        meaning={},
        settings={},
        settings_hash="",
        secret="",
        forgotten=[],
        question_schema=1,
    )
    return msgspec.structs.replace(made, **fields)


def lines_of(there: Partition, feed: str = "econ", **fields: object) -> list[Line]:
    snapshot = there.stage.snapshot()
    stored = {key: value for key, value in {**there.stored, **snapshot.entries}.items() if value is not None}
    found = questions_of(feed, StageState(0, there.offset - 1, snapshot.head, stored))
    return [header(feed, **fields), *found.lines]


def import_into(here: Partition, lines: Sequence[Line], *, offset: int = 100) -> list[AnyFeedLogRecord]:
    """What the questions caused when they were taken up."""
    return records(sent(here, question_events(lines, "moved", 1), offset))


def sent(here: Partition, events: Iterable[FeedImport], offset: int = 100) -> list[Output]:
    outputs: list[Output] = []
    for number, part in enumerate(events):
        outputs += here.send(msgspec.json.encode(part), source=broadcast(offset + number))
    return outputs


def empty(now: int = LATER) -> Partition:
    return Partition(history_for="1d", round_every="2d", ledger_for="50y", now=now)


def going_on() -> list[tuple[bytes, int]]:
    """Events that need to know what was said before."""
    return [
        (forecast("e1", 0.9, LATER + HOUR, "open"), LATER + HOUR),
        (forecast("e7", 0.3, T0 + 8 * DAY, "open"), LATER + 2 * HOUR),
        (resolution(0, LATER + 3 * HOUR, "old"), LATER + 3 * HOUR),
        (forecast("e2", 0.4, LATER + 3 * HOUR, "early", feed="econ"), LATER + 3 * HOUR),
        (question("open", at=LATER + 4 * HOUR, closes_at=T0 + 7 * DAY), LATER + 4 * HOUR),
        (question("open", at=LATER + 5 * HOUR, closes_at=T0 + 20 * DAY), LATER + 5 * HOUR),
        (tick_at(LATER + 4 * DAY), LATER + 4 * DAY),
        (resolution(1, LATER + 5 * DAY, "open"), LATER + 5 * DAY),
        (resolution("open", LATER + 6 * DAY, "old"), LATER + 6 * DAY),
        (tick_at(LATER + 30 * DAY), LATER + 30 * DAY),
    ]


def after(partition: Partition, feed: str = "econ") -> list[AnyFeedLogRecord]:
    """What going on causes in a feed, without sources."""
    caused: list[AnyFeedLogRecord] = []
    for value, now in going_on():
        caused += records(partition.send(value, now=now))
    nowhere = Source("t", 0, 0, 0, 0)
    return [msgspec.structs.replace(record, src=nowhere) for record in caused if record.feed == feed]


def test_imported_questions_go_on_as_where_they_were_exported() -> None:
    there, here = lived(), empty()

    at_once = import_into(here, lines_of(there))

    assert at_once == []
    assert after(here) == after(there)
    assert {type(record) for record in after(lived())} == {Round, RoundWithdrawn, OutcomeRevealed}


def test_only_the_questions_of_the_feed_are_exported() -> None:
    names = [line.question_id for line in lines_of(lived())[1:]]  # type: ignore[union-attr] # all are questions

    assert names == ["early", "old", "open"]


def test_an_imported_question_survives_a_restart_between_any_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.log.transfers.PART_BYTES", 100)
    there, here = lived(), empty()
    events = list(question_events(lines_of(there), "moved", 1))
    assert len(events) > 3

    for number, part in enumerate(events):
        sent(here, [part], 100 + number)
        here.restart(empty().stage)

    assert here.count("dead-letter", "import-refused") == 0
    assert not [key for key in here.stored if key.startswith(b"i")]
    assert after(here) == after(there)


def test_a_question_too_large_for_one_entry_is_moved_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.questions.state.WHOLE_UP_TO", 60)
    monkeypatch.setattr("stream_peer.questions.state._CHUNK_AIM", 40)
    there, here = lived(), empty()
    there.restart(empty().stage)
    assert [key for key in there.stored if key.startswith(b"c/")]

    assert import_into(here, lines_of(there)) == []
    here.restart(empty().stage)

    assert after(here) == after(there)


def test_events_that_came_before_the_file_are_put_together_with_it() -> None:
    there, here, late = lived(), empty(), forecast("e3", 0.77, LATER - HOUR, "open", feed="econ")
    here.send(late)
    here.restart(empty().stage)

    import_into(here, lines_of(there))
    there.send(late)

    assert after(here) == after(there)


def test_a_stub_wins_over_forecasts_that_came_too_late() -> None:
    there, here = lived(), empty()
    here.send(forecast("e3", 0.77, LATER - HOUR, "old", feed="econ"))

    import_into(here, lines_of(there))

    assert after(here) == after(there)


def test_the_same_file_imported_twice_changes_nothing() -> None:
    there, here = lived(), empty()
    import_into(here, lines_of(there))

    assert import_into(here, lines_of(there), offset=900) == []
    assert after(here) == after(there)


def test_a_feed_under_another_name_goes_on_under_it() -> None:
    there, here = lived(), empty()

    caused = import_into(here, [renamed(line, "econ", "trial") for line in lines_of(there)])
    as_trial = [(value.replace(b'"econ"', b'"trial"'), now) for value, now in going_on()]
    told = [record for value, now in as_trial for record in records(here.send(value, now=now))]

    assert caused == []
    expected = [msgspec.structs.replace(record, feed="trial") for record in after(there)]
    nowhere = Source("t", 0, 0, 0, 0)
    assert [msgspec.structs.replace(record, src=nowhere) for record in told] == expected


def test_pseudonyms_stand_everywhere_in_place_of_ids_and_nothing_is_emitted_again() -> None:
    there, here = lived(), empty()

    lines = list(all_with_pseudonyms(lines_of(there), NAMES))
    caused = import_into(here, lines)
    here.send(
        forecast("new", 0.3, LATER + HOUR, NAMES.question("open"), feed="econ"),
        tick_at(LATER + 4 * DAY),
        now=LATER + 4 * DAY,
    )

    assert caused == []
    told = here.told.forecasts(NAMES.question("open"))
    assert set(told[max(told)]) == {"new", *(NAMES.expert(f"e{n}") for n in range(5))}
    here.restart(empty().stage)
    assert not [value for value in here.stored.values() if b"e3" in value and NAMES.expert("e3").encode() not in value]


@pytest.mark.case("C22")
def test_who_was_forgotten_here_is_in_no_imported_question_and_who_was_there_is_refused() -> None:
    there, here = lived(), empty()
    control = event("expert", feed="econ", expert_id="e4", at=LATER, forget=True)
    here.send(control, source=broadcast(1))

    caused = import_into(here, lines_of(there, forgotten=[digest_of_id(b"secret", "econ", "zed")]))
    here.send(forecast("zed", 0.3, LATER, "open"), forecast("e4", 0.3, LATER, "open"))
    here.restart(empty().stage)

    assert caused == []
    assert here.count("dead-letter", "forgotten") == 2
    assert not [value for value in here.stored.values() if b"e4" in value]


def test_questions_for_another_partition_or_from_anybody_else_are_refused() -> None:
    events = list(question_events(lines_of(lived()), "moved", 1))
    here = Partition(stage(partition=1, partitions=2), number=1)

    sent(here, events)
    here.send(*(msgspec.json.encode(part) for part in events))

    assert here.count("dead-letter", "import-refused") == len(events)
    assert here.count("dead-letter", "unexpected-type") == len(events)


def test_a_clock_that_is_ahead_of_time_takes_back_what_it_closed() -> None:
    """A replay closes what its files know of, even in the future; here it is not closed yet."""
    there = empty(T0)
    there.send(question("q", at=T0, feed="econ", closes_at=T0 + 3 * DAY), forecast("ann", 0.3, T0, "q"))
    there.send(tick_at(T0 + 4 * DAY), now=T0 + 4 * DAY)
    here = empty(T0 + 2 * DAY + 2 * GRACE)

    caused = import_into(here, lines_of(there))

    assert [(type(record), record.boundary) for record in caused if not isinstance(record, OutcomeRevealed)] == [  # type: ignore[union-attr] # rounds
        (RoundWithdrawn, T0 + 3 * DAY)
    ]

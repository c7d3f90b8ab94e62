import json

import pytest

from stream_peer.adapters.file_events import (
    FileEvent,
    Revealed,
    file_event,
    in_feed,
    last_moment,
    merged,
    reveal,
    shuffle,
    timed,
)
from stream_peer.adapters.jsonl import Line
from tests.unit.adapters.file_lines import lines, season
from tests.unit.engine.question_log import DAY, HOUR, T0, forecast, question, resolution

HORIZON = 3650 * DAY


def events(*values: bytes) -> list[FileEvent]:
    return [file_event(line) for line in lines(values)]


def test_an_event_is_placed_by_what_it_states_and_a_question_else_by_its_opening() -> None:
    one, two, three = events(
        forecast("ann", 0.5, T0), question(opens_at=T0 + HOUR, closes_at=T0 + DAY), question(at=T0, opens_at=T0 + HOUR)
    )

    assert (one.kind, one.question_id, one.at, one.end) == ("forecast", "q", T0, T0)
    assert (two.at, two.end) == (T0 + HOUR, T0 + DAY)
    assert three.at == T0


def test_a_line_that_cannot_be_understood_is_kept_as_it_is() -> None:
    for payload in (b"{", b"\xff", b'{"type":"forecast","at":12}', b"[]"):
        assert file_event(Line("f:1", payload)) == FileEvent("f:1", payload)


def test_the_record_time_is_the_largest_moment_so_far_and_the_far_future_moves_nothing() -> None:
    moments = [T0 + DAY, T0, T0 + 40 * 365 * DAY, T0 + 2 * DAY]
    stated = events(b"{", *(forecast("ann", 0.5, at) for at in moments))

    assert [one.time for one in timed(stated, HORIZON)] == [T0 + DAY] * 4 + [T0 + 2 * DAY]


def test_files_are_merged_by_time() -> None:
    early = lines([forecast("ann", 0.1, T0), forecast("ann", 0.2, T0 + 2 * DAY)], "early")
    late = lines([forecast("ann", 0.3, T0 + DAY), b"{", forecast("ann", 0.4, T0 + 3 * DAY)], "late")

    order = [event.place for event in merged([late, early], HORIZON)]

    assert order == ["early:1", "late:1", "late:2", "early:2", "late:3"]


def test_the_last_moment_is_the_last_that_any_event_credibly_names() -> None:
    known = events(question(opens_at=T0, closes_at=T0 + 9 * DAY), forecast("ann", 0.5, T0 + DAY))
    wild = events(question("r", opens_at=T0, closes_at=T0 + 40 * 365 * DAY))

    assert last_moment(known, HORIZON) == T0 + 9 * DAY
    assert last_moment([*known, *wild], HORIZON) == T0 + 9 * DAY
    assert last_moment([], HORIZON) == 0


def test_all_events_can_be_put_into_one_feed() -> None:
    changed = in_feed(events(question(feed="econ"), forecast("ann", 0.5, T0), b"{"), "all")

    assert [event.payload for event in changed[2:]] == [b"{"]
    assert [json.loads(event.payload)["feed"] for event in changed[:2]] == ["all", "all"]


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_share_of_the_outcomes_is_told_when_the_question_closes(seed: int | None) -> None:
    known = events(*season(questions=60))

    few, many = reveal(known, Revealed(0.2, seed)), reveal(known, Revealed(0.6, seed))

    told = {event.question_id: event for event in few if event.kind == "resolution"}
    more = {event.question_id for event in many if event.kind == "resolution"}
    assert 3 < len(told) < 22
    assert set(told) < more
    closes = {event.question_id: event.closes_at for event in known if event.kind == "question"}
    assert all(event.at == closes[name] for name, event in told.items())
    assert [one.event for one in timed(few, HORIZON)] == few
    assert [event.at for event in few] == sorted(event.at or 0 for event in few)
    assert [event for event in few if event.kind != "resolution"] == [
        event for event in known if event.kind != "resolution"
    ]


def test_each_seed_draws_other_questions() -> None:
    known = events(*season(questions=60))

    told = [reveal(known, Revealed(0.5, seed)) for seed in (None, 0, 1, 0)]

    drawn = [[event.question_id for event in one if event.kind == "resolution"] for one in told]
    assert drawn[1] == drawn[3]
    assert len({tuple(one) for one in drawn}) == 3


def test_of_several_resolutions_the_last_is_told_and_without_a_close_when_it_says() -> None:
    known = events(resolution(0, T0 + DAY, closed_at=T0 + HOUR), resolution(1, T0 + 2 * DAY, closed_at=T0 + HOUR))

    (told,) = reveal(known, Revealed(1.0))

    assert json.loads(told.payload)["outcome"] == 1
    assert told.at == T0 + HOUR
    assert reveal(known, Revealed(0.0)) == []


def test_a_shuffle_keeps_the_order_within_each_question() -> None:
    known = events(*season(questions=12))

    one, same, other = shuffle(known, 1), shuffle(known, 1), shuffle(known, 2)

    assert one == same != other
    assert sorted(one) != one
    for name in {event.question_id for event in known}:
        assert [e for e in one if e.question_id == name] == [e for e in known if e.question_id == name]


def test_events_that_state_no_moment_get_the_first_that_is_stated() -> None:
    timeless = question(closes_at=T0 + 9 * DAY)

    assert [one.time for one in timed(events(timeless, forecast("ann", 0.5, T0 + DAY)), HORIZON)] == [T0 + DAY] * 2
    assert [one.time for one in timed(events(timeless, b"{"), HORIZON)] == [0, 0]

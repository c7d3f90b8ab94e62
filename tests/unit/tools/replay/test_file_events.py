import json
import random

import pytest

from stream_peer.tools.replay.file_events import (
    FileEvent,
    FileOrder,
    RevealedShare,
    file_event,
    in_feed,
    in_time_order,
    last_event_time,
    merged_by_time,
    reveal,
    shuffle,
    timed,
)
from stream_peer.tools.replay.files import FileLine
from tests.unit.questions.question_log import DAY, HOUR, T0, forecast, question, resolution
from tests.unit.tools.replay.file_lines import lines, season

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
        assert file_event(FileLine("f:1", payload)) == FileEvent("f:1", payload)


def test_the_record_time_is_the_largest_moment_so_far_and_the_far_future_moves_nothing() -> None:
    moments = [T0 + DAY, T0, T0 + 40 * 365 * DAY, T0 + 2 * DAY]
    stated = events(b"{", *(forecast("ann", 0.5, at) for at in moments))

    assert [one.time for one in timed(stated, HORIZON)] == [T0 + DAY] * 4 + [T0 + 2 * DAY]


def test_files_are_merged_by_time() -> None:
    early = lines([forecast("ann", 0.1, T0), forecast("ann", 0.2, T0 + 2 * DAY)], "early")
    late = lines([forecast("ann", 0.3, T0 + DAY), b"{", forecast("ann", 0.4, T0 + 3 * DAY)], "late")

    events, _ = merged_by_time([late, early], HORIZON)

    assert [event.place for event in events] == ["early:1", "late:1", "late:2", "early:2", "late:3"]


def places(values: list[bytes]) -> tuple[list[int], FileOrder]:
    """The numbers of the lines in the order in which they are taken, and how the file stood."""
    ordered, order = in_time_order(events(*values), HORIZON)
    return [int(event.place.rpartition(":")[2]) for event in ordered], order


def test_a_file_in_order_stays_as_it_is_ties_included() -> None:
    values = [resolution(1, T0, "r"), forecast("ann", 0.5, T0), question(at=T0), b"{", forecast("bob", 0.5, T0 + HOUR)]

    assert places(values) == ([1, 2, 3, 4, 5], FileOrder())


def test_a_file_with_a_few_late_lines_is_a_record_of_what_came_when_and_stays_as_it_is() -> None:
    values = [*(forecast("ann", 0.5, T0 + n * HOUR, "q") for n in range(6)), resolution(1, T0 + 6 * HOUR, "q")]
    values += [forecast("bob", 0.5, T0 + HOUR, "q"), forecast("bob", 0.5, T0 + 2 * HOUR, "other")]

    assert places(values) == (list(range(1, 10)), FileOrder(0, ("f:8",)))


def test_questions_that_tell_only_when_they_open_make_nothing_late() -> None:
    values = [question(opens_at=T0 + DAY), *(forecast("ann", 0.5, T0 + n * HOUR, "q") for n in range(4))]

    assert places(values) == ([1, 2, 3, 4, 5], FileOrder())


def test_outcomes_below_all_forecasts_and_questions_go_to_their_times() -> None:
    forecasts = [forecast("ann", 0.5, T0 + n * HOUR, "q") for n in range(4)]
    values = [*forecasts, resolution(1, T0 + HOUR, "q"), b"{", question("q", at=T0)]

    assert places(values) == ([7, 1, 2, 5, 6, 3, 4], FileOrder(2))


def test_forecasts_below_all_outcomes_come_when_they_say_and_are_named() -> None:
    values = [resolution(1, T0 + DAY, "q"), *(forecast("ann", 0.5, T0 + n * HOUR, "q") for n in range(3))]

    assert places(values) == ([2, 3, 4, 1], FileOrder(3, ("f:2", "f:3", "f:4")))


@pytest.mark.parametrize("by", ["expert_id", "question_id", "type"])
def test_a_file_sorted_by_something_else_is_sorted_by_time(by: str) -> None:
    values = sorted(season(questions=8), key=lambda value: str(json.loads(value).get(by)))

    ordered, order = in_time_order(events(*values), HORIZON)

    assert order.moved
    assert [event.at for event in ordered] == sorted(event.at or 0 for event in ordered)


@pytest.mark.parametrize("seed", range(5))
def test_a_file_whose_order_is_not_that_of_time_is_sorted_with_outcomes_behind_forecasts_of_their_moment(
    seed: int,
) -> None:
    values = season(questions=8)
    shuffled = random.Random(seed).sample(values, len(values))

    ordered, order = in_time_order(events(*shuffled), HORIZON)

    assert order.moved
    keys = [(event.at or 0, ("question", "forecast", "resolution").index(event.kind)) for event in ordered]
    assert keys == sorted(keys)
    assert order.behind


def test_no_line_passes_the_end_of_a_feed() -> None:
    half = [forecast("ann", 0.5, T0 + n * HOUR, "q") for n in (2, 1, 0)]

    assert places([*half, b'{"type":"feed","feed":"econ","delete":true}', *half])[0] == [3, 2, 1, 4, 7, 6, 5]


def test_a_time_of_another_age_moves_no_line() -> None:
    values = [forecast("ann", 0.5, T0 + n * HOUR, "q") for n in (4, 0, 1, 2, 3)]
    wild = [forecast("ann", 0.5, -200 * DAY), *values[:2], forecast("ann", 0.5, T0 + 40 * 365 * DAY), *values[2:]]

    ordered, order = in_time_order(events(*wild), HORIZON)

    assert [one.place for one in ordered] == ["f:1", "f:3", "f:4", "f:5", "f:6", "f:7", "f:2"]
    assert order == FileOrder(4)
    assert [one.time for one in timed(ordered, HORIZON)] == [T0 + n * HOUR for n in (0, 0, 0, 1, 2, 3, 4)]


def test_the_last_moment_is_the_last_that_any_event_credibly_names() -> None:
    known = events(question(opens_at=T0, closes_at=T0 + 9 * DAY), forecast("ann", 0.5, T0 + DAY))
    wild = events(question("r", opens_at=T0, closes_at=T0 + 40 * 365 * DAY))

    assert last_event_time(known, HORIZON) == T0 + 9 * DAY
    assert last_event_time([*known, *wild], HORIZON) == T0 + 9 * DAY
    assert last_event_time([], HORIZON) == 0


def test_all_events_can_be_put_into_one_feed() -> None:
    changed = in_feed(events(question(feed="econ"), forecast("ann", 0.5, T0), b"{"), "all")

    assert [event.payload for event in changed[2:]] == [b"{"]
    assert [json.loads(event.payload)["feed"] for event in changed[:2]] == ["all", "all"]


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_share_of_the_outcomes_is_told_when_the_question_closes(seed: int | None) -> None:
    known = events(*season(questions=60))

    few, many = reveal(known, RevealedShare(0.2, seed)), reveal(known, RevealedShare(0.6, seed))

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

    told = [reveal(known, RevealedShare(0.5, seed)) for seed in (None, 0, 1, 0)]

    drawn = [[event.question_id for event in one if event.kind == "resolution"] for one in told]
    assert drawn[1] == drawn[3]
    assert len({tuple(one) for one in drawn}) == 3


def test_of_several_resolutions_the_last_is_told_and_without_a_close_when_it_says() -> None:
    known = events(resolution(0, T0 + DAY, closed_at=T0 + HOUR), resolution(1, T0 + 2 * DAY, closed_at=T0 + HOUR))

    (told,) = reveal(known, RevealedShare(1.0))

    assert json.loads(told.payload)["outcome"] == 1
    assert told.at == T0 + HOUR
    assert reveal(known, RevealedShare(0.0)) == []


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

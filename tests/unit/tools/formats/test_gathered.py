"""Events of an import stand in order of time, whatever the order of the files was."""

import msgspec
import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import MAX_EVENT_BYTES
from stream_peer.tools.formats.gathered import MOST_AT_ONCE, Gathered

DAY = 86_400_000
START = 20_000 * DAY


def events(made: Gathered) -> list[tuple[str, int]]:
    found = []
    for event in made.timed():
        kind = msgspec.json.decode(event.payload)["type"]
        found.append((kind, (event.at - START) // DAY))
    return found


def test_of_one_moment_a_question_comes_first_and_an_outcome_last() -> None:
    with Gathered("econ") as made:
        made.outcome("q", "yes", resolved=START)
        made.forecast("q", "b", 0.5, START)
        made.forecast("q", "a", 0.5, START - DAY)
        made.question("q", opens=START, closes=START + DAY)

        assert events(made) == [("question", -1), ("forecast", -1), ("forecast", 0), ("resolution", 0)]


def test_forecasts_of_one_moment_are_one_event_of_which_the_last_of_an_expert_counts() -> None:
    with Gathered("econ") as made:
        for probability in (0.1, None, 0.2):
            made.forecast("q", "a", probability, START)
        made.forecast("q", "b", 0.5, START)
        [event] = made.timed()

        assert msgspec.json.decode(event.payload)["forecasts"] == {"a": 0.2, "b": 0.5}
        assert made.repeated == 1


def test_a_withdrawal_after_the_question_has_ended_is_left_out() -> None:
    with Gathered("econ") as made:
        made.question("q", opens=START, closes=START + DAY)
        made.forecast("q", "a", 0.5, START)
        made.forecast("q", "a", None, START + DAY)

        assert events(made) == [("question", 0), ("forecast", 0)]


def test_no_event_is_too_large_with_many_experts_of_long_names() -> None:
    with Gathered("econ") as made:
        for number in range(2 * MOST_AT_ONCE + 1):
            made.forecast("q" * 256, f"{number:04d}" + "e" * 252, 0.123456789012345, START)
        found = [event.payload for event in made.timed()]

    assert len(found) == 3
    assert max(map(len, found)) < MAX_EVENT_BYTES / 2


def test_what_the_service_would_refuse_is_refused_here() -> None:
    with Gathered("econ") as made:
        for question, expert in (("", "a"), ("q", ""), ("é" * 129, "a"), ("\udcff", "a")):
            with pytest.raises(RejectedEvent):
                made.forecast(question, expert, 0.5, START)


def test_a_question_without_forecasts_is_counted_and_left_out() -> None:
    with Gathered("econ") as made:
        made.question("r", opens=START)
        made.forecast("q", "a", 0.5, START)

        assert (events(made), made.unasked) == ([("forecast", 0)], 1)

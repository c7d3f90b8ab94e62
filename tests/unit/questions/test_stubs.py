import tracemalloc

import pytest

from stream_peer.events.feed_log import Verdict
from stream_peer.events.times import NEVER
from stream_peer.questions.state import Stub, Told, Truth, encode_stub
from stream_peer.questions.store import Stubs
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import DAY, HOUR, T0

SETTINGS = FeedSettings(ledger_for=10 * DAY, retract_for=2 * DAY)
OPEN = Stub("econ", None, None, T0)
RESOLVED = Stub("econ", Truth(T0, 1), Told("econ", 1), T0)
RETRACTED = Stub("econ", Truth(T0, "open"), Told("econ", "open"), T0)


def settings_of(_feed: str) -> FeedSettings:
    return SETTINGS


@pytest.mark.parametrize(("stub", "stays"), [(OPEN, 10 * DAY), (RESOLVED, 2 * DAY), (RETRACTED, 10 * DAY)])
def test_a_stub_stays_as_long_as_the_ledger_may_hold_its_question(stub: Stub, stays: int) -> None:
    assert Stubs(settings_of).ends(stub) == T0 + stays


def test_the_time_of_a_stub_without_the_moment_of_its_news_begins_when_it_is_first_met() -> None:
    stubs = Stubs(settings_of)
    stubs.since = T0 + DAY

    assert stubs.ends(Stub("econ", None, None)) == T0 + 11 * DAY


def test_memory_of_stubs_that_ended_is_freed_within_the_hour() -> None:
    stubs = Stubs(settings_of)
    stubs.put("early", RESOLVED)
    stubs.put("late", OPEN)

    too_early = list(stubs.expire(T0 + 2 * DAY - 1))
    in_time = list(stubs.expire(T0 + 2 * DAY + HOUR))

    assert (too_early, in_time) == ([], ["early"])
    assert list(stubs) == ["late"]
    assert T0 + 10 * DAY < stubs.next_end <= T0 + 10 * DAY + HOUR


def test_a_stub_with_later_news_stays_and_is_looked_at_again() -> None:
    stubs = Stubs(settings_of)
    stubs.put("q", RESOLVED)
    stubs.put("q", Stub("econ", Truth(T0, 0), Told("econ", 0), T0 + DAY))

    assert list(stubs.expire(T0 + 2 * DAY + HOUR)) == []
    assert list(stubs.expire(T0 + 3 * DAY + HOUR)) == ["q"]
    assert stubs.next_end == NEVER


def test_other_settings_apply_to_what_has_not_ended_under_the_former_ones() -> None:
    stubs = Stubs(settings_of)
    stubs.put("ended", RESOLVED)
    stubs.put("open", OPEN)
    longer = FeedSettings(ledger_for=20 * DAY, retract_for=20 * DAY)

    gone = stubs.begin(lambda _feed: longer, T0 + 3 * DAY)

    assert gone == ["ended"]
    assert list(stubs.expire(T0 + 10 * DAY + HOUR)) == []
    assert list(stubs.expire(T0 + 20 * DAY + HOUR)) == ["open"]


def test_stored_stubs_are_taken_up_with_their_ends() -> None:
    stubs = Stubs(settings_of)
    stubs.load("q", encode_stub(RESOLVED))
    stubs.begin(settings_of, 0)

    assert stubs.get("q") == RESOLVED
    assert list(stubs.expire(T0 + 2 * DAY + HOUR)) == ["q"]


def test_stubs_are_found_by_feed() -> None:
    stubs = Stubs(settings_of)
    stubs.put("a", OPEN)
    stubs.put("b", Stub("economics", None, None, T0))
    stubs.put("c", Stub("sport", None, Told("econ", "open"), T0))

    assert stubs.of_feed("econ", NEVER) == ["a"]
    assert stubs.of_feed("sport", T0 - 1) == []


@pytest.mark.case("C34")
def test_however_often_a_stub_has_news_it_takes_the_memory_of_one() -> None:
    stubs = Stubs(settings_of)
    for number in range(20_000):
        verdict: Verdict = 1 if number % 2 else "open"
        stubs.put("q", Stub("econ", Truth(T0, verdict), Told("econ", verdict), T0 + number * HOUR))

    assert stubs._notes <= 2_100


@pytest.mark.case("C34")
def test_a_stub_takes_little_more_memory_than_its_bytes_and_its_name() -> None:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    stubs = Stubs(settings_of)
    for number in range(20_000):
        stubs.put(f"question-{number:07d}", Stub("econ", None, None, T0 + number * 60_000))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (after - before) / 20_000 < 260

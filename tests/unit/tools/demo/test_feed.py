import re
from collections import Counter

import msgspec
import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import Forecast, Forecasts, Question, Resolution, Tick, decode
from stream_peer.events.times import from_iso, to_milliseconds
from stream_peer.settings.feed.document import load_document
from stream_peer.tools.demo.feed import (
    DATA,
    FEED,
    MALFORMED,
    RANDOM_EXPERT,
    SETTINGS,
    FeedEvent,
    closing_tick,
    paced,
    read_events,
)


@pytest.fixture(scope="module")
def events() -> list[FeedEvent]:
    return read_events()


def test_exactly_three_events_are_malformed_each_in_its_own_way(events: list[FeedEvent]) -> None:
    reasons = []
    for event in events:
        try:
            decode(event.value)
        except RejectedEvent as rejection:
            reasons.append(str(rejection.reason))
    assert sorted(reasons) == ["not-json", "outcome-unknown", "probability-range"]
    assert len(reasons) == MALFORMED


def test_the_data_shows_what_the_service_can_do(events: list[FeedEvent]) -> None:
    told, kinds, verdicts, revised, late = _read(events)

    assert kinds[Question] == 900
    assert kinds[Forecasts] == 900
    assert 500 < kinds[Resolution] < 700
    assert {0, 1, "annulled", "open"} <= verdicts
    assert revised > 5000
    assert late > 100
    presence = [count / 900 for count in told.values()]
    assert len(told) == 43
    assert 0.27 < min(presence) < 0.4
    assert max(presence) > 0.97
    assert RANDOM_EXPERT in told
    assert {name for name in told if name.startswith("copy-of-")} == {"copy-of-weak-07", "copy-of-weak-19"}


def _read(events: list[FeedEvent]) -> tuple[Counter[str], Counter[type], set[object], int, int]:
    told: dict[str, set[str]] = {}
    kinds: Counter[type] = Counter()
    verdicts: set[object] = set()
    revised = late = newest = 0
    for event in events:
        try:
            decoded = decode(event.value)
        except RejectedEvent:
            continue
        kinds[type(decoded)] += 1
        if isinstance(decoded, Resolution):
            verdicts.add(decoded.verdict)
        if isinstance(decoded, Forecasts):
            for name in decoded.forecasts:
                told.setdefault(name, set()).add(decoded.question_id)
        if isinstance(decoded, Forecast):
            asked = told.setdefault(decoded.expert_id, set())
            revised += decoded.question_id in asked
            asked.add(decoded.question_id)
            late += to_milliseconds(decoded.at) < newest
            newest = max(newest, to_milliseconds(decoded.at))
    return Counter({name: len(asked) for name, asked in told.items()}), kinds, verdicts, revised, late


def test_the_data_is_small_enough_to_ship() -> None:
    assert DATA.stat().st_size <= 400_000
    assert (DATA.parent / "LICENCE.md").exists()


def test_every_event_has_its_question_as_key_even_a_malformed_one(events: list[FeedEvent]) -> None:
    assert [event for event in events if not event.key] == []
    assert events[0].key == b"digit-0001"
    assert 0 <= events[0].partition(4) < 4


def test_the_closing_tick_lies_beyond_every_moment_of_the_data(events: list[FeedEvent]) -> None:
    tick = decode(closing_tick(events))
    assert isinstance(tick, Tick)
    moments = (found for event in events for found in re.findall(rb'"(?:at|closes_at)":"([^"]+)"', event.value))
    last = max(from_iso(moment.decode()) for moment in moments)
    assert to_milliseconds(tick.now) > to_milliseconds(last) + load_document(SETTINGS).of(FEED).grace


def test_the_settings_are_valid_and_let_the_events_own_times_count() -> None:
    book = load_document(SETTINGS)
    assert book.of(FEED).history
    assert book.of(FEED).backdate_limit is None


def test_events_are_paced_by_the_clock_and_none_is_left_out_or_repeated() -> None:
    events = [FeedEvent(b"q", msgspec.json.encode(number)) for number in range(100)]
    moments = iter([0.0, 0.0, 2.5, 2.5, 11.0])

    slices = [len(part) for part in paced(events, 10.0, lambda: next(moments))]

    assert slices == [0, 25, 0, 75]


def test_without_a_pace_all_events_come_at_once() -> None:
    events = [FeedEvent(b"q", b"{}")] * 7
    assert [len(part) for part in paced(events, 0.0, lambda: 0.0)] == [7]

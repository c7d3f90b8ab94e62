from datetime import UTC, datetime, timedelta

import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import Question, Resolution
from stream_peer.events.rejections import Reason
from stream_peer.events.times import to_milliseconds
from stream_peer.questions.dating import BEGINNING, Dating, Rules
from stream_peer.questions.merging import (
    counts_from,
    feed_with,
    merge_question,
    merged_truth,
    note_feed,
    plausible_moment,
)
from stream_peer.questions.state import QuestionState, Truth
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = to_milliseconds(NOON)
HOUR = timedelta(hours=1)
BOOK = load_document({"feeds": {"old": {"history": True}}})


def known(**settings: object) -> QuestionState:
    return QuestionState("q", FeedSettings(**settings), foreign=False)  # type: ignore[arg-type]  # any of its fields


def rules_of(question: QuestionState) -> Rules:
    return Rules((BEGINNING, Dating.of(question.settings)))


def test_a_time_before_2000_or_beyond_the_horizon_is_refused_with_the_likely_error() -> None:
    with pytest.raises(RejectedEvent, match="seconds passed where milliseconds"):
        plausible_moment(datetime(1970, 1, 20, tzinfo=UTC), "at", NOW, 1000)
    with pytest.raises(RejectedEvent, match="milliseconds passed where seconds") as refusal:
        plausible_moment(NOON + HOUR, "closes_at", NOW, 1000)
    assert refusal.value.field == "closes_at"
    assert plausible_moment(NOON, "at", NOW, 1000) == NOW
    assert plausible_moment(None, "at", NOW, 1000) is None


@pytest.mark.parametrize(
    ("settings", "resolved", "at", "counts"),
    [
        ({"backdate_limit": 10}, False, NOW - 10, NOW - 10),
        ({"backdate_limit": 10}, False, NOW - 11, NOW - 10),
        ({"backdate_limit": None}, False, NOW - 11, NOW - 11),
        ({"backdate_limit": 10}, True, NOW - 1, NOW),
        ({"backdate_limit": 10}, True, NOW + 1, NOW + 1),
        ({"backdate_limit": None, "history": True}, True, NOW - 11, NOW - 11),
    ],
)
def test_when_a_forecast_counts_from(settings: dict[str, object], resolved: bool, at: int, counts: int) -> None:
    question = known(**settings)
    question.truth = Truth(NOW, 1 if resolved else "open")

    assert counts_from(question, rules_of(question), at, NOW) == counts


def test_without_at_a_question_event_was_said_when_it_arrived_or_in_a_file_when_it_opened() -> None:
    live, old = known(), known()
    opened = Question(question_id="q", opens_at=NOON - HOUR)

    stated = merge_question(live, opened, NOW, BOOK)
    merge_question(old, Question(question_id="q", opens_at=NOON - HOUR, feed="old"), NOW, BOOK)

    assert stated is None
    assert live.declared == NOW
    assert old.declared == NOW - 3_600_000


def test_each_field_is_won_by_the_latest_that_states_it() -> None:
    question = known()
    merge_question(question, Question(question_id="q", at=NOON, weight=0.5), NOW, BOOK)
    merge_question(question, Question(question_id="q", at=NOON - HOUR, weight=0.1, closes_at=NOON), NOW, BOOK)

    assert question.weight == (NOW, 0.5)
    assert question.closes == (NOW - 3_600_000, NOW)
    assert question.declared == NOW - 3_600_000


def test_a_refused_question_event_changes_nothing() -> None:
    question = known()

    with pytest.raises(RejectedEvent):
        merge_question(question, Question(question_id="q", weight=0.5, closes_at=NOON + 9999 * 24 * HOUR), NOW, BOOK)

    assert question.weight is None
    assert question.declared is None


def test_a_question_event_names_the_feed_even_if_others_are_later() -> None:
    question = known()

    moves = [
        note_feed(question, "econ", 5, BOOK),
        note_feed(question, "late", 4, BOOK),
        note_feed(question, "old", 1, BOOK, own=True),
        note_feed(question, "econ", 9, BOOK),
        note_feed(question, None, 10, BOOK),
    ]

    assert moves == [True, False, True, False, False]
    assert question.feed == "old"
    assert question.settings.history


def test_the_latest_stated_resolution_is_in_force() -> None:
    before = Truth(NOW, 1)

    older, at = merged_truth(before, Resolution(question_id="q", outcome=0, at=NOON - HOUR), NOW, 1000)
    equal, _ = merged_truth(before, Resolution(question_id="q", outcome=None, at=NOON), NOW, 1000)

    assert older == before
    assert at == NOW - 3_600_000
    assert equal == Truth(NOW, "annulled")
    assert (equal.cut, Truth(NOW, "open").cut, Truth(NOW, 0, 5).cut) == (NOW, None, 5)


def test_the_feed_that_an_event_would_give_is_the_one_that_it_gives() -> None:
    for own in (True, False):
        for at in (4, 5, 6):
            question = known()
            question.other_feed, question.own_feed, question.feed = (5, "econ"), (5, "econ") if own else None, "econ"
            expected = feed_with(question, "sport", at, own=own)

            note_feed(question, "sport", at, BOOK, own=own)

            assert question.feed == expected == ("econ" if at < 5 else "sport")


@pytest.mark.case("C11")
def test_what_would_count_from_another_moment_is_refused_if_the_setting_says_so() -> None:
    question = known(backdate_limit=10, late_forecasts="refuse")

    in_time = counts_from(question, rules_of(question), NOW - 10, NOW)
    with pytest.raises(RejectedEvent) as refusal:
        counts_from(question, rules_of(question), NOW - 11, NOW)

    assert in_time == NOW - 10

    assert refusal.value.reason == Reason.LATE
    assert "0:00:00.010000" in refusal.value.message

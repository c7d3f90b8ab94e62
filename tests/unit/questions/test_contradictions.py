import pytest

from stream_peer.questions.schedule import contradiction_of_times, missing_times
from stream_peer.questions.state import QuestionState, Truth
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import DAY, T0, said

SETTINGS = FeedSettings(max_open=100 * DAY)


def known(
    opens: int | None = T0, closes: int | None = T0 + DAY, truth: Truth | None = None, stated: int = T0
) -> QuestionState:
    question = QuestionState("q", SETTINGS, foreign=False)
    question.declared = T0
    question.opens = None if opens is None else (stated, opens)
    question.closes = None if closes is None else (stated, closes)
    question.truth = truth
    return question


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (known(closes=T0 - 1), "before opens_at"),
        (known(closes=T0 + 101 * DAY), "more than max_open after opens_at"),
        (known(truth=Truth(T0 - 5, 1)), "its resolution ends it"),
        (known(truth=Truth(T0 + DAY, 1, T0 - 5)), "its resolution ends it"),
        (known(truth=Truth(T0 + DAY, 1, T0 + 2 * DAY)), "closed_at counts"),
        (known(truth=Truth(T0 + 5, 1), stated=T0 + 6), "the resolution counts"),
    ],
)
def test_each_contradiction_has_a_sentence_that_says_what_counts(question: QuestionState, sentence: str) -> None:
    assert sentence in str(contradiction_of_times(question))


@pytest.mark.parametrize(
    "question",
    [
        known(),
        known(closes=T0),
        known(opens=None, closes=T0 - DAY),
        known(closes=None, truth=Truth(T0 + 5, 1)),
        known(truth=Truth(T0 + 5, 1)),
        known(truth=Truth(T0 - 5, "open")),
        known(truth=Truth(T0 + 2 * DAY, 1, T0 + 5)),
    ],
)
def test_times_that_agree_are_no_contradiction(question: QuestionState) -> None:
    assert contradiction_of_times(question) is None


def test_what_was_left_out_of_a_description_is_said_with_what_stands_in_for_it() -> None:
    question = known(opens=None, closes=None)
    said(question.history, "ann", T0 + 5, 0.5)

    sentence = missing_times(question, question.plan())

    assert sentence is not None
    assert "nobody stated opens_at" in sentence
    assert "nobody stated closes_at" in sentence


def test_forecasts_alone_describe_no_question_and_miss_nothing() -> None:
    question = known(opens=None, closes=None)
    question.declared = None
    said(question.history, "ann", T0 + 5, 0.5)

    assert missing_times(question, question.plan()) is None
    assert missing_times(known(), known().plan()) is None


def test_a_resolved_question_needs_no_close() -> None:
    question = known(closes=None, truth=Truth(T0 + 5, 1))

    assert missing_times(question, question.plan()) is None


def test_a_close_after_the_year_9999_is_a_sentence_too() -> None:
    question = known(opens=None, closes=None)
    question.settings = FeedSettings(max_open=9_000 * 365 * DAY)

    assert "it closes after max_open, 9999-12-31" in (missing_times(question, question.plan()) or "")

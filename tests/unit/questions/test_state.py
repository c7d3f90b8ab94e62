import pytest

from stream_peer.errors import StateError
from stream_peer.events.times import NEVER
from stream_peer.questions.schedule import Terms
from stream_peer.questions.state import (
    Emitted,
    QuestionState,
    Stub,
    Told,
    Truth,
    decode_entry,
    decode_stub,
    encode_question,
    encode_stub,
)
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import all_said, said

SETTINGS = FeedSettings(round_every=10, max_open=1000)


def filled() -> QuestionState:
    question = QuestionState("q", SETTINGS, foreign=False)
    question.declared, question.opens, question.closes = 1, (1, 2), (1, 33)
    question.weight, question.own_feed, question.other_feed = (1, 0.5), (2, "econ"), (3, "sport")
    question.truth, question.told = Truth(9, "annulled", 8), Told("econ", 1)
    question.terms, question.touched = Terms(10, None, 1, 1000), 77
    question.emitted = {12: Emitted("econ", b"digest")}
    said(question.history, "ann", 5, 0.5)
    said(question.history, "bob", 3, None)
    return question


def test_a_stored_question_comes_back_whole() -> None:
    question = filled()
    ((_, value),) = encode_question(question)

    loaded = decode_entry("q", value or b"", {}, SETTINGS)

    assert isinstance(loaded, QuestionState)
    again = dict(encode_question(loaded))
    assert again == {b"q/q": value}
    assert (loaded.feed, loaded.resolved, loaded.plan()) == ("econ", True, question.plan())


def test_a_stub_comes_back_and_is_about_a_hundred_bytes() -> None:
    stub = Stub("a-feed-with-a-name", Truth(1_772_366_400_000, 1, 1_772_366_400_000), Told("a-feed-with-a-name", 1))

    stored = encode_stub(stub)

    assert decode_stub("q", stored) == decode_entry("q", stored, {}, SETTINGS) == stub
    assert len(stored) <= 100


def test_a_missing_chunk_is_an_error_that_names_the_question() -> None:
    question = QuestionState("big", SETTINGS, foreign=False)
    all_said(question.history, {f"{number:0100d}": 0.5 for number in range(4000)}, 5)
    entries = dict(encode_question(question))
    whole = {key: value for key, value in entries.items() if value is not None}
    del whole[b"c/4/1/big"]

    with pytest.raises(StateError, match=r"'big' lacks its chunk"):
        decode_entry("big", whole[b"q/big"], whole, SETTINGS)
    with pytest.raises(StateError, match="'q'"):
        decode_stub("q", b"\x00")


def test_a_question_id_with_slashes_and_zeros_cannot_take_the_place_of_a_chunk() -> None:
    question = QuestionState("2/0/\x00é", SETTINGS, foreign=False)

    ((key, value),) = encode_question(question)

    assert key == "q/2/0/\x00é".encode()
    assert value is not None


def test_a_forecast_before_the_first_one_moves_an_opening_that_is_not_stated() -> None:
    question = QuestionState("q", SETTINGS, foreign=False)
    question.declared = 50
    assert question.plan().opens == 50

    said(question.history, "ann", 60, 0.5)
    question.watch(question.plan(), passed=0)

    assert question.plan().opens == 60
    assert question.replan_before == 60


def test_while_a_quorum_is_awaited_every_forecast_may_change_the_plan() -> None:
    question = QuestionState("q", FeedSettings(round_every=10, quorum=2), foreign=False)
    question.opens = (0, 0)
    said(question.history, "ann", 5, 0.5)
    question.watch(question.plan(), passed=0)
    awaited = question.replan_before

    said(question.history, "bob", 7, 0.5)
    question.watch(question.plan(), passed=20)

    assert awaited == NEVER
    assert question.replan_before == 8
    assert question.alert == 20

from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_peer.errors import NewerStateError, UnreadableStateError
from stream_peer.events.feed_log import Source
from stream_peer.events.incoming import SettingsStanding, SignaturesFromHere
from stream_peer.log.sources import MARKERS
from stream_peer.questions.state import QuestionState, Stub, encode_question
from stream_peer.questions.store import QuestionStore, decode_question_head, encode_head
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import (
    DAY,
    HOUR,
    T0,
    Partition,
    all_said,
    broadcast,
    forecast,
    settings_event,
    stage,
)

SETTINGS = FeedSettings()


def settings_of(_feed: str) -> FeedSettings:
    return SETTINGS


def question(question_id: str) -> QuestionState:
    return QuestionState(question_id, SETTINGS, foreign=False)


def test_what_was_touched_is_written_once() -> None:
    store = QuestionStore(settings_of)
    one = question("q")
    store.touch(one)
    store.touch(one)

    assert list(store.changes()) == [b"q/q"]
    assert store.changes() == {}
    assert store.live == {"q": one}


def test_a_shrunk_question_leaves_a_stub_or_nothing() -> None:
    store = QuestionStore(settings_of)
    for one in (question("kept"), question("gone")):
        store.touch(one)
        store.shrink(one, Stub("econ", None, None, news=1) if one.id == "kept" else None)

    changes = store.changes()

    assert changes[b"q/gone"] is None
    assert changes[b"q/kept"] is not None
    assert store.stub("kept", now=1) == Stub("econ", None, None, news=1)
    assert store.stub("gone", now=1) is None
    assert store.live == {}


def test_the_chunks_of_a_shrunk_question_go() -> None:
    store = QuestionStore(settings_of)
    big = question("big")
    all_said(big.history, {f"{number:0100d}": 0.5 for number in range(4000)}, 5)
    store.touch(big)
    written = store.changes()

    store.shrink(big, None)

    assert set(store.changes().items()) == {(key, None) for key in written}


def test_a_question_that_comes_back_after_it_was_gone_is_written_again() -> None:
    store = QuestionStore(settings_of)
    store.touch(question("q"))
    store.shrink(store.live["q"], None)
    store.touch(question("q"))

    assert store.changes()[b"q/q"] is not None


def test_stored_questions_and_stubs_are_taken_up() -> None:
    store, before = QuestionStore(settings_of), QuestionStore(settings_of)
    before.put_stub("s", Stub("econ", None, None, news=1))
    entries = {key: value for key, value in before.changes().items() if value is not None}
    entries.update((key, value) for key, value in encode_question(question("q")) if value is not None)

    store.load(entries, SETTINGS, lambda question_id: question_id == "q")

    assert "s" in store.stubs
    assert "q" not in store.stubs
    assert store.live["q"].foreign
    assert store.changes() == {}


def test_a_head_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(UnreadableStateError, match="cannot be read") as caught:
        decode_question_head(b"")

    assert caught.value.exit_code == 78


@pytest.mark.case("C26")
def test_a_head_of_a_later_release_is_refused_with_a_sentence_whatever_else_it_holds() -> None:
    with pytest.raises(NewerStateError, match="question stage has schema 7, written by a later release") as caught:
        decode_question_head(msgspec.msgpack.encode({"schema": 7, "renamed": []}))

    assert caught.value.exit_code == 78


# --- what the release before this one stored ---

BEFORE = msgspec.json.decode((Path(__file__).parent / "stored" / "question-schema-1.json").read_bytes())
"""Live questions (one of them in chunks, one resolved and corrected, one that nobody opened yet) and stubs."""


def taken_up() -> Partition:
    """A partition that goes on where the release before this one stopped."""
    partition = Partition(stage())
    partition.stored = {b64decode(key): b64decode(value) for key, value in BEFORE["entries"].items()}
    partition.stage.load(b64decode(BEFORE["head"]), partition.stored)
    partition.offset = BEFORE["first_offset"] - 1
    head = msgspec.msgpack.decode(b64decode(BEFORE["head"]))
    standing = SettingsStanding(document=head["document"], hash="", at=0, partition=0)
    marks = [Source(*seen) for seen in head["seen"]]
    marker = msgspec.json.encode(SignaturesFromHere(settings=standing, marks=marks))
    assert partition.send(marker, now=0, source=Source(MARKERS, 0, 0, 1, 0)) == []
    return partition


def gone_on(partition: Partition, *, restart_each: int = 1_000) -> list[list[Any]]:
    """What comes of what the release before this one was sent then."""
    answers = []
    for number, (now, value, headers) in enumerate(BEFORE["then"], 1):
        source = msgspec.json.decode(b64decode(headers[0][1]), type=Source) if headers else None
        for output in partition.send(value.encode(), now=now, source=source):
            text = [(part or b"").decode() for part in (output.key, output.value)]
            text[1] = text[1].replace('"after_outcome":true,', "")  # which the release before did not say
            answers.append([output.topic, *text, output.timestamp, output.partition])
        if number % restart_each == 0:
            partition.restart(stage())
    return answers


@pytest.mark.case("C26")
@pytest.mark.parametrize("restart_each", [1_000, 1])
def test_state_of_the_release_before_goes_on_as_if_nothing_had_happened(restart_each: int) -> None:
    partition = taken_up()

    answers = gone_on(partition, restart_each=restart_each)

    assert answers == BEFORE["answers"]
    counts = sorted([*key, number] for key, number in partition.effects.counts.items())
    later_kinds = "contradictory-times", "signatures-from-here", "forecasts"
    assert [count for count in counts if count[0] not in later_kinds and count[1] not in later_kinds] == BEFORE[
        "counts"
    ]


LATE_BEFORE = (
    "iaZzY2hlbWEBpWNsb2NrzwAAAZzSd+oApHNlZW6QqGRvY3VtZW50wKtpbmNhcm5hdGlvbgCrc3R1YnNfc2luY2UAqWZvcmdvdHRlbpCmc2VjcmV0"
    "oKVzY3J1YsI=",
    "3AASoXHPAAABnKlFCgCSzwAAAZypRQoAzwAAAZypRQoAks8AAAGcqUUKAM8AAAGc3MSiAMCSzwAAAZypRQoApGVjb27AwJXOJAyEAMDN6mDPAAAADq"
    "9iWADAwM8AAAGcwwTWAM8AAAGcqXv4gIHPAAABnM1RjgCSpGVjb27EDLYi0NS5g8qGCf4rCACSo2FubqNib2LEPID4e6mcAQAAZmZmZmZm5j8AAAAA"
    "gPh7qZwBAACamZmZmZnJPwEAAAAAet69nAEAAM3MzMzMzOw/AAAAAMQUAOeyqZwBAAAAet69nAEAAAAAAADC",
)
"""Head and question that the release before stored: open for ten days, of three forecasts ann's last came days late."""


def test_forecasts_of_which_the_release_before_did_not_keep_the_arrival_are_never_dated_anew() -> None:
    head, stored = (b64decode(value) for value in LATE_BEFORE)
    partition = Partition(stage())
    signed = msgspec.structs.replace(decode_question_head(head), signed=True)
    partition.stage.load(encode_head(signed), {b"q/q": stored})

    partition.send(settings_event({"defaults": {"history": True}}), now=T0 + 9 * DAY, source=broadcast())
    partition.send(forecast("bob", 0.3, T0 + 3 * HOUR))
    partition.pass_to(T0 + 11 * DAY)

    history = partition.stage._live["q"].history
    assert partition.count("dated-anew") == 0
    assert history.stated("ann") == [(T0 + 2 * HOUR, T0 + 4 * DAY)]
    assert history.standing_at([T0 + 3 * HOUR, T0 + 5 * DAY]) == [
        (["ann", "bob"], [0.7, 0.3]),
        (["ann", "bob"], [0.9, 0.3]),
    ]


def test_of_a_cleared_store_all_that_was_stored_or_waited_to_be_is_gone() -> None:
    store = QuestionStore(settings_of)
    big = question("big")
    all_said(big.history, {f"{number:0100d}": 0.5 for number in range(4000)}, 5)
    store.touch(big)
    store.put_stub("s", Stub("econ", None, None, news=1))
    written = store.changes()
    store.touch(question("new"))

    store.clear(settings_of)

    assert store.changes() == dict.fromkeys([*written, b"q/new"])
    assert (store.live, len(store.stubs)) == ({}, 0)
    assert store.changes() == {}

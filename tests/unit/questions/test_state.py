import msgspec
import pytest

from stream_peer.errors import StateError
from stream_peer.events.feed_log import OutcomeRevealed
from stream_peer.events.times import NEVER
from stream_peer.questions.schedule import Terms
from stream_peer.questions.state import (
    Emitted,
    QuestionState,
    Stub,
    Told,
    Truth,
    decode_question_entry,
    decode_stub,
    encode_question,
    encode_stub,
)
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    SECOND,
    T0,
    Partition,
    all_said,
    book,
    closed,
    event,
    forecast,
    forget,
    opened,
    question,
    reasons,
    records,
    resolution,
    said,
    stage,
)

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

    loaded = decode_question_entry("q", value or b"", {}, SETTINGS)

    assert isinstance(loaded, QuestionState)
    again = dict(encode_question(loaded))
    assert again == {b"q/q": value}
    assert (loaded.feed, loaded.resolved, loaded.plan()) == ("econ", True, question.plan())


def test_a_stub_comes_back_and_is_about_a_hundred_bytes() -> None:
    stub = Stub("a-feed-with-a-name", Truth(1_772_366_400_000, 1, 1_772_366_400_000), Told("a-feed-with-a-name", 1))

    stored = encode_stub(stub)

    assert decode_stub("q", stored) == decode_question_entry("q", stored, {}, SETTINGS) == stub
    assert len(stored) <= 100


def test_a_missing_chunk_is_an_error_that_names_the_question() -> None:
    question = QuestionState("big", SETTINGS, foreign=False)
    all_said(question.history, {f"{number:0100d}": 0.5 for number in range(4000)}, 5)
    entries = dict(encode_question(question))
    whole = {key: value for key, value in entries.items() if value is not None}
    del whole[b"c/4/1/big"]

    with pytest.raises(StateError, match=r"'big' lacks its chunk"):
        decode_question_entry("big", whole[b"q/big"], whole, SETTINGS)
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


def test_the_history_goes_after_its_time_and_a_stub_finds_the_feed_of_a_late_resolution() -> None:
    partition = closed()
    partition.restart(stage())
    partition.pass_to(CLOSE + GRACE + 31 * DAY)
    partition.restart(stage())

    stored = partition.stored[b"q/q"]
    told = records(partition.send(resolution("no", CLOSE + 400 * DAY), now=CLOSE + 400 * DAY))
    partition.restart(stage())
    corrected = records(partition.send(resolution("yes", CLOSE + 401 * DAY), now=CLOSE + 401 * DAY))

    assert len(stored) < 100
    assert [(record.feed, record.outcome) for record in told if isinstance(record, OutcomeRevealed)] == [("econ", 0)]
    assert [record.outcome for record in corrected if isinstance(record, OutcomeRevealed)] == [1]


@pytest.mark.case("C34")
def test_a_stub_goes_when_no_outcome_can_matter_any_more() -> None:
    partition = closed(ledger_for="100d", retract_for="10d")
    since = CLOSE + GRACE + 31 * DAY
    partition.pass_to(since)
    partition.restart(stage(book(ledger_for="100d", retract_for="10d")))

    in_time = partition.send(resolution(1, since + 100 * DAY - 1), now=since + 100 * DAY - 1)
    partition.restart(stage(book(ledger_for="100d", retract_for="10d")))
    partition.pass_to(since + 110 * DAY - 1)
    too_late = partition.send(resolution("open", since + 110 * DAY - 1), now=since + 110 * DAY - 1)
    unknown = partition.count("unknown-question")
    partition.pass_to(since + 300 * DAY)
    partition.restart(stage(book(ledger_for="100d", retract_for="10d")))

    assert [record.outcome for record in records(in_time) if isinstance(record, OutcomeRevealed)] == [1]
    assert too_late == []
    assert unknown == 1
    assert partition.stored == {}
    assert len(partition.stage._store.stubs) == 0


def test_a_question_that_comes_again_after_its_stub_has_ended_is_as_if_new() -> None:
    partition = closed(ledger_for="10d")
    partition.pass_to(CLOSE + GRACE + 31 * DAY)
    again = CLOSE + GRACE + 41 * DAY
    partition.pass_to(again)
    before = partition.told.rounds

    partition.send(question(feed="econ", opens_at=again, closes_at=again + DAY), now=again)
    partition.restart(stage(book(ledger_for="10d")))
    partition.send(forecast("ann", 0.4, again + HOUR), now=again + HOUR)
    partition.pass_to(again + DAY + GRACE)

    assert partition.count("too-late") == 0
    assert partition.told.forecasts() == {CLOSE: {"ann": 0.7, "bob": 0.2}, again + DAY: {"ann": 0.4}}
    assert before.items() <= partition.told.rounds.items()
    assert list(partition.stored) == [b"q/q"]


def test_other_settings_change_how_long_stubs_stay() -> None:
    partition = closed(ledger_for="10d")
    since = CLOSE + GRACE + 31 * DAY
    partition.pass_to(since)

    partition.apply({"feeds": {"econ": {"ledger_for": "50d"}}})
    partition.pass_to(since + 49 * DAY)
    told = partition.send(resolution(1, since), now=since + 49 * DAY)

    assert len(records(told)) == 1


@pytest.mark.case("C34")
def test_stubs_of_the_release_before_count_from_when_they_were_first_met() -> None:
    partition = closed(ledger_for="10d")
    since = CLOSE + GRACE + 31 * DAY
    partition.pass_to(since)
    partition.restart(stage())
    feed, truth, told, _ = msgspec.msgpack.decode(partition.stored[b"q/q"])[1:]
    partition.stored[b"q/q"] = msgspec.msgpack.encode(["s", feed, truth, told])
    head = {**msgspec.msgpack.decode(partition.stage.snapshot().head), "stubs_since": None}

    settings = book(ledger_for="10d")
    partition.stage = stage(settings)
    partition.stage.load(msgspec.msgpack.encode(head), partition.stored)
    partition.pass_to(since + 5 * DAY)
    partition.restart(stage(settings))
    partition.pass_to(since + 10 * DAY - 1)
    still = partition.stage._store.stub("q", partition.stage.clock)
    partition.pass_to(since + 10 * DAY)

    assert still is not None
    assert partition.stage._store.stub("q", partition.stage.clock) is None


def test_forecasts_on_a_stub_are_counted_as_too_late() -> None:
    partition = closed()
    partition.pass_to(CLOSE + GRACE + 31 * DAY)

    caused = partition.send(forecast("ann", 0.5, CLOSE), question(closes_at=CLOSE + DAY))

    assert caused == []
    assert partition.count("too-late") == 2


@pytest.mark.case("C34")
def test_a_question_without_rounds_leaves_nothing_behind() -> None:
    partition = Partition()
    partition.send(question(opens_at=T0, closes_at=CLOSE))
    partition.restart(stage())

    partition.pass_to(CLOSE + 31 * DAY)
    partition.restart(stage())

    assert partition.stored == {}


def test_an_expert_keeps_sixty_four_entries_and_those_of_emitted_rounds() -> None:
    partition = opened(round_every="1h", history=True)

    for minute in range(1, 200):
        at = T0 + HOUR + minute * 60 * SECOND
        partition.send(forecast("ann", minute / 200, at), now=at)
    before = partition.told.rounds
    partition.send(question(weight=0.5))

    entries = partition.stage._live["q"].history
    assert len(entries) == 64 + 1
    assert partition.count("history-trimmed") == 200 - 64
    assert [count for _, count in partition.effects.busy_experts.items()] == [200 - 64]
    assert {key: content[2] for key, content in before.items()} == {
        key: content[2] for key, content in partition.told.rounds.items()
    }


def test_snapshots_hold_what_changed_since_the_last_one() -> None:
    partition = opened()
    partition.send(question("other", opens_at=T0))

    first = partition.stage.snapshot()
    partition.send(forecast("ann", 0.5, T0 + HOUR))
    second = partition.stage.snapshot()

    assert set(first.entries) == {b"q/q", b"q/other"}
    assert set(second.entries) == {b"q/q"}
    assert partition.stage.snapshot().entries == {}


@pytest.mark.case("C27")
def test_a_question_of_twenty_thousand_experts_is_stored_in_pieces_below_the_limit() -> None:
    partition = Partition()
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    names = [f"expert-{number:05d}" for number in range(20_000)]
    partition.send(event("forecasts", question_id="q", at=T0, forecasts=dict.fromkeys(names[:5_000], 0.25)))
    partition.restart(stage())
    for start in range(5_000, 20_000, 5_000):
        many = dict.fromkeys(names[start : start + 5_000], 0.25)
        partition.send(event("forecasts", question_id="q", at=T0, forecasts=many))
        partition.restart(stage())
    partition.send(forecast("expert-00007", 0.75, T0 + HOUR), now=T0 + HOUR)
    touched = partition.stage.snapshot()
    partition.stored.update({key: value for key, value in touched.entries.items() if value is not None})
    partition.restart(stage())

    partition.pass_to(CLOSE + GRACE)

    assert max(map(len, partition.stored.values())) < 380_000
    assert len(touched.entries) == 2
    assert partition.told.forecasts()[CLOSE] == {**dict.fromkeys(names, 0.25), "expert-00007": 0.75}
    assert len({key for key in partition.stored if key.startswith(b"c/")}) == 8


@pytest.mark.case("C29")
def test_where_the_topic_was_made_anew_state_goes_on_and_sources_name_the_new_topic() -> None:
    partition = closed()
    partition.restart(stage())
    partition.stage.begin_topic(77, 0, keep=True)
    last, partition.offset = partition.offset - 1, 0

    told = [*partition.send(resolution(1, CLOSE), resolution(0, CLOSE)), *partition.send(resolution(None, CLOSE))]
    partition.offset = last
    same_offset = partition.send(resolution(1, CLOSE))
    partition.restart(stage())
    later = partition.send(resolution(0, CLOSE))

    sources = [record.src for record in records([*told, *same_offset, *later])]
    assert [source.generation for source in sources] == [77] * 5
    assert [(source.offset, source.index) for source in sources] == [(0, 0), (1, 0), (2, 0), (last, 0), (last + 1, 0)]


@pytest.mark.case("C29")
def test_numbering_begins_again_where_an_offset_of_the_new_topic_is_the_last_of_the_former() -> None:
    partition = closed()
    partition.send(resolution(1, CLOSE))

    partition.stage.begin_topic(77, 0, keep=True)
    partition.offset -= 1
    (told,) = records(partition.send(resolution(0, CLOSE)))

    assert (told.src.generation, told.src.offset, told.src.index) == (77, partition.offset - 1, 0)


@pytest.mark.case("C29")
def test_where_state_is_dropped_with_the_topic_what_it_cannot_tell_stays() -> None:
    partition = Partition()
    partition.apply({"defaults": {"round_every": "1d"}})
    partition.control(forget("zoe"))
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), forecast("ann", 0.7, T0))
    partition.send(question("old", feed="econ", opens_at=T0, closes_at=T0), forecast("ann", 0.7, T0, "old"))
    partition.pass_to(T0 + 40 * DAY)
    partition.send(question("new", feed="econ", opens_at=T0, closes_at=T0 + 50 * DAY))
    partition.restart(stage())
    held = set(partition.stored)

    partition.stage.begin_topic(77, 0, keep=False)
    gone = partition.stage.snapshot()
    partition.stored.clear()
    partition.stage = stage()
    partition.stage.load(gone.head, {})
    clock = partition.stage.clock
    refused = partition.send(forecast("zoe", 0.7, T0, feed="econ"), now=T0)
    partition.send(forecast("ann", 0.4, T0, feed="econ"))
    partition.pass_to(T0 + DAY + GRACE)

    assert gone.entries == dict.fromkeys(held)
    assert len(held) == 3
    assert clock == 0
    assert reasons(refused) == ["forgotten"]
    assert partition.told.forecasts()[T0 + DAY] == {"ann": 0.4}
    assert partition.records[-1].src.generation == 77


def test_state_of_another_schema_or_torn_state_is_an_error_that_says_so() -> None:
    snapshot = opened().stage.snapshot()

    with pytest.raises(StateError, match="head"):
        stage().load(b"\xc1", {})
    with pytest.raises(StateError, match="schema 3"):
        stage().load(msgspec.msgpack.encode({**msgspec.msgpack.decode(snapshot.head), "schema": 3}), {})
    with pytest.raises(StateError, match="question 'q'"):
        stage().load(snapshot.head, {b"q/q": b"\x01"})


def test_named_feeds_have_settings_of_their_own() -> None:
    book = load_document({"feeds": {"econ": {"round_every": "1d"}}})
    partition = Partition(stage(book))
    for name, feed in (("q", "econ"), ("r", "sport")):
        partition.send(question(name, feed=feed, opens_at=T0), forecast("ann", 0.5, T0, name))

    partition.pass_to(T0 + DAY + GRACE)

    assert [key[1] for key in partition.told.rounds] == ["q"]

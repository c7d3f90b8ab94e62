"""A deletion and the records of the question stage come in any order: each record counts in the life that it names."""

from collections.abc import Iterable

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import (
    FeedLogRecord,
    HandedOver,
    QuestionArrived,
    QuestionMoved,
    Round,
    Source,
    encode_feed_log,
)
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import LogRecord, Output
from stream_peer.tools.transfer.feed_slice import slice_of
from tests.feed_histories import START, Changelog, changed, folded, outcome, round_of, withdrawn

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
ANYWHERE = Source(topics.FORECAST_EVENTS, 0, 0, 0, 0)
HOUR = 3_600_000
DELETED = START + 1


def deleted(feed: str = "f", at: int = DELETED) -> FeedLogRecord:
    return dated(changed(feed, delete=True), at)


def dated(event: FeedLogRecord, at: int = DELETED) -> FeedLogRecord:
    """A record whose partition has read the deletion."""
    return msgspec.structs.replace(event, deleted_at=at)


def came(question_id: str, feed: str = "f", move: int = 1) -> FeedLogRecord:
    return QuestionArrived(src=ANYWHERE, feed=feed, question_id=question_id, move=move, origin="g")


def moved(question_id: str, feed: str = "f", move: int = 1) -> FeedLogRecord:
    return QuestionMoved(src=ANYWHERE, feed=feed, question_id=question_id, move=move, to="g")


def handed(question_id: str, feed: str = "f", move: int = 1) -> FeedLogRecord:
    return HandedOver(src=Source(topics.FEED_LOG, 1, 0, 0, 0), feed=feed, question_id=question_id, move=move)


def log_of(events: Iterable[FeedLogRecord], later: int = 0) -> list[LogRecord]:
    """Each record has a source of the stage that writes it."""
    log = []
    for offset, event in enumerate(events):
        of_control = topics.CONTROL_EVENTS if event.__struct_config__.tag == "feed" else topics.FORECAST_EVENTS
        topic = topics.FEED_LOG if isinstance(event, HandedOver) else of_control
        value = encode_feed_log(msgspec.structs.replace(event, src=Source(topic, 0, 0, offset, 0)))
        log.append(LogRecord(offset, START + offset + (later if offset else 0), event.feed.encode(), value))
    return log


def kept(stage: FeedStage, feed: str = "f") -> set[str]:
    found = stage.feeds.by_name.get(feed)
    return set() if found is None else {name for name, entry in found.ledger.entries.items() if entry.rounds}


def standing(outputs: Iterable[Output]) -> dict[str, str | None]:
    """The state of each question, as it was published last; None: a tombstone."""
    found: dict[str, str | None] = {}
    for output in outputs:
        if output.topic == topics.REFERENCE_ANSWERS and output.key is not None:
            found[output.key.decode()] = None if output.value is None else msgspec.json.decode(output.value)["state"]
    return found


@pytest.mark.parametrize("late", [round_of("late", FORECASTS), outcome("late", 1), came("late")])
def test_what_a_partition_wrote_before_it_read_the_deletion_begins_no_feed(late: FeedLogRecord) -> None:
    stage, effects = folded(log_of([round_of("q", FORECASTS), deleted(), late]))

    assert not stage.feeds.by_name
    assert standing(effects.outputs) == {"q": "scored"} | {"q": None}
    assert effects.counts["deleted-feed", ""] == 1


def test_a_feed_that_nobody_knew_is_deleted_as_well() -> None:
    stage, effects = folded(log_of([deleted(), round_of("late", FORECASTS)]))

    assert not stage.feeds.by_name
    assert not effects.outputs


def test_the_new_feed_has_the_questions_of_those_that_read_the_deletion() -> None:
    log = log_of([round_of("q", FORECASTS), deleted(), dated(round_of("new", FORECASTS)), round_of("late", FORECASTS)])

    stage, effects = folded(log)

    assert kept(stage) == {"new"}
    assert standing(effects.outputs) == {"q": None, "new": "scored"}


def test_a_round_of_the_new_feed_ends_the_former_one_and_the_deletion_that_follows_ends_nothing() -> None:
    log = log_of([round_of("q", FORECASTS), dated(round_of("new", FORECASTS)), deleted(), round_of("late", FORECASTS)])

    stage, effects = folded(log)

    assert kept(stage) == {"new"}
    assert standing(effects.outputs) == {"q": None, "new": "scored"}
    assert stage.agrees()


def test_two_deletions_end_two_feeds() -> None:
    second = DELETED + 1
    events = [deleted(), dated(round_of("one", FORECASTS)), deleted(at=second), dated(round_of("late", FORECASTS))]

    stage, effects = folded(log_of([*events, dated(round_of("two", FORECASTS), second)]))

    assert kept(stage) == {"two"}
    assert standing(effects.outputs) == {"one": None, "two": "scored"}


def test_the_deletion_of_an_earlier_release_says_no_moment_and_counts_where_it_stands() -> None:
    stage, _ = folded(log_of([round_of("q", FORECASTS), deleted(at=0), round_of("late", FORECASTS)]))

    assert kept(stage) == {"late"}


@pytest.mark.parametrize(("later", "counts"), [(5 * HOUR, False), (7 * HOUR, True)])
def test_after_six_hours_a_partition_that_never_read_the_deletion_counts_again(later: int, counts: bool) -> None:
    stage, _ = folded(log_of([deleted(), round_of("q", FORECASTS)], later))

    assert kept(stage) == ({"q"} if counts else set())


def test_the_next_owner_knows_the_deletion() -> None:
    log, changelog = log_of([round_of("q", FORECASTS), deleted(), round_of("late", FORECASTS)]), Changelog()
    changelog.take(folded(log[:2])[0])

    stage, _ = folded(log[2:], changelog.restored())

    assert not stage.feeds.by_name


def test_a_rebuild_of_everything_comes_to_the_same() -> None:
    log = log_of([round_of("q", FORECASTS), deleted(), dated(round_of("new", FORECASTS)), round_of("late", FORECASTS)])
    stage, _ = folded(log)
    stage.rebuild_all()

    folded([], stage, log)

    assert kept(stage) == {"new"}


@pytest.mark.parametrize("others", [[], [dated(round_of("new", FORECASTS))]])
@pytest.mark.parametrize("came_before", [True, False])
def test_a_question_that_is_handed_over_to_a_former_life_of_the_feed_is_gone(
    others: list[FeedLogRecord], came_before: bool
) -> None:
    there = [came("q"), deleted()] if came_before else [deleted(), came("q")]

    stage, effects = folded(log_of([round_of("first", FORECASTS), *there, *others, handed("q")]))

    assert standing(effects.outputs)["q"] is None
    assert "q" not in kept(stage)


def test_a_question_that_left_a_former_life_of_the_feed_is_handed_over() -> None:
    stage, _ = folded(log_of([round_of("q", FORECASTS), deleted(), moved("q"), withdrawn("q")]))

    (handed_over,) = stage.hand_overs_due()
    assert handed_over.key == b"g"


@pytest.mark.parametrize("again", [[round_of("q", FORECASTS)], [came("q"), handed("q"), round_of("q", FORECASTS)]])
def test_a_question_of_a_deleted_feed_is_published_where_it_begins_again_though_it_was_there_before(
    again: list[FeedLogRecord],
) -> None:
    log = log_of([round_of("q", FORECASTS), moved("q"), withdrawn("q"), *again])  # meanwhile the other feed is deleted

    _, effects = folded(log)

    assert standing(effects.outputs) == {"q": "scored"}


def test_a_feed_moves_without_what_was_written_before_its_deletion_was_read() -> None:
    log = log_of([round_of("q", FORECASTS), dated(round_of("new", FORECASTS)), deleted(), round_of("late", FORECASTS)])

    with slice_of("f", {}, log) as found:
        records = [line.record for line in found.lines()]

    assert [(type(record), record.deleted_at) for record in records] == [(Round, 0)]
    assert isinstance(records[0], Round)
    assert records[0].question_id == "new"

"""A feed ends when its last question leaves it, as if nobody had ever named it."""

from collections.abc import Sequence

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, QuestionArrived, QuestionMoved, Source
from stream_peer.feeds.stage import FeedStage
from tests.feed_histories import (
    Changelog,
    changed,
    expert,
    folded,
    log_of,
    newest,
    outcome,
    provisional,
    round_of,
    settings,
    withdrawn,
)

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
SRC = Source(topics.FORECAST_EVENTS, 0, 0, 0, 0)


def leaves(question_id: str, feed: str = "f", *, to: str = "g", move: int = 1) -> list[FeedLogRecord]:
    return [QuestionMoved(src=SRC, feed=feed, question_id=question_id, move=move, to=to), withdrawn(question_id)]


def comes(question_id: str, *, move: int = 2) -> FeedLogRecord:
    return QuestionArrived(src=SRC, feed="f", question_id=question_id, move=move, origin="g")


def names(stage: FeedStage) -> tuple[list[str], list[str], list[str]]:
    """Feeds of the stage, of its pages, and of its metrics."""
    return list(stage.feeds.by_name), list(stage.views()), list(stage.latest_views())


@pytest.mark.parametrize(
    "before",
    [
        [round_of("q", FORECASTS)],
        [round_of("q", {"ann": 0.9})],
        [round_of("q", FORECASTS), outcome("q", 1)],
        [round_of("q", FORECASTS), provisional("q", 1)],
        [round_of("q", FORECASTS, boundary=2), round_of("q", FORECASTS, final=True)],
    ],
)
def test_a_feed_that_its_last_question_left_is_gone_from_state_pages_and_metrics(
    before: Sequence[FeedLogRecord],
) -> None:
    taken_back = [withdrawn("q", boundary=2), outcome("q", "open"), provisional("q", "open")]
    changelog = Changelog()
    first, out = folded(log_of(before))
    changelog.take(first)
    records = [*leaves("q"), *taken_back]

    stage, effects = folded(log_of(records, len(before)), first)
    changelog.take(stage)

    assert names(stage) == ([], [], [])
    assert not [key for key in changelog.entries if key.startswith((b"f/", b"e/"))]
    assert newest(out.outputs, topics.WEIGHTS).keys() == {"f"}
    of_feed = [output for output in effects.outputs if output.topic in topics.KEYED_BY_FEED]
    assert {(output.topic, output.key, output.value) for output in of_feed} == {
        (topic, b"f", None) for topic in topics.KEYED_BY_FEED
    }
    assert not [output for output in effects.outputs if output.topic in topics.KEYED_BY_QUESTION]
    assert names(changelog.restored()) == ([], [], [])


@pytest.mark.parametrize(
    "kept",
    [
        round_of("other", {"ann": 0.5}),
        expert("ann", excluded=True),
        expert("bob", team="red"),
        expert("cyd", rename="cid"),
        expert("dan", forget=True),
        comes("other", move=1),
    ],
)
def test_a_feed_of_which_anything_else_is_known_goes_on(kept: FeedLogRecord) -> None:
    log = log_of([round_of("q", FORECASTS), kept, *leaves("q")])

    stage, _ = folded(log)

    assert list(stage.feeds.by_name) == ["f"]


def test_a_feed_whose_question_is_withdrawn_and_has_not_left_goes_on() -> None:
    stage, _ = folded(log_of([round_of("q", FORECASTS), withdrawn("q")]))

    assert list(stage.feeds.by_name) == ["f"]


def test_a_feed_that_has_settled_questions_goes_on() -> None:
    document = {"defaults": {"ledger_for": "1m"}}
    log = log_of([settings(document), round_of("old", FORECASTS), round_of("q", FORECASTS)])
    late = [record._replace(timestamp=record.timestamp + 3_600_000) for record in log_of(leaves("q"), len(log))]

    stage, _ = folded([*log, *late])

    assert "f" in stage.feeds.by_name


def test_a_feed_begins_again_with_a_question_that_comes_after_its_end() -> None:
    log = log_of([round_of("q", FORECASTS), *leaves("q"), comes("q"), round_of("q", FORECASTS)])
    stage, _ = folded(log[:3])
    revision = stage.revision

    _, effects = folded(log[3:], stage)

    assert revision >= 0
    assert newest(effects.outputs, topics.WEIGHTS)["f"]["revision"] > revision
    assert names(stage) == (["f"], ["f"], ["f"])
    assert stage.agrees()


def test_a_feed_that_was_deleted_begins_again_with_a_question_that_comes_later() -> None:
    stage, _ = folded(log_of([round_of("q", FORECASTS), changed(delete=True), comes("other", move=1)]))

    assert list(stage.feeds.by_name) == ["f"]


def test_an_outcome_that_is_taken_back_from_a_feed_that_is_not_there_makes_none() -> None:
    stage, _ = folded(log_of([outcome("q", "open")]))

    assert not stage.feeds.by_name


def test_a_rebuild_of_everything_ends_the_feed_as_well() -> None:
    log = log_of([round_of("q", FORECASTS), *leaves("q"), round_of("other", FORECASTS, feed="g")])
    stage, _ = folded(log)
    stage.rebuild_all()

    folded([], stage, log)

    assert list(stage.feeds.by_name) == ["g"]

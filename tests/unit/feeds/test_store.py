"""What of a feed's state is written when."""

from collections.abc import Sequence

import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from tests.feed_histories import Changelog, carry_out_rebuilds, changed, expert, folded, log_of, round_of, stage

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
BEFORE: Sequence[FeedLogRecord] = [round_of("q1", FORECASTS), round_of("q2", FORECASTS), expert("eve", team="t")]


def forgets(who: str) -> tuple[FeedStage, list[bytes]]:
    """A stage that has just forgotten an expert, and the records that it writes then."""
    log = log_of([*BEFORE, expert(who, forget=True)])
    stage = FeedStage(topic="feed-log", partition=0)
    for record in log:
        stage.step(record, Effects())
        if record.offset == len(BEFORE) - 1:
            stage.snapshot()
    carry_out_rebuilds(stage, log)
    return stage, sorted(stage.snapshot().entries)


@pytest.mark.case("C22")
@pytest.mark.parametrize("who", ["dan", "eve"])
def test_a_record_that_named_a_forgotten_expert_is_written_twice_as_the_version_before_goes_with_the_first(
    who: str,
) -> None:
    stage, first = forgets(who)
    (later,) = log_of([round_of("q9", FORECASTS)], first=99)

    stage.step(later, Effects())
    second = stage.snapshot().entries
    stage.step(later._replace(offset=100), Effects())

    assert b"f/f" in first
    assert b"f/f" in second
    assert who.encode() not in b"".join(value or b"" for value in second.values())
    assert b"f/f" not in stage.snapshot().entries


@pytest.mark.case("C22")
def test_the_next_owner_scrubs_what_one_who_died_had_not() -> None:
    stage, _ = forgets("dan")
    heir = FeedStage(topic="feed-log", partition=0)

    stored = stage.snapshot()
    entries = {key: value for key, value in stored.entries.items() if value is not None}
    heir.load(stored.head, entries)

    assert b"f/f" in heir.snapshot().entries


@pytest.mark.parametrize("delete", [False, True])
def test_nothing_comes_back_of_a_feed_that_ended_twice_between_two_snapshots(delete: bool) -> None:
    end = changed(delete=delete, reset=not delete)
    log = log_of([round_of("q", FORECASTS), end, round_of("q", FORECASTS), end])
    changelog, feed_stage = Changelog(), stage()
    folded(log[:1], feed_stage)
    changelog.take(feed_stage)

    folded(log[1:], feed_stage)
    changelog.take(feed_stage)
    restored = changelog.restored()

    assert not any(feed.ledger.entries for feed in restored.feeds.by_name.values())
    assert sorted(changelog.entries) == ([] if delete else [b"f/f"])

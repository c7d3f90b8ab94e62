"""Entries that leave the ledger, the sums that stay, and audits that compare both."""

from typing import Any

import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from tests.feed_histories import Changelog, changed, expert, folded, log_of, outcome, round_of, stage, withdrawn

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}


def rounds(count: int) -> list[FeedLogRecord]:
    return [round_of(f"q{k:03d}", {**FORECASTS, "bob": (k % 9) / 10}) for k in range(count)]


def after_restart(events: list[FeedLogRecord], at: int, **defaults: Any) -> tuple[FeedStage, Effects]:
    changelog, log = Changelog(), log_of(events)
    first, _ = folded(log[:at], stage(**defaults))
    changelog.take(first)
    return folded(log[at:], changelog.restored(**defaults))


@pytest.mark.parametrize("at", [0, 15, 25, 31])
def test_a_question_leaves_the_ledger_in_its_time_and_the_sums_stay(at: int) -> None:
    """A record a second; a question without an outcome stays ten, one with an outcome five."""
    events = [*rounds(20), outcome("q019", 1), *rounds(32)[21:]]
    limits = {"ledger_for": "10s", "retract_for": "5s"}
    feed_stage, _ = after_restart(events, at, **limits)
    kept, _ = folded(log_of(events))

    ledger = feed_stage.feeds.feed("f").ledger
    assert sorted(ledger.entries) == [f"q{k:03d}" for k in range(22, 32)]
    assert len(ledger.expired) == 21
    assert feed_stage.feeds.feed("f").buckets.sums.equals(kept.feeds.feed("f").buckets.sums)
    assert feed_stage.agrees()


def test_news_that_come_too_late_change_nothing_and_are_counted() -> None:
    events = rounds(30)
    late: list[FeedLogRecord] = [
        outcome("q000", 1),
        round_of("q001", FORECASTS),
        withdrawn("q002"),
        outcome("never seen", 1),
    ]
    feed_stage, effects = after_restart([*events, *late], 30, ledger_for="10s")
    without, _ = folded(log_of(events), stage(ledger_for="10s"))

    assert effects.counts["too-late", ""] == 3
    assert feed_stage.feeds.feed("f").buckets.sums.equals(without.feeds.feed("f").buckets.sums)


@pytest.mark.parametrize("at", [0, 12, 29])
def test_there_are_at_most_so_many_questions_in_the_ledger_and_so_many_names_of_former_ones(at: int) -> None:
    feed_stage, _ = after_restart(rounds(30), at, ledger_max=8)
    ledger = feed_stage.feeds.feed("f").ledger

    assert len(ledger.entries) == 8 + 1  # what goes, goes when the next comes
    assert sorted(ledger.expired) == [f"q{k:03d}" for k in range(13, 21)]
    changelog = Changelog()
    changelog.take(feed_stage)
    assert feed_stage.agrees()


@pytest.mark.parametrize("news", [outcome("q000", "open"), withdrawn("q000"), round_of("q000", {"zed": 0.5})])
def test_news_about_a_question_whose_name_has_just_been_forgotten_leave_no_entry(news: FeedLogRecord) -> None:
    """The news come first and let the oldest names go, of which theirs is one; a restart must find the same ledger."""
    events = [expert("zed", excluded=True), *rounds(5), news]
    going_on, _ = folded(log_of(events), stage(ledger_max=2))
    changelog = Changelog()
    changelog.take(folded(log_of(events), stage(ledger_max=2))[0])

    assert sorted(going_on.feeds.feed("f").ledger.entries) == ["q003", "q004"]
    assert sorted(changelog.restored(ledger_max=2).feeds.feed("f").ledger.entries) == ["q003", "q004"]


def test_a_shorter_limit_counts_from_its_place_on() -> None:
    from tests.feed_histories import settings

    events = [*rounds(10), settings({"defaults": {"ledger_for": "3s"}}), round_of("new", FORECASTS)]
    feed_stage, _ = folded(log_of(events))

    assert sorted(feed_stage.feeds.feed("f").ledger.entries) == ["new", "q009"]


def test_an_audit_looks_at_every_entry_once_in_pieces_of_bounded_length(monkeypatch: pytest.MonkeyPatch) -> None:
    feed_stage, _ = folded(log_of(rounds(100)))
    looked_at: list[int] = []

    def noted(entry: Any, method: Any) -> Any:
        looked_at.append(entry.ordinal)
        return contribution(entry, method)

    monkeypatch.setattr("stream_peer.feeds.feed.contribution", noted)
    lengths: list[int] = []
    for _ in feed_stage.audit():
        lengths.append(len(looked_at) - sum(lengths))

    assert sorted(looked_at) == list(range(100))
    assert max(lengths) <= 32
    assert not feed_stage.needs_rebuild


def test_sums_may_be_counted_after_loading_in_pieces_and_are_the_same() -> None:
    first, _ = folded(log_of(rounds(100)), stage())
    changelog = Changelog()
    changelog.take(first)
    later = FeedStage(topic="feed-log", partition=0, secret=b"secret")
    later.load(changelog.head, changelog.entries)

    pieces = len(list(later.recount()))

    assert pieces == 4 + 1  # the ledger, and what is to be said of the feed
    assert later.feeds.feed("f").buckets.sums.equals(first.feeds.feed("f").buckets.sums)
    assert later.agrees()
    assert list(later.recount()) == []


def test_an_audit_agrees_though_buckets_go_out_of_memory_while_it_goes_on() -> None:
    feed_stage, log = stage(memory=1), log_of(rounds(150))
    folded(log[:100], feed_stage)

    audit = feed_stage.audit()
    next(audit)
    folded(log[100:], feed_stage)
    for _ in audit:
        pass

    assert not feed_stage.needs_rebuild


def test_an_audit_asks_for_no_rebuild_of_a_feed_that_is_reset_while_it_goes_on() -> None:
    feed_stage, log = stage(), log_of([*rounds(100), changed(reset=True), *rounds(5)])
    folded(log[:100], feed_stage)

    audit = feed_stage.audit()
    next(audit)
    folded(log[100:], feed_stage)
    for _ in audit:
        pass

    assert sorted(feed_stage.feeds.feed("f").ledger.entries) == [f"q{number:03d}" for number in range(5)]
    assert not feed_stage.needs_rebuild


@pytest.mark.parametrize("vote_rule", ["half", "own-median"])
def test_experts_who_come_after_questions_have_left_the_ledger_are_in_the_state_that_is_stored(vote_rule: str) -> None:
    limits = {"ledger_for": "2s", "vote_rule": vote_rule}
    newcomers = {f"x{number}": 0.4 for number in range(40)}
    log, changelog = log_of([*rounds(5), round_of("q5", newcomers), round_of("q6", newcomers)]), Changelog()
    straight, _ = folded(log, stage(**limits))
    feed_stage = stage(**limits)

    for record in log:
        folded([record], feed_stage)
        changelog.take(feed_stage)
        feed_stage = changelog.restored(**limits)

    assert feed_stage.feeds.feed("f").buckets.sums.equals(straight.feeds.feed("f").buckets.sums)
    assert feed_stage.feeds.feed("f").encode() == straight.feeds.feed("f").encode()

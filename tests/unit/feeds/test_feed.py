import numpy as np
import pytest

from stream_peer.feeds.facts import score
from stream_peer.feeds.feed import Feed, PathState
from stream_peer.feeds.feed_reading import read, scoring_inputs, trust_of
from stream_peer.settings.feed.model import FeedSettings


def feed_with_a_round(names: list[str]) -> Feed:
    feed = Feed("f", FeedSettings(), "hash", b"secret")
    places = feed.places(names)
    forecasts = np.linspace(0.1, 0.8, len(names))
    entry = feed.take_in("q")
    entry.put(score(1, places, forecasts, scoring_inputs(feed, read(feed), places, "q", 1), feed.method))
    feed.put_in(entry)
    return feed


def listed(feed: Feed) -> list[str]:
    return [feed.roster.experts[place] for place in feed.roster.listed(feed.buckets.sums)]


def state_of(feed: Feed) -> str:
    return trust_of(feed, read(feed)).state


def test_experts_keep_their_places_and_are_listed_by_id() -> None:
    feed = feed_with_a_round(["m", "z"])

    assert feed.places(["a", "z", "m"]).tolist() == [2, 1, 0]
    assert [
        feed.roster.experts[place] for place in feed.roster.listed(feed.buckets.sums)
    ] == []  # two voters are too few to count

    feed = feed_with_a_round(["m", "x", "z"])
    feed.places(["a"])
    assert listed(feed) == ["m", "x", "z"]


def test_a_question_that_was_taken_out_left_no_trace() -> None:
    feed = feed_with_a_round(["a", "b", "c"])
    before = read(feed).rates

    feed.take_out(feed.ledger.entries["q"])

    assert feed.buckets.sums.is_zero()
    assert read(feed).rates != before
    assert read(feed).rates.estimate.effective_questions == 0.0


def test_a_restored_feed_reads_the_same() -> None:
    feed = feed_with_a_round(["a", "b", "c"])
    feed.path_state = PathState(5, 77, "ok", 0.25, 3)
    again = Feed("f", FeedSettings(min_experts=2), "hash", b"secret")

    again.take_up(feed.encode(), feed.path_state, feed.ledger.entries)
    for _ in again.recount():
        pass

    assert again.buckets.sums.equals(feed.buckets.sums)
    assert again.settings.min_experts == 3
    assert read(again).rates == read(feed).rates
    assert again.roster.experts == feed.roster.experts
    assert again.path_state == feed.path_state
    assert again.has_rounds()


def test_the_mean_number_of_voters_decides_over_evidence() -> None:
    assert state_of(feed_with_a_round(["a", "b"])) == "low-evidence"
    assert state_of(feed_with_a_round(["a", "b", "c", "d"])) == "warming-up"


@pytest.mark.parametrize("weight", [1.0, 0.35, 0.3, 0.1, 0.001])
def test_just_enough_voters_are_enough_whatever_the_weight_of_questions(weight: float) -> None:
    feed = feed_with_a_round(["a", "b", "c"])
    entry = feed.ledger.entries["q"]
    feed.take_out(entry)
    entry.weight = weight
    feed.put_in(entry)

    assert state_of(feed) == "warming-up"


def test_experts_seen_are_those_with_questions_that_count_and_those_present() -> None:
    feed = feed_with_a_round(["m", "x", "z"])

    assert feed.roster.n_seen(feed.places([]), feed.buckets.sums) == 3
    assert feed.roster.n_seen(feed.places(["a", "x"]), feed.buckets.sums) == 4
    assert feed.roster.n_seen(feed.places(["a", "b", "c", "d", "z"]), feed.buckets.sums) == 7


def test_the_net_reads_the_sums_of_the_feed() -> None:
    feed = feed_with_a_round(["a", "b", "c"])
    entry = feed.ledger.entries["q"]
    feed.take_out(entry)
    entry.evidence = 1
    feed.put_in(entry)

    difference, square = read(feed).net_sums()

    assert square == pytest.approx(difference**2, abs=1e-9)

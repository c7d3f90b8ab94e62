import numpy as np
import pytest

from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.reading.reading import StaleReadingError
from tests.unit.feeds.test_feed import feed_with_a_round


def test_a_feed_is_read_once_for_each_change_of_its_sums() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d"])

    first = read(feed)
    assert read(feed) is first

    feed.take_out(feed.ledger.entries["q"])
    assert read(feed) is not first


def test_a_reading_refuses_to_look_into_sums_that_have_moved_on() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d"])
    before, experts = read(feed), feed.roster.listed(feed.blocks.sums)

    feed.take_out(feed.ledger.entries["q"])

    for late in (lambda: before.columns(experts), lambda: before.learnt(experts), lambda: before.extent(4)):
        with pytest.raises(StaleReadingError):
            late()


def test_what_was_taken_out_and_put_in_again_reads_the_same() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d"])
    before = read(feed)
    columns = before.columns(feed.roster.listed(feed.blocks.sums))

    entry = feed.ledger.entries["q"]
    feed.take_out(entry)
    feed.put_in(contribution(entry, feed.method), entry)

    after = read(feed)
    assert after.all_rates == before.all_rates
    assert (after.mixing, after.ranks) == (before.mixing, before.ranks)
    assert after.dependence.found == before.dependence.found
    assert np.array_equal(after.columns(feed.roster.listed(feed.blocks.sums)), columns)


def test_after_a_reset_nothing_is_known_of_how_outcomes_rank_experts() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d", "e", "f", "g", "h"])
    entry = feed.ledger.entries["q"]
    feed.take_out(entry)
    entry.evidence, entry.weight = 1, 20.0
    feed.put_in(contribution(entry, feed.method), entry)
    assert read(feed).ranks is not None

    feed.reset()

    assert read(feed).ranks is None

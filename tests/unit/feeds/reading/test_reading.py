from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.reading.reading import StaleReadingError
from stream_peer.log.stage import Effects
from tests.feed_histories import log_of, round_of, stage
from tests.unit.feeds.test_feed import feed_with_a_round


def test_a_feed_is_read_once_for_each_change_of_its_sums() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d"])

    first = read(feed)
    assert read(feed) is first

    feed.take_out(feed.ledger.entries["q"])
    assert read(feed) is not first


def test_a_reading_refuses_to_look_into_sums_that_have_moved_on() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d"])
    before, experts = read(feed), feed.roster.listed(feed.buckets.sums)

    feed.take_out(feed.ledger.entries["q"])

    for late in (lambda: before.columns(experts), lambda: before.learnt(experts), lambda: before.extent(4)):
        with pytest.raises(StaleReadingError):
            late()


def test_what_was_taken_out_and_put_in_again_reads_the_same() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d"])
    before = read(feed)
    columns = before.columns(feed.roster.listed(feed.buckets.sums))

    entry = feed.ledger.entries["q"]
    feed.take_out(entry)
    feed.put_in(entry)

    after = read(feed)
    assert after.all_rates == before.all_rates
    assert (after.mixing, after.ranks) == (before.mixing, before.ranks)
    assert after.dependence.found == before.dependence.found
    assert np.array_equal(after.columns(feed.roster.listed(feed.buckets.sums)), columns)


def test_after_a_reset_nothing_is_known_of_how_outcomes_rank_experts() -> None:
    feed = feed_with_a_round(["a", "b", "c", "d", "e", "f", "g", "h"])
    entry = feed.ledger.entries["q"]
    feed.take_out(entry)
    entry.evidence, entry.weight = 1, 20.0
    feed.put_in(entry)
    assert read(feed).ranks is not None

    feed.reset()

    assert read(feed).ranks is None


@pytest.mark.parametrize("weight", [0.25, 4.0])
def test_a_weight_that_all_questions_have_is_no_evidence(weight: float) -> None:
    random = np.random.default_rng(3)
    said = [{f"e{k}": 0.75 if random.random() < 0.67 else 0.25 for k in range(5)} for _ in range(60)]
    said = [{e: 1.0 - p for e, p in one.items()} if number % 2 else one for number, one in enumerate(said)]

    found, as_ever = ([*_agreements(said, each)] for each in (weight, 1.0))

    assert any(0.1 < evidence < 0.9 for evidence in as_ever)
    assert found == pytest.approx(as_ever, abs=1e-9)


def _agreements(said: Sequence[Mapping[str, float]], weight: float) -> Iterator[float]:
    """How sure it is after each question that votes agree more than by chance."""
    fast = stage(method_version=2)
    for record in log_of([round_of(f"q{number}", one, weight=weight) for number, one in enumerate(said)]):
        fast.step(record, Effects())
        yield read(fast.feeds.feed("f")).agreement

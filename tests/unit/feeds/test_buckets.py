import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.buckets import Buckets
from stream_peer.feeds.columns import FEED, UNIT
from stream_peer.feeds.sums import BINS
from stream_peer.numerics.arguments import unchecked
from stream_peer.numerics.error_rates.forgetting import bucket_factors
from tests.feed_histories import Changelog, folded, log_of, newest, outcome, round_of, settings, stage

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
QUESTIONS = FEED.at("questions")


def rounds(count: int) -> list[FeedLogRecord]:
    return [round_of(f"q{k:03d}", {**FORECASTS, "bob": (k % 9) / 10}) for k in range(count)]


def test_without_memory_all_questions_count_alike() -> None:
    feed_stage, _ = folded(log_of(rounds(40)))

    assert feed_stage.feeds.feed("f").buckets.sums.feed[QUESTIONS] * UNIT == 40


def test_buckets_count_by_their_age_and_not_at_all_beyond_five_memories() -> None:
    feed_stage, _ = folded(log_of(rounds(100)), stage(memory=8))
    feed = feed_stage.feeds.feed("f")

    ages = np.arange(99, -1, -1)
    expected = np.where(ages <= 40, (7 / 8) ** ages, 0.0).sum()
    assert feed.buckets.sums.feed[QUESTIONS] * UNIT == pytest.approx(expected, abs=1e-9)
    assert len(feed.buckets.by_number) <= 42
    assert feed_stage.agrees()


@pytest.mark.parametrize("at", [1, 7, 30, 59])
def test_memory_survives_restarts_corrections_and_expiry_bit_for_bit(at: int) -> None:
    events = [
        *rounds(50),
        *(outcome(f"q{k:03d}", 1 if k % 2 else 0) for k in range(40, 50)),
        outcome("q041", "open"),
        *rounds(60)[50:],
    ]
    options = {"memory": 20, "ledger_for": "30s", "retract_for": "20s"}
    log = log_of(events)
    whole, _ = folded(log, stage(**options))
    changelog = Changelog()
    first, _ = folded(log[:at], stage(**options))
    changelog.take(first)
    again, _ = folded(log[at:], changelog.restored(**options))

    assert again.views() == whole.views()
    assert again.feeds.feed("f").buckets.equals(whole.feeds.feed("f").buckets)
    assert again.agrees()


def test_memory_that_is_set_in_mid_stream_is_as_if_it_had_been_there_from_the_start() -> None:
    document = {"defaults": {"memory": 10}}
    feed_stage, effects = folded(log_of([*rounds(30), settings(document)]))
    from_the_start, _ = folded(log_of([*rounds(30), settings(document)]), stage(memory=10))

    assert feed_stage.feeds.feed("f").buckets.equals(from_the_start.feeds.feed("f").buckets)
    assert newest(effects.outputs, topics.WEIGHTS)["f"]["certificate"] is None


def test_buckets_of_zeros_are_as_good_as_none() -> None:
    one, two = Buckets(10), Buckets(10)
    one.reserve(5)

    assert one.equals(two)
    assert one.is_zero()
    assert one.to_bytes(5) == b""


@pytest.mark.parametrize("some", [[2], [3, 0, 1, 2]])
def test_histograms_of_few_or_many_experts_are_the_weighted_sum_of_those_of_the_buckets(some: list[int]) -> None:
    feed_stage, _ = folded(log_of(rounds(60)), stage(memory=20, vote_rule="own-median"))
    feed = feed_stage.feeds.feed("f")
    for number in range(12):  # a few of many
        feed.places([f"newcomer {number}"])

    found = feed.buckets.sums.read_histograms(np.array(some, np.int32))

    wanted = np.zeros((4, BINS))
    for number, bucket in sorted(feed.buckets.by_number.items()):
        factor = unchecked(bucket_factors)(np.array([number]), max(feed.buckets.by_number), 20)[0]
        wanted += factor * bucket.all_histograms()[:4]
    assert found.tolist() == np.rint(wanted)[some].tolist()
    assert found.any()

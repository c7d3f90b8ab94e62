import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.feeds.columns import SCALE
from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.medians import EDGES, LEAST_HISTORY, binned, own_medians, uninformative
from stream_peer.feeds.sums import BINS
from stream_peer.log.stage import Effects
from stream_peer.numerics.arguments import IntArray
from tests.feed_histories import folded, log_of, newest, outcome, round_of, stage

probabilities = st.floats(0.0, 1.0)


def histogram(forecasts: list[float]) -> IntArray:
    counts = np.zeros((1, BINS), np.int64)
    put = binned(np.zeros(len(forecasts), np.int32), np.array(forecasts), int(SCALE))
    np.add.at(counts.reshape(-1), put.cells, put.amount)
    return counts


@given(st.lists(probabilities, min_size=10, max_size=60))
def test_the_median_is_off_by_less_than_a_bin(forecasts: list[float]) -> None:
    ordered = sorted(forecasts)
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]

    threshold = own_medians(histogram(forecasts)).thresholds[0]

    assert lower - 1 / 64 <= threshold <= upper + 1 / 64


def test_half_of_evenly_spread_forecasts_lie_on_either_side() -> None:
    forecasts = ((np.arange(1000) + 0.5) / 1000 * 0.2 + 0.05).tolist()

    assert own_medians(histogram(forecasts)).thresholds[0] == pytest.approx(0.15, abs=0.001)


@pytest.mark.parametrize(("questions", "threshold"), [(0, 0.5), (9, 0.5), (10, 0.25 + 0.5 / 64)])
def test_an_expert_with_little_history_votes_at_one_half(questions: int, threshold: float) -> None:
    assert LEAST_HISTORY == 10
    assert own_medians(histogram([0.25] * questions)).thresholds[0] == threshold


def test_forecasts_of_zero_and_one_have_bins() -> None:
    assert binned(np.array([2, 3], np.int32), np.array([0.0, 1.0]), 7).cells.tolist() == [2 * BINS, 4 * BINS - 1]


def test_many_experts_have_the_medians_that_each_has_alone() -> None:
    histograms = np.random.default_rng(7).integers(0, 3, (2500, BINS)) * int(SCALE)

    together, alone = own_medians(histograms), [own_medians(row[np.newaxis]) for row in histograms]

    assert together.thresholds.tolist() == [one.thresholds[0] for one in alone]
    assert together.steady.tolist() == [one.steady[0] for one in alone]


def test_bins_are_of_a_64th_and_finer_towards_both_ends() -> None:
    assert len(EDGES) == BINS + 1
    assert (EDGES + EDGES[::-1] == 1.0).all()
    assert np.diff(EDGES).max() == 1 / 64
    assert set((EDGES[2:18] / EDGES[1:17]).round(4)) == {1.3333, 1.5}
    assert np.diff(EDGES).min() > 0.0


def test_an_expert_is_steady_with_three_quarters_of_its_history_in_the_bin_of_its_median() -> None:
    three_quarters = own_medians(histogram([0.2] * 9 + [0.6] * 3))
    less = own_medians(histogram([0.2] * 8 + [0.6] * 3))
    little = own_medians(histogram([0.2] * 9))

    assert [medians.steady[0] for medians in (three_quarters, less, little)] == [27, -1, -1]
    forecasts = np.array([0.195, 0.2, 0.21, 0.6])
    lines = [three_quarters.lines(np.array([p]))[0] for p in forecasts]
    assert lines == [0.195, 0.2, three_quarters.thresholds[0], three_quarters.thresholds[0]]


@pytest.mark.parametrize("level", [0.001, 0.004, 0.012, 0.99, 0.998])
def test_a_pool_whose_skill_lies_below_a_64th_keeps_its_votes(level: float) -> None:
    """Experts who tell rare outcomes apart by a factor of three, all of it within the first 64th or the last."""
    rng = np.random.default_rng(1)
    rarity = min(level, 1.0 - level)
    odds = np.exp(0.55 * rng.standard_normal(400))
    rare = np.minimum(rarity * odds, 1.0 / 64.0)
    forecasts = rare if level < 0.5 else 1.0 - rare
    medians = own_medians(histogram(forecasts[:300].tolist()))

    later = forecasts[300:]
    votes = np.sign(later - np.concatenate([medians.lines(np.array([p])) for p in later]))

    assert np.count_nonzero(votes) == 100
    assert 35 < np.count_nonzero(votes > 0) < 65


def test_a_constant_forecaster_has_no_part_in_the_answer_of_others() -> None:
    """It lies beside its own median, which is known to a bin only, and would vote the same way for ever."""
    before = [
        round_of(f"q{k}", {**{name: (0.1, 0.3)[(k + place) % 2] for place, name in enumerate("abc")}, "base": 0.2})
        for k in range(10)
    ]
    feed_stage, _ = folded(log_of(before), stage(vote_rule="own-median", min_experts=3))
    effects = Effects()

    last = round_of("last", {"a": 0.9, "b": 0.05, "c": 0.15, "base": 0.2})
    feed_stage.step(log_of([last], len(before))[0], effects)

    answers = {
        expert["id"]: expert["reference_answer"]
        for expert in newest(effects.outputs, topics.PEER_LOSSES)["last"]["experts"]
    }
    assert answers["a"] == 0


def test_an_expert_that_never_says_anything_else_is_marked_in_the_weights() -> None:
    rounds = [round_of(f"q{k}", {"a": 0.1 + 0.07 * (k % 4), "base": 0.2, "b": 0.3 + 0.1 * (k % 3)}) for k in range(20)]
    feed_stage, _ = folded(log_of(rounds), stage(vote_rule="auto"))

    marked = {expert.id: expert.uninformative for expert in feed_stage.views()["f"].weights.experts}

    assert marked == {"a": msgspec.UNSET, "b": msgspec.UNSET, "base": True}


@pytest.mark.parametrize("resolved", [0, 15, 20])
@pytest.mark.parametrize("options", [{}, {"memory": 64}, {"loss": "log"}, {"vote_rule": "own-median"}])
def test_who_always_says_the_same_is_found_whatever_became_of_the_questions(
    resolved: int, options: dict[str, object]
) -> None:
    """Narrow and wide bins, two neighbouring ones, questions of little weight; histograms of all experts decide."""
    said = {
        "one": (0.2, 0.2),
        "bin": (0.501, 0.515),
        "narrow": (0.0003, 0.00035),
        "next": (0.499, 0.501),
        "far": (0, 1),
    }
    rounds = [
        round_of(f"q{k:02d}", {name: either[k % 2] for name, either in said.items()}, weight=(1.0, 0.01)[k % 5 == 0])
        for k in range(20)
    ]
    outcomes = [outcome(f"q{k:02d}", 1 if k % 2 else 0) for k in range(resolved)]
    feed_stage, _ = folded(log_of([*rounds, *outcomes]), stage(**{"vote_rule": "auto", **options}))
    feed = feed_stage.feeds.feed("f")

    marked = {row.id for row in feed_stage.views()["f"].weights.experts if row.uninformative is True}

    listed = feed.roster.listed(feed.buckets.sums)
    same = uninformative(read(feed).histograms(listed)).tolist()
    assert marked == {feed.roster.experts[place] for place, always in zip(listed.tolist(), same, strict=True) if always}
    assert marked == {"one", "bin", "narrow"}

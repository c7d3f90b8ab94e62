"""How many series feeds have, what is kept between scrapes, and when counters of feeds end."""

import math

import pytest
from msgspec.structs import replace

from stream_peer.feeds.scored import scored_kind
from stream_peer.feeds.views import FeedView
from stream_peer.log.stage import Effects
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.metrics.feeds import MOST_SERIES, TopExperts
from tests.unit.serve.metrics.scraping import FeedsOnly, metrics_of, of, series, view
from tests.unit.tools.report.sample_history import weights


def crowd(n_experts: int) -> dict[str, float]:
    """Shares of so many experts, each another one."""
    total = n_experts * (n_experts + 1) / 2
    return {f"e{number:04d}": (number + 1) / total for number in range(n_experts)}


def feeds(count: int, n_experts: int, *, top_experts: int = 20) -> dict[str, FeedView]:
    return {
        f"f{number:03d}": view(weights(1, crowd(n_experts), feed=f"f{number:03d}"), top_experts=top_experts)
        for number in range(count)
    }


def of_feeds(metrics: Metrics) -> int:
    return sum("feed" in dict(labels) for _, labels in series(metrics))


@pytest.mark.parametrize(("count", "top_experts"), [(1, 20), (1, 5000), (10, 100), (50, 20), (300, 20)])
def test_feeds_have_a_bounded_number_of_series_and_each_that_is_shown_sums_to_one(count: int, top_experts: int) -> None:
    metrics = metrics_of(feeds(count, 200, top_experts=top_experts))

    assert of_feeds(metrics) <= MOST_SERIES
    sums: dict[tuple[str, str], list[float]] = {}
    for labels, value in of(metrics, "expert_weight"):
        sums.setdefault((labels["feed"], labels["kind"]), []).append(value)
    assert {key: round(math.fsum(values), 9) for key, values in sums.items()} == dict.fromkeys(sums, 1.0)
    ((_, left_out),) = of(metrics, "feeds_not_shown")
    assert len(sums) / 2 + left_out == count


def test_experts_have_less_room_the_more_feeds_there_are_and_feeds_come_first() -> None:
    def experts(count: int) -> int:
        found = of(metrics_of(feeds(count, 200)), "expert_coverage_ratio")
        return sum(labels["feed"] == "f000" for labels, _ in found)

    assert experts(1) == 20
    assert 20 > experts(50) > 3
    assert experts(300) >= 1
    ((_, left_out),) = of(metrics_of(feeds(300, 200)), "feeds_not_shown")
    assert 200 <= left_out < 260


def test_what_did_not_change_is_not_read_again() -> None:
    shown = view(weights(1, crowd(50)))
    stage = FeedsOnly({"f": shown})
    metrics = Metrics()
    metrics.owned("feed", 0, stage)
    before = series(metrics)
    shown.weights.experts.clear()  # whoever reads it again sees nobody

    assert series(metrics).keys() >= {key for key in before if key[0].startswith("expert_")}
    stage.newest["f"] = view(weights(2, {"a": 1.0}))
    assert {labels["expert"] for labels, _ in of(metrics, "expert_weight")} == {"a"}


def happened(metrics: Metrics, partition: int, **counts: int) -> None:
    effects = Effects()
    effects.of_feeds.update({("f", kind): count for kind, count in counts.items()})
    metrics.folded("feed", partition, 1, 0.1, effects)


def test_counters_of_a_feed_begin_at_zero_with_its_owner_and_end_with_the_feed() -> None:
    stage, metrics = FeedsOnly({"f": view(weights(1, {"a": 1.0}))}), Metrics()
    metrics.owned("feed", 3, stage)

    def counts(name: str) -> dict[str, float]:
        return {labels["kind"]: value for labels, value in of(metrics, name)}

    assert counts("feed_rounds_total") == {"scored": 0.0, "low-evidence": 0.0}
    happened(metrics, 3, scored=4, revealed=2)
    happened(metrics, 3, scored=1, annulled=1)
    assert counts("feed_rounds_total") == {"scored": 5.0, "low-evidence": 0.0}
    assert counts("feed_outcomes_total") == {"revealed": 2.0, "revised": 0.0, "annulled": 1.0}

    gone = stage.newest.pop("f")
    assert counts("feed_rounds_total") == {}
    stage.newest["f"] = gone
    assert counts("feed_rounds_total") == {"scored": 0.0, "low-evidence": 0.0}
    happened(metrics, 3, scored=1)
    metrics.released("feed", 3)
    assert counts("feed_rounds_total") == {}
    metrics.owned("feed", 3, stage)
    assert counts("feed_rounds_total")["scored"] == 0.0


def test_scored_forecasts_are_counted_in_twenty_series_that_begin_at_zero() -> None:
    metrics = metrics_of({"f": view(weights(1, {"a": 1.0}))})
    assert [value for _, value in of(metrics, "feed_scored_total")] == [0.0] * 20

    happened(metrics, 0, **{scored_kind("0.9-1.0", 1): 3, scored_kind("0.9-1.0", 0): 1})

    counts = {(labels["forecast"], labels["outcome"]): n for labels, n in of(metrics, "feed_scored_total") if n}
    assert counts == {("0.9-1.0", "1"): 3.0, ("0.9-1.0", "0"): 1.0}


def test_losses_of_an_expert_have_series_as_far_as_they_are_known() -> None:
    newest = weights(1, {"ann": 0.5, "bob": 0.5})
    ann, bob = newest.experts
    experts = [replace(ann, peer_loss=0.2, outcome_loss=None), replace(bob, peer_loss=0.3, outcome_loss=0.25)]
    metrics = metrics_of({"f": view(replace(newest, experts=experts))})

    assert {labels["expert"]: loss for labels, loss in of(metrics, "expert_peer_loss")} == {"ann": 0.2, "bob": 0.3}
    assert {labels["expert"]: loss for labels, loss in of(metrics, "expert_outcome_loss")} == {"bob": 0.25}


def chosen(top: TopExperts, mix: dict[str, float], count: int = 2) -> list[str]:
    leading = sorted(weights(1, mix).experts, key=lambda expert: -expert.mix)
    return [expert.id for expert in top.choose(leading, count)]


def test_an_expert_at_the_edge_of_the_top_keeps_its_series() -> None:
    top = TopExperts()
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}) == ["a", "b"]
    assert chosen(top, {"a": 0.4, "b": 0.24, "c": 0.26, "d": 0.1}) == ["a", "b"]
    assert chosen(top, {"a": 0.4, "b": 0.1, "c": 0.3, "d": 0.2}) == ["a", "c"]


def test_no_more_are_shown_than_there_is_room_for() -> None:
    top = TopExperts()
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, 3) == ["a", "b", "c"]
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, 1) == ["a"]
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, 0) == []

import math

import msgspec
import pytest

from stream_peer.events.outputs import (
    Certificate,
    DriftedExpert,
    DriftedRate,
    Drifting,
    ExpertGroup,
    ShadowScores,
)
from stream_peer.events.rejections import Reason
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Effects, Output
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.metrics.senders import MOST_FEEDS, MOST_LABELS, UnknownField, UnusedInput
from tests.unit.serve.metrics.scraping import FeedsOnly, metrics_of, of, series, view
from tests.unit.tools.report.sample_history import HOSTILE, rate, weights


def test_metrics_are_an_observer_of_the_engine() -> None:
    observer: Observer = Metrics()
    observer.polled(0.1)


def test_each_kind_of_weight_sums_to_one_over_a_feed_however_many_experts_it_has() -> None:
    shares = {f"e{number:05d}": 2 * (number + 1) / (10_000 * 10_001) for number in range(10_000)}
    metrics = metrics_of({"big": view(weights(1, shares, feed="big"), top_experts=5)})

    found = list(of(metrics, "expert_weight"))

    assert len(found) == 2 * (5 + 1)
    for kind in ("mix", "select"):
        assert math.fsum(value for labels, value in found if labels["kind"] == kind) == pytest.approx(1.0)


def test_error_rates_have_a_series_a_class_and_an_interval() -> None:
    metrics = metrics_of({"f": view(weights(1, {"a": 1.0}))})

    assert {labels["class"]: value for labels, value in of(metrics, "reference_error_ratio")} == {
        "zero": 0.11,
        "one": 0.15,
    }
    assert next(of(metrics, "reference_error_low_ratio")) == ({"feed": "f"}, 0.08)
    assert next(of(metrics, "reference_error_high_ratio")) == ({"feed": "f"}, 0.2)


def test_what_is_not_known_has_no_series() -> None:
    metrics = metrics_of({"f": view(weights(1, {"a": 1.0}, error_rate=rate(measured=None)))})
    assert list(of(metrics, "certificate_regret")) == []
    assert list(of(metrics, "reference_error_measured_ratio")) == []

    bound = Certificate(regret_at_most=41.2, confidence=0.95)
    metrics = metrics_of({"f": view(weights(1, {"a": 1.0}, certificate=bound))})
    assert list(of(metrics, "certificate_regret")) == [({"feed": "f"}, 41.2)]


def test_trust_has_one_series_a_state_and_one_of_them_is_one() -> None:
    states = {labels["state"]: value for labels, value in of(metrics_of({"f": view(weights(1, {}))}), "trust_state")}
    assert len(states) == 6
    assert [state for state, value in states.items() if value] == ["ok"]


def test_what_speaks_against_a_feed_is_gauged_as_soon_as_it_is_known() -> None:
    shrunk = msgspec.structs.replace(weights(1, {"a": 1.0}), feed="shrunk", status="dependent", select_shrink=0.1)
    known = view(shrunk)._replace(dependence_z=4.5, rank_correlation=-0.3, mean_voters=5.5)
    metrics = metrics_of({"shrunk": known, "young": view(weights(1, {}))})

    found = {
        name: {labels["feed"]: value for labels, value in of(metrics, name)}
        for name in ("dependence_z", "loss_rank_correlation", "mean_voters", "select_shrink_ratio")
    }
    assert found == {
        "dependence_z": {"shrunk": 4.5},
        "loss_rank_correlation": {"shrunk": -0.3},
        "mean_voters": {"shrunk": 5.5},
        "select_shrink_ratio": {"shrunk": 0.1, "young": 0.0},
    }


def test_drift_is_zero_in_a_steady_feed_and_has_its_size_and_direction_in_another() -> None:
    lapsed = DriftedExpert(id="a", before=0.9, now=0.6, since_questions=80, z=-5.5)
    rate_of_now = DriftedRate(before=0.3, now=0.1, since_questions=120, z=-6.25, by="agreement")
    drift = Drifting(error_rate=rate_of_now, n_experts=23, experts=[lapsed])
    drifting = msgspec.structs.replace(weights(1, {"a": 1.0}), feed="drifting", drift=drift)
    metrics = metrics_of({"drifting": view(drifting), "steady": view(weights(1, {"a": 1.0}))})

    assert {labels["feed"]: value for labels, value in of(metrics, "error_rate_drift_z")} == {
        "drifting": -6.25,
        "steady": 0.0,
    }
    assert {labels["feed"]: value for labels, value in of(metrics, "drifting_experts")} == {
        "drifting": 23.0,
        "steady": 0.0,
    }


def test_experts_in_groups_are_counted_each_once() -> None:
    copies = ExpertGroup(experts=["a", "b", "c"], kind="copies", agreement=0.98, expected=0.1, questions=200)
    follower = msgspec.structs.replace(copies, experts=["d"], kind="follower")
    grouped = msgspec.structs.replace(weights(1, {"a": 1.0}), feed="grouped", groups=[copies, follower])
    metrics = metrics_of({"grouped": view(grouped), "free": view(weights(1, {"a": 1.0}))})

    assert {labels["feed"]: value for labels, value in of(metrics, "grouped_experts")} == {"grouped": 4.0, "free": 0.0}


def test_a_shadow_has_its_score_beside_the_live_one_as_soon_as_an_outcome_is_known() -> None:
    known = ShadowScores(
        name="eager",
        questions=40.0,
        brier=0.15,
        live_brier=0.16,
        log_score=0.4,
        live_log_score=0.5,
        regret=-0.4,
        mix_brier=0.2,
        live_mix_brier=0.2,
    )
    fresh = msgspec.structs.replace(known, name="fresh", brier=None, live_brier=None, regret=0.0)
    metrics = metrics_of({"f": view(msgspec.structs.replace(weights(1, {"a": 1.0}), shadows=[known, fresh]))})

    scores = {(labels["shadow"], labels["forecast"]): value for labels, value in of(metrics, "shadow_brier")}
    assert scores == {("eager", "shadow"): 0.15, ("eager", "live"): 0.16}
    regrets = {labels["shadow"]: value for labels, value in of(metrics, "shadow_regret")}
    assert regrets == {"eager": -0.4, "fresh": 0.0}
    assert list(of(metrics_of({"f": view(weights(1, {"a": 1.0}))}), "shadow_regret")) == []


def test_gauges_of_a_released_partition_vanish_and_counters_stay() -> None:
    metrics = metrics_of({"f": view(weights(1, {"a": 1.0}))}, partition=3)
    metrics.owned("feed", 2, FeedsOnly({}))
    metrics.owned("question", 3, FeedsOnly({}))
    metrics.lag("feed", 3, 17, None)
    metrics.lag("feed", 2, 5, None)
    metrics.lag("question", 3, 4, None)
    metrics.folded("feed", 3, 12, 0.01, Effects())

    metrics.released("feed", 3)

    assert list(of(metrics, "expert_weight")) == []
    assert {(labels["topic"], labels["partition"]) for labels, _ in of(metrics, "lag_records")} == {
        ("feed-log", "2"),
        ("forecast-events", "3"),
    }
    assert list(of(metrics, "records_total")) == [({"stage": "feed"}, 12.0)]
    assert {labels["stage"]: value for labels, value in of(metrics, "owned_partitions")}["feed"] == 1


def test_a_rebuild_has_series_while_it_lasts_and_is_counted_when_it_ends() -> None:
    metrics = metrics_of({})
    metrics.rebuilding("feed", 3, 150, 200)
    during = {name: list(of(metrics, name)) for name in ("rebuild_done_ratio", "rebuild_remaining_records")}

    metrics.rebuilt("feed", 3)

    place = {"stage": "feed", "partition": "3"}
    assert during == {"rebuild_done_ratio": [(place, 0.75)], "rebuild_remaining_records": [(place, 50.0)]}
    assert list(of(metrics, "rebuild_done_ratio")) == list(of(metrics, "rebuild_remaining_records")) == []
    assert list(of(metrics, "rebuilds_total")) == [({"stage": "feed"}, 1.0)]


def test_a_rebuild_that_was_given_up_ends_with_its_partition() -> None:
    metrics = metrics_of({}, partition=3)
    metrics.rebuilding("feed", 3, 0, 0)

    metrics.released("feed", 3)

    assert list(of(metrics, "rebuild_done_ratio")) == []


def test_audits_are_counted_by_their_result() -> None:
    metrics = metrics_of({})
    for agrees in (True, True, False):
        metrics.audited("feed", agrees)

    counted = {labels["result"]: value for labels, value in of(metrics, "audits_total")}
    assert counted == {"agrees": 2.0, "differs": 1.0}


def test_every_reason_of_dead_letters_is_there_from_the_start() -> None:
    """Or else the first of a reason would begin a series at 1, which no rate and no increase ever shows."""
    counted = {labels["reason"]: value for labels, value in of(Metrics(), "dead_letters_total")}

    assert counted == dict.fromkeys(map(str, Reason), 0.0)


def test_effects_are_counted_by_result_reason_and_topic() -> None:
    effects = Effects()
    effects.counts.update(
        {
            ("event", "forecast"): 7,
            ("dead-letter", "not-json"): 2,
            ("duplicate", ""): 1,
            ("late", ""): 3,
            ("forecasts", ""): 12,
            ("round", "counts"): 4,
            ("published", ""): 1,
        }
    )
    effects.outputs.extend([Output("feed-log", b"f", b"{}", 0)] * 4)
    metrics = Metrics()

    metrics.folded("question", 0, 10, 0.004, effects)

    found = series(metrics)
    assert found["events_total", (("result", "accepted"), ("topic", "forecast-events"), ("type", "forecast"))] == 7
    assert found["events_total", (("result", "dead-letter"), ("topic", "forecast-events"), ("type", ""))] == 2
    assert found["events_total", (("result", "duplicate"), ("topic", "forecast-events"), ("type", ""))] == 1
    assert found["dead_letters_total", (("reason", "not-json"),)] == 2
    assert found["noted_total", (("what", "late"),)] == 3
    assert found["forecasts_total", ()] == 7 + 12
    assert found["rounds_total", (("result", "counts"),)] == 4
    assert found["weights_total", (("result", "published"),)] == 1
    assert found["outputs_total", (("topic", "feed-log"),)] == 4
    assert found["batch_seconds_count", (("stage", "question"),)] == 1


def test_what_was_not_used_is_known_by_feed_largest_first_of_a_bounded_number_of_feeds() -> None:
    metrics = Metrics()
    for number in range(MOST_FEEDS + 5):
        effects = Effects()
        effects.note(f"f{number}", "late", 1)
        metrics.folded("question", 3, 1, 0.1, effects)
    many = Effects()
    many.note("f7", "repeated", 4)
    many.of_feeds["f7", "scored"] = 9

    metrics.folded("question", 0, 1, 0.1, many)

    assert metrics.unused.largest(2) == [
        UnusedInput("f7", {"late": 1, "repeated": 4}),
        UnusedInput("f0", {"late": 1}),
    ]
    assert len(metrics.unused.largest(MOST_FEEDS + 5)) == MOST_FEEDS


def test_unknown_fields_are_counted_by_name_of_which_there_are_so_many_and_by_feed() -> None:
    metrics, effects = Metrics(), Effects()
    for number in range(MOST_LABELS + 10):
        effects.note_unknown("econ", "forecast", [f"x{number:03}"])
    effects.note_unknown("sport", "forecast", ["x000"])

    metrics.folded("question", 0, 1, 0.1, effects)

    counted = {labels["field"]: value for labels, value in of(metrics, "unknown_fields_total")}
    assert (len(counted), counted["forecast.x000"], counted["(others)"]) == (MOST_LABELS + 1, 2, 10)
    assert metrics.unknown_fields.largest(1) == [UnknownField("econ", "forecast.x000", 1)]


def test_lag_and_recovery_are_never_negative_and_recovery_ends_with_ownership() -> None:
    metrics = Metrics()
    metrics.owned("question", 0, FeedsOnly({}))
    metrics.lag("question", 0, -3, None)
    metrics.recovering("feed", 0, 200)
    assert [value for _, value in of(metrics, "lag_records")] == [0]
    assert [value for _, value in of(metrics, "recovery_remaining_records")] == [200]

    metrics.owned("feed", 0, FeedsOnly({}))

    assert list(of(metrics, "recovery_remaining_records")) == []


def test_an_expert_named_other_has_a_series_beside_that_of_the_others() -> None:
    metrics = metrics_of({"f": view(weights(1, {"other": 0.6, "a": 0.3, "b": 0.1}), top_experts=1)})
    found = [(labels["expert"], value) for labels, value in of(metrics, "expert_weight") if labels["kind"] == "mix"]
    assert found == [("\\other", 0.6), ("other", pytest.approx(0.4))]


def test_hostile_names_are_escaped_and_come_back_whole() -> None:
    name = HOSTILE + 'quote" back\\slash'
    metrics = metrics_of({"f": view(weights(1, {name: 1.0}))})
    assert {labels["expert"] for labels, _ in of(metrics, "expert_weight")} == {name}

"""What holds of every metric: units, suffixes, labels, help, and that the catalogue describes what is served."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from stream_peer.events.outputs import Certificate, ShadowScores
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.questions.stage import QuestionStage
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.metrics.catalogue import BY_NAME, PREFIX, Described, described
from tests.feed_histories import folded, log_of, outcome, round_of
from tests.unit.serve.metrics.scraping import FeedsOnly, view
from tests.unit.tools.report.sample_history import weights

BOUNDED = {
    *("feed", "expert", "kind", "class", "status", "term", "state", "forecast", "mixer", "shadow"),
    *("topic", "partition", "stage", "result", "type", "reason", "what", "hash", "version", "python", "field"),
    "outcome",
}
"""Labels whose values are few: a question is none of them."""

NAMED_AFTER_THEIR_LABEL = {
    *("expert_weight", "expert_coverage_ratio", "shadow_brier", "shadow_regret", "trust_state", "certificate_term"),
    *("reference_error_status", "feed_rounds_total", "feed_outcomes_total", "feed_questions"),
    *("expert_peer_loss", "expert_outcome_loss", "feed_scored_total"),
    *("feed_resolved_questions", "feed_updated_timestamp_seconds", "mixer_share_ratio"),
}
"""Metrics that are about what their label names: an expert's weight. No other name may say what a label says."""


class Well:
    """Health."""

    def live(self) -> tuple[bool, str]:
        return True, ""

    def ready(self) -> tuple[bool, str]:
        return True, ""


@cache
def busy() -> Metrics:
    """Metrics in which everything has happened."""
    metrics = Metrics(Well(), "0a1b2c3d")
    shadow = dict.fromkeys((field for field in ShadowScores.__struct_fields__ if field != "name"), 0.2)
    newest = msgspec.structs.replace(
        weights(1, {"a": 0.5, "b": 0.3, "c": 0.2}),
        certificate=Certificate(regret_at_most=40.0, confidence=0.95),
        shadows=[msgspec.convert({"name": "eager", **shadow}, ShadowScores)],
    )
    terms = {"estimate": 1.0, "noise": 36.0, "outcomes": 3.0}
    shown = view(newest, top_experts=2)._replace(
        certificate_terms=terms, brier={"mix": 0.1}, dependence_z=1.0, rank_correlation=0.5, mean_voters=3.0
    )
    metrics.owned("feed", 0, FeedsOnly({"f": shown._replace(ties=0.1, low_evidence=0.0, select_regret=2.0)}))
    scored, effects = folded(
        log_of([round_of("q", {"a": 0.9, "b": 0.8, "c": 0.3}, feed="g"), outcome("q", 1, feed="g")])
    )
    metrics.owned("feed", 1, scored)
    metrics.folded("feed", 1, 2, 0.01, effects)
    metrics.owned("question", 0, asked())
    for stage, partition in (("feed", 0), ("feed", 1), ("question", 0)):
        metrics.lag(stage, partition, 3, 1_000)
        metrics.stored(stage, partition, 10, 1_000)
        metrics.snapshotted(stage, partition, 5, 500, 0.01)
        metrics.rebuilding(stage, partition, 1, 2)
        metrics.audited(stage, agrees=True)
    metrics.recovering("feed", 2, 10)
    happen(metrics)
    return metrics


def happen(metrics: Metrics) -> None:
    effects = Effects()
    kinds = (
        ("dead-letter", "not-json"),
        ("unsigned", "event"),
        ("late", ""),
        ("published", ""),
        ("duplicate", ""),
        ("event", "forecast"),
    )
    effects.counts.update(dict.fromkeys(kinds, 1))
    effects.note_unknown("f", "forecast", ["x"])
    effects.outputs.append(Output("feed-log", b"f", b"{}", 0))
    metrics.folded("question", 0, 3, 0.01, effects)
    metrics.rebuilt("feed", 9)
    metrics.input_lost("acme-feed-log", 0, 2)
    metrics.polled(0.1)
    metrics.rebalanced()
    metrics.recovering("feed", 2, 10)
    metrics.retried(1)
    metrics.skewed(0.002)


def asked() -> QuestionStage:
    """A stage with an open question."""
    made = QuestionStage(topic="t", partition=0, partitions=1, feed_log_partitions=1)
    event = {
        "type": "question",
        "question_id": "q",
        "opens_at": "2026-01-01T00:00:00Z",
        "closes_at": "2027-01-01T00:00:00Z",
    }
    made.step(LogRecord(0, 1_767_225_600_000, b"q", msgspec.json.encode(event)), Effects())
    return made


def ours() -> Iterator[Metric]:
    return (family for family in busy().registry.collect() if family.name.startswith(PREFIX))


@pytest.mark.parametrize("metric", [pytest.param(metric, id=metric.name) for metric in described()])
def test_what_the_catalogue_describes_is_what_is_served(metric: Described) -> None:
    name = metric.full_name.removesuffix("_total")
    (family,) = (found for found in ours() if found.name == name)

    assert (family.type, family.documentation) == (metric.kind, metric.help)
    assert family.samples, "nothing makes it happen in this test"
    for sample in family.samples:
        assert set(sample.labels) - {"le"} == set(metric.labels)


def test_nothing_is_served_that_the_catalogue_does_not_describe() -> None:
    known = {metric.full_name.removesuffix("_total") for metric in described()}
    assert {family.name for family in ours()} == known
    foreign = {family.name for family in busy().registry.collect()} - known
    assert all(name.startswith(("process_", "python_gc_")) for name in foreign)


@pytest.mark.parametrize("metric", [pytest.param(metric, id=metric.name) for metric in described()])
def test_a_name_says_its_unit_and_whether_it_counts(metric: Described) -> None:
    words = metric.name.removesuffix("_total").split("_")
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not {"ms", "milliseconds", "minutes", "hours", "kb", "mb", "percent", "count", "by", "per"} & set(words)
    for unit in ("seconds", "bytes", "ratio", "info"):
        assert unit not in words[:-1]
    assert re.fullmatch(r"[a-z][a-z_]+[a-z]", metric.name)


@pytest.mark.parametrize("metric", [pytest.param(metric, id=metric.name) for metric in described()])
def test_labels_have_few_values_and_a_name_does_not_say_what_they_say(metric: Described) -> None:
    assert set(metric.labels) <= BOUNDED
    told = set(metric.labels) & set(metric.name.split("_"))
    assert bool(told) == (metric.name in NAMED_AFTER_THEIR_LABEL)


@pytest.mark.parametrize("metric", [pytest.param(metric, id=metric.name) for metric in described()])
def test_help_is_sentences(metric: Described) -> None:
    assert re.fullmatch(r"[A-Z0-9].{30,}\.", metric.help), metric.help
    assert "\n" not in metric.help


def test_histograms_are_few_and_so_are_their_buckets() -> None:
    found = [family for family in ours() if family.type == "histogram"]
    assert len(found) == 3
    for family in found:
        bounds = {sample.labels["le"] for sample in family.samples if "le" in sample.labels}
        assert 5 <= len(bounds) <= 14
        assert BY_NAME[family.name.removeprefix(PREFIX)].name.endswith(("_seconds", "_records"))


def test_infos_are_one_and_no_value_is_missing() -> None:
    for family in ours():
        for sample in family.samples:
            assert sample.value == sample.value, sample
            if family.name.endswith("_info"):
                assert sample.value == 1.0


def test_both_formats_are_well_formed() -> None:
    text = generate_latest(busy().registry).decode()
    assert "_created" not in text
    assert generate_openmetrics(busy().registry).decode().endswith("# EOF\n")  # type: ignore[no-untyped-call]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (package prometheus) is not installed")
def test_promtool_finds_nothing_to_complain_about() -> None:
    command = ["promtool", "check", "metrics"]
    text = generate_latest(busy().registry)
    run = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)
    assert (run.returncode, (run.stdout + run.stderr).decode()) == (0, "")

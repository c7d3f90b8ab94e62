"""Every series of a feed against a slow twin that computes it anew from what was published: real and made histories."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, Verdict, read_feed_log
from stream_peer.events.outputs import Weights
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.draws import draw, feed_seed
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.pages.status import TOP_EXPERTS, FeedStatus, StatusView, status_page
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.feed_histories import Changelog, carry_out_rebuilds, log_of, newest, outcome, round_of, stage, withdrawn
from tests.slow_gauges import SlowGauges
from tests.unit.serve.metrics.scraping import Series, series

RECORDS = (topics.WEIGHTS, topics.ERROR_RATES, *topics.KEYED_BY_QUESTION)
LINES = 3_000
"""Of a file of events; more would take longer and say no more."""
LOOSE = {"dependence_z": 1e-5, "mean_voters": 5.1e-4}
"""A difference of nearly equal numbers over its deviation; and what is rounded to three decimals."""


def subsample_of(feed: str, question: str) -> int:
    return int(25 * draw(feed_seed(b"secret", feed), feed, question, 0, "block"))


class Both:
    """A feed stage with the metrics of its worker, and the twin of one of its feeds."""

    def __init__(self, feed: str = "f", **defaults: object) -> None:
        self.feed, self.defaults = feed, {"vote_rule": "half", **defaults}
        self.stage = stage(**self.defaults)
        self.twin = SlowGauges(feed, subsample=lambda question: subsample_of(feed, question))
        self.log: list[LogRecord] = []
        self.changelog = Changelog()
        self.own(self.stage)

    def own(self, owned: FeedStage) -> None:
        """With metrics that begin."""
        self.stage, self.metrics = owned, Metrics()
        self.metrics.owned("feed", 0, owned)
        self.twin.begin()

    def tell(self, records: Iterable[LogRecord]) -> None:
        """Fold records, and publish after each."""
        for record in records:
            effects = Effects()
            self.stage.step(record, effects)
            self.log.append(record)
            effects.outputs += carry_out_rebuilds(self.stage, self.log)
            self.stage.publish(effects)
            self.metrics.folded("feed", 0, 1, 0.01, effects)
            self.twin.take(read_feed_log(record.value), {topic: newest(effects.outputs, topic) for topic in RECORDS})

    def restart(self) -> None:
        """Another worker takes over what was stored."""
        self.changelog.take(self.stage)
        self.own(self.changelog.restored(**self.defaults))

    def shown(self) -> Series:
        """What the registry says of the feed, without its label."""
        found = series(self.metrics).items()
        pairs = ((name, dict(labels), value) for (name, labels), value in found)
        return {
            (name, tuple(sorted((k, v) for k, v in labels.items() if k != "feed"))): value
            for name, labels, value in pairs
            if labels.get("feed") == self.feed
        }

    def compare(self) -> dict[str, float]:
        """The largest difference of each metric from the twin's."""
        shown = self.shown()
        experts = {dict(labels)["expert"] for (name, labels) in shown if name == "expert_coverage_ratio"}
        bare = {(name, tuple(v for _, v in labels)): value for (name, labels), value in shown.items()}
        wanted = self.twin.series(experts)
        if "memory" in self.defaults:  # then it is no regret over all questions
            del wanted["select_regret", ()]
        told = bare.pop(("feed_updated_timestamp_seconds", ()))
        assert told == self.log[-1].timestamp / 1000
        assert bare.keys() == wanted.keys()
        apart: dict[str, float] = {}
        for (name, labels), value in wanted.items():
            apart[name] = max(apart.get(name, 0.0), abs(bare[name, labels] - value) / max(1.0, abs(value)))
        assert {name: far for name, far in apart.items() if far > LOOSE.get(name, 1e-9)} == {}
        return apart


def verdict(y: int) -> Verdict:
    return 1 if y else 0


def crowd(number: int, n_experts: int, *, seed: int) -> Iterator[FeedLogRecord]:
    """Questions of independent experts, some of several rounds, some with few voters, a third with outcomes."""
    random = np.random.default_rng(seed)
    skill = random.uniform(0.55, 0.9, n_experts)
    for question in range(number):
        y = int(random.random() < 0.5)
        present = random.random(n_experts) < (0.7 if question % 7 else 0.15)
        right = random.random(n_experts) < skill
        said = np.where(
            right == bool(y), 0.5 + random.uniform(0.0, 0.45, n_experts), random.uniform(0.05, 0.5, n_experts)
        )
        said = np.where(random.random(n_experts) < 0.05, 0.5, said.round(3))
        forecasts = {f"e{k}": float(said[k]) for k in range(n_experts) if present[k] or k == question % n_experts}
        weight = 0.5 if question % 5 == 0 else 1.0
        first = dict(list(forecasts.items())[::2])
        if question % 3 == 0 and first:
            yield round_of(f"q{question}", first, boundary=1, weight=weight)
        yield round_of(f"q{question}", forecasts, boundary=2, weight=weight)
        if question % 3 == 1:
            yield outcome(f"q{question}", verdict(y if question % 12 else 1 - y))


def corrections() -> list[FeedLogRecord]:
    """Outcomes late, changed, taken back and annulled; a round withdrawn, another of a question known by now."""
    return [
        *(outcome(f"q{question}", 1) for question in range(0, 60, 6)),
        *(outcome(f"q{question}", 0) for question in range(0, 60, 12)),
        *(outcome(f"q{question}", "open") for question in (1, 4, 6)),
        *(outcome(f"q{question}", "annulled") for question in (7, 10, 2)),
        outcome("q7", 1),
        withdrawn("q3", boundary=1),
        withdrawn("q9", boundary=2),
        round_of("q12", {"e0": 0.9, "e1": 0.2, "e2": 0.7, "e9": 0.6}, boundary=3),
    ]


def logged(file: Path, feed: str, **defaults: Any) -> list[LogRecord]:
    """The feed-log of a file of events, all in one feed, beginning with offset 0."""
    kept: list[LogRecord] = []

    def keep(output: Output) -> None:
        if output.topic == topics.FEED_LOG and output.value is not None:
            kept.append(LogRecord(len(kept), output.timestamp, output.key, output.value))

    replay(
        [read_lines(file)], ReplayOptions(document={"defaults": defaults}, feed_as=feed, secret=b"secret"), write=keep
    )
    return kept


@pytest.mark.case("C39")
def test_every_series_of_a_feed_is_what_follows_from_what_was_published_after_each_correction_too() -> None:
    both = Both()
    history = [*crowd(120, 15, seed=1), *corrections()]
    log = log_of(history)
    start = len(log) - len(corrections())
    for begin, end in ((0, 20), (20, 60), (60, start)):
        both.tell(log[begin:end])
        both.compare()
    terms = {dict(labels)["term"]: value for (name, labels), value in both.shown().items() if name.endswith("_term")}
    assert terms.keys() == {"estimate", "noise", "outcomes"}
    assert all(terms.values())
    for record in log[start:]:
        both.tell([record])
        both.compare()

    shown = both.shown()
    assert shown["feed_outcomes_total", (("kind", "annulled"),)] == 3.0
    assert shown["feed_outcomes_total", (("kind", "revised"),)] > 3.0


def test_a_restart_a_rebuild_and_the_end_of_the_ledger_change_no_series_but_counters() -> None:
    spans = {"ledger_for": "1h", "retract_for": "1h"}
    both = Both(**spans)
    both.tell(log_of([*crowd(40, 9, seed=5), *corrections()]))
    before = gauges(both)

    both.restart()
    both.compare()
    assert gauges(both) == before

    both.stage.rebuild_all()
    carry_out_rebuilds(both.stage, both.log)
    both.stage.publish(Effects())
    both.compare()
    assert gauges(both) == before

    offset = both.log[-1].offset + 1
    (late,) = log_of([round_of("late", {"e0": 0.8, "e1": 0.7, "e2": 0.4})], offset)
    both.tell([late._replace(timestamp=late.timestamp + 86_400_000)])
    both.compare()
    assert [*both.stage.feeds.feed("f").ledger.entries] == ["late"]
    settled = gauges(both)
    effects = Effects()
    for record in log_of([outcome("q2", 1), outcome("q5", 0)], offset + 1):
        both.stage.step(record, effects)
    both.stage.publish(effects)
    assert effects.counts["too-late", ""] == 2
    assert gauges(both) == settled
    both.restart()
    both.compare()
    assert gauges(both) == settled


def test_with_a_memory_older_questions_count_less_in_every_series() -> None:
    both = Both(memory=60)
    both.tell(log_of([*crowd(400, 9, seed=2), *corrections()]))
    both.twin.forget(60)

    both.compare()

    assert both.shown()["feed_questions", ()] < 70.0


def gauges(both: Both) -> Series:
    """What does not count."""
    return {key: value for key, value in both.shown().items() if not key[0].endswith("_total")}


@pytest.mark.parametrize(
    ("file", "stops"), [("ml_digits_weak.jsonl.gz", (30, 80, 180)), ("us_polls_general.jsonl.gz", (60, 300, 600))]
)
def test_every_series_of_real_feeds_is_what_follows_from_what_was_published(
    data_directory: Path, file: str, stops: tuple[int, ...], tmp_path: Path
) -> None:
    short = tmp_path / "events.jsonl"
    lines = islice(read_lines(data_directory / file), LINES)
    short.write_bytes(b"".join(line.payload + b"\n" for line in lines))
    log, both, told = logged(short, "f", vote_rule="half"), Both(), 0
    for stop in stops:
        both.tell(log[told:stop])
        told = stop
        both.compare()
    shown = both.shown()
    for kind in ("mix", "select"):
        of_kind = [value for (name, labels), value in shown.items() if ("kind", kind) in labels and "weight" in name]
        assert len(of_kind) == 21
        assert sum(of_kind) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.case("C37")
def test_the_status_page_says_the_numbers_of_the_records_and_what_others_have_together() -> None:
    both = Both()
    both.tell(log_of(crowd(120, 15, seed=1)))
    record = both.twin.records[topics.WEIGHTS]["f"]
    weights = msgspec.convert(record, Weights)
    status = FeedStatus.of(weights, weights.experts)
    view = StatusView("1", "here", record["at"], ready=True, reason="", feeds=[status], lag=[], settings="0")
    page = status_page(view)

    shown = both.shown()
    mean = np.mean([value for (name, _), value in shown.items() if name == "reference_error_ratio"])
    low, high = (shown[f"reference_error_{end}_ratio", ()] for end in ("low", "high"))
    certificate, questions = shown["certificate_regret", ()], shown["feed_questions", ()]
    for said in (
        f"<b>{mean:.1%}</b>, interval {low:.1%} to {high:.1%}",
        f"outcomes showed {shown['reference_error_measured_ratio', ()]:.1%}",
        f"{questions:,.0f} scored, {shown['feed_resolved_questions', ()]:,.0f} resolved",
        f"at most {certificate:,.1f} in summed loss, {certificate / questions:.3f} a question",
        f"{len(record['experts']) - TOP_EXPERTS} others",
    ):
        assert said in page
    for kind in ("mix", "select"):
        top = {one.expert: getattr(one, kind) for one in status.top}
        assert top == {one["id"]: one[kind] for one in record["experts"] if one["id"] in top}
        assert sum(top.values()) + getattr(status.others, kind) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_certificate_holds_and_the_estimated_regret_is_near_the_true_one_where_experts_are_independent(
    seed: int,
) -> None:
    both, random, truth = Both(), np.random.default_rng(seed), dict[str, int]()
    history: list[FeedLogRecord] = []
    skill = random.uniform(0.6, 0.9, 8)
    for number in range(250):
        question, y = f"q{number}", int(random.random() < 0.5)
        truth[question] = y
        right = random.random(8) < skill
        said = np.where(right == bool(y), 1.0, 0.0) * (2.0 * skill - 1.0) * 0.9 + 0.5 - (2.0 * skill - 1.0) * 0.45
        history.append(round_of(question, {f"e{k}": float(p) for k, p in enumerate(said)}))
        if number % 10 == 0:
            history.append(outcome(question, verdict(y)))
    both.tell(log_of(history))
    both.compare()

    asked = ((both.twin.asked[question].rounds.values(), y) for question, y in truth.items())
    true = sum(told.regrets(told.select)[1 if y else 2] for rounds, y in asked for told in rounds).max()
    shown = both.shown()
    certificate, estimated = shown["certificate_regret", ()], shown["select_regret", ()]
    assert max(true, estimated) < certificate < 250.0
    assert abs(estimated - true) < 8.0

"""Metrics of several workers at once, and of a worker with very much to show."""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.questions.stage import QuestionStage
from stream_peer.serve.metrics import Metrics
from tests.feed_histories import log_of, outcome, round_of, stage
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import at, crowd, question
from tests.integration.support.lives import DAY, finish
from tests.integration.support.service import Service, Shape, service
from tests.integration.support.waiting import wait_until
from tests.unit.serve.http.serving import serving, sources

FEEDS = [f"c39-{number}" for number in range(6)]
EXPERTS, SHOWN = 9, 5
KINDS = ("mix", "select")
PROMPTLY = 15.0

Place = tuple[tuple[str, str], ...]


@pytest.fixture
def alone(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A deployment with a worker, to which others may come."""
    defaults = {"history": True, "vote_rule": "half", "publish_every": "500ms", "top_experts": SHOWN}
    with service(kafka, tmp_path_factory.mktemp("metrics"), shape=Shape(2, 2), defaults=defaults) as made:
        yield made.set_up()


class Scraped:
    """The series of all workers that serve, as a Prometheus would have them that just scraped each."""

    def __init__(self, made: Service) -> None:
        self.series: dict[tuple[str, Place], dict[str, float]] = defaultdict(dict)
        for name, worker in made.workers.items():
            for sample in [] if worker.has_ended else made.all_samples(name):
                self.series[sample.name, tuple(sorted(sample.labels.items()))][name] = sample.value

    def of(self, metric: str, **labels: str) -> dict[Place, dict[str, float]]:
        """Series of a metric that have these labels, each by worker."""
        wanted = set(labels.items())
        return {
            place: values
            for (name, place), values in self.series.items()
            if name == f"stream_peer_{metric}" and wanted <= set(place)
        }

    def total(self, metric: str, **labels: str) -> float:
        """Their sum over all workers."""
        return math.fsum(value for values in self.of(metric, **labels).values() for value in values.values())

    def shares(self, feeds: list[str]) -> list[float]:
        """Sums of weights, by feed and kind."""
        return [round(self.total("expert_weight", feed=feed, kind=kind), 9) for feed in feeds for kind in KINDS]

    def doubled(self) -> list[Any]:
        """Series of feeds and partitions that more than one worker has, where only the owner may."""
        return [
            key
            for key, values in self.series.items()
            if len(values) > 1 and {"feed", "partition"} & dict(key[1]).keys()
        ]

    def names(self, text: str) -> list[Any]:
        """Series that name something."""
        return [key for key in self.series if any(text == value for _, value in key[1])]


def shown_by_all(made: Service, feeds: list[str]) -> Scraped:
    """Wait until workers share what there is: every partition has one owner, and every weight sums to one."""
    found = Scraped(made)

    def shared() -> bool:
        nonlocal found
        found = Scraped(made)
        owned = found.total("owned_partitions", stage="feed"), found.total("owned_partitions", stage="question")
        return owned == (2.0, 2.0) and found.shares(feeds) == [1.0] * len(KINDS) * len(feeds)

    wait_until(shared, 60.0, lambda: f"{found.shares(feeds)}, {found.of('owned_partitions')}\n{made.logs()}")
    return found


def gone(made: Service, text: str) -> None:
    """Wait until no series names something any more."""
    wait_until(lambda: not Scraped(made).names(text), PROMPTLY, lambda: str(Scraped(made).names(text)))


def asked(made: Service, hours: float) -> None:
    """Three questions of each feed that close within a day, answered by all experts."""
    for feed in FEEDS:
        for key in (f"{feed}-q{number}" for number in range(3)):
            made.send([question(key, feed, hours + DAY, opens_at=at(hours))])
            made.send(crowd(key, EXPERTS, hours))
    made.settle()


@pytest.mark.real_kafka
@pytest.mark.case("C39")
def test_a_series_ends_with_what_it_is_about_and_is_only_its_owners(alone: Service) -> None:
    asked(alone, 0)
    assert Scraped(alone).total("open_questions") == 3 * len(FEEDS)
    finish(alone, 2 * DAY)
    closed = Scraped(alone)
    assert closed.total("open_questions") == 0
    assert closed.of("oldest_deadline_timestamp_seconds") == {}
    assert not closed.names(f"{FEEDS[0]}-q0")

    before = shown_by_all(alone, FEEDS)
    alone.start("w2").wait_ready()
    shared = shown_by_all(alone, FEEDS)
    assert shared.doubled() == []
    homes = [
        {worker for values in shared.of("feed_questions", feed=feed).values() for worker in values} for feed in FEEDS
    ]
    assert {worker for home in homes for worker in home} == {"w1", "w2"}
    assert before.of("expert_weight").keys() == shared.of("expert_weight").keys()

    shown = dict(next(place for place in shared.of("expert_coverage_ratio", feed=FEEDS[0])))
    alone.run("expert", FEEDS[0], shown["expert"], "--exclude")
    wait_until(
        lambda: not Scraped(alone).of("expert_weight", feed=FEEDS[0], expert=shown["expert"]),
        PROMPTLY,
        lambda: f"{shown} is still shown",
    )
    alone.run("delete", FEEDS[1], "--yes")
    gone(alone, FEEDS[1])
    left = [feed for feed in FEEDS if feed != FEEDS[1]]
    assert shown_by_all(alone, left).doubled() == []

    assert alone.workers["w2"].terminate() == 0, alone.logs()
    assert shown_by_all(alone, left).total("owned_partitions", stage="control") == 1.0
    assert not Scraped(alone).names(FEEDS[1])


MANY_FEEDS, MANY_EXPERTS, MANY_QUESTIONS = 50, 10_000, 100_000
MOST_SERIES = 7000
"""As the page of the metrics says, with room for the worker's own."""


def large_feed(name: str) -> tuple[FeedStage, Effects]:
    """A partition with a feed of ten thousand experts, of whom the first are the best."""
    said = {f"expert-{number:05d}": round(0.9 - number / (2 * MANY_EXPERTS), 6) for number in range(MANY_EXPERTS)}
    made, effects = stage(), Effects()
    for record in log_of([round_of(f"{name}-q", said, feed=name), outcome(f"{name}-q", 1, feed=name)]):
        made.step(record, effects)
    made.publish(effects)
    return made, effects


def many_questions(metrics: Metrics) -> None:
    """A hundred thousand open questions, in four partitions."""
    stages = [QuestionStage(topic="t", partition=p, partitions=4, feed_log_partitions=1) for p in range(4)]
    opened = {"type": "question", "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-06-01T00:00:00Z"}
    effects = Effects()
    for number in range(MANY_QUESTIONS):
        key = b"question-%06d" % number
        event = {**opened, "question_id": key.decode(), "feed": f"feed-{number % MANY_FEEDS:02d}"}
        record = LogRecord(number, 1_767_225_600_000, key, msgspec.json.encode(event))
        stages[partition_of(key, len(stages))].step(record, effects)
    for partition, made in enumerate(stages):
        metrics.owned("question", partition, made)
        metrics.folded("question", partition, MANY_QUESTIONS // 4, 1.0, effects)


@pytest.mark.slow
@pytest.mark.case("C40")
async def test_ten_thousand_experts_and_a_hundred_thousand_questions_have_a_bounded_number_of_series() -> None:
    metrics = Metrics()
    many_questions(metrics)
    for partition in range(MANY_FEEDS):
        made, effects = large_feed(f"feed-{partition:02d}")
        metrics.owned("feed", partition, made)
        metrics.stored("feed", partition, 2, 1000)
        metrics.lag("feed", partition, 0, None)
        metrics.folded("feed", partition, 2, 0.1, effects)

    async with serving(sources(metrics=metrics)) as client:
        answers = [await client.get("/metrics") for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]
    samples = [
        sample for family in text_string_to_metric_families(answers[1].body.decode()) for sample in family.samples
    ]
    assert len(samples) <= MOST_SERIES
    assert not any("question-" in value for sample in samples for value in sample.labels.values())
    assert math.fsum(s.value for s in samples if s.name == "stream_peer_open_questions") == MANY_QUESTIONS
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in samples:
        if sample.name == "stream_peer_expert_weight":
            shares[sample.labels["feed"], sample.labels["kind"]].append(sample.value)
    assert {place: round(math.fsum(values), 9) for place, values in shares.items()} == {
        (f"feed-{number:02d}", kind): 1.0 for number in range(MANY_FEEDS) for kind in KINDS
    }
    assert all(2 <= len(values) <= 21 for values in shares.values())
    assert [s.value for s in samples if s.name == "stream_peer_feeds_not_shown"] == [0.0]

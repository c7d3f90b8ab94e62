"""Feeds that are shown, and what a scrape of them says, for tests."""

import math
from collections.abc import Iterator, Mapping

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from stream_peer.events.outputs import Weights
from stream_peer.feeds.views import FeedView
from stream_peer.questions.control_stage import ControlStage
from stream_peer.serve.metrics import Metrics
from tests.feed_outputs import rates_of

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class FeedsOnly(ControlStage):
    """A stage that has feeds to show and does nothing else."""

    def __init__(self, views: Mapping[str, FeedView]) -> None:
        super().__init__(topic="t", partition=0, forecast_partitions=1, feed_log_partitions=1)
        self.newest = dict(views)

    def latest_views(self) -> Mapping[str, FeedView]:
        return self.newest


def view(newest: Weights, *, top_experts: int = 20) -> FeedView:
    leading = sorted(newest.experts, key=lambda expert: -expert.mix)
    totals = math.fsum(expert.mix for expert in leading), math.fsum(expert.select for expert in leading)
    return FeedView(newest, rates_of(newest), top_experts, leading, totals)


def metrics_of(views: Mapping[str, FeedView], partition: int = 0) -> Metrics:
    metrics = Metrics()
    metrics.owned("feed", partition, FeedsOnly(views))
    return metrics


def scrape(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def series(metrics: Metrics) -> Series:
    return {
        (sample.name.removeprefix("stream_peer_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(scrape(metrics))
        for sample in family.samples
    }


def of(metrics: Metrics, name: str) -> Iterator[tuple[dict[str, str], float]]:
    for (found, labels), value in series(metrics).items():
        if found == name:
            yield dict(labels), value

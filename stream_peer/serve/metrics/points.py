"""Values of metrics, between their collectors and the families that are scraped."""

from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from stream_peer.serve.metrics.catalogue import BY_NAME


class MetricPoint(NamedTuple):
    """A value, in the metric of a name without prefix; ``labels`` are its values, in the order of the metric's."""

    name: str
    labels: tuple[str, ...]
    value: float


def put(families: Mapping[str, Metric], point: MetricPoint) -> None:
    """Put a value into the family of its name."""
    metric = BY_NAME[point.name]
    labels = dict(zip(metric.labels, point.labels, strict=True))
    families[point.name].samples.append(Sample(metric.full_name, labels, point.value))

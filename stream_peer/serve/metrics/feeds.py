"""Series of the feeds of owned partitions: a bounded number of them, however many feeds and experts there are."""

from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_peer.feeds.views import FeedView
from stream_peer.serve.metrics.catalogue import OF_FEEDS
from stream_peer.serve.metrics.feed_series import OF_AN_EXPERT, OF_OTHERS, FeedSeries
from stream_peer.serve.metrics.points import MetricPoint, put

MOST_SERIES = 4000
"""Of all feeds of a worker. Those of the worker itself come on top: some hundred, and about ten a partition."""

_COUNTED: Mapping[str, tuple[str, ...]] = {
    "feed_rounds_total": ("scored", "low-evidence"),
    "feed_outcomes_total": ("revealed", "revised", "annulled"),
}
"""Kinds of what is counted, which all begin at 0: a series that began at 1 would hide what was first."""

_OF_COUNTERS = sum(map(len, _COUNTED.values()))


@runtime_checkable
class HasViews(Protocol):
    """A stage that can say what was last published of its feeds."""

    def latest_views(self) -> Mapping[str, FeedView]:
        """The last published outputs of each feed."""


class OwnedFeeds(NamedTuple):
    """Feeds of an owned partition, and what happened in them since it is owned: keyed by feed and kind."""

    stage: HasViews
    counts: Tally[tuple[str, str]]


class FeedCollector(Collector):
    """Reads the feeds of owned partitions when it is scraped.

    The first feeds by name are shown, as many as there is room for with one expert each; the room that is left is
    shared equally among them for their experts, up to ``top_experts`` of each.
    """

    def __init__(self) -> None:
        self._places: dict[int, OwnedFeeds] = {}
        self._series: dict[str, FeedSeries] = {}

    def own(self, partition: int, stage: HasViews) -> None:
        """Show the feeds of a partition from now on."""
        self._places[partition] = OwnedFeeds(stage, Tally())

    def release(self, partition: int) -> None:
        """Show them no more: the next owner does."""
        self._places.pop(partition, None)

    def count(self, partition: int, counts: Mapping[tuple[str, str], int]) -> None:
        """Add what happened in feeds, by feed and kind."""
        place = self._places.get(partition)
        if place is not None:
            place.counts.update(counts)

    def collect(self) -> Iterator[Metric]:
        """All series of feeds."""
        views, counts = self._read()
        shown = self._shown(views)
        families = {metric.name: metric.family() for metric in OF_FEEDS}
        left = MOST_SERIES - sum(len(series.common) + _OF_COUNTERS + OF_OTHERS for series in shown.values())
        room = left // len(shown) if shown else 0
        for feed, series in shown.items():
            for point in (*series.common, *series.of_experts(room), *_counters(feed, counts)):
                put(families, point)
        put(families, MetricPoint("feeds_not_shown", (), len(views) - len(shown)))
        yield from families.values()

    def describe(self) -> Iterator[Metric]:
        """Registration reads no values."""
        return iter(())

    def _read(self) -> tuple[dict[str, FeedView], Tally[tuple[str, str]]]:
        """What is newest of all feeds, by name, and what was counted of them. Counts of feeds that ended are gone."""
        views: dict[str, FeedView] = {}
        counts: Tally[tuple[str, str]] = Tally()
        for place in self._places.values():
            here = place.stage.latest_views()
            for key in [key for key in place.counts if key[0] not in here]:
                del place.counts[key]
            views.update(here)
            counts.update(place.counts)
        return dict(sorted(views.items())), counts

    def _shown(self, views: Mapping[str, FeedView]) -> dict[str, FeedSeries]:
        """The feeds that there is room for. Of those not shown nothing is kept."""
        shown: dict[str, FeedSeries] = {}
        left = MOST_SERIES
        for feed, view in views.items():
            series = self._series.get(feed) or FeedSeries(feed)
            series.show(view)
            left -= len(series.common) + _OF_COUNTERS + OF_OTHERS + OF_AN_EXPERT
            if left < 0:
                break
            shown[feed] = series
        self._series = shown
        return shown


def _counters(feed: str, counts: Mapping[tuple[str, str], int]) -> Iterator[MetricPoint]:
    for name, kinds in _COUNTED.items():
        for kind in kinds:
            yield MetricPoint(name, (feed, kind), counts.get((feed, kind), 0))

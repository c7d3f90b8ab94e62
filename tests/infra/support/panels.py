"""Asks a Prometheus what the panels of dashboards ask, and says which of them would stay empty."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from helm.dashboards.reading import POINTS, Query, panels, queries, substituted, variables
from tests.infra.support.prometheus import Prometheus, Series


class Window(NamedTuple):
    """The time range of a dashboard, in Unix seconds, and its ``$__rate_interval``; ``chosen``: values of variables."""

    start: float
    end: float
    rate_interval: str = "1m"
    chosen: Mapping[str, str] = {}

    @property
    def step(self) -> float:
        """Seconds between two points of a graph."""
        return max(1.0, (self.end - self.start) / POINTS)


def last(seconds: float, rate_interval: str = "1m") -> Window:
    """The window that ends now."""
    now = time.time()
    return Window(now - seconds, now, rate_interval)


def answer(prometheus: Prometheus, query: Query, window: Window) -> list[Series]:
    """What a panel would be given: series with at least one point that is a number."""
    values = variables(window.rate_interval, window.end - window.start, window.chosen)
    expression = substituted(query.expression, values)
    if query.instant:
        found = prometheus.query(expression, window.end)
    else:
        found = prometheus.query_range(expression, window.start, window.end, window.step)
    return [series for series in found if any(not math.isnan(value) for _, value in series.points)]


def unanswered(
    prometheus: Prometheus,
    dashboards: Sequence[Mapping[str, Any]],
    window: Window | None = None,
    *,
    every_query: bool = False,
) -> list[str]:
    """Panels without data, each as ``dashboard / panel``: an empty list is what one wants.

    Parameters
    ----------
    prometheus : Prometheus
        Whom to ask.
    dashboards : sequence of mapping
        As ``helm.dashboards.reading.dashboards()`` reads them.
    window : Window, optional
        The last five minutes unless given.
    every_query : bool
        Whether each query of a panel must have data, and not just one; those without are named by their letters.
    """
    shown = window or last(300)
    return [place for dashboard in dashboards for place in _empty(prometheus, dashboard, shown, every_query)]


def _empty(prometheus: Prometheus, dashboard: Mapping[str, Any], window: Window, every_query: bool) -> Iterator[str]:
    for panel in panels(dashboard):
        asked = queries(panel)
        silent = [query.ref for query in asked if not answer(prometheus, query, window)]
        place = f"{dashboard['title']} / {panel['title']}"
        if len(silent) == len(asked):
            yield place
        elif silent and every_query:
            yield f"{place} ({', '.join(silent)})"

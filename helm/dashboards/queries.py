"""The queries of panels: which series, whose, and how they are put together.

Only the owner of a partition exports its feeds. Where a partition moves, the series of the former owner end and those
of the next begin, so a value of a feed is a ``max by`` over workers: one line, and not two. Feeds of the same name in
several deployments are several feeds. A deployment is what shares cluster, namespace and job, as in the rules.
"""

from collections.abc import Iterable
from typing import get_args

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from stream_peer.events.outputs import ErrorRateStatus, TrustState

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
WORKER = 'job=~"$job",instance=~"$instance"'
FEED = f'{WORKER},feed=~"$feed"'
DEPLOYMENT = "cluster, namespace, job"
"""Labels that tell deployments apart. Without Kubernetes only the last of them is there."""

TRUST_STATES: tuple[TrustState, ...] = (
    "ok",
    "warming-up",
    "low-evidence",
    "dependent",
    "contradicted",
    "uninformative",
)
"""From good to bad: the number of a state is its place, from 1."""
RATE_STATUSES: tuple[ErrorRateStatus, ...] = (
    "ok",
    "insufficient",
    "biased-reveal",
    "balanced",
    "contradicted",
    "uninformative",
    "dependent",
)
_SHOWN = "$__range"
FIRST_RATE_STATUS = 11
"""Statuses of error rates are numbered from here, so that a timeline can show both kinds."""


def worker(metric: str, *labels: str) -> str:
    """Series of a metric, of the workers that are chosen."""
    return f"stream_peer_{metric}{{{','.join([WORKER, *labels])}}}"


def process(metric: str) -> str:
    """Series of a metric that every process has, of the workers that are chosen."""
    return f"process_{metric}{{{WORKER}}}"


def feed(metric: str, *labels: str) -> str:
    """Series of a metric, of the feeds that are chosen."""
    return f"stream_peer_{metric}{{{','.join([FEED, *labels])}}}"


def of_feed(metric: str, *labels: str, by: str = "feed") -> str:
    """A value of each feed, of any worker that exports it."""
    return f"max by ({DEPLOYMENT}, {by}) ({feed(metric, *labels)})"


def of_expert(metric: str, *labels: str) -> str:
    """A value of each expert that is chosen, of any worker that exports it."""
    return of_feed(metric, 'expert=~"$expert"', *labels, by="feed, expert")


def change(expression: str) -> str:
    """By how much values moved in the time shown."""
    return f"delta(({expression})[{_SHOWN}:$__interval])"


def risen(metric: str, *labels: str) -> str:
    """By how much counters of feeds rose in the time shown."""
    return f"increase({feed(metric, *labels)}[{_SHOWN}])"


def rate(selector: str, by: str = "", times: int = 1) -> str:
    """How fast counters rise in sum, a second, or in so many seconds."""
    total = f"sum by ({by})" if by else "sum"
    speed = f"{total} (rate({selector}[$__rate_interval]))"
    return speed if times == 1 else f"{times} * {speed}"


def quantile(q: float, metric: str, by: str = "") -> str:
    """Of a histogram, over all workers; nothing where nothing was observed."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, sum by ({labels}) (rate({worker(metric + '_bucket')}[$__rate_interval])))"


def or_none(expression: str, label: str = "") -> str:
    """An expression, or 0 where it has no series and a worker is there to say so: nothing of it has happened.

    ``label``: the label of its series that names them; the 0 is of ``none``.
    """
    nothing = f"0 * sum({worker('live')})"
    return f"{expression} or " + (f'label_replace({nothing}, "{label}", "none", "", "")' if label else nothing)


def numbered(selector: str, label: str, states: Iterable[str], first: int = 1) -> str:
    """The number of the state that each feed is in."""
    inner = selector.removesuffix("}")
    each = [f'{number} * {inner},{label}="{state}"}}' for number, state in enumerate(states, first)]
    return f"max by ({DEPLOYMENT}, feed) ({' or '.join(each)})"


def trust() -> str:
    """The number of each feed's state of trust."""
    return numbered(feed("trust_state"), "state", TRUST_STATES)


def rate_status() -> str:
    """The number of the status of each feed's error rates."""
    return numbered(feed("reference_error_status"), "status", RATE_STATUSES, FIRST_RATE_STATUS)


def over_time(expression: str, legend: str) -> prometheus.Dataquery:
    """A query for a graph."""
    return prometheus.Dataquery().expr(expression).legend_format(legend).range()


def at_the_end(expression: str, legend: str = "__auto") -> prometheus.Dataquery:
    """A query for one number a series."""
    return prometheus.Dataquery().expr(expression).legend_format(legend).instant()


def column(expression: str) -> prometheus.Dataquery:
    """A query for a column of a table."""
    return at_the_end(expression).format(PromQueryFormat.TABLE)


def check_states() -> None:
    """The numbers stand for all states that there are.

    Raises
    ------
    ValueError
        If a state has none.
    """
    for numbers, kind in ((TRUST_STATES, TrustState), (RATE_STATUSES, ErrorRateStatus)):
        if set(numbers) != set(get_args(kind)):
            msg = f"{sorted(set(get_args(kind)) ^ set(numbers))} of {get_args(kind)} have no place in the dashboards"
            raise ValueError(msg)

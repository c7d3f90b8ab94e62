"""A real run for dashboards: a worker on Kafka folds events, some of them posted, while a real Prometheus scrapes."""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stream_peer.events import topics
from stream_peer.tools.demo.feed import FeedEvent, closing_tick
from tests.infra.support.crowds import Crowd
from tests.infra.support.panels import Window
from tests.infra.support.prometheus import Prometheus, configuration
from tests.infra.support.rules import FILES
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.gateway import post_once, producer_files, start_gateway
from tests.integration.support.service import Service, Shape, Worker, service
from tests.integration.support.waiting import wait_until

_LEAST_SCRAPES = 10
_RATE_INTERVAL = "10s"
_POSTED = 20  # at the end of each slice, after events without `at`: a gateway refuses those


class ScrapedRun(NamedTuple):
    """What was run, who scraped it, and when that was."""

    service: Service
    prometheus: Prometheus
    window: Window


@contextmanager
def scraped_run(
    kafka: KafkaClient, directory: Path, crowd: Crowd, *, slices: int, every: str = "1s", workers: int = 1
) -> Iterator[ScrapedRun]:
    """Send events in so many slices, each when the one before is folded, until all is scraped (``every`` so often)."""
    with ExitStack() as stack:
        run = stack.enter_context(service(kafka, directory, shape=Shape(2, 2), feeds=crowd.feeds))
        run.set_up()
        for number in range(1, workers):
            run.start(f"w{number + 1}")
        producer_files(run.directory)
        gateway = start_gateway(run).wait_ready()
        stack.callback(gateway.terminate)
        targets = [f"127.0.0.1:{process.port}" for process in (*run.workers.values(), gateway)]
        scraped = configuration(targets, FILES, every=every)
        prometheus = stack.enter_context(Prometheus(scraped))
        wait_until(lambda: prometheus.value("sum(stream_peer_ready)") == workers, 60, "workers were never ready")
        start = time.time()
        if crowd.events:
            _send(run, gateway, crowd.events, slices)
        _wait_scraped(run, prometheus)
        yield ScrapedRun(run, prometheus, Window(start, time.time(), _RATE_INTERVAL))


def _send(run: Service, gateway: Worker, events: Sequence[FeedEvent], slices: int) -> None:
    sent = sum(run.committed("question", topics.FORECAST_EVENTS).values())
    for due in sliced(events, -(-len(events) // slices)):
        last = max((count for count, event in enumerate(due, 1) if b'"at"' not in event.value), default=0)
        cut = max(last, len(due) - _POSTED)
        run.produce(topics.FORECAST_EVENTS, [Message(event.key, event.value) for event in due[:cut]])
        sent += cut
        if posted := due[cut:]:
            lines = b"\n".join(event.value for event in posted)
            _, _, told = post_once(gateway, lines.decode(), f"from-{sent}", "application/x-ndjson")
            sent += told["accepted"]  # malformed ones are refused
        run.wait_committed(sent)
    run.tell_all(b"tick", closing_tick(events))
    run.settle()


def sliced(events: Iterable[FeedEvent], size: int) -> Iterator[tuple[FeedEvent, ...]]:
    """So many events each."""
    rest = iter(events)
    while due := tuple(itertools.islice(rest, size)):
        yield due


def _wait_scraped(run: Service, prometheus: Prometheus) -> None:
    """Until Prometheus knows what the worker knows at the end."""
    for metric in ("stream_peer_feed_resolved_questions", "stream_peer_records_total"):
        known = sum(run.metric(metric, name) for name in run.workers)
        told = partial(_tells, prometheus, metric, known)
        wait_until(told, 30, f"Prometheus never scraped the last {metric}")
    scrapes = f"count_over_time(stream_peer_live[10m]) >= {_LEAST_SCRAPES}"
    wait_until(lambda: prometheus.query(scrapes), 60, f"never {_LEAST_SCRAPES} scrapes")


def _tells(prometheus: Prometheus, metric: str, known: float) -> bool:
    return (prometheus.value(f"sum({metric})") or 0.0) == known

"""Everything that runs: Kafka, two workers, a gateway, Prometheus, Alertmanager. Ended in the reverse order."""

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from stream_peer.errors import MissingExtraError
from stream_peer.events import topics
from stream_peer.tools.demo.brokers import LocalKafka, check_java
from stream_peer.tools.demo.feed import FEED, FeedEvent, closing_tick, paced
from tests.infra.stack.alertmanager import PROGRAM, Alertmanager
from tests.infra.stack.events import FEEDS, quiet_events, team_controls
from tests.infra.stack.progress import step
from tests.infra.stack.released import Released, built
from tests.infra.stack.shortened import shortened
from tests.infra.support.demo_run import sliced
from tests.infra.support.prometheus import Prometheus, configuration
from tests.infra.support.rules import FILES
from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.gateway import post_once, producer_files
from tests.integration.support.service import APPLY, Service, Worker

WORKERS = ("worker-1", "worker-2")
_PACKAGES = {
    "java": "openjdk-17-jre-headless",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    PROGRAM: "prometheus-alertmanager",
}
_SLICE_SECONDS = 0.5
_POSTED, _AT_ONCE = 600, 100
_PATIENCE = 120.0


class Pace(NamedTuple):
    """How quickly everything goes: seconds for the events, between scrapes; how much shorter the rules' times are."""

    feeding: float
    scraping: str
    factor: float


LIVE = Pace(feeding=30.0, scraping="5s", factor=1.0)
ONCE = Pace(feeding=10.0, scraping="1s", factor=30.0)
"""Half an hour is a minute: what fires after five minutes fires after ten seconds."""


class Stack(NamedTuple):
    """What runs, and what was sent."""

    service: Service
    gateway: Worker
    prometheus: Prometheus
    alertmanager: Alertmanager
    events: Sequence[FeedEvent]

    @property
    def workers(self) -> dict[str, Worker]:
        """The workers by name."""
        return self.service.workers

    def instance(self, worker: str) -> str:
        """A worker as Prometheus calls it."""
        return f"127.0.0.1:{self.workers[worker].port}"


def check_programs() -> None:
    """Refuse a machine on which something is missing.

    Raises
    ------
    MissingExtraError
        Names it.
    """
    missing = {name: package for name, package in _PACKAGES.items() if shutil.which(name) is None}
    if missing:
        msg = f"{', '.join(missing)} not found: apt-get install {' '.join(dict.fromkeys(missing.values()))}"
        raise MissingExtraError(msg)
    check_java()


@contextmanager
def running(pace: Pace) -> Iterator[Stack]:
    """The stack, with the demo's events worked off; all of it has ended when the block has."""
    events = quiet_events()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stream-peer-stack-")))
        store, source = stack.enter_context(built())
        with step("Apache Kafka, from its jars"):
            broker = stack.enter_context(LocalKafka())
        kafka = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))
        service = Released(store, kafka, "stack-", directory, feeds=FEEDS)
        stack.callback(_end_all, service)
        with step(f"Topics, two workers from {source}, settings"):
            _set_up(service)
        with step("A gateway"):
            gateway = service.gateway().wait_ready(_PATIENCE)
            stack.callback(_end, gateway)
        with step("Alertmanager"):
            alertmanager = stack.enter_context(Alertmanager())
        with step("Prometheus, which scrapes all three and has the rules"):
            targets = [f"127.0.0.1:{process.port}" for process in (*service.workers.values(), gateway)]
            config = configuration(
                targets, rule_files(directory, pace.factor), every=pace.scraping, alertmanagers=[alertmanager.address]
            )
            prometheus = stack.enter_context(Prometheus(config))
        running_stack = Stack(service, gateway, prometheus, alertmanager, events)
        with step(f"{len(events):,} events of two feeds, over {pace.feeding:g} s, until they are worked off"):
            _feed(service, gateway, events, pace.feeding)
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)  # who is impatient twice leaves nothing behind
        yield running_stack


def rule_files(directory: Path, factor: float) -> list[Path]:
    """The rules as they are or, if ``factor`` is not 1, copies with their times shortened by it."""
    if factor == 1.0:
        return list(FILES)
    copies = []
    for file in FILES:
        copy = directory / file.name
        changed = shortened(yaml.safe_load(file.read_text(encoding="utf-8")), factor)
        copy.write_text(yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")
        copies.append(copy)
    return copies


def send(service: Service, events: Sequence[FeedEvent]) -> None:
    """Produce events to the partitions of their questions."""
    count = service.shape.questions
    service.produce(
        topics.FORECAST_EVENTS, [Message(event.key, event.value, event.partition(count)) for event in events]
    )


def close_questions(service: Service, events: Sequence[FeedEvent]) -> None:
    """Have every deadline met that lies before the last of the events, and wait until it is."""
    service.tell_all(b"tick", closing_tick(events))
    service.settle(_PATIENCE, tended=lambda: None)


def _set_up(service: Service) -> None:
    producer_files(service.directory)
    service.run("topics", "apply")
    for name in WORKERS:
        service.start(name)
    service.run(*APPLY)
    service.wait_configured(_PATIENCE)
    for worker in service.workers.values():
        worker.wait_ready(_PATIENCE)
    service.send(team_controls(), topics.CONTROL_EVENTS)
    service.settle(_PATIENCE)


def _feed(service: Service, gateway: Worker, events: Sequence[FeedEvent], seconds: float) -> None:
    for due in paced(events[:-_POSTED], seconds, time.monotonic):
        if due:
            send(service, due)
        time.sleep(_SLICE_SECONDS)
    for number, some in enumerate(sliced(events[-_POSTED:], _AT_ONCE)):
        lines = b"\n".join(event.value for event in some).decode()
        status, _, told = post_once(gateway, lines, f"post-{number}", "application/x-ndjson")
        assert (status, told["refused"]) == (202, 0), told
        time.sleep(_SLICE_SECONDS)
    close_questions(service, events)


def _end_all(service: Service) -> None:
    """As an orchestrator does, one after the other; what does not end is killed."""
    for worker in service.workers.values():
        _end(worker)
    service.close()


def _end(process: Worker) -> None:
    if not process.has_ended:
        with suppress(AssertionError):
            process.terminate()


def addresses(stack: Stack) -> dict[str, Any]:
    """Where to look."""
    told: dict[str, Any] = {}
    for name, worker in stack.workers.items():
        told[f"Status page of {name}"] = f"http://127.0.0.1:{worker.port}/   (process {worker.pid})"
    return {
        **told,
        "Gateway": f"http://127.0.0.1:{stack.gateway.port}/openapi.json",
        "Prometheus, alerts": f"{stack.prometheus.url}/alerts",
        "Prometheus, queries": f"{stack.prometheus.url}/graph",
        "Alertmanager": f"{stack.alertmanager.url}/",
        "Kafka": stack.service.kafka.bootstrap,
        "Watch": f".venv/bin/stream-peer tail {FEED} --config {stack.service.directory / 'settings.yaml'}",
    }

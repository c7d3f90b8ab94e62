"""``stream-peer worker``: settings, logs, metrics, health and the apps, introduced to each other."""

import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
import structlog
from msgspec.structs import replace

from stream_peer import __version__
from stream_peer.cli.options import Invocation, bound_address, settings_options
from stream_peer.errors import StreamPeerError
from stream_peer.kafka.worker.process import FAULT_VARIABLE, fault_from
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.process import (
    Secret,
    Settings,
    read_producers,
    read_secret,
    required_signing_keys,
)

if TYPE_CHECKING:
    from stream_peer.kafka.client.topics_watch import Check, TopicsWatch
    from stream_peer.kafka.worker.worker import Keys
    from stream_peer.serve.http import EarlyProbes
    from stream_peer.serve.http.explain import ExplainTool

log = structlog.get_logger(__name__)

_LATER_PATIENCE = 5.0  # seconds that a look at the topics waits for a broker while the worker runs

_EXPLAINS = "import sys; sys.path.append(sys.argv[1]); from stream_peer.tools.explain.process import main; main()"
"""The process that explains weights for HTTP runs this. A worker imports none of it."""


@click.command(name="worker")
@settings_options(
    "stage", "http.host", "http.port", "http.advertise", "instance", "log.format", "log.level", waits="worker"
)
@click.pass_context
def worker_command(context: click.Context, invocation: Invocation) -> None:
    """Run a worker until SIGTERM or Ctrl-C. Start as many as you like, up to one a partition.

    It reads forecast-events and control-events and publishes weights, error rates, reference answers, peer losses
    and mixed forecasts. By HTTP it answers for all feeds: a page for people at /, data at /feeds, metrics at /metrics,
    health at /healthz/live, /healthz/ready and /healthz/startup, and what there is at /openapi.json.

    \b
    stream-peer worker --bootstrap kafka:9092
    stream-peer worker --config settings.yaml --http-host 0.0.0.0 --instance worker-0
    STREAM_PEER_BOOTSTRAP=kafka:9092 STREAM_PEER_LOG__FORMAT=json stream-peer worker
    """  # noqa: D301
    from stream_peer.kafka.client.topics_watch import TopicsWatch
    from stream_peer.kafka.worker.worker import Keys
    from stream_peer.serve import logs
    from stream_peer.serve.http import EarlyProbes

    settings = invocation.settings
    fault = fault_from(os.environ)
    keys = Keys(read_secret(settings), required_signing_keys(settings), read_producers(settings))
    with bound_address(invocation.loaded) as bound, EarlyProbes(bound) as early:
        logs.configure(settings.log, secrets=(*settings.secrets(), *_as_secrets(keys.signing)))
        watch = TopicsWatch(_topics_check(invocation), _check_brokers(invocation))
        if settings.broker == "kafka":
            _compare_feed_settings(invocation)
        log.info("worker_starts", version=__version__, bootstrap=settings.bootstrap, stage=settings.stage)
        if os.environ.get(FAULT_VARIABLE):
            log.warning("worker_will_kill_itself", where=os.environ[FAULT_VARIABLE])
        with watch if settings.broker == "kafka" else nullcontext():
            code = _run(settings, keys, fault, bound, early, watch)
    context.exit(code)


def _as_secrets(keys: Iterable[bytes]) -> Iterator[Secret]:
    return (Secret(key.decode(errors="replace")) for key in keys if key)


def _run(
    settings: Settings,
    keys: "Keys",
    fault: Callable[[str], None],
    bound: socket.socket,
    early: "EarlyProbes",
    watch: "TopicsWatch",
) -> int:
    from stream_peer.events.topics import DEAD_LETTERS, FORECAST_EVENTS
    from stream_peer.kafka.worker.feed_owners import FeedOwners
    from stream_peer.kafka.worker.health import Health
    from stream_peer.kafka.worker.worker import run
    from stream_peer.log.dead_letters import shown_by
    from stream_peer.serve.feed_records import FeedFollower
    from stream_peer.serve.http import About, HttpServer, Sources
    from stream_peer.serve.http.explain import ExplainAnswers
    from stream_peer.serve.http.server import Announcer
    from stream_peer.serve.metrics import Metrics
    from stream_peer.settings.process.checks import agreement_hash

    settings = _advertised(settings, bound)
    agreed = agreement_hash(settings, keys.secret, keys.signing[0], keys.producers)
    health, owners, follower = Health(lambda: watch.fault), FeedOwners(), FeedFollower(settings)
    metrics = Metrics(health, agreed)
    explanations = ExplainAnswers(explain_tool(settings, keys.secret))
    shows_refused = shown_by(settings.bootstrap, settings.topic(DEAD_LETTERS))
    name, events_topic = settings.instance or str(settings.http.advertise), settings.topic(FORECAST_EVENTS)
    about = About(name, agreed, events_topic, shows_refused)
    server = HttpServer(settings.http, Sources(metrics, health, follower, owners, explanations, about), bound, early)
    services = [server, follower, Announcer(health.ready, lambda: server.url)]
    code = run(settings, metrics, keys, services, health=health, owners=owners, fault=fault)
    log.info("worker_stopped", code=code)
    return code


def explain_tool(settings: Settings, secret: bytes) -> "ExplainTool":
    """The process that explains weights: of this package, and of nothing in the working directory (``-P``)."""
    from stream_peer.serve.http.explain import ExplainTool

    package = str(Path(__file__).parents[2])
    return ExplainTool((sys.executable, "-P", "-c", _EXPLAINS, package), settings, secret)


def _advertised(settings: Settings, bound: socket.socket) -> Settings:
    """The settings with the address for redirects: if none is named and all are bound, the machine's."""
    from stream_peer.serve.http import port_of, url_of

    http = settings.http
    if http.advertise is not None:
        return settings
    host = socket.gethostname() if http.host in ("", "0.0.0.0", "::") else http.host  # noqa: S104 - compared only
    return replace(settings, http=replace(http, advertise=url_of(host, port_of(bound))))


def _check_brokers(invocation: Invocation) -> dict[str, str]:
    """Wait for a broker; refuse topics that are not as they must be, and rights that are missing. Ids of the topics."""
    from stream_peer.kafka.client.admin import KafkaAdmin
    from stream_peer.kafka.client.topic_plan import worker_rights

    settings = invocation.settings

    def waiting(reason: str) -> None:
        log.warning("broker_awaited", bootstrap=settings.bootstrap, reason=reason, seconds=settings.broker_patience)

    def young(reason: str) -> None:
        log.info("coordinator_awaited", reason=reason)

    admin = KafkaAdmin(settings, command=invocation.command("topics apply"), waiting=waiting, young=young)
    return admin.check(worker_rights(settings))


def _topics_check(invocation: Invocation) -> "Check":
    """The same check for later; brokers that are away then are somebody else's matter."""
    from stream_peer.kafka.client.admin import KafkaAdmin
    from stream_peer.kafka.client.topic_plan import worker_rights

    settings = replace(invocation.settings, broker_patience=_LATER_PATIENCE)
    admin = KafkaAdmin(settings, command=invocation.command("topics apply"))
    return lambda former: admin.check(worker_rights(settings), former)


def _compare_feed_settings(invocation: Invocation) -> None:
    """Say so if the file's feed settings are not the ones applied: the applied ones count."""
    if not invocation.settings.document:
        return
    from stream_peer.kafka.client.control_events import newest_document
    from stream_peer.kafka.client.method_in_force import as_applied

    try:
        newest = newest_document(invocation.settings)
    except StreamPeerError as error:
        log.warning("feed_settings_not_compared", reason=str(error))
        return
    applied = None if newest is None else newest.hash
    ours = document_hash(as_applied(invocation.settings.document, {} if newest is None else newest.document))
    if applied != ours:
        command = invocation.command("settings apply")
        log.warning("feed_settings_differ_from_file", in_force=applied or "built-in", in_file=ours, to_apply=command)

"""``stream-peer worker``: settings, logs, metrics, health and the apps, introduced to each other."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable

import click
import structlog

from stream_peer import __version__
from stream_peer.cli.fault import VARIABLE, fault_from
from stream_peer.cli.options import Invocation, settings_options, waiting_note
from stream_peer.errors import SettingFault, SettingsError, StreamPeerError
from stream_peer.settings import Http, Loaded, Settings, read_secret

log = structlog.get_logger(__name__)


@click.command(name="worker")
@settings_options("stage", "http.host", "http.port", "instance", "log.format", "log.level")
@click.pass_context
def worker_command(context: click.Context, invocation: Invocation) -> None:
    """Run a worker until it is told to stop (SIGTERM, Ctrl-C). Start as many as you like, up to one a partition.

    It reads forecast-events and control-events and publishes weights, error rates, reference answers, peer losses
    and mixed forecasts. Metrics are at /metrics, health at /healthz/live, /healthz/ready and /healthz/startup.

    \b
    stream-peer worker --bootstrap kafka:9092
    stream-peer worker --config settings.yaml --http-host 0.0.0.0 --instance worker-0
    STREAM_PEER_BOOTSTRAP=kafka:9092 STREAM_PEER_LOG__FORMAT=json stream-peer worker
    """  # noqa: D301
    from stream_peer.adapters import logs

    settings = invocation.settings
    fault = fault_from(os.environ)
    secret = read_secret(settings)
    _check_address(settings.http, invocation.loaded)
    logs.configure(settings.log, secrets=settings.secrets())
    if settings.broker == "kafka":
        _check_topics(invocation)
        _compare_feed_settings(invocation)
    log.info("worker_starts", version=__version__, bootstrap=settings.bootstrap, stage=settings.stage)
    if os.environ.get(VARIABLE):
        log.warning("worker_will_kill_itself", where=os.environ[VARIABLE])
    context.exit(_run(settings, secret, fault))


def _run(settings: Settings, secret: bytes, fault: Callable[[str], None]) -> int:
    from stream_peer.adapters.http import HttpServer
    from stream_peer.adapters.prometheus import Metrics
    from stream_peer.adapters.weight_story.http import WeightAnswers, from_kafka
    from stream_peer.cli.announcer import Announcer
    from stream_peer.settings.agreement import agreement_hash
    from stream_peer.topology.health import Health
    from stream_peer.topology.worker import run

    health = Health()
    metrics = Metrics(health, agreement_hash(settings, secret))
    server = HttpServer(settings.http, metrics, health, WeightAnswers(from_kafka(settings, secret)))
    announcer = Announcer(health.ready, lambda: server.url)
    code = run(settings, metrics, secret, [server, announcer], health=health, fault=fault)
    log.info("worker_stopped", code=code)
    return code


def _check_address(http: Http, loaded: Loaded) -> None:
    """Whether the address of the HTTP server can be bound: a typo shows before the group is joined."""
    family = socket.AF_INET6 if ":" in http.host else socket.AF_INET
    try:
        socket.create_server((http.host, http.port), family=family).close()
    except OSError as error:
        reason = str(error.strerror).split(" (while", maxsplit=1)[0]
        elsewhere = (error.errno or 0) < 0 or error.errno == errno.EADDRNOTAVAIL
        path = "http.host" if elsewhere else "http.port"
        message = f"cannot listen on {http.host}:{http.port} ({reason})"
        raise SettingsError([SettingFault(path, loaded.origins[path], message)]) from None


def _check_topics(invocation: Invocation) -> None:
    from stream_peer.adapters.kafka_admin import KafkaAdmin

    settings = invocation.settings
    KafkaAdmin(settings, command=invocation.command("topics apply"), waiting=waiting_note(settings)).check()


def _compare_feed_settings(invocation: Invocation) -> None:
    """Say so if the file's feed settings are not the ones applied: the applied ones count."""
    if not invocation.settings.document:
        return
    from stream_peer.adapters.control_events import newest_document

    try:
        newest = asyncio.run(newest_document(invocation.settings))
    except StreamPeerError as error:
        log.warning("feed_settings_not_compared", reason=str(error))
        return
    ours, applied = invocation.loaded.book.hash, None if newest is None else newest.hash
    if applied != ours:
        command = invocation.command("settings apply")
        log.warning("feed_settings_differ_from_file", in_force=applied or "built-in", in_file=ours, to_apply=command)

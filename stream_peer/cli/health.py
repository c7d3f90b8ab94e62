"""``stream-peer health``: asks the worker on this machine how it is, for health checks that run a command."""

import contextlib
import http.client
import json
from typing import Any

import click

from stream_peer.cli.options import Invocation, settings_options
from stream_peer.errors import SettingFault, SettingsError
from stream_peer.settings.process import Http
from stream_peer.settings.process.checks import host_and_port

_LONGEST_ANSWER = 64_000
# Who binds every address is asked at the loopback one.
_ASKED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - nothing is bound here


@click.command(name="health")
@click.option("--live", is_flag=True, help="Ask whether it makes progress: if not, it should be restarted.")
@click.option(
    "--started", is_flag=True, help="Ask whether it has recovered its first assignment, or still waits for brokers."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.01, 600.0),
    default=4.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for its answer.",
)
@settings_options("http.host", "http.port", waits="nobody")
@click.pass_context
def health_command(
    context: click.Context, invocation: Invocation, *, live: bool, started: bool, timeout: float
) -> None:
    """Ask the worker on this machine whether it is ready; end with 0 if it is, with 1 and the reason if not.

    It finds the worker by the settings the worker has (file, environment or flags) and needs no token. Ready means:
    its partitions are assigned and recovered, none is being rebuilt, brokers answer and topics are as planned. The
    image's HEALTHCHECK is this command; Kubernetes asks /healthz/ready, /healthz/live and /healthz/startup itself.

    \b
    stream-peer health
    stream-peer health --live --timeout 2 || echo "restart it"
    stream-peer health --http-port 8081
    """  # noqa: D301
    if live and started:
        msg = "--live and --started are two questions: ask one of them"
        raise click.UsageError(msg)
    http_settings = invocation.settings.http
    if http_settings.port == 0:
        message = "0 lets the worker take any free port, so that nobody knows where to ask: give it a number"
        raise SettingsError([SettingFault("http.port", invocation.loaded.origins["http.port"], message)])
    question = "live" if live else "startup" if started else "ready"
    healthy, sentence = ask(http_settings, question, timeout)
    click.echo(sentence, err=not healthy)
    context.exit(0 if healthy else 1)


def ask(settings: Http, question: str, timeout: float) -> tuple[bool, str]:
    """What the worker says to a question of health (live, ready, startup): whether it is, and a sentence for people."""
    host = _ASKED_AT.get(settings.host, settings.host)
    where = host_and_port(host, settings.port)
    try:
        status, reason = _asked(http.client.HTTPConnection(host, settings.port, timeout=timeout), question)
    except TimeoutError:
        return False, f"The worker at {where} did not answer within {timeout:g} s."
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: of a host that is no name
        return False, f"No worker answers at {where}: {getattr(error, 'strerror', None) or type(error).__name__}."
    said = {"live": "live", "ready": "ready", "startup": "started"}[question]
    if status == http.client.OK:
        return True, f"The worker at {where} is {said}."
    why = reason or f"it answered {status} {http.client.responses.get(status, '')}".rstrip()
    return False, f"The worker at {where} is not {said}: {why}."


def _asked(connection: http.client.HTTPConnection, question: str) -> tuple[int, str]:
    """Status and reason of an answer. Not urllib: a proxy of the environment is not how to reach oneself."""
    with contextlib.closing(connection):
        connection.request("GET", f"/healthz/{question}", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        return answer.status, _reason(answer.read(_LONGEST_ANSWER))


def _reason(body: bytes) -> str:
    """The worker's own words for why not; empty if it gave none."""
    try:
        answer: Any = json.loads(body)
    except ValueError:
        return ""
    return str(answer.get("reason") or answer.get("detail") or "").rstrip(".") if isinstance(answer, dict) else ""

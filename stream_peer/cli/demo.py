"""``stream-peer demo``: the whole service on this machine, on real forecasts."""

import os
import secrets
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from stream_peer.cli.options import Invocation, in_a_directory, settings_options
from stream_peer.errors import StreamPeerError
from stream_peer.settings.process import Settings, flag_of, load

_SMALL = {
    "partitions.forecast_events": "4",
    "partitions.control_events": "4",
    "partitions.feed_log": "4",
    "partitions.dead_letters": "4",
}


class DemoBroker(NamedTuple):
    """A broker with the demo's topics: the settings, and the flags and environment that pass them to a worker."""

    settings: Settings
    worker_flags: list[str]
    environment: Mapping[str, str]


@click.command(name="demo")
@click.option("--real", is_flag=True, help="Start a real Apache Kafka here (needs Java 17, and Maven the first time).")
@click.option(
    "--send-only", is_flag=True, help="Only send the events, to workers of yours: start none, make no topics."
)
@click.option("--keep", is_flag=True, help="Stay when everything is shown, with the addresses printed.")
@click.option(
    "--pace",
    type=click.FloatRange(0.0, 3600.0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to take for sending the events.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    callback=in_a_directory,
    help="Where to write the report, one page to open in a browser.",
)
@settings_options()
def demo_command(invocation: Invocation, *, real: bool, send_only: bool, keep: bool, pace: float, report: Path) -> None:
    """Show the whole service at work: forty weak classifiers, two copies and a random expert forecast 900 questions.

    A broker inside this process, a worker as you would run it, 30,000 events in less than a minute, a live table, and
    a report at the end. With --bootstrap your Kafka is used, under a topic prefix of the demo's own, which it removes
    at the end. With --send-only the events go to the deployment that the settings name, in which the feed
    digits-even has rounds of 45m: its workers, metrics and dashboards have something to show.

    \b
    stream-peer demo
    stream-peer demo --real
    stream-peer demo --bootstrap localhost:9092 --keep
    stream-peer demo --bootstrap localhost:9092 --send-only --pace 600
    """  # noqa: D301
    if send_only and (real or keep):
        msg = (
            "--send-only sends events to a deployment that is there: --real and --keep are about one of the demo's own"
        )
        raise click.UsageError(msg)
    given = "bootstrap" in invocation.flags
    if real and given:
        msg = "--real starts a Kafka, --bootstrap names one: use one of them"
        raise click.UsageError(msg)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind them with it ignored
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if send_only:
        from stream_peer.tools.demo.run import send

        send(invocation.settings, pace)
        return
    broker = _given_broker(invocation, keep=keep) if given else _real_broker() if real else _embedded_broker()
    with broker as place:
        _show(place, pace=pace, report=report, keep=keep)


def _show(place: DemoBroker, *, pace: float, report: Path, keep: bool) -> None:
    from stream_peer.serve.terminal import console
    from stream_peer.tools.demo.run import Demonstration, Wishes
    from stream_peer.tools.demo.worker import DemoWorker

    with DemoWorker(place.worker_flags, place.environment) as worker:
        demonstration = Demonstration(place.settings, worker, console(), Wishes(pace, report, keep))
        try:
            demonstration.run()
        except KeyboardInterrupt:
            if not demonstration.stays:
                raise
            click.echo("Stopping.")


@contextmanager
def _embedded_broker() -> Iterator[DemoBroker]:
    from stream_peer.kafka.client.topic_plan import wanted_topics
    from stream_peer.tools.demo.brokers import EmbeddedBroker

    flags = {"broker": "embedded"}
    names = [topic.name for topic in wanted_topics(load(None, {}, flags).settings)]
    with EmbeddedBroker(names) as broker:
        yield _place(None, _without_settings(os.environ), {**flags, "bootstrap": broker.bootstrap})


@contextmanager
def _real_broker() -> Iterator[DemoBroker]:
    from stream_peer.tools.demo.brokers import LocalKafka

    click.echo("Starting Apache Kafka …", err=True)
    with LocalKafka() as broker, _signing_key() as key:
        flags = {**_SMALL, "bootstrap": broker.bootstrap, "signing_key_file": key}
        place = _place(None, _without_settings(os.environ), flags)
        _make_topics(place.settings)
        yield place


@contextmanager
def _given_broker(invocation: Invocation, *, keep: bool) -> Iterator[DemoBroker]:
    """The visitor's broker. A prefix of our own keeps us off other topics, and says which may be removed."""
    ours = invocation.loaded.origins["prefix"] == "default"
    prefix = {"prefix": f"demo-{secrets.token_hex(3)}-"} if ours else {}
    with ExitStack() as stack:
        key = {}
        if invocation.settings.signing_key_file is None:
            key["signing_key_file"] = stack.enter_context(_signing_key())
        place = _place(invocation.config, os.environ, {**_SMALL, **invocation.flags, **prefix, **key})
        _make_topics(place.settings)
        stack.callback(_leave, place.settings, keep=keep or not ours)
        yield place


def _leave(settings: Settings, *, keep: bool) -> None:
    """Remove the demo's topics, or say that they stay."""
    if keep:
        click.echo(f"The topics {settings.prefix}* stay on {settings.bootstrap}.", err=True)
    else:
        _remove_topics(settings)


@contextmanager
def _signing_key() -> Iterator[str]:
    """A file with a key of the demo's own, for as long as the demo runs."""
    with TemporaryDirectory(prefix="stream-peer-demo-") as directory:
        file = Path(directory) / "signing-key"
        file.write_text(secrets.token_hex(32))
        yield str(file)


def _remove_topics(settings: Settings) -> None:
    from stream_peer.kafka.client.admin import KafkaAdmin
    from stream_peer.kafka.client.topic_plan import wanted_topics

    try:
        KafkaAdmin(settings).remove_topics([topic.name for topic in wanted_topics(settings)])
    except StreamPeerError as error:
        click.echo(f"The demo's topics {settings.prefix}* were not removed: {error}", err=True)


def _place(config: Path | None, environment: Mapping[str, str], flags: Mapping[str, str]) -> DemoBroker:
    settings = load(config, environment, flags).settings
    words = [word for path, text in flags.items() for word in (flag_of(path), text)]
    return DemoBroker(settings, words if config is None else ["--config", str(config), *words], environment)


def _make_topics(settings: Settings) -> None:
    from stream_peer.kafka.client.admin import KafkaAdmin

    KafkaAdmin(settings).apply()


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings of another deployment."""
    return {name: value for name, value in environment.items() if not name.startswith("STREAM_PEER_")}

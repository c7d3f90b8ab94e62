"""``stream-peer settings show | check | apply | schema``."""

import json
from collections.abc import Iterator

import click

from stream_peer.cli.options import Invocation, settings_options
from stream_peer.serve.terminal import progress_bar
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.settings.process import read_producers
from stream_peer.settings.process.shown import shown_feed_settings, shown_settings

Row = tuple[str, object, str]
_PATIENCE_SECONDS = 30.0  # for the workers, unless the patience with brokers is said


@click.group(name="settings", no_args_is_help=True)
def settings_group() -> None:
    """Show, check and apply settings."""


@settings_group.command(name="show")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.option("--changed", is_flag=True, help="Leave out defaults.")
@settings_options(waits="nobody")
def show_command(invocation: Invocation, *, as_json: bool, changed: bool) -> None:
    """Print every setting with its value and its origin. Secrets are shown as ***.

    Feed settings stand below, under defaults and feeds: they take effect when `settings apply` has sent them.

    \b
    stream-peer settings show
    stream-peer settings show --config settings.yaml --changed
    """  # noqa: D301
    rows = [row for row in _rows(invocation) if not changed or row[2] != "default"]
    if as_json:
        click.echo(json.dumps({path: {"value": value, "origin": origin} for path, value, origin in rows}, indent=2))
        return
    width = max((len(path) for path, _, _ in rows), default=0)
    values = max((len(_text(value)) for _, value, _ in rows), default=0)
    for path, value, origin in rows:
        click.echo(f"{path:<{width}}  {_text(value):<{min(values, 40)}}  {origin}")
    click.echo(f"\n# feed settings: {invocation.loaded.book.hash}")


@settings_group.command(name="check", short_help="List faults of the settings, without a broker.")
@settings_options(waits="nobody")
def check_settings_command(invocation: Invocation) -> None:
    """End with 0 if the settings are right, with 78 and one line for each fault if not. Asks no broker.

    Of producers_file and the keys that it names all faults are listed as well.

    \b
    stream-peer settings check --config settings.yaml
    """  # noqa: D301
    book, producers = invocation.loaded.book, read_producers(invocation.settings)
    signed = "" if producers is None else f" Producers {producers.hash}, by name: {len(producers)}."
    click.echo(f"The settings are right. Feed settings {book.hash}, feeds by name: {len(book.feeds)}.{signed}")


@settings_group.command(name="apply", short_help="Send the feed settings of the file to control-events.")
@click.option("--force", is_flag=True, help="Send them even if they equal the last ones.")
@click.option("--no-wait", is_flag=True, help="End when they are stored: no worker has to run.")
@click.option(
    "--upgrade",
    type=click.FloatRange(0.0),
    default=0.0,
    metavar="SECONDS",
    help="Wait up to this long until no worker of an earlier release runs; then apply this release's method version.",
)
@settings_options()
def apply_settings_command(invocation: Invocation, *, force: bool, no_wait: bool, upgrade: float) -> None:
    """Send the feed settings of the file (defaults and feeds) to control-events, and wait until they are in force.

    A worker hands them on to every partition. What is sent after this command has ended is read under these
    settings. They count from the moment at which they are stored, the first ones that were ever applied from
    the beginning. If no worker hands them on within 30 s, or --patience, it ends with 69: they are stored, and come
    into force when a worker runs.

    Defaults without method_version get that of this release, unless a worker of an earlier release runs: then the
    version in force stays, and the command says so. Settings that state a later version than such a worker serves are
    not applied, and the command ends with 69.

    \b
    stream-peer settings apply --config settings.yaml
    """  # noqa: D301
    if invocation.config is None:
        msg = "name the file whose feed settings to apply: --config FILE"
        raise click.UsageError(msg)
    from stream_peer.kafka.client.control_events import apply_document, apply_everywhere, newest_document
    from stream_peer.kafka.client.method_in_force import to_apply

    settings, newest = invocation.settings, newest_document(invocation.settings)
    document, why_not_newest = to_apply(settings, settings.document, newest and newest.document, upgrade)
    if why_not_newest:
        click.echo(f"The method: {why_not_newest}. Apply the settings again when all workers are of this release.")
    if not force and newest is not None and newest.hash == document_hash(document):
        click.echo(f"Nothing to do: feed settings {newest.hash} are the ones applied last.")
        return
    if no_wait:
        applied = apply_document(settings, document)
    else:
        patience = settings.broker_patience if invocation.is_patience_given else _PATIENCE_SECONDS
        click.echo(f"Waiting up to {patience:g} s until the workers have handed the settings on.", err=True)
        with progress_bar("partitions that have the settings") as progress:
            applied = apply_everywhere(settings, document, patience, progress)
    was = f", after {newest.hash}" if newest is not None else ""
    how = "Stored" if no_wait else "Applied"
    click.echo(
        f"{how} feed settings {applied.hash}{was} (control-events {applied.partition}, offset {applied.offset})."
    )


@settings_group.command(name="schema")
def schema_command() -> None:
    """Print the JSON Schema of the settings file.

    \b
    stream-peer settings schema > settings.schema.json
    # first line of settings.yaml, for editors that know the YAML language server:
    # yaml-language-server: $schema=settings.schema.json
    """  # noqa: D301
    from stream_peer.settings.process.shown import settings_schema

    click.echo(json.dumps(settings_schema(), indent=2))


def _rows(invocation: Invocation) -> Iterator[Row]:
    loaded = invocation.loaded
    for path, value in shown_settings(loaded.settings):
        yield path, value, loaded.origins[path]
    built_in = dict(shown_feed_settings(FeedSettings()))
    default = dict(shown_feed_settings(loaded.book.default))
    origin = f"file {invocation.config}"
    for path, value in default.items():
        yield f"defaults.{path}", value, "default" if value == built_in[path] else origin
    for feed, settings in loaded.book.feeds.items():
        for path, value in shown_feed_settings(settings):
            if value != default[path]:
                yield f"feeds.{feed}.{path}", value, origin


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as in the file
    return "-" if value in (None, "") else str(value)

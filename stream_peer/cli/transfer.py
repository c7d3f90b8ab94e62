"""``stream-peer export | import``: a feed as a file, and a file as a feed."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_peer.cli.options import Invocation, must_be_feed_name, replaced_file, settings_options
from stream_peer.errors import FeedTransferError, SettingFault, SettingsError
from stream_peer.events.incoming import is_feed_name
from stream_peer.serve.terminal import progress_bar
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.process import read_secret

if TYPE_CHECKING:
    from stream_peer.tools.replay.run import Run
    from stream_peer.tools.transfer.feed_file import Line
    from stream_peer.tools.transfer.feed_import import FeedFile


@click.command(name="export")
@click.argument("feed")
@click.option(
    "--out",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    callback=replaced_file,
    help="The file to write (gzip).",
)
@click.option(
    "--pseudonyms",
    "key_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="KEYFILE",
    help="Put pseudonyms in place of expert ids and teams, made with the key in KEYFILE.",
)
@click.option("--pseudonym-questions", "questions", is_flag=True, help="In place of question ids as well.")
@settings_options()
def export_command(invocation: Invocation, *, feed: str, file: Path, key_file: Path | None, questions: bool) -> None:
    """Export FEED to a file: its records of the feed-log, and its questions with their forecasts.

    Workers continue. `stream-peer import` imports the file into another cluster, where later outcomes find
    their questions. Erased experts are left out. With --pseudonyms the file is for analysis, or
    for a feed of its own: the same key gives the same pseudonyms, and without it nothing leads back.

    \b
    stream-peer export econ --out econ.feed.gz --bootstrap kafka:9092
    stream-peer export econ --out econ.feed.gz --pseudonyms key.txt
    """  # noqa: D301
    from stream_peer.tools.transfer.feed_export import export_feed
    from stream_peer.tools.transfer.feed_file import write_feed
    from stream_peer.tools.transfer.reshape import Pseudonyms, all_with_pseudonyms

    if questions and key_file is None:
        msg = "--pseudonym-questions needs the key: --pseudonyms KEYFILE"
        raise click.UsageError(msg)
    names = None if key_file is None else Pseudonyms(key_file.read_bytes().strip(), questions=questions)
    tally = Tally()
    lines = tally.of(export_feed(invocation.settings, feed))
    size = write_feed(file, lines if names is None else all_with_pseudonyms(lines, names))
    click.echo(f"{tally.text()} → {file} ({size:,} bytes).")


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "feed", metavar="FEED", help="Import under another name; draws and tie-breaks differ then.")
@click.option(
    "--other-secret", is_flag=True, help="Import despite another secret; draws and tie-breaks differ from then on."
)
@settings_options()
def import_command(invocation: Invocation, *, file: Path, feed: str | None, other_secret: bool) -> None:
    """Import the feed in FILE, which `stream-peer export` or `stream-peer replay --export` wrote.

    The feed must not know questions here. Its settings must give its numbers the same meaning (`stream-peer settings
    apply` first), and the secret must be the same. Its records are appended to feed-log, then its questions go to
    control-events. An import that was interrupted goes on if it is tried again. Revisions are
    offsets of the feed-log here, so they may be lower than before.

    \b
    stream-peer import econ.feed.gz --bootstrap other-kafka:9092
    stream-peer import trial.feed.gz --as trial-2
    """  # noqa: D301
    from stream_peer.tools.transfer.feed_import import look_up, send_import

    if feed is not None:
        must_be_feed_name(feed, "--as")
    found = _feed_file(invocation, file, feed, other_secret=other_secret)
    landing = look_up(invocation.settings, found)
    with progress_bar("lines") as progress:
        sent = send_import(invocation.settings, found, landing, progress)
    click.echo(
        f"Feed {found.header.feed}: import {sent.import_id}, {sent.records:,} records appended to partition "
        f"{sent.partition} of feed-log, {sent.parts:,} parts with questions written to control-events."
    )
    if landing.appended:
        click.echo(f"Of an earlier attempt {landing.appended:,} records stood there.")
    click.echo("Workers read it from there; what they refuse becomes a dead letter, import-refused.")


def _feed_file(invocation: Invocation, file: Path, feed: str | None, *, other_secret: bool) -> "FeedFile":
    """The file, if its secret is ours or need not be."""
    from stream_peer.log.draws import fingerprint
    from stream_peer.tools.transfer.feed_import import FeedFile

    ours = fingerprint(read_secret(invocation.settings))
    found = FeedFile(file, feed, ours)
    if found.secret != ours and not other_secret:
        message = (
            f"has the fingerprint {ours}, that of the feed was {found.secret}: draws and tie-breaks would differ. "
            "Name the same secret_file, or say --other-secret"
        )
        raise SettingsError([SettingFault("secret_file", invocation.loaded.origins["secret_file"], message)])
    if found.lost:
        text = f"Note: {found.lost} ids that were erased there are not recognised here: erase them again."
        click.echo(text, err=True)
    return found


class Tally:
    """Counts what is in the lines of a feed as they pass."""

    def __init__(self) -> None:
        self._records = self._histories = 0
        self._experts: set[str] = set()
        self._questions: set[str] = set()
        self._named = ""

    def of(self, lines: "Iterable[Line]") -> "Iterator[Line]":
        """The lines, counted."""
        from stream_peer.events.feed_log import Round
        from stream_peer.tools.transfer.feed_file import Header, RecordLine

        for line in lines:
            if isinstance(line, Header):
                self._named = f"Feed {line.feed} at revision {line.revision}"
            elif isinstance(line, RecordLine):
                self._records += 1
                if isinstance(line.record, Round):
                    self._experts.update(line.record.experts)
                    self._questions.add(line.record.question_id)
            else:
                self._histories += 1
            yield line

    def text(self) -> str:
        """What they were."""
        if not self._named:
            msg = "there was nothing to export"
            raise FeedTransferError(msg)
        rounds = f"{len(self._experts):,} experts and {len(self._questions):,} questions in {self._records:,} records"
        return f"{self._named}: {rounds} of its log, {self._histories:,} questions with what was said of them"


def replay_targets(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Path]:
    """The files of ``--export FEED=FILE`` by feed."""
    targets = {}
    for value in values:
        feed, _, file = value.partition("=")
        if not file or not is_feed_name(feed):
            msg = f"{value!r} is not FEED=FILE"
            raise click.BadParameter(msg)
        targets[feed] = Path(file)
        replaced_file(context, parameter, targets[feed])
    return targets


class ReplayExports:
    """Writes feeds of a replay when it has ended. ``said``: a sentence about each.

    Parameters
    ----------
    targets : mapping of str to Path
        Which feeds, and where to.
    document : mapping
        The settings that the replay is given.

    Raises
    ------
    SettingsError
        If no worker would go on under them.
    """

    def __init__(self, targets: Mapping[str, Path], document: Mapping[str, Any]) -> None:
        load_document(document, origin="--set")
        self._targets = targets
        self._document = document
        self.said: list[str] = []

    def __call__(self, run: "Run") -> None:
        """Write them."""
        from stream_peer.tools.replay.replay import historical
        from stream_peer.tools.transfer.feed_file import write_feed

        for feed, file in self._targets.items():
            tally = Tally()
            size = write_feed(file, tally.of(run.exported(feed, historical(self._document))))
            self.said.append(f"{tally.text()} → {file} ({size:,} bytes).")

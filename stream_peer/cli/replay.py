"""``stream-peer replay FILE…``: the same engine over files, without Kafka; or over a feed-log, to compare."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stream_peer.cli.options import Invocation, in_a_directory, settings_options, write_text
from stream_peer.settings import read_secret

if TYPE_CHECKING:
    from stream_peer.adapters.feed_log_reader import Comparison
    from stream_peer.engine.stage import Output

Progress = Callable[[int, int], None]


class _Choices(NamedTuple):
    """What the command line says beside the settings."""

    feed_as: str | None
    assignments: tuple[str, ...]
    reveal: float
    shuffle: int | None
    partitions: int
    feed_log_partitions: int
    out: Path | None
    report: Path | None
    experts: int
    from_log: str | None


@click.command(name="replay")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--feed-as", metavar="FEED", help="Put all events into this feed, whatever they say.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A feed setting, e.g. round_every=1d; several are welcome.",
)
@click.option(
    "--reveal",
    type=click.FloatRange(0.0, 1.0),
    default=1.0,
    show_default=True,
    help="Share of questions whose outcomes are told, each when its question closes; 1: all, when the file has them.",
)
@click.option("--shuffle", type=int, metavar="SEED", help="Interleave the questions otherwise.")
@click.option(
    "--question-partitions",
    "partitions",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Fold as if forecast-events had so many.",
)
@click.option(
    "--feed-partitions",
    "feed_log_partitions",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Fold as if feed-log had so many.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write the topics here, as JSON lines.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    callback=in_a_directory,
    help="Write a report here (HTML).",
)
@click.option(
    "--experts", type=click.IntRange(0), default=10, show_default=True, help="How many experts of a feed to list."
)
@click.option(
    "--from-log", metavar="FEED", help="Fold FEED's log from Kafka again and compare with what was published."
)
@settings_options()
@click.pass_context
def replay_command(
    context: click.Context, invocation: Invocation, /, *, files: tuple[Path, ...], **options: Any
) -> None:
    """Fold the events of FILEs (JSON lines, plain or gzip) as the service would, and say whom to listen to.

    Their own times count, as for any feed with history: true; settings come from --config and --set.
    With --from-log no file is read, and the exit code is 1 if something was published that the log does not give.

    \b
    stream-peer replay forecasts.jsonl
    stream-peer replay a.jsonl.gz b.jsonl.gz --feed-as all --set round_every=1d --out replayed/
    stream-peer replay forecasts.jsonl --reveal 0.2 --report report.html
    stream-peer replay --from-log econ --bootstrap kafka:9092
    """  # noqa: D301
    choices = _Choices(**options)
    if choices.from_log is not None:
        if files:
            msg = "name files or --from-log FEED, not both"
            raise click.UsageError(msg)
        context.exit(_from_log(invocation, choices.from_log, choices.out))
    if not files:
        msg = "name at least one file, or --from-log FEED"
        raise click.UsageError(msg)
    _from_files(invocation, files, choices)


def _from_files(invocation: Invocation, files: tuple[Path, ...], choices: _Choices) -> None:
    from stream_peer.adapters.jsonl import read_lines
    from stream_peer.adapters.replay import ReplayOptions, replay, with_settings
    from stream_peer.adapters.summary import summary

    options = ReplayOptions(
        document=with_settings(invocation.settings.document, choices.assignments),
        feed_as=choices.feed_as,
        reveal=None if choices.reveal == 1.0 else choices.reveal,
        shuffle=choices.shuffle,
        partitions=choices.partitions,
        feed_log_partitions=choices.feed_log_partitions,
        secret=read_secret(invocation.settings),
    )
    with ExitStack() as stack:
        write = _writer(stack, choices.out)
        progress = stack.enter_context(_progress())
        result = replay([read_lines(file) for file in files], options, write=write, progress=progress)
    click.echo(summary(result, choices.experts))
    if choices.report is not None:
        from stream_peer.adapters.report import render

        variants = {feed: result.variant(feed) for feed in result.history.feeds}
        write_text(choices.report, render(result.history, variants=variants))
        click.echo(f"\nreport: {choices.report}")


def _from_log(invocation: Invocation, feed: str, out: Path | None) -> int:
    """Exit code 0 if everything published is what the log gives, 1 if not."""
    from stream_peer.adapters.feed_log_reader import replay_from_log

    with ExitStack() as stack:
        write = _writer(stack, out)
        progress = stack.enter_context(_progress())
        secret = read_secret(invocation.settings)
        found = replay_from_log(invocation.settings, feed, secret=secret, write=write, progress=progress)
    if not (found.equal or found.different or found.never):
        msg = f"nothing was published of feed {feed!r}"
        raise click.BadParameter(msg, param_hint="--from-log")
    click.echo(compared(found))
    return 0 if found.is_equal else 1


def compared(found: "Comparison") -> str:
    """What to say about a comparison of a log with what was published."""
    lines = [f"{found.records:,} records folded; {found.equal:,} published revisions are what the log gives"]
    if found.log_start:
        lines.append(f"the log begins at offset {found.log_start:,}: what came before is not in it")
    named = (("differ from what the log gives", found.different), ("are not given by the log", found.never))
    for what, places in named:
        if places:
            lines.append(f"published revisions that {what} (the first {len(places)}):")
            lines += [f"  {topic} {key} revision {revision}" for topic, key, revision in places]
    return "\n".join(lines)


def _writer(stack: ExitStack, out: Path | None) -> "Callable[[Output], None] | None":
    if out is None:
        return None
    from stream_peer.adapters.jsonl import OutputFiles

    try:
        return stack.enter_context(OutputFiles(out)).write
    except OSError as error:
        raise click.FileError(str(out), error.strerror) from error


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar for a person at a terminal, on stderr; nothing for anybody else."""
    if not click.get_text_stream("stderr").isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("events", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

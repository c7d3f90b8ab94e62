"""``stream-peer replay FILE…``: the same engine over files, without Kafka; or over a feed-log, to compare."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stream_peer.cli.options import (
    Invocation,
    NamedPath,
    OfFiles,
    feed_as_option,
    file_options,
    in_a_directory,
    must_be_usable,
    refuse_flags_of_files,
    settings_options,
    write_text,
)
from stream_peer.cli.transfer import ReplayExports, replay_targets
from stream_peer.events.spelling import spelt
from stream_peer.serve.terminal import ProgressBar, bar_of, progress_bar
from stream_peer.settings.process import read_secret

if TYPE_CHECKING:
    from stream_peer.events.outputs import ShadowScores
    from stream_peer.log.stage import Output
    from stream_peer.serve.explanation import WeightExplanation
    from stream_peer.tools.explain.question_timeline import QuestionProbe
    from stream_peer.tools.replay.feed_log_reader import Comparison
    from stream_peer.tools.replay.replay import ReplayOptions, ReplayResult
    from stream_peer.tools.replay.run import Run


_MOST_REVISED = ""
_NAMED = 3


class _Choices(NamedTuple):
    """What the command line says beside the settings."""

    of_files: OfFiles
    shadows: tuple[str, ...]
    shuffle: int | None
    partitions: int
    feed_log_partitions: int
    out: Path | None
    report: Path | None
    experts: int
    from_log: str | None
    explain: str | None
    exports: dict[str, Path]


_FOR_FILES = {*OfFiles._fields, *_Choices._fields} - {"out", "from_log", "shadows"}


@click.command(name="replay")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE…")
@feed_as_option
@file_options
@click.option(
    "--shadow",
    "shadows",
    multiple=True,
    metavar="NAME:SETTING=VALUE[,…]",
    help="Fold the same events under these settings as well, and say how its forecasts would have done; may be"
    " given several times.",
)
@click.option("--shuffle", type=int, metavar="SEED", help="Interleave the questions in another order.")
@click.option(
    "--question-partitions",
    "partitions",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of partitions of forecast-events to simulate.",
)
@click.option(
    "--feed-partitions",
    "feed_log_partitions",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of partitions of feed-log to simulate.",
)
@click.option("--out", type=NamedPath(path_type=Path, file_okay=False), help="Write the topics here, as JSON lines.")
@click.option(
    "--report",
    type=NamedPath(path_type=Path, dir_okay=False, writable=True),
    callback=in_a_directory,
    help="Write a report here (HTML).",
)
@click.option(
    "--experts", type=click.IntRange(0), default=10, show_default=True, help="Number of experts of a feed to list."
)
@click.option(
    "--from-log", metavar="FEED", help="Replay FEED's log from Kafka and compare it with the published records."
)
@click.option(
    "--explain",
    is_flag=False,
    flag_value=_MOST_REVISED,
    metavar="[QUESTION]",
    help="Tell the life of QUESTION: what was published when, and why it was revised. Without it, of the question with"
    " the most revisions. Write it after the files.",
)
@click.option(
    "--export",
    "exports",
    multiple=True,
    metavar="FEED=FILE",
    callback=replay_targets,
    help="Write FEED to FILE, as it is at the end, for `stream-peer import`; may be given several times.",
)
@settings_options(in_replay=True)
@click.pass_context
def replay_command(
    context: click.Context, invocation: Invocation, /, *, files: tuple[Path, ...], **options: Any
) -> None:
    """Process the events of FILEs (JSON lines, plain or gzip) as the service would, and print the weights.

    The events' own times count, as for any feed with history: true; settings come from --config and --set. A pipe is
    read as /dev/stdin. A file whose lines are not in order of time is put in order; a few late lines stay late.

    With --from-log no file is read, and the exit code is 1 if something was published that the log does not give.

    \b
    stream-peer replay forecasts.jsonl
    stream-peer replay a.jsonl.gz b.jsonl.gz --feed-as all --set round_every=1d --out replayed/
    stream-peer replay forecasts.jsonl --reveal 0.2 --report report.html
    stream-peer replay forecasts.jsonl --reveal 0.1,3 --set round_every=null
    stream-peer replay forecasts.jsonl --explain fed-cut-june
    stream-peer replay history.jsonl.gz --export econ=econ.feed.gz
    stream-peer replay forecasts.jsonl --shadow eager:mixer.peer_rate=48 --shadow forgets:memory=2000
    stream-peer replay --from-log econ --bootstrap kafka:9092
    """  # noqa: D301
    choices = _Choices(**options)
    if choices.from_log is not None:
        _must_be_for_logs(context, files)
        context.exit(_from_log(invocation, choices.from_log, choices))
    if not files:
        msg = "name at least one file, or --from-log FEED"
        if choices.explain:
            msg += f"; {choices.explain!r} was taken for the question of --explain, which stands after the files"
        raise click.UsageError(msg)
    _from_files(invocation, files, choices)


def _must_be_for_logs(context: click.Context, files: tuple[Path, ...]) -> None:
    refuse_flags_of_files(context, _FOR_FILES, "not for --from-log")
    if files:
        msg = "name files or --from-log FEED, not both"
        raise click.UsageError(msg)


def _from_files(invocation: Invocation, files: tuple[Path, ...], choices: _Choices) -> None:
    from stream_peer.tools.replay.files import read_lines
    from stream_peer.tools.replay.replay import replay
    from stream_peer.tools.replay.shadows import ShadowRuns, read_shadows, shadow_table
    from stream_peer.tools.replay.summary import replay_summary

    options = _options(invocation, choices)
    exports = ReplayExports(choices.exports, options.document) if choices.exports else None
    shadows = ShadowRuns(read_shadows(choices.shadows), options)
    asked = None if choices.explain is None else _asked(files, options, choices.explain)
    with ExitStack() as stack:
        write = _writer(stack, choices.out)
        progress = stack.enter_context(progress_bar("events"))
        report = None if choices.report is None else ReplayReport(choices.report, progress)
        result = replay(
            shadows.kept([read_lines(file, bar_of("bytes read", progress)) for file in files]),
            options,
            write=write,
            progress=progress,
            probes=[*shadows.probes(), *([asked.probe] if asked else [])],
            finished=[each for each in (exports, report) if each],
        )
        must_be_usable(result, files)
        compared_with = shadows.run(progress)
        if report:
            report.write(result, compared_with)
    if asked:
        _explain(asked)
    click.echo(replay_summary(result, choices.experts))
    if compared_with:
        click.echo(f"\n{shadow_table(compared_with)}")
    for sentence in exports.said if exports else ():
        click.echo(f"\n{sentence}")
    if choices.report is not None:
        click.echo(f"\nreport: {choices.report}")


def _options(invocation: Invocation, choices: _Choices) -> "ReplayOptions":
    return choices.of_files.options(
        invocation,
        shuffle=choices.shuffle,
        partitions=choices.partitions,
        feed_log_partitions=choices.feed_log_partitions,
    )


class _Asked(NamedTuple):
    """The question to explain, and which others were published again, those most often first."""

    probe: "QuestionProbe"
    others: tuple[str, ...] = ()


def _asked(files: tuple[Path, ...], options: "ReplayOptions", question: str) -> _Asked:
    """The question that is named, or else, by a replay beforehand, the one with the most revisions."""
    from stream_peer.tools.explain.question_timeline import QuestionProbe, RevisionCounter
    from stream_peer.tools.replay.files import read_lines
    from stream_peer.tools.replay.replay import replay

    if question:
        return _Asked(QuestionProbe(question))
    pipe = next((file for file in files if file.exists() and not file.is_file()), None)
    if pipe is not None:
        msg = f"{pipe} can be read only once: name the question, --explain=QUESTION"
        raise click.UsageError(msg)
    counter = RevisionCounter()
    with progress_bar("events") as progress:
        lines = [read_lines(file, bar_of("bytes read", progress)) for file in files]
        result = replay(lines, options, write=counter.write, progress=progress)
    must_be_usable(result, files)
    ranked = counter.ranked()
    if not ranked:
        msg = (
            "no question of these files was published: none has a round with forecasts, so there is nothing to explain"
        )
        raise click.UsageError(msg)
    return _Asked(QuestionProbe(ranked[0]), tuple(ranked[1:]))


def _explain(asked: _Asked) -> None:
    """Print the life of the question.

    Raises
    ------
    click.BadParameter
        If the files do not speak of the question; it names those that may have been meant.
    """
    from stream_peer.events.spelling import did_you_mean
    from stream_peer.serve.terminal import console
    from stream_peer.tools.explain.question_life import narrate
    from stream_peer.tools.explain.text import print_explanation

    probe = asked.probe
    steps = probe.steps()
    if not steps:
        hint = did_you_mean(probe.question_id, probe.questions)
        msg = f"no line of the files is about question {probe.question_id!r}{hint}"
        raise click.BadParameter(msg, param_hint="--explain")
    print_explanation(narrate(probe.question_id, steps), console())
    if asked.others:
        named = ", ".join(map(spelt, asked.others[:_NAMED]))
        click.echo(f"\nIt is the question with the most revisions. --explain QUESTION tells of others, e.g. {named}.")
    click.echo()


def _from_log(invocation: Invocation, feed: str, choices: _Choices) -> int:
    """Exit code 0 if everything published is what the log gives, 1 if not."""
    from stream_peer.lab.methods.replayed import replayed_method
    from stream_peer.tools.replay.feed_log_reader import replay_from_log
    from stream_peer.tools.replay.shadows import books_of, read_shadows, shadow_table

    shadows = books_of(read_shadows(choices.shadows), feed)
    with ExitStack() as stack:
        write = _writer(stack, choices.out)
        progress = stack.enter_context(progress_bar("events"))
        secret = read_secret(invocation.settings)
        found = replay_from_log(
            invocation.settings,
            feed,
            secret=secret,
            write=write,
            progress=progress,
            shadows=shadows,
            method_of=replayed_method,
        )
    if not (found.equal or found.different or found.never):
        msg = f"nothing was published of feed {feed!r}"
        raise click.BadParameter(msg, param_hint="--from-log")
    click.echo(comparison_text(found))
    if shadows:
        click.echo(f"\n{shadow_table(found.shadows)}")
    return 0 if found.is_equal else 1


def comparison_text(found: "Comparison") -> str:
    """What to say about a comparison of a log with what was published."""
    lines = [f"{found.records:,} records folded; {found.equal:,} published revisions are what the log gives"]
    if found.log_start:
        lines.append(f"the log begins at offset {found.log_start:,}: what came before is not in it")
    named = (("differ from what the log gives", found.different), ("are not given by the log", found.never))
    for what, places in named:
        if places:
            lines.append(f"published revisions that {what} (the first {len(places)}):")
            lines += [f"  {topic} {key} revision {revision}" for topic, key, revision in places]
    return "\n".join(map(spelt, lines))


def _writer(stack: ExitStack, out: Path | None) -> "Callable[[Output], None] | None":
    if out is None:
        return None
    from stream_peer.tools.replay.files import OutputFiles

    try:
        return stack.enter_context(OutputFiles(out)).write
    except OSError as error:
        raise click.FileError(str(out), error.strerror) from error


EXPLAINED = 3
"""So many of a feed's leading experts have their weights explained."""


class ReplayReport:
    """Explains the weights of leading experts when a replay ends, and writes the report after it.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed: at once, not after the replay.
    """

    def __init__(self, path: Path, progress: ProgressBar | None = None) -> None:
        from stream_peer.serve.pages.parts import require_matplotlib

        require_matplotlib()
        self._path = path
        self._progress = bar_of("records explained", progress)
        self._explanations: dict[str, list[WeightExplanation]] = {}

    def __call__(self, run: "Run") -> None:
        """Explain weights, from the log that the run has kept."""
        from stream_peer.tools.explain.weight import run_explanations
        from stream_peer.tools.report.plots import leaders

        for name, feed in run.history.feeds.items():
            if feed.weights:
                experts = leaders(feed.weights)[:EXPLAINED]
                self._explanations[name] = run_explanations(run, name, experts, progress=self._progress)

    def write(self, result: "ReplayResult", shadows: "Mapping[str, Sequence[ShadowScores]]") -> None:
        """Write the report; ``shadows`` are those folded beside the replay, by feed."""
        from stream_peer.tools.report.cards.parts import FeedExtras
        from stream_peer.tools.report.report import render_report

        extras = {
            name: FeedExtras(result.variant(name), self._explanations.get(name, ()), shadows.get(name, ()))
            for name in result.history.feeds
        }
        write_text(self._path, render_report(result.history, settings=result.settings, extras=extras))

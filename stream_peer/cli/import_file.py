"""``stream-peer import-file FORMAT FILE…`` and ``stream-peer whatif FORMAT FILE…``: data that exists, as events."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_peer.cli.options import (
    Invocation,
    NamedPath,
    OfFiles,
    file_options,
    in_a_directory,
    must_be_feed_name,
    must_be_usable,
    replaced_file,
    settings_options,
)
from stream_peer.serve.terminal import bar_of, progress_bar
from stream_peer.settings.process import read_producers

if TYPE_CHECKING:
    from stream_peer.tools.formats.gathered import Gathered
    from stream_peer.tools.formats.imported import ImportPlan

FORMAT_NAMES = ("csv", "parquet", "metaculus", "manifold", "gjopen", "hubverse", "polymarket", "kalshi", "llm-panel")
_OPTIONS = ("feed", "columns", "unit", "thresholds", "expert", "names", "refused")


def format_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command FORMAT, FILE… and the flags of formats; it gets them as one argument, ``plan``."""

    @wraps(function)
    def with_flags(*arguments: Any, format_name: str, files: tuple[Path, ...], **options: Any) -> Any:
        plan = _plan(format_name, files, {name: options.pop(name) for name in _OPTIONS})
        return function(*arguments, plan=plan, **options)

    decorated: Callable[..., Any] = with_flags
    for flag in reversed(_FLAGS):
        decorated = flag(decorated)
    return decorated


_FLAGS = (
    click.argument("format_name", metavar="FORMAT", type=click.Choice(FORMAT_NAMES)),
    click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path)),
    click.option("--feed", default="imported", show_default=True, help="The feed of all questions."),
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="ROLE=COLUMN",
        help="Of csv, parquet, llm-panel: the column of a role (question, expert, probability, time, outcome, opens,"
        " closes, resolved, option, threshold), if its name is none that is looked for.",
    ),
    click.option(
        "--unit",
        type=click.Choice(["probability", "percent"]),
        default="probability",
        show_default=True,
        help="Of csv, parquet, llm-panel: what forecasts are counted in; it is never guessed.",
    ),
    click.option(
        "--threshold",
        "thresholds",
        multiple=True,
        metavar="VALUE|FACTORx",
        help="Of hubverse: what an observation may exceed; 1.5x: that multiple of the last one before.  [default: 1x]",
    ),
    click.option("--expert", metavar="NAME", help="Of polymarket, kalshi: the market's name as an expert."),
    click.option(
        "--names",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A table with columns from and to: other ids for questions, such as the same one for several markets.",
    ),
    click.option(
        "--refused",
        type=NamedPath(path_type=Path, dir_okay=False),
        callback=replaced_file,
        metavar="FILE",
        help="Write the rows that are not used here, with the reason (JSON lines).",
    ),
)


def _plan(name: str, files: tuple[Path, ...], given: dict[str, Any]) -> "ImportPlan":
    from stream_peer.tools.formats.adapter import FormatOptions
    from stream_peer.tools.formats.imported import FORMATS, ImportPlan

    must_be_feed_name(given["feed"], "--feed")
    options = FormatOptions(_columns(given["columns"]), given["unit"], given["thresholds"], given["expert"])
    flags = {parameter.name: parameter.opts[0] for parameter in click.get_current_context().command.params}
    for field, value, default in zip(FormatOptions._fields, options, FormatOptions(), strict=True):
        if value != default and field not in FORMATS[name].takes:
            takers = ", ".join(other for other, adapter in FORMATS.items() if field in adapter.takes)
            msg = f"{flags[field]} is for {takers}, not for {name}"
            raise click.UsageError(msg)
    return ImportPlan(name, files, given["feed"], options, given["names"], given["refused"])


def _columns(given: tuple[str, ...]) -> dict[str, str]:
    from stream_peer.tools.formats.table import ROLES

    found = {}
    for text in given:
        role, equals, column = text.partition("=")
        if not equals or role not in ROLES:
            msg = f"{text!r} is no ROLE=COLUMN; roles are {', '.join(ROLES)}"
            raise click.BadParameter(msg, param_hint="--column")
        found[role] = column
    return found


@click.command(name="import-file")
@format_options
@click.option(
    "--to",
    type=NamedPath(path_type=Path, dir_okay=False),
    callback=replaced_file,
    metavar="FILE",
    help="Write the events here, in order of time (JSON lines; packed if the name ends in .gz).",
)
@click.option("--to-topic", is_flag=True, help="Send the events to forecast-events, in order of time.")
@click.option(
    "--producer", metavar="NAME", help="Of --to-topic: sign the events as this producer, whom producers_file names."
)
@settings_options("producers_file")
def import_file_command(
    invocation: Invocation, *, plan: "ImportPlan", to: Path | None, to_topic: bool, producer: str | None
) -> None:
    """Turn FILEs of another FORMAT into events: data that exists, for a replay or for a feed.

    \b
    csv, parquet  a table with columns question, expert, probability, time; perhaps outcome
    metaculus     question_data.csv and forecast_data.csv of an export, or its zip archive
    manifold      the dumps of bets and contracts
    gjopen        questions with answers, and prediction sets, of Good Judgment Open or INFER
    hubverse      model output of a hub (quantiles or cdf) and target data
    polymarket    answers of prices-history, and markets
    kalshi        candlesticks, and markets
    llm-panel     JSON lines with question, model, probability, time

    Rows that cannot be used are counted by reason. A feed that gets events of the past needs history: true.

    \b
    stream-peer import-file csv forecasts.csv --to events.jsonl
    stream-peer import-file csv survey.csv --column expert=Name --column time=Day --unit percent --to events.jsonl.gz
    stream-peer import-file metaculus export.zip --feed econ --refused refused.jsonl --to events.jsonl
    stream-peer import-file hubverse model-output/*/*.csv target-data/time-series.csv --threshold 1.5x --to flu.jsonl
    stream-peer import-file manifold bets.json contracts.json --feed play --to-topic --bootstrap kafka:9092
    """  # noqa: D301
    from stream_peer.tools.formats.imported import gathered, import_summary, written

    if to is None and not to_topic:
        msg = "say where the events go: --to FILE, --to-topic, or both"
        raise click.UsageError(msg)
    sign = _signature(invocation, producer) if to_topic else None
    with progress_bar("events") as progress, gathered(plan, bar_of("bytes read", progress)) as made:
        if to is not None:
            with written(to) as write:
                for event in made.timed():
                    write(event.payload)
        if to_topic:
            _send(invocation, made, sign, progress)
    click.echo(import_summary(made))
    if to is not None:
        click.echo(f"{made.events:,} events → {to}")
    if to_topic:
        topic = invocation.settings.topic("forecast-events")
        click.echo(f"{made.events:,} events → {topic}; if they lie in the past, feed {plan.feed} needs history: true")


_Sign = Callable[[bytes, bytes], tuple[str, bytes]]


def _signature(invocation: Invocation, name: str | None) -> _Sign | None:
    """What signs the events, if the deployment asks for it."""
    producers = read_producers(invocation.settings)
    if (producers is None) is not (name is None):
        msg = "--producer needs producers_file" if producers is None else "producers_file is set: name a --producer"
        raise click.UsageError(msg)
    if producers is None or name is None:
        return None
    topic = invocation.settings.topic("forecast-events")

    def sign(key: bytes, value: bytes) -> tuple[str, bytes]:
        header = producers.header(name, topic, key, value)
        if header is None:
            msg = f"producers_file names no producer {name!r}"
            raise click.BadParameter(msg, param_hint="--producer")
        return header

    sign(b"", b"")  # an unknown name is refused before any file is read
    return sign


def _send(
    invocation: Invocation, made: "Gathered", sign: _Sign | None, progress: Callable[[int, int], None] | None
) -> None:
    from stream_peer.kafka.client.write import send_events

    total = made.counts["forecasts"] + 2 * made.counts["questions"]
    events = ((event.question.encode(), event.payload) for event in made.timed())
    shown = None if progress is None else lambda sent: progress(sent, total)
    send_events(invocation.settings, events, sign=sign, progress=shown)


@click.command(name="whatif")
@format_options
@file_options
@click.option(
    "--report",
    default="report.html",
    show_default=True,
    type=NamedPath(path_type=Path, dir_okay=False, writable=True),
    callback=in_a_directory,
    help="Write the report here (HTML).",
)
@settings_options(in_replay=True)
def whatif_command(invocation: Invocation, *, plan: "ImportPlan", of_files: OfFiles, report: Path) -> None:
    """Say what this service would have told, and when, of the data in FILEs: import, replay and report in one.

    `stream-peer import-file --help` describes the formats. Nothing is kept but the report.

    \b
    stream-peer whatif csv forecasts.csv
    stream-peer whatif metaculus export.zip --set round_every=1d --report econ.html
    stream-peer whatif llm-panel answers.jsonl --reveal 0.3
    """  # noqa: D301
    from stream_peer.cli.replay import ReplayReport
    from stream_peer.tools.formats.imported import event_lines, gathered, import_summary
    from stream_peer.tools.replay.replay import replay
    from stream_peer.tools.replay.summary import replay_summary, told_when

    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar("events"))
        page = ReplayReport(report, progress)
        made = stack.enter_context(gathered(plan, bar_of("bytes read", progress)))
        result = replay([event_lines(made)], of_files.options(invocation), progress=progress, finished=[page])
        must_be_usable(result, plan.files)
        page.write(result, {})
    click.echo(f"{import_summary(made)}\n\n{replay_summary(result)}")
    for _, feed in sorted(result.history.feeds.items()):
        click.echo("\n" + "\n".join(told_when(feed)))
    click.echo(f"\nreport: {report}")

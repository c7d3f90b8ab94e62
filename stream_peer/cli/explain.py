"""``stream-peer explain FEED EXPERT``: why the weight of an expert moved, in words and in terms that add up."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_peer.cli.options import (
    Invocation,
    OfFiles,
    feed_as_option,
    file_options,
    must_be_feed_name,
    must_be_usable,
    refuse_flags_of_files,
    settings_options,
)
from stream_peer.serve.terminal import bar_of, progress_bar
from stream_peer.settings.process import read_secret

if TYPE_CHECKING:
    from stream_peer.serve.explanation import Bound, ExplainFault, ExplainRequest, WeightExplanation


def span_bound(_: click.Context, __: click.Parameter, text: str | None) -> "Bound | None":
    """A revision, or a moment; without a zone it is UTC."""
    from stream_peer.serve.explanation import bound_of

    try:
        return None if text is None else bound_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_BACKWARDS = "--from is after --to"


@click.command(name="explain")
@click.argument("feed")
@click.argument("expert")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE…]")
@click.option(
    "--from",
    "since",
    metavar="WHEN",
    callback=span_bound,
    help="Start: a time, or a revision. Default: the first listing of the expert.",
)
@click.option(
    "--to", "until", metavar="WHEN", callback=span_bound, help="End: a time, or a revision. Default: the newest record."
)
@click.option(
    "--weight",
    type=click.Choice(["mix", "select"]),
    default="mix",
    show_default=True,
    help="Which weight: its share of the mixed forecast, or its chance of being the expert to follow.",
)
@click.option(
    "--questions",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Number of questions to list, those that moved it most.",
)
@click.option("--inputs", is_flag=True, help="List the numbers that the weight at the end is read from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with a term for each question, round and cause.")
@feed_as_option
@file_options
@settings_options(in_replay=True)
@click.pass_context
def explain_command(
    context: click.Context, invocation: Invocation, /, *, files: tuple[Path, ...], of_files: OfFiles, **options: Any
) -> None:
    """Explain why the weight of EXPERT in FEED moved between two times: a sentence, then the share of each cause.

    Causes are the expert's own forecasts, those of the others, and how weights are made of them. What each of them did
    adds up to the whole move. With FILEs (JSON lines, plain or gzip) their events are folded as by `stream-peer
    replay`; without, the feed's log is read from Kafka, and no worker need run.

    A moment is a date or a time (UTC if it names no zone) and stands for the last record up to it; a revision is one of
    those that `weights` carries. Exit code 2 if there is no such feed or expert.

    \b
    stream-peer explain econ ann forecasts.jsonl
    stream-peer explain all ann a.jsonl b.jsonl --feed-as all --from 2026-03-01 --to 2026-06-01
    stream-peer explain econ ann forecasts.jsonl --weight select --questions 30
    stream-peer explain econ ann forecasts.jsonl --inputs
    stream-peer explain econ ann --bootstrap kafka:9092 --from 4711 --json
    """  # noqa: D301
    from stream_peer.serve.explanation import ExplainFault, ExplainRequest, encode_explanation

    as_json = options.pop("as_json")
    request = ExplainRequest(**options)
    must_be_feed_name(request.feed, "FEED")
    if request.is_backwards:
        raise click.UsageError(_BACKWARDS)
    if not files:
        refuse_flags_of_files(context, OfFiles._fields, "and none is named")
    found = _from_files(invocation, files, request, of_files) if files else _from_log(invocation, request)
    if isinstance(found, ExplainFault):
        if found.what == "span":
            raise click.UsageError(_BACKWARDS)
        raise click.BadParameter(found.message, param_hint=found.what.upper())
    if as_json:
        click.echo(encode_explanation(found))
    else:
        _print(found)


def _print(found: "WeightExplanation") -> None:
    from stream_peer.serve.terminal import console
    from stream_peer.tools.explain.text import print_explanation

    print_explanation(found, console())


def _from_files(
    invocation: Invocation, files: tuple[Path, ...], request: "ExplainRequest", of_files: OfFiles
) -> "WeightExplanation | ExplainFault":
    from stream_peer.tools.explain.weight import answer_request, probe_for
    from stream_peer.tools.replay.files import read_lines
    from stream_peer.tools.replay.replay import replay

    options, probe = of_files.options(invocation), probe_for(request)
    with progress_bar("events") as progress:
        lines = [read_lines(file, bar_of("bytes read", progress)) for file in files]
        result = replay(lines, options, progress=progress, probes=[probe])
    must_be_usable(result, files)
    probe.finish()
    return answer_request(request, probe)


def _from_log(invocation: Invocation, request: "ExplainRequest") -> "WeightExplanation | ExplainFault":
    from stream_peer.tools.explain.weight import explain_from_kafka

    secret = read_secret(invocation.settings)
    with progress_bar("records") as progress:
        return explain_from_kafka(request, invocation.settings, secret, progress)

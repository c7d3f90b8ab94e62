"""``stream-peer explain FEED EXPERT``: why the weight of an expert moved, in words and in terms that add up."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stream_peer.cli.options import Invocation, must_be_feed_name, settings_options, share_and_seed
from stream_peer.cli.progress import progress_bar
from stream_peer.events.times import to_milliseconds
from stream_peer.settings import read_secret

if TYPE_CHECKING:
    from stream_peer.adapters.file_events import Revealed
    from stream_peer.adapters.weight_records import WeightKind, WeightStory
    from stream_peer.engine.weight_account import Account, Bound

_REVISION = re.compile(r"[0-9]{1,18}")


def moment(_: click.Context, __: click.Parameter, text: str | None) -> "Bound | None":
    """A revision, or a moment; without a zone it is UTC."""
    from stream_peer.engine.weight_account import Bound

    if text is None:
        return None
    if _REVISION.fullmatch(text):
        return Bound(revision=int(text))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        msg = f"{text!r} is neither a moment, such as 2026-03-01 or 2026-03-01T12:00Z, nor a revision, such as 4711"
        raise click.BadParameter(msg) from None
    return Bound(at=to_milliseconds(at if at.tzinfo else at.replace(tzinfo=UTC)))


class _Asked(NamedTuple):
    """What the command line asks, beside the settings."""

    feed: str
    expert: str
    since: "Bound | None"
    until: "Bound | None"
    weight: "WeightKind"
    questions: int
    as_json: bool
    feed_as: str | None
    assignments: tuple[str, ...]
    reveal: "Revealed | None"


@click.command(name="explain")
@click.argument("feed")
@click.argument("expert")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE…]")
@click.option(
    "--from",
    "since",
    metavar="WHEN",
    callback=moment,
    help="Where to begin: a moment, or a revision. Without it, where the expert was first listed.",
)
@click.option("--to", "until", metavar="WHEN", callback=moment, help="Where to end. Without it, at the end.")
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
    help="How many questions to tell one by one, those that moved it most.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with a term for each question, round and cause.")
@click.option("--feed-as", metavar="FEED", help="Of files: put all events into this feed, whatever they say.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of files: a feed setting, e.g. round_every=1d; several are welcome.",
)
@click.option(
    "--reveal",
    metavar="AT[,SEED]",
    default="1",
    show_default=True,
    callback=share_and_seed,
    help="Of files: share of questions whose outcomes are told, as of `stream-peer replay`.",
)
@settings_options(in_replay=True)
@click.pass_context
def explain_command(
    context: click.Context, invocation: Invocation, /, *, files: tuple[Path, ...], **options: Any
) -> None:
    """Tell why the weight of EXPERT in FEED moved between two moments: a sentence, then what each cause did.

    Causes are the expert's own forecasts, those of the others, and how weights are made of them. What each of them did
    adds up to the whole move. With FILEs (JSON lines, plain or gzip) their events are folded as by `stream-peer
    replay`; without, the feed's log is read from Kafka, and no worker need run.

    A moment is a date or a time (UTC if it names no zone) and stands for the last record up to it; a revision is one of
    those that `weights` carries. Exit code 2 if there is no such feed or expert.

    \b
    stream-peer explain econ ann forecasts.jsonl
    stream-peer explain all ann a.jsonl b.jsonl --feed-as all --from 2026-03-01 --to 2026-06-01
    stream-peer explain econ ann forecasts.jsonl --weight select --questions 30
    stream-peer explain econ ann --bootstrap kafka:9092 --from 4711 --json
    """  # noqa: D301
    asked = _Asked(**options)
    must_be_feed_name(asked.feed, "FEED")
    _must_be_in_order(asked)
    if not files:
        _must_not_be_of_files(context)
    found = _of_files(invocation, files, asked) if files else _of_log(invocation, asked)
    if asked.as_json:
        from stream_peer.adapters.weight_records import encode_story

        click.echo(encode_story(found))
        return
    from rich.console import Console

    from stream_peer.cli.weight_table import tell

    tell(found, Console())


def _must_be_in_order(asked: _Asked) -> None:
    since, until = asked.since, asked.until
    if since is None or until is None:
        return
    for one, other in ((since.at, until.at), (since.revision, until.revision)):
        if one is not None and other is not None and one > other:
            msg = "--from is after --to"
            raise click.UsageError(msg)


def _must_not_be_of_files(context: click.Context) -> None:
    """Refuse what only files heed, instead of leaving it out in silence."""
    given = {"feed_as": "--feed-as", "assignments": "--set", "reveal": "--reveal"}
    named = [
        flag
        for name, flag in given.items()
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if named:
        msg = f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} for files, and none is named"
        raise click.UsageError(msg)


def _of_files(invocation: Invocation, files: tuple[Path, ...], asked: _Asked) -> "WeightStory":
    from stream_peer.adapters.jsonl import read_lines
    from stream_peer.adapters.replay import ReplayOptions, replay, with_settings
    from stream_peer.adapters.weight_replay import WeightWitness
    from stream_peer.engine.weight_account import Account

    options = ReplayOptions(
        document=with_settings(invocation.settings.document, asked.assignments),
        feed_as=asked.feed_as,
        reveal=asked.reveal,
        secret=read_secret(invocation.settings),
    )
    account = Account(asked.expert, asked.since, asked.until)
    witness = WeightWitness(asked.feed, [account])
    with progress_bar("events") as progress:
        replay([read_lines(file) for file in files], options, progress=progress, witness=witness)
    witness.finish()
    if asked.feed not in witness.feeds:
        raise _unknown("feed", asked.feed, witness.feeds, "of these files")
    return _story(account, asked, witness.follower.experts)


def _of_log(invocation: Invocation, asked: _Asked) -> "WeightStory":
    from stream_peer.adapters.weight_log import read_accounts
    from stream_peer.engine.weight_account import Account

    account = Account(asked.expert, asked.since, asked.until)
    with progress_bar("events") as progress:
        found = read_accounts(
            invocation.settings, asked.feed, [account], secret=read_secret(invocation.settings), progress=progress
        )
    if not found.exists:
        raise _unknown("feed", asked.feed, found.feeds, "of the log")
    return _story(account, asked, found.experts)


def _story(account: "Account", asked: _Asked, experts: Iterable[str]) -> "WeightStory":
    from stream_peer.adapters.weight_story import story_of

    found = story_of(account, asked.feed, asked.weight, asked.questions)
    if found is not None:
        return found
    known = set(experts)
    if asked.expert not in known:
        raise _unknown("expert", asked.expert, known, f"of feed {asked.feed}")
    msg = f"{asked.expert} had no weight in feed {asked.feed} by then: none of its questions counted, or it is excluded"
    raise click.BadParameter(msg, param_hint="EXPERT")


def _unknown(what: str, name: str, known: Iterable[str], where: str) -> click.BadParameter:
    """The fault of naming what is not there, with what may have been meant."""
    from stream_peer.adapters.explain_question import near

    meant = near(name, known)
    hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
    return click.BadParameter(f"there is no {what} {name!r} {where}{hint}", param_hint=what.upper())

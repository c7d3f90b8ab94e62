"""The flags of commands that fold files as a replay does, the same for all of them."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stream_peer.cli.options import Invocation
from stream_peer.errors import NothingUsableError
from stream_peer.settings.process import read_secret

if TYPE_CHECKING:
    from stream_peer.tools.replay.file_events import RevealedShare
    from stream_peer.tools.replay.replay import ReplayOptions, ReplayResult


class OfFiles(NamedTuple):
    """What the command line says of how files are to be read; the names are those of the flags' parameters."""

    feed_as: str | None
    assignments: tuple[str, ...]
    reveal: "RevealedShare | None"

    def options(self, invocation: Invocation, **more: Any) -> "ReplayOptions":
        """All that a replay wants to know; ``more`` are other fields of its options."""
        from stream_peer.lab.methods.replayed import replayed_method
        from stream_peer.tools.replay.replay import ReplayOptions, with_settings

        return ReplayOptions(
            document=with_settings(invocation.settings.document, self.assignments),
            feed_as=self.feed_as,
            reveal=self.reveal,
            secret=read_secret(invocation.settings),
            method_of=replayed_method,
            **more,
        )


def must_be_usable(result: "ReplayResult", files: Sequence[Path]) -> None:
    """Stop if no line of the files could be used; nothing that is said of them would mean anything.

    Raises
    ------
    NothingUsableError
        With the first refused line, if there is one.
    """
    kinds = Counter[str]()
    for (kind, _), number in result.counts.items():
        kinds[kind] += number
    if kinds["event"] or kinds["dead-letter"] < result.events:
        return
    named = " and ".join(str(file) for file in files)
    first = result.refused[0] if result.refused else None
    why = f"the first line refused is {first.place}: {first.message}" if first else "no line holds anything"
    msg = f"nothing in {named} can be used: {why}"
    raise NothingUsableError(msg)


def share_and_seed(context: click.Context, option: click.Parameter, text: str) -> "RevealedShare | None":
    """``AT`` or ``AT,SEED``; None for what the file has."""
    from stream_peer.tools.replay.file_events import RevealedShare

    share, comma, seed = text.partition(",")
    told = click.FloatRange(0.0, 1.0).convert(share, option, context)
    if math.isnan(told):  # which no range refuses
        msg = f"{share!r} is not in the range 0.0<=x<=1.0."
        raise click.BadParameter(msg, context, option)
    told_of = RevealedShare(
        told,
        click.INT.convert(seed, option, context) if comma else None,
    )
    return None if told_of == (1.0, None) else told_of


_FLAGS = (
    click.option("--feed-as", metavar="FEED", help="Of files: put all events into this feed, whatever they say."),
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help="Of files: a feed setting, e.g. round_every=1d; several are welcome.",
    ),
    click.option(
        "--reveal",
        metavar="AT[,SEED]",
        default="1",
        show_default=True,
        callback=share_and_seed,
        help="Of files: share of questions whose outcomes are told, each right after its question's last round, and a"
        " number that draws others of them. 1 alone: all, when the file has them.",
    ),
)


def file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags; it gets them as one argument, ``of_files``."""

    @wraps(function)
    def with_flags(*arguments: Any, **options: Any) -> Any:
        of_files = OfFiles(*(options.pop(name) for name in OfFiles._fields))
        return function(*arguments, of_files=of_files, **options)

    decorated: Callable[..., Any] = with_flags
    for flag in reversed(_FLAGS):
        decorated = flag(decorated)
    return decorated


def refuse_flags_of_files(context: click.Context, names: Collection[str], why: str) -> None:
    """Refuse what only files heed, instead of leaving it out in silence.

    Parameters
    ----------
    context : click.Context
    names : collection of str
        The parameters that are for files.
    why : str
        Ends the sentence: why there are none.
    """
    flags = {option.name: option.opts[0] for option in context.command.params if option.name in names}
    given = click.core.ParameterSource.COMMANDLINE
    named = [flag for name, flag in flags.items() if name and context.get_parameter_source(name) is given]
    if named:
        msg = f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} for files, {why}"
        raise click.UsageError(msg)

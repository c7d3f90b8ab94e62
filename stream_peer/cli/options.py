"""Flags that several commands have: those of the settings, and those of commands that fold files as a replay does."""

import errno
import math
import os
import shlex
import socket
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from msgspec.structs import replace

from stream_peer.errors import NothingUsableError, SettingFault, SettingsError
from stream_peer.events.incoming import is_feed_name
from stream_peer.kafka.client.waiting import tell_of_waiting
from stream_peer.settings.process import Leaf, Loaded, Settings, flag_of, leaves, load, read_secret

if TYPE_CHECKING:
    from stream_peer.tools.replay.file_events import RevealedShare
    from stream_peer.tools.replay.replay import ReplayOptions, ReplayResult


COMMON = ("bootstrap", "prefix", "id")
# What decides which topics there are and how to reach them.
_PATIENCE = "broker_patience"
_PATIENCE_SECONDS = 10.0  # of a command that somebody waits for; the setting's own default is for workers
_SHAPING = (*COMMON, "broker", "security.", "partitions.", "replication")


class Invocation(NamedTuple):
    """The settings of this call, and the flags that led to them."""

    loaded: Loaded
    config: Path | None
    flags: dict[str, str]

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.loaded.settings

    @property
    def is_patience_given(self) -> bool:
        """Whether somebody said how long to wait, by ``--patience`` or by the setting."""
        return self.loaded.origins[_PATIENCE] != "default"

    def command(self, name: str) -> str:
        """Another command of ours as the user would type it to get the same settings."""
        config = [] if self.config is None or "STREAM_PEER_CONFIG" in os.environ else ["--config", str(self.config)]
        given = [
            word for path, text in self.flags.items() if path.startswith(_SHAPING) for word in (flag_of(path), text)
        ]
        return shlex.join(["stream-peer", *name.split(), *config, *given])


class NamedPath(click.Path):
    """A path that is written to: an empty one would silently be the directory one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or the sentence that there is none."""
        if value == "":
            self.fail("it is empty: name a place, or . for this directory", param, ctx)
        return super().convert(value, param, ctx)


def settings_options(
    *shown: str, in_replay: bool = False, waits: Literal["somebody", "worker", "nobody"] = "somebody"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command ``--config`` and a flag for every setting; it gets an ``Invocation`` as its first argument.

    ``shown`` are dotted paths whose flags stand in ``--help`` beside the common ones; the others work unseen.
    ``in_replay``: whether the file may choose mathematics that only a replay computes.
    ``waits``: who waits for a broker. ``somebody``: a person, who sees on stderr that the command waits, for
    10 s unless ``--patience`` or ``broker_patience`` is set. ``worker``: it logs that it waits. ``nobody``: the command
    asks no broker.
    A secret has no flag, since anyone on the machine could read it there: its ``…-file`` flag names a file.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        flags = {_parameter(path): path for path in _flag_paths()}

        @wraps(function)
        def with_settings(config: Path | None, **arguments: Any) -> Any:
            given = {path: arguments.pop(name) for name, path in flags.items()}
            texts = {path: text for path, text in given.items() if text is not None}
            loaded = load(config, os.environ, texts, in_replay=in_replay)
            if waits != "somebody":
                return function(Invocation(loaded, config, texts), **arguments)
            if loaded.origins[_PATIENCE] == "default":
                loaded = loaded._replace(settings=replace(loaded.settings, broker_patience=_PATIENCE_SECONDS))
            with tell_of_waiting(_note_waiting):
                return function(Invocation(loaded, config, texts), **arguments)

        decorated: Callable[..., Any] = with_settings
        for path, leaf in reversed(_flag_paths().items()):
            if path == _PATIENCE and waits == "somebody":
                decorated = _patience_option(decorated)
            else:
                decorated = _option(path, leaf, hidden=path not in (*COMMON, *shown))(decorated)
        return _config_option(decorated)

    return decorate


def bound_address(loaded: Loaded) -> socket.socket:
    """The HTTP server's address, bound: a typo shows before the group is joined, and the port is known to it."""
    from stream_peer.serve.http import bind

    http = loaded.settings.http
    try:
        return bind(http)
    except OSError as error:
        elsewhere = (error.errno or 0) < 0 or error.errno == errno.EADDRNOTAVAIL
        path = "http.host" if elsewhere else "http.port"
        message = f"cannot listen on {http.host}:{http.port} ({error.strerror})"
        raise SettingsError([SettingFault(path, loaded.origins[path], message)]) from None


def in_a_directory(_: click.Context, __: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file to write whose directory is not there, before any work is done."""
    if file is not None and not file.resolve().parent.is_dir():
        msg = f"there is no directory {file.resolve().parent}"
        raise click.BadParameter(msg)
    if file is not None:
        must_be_writable(file.resolve().parent)
    return file


def replaced_file(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse what is no file to be put in the place of another: standard output, a device, a pipe."""
    if file is not None and (str(file) == "-" or (file.exists() and not file.is_file())):
        msg = f"{file} is no file that can be replaced: name a file, which is written beside and then put in place"
        raise click.BadParameter(msg)
    return in_a_directory(context, parameter, file)


def must_be_feed_name(feed: str, hint: str) -> None:
    """Refuse a name that no feed can have, in words instead of a pattern."""
    if not is_feed_name(feed):
        msg = (
            f"{feed!r} is no name of a feed: 1..100 letters, digits, dots, hyphens or underscores, "
            "a letter or digit first"
        )
        raise click.BadParameter(msg, param_hint=hint)


def must_be_writable(directory: Path) -> None:
    """Refuse a directory in which no file can be made, before any work is done."""
    try:
        TemporaryFile(dir=directory).close()
    except OSError as error:
        msg = f"no file can be made in {directory}: {error.strerror}"
        raise click.BadParameter(msg) from error


def write_text(file: Path, text: str) -> None:
    """Write a file; if it cannot be, the user reads which and why."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(file), error.strerror) from error


def _note_waiting(settings: Settings, reason: str) -> None:
    text = f"No broker at {settings.bootstrap} yet ({reason}); waiting up to {settings.broker_patience:g}s."
    click.echo(text, err=True)


def _flag_paths() -> dict[str, Leaf]:
    known = leaves()
    return {f"{path}_file" if leaf.reads == "secret" else path: leaf for path, leaf in known.items()}


def _parameter(path: str) -> str:
    return "setting_" + path.replace(".", "__")


def _option(path: str, leaf: Leaf, *, hidden: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    text = leaf.about + (f" [{'|'.join(leaf.choices)}]" if leaf.choices else "")
    default = "" if leaf.default in (None, "", False) else f"  [default: {leaf.default}]"
    metavar = path.rsplit(".", 1)[-1].upper()
    return click.option(flag_of(path), _parameter(path), metavar=metavar, help=text + default, hidden=hidden)


_patience_option = click.option(
    "--patience",
    flag_of(_PATIENCE),
    _parameter(_PATIENCE),
    metavar="DURATION",
    help=f"How long to wait for a broker before giving up.  [default: {_PATIENCE_SECONDS:g}s]",
)
_config_option = click.option(
    "--config",
    "-c",
    type=click.Path(path_type=Path),
    envvar="STREAM_PEER_CONFIG",
    help="Settings file (YAML). `stream-peer settings schema` describes it.  [env: STREAM_PEER_CONFIG]",
)


class OfFiles(NamedTuple):
    """What the command line says of how files are to be read; the names are those of the flags' parameters."""

    assignments: tuple[str, ...]
    reveal: "RevealedShare | None"
    feed_as: str | None = None

    def options(self, invocation: Invocation, **more: Any) -> "ReplayOptions":
        """All that a replay wants to know; ``more`` are other fields of its options."""
        from stream_peer.lab.methods.replayed import replayed_method
        from stream_peer.settings.feed.document import with_method
        from stream_peer.settings.feed.model import NEWEST_METHOD
        from stream_peer.tools.replay.replay import ReplayOptions, with_settings

        return ReplayOptions(
            document=with_method(with_settings(invocation.settings.document, self.assignments), NEWEST_METHOD),
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
    told_of = RevealedShare(told, click.INT.convert(seed, option, context) if comma else None)
    return None if told_of == (1.0, None) else told_of


feed_as_option = click.option(
    "--feed-as", metavar="FEED", help="For files: put all events into this feed, whatever they say."
)

_FLAGS = (
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help="For files: a feed setting, e.g. round_every=1d; may be given several times.",
    ),
    click.option(
        "--reveal",
        metavar="AT[,SEED]",
        default="1",
        show_default=True,
        callback=share_and_seed,
        help="For files: share (0 to 1) of the questions whose outcome is revealed, right after their last round; SEED"
        " selects other questions. 1 without SEED: all outcomes, at the times in the file.",
    ),
)


def file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags; it gets them as one argument, ``of_files``."""

    @wraps(function)
    def with_flags(*arguments: Any, **options: Any) -> Any:
        of_files = OfFiles(**{name: options.pop(name) for name in OfFiles._fields if name in options})
        return function(*arguments, of_files=of_files, **options)

    decorated: Callable[..., Any] = with_flags
    for flag in reversed(_FLAGS):
        decorated = flag(decorated)
    return decorated


def refuse_flags_of_files(context: click.Context, names: Collection[str], why: str) -> None:
    """Refuse options that apply to files only, rather than ignore them.

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

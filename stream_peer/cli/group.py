"""The group of all commands, and how a command ends: a sentence on stderr and an exit code, never a traceback."""

import difflib
import errno
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TextIO

import click

from stream_peer import __version__
from stream_peer.errors import SettingsError, StreamPeerError, out_of_memory
from stream_peer.serve.terminal import escaping_output

_USAGE = 2
_INTERNAL = 70
_INTERRUPTED = 130


class LazyCommand(NamedTuple):
    """A command that is not imported yet: the file beside this one, its name there, and its line in the overview."""

    module: str
    attribute: str
    summary: str


COMMANDS: Mapping[str, LazyCommand] = {
    "demo": LazyCommand("demo", "demo_command", "The whole service on this machine, on real forecasts."),
    "worker": LazyCommand("worker", "worker_command", "Run a worker: forecasts in, weights out."),
    "gateway": LazyCommand("gateway", "gateway_command", "Take events by HTTP, for platforms without a Kafka client."),
    "health": LazyCommand("health", "health_command", "Ask the worker on this machine whether it is ready."),
    "topics": LazyCommand("topics", "topics_group", "Plan, make and check the topics; register their schemas."),
    "settings": LazyCommand("settings", "settings_group", "Show, check and apply settings."),
    "replay": LazyCommand("replay", "replay_command", "Run the engine over files, without Kafka."),
    "whatif": LazyCommand(
        "import_file", "whatif_command", "Replay your own data and report what the service would have said, and when."
    ),
    "import-file": LazyCommand("import_file", "import_file_command", "Turn files of other formats into events."),
    "explain": LazyCommand("explain", "explain_command", "Explain why an expert's weight moved, term by term."),
    "paper": LazyCommand("paper", "paper_command", "Re-run the claims of the paper behind the service."),
    "tail": LazyCommand("tail", "tail_command", "Watch the weights of a feed."),
    "expert": LazyCommand("controls", "expert_command", "Exclude, group, rename or erase an expert of a feed."),
    "reset": LazyCommand("controls", "reset_command", "Reset the sums of a feed."),
    "delete": LazyCommand("controls", "delete_command", "Delete a feed with all its state."),
    "repair": LazyCommand("repair", "repair_command", "Repair partitions whose state cannot be trusted."),
    "export": LazyCommand("transfer", "export_command", "Write a feed to a file."),
    "import": LazyCommand("transfer", "import_command", "Import a feed from a file."),
}


class LazyGroup(click.Group):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, in the order a newcomer meets them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is none of that name."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(importlib.import_module(f"stream_peer.cli.{entry.module}"), entry.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for; of a misspelt one, the name that may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if close:
                error.message += f" Did you mean {close[0]!r}?"
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, from the summaries here."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "--version", "-V", prog_name="stream-peer")
def cli() -> None:
    """Learn from a Kafka stream of forecasts which experts to trust, long before the outcomes are known.

    \b
    stream-peer demo                                  see it work, with nothing but Python
    stream-peer whatif csv forecasts.csv              try it on a file of yours
    stream-peer topics apply --bootstrap kafka:9092   make the topics
    stream-peer worker --bootstrap kafka:9092         serve
    stream-peer tail my-feed --bootstrap kafka:9092   watch

    \b
    Every setting can stand in a file (--config or STREAM_PEER_CONFIG), in the environment
    (http.port is STREAM_PEER_HTTP__PORT) or in a flag (--http-port); flags win, then the
    environment. `stream-peer settings show` lists them all, with their origin.

    \b
    Exit codes: 0 done or stopped cleanly, 1 not healthy, a difference in replay --from-log or a missed band in paper,
    2 usage, a file, or a refused export or import, 65 no usable line in the files, 69 no broker or schema registry, or
    workers cannot do it yet, 70 internal error, 77 not authorised, 78 settings, topics or state are wrong,
    130 interrupted.
    """  # noqa: D301 - \b is click's mark for lines that are not to be joined


@escaping_output()
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with the exit code of what happened."""
    if (
        os.getpid() == 1 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):  # in a container: the kernel keeps from process 1 every signal that it has no handler for
        signal.signal(signal.SIGTERM, _end)
    try:
        code = _call(arguments)
    except click.ClickException as error:
        code = _USAGE
        with suppress(OSError):
            error.show()
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except BrokenPipeError:  # the reader of our output (head, less) has seen enough
        code = 0
    except StreamPeerError as error:
        _say(error_text(error))
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback at a user
        code = _last_word(error)
    for stream in (sys.stdout, sys.stderr):
        _let_go(stream)
    sys.exit(code)


def _call(arguments: Sequence[str] | None) -> int:
    """Run the command line, and see that its output is written; return the exit code."""
    try:
        code = cli.main(args=arguments, prog_name="stream-peer", standalone_mode=False)
    except click.exceptions.Exit as error:
        code = error.exit_code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def error_text(error: StreamPeerError) -> str:
    """What a user reads: one sentence, or for wrong settings one line each."""
    if not isinstance(error, SettingsError):
        return f"stream-peer: {error}"
    lines = [f"  {fault.path} ({fault.origin}): {fault.message}" for fault in error.faults]
    count = "A setting is" if len(lines) == 1 else f"{len(lines)} settings are"
    return "\n".join([f"stream-peer: {count} wrong:", *lines])


def _end(number: int, _frame: object) -> None:
    """End as any other process does of the signal, until a command has a better way."""
    os._exit(128 + number)


def _let_go(stream: TextIO) -> None:
    """Let what cannot be written go nowhere: Python would write it once more at its end, and fail with code 120."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):  # a test's stream has no descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(text: str) -> None:
    """Write a sentence to stderr. If even that cannot be written, the exit code has to do."""
    with suppress(OSError):
        click.echo(text, err=True)


_CANNOT_BE_WRITTEN = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def _last_word(error: Exception) -> int:
    """Say what nobody else has an answer to: a full disk behind stdout, too little memory, or a defect of ours."""
    if isinstance(error, OSError) and error.errno in _CANNOT_BE_WRITTEN:
        _say(f"stream-peer: {error.strerror}: what was written is incomplete")
        return _USAGE
    memory = out_of_memory(error)
    _say(f"stream-peer: {memory}" if memory else _internal(error))
    return _INTERNAL


def _internal(error: Exception) -> str:
    if os.environ.get("STREAM_PEER_LOG__LEVEL") == "debug":
        return "".join(traceback.format_exception(error))
    return (
        f"stream-peer: internal error, please report it: {type(error).__name__}: {error} "
        "(STREAM_PEER_LOG__LEVEL=debug shows where)"
    )

"""The process that explains, with a season that it replays in place of a log in Kafka; run with the name of a play."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from stream_peer.errors import BrokerUnavailableError
from stream_peer.serve.explanation import ExplainFault, ExplainTask, WeightExplanation
from stream_peer.serve.http.explain import ExplainTool
from stream_peer.settings.process import Settings
from stream_peer.tools.explain.process import main


def tool(play: str = "season", *arguments: object, settings: Settings | None = None) -> ExplainTool:
    """A tool that runs this file."""
    command = (sys.executable, "-m", "tests.unit.serve.http.season_process", play, *map(str, arguments))
    return ExplainTool(command, settings or Settings(), b"secret")


def season(task: ExplainTask) -> WeightExplanation | ExplainFault:
    """Explain from a season of questions."""
    from stream_peer.tools.explain.weight import answer_request, probe_for
    from tests.unit.tools.explain.test_weight import kept

    return answer_request(task.request, kept(probe_for(task.request)))


def waits(task: ExplainTask) -> WeightExplanation | ExplainFault:
    """Explain once the test has opened and closed a pipe with a name, if there is one."""
    with suppress(FileNotFoundError):
        Path(sys.argv[2]).read_bytes()
    return season(task)


def needs_memory(task: ExplainTask) -> ExplainFault:
    """Need more than there is."""
    return ExplainFault("code", f"{len(bytearray(1 << 30))} bytes for {task.request.expert}")


def fails(task: ExplainTask) -> ExplainFault:
    """Have a fault."""
    raise RuntimeError(task.request.expert)


def dies(_task: ExplainTask) -> ExplainFault:
    """Be killed."""
    os.abort()


def finds_no_broker(task: ExplainTask) -> ExplainFault:
    """Find nobody who has the log."""
    msg = f"No broker answers at {task.settings.bootstrap}."
    raise BrokerUnavailableError(msg)


def reveals(task: ExplainTask) -> ExplainFault:
    """Tell the secrets of a task, and the command line."""
    password = task.settings.security.password
    command = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ExplainFault("feed", f"{password and password.reveal()} {task.secret!r} {task.settings.prefix}: {command}")


if __name__ == "__main__":
    main(globals()[sys.argv[1]])

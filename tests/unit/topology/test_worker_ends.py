"""How a worker's process ends: a process of its own for each, as mode takes over the signals and the loop."""

import subprocess
import sys
import textwrap

import pytest

_PROGRAM = """
    import os, signal, sys, mode
    from stream_peer.topology.watchdog import Limits, Vitals
    from stream_peer.topology.worker import StageWorker

    class Service(mode.Service):
        async def on_start(self):
            if sys.argv[1] == "fails-to-start":
                raise OSError("address in use")

        async def on_started(self):
            if sys.argv[1] == "is-told-to-stop":
                os.kill(os.getpid(), signal.SIGTERM)

        @mode.Service.task
        async def work(self):
            if sys.argv[1] == "crashes":
                raise ZeroDivisionError

    sys.exit(StageWorker(Vitals(Limits(20, 20, 20, 20)), Service()).run())
"""


@pytest.mark.parametrize(("story", "code"), [("fails-to-start", 69), ("is-told-to-stop", 0), ("crashes", 70)])
def test_a_service_that_fails_gives_its_exit_code_whenever_it_fails(story: str, code: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(_PROGRAM), story]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == code, ended.stderr

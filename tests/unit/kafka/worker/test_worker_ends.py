"""How a worker's process ends: a process of its own for each, as mode takes over the signals and the loop."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

_PROGRAM = """
    import asyncio, os, signal, sys, mode
    from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
    from stream_peer.kafka.worker.process import now
    from stream_peer.kafka.worker.worker import StageWorker

    class Service(mode.Service):
        async def on_start(self):
            if sys.argv[1] == "fails-to-start":
                raise OSError("address in use")

        async def on_started(self):
            secret = "-".join(["never", "shown"])
            if sys.argv[1] == "is-asked-for-more":
                os.kill(os.getpid(), signal.SIGUSR1)
                os.kill(os.getpid(), signal.SIGUSR2)
            if sys.argv[1] in ("is-told-to-stop", "is-asked-for-more", "is-told-twice"):
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.1)  # mode handles signals in turns of the loop

        async def on_stop(self):
            if sys.argv[1] == "is-told-twice":
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(20)

        @mode.Service.task
        async def work(self):
            if sys.argv[1] == "crashes":
                raise ZeroDivisionError

    sys.exit(StageWorker(Heartbeats(Deadlines(20, 20, 20), now), Service()).run())
"""


def run(story: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", textwrap.dedent(_PROGRAM), story]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("story", "code"),
    [("fails-to-start", 69), ("is-told-to-stop", 0), ("crashes", 70), ("is-told-twice", 70)],
)
def test_a_service_that_fails_gives_its_exit_code_whenever_it_fails(story: str, code: int) -> None:
    ended = run(story)

    assert ended.returncode == code, ended.stderr


def test_signals_that_ask_for_more_do_not_show_variables_or_wait_for_somebody_to_type() -> None:
    ended = run("is-asked-for-more")

    assert ended.returncode == 0, ended.stderr
    assert "never-shown" not in ended.stderr + ended.stdout
    assert "Pdb" not in ended.stderr + ended.stdout


_BEFORE_THE_START = """
    import os, signal, sys
    from stream_peer.kafka.client.admin import KafkaAdmin
    from stream_peer.cli import main
    from stream_peer.kafka.worker import faust_bridge as contract

    class Finalised:
        def __del__(self):
            signal.raise_signal(signal.Signals[sys.argv[2]])

    def interrupted(*_):
        Finalised()

    KafkaAdmin.check = interrupted if sys.argv[3] == "brokers" else lambda *_: {}
    contract.check = interrupted
    main(["worker", "--bootstrap", "127.0.0.1:1", "--http-port", "0"])
"""


@pytest.mark.parametrize("place", ["brokers", "contract"])
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_before_the_start_stops_the_worker_cleanly(number: str, place: str, tmp_path: Path) -> None:
    """Even while an object is finalised, where Python would drop an exception."""
    command = [sys.executable, "-c", textwrap.dedent(_BEFORE_THE_START), "worker", number, place]
    key = tmp_path / "signing-key"
    key.write_bytes(b"0123456789abcdef")
    environment = {**os.environ, "STREAM_PEER_BROKER_PATIENCE": "1s", "STREAM_PEER_SIGNING_KEY_FILE": str(key)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, "Exception ignored" in ended.stderr) == (0, False), ended.stderr

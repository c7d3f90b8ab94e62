"""What a command says while no broker answers: where it asks, why nobody answers, and how long it waits."""

import io
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_peer.kafka.client import preflight
from stream_peer.tools.transfer.feed_file import write_feed
from tests.feed_transfers import exported_lines
from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]

UNKNOWN = "kafka.invalid:9092"
ASKING = [
    "tail econ",
    "tail econ --once",
    "expert econ ann --exclude",
    "expert econ ann --forget --yes",
    "reset econ --yes",
    "delete econ --yes",
    "settings apply --config settings.yaml",
    "explain econ ann",
    "export econ --out econ.feed.gz",
    "import f.feed.gz --other-secret",
    "replay --from-log econ",
    "topics check",
    "topics apply",
    "demo --send-only",
]


@pytest.fixture
def nobody() -> Iterator[str]:
    """The address of a port that is ours and at which nobody listens."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{silent.getsockname()[1]}"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the files are that commands name; and a pause between attempts that is short beside the patience."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "_PAUSE_SECONDS", 0.01)
    Path("settings.yaml").write_text("defaults: {round_every: 1d}")
    write_feed(Path("f.feed.gz"), exported_lines())


@pytest.mark.parametrize("command", ASKING)
def test_a_command_says_on_stderr_that_it_waits_for_a_broker(capsys: Capture, nobody: str, command: str) -> None:
    ended = run(capsys, *command.split(), "--bootstrap", nobody, "--patience", "500ms")

    assert (ended.code, ended.out) == (69, "")
    assert ended.err.splitlines()[-2:] == [
        f"No broker at {nobody} yet (connection refused); waiting up to 0.5s.",
        f"stream-peer: No broker answered at {nobody} within 0.5s: connection refused.",
    ]
    assert ended.err.count("No broker at ") == 1


@pytest.mark.parametrize("command", ASKING)
def test_a_command_does_not_wait_for_a_host_that_is_not_known(capsys: Capture, command: str) -> None:
    ended = run(capsys, *command.split(), "--bootstrap", UNKNOWN, "--patience", "10m")

    assert (ended.code, ended.out) == (69, "")
    assert f"stream-peer: No broker can be asked at {UNKNOWN}: the host kafka.invalid is not known (" in ended.err
    assert "waiting up to" not in ended.err


@pytest.mark.parametrize("command", ["expert econ ann --forget", "reset econ", "delete econ"])
def test_what_nobody_can_be_asked_about_is_refused_before_a_broker_is_awaited(
    capsys: Capture, nobody: str, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    ended = run(capsys, *command.split(), "--bootstrap", nobody)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith(
        "Error: nothing was written: there is no terminal to ask at; say --yes if this is what you want\n"
    )
    assert "No broker" not in ended.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_stop_while_it_waits_for_a_broker_stops_cleanly(
    nobody: str, number: int, tmp_path: Path
) -> None:
    key = tmp_path / "signing-key"
    key.write_bytes(b"0123456789abcdef")
    flags = ["--http-port", "0", "--broker-patience", "60s", "--signing-key-file", str(key)]
    command = ["worker", "--bootstrap", nobody, *flags]
    process = subprocess.Popen([sys.executable, "-m", "stream_peer", *command], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr as said:
        waits = any("broker_awaited" in line for line in said)
        process.send_signal(number)
        code = process.wait(timeout=30)

    assert waits
    assert code == 0

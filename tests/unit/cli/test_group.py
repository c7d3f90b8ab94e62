import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest

from stream_peer import __version__
from stream_peer.cli import group
from stream_peer.errors import (
    BrokerUnavailableError,
    NotAuthorisedError,
    SettingFault,
    SettingsError,
    StateError,
    StreamPeerError,
)
from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(group.LazyGroup, "get_command", lambda *_: command)


def test_the_overview_names_every_command_and_imports_none(capsys: Capture) -> None:
    ended = run(capsys, "--help")

    assert ended.code == 0
    assert all(f"  {name} " in ended.out for name in group.COMMANDS)
    heavy = "import sys, stream_peer.cli; print(sorted({'faust', 'aiokafka', 'kafka', 'numpy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "[]\n"


def test_the_version_is_the_packages(capsys: Capture) -> None:
    assert run(capsys, "--version").out == f"stream-peer, version {__version__}\n"


def test_a_misspelt_command_is_told_with_the_one_that_may_be_meant(capsys: Capture) -> None:
    assert "No such command 'stettings'. Did you mean 'settings'?" in run(capsys, "stettings", "check").err
    assert run(capsys, "zzz").err.endswith("No such command 'zzz'.\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BrokerUnavailableError("No broker answered."), 69),
        (NotAuthorisedError("Refused."), 77),
        (StateError("State contradicts itself."), 70),
    ],
)
def test_our_errors_are_one_sentence_and_their_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, error: StreamPeerError, code: int
) -> None:
    raising(monkeypatch, error)

    assert run(capsys, "worker") == (code, "", f"stream-peer: {error}\n")


def test_faults_of_the_settings_stand_in_a_line_each(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    raising(monkeypatch, SettingsError([SettingFault("a", "flag --a", "is wrong"), SettingFault("b", "file f", "too")]))

    assert run(capsys, "worker") == (
        78,
        "",
        "stream-peer: 2 settings are wrong:\n  a (flag --a): is wrong\n  b (file f): too\n",
    )


def test_a_defect_is_a_sentence_too_and_a_traceback_only_when_debugging(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    raising(monkeypatch, ZeroDivisionError("division by zero"))

    calm = run(capsys, "worker")
    monkeypatch.setenv("STREAM_PEER_LOG__LEVEL", "debug")
    debugging = run(capsys, "worker")

    assert calm.code == debugging.code == 70
    assert calm.err.startswith("stream-peer: internal error, please report it: ZeroDivisionError: division by zero")
    assert "Traceback" not in calm.err
    assert "Traceback" in debugging.err


def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "stream_peer", "settings", "schema"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert ended.returncode == 2
    assert ended.stderr == b"stream-peer: No space left on device: what was written is incomplete\n"


@pytest.mark.parametrize(("arguments", "code"), [(["settings", "check"], 0), (["tail"], 2)])
def test_where_the_log_cannot_be_written_the_exit_code_is_what_it_would_be(arguments: list[str], code: int) -> None:
    """Python itself would end with 120 if something is left for stderr."""
    program = (
        "import logging, sys; from stream_peer.cli import main;"
        "logging.basicConfig(); logging.raiseExceptions = False; logging.error('lost'); main(sys.argv[1:])"
    )
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-c", program, *arguments]
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=full, env={**os.environ, "PYTHONUNBUFFERED": ""}, check=False
        )

    assert ended.returncode == code


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["topics", "nonsense"], ["topics", "check", "--nonsense"], ["tail"], ["settings", "apply"]],
)
def test_wrong_usage_ends_with_2(capsys: Capture, arguments: list[str]) -> None:
    ended = run(capsys, *arguments)

    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupted_command_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, error: BaseException
) -> None:
    raising(monkeypatch, error)

    ended = run(capsys, "tail")

    assert (ended.code, ended.out, ended.err.strip()) == (130, "", "")


@pytest.mark.parametrize(
    "command",
    [
        "worker",
        "health",
        "topics plan",
        "topics apply",
        "topics check",
        "settings show",
        "settings check",
        "settings apply",
        "settings schema",
        "tail",
    ],
)
def test_the_help_of_every_command_has_an_example(capsys: Capture, command: str) -> None:
    ended = run(capsys, *command.split(), "--help")

    assert ended.code == 0
    assert f"stream-peer {command}" in ended.out.split("Options:")[0].split("\n", 1)[1]


def test_a_worker_that_is_told_to_stop_while_it_still_imports_ends_with_0() -> None:
    told_at_an_import = """
import os, signal, sys
sys.argv = ["stream-peer", "worker"]

class Told:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Told())
import stream_peer.cli
raise SystemExit("it went on")
"""
    ended = subprocess.run([sys.executable, "-c", told_at_an_import], capture_output=True, timeout=60, check=False)

    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_memory_that_runs_out_is_told_with_the_limits_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, error: Exception
) -> None:
    raising(monkeypatch, error)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (120_000_000, -1))

    ended = run(capsys, "tail")

    assert ended.code == 70
    assert ended.err.startswith(
        "stream-peer: memory ran out; limits of this process: ulimit -v: 120 MB, ulimit -d: 120 MB"
    )


def test_where_stderr_cannot_be_written_the_exit_code_is_that_of_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, BrokerUnavailableError("no broker"))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(click, "echo", full)

    with pytest.raises(SystemExit) as ended:
        group.main(["tail"])
    assert ended.value.code == 69

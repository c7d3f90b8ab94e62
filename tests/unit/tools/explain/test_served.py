"""The process that explains for a worker."""

import os
import subprocess
from pathlib import Path

from stream_peer.cli.worker import explain_tool
from stream_peer.serve.explanation import (
    EXIT_FAULT,
    Bound,
    ExplainRequest,
    ExplainTask,
    decode_task,
    encode_task,
)
from stream_peer.settings.process import Secret, Security, Settings
from tests.unit.serve.http.season_process import tool

REQUEST = ExplainRequest("econ", "e1", Bound(at=3), Bound(revision=9), "select", 4)


def test_a_task_is_a_line_that_tells_all_but_the_feed_settings() -> None:
    security = Security(protocol="sasl_ssl", password=Secret("p\n"), ca_file=Path("/ca.pem"))
    settings = Settings(security=security, document={"defaults": {"memory": 3}})

    line = encode_task(ExplainTask(REQUEST, settings, b"\xff\n"))

    assert line.index(b"\n") == len(line) - 1
    assert decode_task(line) == ExplainTask(REQUEST, Settings(security=security), b"\xff\n")


def test_without_its_worker_the_process_ends(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    command = tool("waits", tmp_path / "gate").command
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(encode_task(ExplainTask(REQUEST, Settings(), b"")))
        process.stdin.flush()
        with (tmp_path / "gate").open("wb"):  # opened when the process waits in the middle of its work
            process.stdin.close()

            assert process.wait(60) == 1


def test_the_worker_s_command_explains_from_the_brokers_of_its_settings_wherever_it_runs(tmp_path: Path) -> None:
    (tmp_path / "stream_peer.py").write_text("raise SystemExit(9)")
    settings = Settings(bootstrap="127.0.0.1:1", broker_patience=0.1)
    task = ExplainTask(REQUEST, settings, b"")

    pipe = subprocess.PIPE
    with subprocess.Popen(explain_tool(settings, b"").command, stdin=pipe, stdout=pipe, cwd=tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_task(task))
        process.stdin.flush()  # and not closed: its end would say that the worker is gone
        answer = process.stdout.read()
        code = process.wait(60)

    assert code == EXIT_FAULT
    assert b'"what":"log"' in answer
    assert b"127.0.0.1:1" in answer

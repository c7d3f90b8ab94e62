"""A worker, as a process, that waits for its brokers: what its probes say, and how it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from stream_peer.tools.demo.brokers import free_ports
from tests.integration.support.asking import ask
from tests.integration.support.waiting import wait_until


def status(port: int, path: str) -> int:
    """Of the answer; 0: there is none."""
    return ask(f"http://127.0.0.1:{port}{path}")[0]


def test_a_worker_that_waits_for_brokers_lives_has_started_is_not_ready_and_stops_with_0(tmp_path: Path) -> None:
    key = tmp_path / "signing-key"
    key.write_text("0123456789abcdef" * 4)
    port, nobody = free_ports(2)
    settings = {"BOOTSTRAP": f"127.0.0.1:{nobody}", "BROKER_PATIENCE": "10m", "HTTP__PORT": str(port)}
    named = {f"STREAM_PEER_{name}": text for name, text in {**settings, "SIGNING_KEY_FILE": str(key)}.items()}
    with (tmp_path / "log").open("wb") as out:
        command = [sys.executable, "-m", "stream_peer", "worker"]
        process = subprocess.Popen(command, env={**os.environ, **named}, stdout=out, stderr=out)
        try:
            wait_until(lambda: status(port, "/healthz/live"), 60, (tmp_path / "log").read_text)
            found = {path: status(port, f"/healthz/{path}") for path in ("live", "startup", "ready")}
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
        finally:
            process.kill()

    assert (found, code) == ({"live": 200, "startup": 200, "ready": 503}, 0)

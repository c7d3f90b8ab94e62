"""Metrics and health of a worker that serves: the demo's, which stays."""

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.support.waiting import wait_until
from tests.integration.test_demo import LIMIT, environment


class KeptDemo(NamedTuple):
    """A demo that stays."""

    process: "subprocess.Popen[bytes]"
    log: Path
    address: str

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            body: bytes = answer.read()
        return body.decode()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptDemo]:
    directory = tmp_path_factory.mktemp("kept")
    log = directory / "log"
    command = [
        sys.executable,
        "-m",
        "stream_peer",
        "demo",
        "--pace",
        "2",
        "--keep",
        "--report",
        str(directory / "r.html"),
    ]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does with what it starts in the background
    try:
        with log.open("wb") as out:
            process = subprocess.Popen(command, env=environment(), stdout=out, stderr=out)
    finally:
        signal.signal(signal.SIGINT, before)
    try:

        def stays() -> bool:
            assert process.poll() is None, log.read_text()
            return "Metrics: http" in log.read_text()

        wait_until(stays, LIMIT, lambda: f"the demo never came to stay:\n{log.read_text()}")
        found = re.search(r"Metrics: http://(\S+)/metrics", log.read_text())
        assert found
        yield KeptDemo(process, log, found.group(1))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (package prometheus) is not installed")
def test_promtool_finds_nothing_wrong_with_a_live_scrape(kept: KeptDemo) -> None:
    command = ["promtool", "check", "metrics"]
    run = subprocess.run(command, input=kept.get("/metrics"), capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


@pytest.mark.slow
def test_a_demo_that_stays_says_where_its_worker_logs(kept: KeptDemo) -> None:
    found = re.search(r"Log: +(\S+)", kept.log.read_text())
    assert found
    assert "worker_ready" in Path(found.group(1)).read_text()


@pytest.mark.slow
def test_a_worker_that_serves_says_so_on_every_probe(kept: KeptDemo) -> None:
    for probe in ("live", "ready", "startup"):
        assert json.loads(kept.get(f"/healthz/{probe}")) == {"status": "ok"}


@pytest.mark.slow
def test_ctrl_c_ends_a_kept_demo_cleanly(kept: KeptDemo) -> None:
    kept.process.send_signal(signal.SIGINT)
    assert kept.process.wait(60) == 0, kept.log.read_text()
    assert "Traceback" not in kept.log.read_text()

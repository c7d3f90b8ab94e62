"""The page for platform engineers, from the first command to the restored feed, as it is printed."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer.events import topics
from stream_peer.tools.demo.brokers import free_ports
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import Event, at, crowd, question, resolution
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

DAY = 24
QUESTIONS, RESOLVED, EXPERTS = 8, 4, 5
HERE = {"replication": 1, "defaults": {"history": True}, "partitions": {"forecast_events": 2, "feed_log": 2}}
"""What the page leaves out, or has for a cluster of three brokers."""


class Page:
    """The page's blocks, run in a directory."""

    def __init__(self, text: str, directory: Path, bootstrap: str) -> None:
        self._text = text
        self._directory = directory
        self._bootstrap = bootstrap
        self._port = str(free_ports(1)[0])
        binaries = directory / "bin"
        binaries.mkdir()
        command = binaries / "stream-peer"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m stream_peer "$@"\n')
        command.chmod(0o755)

    def write_settings(self, prefix: str) -> None:
        (block,) = re.findall(r"```yaml\n(.*?)```", self._text, re.DOTALL)
        settings = {**yaml.safe_load(block), **HERE, "bootstrap": self._bootstrap, "prefix": prefix}
        (self._directory / "stream-peer.yaml").write_text(yaml.safe_dump(settings))

    def commands(self, heading: str) -> str:
        block: str
        (block,) = re.findall(rf"^## {heading}\n.*?```bash\n(.*?)```", self._text, re.DOTALL | re.MULTILINE)
        return block

    def weights(self, resolved: int) -> dict[str, Any]:
        """The newest of the feed, once they know so many outcomes."""
        found: dict[str, Any] = {}

        def known() -> bool:
            done = self._shell("stream-peer tail econ --once")
            found.update(json.loads(done.stdout) if done.returncode == 0 else {})
            return bool(found) and found["resolved"] >= resolved

        wait_until(known, 90.0, lambda: f"never known: {found} {self._said('worker-log')}", every=0.5)
        return found

    @contextmanager
    def run(self, heading: str) -> Iterator[None]:
        """Run the commands below a heading; a worker among them goes on until the block ends."""
        started = self.commands(heading).replace("worker &", "worker >/dev/null 2>worker-log &")
        done = self._shell(f"set -e\n{started}\necho ${{!:-0}} > worker")
        assert done.returncode == 0, f"{done}{self._said('worker-log')}"
        worker = int((self._directory / "worker").read_text())
        try:
            yield
        finally:
            if worker:
                os.kill(worker, signal.SIGTERM)

    def _shell(self, script: str) -> "subprocess.CompletedProcess[str]":
        environment = {
            **os.environ,
            "PATH": f"{self._directory / 'bin'}:{os.environ['PATH']}",
            "STREAM_PEER_CONFIG": "stream-peer.yaml",
            "STREAM_PEER_HTTP__PORT": self._port,
        }
        command, where = ["bash", "-c", script], self._directory
        return subprocess.run(
            command, cwd=where, env=environment, capture_output=True, text=True, timeout=180, check=False
        )

    def _said(self, name: str) -> str:
        file = self._directory / name
        return file.read_text()[-4000:] if file.exists() else ""


def past() -> list[Event]:
    """Questions of the past; half of them are resolved, the last one is open."""
    events: list[Event] = []
    for number in range(QUESTIONS):
        name, opens = f"q-{number}", number * DAY
        events += [question(name, "econ", opens + 6 * DAY, opens_at=at(opens)), *crowd(name, EXPERTS, opens + 1)]
        events += [resolution(name, number % 2, opens + 7 * DAY)] if number < RESOLVED else []
    return sorted(events, key=lambda event: str(event.get("at", event.get("opens_at"))))


@pytest.mark.slow
def test_the_page_deploys_backs_up_and_restores(
    repository: Path, kafka: KafkaClient, kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    page = Page((repository / "docs" / "platform.md").read_text("utf-8"), tmp_path, kafka_bootstrap)

    page.write_settings(f"{topic_prefix}there-")
    with page.run("Deploy"):
        messages = [Message(str(event["question_id"]).encode(), json.dumps(event).encode()) for event in past()]
        kafka.produce(f"{topic_prefix}there-{topics.FORECAST_EVENTS}", messages)
        before = page.weights(RESOLVED)
        with page.run("Back up"):
            pass
    page.write_settings(f"{topic_prefix}here-")
    with page.run("Restore"):
        after = page.weights(RESOLVED)

    assert after["questions"] == before["questions"]
    assert after["experts"] == before["experts"]
    assert len(after["experts"]) == EXPERTS

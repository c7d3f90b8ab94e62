"""A real Alertmanager on a free port, which keeps what it is told and sends nothing to anybody."""

import json
import subprocess
import tempfile
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from stream_peer.adapters.local_kafka import free_ports
from tests.infra.support.prometheus import installed
from tests.integration.support.waiting import wait_until

PROGRAM = "prometheus-alertmanager"
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
_DEPLOYMENT = ["cluster", "namespace", "job"]

CONFIGURATION: dict[str, Any] = {
    "route": {
        "receiver": "operator",
        "group_by": ["alertname", *_DEPLOYMENT],
        "group_wait": "1s",
        "group_interval": "5s",
        "repeat_interval": "4h",
    },
    "receivers": [{"name": "operator"}],
    "inhibit_rules": [
        # Where nobody works, everything else follows from it.
        {
            "source_matchers": ['alertname="StreamPeerNoWorkers"'],
            "target_matchers": ['alertname=~"StreamPeer.+"', 'alertname!="StreamPeerNoWorkers"'],
            "equal": _DEPLOYMENT,
        },
        # What stands still falls behind, too.
        {
            "source_matchers": ['alertname="StreamPeerNoProgress"'],
            "target_matchers": ['alertname="StreamPeerLagGrows"'],
            "equal": [*_DEPLOYMENT, "topic", "partition"],
        },
    ],
}


class Alertmanager:
    """Context manager: the server, with its configuration and data in a temporary directory."""

    def __init__(self) -> None:
        self._scratch = ExitStack()
        self._log = Path()
        self.address = ""

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def __enter__(self) -> Self:
        with ExitStack() as scratch:
            directory = Path(scratch.enter_context(tempfile.TemporaryDirectory(prefix="alertmanager-")))
            self._start(directory, scratch)
            self._scratch = scratch.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.close()

    def names(self) -> set[str]:
        """Names of the alerts that it was told of and that go on."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?active=true", timeout=10) as answer:  # noqa: S310 - http
            return {alert["labels"]["alertname"] for alert in json.load(answer)}

    def _start(self, directory: Path, scratch: ExitStack) -> None:
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        (directory / "alertmanager.yml").write_text(yaml.safe_dump(CONFIGURATION), encoding="utf-8")
        self._log = directory / "log"
        command = [
            installed(PROGRAM),
            f"--config.file={directory / 'alertmanager.yml'}",
            f"--storage.path={directory / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
        ]
        with self._log.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
        scratch.callback(_end, process)
        wait_until(
            lambda: self._is_ready(process), READY_SECONDS, lambda: f"Alertmanager was never ready: {self._said()}"
        )

    def _is_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        assert process.poll() is None, f"Alertmanager ended with {process.returncode}: {self._said()}"
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):  # noqa: S310 - http
                return True
        except OSError:
            return False

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""A real Prometheus: started with a configuration, or with targets and rules; asked; stopped.

With ``Prometheus(history=...)`` it starts with the samples of an OpenMetrics text, which lie where the text says in
time: a day is there within a second.
"""

import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import yaml

from stream_peer.adapters.local_kafka import free_ports
from tests.integration.support.waiting import wait_until

JOB = "stream-peer"
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
_TIMEOUT = 30.0
_LOG_SHOWN = 4000


class MissingProgramError(Exception):
    """A program that is not on this machine: install its package."""


class Series(NamedTuple):
    """A series of an answer: its labels, and its points as (Unix time, value)."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


def installed(name: str) -> str:
    """Where a program of this machine lies.

    Raises
    ------
    MissingProgramError
        If it is not there.
    """
    path = shutil.which(name)
    if path is None:
        msg = f"{name} is not installed"
        raise MissingProgramError(msg)
    return path


def configuration(
    targets: Iterable[str] = (),
    rule_files: Iterable[Path] = (),
    *,
    job: str = JOB,
    every: str = "1s",
    alertmanagers: Iterable[str] = (),
) -> dict[str, Any]:
    """A configuration: ``targets`` (host:port) of one job are scraped, and rules evaluated, at an interval."""
    static = [{"targets": list(targets)}]
    managers = [{"static_configs": [{"targets": list(alertmanagers)}]}]
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(Path(file).resolve()) for file in rule_files],
        "scrape_configs": [{"job_name": job, "static_configs": static}],
        "alerting": {"alertmanagers": managers},
    }


class Prometheus:
    """Context manager: a server of its own, on a free port, with its data in a temporary directory.

    Parameters
    ----------
    config : mapping, optional
        Content of its configuration file, for instance a ``configuration``; without it nothing is scraped.
    history : str, optional
        OpenMetrics text with times, put into its data before it starts.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, history: str | None = None) -> None:
        self._config = dict(config or configuration())
        self._history = history
        self._scratch = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = Path()
        self._address = ""

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://{self._address}"

    def __enter__(self) -> Self:
        with ExitStack() as scratch:
            self._directory = Path(scratch.enter_context(tempfile.TemporaryDirectory(prefix="prometheus-")))
            scratch.callback(self.stop)
            if self._history is not None:
                self._fill(self._history)
            self._start()
            self._wait_ready()
            self._scratch = scratch.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.close()

    def stop(self) -> None:
        """End it; what it said and its data stay until the block is left."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def reload(self, config: Mapping[str, Any] | None = None) -> None:
        """Have it read its configuration and its rules again, changed or not.

        Raises
        ------
        AssertionError
            If it refuses them; it goes on with the former ones.
        """
        if config is not None:
            self._config = dict(config)
            self._write_config()
        status, text = self._http("/-/reload", method="POST")
        assert status == 200, f"{text}\n{self.said()}"

    # --- asking ---

    def query(self, expression: str, at: float | None = None) -> list[Series]:
        """Answer at one moment (Unix time), now unless told. A scalar is a series without labels."""
        found = self._data("query", query=expression, **({} if at is None else {"time": f"{at:.3f}"}))
        if found["resultType"] == "scalar":
            return [Series({}, [_point(found["result"])])]
        return [Series(one["metric"], [_point(one["value"])]) for one in found["result"]]

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """Answer over time, from and to Unix times, every ``step`` seconds."""
        found = self._data("query_range", query=expression, start=f"{start:.3f}", end=f"{end:.3f}", step=f"{step:.3f}")
        return [Series(one["metric"], [_point(value) for value in one["values"]]) for one in found["result"]]

    def value(self, expression: str, at: float | None = None) -> float | None:
        """The one value of an expression; None if there is no series."""
        found = self.query(expression, at)
        assert len(found) <= 1, f"{expression} has {len(found)} series"
        return found[0].points[0][1] if found else None

    def label_values(self, label: str, match: str) -> list[str]:
        """Values of a label among the series that a selector finds, ever."""
        values: list[str] = self._data(f"label/{label}/values", **{"match[]": match})
        return values

    def targets(self) -> list[dict[str, Any]]:
        """What it scrapes: each has ``scrapeUrl``, ``health`` (up, down, unknown), ``lastError`` and ``labels``."""
        active: list[dict[str, Any]] = self._data("targets", state="active")["activeTargets"]
        return active

    def rules(self) -> list[dict[str, Any]]:
        """All rules of all groups: each has ``name``, ``type`` (alerting, recording), ``health`` and ``lastError``."""
        return [rule for group in self._data("rules")["groups"] for rule in group["rules"]]

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are pending or firing: each has ``labels`` (``alertname``), ``annotations`` and ``state``."""
        found: list[dict[str, Any]] = self._data("alerts")["alerts"]
        return found

    def said(self) -> str:
        """The end of its log."""
        return (self._directory / "log").read_text(errors="replace")[-_LOG_SHOWN:]

    # --- inside ---

    def _fill(self, history: str) -> None:
        text = self._directory / "history.om"
        text.write_text(history, encoding="utf-8")
        command = [installed("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(text)]
        done = subprocess.run(
            [*command, str(self._directory / "data")], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _write_config(self) -> None:
        (self._directory / "prometheus.yml").write_text(yaml.safe_dump(self._config), encoding="utf-8")

    def _start(self) -> None:
        self._write_config()
        self._address = f"127.0.0.1:{free_ports(1)[0]}"
        command = [
            installed("prometheus"),
            f"--config.file={self._directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._directory / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={self._address}",
            "--web.enable-lifecycle",
        ]
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)

    def _wait_ready(self) -> None:
        process = self._process
        assert process is not None

        def ready() -> bool:
            assert process.poll() is None, f"Prometheus ended with {process.returncode}:\n{self.said()}"
            return self._http("/-/ready")[0] == 200

        wait_until(ready, READY_SECONDS, lambda: f"Prometheus was never ready:\n{self.said()}")

    def _data(self, path: str, **parameters: str) -> Any:
        """What the API says; long expressions travel in the body where the API allows it."""
        words = urllib.parse.urlencode(parameters)
        if path.startswith("query"):
            status, text = self._http(f"/api/v1/{path}", words.encode(), method="POST")
        else:
            status, text = self._http(f"/api/v1/{path}?{words}")
        assert status == 200, f"{path} {parameters}: {status} {text}"
        return json.loads(text)["data"]

    def _http(self, path: str, body: bytes | None = None, method: str = "GET") -> tuple[int, str]:
        request = urllib.request.Request(f"http://{self._address}{path}", data=body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - http, see above
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()
        except OSError as error:
            return 0, str(error)


def _point(pair: Sequence[Any]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])

"""A real Prometheus: started with a configuration, or with targets and rules; asked; stopped.

With ``Prometheus(history=...)`` it starts with the samples of an OpenMetrics text, which lie where the text says in
time: a day is there within a second.
"""

import json
import subprocess
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.infra.support.server import Server, installed

JOB = "stream-peer"


class Series(NamedTuple):
    """A series of an answer: its labels, and its points as (Unix time, value)."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


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


class Prometheus(Server):
    """Context manager: a server of its own, on a free port, with its data in a temporary directory.

    Parameters
    ----------
    config : mapping, optional
        Content of its configuration file, for instance a ``configuration``; without it nothing is scraped.
    history : str, optional
        OpenMetrics text with times, put into its data before it starts.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, history: str | None = None) -> None:
        super().__init__("prometheus", config or configuration())
        self._history = history

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

    # --- inside ---

    def _options(self, data: Path) -> list[str]:
        return [f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=100y", "--web.enable-lifecycle"]

    def _fill(self) -> None:
        if self._history is None:
            return
        text = self._directory / "history.om"
        text.write_text(self._history, encoding="utf-8")
        command = [installed("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(text)]
        done = subprocess.run(
            [*command, str(self._directory / "data")], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _data(self, path: str, **parameters: str) -> Any:
        """What the API says; long expressions travel in the body where the API allows it."""
        words = urllib.parse.urlencode(parameters)
        if path.startswith("query"):
            status, text = self._http(f"/api/v1/{path}", words.encode(), method="POST")
        else:
            status, text = self._http(f"/api/v1/{path}?{words}")
        assert status == 200, f"{path} {parameters}: {status} {text}"
        return json.loads(text)["data"]


def _point(pair: Sequence[Any]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])

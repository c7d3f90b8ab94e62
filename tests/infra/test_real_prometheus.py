"""The Prometheus that the other tests ask: it starts, scrapes, answers, evaluates rules, reloads, and has a past."""

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.infra.support.panels import Window, unanswered
from tests.infra.support.prometheus import Prometheus, configuration
from tests.infra.support.server import MissingProgramError, installed
from tests.infra.support.tools import needed
from tests.integration.support.waiting import wait_until

_PAGE = b"# TYPE speed gauge\nspeed 42\n"


class _Target(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def target() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Target) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yml"
    alert = {"alert": "Fast", "expr": "speed > 1", "labels": {"severity": "warning"}}
    path.write_text(yaml.safe_dump({"groups": [{"name": "speed", "rules": [alert]}]}))
    return path


def test_it_scrapes_its_targets_and_fires_its_alerts(target: str, rules: Path) -> None:
    needed("prometheus")
    with Prometheus(configuration([target], [rules])) as prometheus:
        wait_until(lambda: prometheus.value("speed") == 42, 30, "speed was never scraped")
        wait_until(prometheus.alerts, 30, "the alert never fired")

        assert [one["health"] for one in prometheus.targets()] == ["up"]
        assert [(rule["name"], rule["type"], rule["health"]) for rule in prometheus.rules()] == [
            ("Fast", "alerting", "ok")
        ]
        assert [(alert["labels"]["alertname"], alert["state"]) for alert in prometheus.alerts()] == [("Fast", "firing")]
        assert prometheus.label_values("instance", "speed") == [target]


def test_it_takes_up_new_rules_and_refuses_wrong_ones(rules: Path) -> None:
    needed("prometheus")
    with Prometheus() as prometheus:
        assert prometheus.rules() == []

        prometheus.reload(configuration([], [rules]))

        assert [rule["name"] for rule in prometheus.rules()] == ["Fast"]
        rules.write_text("groups: nothing")
        with pytest.raises(AssertionError, match="rules"):
            prometheus.reload()


def test_a_past_is_there_from_the_start_and_panels_are_asked_about_it() -> None:
    needed("prometheus", "promtool")
    end = time.time() // 60 * 60
    lines = [f'speed{{feed="f"}} {minute} {end - 60 * (60 - minute):.0f}' for minute in range(61)]
    history = "\n".join(["# TYPE speed gauge", *lines, "# EOF", ""])
    panel = {"type": "timeseries", "title": "Speed", "targets": [{"refId": "A", "expr": 'speed{feed=~"$feed"}'}]}
    other = {**panel, "title": "None", "targets": [{"refId": "A", "expr": "absent_metric"}]}
    both = {**panel, "title": "Both", "targets": [*panel["targets"], {"refId": "B", "expr": "0 * speed / 0"}]}
    dashboard = {"title": "Test", "panels": [panel, {"type": "row", "title": "r", "panels": [other, both]}]}

    with Prometheus(history=history) as prometheus:
        points = prometheus.query_range("speed", end - 3600, end, 600)[0].points
        assert [value for _, value in points] == [0, 10, 20, 30, 40, 50, 60]
        window = Window(end - 3600, end)
        assert unanswered(prometheus, [dashboard], window) == ["Test / None"]
        assert unanswered(prometheus, [dashboard], window, every_query=True) == ["Test / None", "Test / Both (B)"]


def test_a_missing_program_is_named() -> None:
    with pytest.raises(MissingProgramError, match="no-such-program is not installed"):
        installed("no-such-program")

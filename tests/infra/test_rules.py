"""Rules for Prometheus: that they are sound, tested both ways, and ask for nothing that a worker does not tell."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer.serve.metrics.catalogue import GATEWAY, described
from tests.infra.support.promql import selectors
from tests.infra.support.rules import FILES, alerts, recorded, rules
from tests.infra.support.tools import ROOT, program, run, said

TESTS = sorted((ROOT / "tests" / "infra" / "rules").glob("*.yaml"))
OF_PROMETHEUS = {"up", "ALERTS"}
OF_PROCESSES = {"process_start_time_seconds", "process_cpu_seconds_total", "process_resident_memory_bytes"}
SEVERITIES = {"critical", "warning", "info"}
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
OF_TARGETS = {"cluster", "namespace", "job", "instance"}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def exported() -> dict[str, set[str]]:
    """Names of the series of workers and gateways, with their labels."""
    names: dict[str, set[str]] = {}
    for metric in (*described(), *GATEWAY):
        for suffix in SUFFIXES.get(metric.kind, ("",)):
            names[metric.full_name + suffix] = {*metric.labels, *(["le"] if suffix == "_bucket" else [])}
    return names


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every test with the alert that it is of."""
    for path in TESTS:
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            yield test["name"].split(":")[0], test


def fires(test: dict[str, Any]) -> list[bool]:
    """Whether a test wants its alert to fire, at each of its moments in their order."""
    moments = sorted(test["alert_rule_test"], key=lambda moment: seconds(moment["eval_time"]))
    return [bool(moment["exp_alerts"]) for moment in moments]


def seconds(duration: str) -> int:
    return sum(int(number) * SECONDS[unit] for number, unit in re.findall(r"(\d+)([smhd])", duration))


def test_promtool_finds_no_fault() -> None:
    result = run(program("promtool", "prometheus"), "check", "rules", "--lint-fatal", *map(str, FILES))

    assert result.returncode == 0, said(result)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_stay_silent_and_end_as_they_should(path: Path) -> None:
    result = run(program("promtool", "prometheus"), "test", "rules", str(path))

    assert result.returncode == 0, said(result)


def test_promtool_would_notice_an_alert_that_does_not_fire(tmp_path: Path) -> None:
    told = yaml.safe_load(TESTS[0].read_text(encoding="utf-8").replace("../../../helm", str(ROOT / "helm")))
    first, file = told["tests"][0], tmp_path / "first.yaml"
    codes = []
    for expected in ([], [{"exp_labels": {"severity": "info"}}]):
        first["alert_rule_test"] = [{**first["alert_rule_test"][0], "exp_alerts": expected}]
        file.write_text(yaml.safe_dump({**told, "tests": [first]}))
        codes.append(run(program("promtool", "prometheus"), "test", "rules", str(file)).returncode)

    assert codes[0] == 0
    assert codes[1] != 0


def test_each_alert_is_tested_to_fire_to_end_and_to_stay_silent() -> None:
    found: dict[str, list[list[bool]]] = defaultdict(list)
    for alert, test in cases():
        assert {moment["alertname"] for moment in test["alert_rule_test"]} == {alert}, test["name"]
        found[alert].append(fires(test))

    assert found.keys() == alerts().keys()
    for alert, tests in found.items():
        firing = [moments for moments in tests if any(moments)]
        assert any(not moments[0] for moments in firing), f"{alert}: nothing shows that it waits before it fires"
        assert any(not moments[-1] for moments in firing), f"{alert}: nothing shows that it ends"
        assert any(not any(moments) for moments in tests), f"{alert}: nothing shows where it stays silent"


@pytest.mark.parametrize("name", alerts())
def test_an_alert_says_how_bad_it_is_what_it_is_and_where_to_read_on(name: str) -> None:
    alert = alerts()[name]

    assert name.startswith("StreamPeer")
    assert alert["labels"].keys() == {"severity"}
    assert alert["labels"]["severity"] in SEVERITIES
    assert "for" in alert
    assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert "$labels" in alert["annotations"]["summary"] + alert["annotations"]["description"]
    assert alert["annotations"]["runbook_url"] == f"docs/runbook/{name}.md"


def test_each_alert_has_a_page_and_each_page_an_alert() -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "runbook").glob("*.md")}
    pages.pop("index")

    assert pages.keys() == alerts().keys()
    for name, text in pages.items():
        assert text.startswith(f"# {name}\n")
        assert re.findall("^## (.*)$", text, re.MULTILINE) == ["Check", "Action"], name


def test_queries_of_the_runbook_can_be_asked() -> None:
    known = exported().keys() | recorded().keys() | OF_PROMETHEUS | OF_PROCESSES
    asked = 0
    for path in sorted((ROOT / "docs" / "runbook").glob("*.md")):
        for block in re.findall(r"```promql\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            for query in filter(None, re.split(r"\n\n|\n(?=\S)", block.strip())):
                asked += 1
                unknown = {one.metric for one in selectors(query)} - known
                assert not unknown, f"{path.name}: {query} asks for {unknown}"

    assert asked >= len(alerts())


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_an_expression_asks_only_for_what_workers_tell(rule: dict[str, Any]) -> None:
    told = exported()
    for selector in selectors(rule["expr"]):
        matched = {label for label, _ in selector.labels}
        assert "job" not in matched, "an alert must not depend on the value of job"
        if selector.metric in told:
            assert matched <= told[selector.metric], f"{selector.metric} has no label {matched - told[selector.metric]}"
        else:
            assert selector.metric in recorded().keys() | OF_PROMETHEUS | OF_PROCESSES


@pytest.mark.parametrize("name", recorded())
def test_what_is_recorded_is_asked_for(name: str) -> None:
    dashboards = [path.read_text("utf-8") for path in (ROOT / "helm" / "stream-peer" / "dashboards").glob("*.json")]

    assert any(name in alert["expr"] for alert in alerts().values()) or any(name in text for text in dashboards)


def test_alerts_of_many_targets_keep_the_labels_by_which_they_are_told_apart() -> None:
    for rule in rules():
        for labels in re.findall(r"\bby \(([^)]*)\)", rule["expr"]):
            kept = {label.strip() for label in labels.split(",")}
            assert {"cluster", "namespace", "job"} <= kept, f"{rule['expr']} mixes deployments"
            assert kept - OF_TARGETS <= set().union(*exported().values())

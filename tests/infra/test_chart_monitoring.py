"""Monitors, rules and dashboards: the files of the chart, found by who should find them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.support.chart import CHART, CI, Manifest, all_of, manifests, of_ci, one
from tests.infra.support.tools import NODE, ROOT, node_modules, program, run, said

RULES = sorted((ROOT / CHART / "rules").glob("*.yaml"))
DASHBOARDS = sorted((ROOT / CHART / "dashboards").glob("*.json"))
RUNBOOK = "https://runbooks.example.com/stream-peer"
MONITORS = [("PodMonitor", "podMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "serviceMonitor", "endpoints")]
CONFIG_MAP_LIMIT = 2**20


def groups_of_files() -> list[Manifest]:
    return [group for file in RULES for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]


def rules_of(groups: list[Manifest]) -> list[Manifest]:
    return [rule for group in groups for rule in group["rules"]]


def rendered_groups(values: str = "") -> list[Manifest]:
    every = manifests(f"metrics: {{prometheusRule: {{enabled: true, {values}}}}}")
    groups: list[Manifest] = one("PrometheusRule", every)["spec"]["groups"]
    return groups


def custom(every: Any) -> list[Manifest]:
    return [m for m in every if m["apiVersion"].partition("/")[0] in ("keda.sh", "monitoring.coreos.com")]


def test_custom_resources_are_what_their_operators_understand() -> None:
    node_modules()
    objects = [manifest for name in CI for manifest in custom(of_ci(name))]
    assert {manifest["kind"] for manifest in objects} == {
        "PodMonitor",
        "ServiceMonitor",
        "PrometheusRule",
        "ScaledObject",
        "TriggerAuthentication",
    }

    result = run(program("node", "nodejs"), str(NODE / "objects.mjs"), stdin=json.dumps(objects))

    assert result.returncode == 0, said(result)
    assert json.loads(result.stdout) == []


def test_a_custom_resource_that_is_wrong_would_be_noticed() -> None:
    node_modules()
    wrong = json.dumps(custom(of_ci("autoscaled"))).replace('"lagThreshold": "5000"', '"lagThreshold": 5000')

    result = run(program("node", "nodejs"), str(NODE / "objects.mjs"), stdin=wrong)

    assert "lagThreshold must be string" in result.stdout, said(result)


@pytest.mark.parametrize(("kind", "value", "endpoints"), MONITORS)
def test_a_monitor_scrapes_every_worker_of_the_release(kind: str, value: str, endpoints: str) -> None:
    every = manifests(f"metrics: {{{value}: {{enabled: true, additionalLabels: {{release: prometheus}}}}}}")
    monitor = one(kind, every)

    (endpoint,) = monitor["spec"][endpoints]

    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["peer"]}
    assert (endpoint["port"], endpoint["path"]) == ("http", "/metrics")
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("15s", "10s")
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "release-stream-peer"}]
    assert "authorization" not in endpoint


def test_monitors_select_pods_and_the_service_that_knows_those_that_are_not_ready() -> None:
    pods = one("PodMonitor", manifests("metrics: {podMonitor: {enabled: true}}"))["spec"]["selector"]["matchLabels"]
    every = manifests("metrics: {serviceMonitor: {enabled: true}}")
    services = one("ServiceMonitor", every)["spec"]["selector"]["matchLabels"]

    labels = one("StatefulSet", every)["spec"]["template"]["metadata"]["labels"]
    found = [s for s in all_of("Service", every) if services.items() <= s["metadata"]["labels"].items()]

    assert pods.items() <= labels.items()
    assert [service["spec"].get("publishNotReadyAddresses") for service in found] == [True]


@pytest.mark.parametrize(("kind", "value", "endpoints"), MONITORS)
def test_a_scrape_shows_the_token_where_one_is_asked_for(kind: str, value: str, endpoints: str) -> None:
    def credentials(values: str) -> Any:
        monitor = one(
            kind, manifests(f"http: {{tokenSecret: {{name: h}}}}\nmetrics: {{{value}: {{enabled: true}}{values}}}")
        )
        return monitor["spec"][endpoints][0]["authorization"]["credentials"]

    assert credentials("") == {"name": "h", "key": "token"}
    assert credentials(", tokenSecret: {name: scrapes, key: t}") == {"name": "scrapes", "key": "t"}


def test_every_rule_of_the_files_is_there_as_it_is_but_for_the_link_to_its_page() -> None:
    rendered = rendered_groups(f"runbookBaseUrl: '{RUNBOOK}/'")
    plain = groups_of_files()

    for rule in rules_of(plain):
        if "runbook_url" in rule.get("annotations", {}):
            rule["annotations"]["runbook_url"] = f"{RUNBOOK}/{rule['annotations']['runbook_url']}"
        if "alert" in rule:
            rule.setdefault("labels", {})

    assert sorted(rendered, key=lambda group: str(group["name"])) == sorted(plain, key=lambda group: str(group["name"]))
    assert len(rules_of(plain)) > 10


def test_every_alert_has_labels_of_yours_and_a_page_that_is_there() -> None:
    alerts = [rule for rule in rules_of(rendered_groups("alertLabels: {team: us}")) if "alert" in rule]

    for alert in alerts:
        assert alert["labels"]["team"] == "us"
        assert alert["labels"]["severity"] in ("critical", "warning", "info")
        page = alert["annotations"]["runbook_url"].removeprefix("https://example.com/stream-peer/")
        assert (ROOT / page).is_file(), page


def test_prometheus_understands_the_rules_as_rendered(tmp_path: Path) -> None:
    spec = one("PrometheusRule", of_ci("observability"))["spec"]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")

    result = run(program("promtool", "prometheus"), "check", "rules", str(file))

    assert result.returncode == 0, said(result)
    assert f"SUCCESS: {len(rules_of(spec['groups']))} rules found" in result.stdout


def test_alerts_and_groups_can_be_left_out() -> None:
    group = groups_of_files()[0]
    alert = next(rule["alert"] for rule in rules_of(groups_of_files()) if "alert" in rule)

    def alerts(values: str) -> set[str]:
        return {rule["alert"] for rule in rules_of(rendered_groups(values)) if "alert" in rule}

    assert alerts("disabled: []") - alerts(f"disabled: [{alert}]") == {alert}
    assert group["name"] not in {each["name"] for each in rendered_groups(f"disabled: [{group['name']}]")}


def test_each_dashboard_is_a_config_map_for_the_sidecar() -> None:
    maps = all_of("ConfigMap", of_ci("observability"), "dashboards")

    shown = {name: text for manifest in maps for name, text in manifest["data"].items()}

    assert len(maps) == len(DASHBOARDS) >= 3
    for manifest in maps:
        assert manifest["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert manifest["metadata"]["annotations"] == {"grafana_folder": "stream-peer"}
    for file in DASHBOARDS:
        text = shown[f"stream-peer-{file.name}"]
        assert json.loads(text) == json.loads(
            file.read_text(encoding="utf-8").replace('"docs/runbook"', f'"{RUNBOOK}/docs/runbook"')
        )
        assert len(text.encode()) < CONFIG_MAP_LIMIT


def test_dashboards_know_where_the_pages_of_alerts_are() -> None:
    for manifest in all_of("ConfigMap", of_ci("observability"), "dashboards"):
        (text,) = manifest["data"].values()
        assert f'"{RUNBOOK}/docs/runbook"' in text


def test_dashboards_may_go_to_another_namespace_under_another_label() -> None:
    values = "{enabled: true, namespace: grafana, label: dash, labelValue: 'on'}"

    maps = all_of("ConfigMap", manifests(f"metrics: {{dashboards: {values}}}"), "dashboards")

    assert {(m["metadata"]["namespace"], m["metadata"]["labels"]["dash"]) for m in maps} == {("grafana", "on")}


def test_nothing_of_an_operator_is_rendered_unless_asked_for() -> None:
    assert custom(manifests("{}")) == []
    assert all_of("ConfigMap", manifests("{}"), "dashboards") == []

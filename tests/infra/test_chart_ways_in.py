"""Ways in from outside, and what a pod is given beside the worker."""

import json
from pathlib import Path

import pytest

from tests.infra.support.chart import Manifest, all_of, manifests, of_ci, one, pod_specs, template
from tests.infra.test_chart_values import loaded

INGRESS = "ingress: {enabled: true, hosts: [peer.example.com], tls: [{hosts: [peer.example.com], secretName: tls}]}"
ROUTE = "httpRoute: {enabled: true, hosts: [route.example.com], parentRefs: [{name: gateway}]}"


def pod(values: str) -> Manifest:
    found: Manifest = one("StatefulSet", manifests(values))["spec"]["template"]["spec"]
    return found


def test_an_ingress_leads_to_the_service_at_its_port() -> None:
    every = manifests(INGRESS)
    service = one("Service", every, "worker")

    spec = one("Ingress", every)["spec"]

    (rule,) = spec["rules"]
    (path,) = rule["http"]["paths"]
    assert (rule["host"], path["path"], path["pathType"]) == ("peer.example.com", "/", "Prefix")
    backend = path["backend"]["service"]
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    assert spec["tls"] == [{"hosts": ["peer.example.com"], "secretName": "tls"}]
    assert "ingressClassName" not in spec
    assert one("Ingress", of_ci("everything"))["spec"]["ingressClassName"] == "nginx"


def test_a_route_leads_from_its_gateways_to_the_service_at_its_port() -> None:
    every = manifests(f"{ROUTE}\nhttp: {{port: 9000}}")

    spec = one("HTTPRoute", every)["spec"]

    service = one("Service", every, "worker")
    assert (spec["parentRefs"], spec["hostnames"]) == ([{"name": "gateway"}], ["route.example.com"])
    assert spec["rules"] == [{"backendRefs": [{"name": service["metadata"]["name"], "port": 9000}]}]


def test_workers_answer_for_the_hosts_of_all_ways_in(tmp_path: Path) -> None:
    settings = loaded(manifests(f"{INGRESS}\n{ROUTE}\nhttp: {{hosts: [other.example.com]}}"), tmp_path).settings

    assert {"peer.example.com", "route.example.com", "other.example.com"} <= set(settings.http.hosts.split(","))


@pytest.mark.parametrize(
    ("values", "address"),
    [
        ("logLevel: info", "http://127.0.0.1:8080"),
        (INGRESS, "https://peer.example.com"),
        ("ingress: {enabled: true, hosts: [peer.example.com]}", "http://peer.example.com"),
        (ROUTE, "https://route.example.com"),
    ],
)
def test_dashboards_lead_to_the_api_by_the_way_in(values: str, address: str) -> None:
    maps = all_of("ConfigMap", manifests(f"{values}\nmetrics: {{dashboards: {{enabled: true}}}}"), "dashboards")

    dashboards = [json.loads(text) for found in maps for text in found["data"].values()]

    services = [v["query"] for d in dashboards for v in d["templating"]["list"] if v["name"] == "service"]
    assert services == [address]


def test_without_being_asked_for_there_is_no_way_in() -> None:
    assert not {found["kind"] for found in manifests("{}")} & {"Ingress", "HTTPRoute"}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("ingress: {enabled: true}", "ingress.hosts"),
        ("httpRoute: {enabled: true, hosts: [a]}", "httpRoute"),
        ("httpRoute: {enabled: true, parentRefs: [{name: a}]}", "httpRoute"),
        ("ingress: {hosts: ['*.example.com']}", "hosts"),
    ],
)
def test_a_way_in_that_leads_nowhere_is_refused(values: str, named: str) -> None:
    assert named in template(values).stderr


def test_a_pod_has_the_containers_and_handlers_that_are_added() -> None:
    lifecycle = {"preStop": {"exec": {"command": ["sleep", "3"]}}}
    extra, first = {"name": "proxy", "image": "proxy:1"}, {"name": "wait", "image": "wait:1"}
    values = {"lifecycle": lifecycle, "extraContainers": [extra], "initContainers": [first]}

    spec = pod(json.dumps(values))

    assert (spec["initContainers"], spec["containers"][1:]) == ([first], [extra])
    assert spec["containers"][0]["lifecycle"] == lifecycle
    assert "lifecycle" not in pod("{}")["containers"][0]


def test_the_security_context_of_pods_can_be_overridden_in_part() -> None:
    usual = pod("{}")["securityContext"]

    for spec in pod_specs(manifests("podSecurityContext: {fsGroup: 2000, supplementalGroups: [3000]}")):
        assert spec["securityContext"] == {**usual, "fsGroup": 2000, "supplementalGroups": [3000]}

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer.settings import load
from tests.infra.support.tools import ROOT, run, said, tool

CHART = "helm/stream-peer"
KUBERNETES = ("1.29", "1.34", "1.37")
VALUES = (ROOT / CHART / "values.yaml").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / CHART / "values.schema.json").read_text(encoding="utf-8"))

EVERYTHING = """
nameOverride: peer
commonLabels: {team: forecasting}
image: {registry: registry.example.com, tag: 0.1.0-rc1}
imagePullSecrets: [{name: pull}]
replicaCount: 3
kafka:
  bootstrapServers: a.example.com:9093,b.example.com:9093
  prefix: acme-
  security:
    protocol: sasl_ssl
    mechanism: SCRAM-SHA-512
    username: peer
    passwordSecret: {name: kafka-user}
    caSecret: {name: kafka-ca, key: cluster-ca.crt}
secret: {name: draws}
settings: {snapshot_every: {seconds: 5}, gather: 20ms}
feedSettings:
  defaults: {round_every: 1d}
  feeds: {econ: {quorum: 5}}
serviceAccount: {annotations: {example.com/role: none}}
podAnnotations: {example.com/scrape: "yes"}
podLabels: {tier: backend}
extraEnv: [{name: TZ, value: UTC}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {podAntiAffinity: {}}
topologySpreadConstraints: []
priorityClassName: high
"""
SETS = {
    "defaults": "{}",
    "everything": EVERYTHING,
    "mutual TLS": "{kafka: {security: {protocol: ssl, certificateSecret: {name: client-tls}}}}",
    "token": "{kafka: {security: {protocol: sasl_ssl, mechanism: OAUTHBEARER, tokenSecret: {name: oauth}}}}",
    "no set-up": "{setUp: {enabled: false}, serviceAccount: {create: false, name: mine}}",
    "dynamic members": "{kafka: {staticMembership: false}, terminationGracePeriodSeconds: 300}",
}
WRONG = {
    "replicaCount: 0": "replicaCount",
    "replicas: 2": "replicas",
    "kafka: {topicPrefix: x}": "topicPrefix",
    "kafka: {bootstrapServers: kafka}": "bootstrapServers",
    "kafka: {security: {protocol: SASL_SSL}}": "protocol",
    "image: {digest: latest}": "digest",
    "http: {port: 80}": "port",
    "secret: {name: Not_A_Name}": "secret",
    "stage: both": "stage",
    "terminationGracePeriodSeconds: 20": "larger than shutdownDeadlineSeconds",
    "terminationGracePeriodSeconds: 45": "smaller than kafka.sessionSeconds",
}

Manifest = dict[str, Any]


def rendered(values: str, version: str = "1.34") -> str:
    result = run(
        *(tool("helm"), "template", "release", CHART, "--namespace", "peer"),
        *("--kube-version", f"{version}.0", "--values", "-"),
        stdin=values,
    )
    assert result.returncode == 0, said(result)
    return result.stdout


def manifests(values: str) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(rendered(values)) if document]


def one(kind: str, every: list[Manifest], component: str | None = None) -> Manifest:
    (found,) = [
        manifest
        for manifest in every
        if manifest["kind"] == kind
        and component in (None, manifest["metadata"]["labels"].get("app.kubernetes.io/component"))
    ]
    return found


def pod_specs(every: list[Manifest]) -> Iterator[Manifest]:
    for manifest in every:
        if manifest["kind"] in ("StatefulSet", "Job"):
            yield manifest["spec"]["template"]["spec"]


def containers(spec: Manifest) -> list[Manifest]:
    return [*spec.get("initContainers", []), *spec["containers"]]


@pytest.fixture
def everything() -> list[Manifest]:
    return manifests(EVERYTHING)


@pytest.mark.parametrize("version", KUBERNETES)
def test_helm_lint_finds_nothing(version: str) -> None:
    result = run(tool("helm"), "lint", "--strict", "--kube-version", f"{version}.0", CHART)

    assert result.returncode == 0, said(result)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_what_is_rendered_is_known_to_kubernetes(values: str, tmp_path: Path) -> None:
    for version in KUBERNETES:
        file = tmp_path / f"{version}.yaml"
        file.write_text(rendered(values, version), encoding="utf-8")

        result = run(tool("kubernetes-validate"), "--strict", "-k", version, str(file))

        assert result.returncode == 0, said(result)


@pytest.mark.parametrize(("values", "named"), WRONG.items(), ids=WRONG.keys())
def test_a_wrong_value_is_refused_by_name(values: str, named: str) -> None:
    result = run(tool("helm"), "template", "release", CHART, "--values", "-", stdin=values)

    assert result.returncode != 0
    assert named in result.stderr, said(result)


def objects_of(schema: Manifest) -> Iterator[Manifest]:
    if "properties" in schema:
        yield schema
    for value in schema.values():
        if isinstance(value, dict):
            yield from objects_of(value)


def resolved(schema: Manifest) -> Manifest:
    if "$ref" not in schema:
        return schema
    found: Manifest = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return found


def paths(values: Manifest, schema: Manifest, before: str = "") -> Iterator[tuple[str, bool]]:
    """Every key of the values, and whether the schema knows it."""
    properties = resolved(schema).get("properties")
    for key, value in values.items():
        known = properties is None or key in properties
        yield before + key, known
        if known and properties is not None and isinstance(value, dict):
            yield from paths(value, properties[key], f"{before}{key}.")


def test_every_value_is_in_the_schema_and_the_readme() -> None:
    readme = (ROOT / CHART / "README.md").read_text(encoding="utf-8")
    values = yaml.safe_load(VALUES)

    assert [path for path, known in paths(values, SCHEMA) if not known] == []
    assert [key for key in values if f"`{key}" not in readme] == []


def test_the_schema_knows_no_value_that_is_not_in_the_values_file() -> None:
    documented = set(yaml.safe_load(VALUES))

    assert set(SCHEMA["properties"]) - {"global"} == documented


def test_the_schema_is_closed_and_sets_nothing() -> None:
    assert all(schema.get("additionalProperties") is False for schema in objects_of(SCHEMA))
    assert '"default"' not in json.dumps(SCHEMA)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_every_pod_passes_the_restricted_standard(values: str) -> None:
    for spec in pod_specs(manifests(values)):
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(spec):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_the_settings_file_is_one_that_the_worker_accepts(values: str, tmp_path: Path) -> None:
    text = one("ConfigMap", [m for m in manifests(values) if "annotations" not in m["metadata"]])["data"][
        "settings.yaml"
    ]
    (tmp_path / "secret.txt").write_text("x", encoding="utf-8")
    file = tmp_path / "settings.yaml"
    file.write_text(re.sub(r"/etc/stream-peer/\S+", str(tmp_path / "secret.txt"), text), encoding="utf-8")
    environment = {"STREAM_PEER_SECURITY__PASSWORD": "x"} if "passwordSecret" in values else {}

    settings = load(file, environment).settings

    assert settings.http.host == "0.0.0.0"  # noqa: S104 - the pod's own address, for probes and scrapes
    assert settings.partitions.forecast_events == 16


def test_the_set_up_has_the_workers_settings(everything: list[Manifest]) -> None:
    settings = [manifest["data"] for manifest in everything if manifest["kind"] == "ConfigMap"]

    assert len(settings) == 2
    assert settings[0] == settings[1]


def test_the_set_up_makes_the_topics_before_it_applies_the_feed_settings(everything: list[Manifest]) -> None:
    spec = one("Job", everything)["spec"]["template"]["spec"]

    assert [container["args"] for container in containers(spec)] == [["topics", "apply"], ["settings", "apply"]]
    assert one("Job", everything)["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"


def test_probes_ask_the_paths_of_the_worker_on_its_port(everything: list[Manifest]) -> None:
    (worker,) = one("StatefulSet", everything)["spec"]["template"]["spec"]["containers"]

    for probe, path in (("startup", "startup"), ("liveness", "live"), ("readiness", "ready")):
        assert worker[f"{probe}Probe"]["httpGet"] == {"path": f"/healthz/{path}", "port": "http"}
    assert worker["ports"] == [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]


def test_a_pod_is_a_static_member_by_its_name_unless_told_otherwise() -> None:
    def names(values: str) -> list[str]:
        (worker,) = one("StatefulSet", manifests(values))["spec"]["template"]["spec"]["containers"]
        return [variable["name"] for variable in worker["env"]]

    assert "STREAM_PEER_INSTANCE" in names("{}")
    assert "STREAM_PEER_INSTANCE" not in names("kafka: {staticMembership: false}")


def test_passwords_come_from_secrets_and_never_into_the_settings(everything: list[Manifest]) -> None:
    for spec in pod_specs(everything):
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for container in containers(spec):
            mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
            variables = {variable["name"]: variable.get("value") for variable in container["env"]}
            assert variables["STREAM_PEER_SECURITY__PASSWORD_FILE"] == f"{mounts['password']['mountPath']}/password"
        assert volumes["password"]["secret"]["secretName"] == "kafka-user"
        assert volumes["ca"]["secret"]["items"] == [{"key": "cluster-ca.crt", "path": "ca.crt"}]
        assert volumes["secret"]["secret"]["secretName"] == "draws"


def test_selectors_and_the_service_name_hold_nothing_that_an_upgrade_changes(everything: list[Manifest]) -> None:
    stateful_set, service = one("StatefulSet", everything), one("Service", everything)

    selector = {
        "app.kubernetes.io/name": "peer",
        "app.kubernetes.io/instance": "release",
        "app.kubernetes.io/component": "worker",
    }
    assert stateful_set["spec"]["selector"]["matchLabels"] == selector
    assert service["spec"]["selector"] == selector
    assert service["spec"]["clusterIP"] == "None"
    assert stateful_set["spec"]["serviceName"] == service["metadata"]["name"]


def test_a_digest_wins_over_a_tag() -> None:
    digest = "sha256:" + "0" * 64
    spec = one("StatefulSet", manifests(f"image: {{registry: r.example.com, tag: x, digest: '{digest}'}}"))["spec"]

    assert spec["template"]["spec"]["containers"][0]["image"] == f"r.example.com/stream-peer@{digest}"


def test_the_notes_say_the_next_commands() -> None:
    result = run(tool("helm"), "install", "release", CHART, "--dry-run=client")

    assert result.returncode == 0, said(result)
    assert "port-forward release-stream-peer-0 8080" in result.stdout
    assert "secret.name is empty" in result.stdout

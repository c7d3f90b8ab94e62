"""values.yaml, its schema, the README and the settings of the process say the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generator.chart_values import values
from stream_peer.settings.process import Loaded, leaves, load
from tests.infra.support.chart import (
    CHART,
    CI,
    Manifest,
    all_of,
    containers,
    environment,
    gateway,
    manifests,
    mounted,
    of_ci,
    one,
    pod_specs,
    template,
    worker,
)
from tests.infra.support.tools import ROOT, run, said, tool

VALUES = (ROOT / CHART / "values.yaml").read_text(encoding="utf-8")
SCHEMA: Manifest = json.loads((ROOT / CHART / "values.schema.json").read_text(encoding="utf-8"))

# What is given by a value of the chart instead of `settings`, together with what it needs.
BY_VALUES = """
kafka:
  bootstrapServers: other:9093
  prefix: acme-
  applicationId: other
  sessionSeconds: 50
  replication: 2
  partitions: {forecastEvents: 8, controlEvents: 8, feedLog: 8, deadLetters: 2}
  security:
    protocol: sasl_ssl
    mechanism: SCRAM-SHA-256
    username: peer
    allowPlaintextPassword: true
    passwordSecret: {name: password}
    tokenSecret: {name: token}
    caSecret: {name: ca}
    certificateSecret: {name: tls}
secret: {name: draws}
producersSecret: {name: producers}
gateway:
  enabled: true
  tokensSecret: {name: tokens}
  certificateSecret: {name: tls}
  clientCaSecret: {name: ca}
http: {port: 9000, tokenSecret: {name: http}}
logLevel: warning
shutdownDeadlineSeconds: 15
"""
BY_SETTINGS = {
    "broker": "kafka",
    "rebalance_timeout": "90s",
    "broker_patience": "2m",
    "snapshot_every": {"seconds": 5, "records": 1000, "bytes": "1MB"},
    "gather": "20ms",
    "gateway": {"events_per_second": 100, "bytes_per_second": "1MB"},
    "registry": {"url": "https://registry:8081", "username": "peer", "password": "x", "ca_file": "/dev/null"},
    "http": {"host": "::"},
    "store": "memory",
    "start": "latest",
    "on_recreated": "rebuild",
    "log": {"format": "console"},
    "compression": "none",
    "cloudevents": True,
}


def loaded(every: Any, files: Path, container: Manifest | None = None) -> Loaded:
    """What the process makes of the settings file and the environment that it gets from the chart."""
    text = one("ConfigMap", every, "worker")["data"]["settings.yaml"]
    file = files / "settings.yaml"
    file.write_text(mounted(text, files), encoding="utf-8")
    variables = environment(container or worker(every))
    return load(file, {name: mounted(value, files) for name, value in variables.items()})


def objects_of(schema: Manifest) -> Iterator[Manifest]:
    if "properties" in schema:
        yield schema
    for value in schema.values():
        if isinstance(value, dict):
            yield from objects_of(value)


def known(path: str) -> bool:
    """Whether the schema knows a dotted path."""
    schema = SCHEMA
    for name in path.split("."):
        properties = resolved(schema).get("properties", {})
        if name not in properties:
            return False
        schema = properties[name]
    return True


def resolved(schema: Manifest) -> Manifest:
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def described(schema: Manifest, before: str = "") -> Iterator[str]:
    """Every path that the schema describes, down to what it leaves free."""
    for name, below in schema["properties"].items():
        inner = resolved(below)
        if "properties" in inner:
            yield from described(inner, f"{before}{name}.")
        yield before + name


def test_every_value_is_described_in_the_readme_and_known_to_the_schema() -> None:
    readme = (ROOT / CHART / "README.md").read_text(encoding="utf-8")
    found = values(VALUES)

    assert len(found) > 100
    assert [value.path for value in found if not known(value.path)] == []
    assert [value.path for value in found if f"| `{value.path}` | {value.kind} | " not in readme] == []
    assert [value.path for value in found if not value.about] == []


def test_the_schema_knows_no_value_that_is_not_in_the_values_file() -> None:
    documented = {value.path for value in values(VALUES)}
    documented |= {path.rsplit(".", depth)[0] for path in documented for depth in range(path.count(".") + 1)}

    # Helm's own; and what a probe and an update strategy may have beyond what they are given.
    free = {"global"} | {path for path in described(SCHEMA) if path.startswith(("probes.", "updateStrategy."))}
    assert set(described(SCHEMA)) - documented - free == set()


def test_the_schema_is_closed_and_sets_nothing() -> None:
    assert all(schema.get("additionalProperties") is False for schema in objects_of(SCHEMA))
    assert '"default"' not in json.dumps(SCHEMA)


def test_the_schema_is_a_schema() -> None:
    result = run(tool("check-jsonschema"), "--check-metaschema", f"{CHART}/values.schema.json")

    assert result.returncode == 0, said(result)


def test_a_value_without_a_word_about_it_would_be_noticed() -> None:
    with pytest.raises(ValueError, match=r"does not say what image\.flavour is"):
        values(VALUES.replace("image:\n", "image:\n  flavour: plain\n", 1))


@pytest.mark.parametrize("name", CI)
def test_every_container_has_settings_that_the_process_accepts(name: str, tmp_path: Path) -> None:
    every = of_ci(name)
    for spec in pod_specs(every):
        for container in containers(spec):
            settings = loaded(every, tmp_path, container).settings

            assert settings.http.host in ("0.0.0.0", "::")  # noqa: S104 - the pod's own address, for probes and scrapes
            assert settings.partitions.forecast_events == 16
            assert settings.log.format == "json"


def test_every_setting_of_the_process_can_be_given(tmp_path: Path) -> None:
    given = yaml.safe_load(BY_VALUES) | {"settings": BY_SETTINGS}
    every = manifests(yaml.safe_dump(given))

    of_gateway = loaded(every, tmp_path, gateway(every)).origins
    gateways = {path: origin for path, origin in of_gateway.items() if path.startswith("gateway.")}
    origins = {**loaded(every, tmp_path).origins, **gateways}

    # A secret in the environment, as text, would be in the object that describes the pod: it is given as a file.
    assert [path for path in leaves() if origins[path] == "default"] == []


def test_what_is_given_is_what_the_process_gets(tmp_path: Path) -> None:
    given = yaml.safe_load(BY_VALUES) | {"settings": BY_SETTINGS}

    settings = loaded(manifests(yaml.safe_dump(given)), tmp_path).settings

    assert (settings.bootstrap, settings.prefix, settings.id) == ("other:9093", "acme-", "other")
    assert (settings.session, settings.shutdown_deadline, settings.replication) == (50, 15, 2)
    assert (settings.partitions.forecast_events, settings.partitions.dead_letters) == (8, 2)
    assert (settings.security.mechanism, settings.security.username) == ("SCRAM-SHA-256", "peer")
    assert settings.security.key_file == tmp_path / "certificate" / "tls.key"
    assert (settings.http.port, settings.http.host, settings.log.level) == (9000, "::", "warning")
    assert (settings.instance, settings.stage) == ("release-stream-peer-0", "all")
    assert settings.http.advertise == "http://release-stream-peer-0.release-stream-peer-headless.peer.svc:9000"


def test_settings_that_are_given_elsewhere_are_exactly_those_that_are_refused() -> None:
    by_settings = {path for path in leaves() if _given(path)}
    refused = set()
    for path in leaves():
        nested: Any = "x"
        for name in reversed(path.split(".")):
            nested = {name: nested}
        if "say it by" in template(yaml.safe_dump({"settings": nested})).stderr:
            refused.add(path)

    assert refused == leaves().keys() - by_settings


def _given(path: str) -> bool:
    block: Any = BY_SETTINGS
    for name in path.split("."):
        if not isinstance(block, dict) or name not in block:
            return False
        block = block[name]
    return True


def test_feed_settings_reach_the_job_and_change_no_pod(tmp_path: Path) -> None:
    def annotations(values_: str) -> Any:
        return one("StatefulSet", manifests(values_))["spec"]["template"]["metadata"]["annotations"]

    with_feeds = "feedSettings: {defaults: {round_every: 1d}, feeds: {econ: {quorum: 5}}}"

    assert annotations(with_feeds) == annotations("{}")
    assert annotations("logLevel: debug") != annotations("{}")
    document = loaded(manifests(with_feeds), tmp_path).settings.document
    assert document == {"defaults": {"round_every": "1d"}, "feeds": {"econ": {"quorum": 5}}}
    worker_map, set_up_map = (one("ConfigMap", manifests(with_feeds), name) for name in ("worker", "set-up"))
    assert worker_map["data"] == set_up_map["data"]


def test_no_value_of_a_secret_is_in_a_config_map() -> None:
    for name in CI:
        for settings in all_of("ConfigMap", of_ci(name), "worker"):
            assert "password" not in settings["data"]["settings.yaml"]

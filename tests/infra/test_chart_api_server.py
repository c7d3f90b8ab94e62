"""The packed chart on a real API server: installed, upgraded and uninstalled, its hooks checked, without a warning.

``make kube-apiserver`` builds the server.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.infra.support.api_server import ApiServer, api_server
from tests.infra.support.chart import CI, packed, parsed

pytestmark = pytest.mark.slow

STRIMZI = "kafka"
ON_TOP = {
    "default": {},
    "split": {},
    "everything": {
        "strimzi": {"cluster": "events", "namespace": STRIMZI},
        "ingress": {"enabled": True, "hosts": ["peer.example.com"]},
        "httpRoute": {"enabled": True, "hosts": ["peer.example.org"], "parentRefs": [{"name": "gate"}]},
        "autoscaling": {"by": "lag", "maxReplicas": 4},
    },
}
"""Values of ``ci/`` that are installed, and what they leave out."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        server.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STRIMZI}})
        server.make(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1}
        )
        yield server


@pytest.mark.parametrize("name", ON_TOP)
def test_a_release_is_installed_upgraded_and_uninstalled(server: ApiServer, name: str, tmp_path: Path) -> None:
    namespace = f"of-{name}"
    where = ("--namespace", namespace)
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(ON_TOP[name]), encoding="utf-8")
    given = (packed(), *where, "--no-hooks", "--values", str(CI[name]), "--values", str(values))
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    server.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": restricted}})
    before = server.names(namespace) | server.names(STRIMZI)

    said = [server.done("helm", "install", "one", *given).stderr]
    keys = {
        server.done("kubectl", "get", "secrets", *where, "--output", "jsonpath={.items[*].data.signing-key}").stdout
    }
    installed = server.names(namespace)
    hooks = server.done("helm", "get", "hooks", "one", *where).stdout
    said += [server.done("kubectl", "create", "--dry-run=server", *where, "--filename", "-", stdin=hooks).stderr]
    said += [server.done("helm", "upgrade", "one", *given, "--set", "podAnnotations.round=two").stderr]
    keys |= {
        server.done("kubectl", "get", "secrets", *where, "--output", "jsonpath={.items[*].data.signing-key}").stdout
    }
    rendered = parsed(server.done("helm", "get", "manifest", "one", *where).stdout)
    said += [server.done("helm", "uninstall", "one", *where, "--no-hooks").stderr]

    assert [line for text in said for line in text.splitlines() if "arning" in line] == []
    assert len(keys) == 1, "an upgrade made another signing key"
    assert {manifest["kind"].lower() for manifest in rendered} <= {
        found.partition("/")[0] for found in installed | server.names(STRIMZI)
    }
    left = (server.names(namespace) | server.names(STRIMZI)) - before
    assert {found.partition("/")[0] for found in left} <= {"secret", "kafkatopic", "kafkauser"}
    assert {found for found in left if found.startswith("secret/")} == {
        found for found in installed if found.endswith("-signing-key")
    }

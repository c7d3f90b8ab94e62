"""The Secret with the key that signs what the service writes itself: made once, kept, and given to workers only."""

import base64
from pathlib import Path

import pytest

from tests.infra.support.chart import (
    CI,
    NAMESPACE,
    RELEASE,
    Manifest,
    all_of,
    containers,
    environment,
    manifests,
    of_ci,
    one,
    parsed,
    pod_specs,
    template,
)
from tests.infra.support.kube_api import kube_api
from tests.infra.support.tools import said

NAME = "release-stream-peer-signing-key"
KEPT = base64.b64encode(b"the key that was made at the install").decode()


def made(data: dict[str, str]) -> Manifest:
    """The Secret as a release of ours has left it."""
    owner = {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": NAMESPACE}
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    metadata = {"name": NAME, "namespace": NAMESPACE, "annotations": owner, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def key_of(text: str) -> str:
    return str(one("Secret", parsed(text))["data"]["signing-key"])


def test_an_install_makes_a_key_that_nobody_can_guess_and_that_nothing_replaces() -> None:
    secret = one("Secret", of_ci("default"))

    assert len(base64.b64decode(secret["data"]["signing-key"])) == 64
    assert secret["metadata"]["name"] == NAME
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert secret["immutable"] is True
    assert key_of(template("{}").stdout) != secret["data"]["signing-key"]


@pytest.mark.parametrize("event", [["--is-upgrade"], []], ids=["upgrade", "install-again"])
def test_what_comes_after_takes_over_the_key_that_is_there(event: list[str], tmp_path: Path) -> None:
    with kube_api(tmp_path, NAMESPACE, made({"signing-key": KEPT})) as kubeconfig:
        cluster = ["--dry-run=server", "--disable-openapi-validation", "--kubeconfig", str(kubeconfig)]
        result = template("{}", *cluster, *event)

    assert result.returncode == 0, said(result)
    assert key_of(result.stdout) == KEPT


def test_an_upgrade_that_would_go_on_with_another_key_is_refused(tmp_path: Path) -> None:
    asks_nobody = template("{}", "--is-upgrade")
    with kube_api(tmp_path, NAMESPACE, made({"other": KEPT})) as kubeconfig:
        cluster = ["--dry-run=server", "--disable-openapi-validation", "--kubeconfig", str(kubeconfig)]
        has_another = template("{}", *cluster, "--is-upgrade")

    assert "signingKeySecret.name: there is no Secret" in asks_nobody.stderr
    assert (
        "signingKeySecret.key: the Secret release-stream-peer-signing-key has no key signing-key" in has_another.stderr
    )


def test_with_a_secret_of_your_own_the_chart_makes_none_and_renders_the_same_each_time() -> None:
    values = "signingKeySecret: {name: ours, key: keys}"
    assert all_of("Secret", manifests(values)) == []

    results = [template(values, *event).stdout for event in ([], [], ["--is-upgrade"])]

    assert results[0] == results[1] == results[2]
    (spec,) = (each["spec"]["template"]["spec"] for each in all_of("StatefulSet", manifests(values)))
    (volume,) = (volume["secret"] for volume in spec["volumes"] if volume["name"] == "signing-key")
    assert (volume["secretName"], volume["items"]) == ("ours", [{"key": "keys", "path": "signing-key"}])


@pytest.mark.parametrize("name", CI)
def test_workers_alone_have_the_key_as_a_file_that_cannot_be_written(name: str) -> None:
    workers = [each["spec"]["template"]["spec"] for each in all_of("StatefulSet", of_ci(name))]

    for spec in pod_specs(of_ci(name)):
        is_worker = spec in workers
        assert [volume["secret"]["defaultMode"] for volume in spec["volumes"] if volume["name"] == "signing-key"] == [
            0o440
        ] * is_worker
        for container in containers(spec):
            mount = {"name": "signing-key", "mountPath": "/etc/stream-peer/signing-key", "readOnly": True}
            file = environment(container).get("STREAM_PEER_SIGNING_KEY_FILE")
            assert (mount in container["volumeMounts"]) is is_worker
            assert file == ("/etc/stream-peer/signing-key/signing-key" if is_worker else None)

"""The chart as Helm renders it, once for each values file and version of Kubernetes."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stream_peer import __version__
from tests.infra.support.tools import ROOT, run, said, tool

CHART = "helm/stream-peer"
KUBERNETES = ("1.29", "1.34", "1.37")
RELEASE, NAMESPACE = "release", "peer"
CI = {file.name.removesuffix("-values.yaml"): file for file in sorted((ROOT / CHART / "ci").glob("*-values.yaml"))}
WORKER, SET_UP, TEST = "worker", "set-up", "test"
COMPONENT, STAGE = "app.kubernetes.io/component", "stream-peer/stage"

_LONGEST_TEXT = 1000

Manifest = dict[str, Any]


@cache
def packed() -> str:
    """The chart as a release has it."""
    helm = tool("helm")
    result = run("make", "--silent", "chart")
    assert result.returncode == 0, f"{helm}: {said(result)}"
    return str(ROOT / "build" / f"stream-peer-{__version__}.tgz")


def template(values: str, *arguments: str, version: str = "1.34", chart: str = "") -> subprocess.CompletedProcess[str]:
    """What ``helm template`` makes of values, given as YAML, or says against them: of the packed chart, or another."""
    return run(
        *(
            tool("helm"),
            "template",
            RELEASE,
            chart or packed(),
            "--namespace",
            NAMESPACE,
            "--kube-version",
            f"{version}.0",
        ),
        *("--values", "-", *arguments),
        stdin=values,
    )


@cache
def rendered(values: str, version: str = "1.34") -> str:
    """The manifests as text; ``values`` is YAML."""
    result = template(values, version=version)
    assert result.returncode == 0, said(result)
    return result.stdout


@cache
def manifests(values: str) -> Sequence[Manifest]:
    """The manifests; whoever reads them leaves them as they are."""
    return parsed(rendered(values))


def parsed(text: str) -> Sequence[Manifest]:
    """The documents of a rendered chart, without empty ones."""
    return tuple(document for document in yaml.load_all(text, yaml.CSafeLoader) if document)


def of_ci(name: str) -> Sequence[Manifest]:
    """The manifests for one of the values files in ``ci/``."""
    return manifests(CI[name].read_text(encoding="utf-8"))


def all_of(kind: str, every: Sequence[Manifest], component: str | None = None) -> list[Manifest]:
    """The manifests of a kind, all or those of a component."""
    return [
        manifest
        for manifest in every
        if manifest["kind"] == kind and component in (None, manifest["metadata"]["labels"][COMPONENT])
    ]


def one(kind: str, every: Sequence[Manifest], component: str | None = None) -> Manifest:
    """The manifest of a kind, of which there is one."""
    (found,) = all_of(kind, every, component)
    return found


def set_up_job(every: Sequence[Manifest], name: str = "set-up") -> Manifest:
    """The Job before each install and upgrade; ``set-up-method``: the one after an upgrade."""
    (found,) = (job for job in all_of("Job", every) if job["metadata"]["name"].endswith(f"-{name}"))
    return found


def pod_specs(every: Sequence[Manifest]) -> Iterator[Manifest]:
    """What pods are made from: those of workers, of gateways, of the set-up Jobs and of ``helm test``."""
    for manifest in every:
        if manifest["kind"] in ("StatefulSet", "Deployment", "Job"):
            yield manifest["spec"]["template"]["spec"]
        if manifest["kind"] == "Pod":
            yield manifest["spec"]


def containers(spec: Manifest) -> list[Manifest]:
    """All containers of a pod."""
    return [*spec.get("initContainers", []), *spec["containers"]]


def worker(every: Sequence[Manifest]) -> Manifest:
    """The container of the one StatefulSet."""
    (found,) = one("StatefulSet", every)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def gateway(every: Sequence[Manifest]) -> Manifest:
    """The container of the one Deployment."""
    (found,) = one("Deployment", every)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def environment(container: Manifest, pod: str = f"{RELEASE}-stream-peer-0") -> dict[str, str]:
    """The variables as the container will have them, in a pod of that name; what comes from Secrets is ``x``."""
    found: dict[str, str] = {}
    for variable in container["env"]:
        text = variable.get("value")
        if text is None:
            text = "x" if "secretKeyRef" in variable["valueFrom"] else pod
        for name, value in found.items():
            text = text.replace(f"$({name})", value)
        found[variable["name"]] = text
    return found


def mounted(text: str, files: Path) -> str:
    """A text whose paths in a pod lead to files here, which hold some letters unless they are there already."""
    for directory, file in (
        ("secret", "secret"),
        ("http-token", "token"),
        ("password", "password"),
        ("token", "token"),
        ("ca", "ca.crt"),
        ("certificate", "tls.crt"),
        ("certificate", "tls.key"),
        ("producers", "producers.yaml"),
        ("signing-key", "signing-key"),
        ("gateway-tokens", "tokens"),
        ("gateway-certificate", "tls.crt"),
        ("gateway-certificate", "tls.key"),
        ("gateway-client-ca", "ca.crt"),
    ):
        path = files / directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("x" * 32, encoding="utf-8")
    return text.replace("/etc/stream-peer", str(files))


def kubernetes_accepts(texts: Sequence[str], version: str) -> subprocess.CompletedProcess[str]:
    """What the schemas of a Kubernetes version say of rendered charts; misspelt names are faults.

    An object that is in several of them is looked at once, and long texts (dashboards) are cut: reading takes the time.
    """
    objects = {json.dumps(_short(manifest)): None for text in texts for manifest in parsed(text)}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "objects.yaml"
        file.write_text("\n---\n".join(objects), encoding="utf-8")
        return run(tool("kubernetes-validate"), "--strict", "--quiet", "-k", version, str(file))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_short(below) for below in value]
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value

"""A Kubernetes API server with its etcd, and nothing behind it: it checks and keeps objects, and no pod runs."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from stream_peer.tools.demo.brokers import free_ports
from tests.infra.support.tools import program, run, said, tool
from tests.integration.support.waiting import wait_until

VARIABLE = "STREAM_PEER_KUBE_APISERVER"
CUSTOM = {
    "KafkaTopic": ("kafka.strimzi.io", "v1"),
    "KafkaUser": ("kafka.strimzi.io", "v1"),
    "HTTPRoute": ("gateway.networking.k8s.io", "v1"),
    "PodMonitor": ("monitoring.coreos.com", "v1"),
    "PrometheusRule": ("monitoring.coreos.com", "v1"),
    "ScaledObject": ("keda.sh", "v1alpha1"),
    "TriggerAuthentication": ("keda.sh", "v1alpha1"),
}
"""What the chart makes for operators. Their definitions here say nothing of the content."""


class ApiServer(NamedTuple):
    """A server that runs, and the file by which its tools find it."""

    kubeconfig: Path

    def run(self, name: str, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run helm or kubectl, and keep what it says."""
        return run(tool(name), *arguments, "--kubeconfig", str(self.kubeconfig), stdin=stdin, seconds=120)

    def done(self, name: str, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run what must succeed."""
        result = self.run(name, *arguments, stdin=stdin)
        assert result.returncode == 0, f"{name} {' '.join(arguments)}: {said(result)}"
        return result

    def make(self, *objects: Mapping[str, Any]) -> None:
        """Make objects."""
        self.done("kubectl", "create", "--filename", "-", stdin=yaml.safe_dump_all(objects))

    def names(self, namespace: str) -> set[str]:
        """All objects that the chart may make in a namespace, as KIND/NAME."""
        kinds = ",".join([*_OF_KUBERNETES, *(f"{kind}.{group}" for kind, (group, _) in CUSTOM.items())])
        found = self.done("kubectl", "get", kinds, "--namespace", namespace, "--output", "name", "--ignore-not-found")
        return {
            line.partition("/")[0].partition(".")[0] + "/" + line.partition("/")[2] for line in found.stdout.split()
        }


_OF_KUBERNETES = (
    *("secrets", "configmaps", "services", "serviceaccounts", "statefulsets", "deployments", "jobs", "pods"),
    *("ingresses", "networkpolicies", "poddisruptionbudgets", "horizontalpodautoscalers"),
)


@contextmanager
def api_server(directory: Path) -> Iterator[ApiServer]:
    """The server that the environment names; the test is skipped where it names none."""
    binary = os.environ.get(VARIABLE, "")
    if not binary:
        pytest.skip(f"{VARIABLE} names no kube-apiserver: `make kube-apiserver` builds one")
    etcd = program("etcd", "etcd-server")
    store, peers, port = free_ports(3)
    key, tokens = directory / "key", directory / "tokens.csv"
    made = run(program("openssl"), "genrsa", "-out", str(key))
    assert made.returncode == 0, said(made)
    tokens.write_text('token,admin,1,"system:masters"\n')
    at = f"http://127.0.0.1:{store}"
    with (
        _process([etcd, *_flags(_etcd(directory, at, f"http://127.0.0.1:{peers}"))], directory / "etcd.log"),
        _process([binary, *_flags(_server(directory, at, port, key, tokens))], directory / "server.log") as process,
    ):
        server = ApiServer(_kubeconfig(directory / "kubeconfig.yaml", port))

        def ready() -> bool:
            assert process.poll() is None, (directory / "server.log").read_text()[-4000:]
            return server.run("kubectl", "get", "--raw", "/readyz").returncode == 0

        wait_until(ready, 120.0, lambda: f"never ready: {(directory / 'server.log').read_text()[-4000:]}", every=0.5)
        server.make(*map(_definition, CUSTOM))
        for kind, (group, _) in CUSTOM.items():
            server.done(
                "kubectl", "wait", "--for=condition=established", f"crd/{kind.lower()}s.{group}", "--timeout=60s"
            )
        yield server


def _etcd(directory: Path, at: str, peers: str) -> Mapping[str, str]:
    clients = {"listen-client-urls": at, "advertise-client-urls": at}
    return {**clients, "listen-peer-urls": peers, "data-dir": str(directory / "etcd")}


def _server(directory: Path, etcd: str, port: int, key: Path, tokens: Path) -> Mapping[str, str]:
    accounts = {"service-account-key-file": str(key), "service-account-signing-key-file": str(key)}
    return {
        "etcd-servers": etcd,
        "bind-address": "127.0.0.1",
        "secure-port": str(port),
        "cert-dir": str(directory),
        "token-auth-file": str(tokens),
        "authorization-mode": "RBAC",
        "service-cluster-ip-range": "10.0.0.0/24",
        "service-account-issuer": "https://kubernetes.default.svc",
        **accounts,
        "disable-admission-plugins": "ServiceAccount",  # no controller makes the default account of a namespace
        "endpoint-reconciler-type": "none",
    }


def _flags(options: Mapping[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


@contextmanager
def _process(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            process.kill()


def _kubeconfig(file: Path, port: int) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "u", "user": {"token": "token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    file.chmod(0o600)
    return file


def _definition(kind: str) -> dict[str, Any]:
    group, version = CUSTOM[kind]
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stub"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
        },
    }

"""As much of a Kubernetes API as Helm asks when it renders with `--dry-run=server`: what there is, and one Secret."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

_KINDS = {
    "v1": ("Secret", "Service", "ServiceAccount", "ConfigMap", "Pod"),
    "apps/v1": ("StatefulSet",),
    "batch/v1": ("Job",),
    "policy/v1": ("PodDisruptionBudget",),
}


@contextmanager
def kube_api(directory: Path, namespace: str, *secrets: dict[str, Any]) -> Iterator[Path]:
    """A server with some Secrets in a namespace; the kubeconfig that leads to it."""
    known = {f"/api/v1/namespaces/{namespace}/secrets/{each['metadata']['name']}": each for each in secrets}
    answers = {**_discovery(), **known}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            body = json.dumps(found or missing).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield _kubeconfig(directory / "kubeconfig.yaml", server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _discovery() -> dict[str, Any]:
    """What the server says that it has."""
    groups = [version for version in _KINDS if "/" in version]
    named = [
        {"name": version.split("/")[0], "versions": [{"groupVersion": version, "version": "v1"}]} for version in groups
    ]
    found: dict[str, Any] = {
        "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": named},
    }
    for version, kinds in _KINDS.items():
        resources = [
            {"name": f"{kind.lower()}s", "namespaced": True, "kind": kind, "verbs": ["get", "list"]} for kind in kinds
        ]
        where = f"/apis/{version}" if "/" in version else f"/api/{version}"
        found[where] = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
    return found


def _kubeconfig(file: Path, port: int) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
        "current-context": "test",
    }
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file

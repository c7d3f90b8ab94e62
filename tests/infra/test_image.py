"""The image, built from a clean export of the tree and run as a cluster would: `make image` shows how it goes."""

import filecmp
import json
import re
import signal
import tarfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer import __version__
from stream_peer.tools.demo.brokers import free_ports
from stream_peer.tools.demo.feed import FEED
from tests.infra.support.image import ARCHIVE, IMAGE, Container, Store, build_release, opened, say
from tests.infra.support.tools import ROOT
from tests.integration.support.client import KafkaClient
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.image, pytest.mark.slow]

MOST_BYTES = 160_000_000
NOWHERE = "127.0.0.1:1"
GATEWAY_STATE = "/var/lib/stream-peer/gateway"


@pytest.fixture(scope="module")
def image() -> Iterator[Store]:
    """A store that has the image of a release of this tree, loaded from its archive."""
    with opened() as store:
        build_release(store, ARCHIVE)
        store.load(ARCHIVE)
        yield store


def test_the_same_commit_gives_the_same_archive(image: Store, tmp_path: Path) -> None:
    build_release(image, tmp_path / "image.tar")

    assert filecmp.cmp(ARCHIVE, tmp_path / "image.tar", shallow=False)


@pytest.mark.usefixtures("image")
def test_its_archive_keeps_the_health_check_and_the_name_of_chart_and_compose_file() -> None:
    with tarfile.open(ARCHIVE) as packed:

        def read(name: str) -> Any:
            file = packed.extractfile(name)
            assert file
            return json.load(file)

        (entry,) = read("index.json")["manifests"]
        manifest = read(f"blobs/{entry['digest'].replace(':', '/')}")
        config = read(f"blobs/{manifest['config']['digest'].replace(':', '/')}")["config"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))

    assert config["Healthcheck"]["Test"] == ["CMD", "stream-peer", "health"]
    assert manifest["config"]["mediaType"] == "application/vnd.oci.image.config.v1+json"
    assert entry["annotations"]["io.containerd.image.name"] == IMAGE
    assert f"docker.io/library/{compose['services']['worker-0']['image']}" == IMAGE


def test_its_layers_are_small_and_hold_neither_tools_nor_tests_nor_secrets(image: Store) -> None:
    added = image.added_bytes()
    say(f"layers above the base: {added / 1e6:.0f} MB")
    unwanted = "-name tests -o -name pip -o -name '*.c' -o -name '*.a' -o -name .cache"
    look = f"find /opt /src /root /home -xdev \\( {unwanted} \\) -print; command -v gcc cc ld make git"
    found = image.run("-c", look, entrypoint=["/bin/sh"], user="0:0")

    assert added <= MOST_BYTES
    assert found.out == ""
    assert not re.search(r"password|token|secret|://", image.history(), re.IGNORECASE)


def test_its_labels_say_what_it_is_and_its_user_is_nobody_of_the_system(image: Store) -> None:
    config = image.inspect()["Config"]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}

    assert config["User"] == "10001:10001"
    assert (labels["title"], labels["version"], labels["licenses"]) == ("stream-peer", __version__, "Apache-2.0")
    assert re.fullmatch(r"[0-9a-f]{40}", labels["revision"])
    assert "stream-peer-base" in labels["base.name"]


def test_it_says_its_version_and_teaches_its_commands_to_any_user(image: Store) -> None:
    version, taught = image.run("--version", user="123456:0"), image.run("--help")

    assert version == (0, f"stream-peer, version {__version__}\n", "")
    assert taught.code == 0
    assert "stream-peer worker --bootstrap" in taught.out


def nowhere(patience: str, directory: Path) -> dict[str, Any]:
    """Options of a worker that has a signing key and no broker."""
    (directory / "signing-key").write_text("0123456789abcdef")
    environment = {
        "STREAM_PEER_BOOTSTRAP": NOWHERE,
        "STREAM_PEER_BROKER_PATIENCE": patience,
        "STREAM_PEER_HTTP__PORT": str(free_ports(1)[0]),
        "STREAM_PEER_SIGNING_KEY_FILE": "/run/signing-key",
    }
    return {"environment": environment, "mounts": {directory / "signing-key": "/run/signing-key"}}


def test_what_is_wrong_is_a_sentence_and_an_exit_code(image: Store, tmp_path: Path) -> None:
    misspelt = image.run("worker", environment={"STREAM_PEER_SESION": "45s"})
    alone = image.run("worker", **nowhere("1s", tmp_path))
    unhealthy = image.run("health", "--http-port", str(free_ports(1)[0]))

    assert (misspelt.code, alone.code, unhealthy.code) == (78, 69, 1)
    assert "sesion (environment STREAM_PEER_SESION): no such setting; did you mean session?" in misspelt.err
    assert NOWHERE in alone.err
    assert unhealthy.err.startswith("No worker answers at 127.0.0.1:")


def test_its_first_process_can_be_told_to_stop_before_it_serves(image: Store, tmp_path: Path) -> None:
    with image.container("worker", **nowhere("10m", tmp_path)) as waiting:
        handled = "grep -i '^SigCgt:.*[4-7c-f]...$' /proc/1/status"  # the bit of signal 15
        wait_until(lambda: waiting.shell(handled).code == 0, 30.0, "process 1 never came to handle SIGTERM")
        waiting.signal("TERM")

        assert waiting.wait(10.0) in {0, 128 + signal.SIGTERM}


@pytest.mark.real_kafka
def test_what_compose_runs_serves_on_a_real_kafka_is_confined_and_stops(
    image: Store, kafka: KafkaClient, topic_prefix: str
) -> None:
    deployment = Deployment(image, kafka.bootstrap, topic_prefix)
    with deployment.volumes():
        deployment.run("set-up")
        serves_and_stops(deployment)


def serves_and_stops(deployment: "Deployment") -> None:
    with deployment.start("worker-0") as first, deployment.start("worker-1") as second:
        workers = (first, second)
        for worker in workers:
            worker.wait_healthy()
            say(f"healthy: {worker.shell('stream-peer health').out.strip()}")
        deployment.run("feeder")
        wait_weights(first)
        for worker in workers:
            check_confinement(worker)
        check_answers(workers)
        with deployment.start("gateway") as gateway:
            gateway.wait_healthy()
            check_confinement(gateway)
            check_post(gateway)
        for worker in workers:
            worker.signal("TERM")
        codes = [worker.wait(60.0) for worker in workers]
        say(f"SIGTERM: exit {codes}")

        assert codes == [0, 0], first.logs() + second.logs()


class Deployment:
    """Services of docker-compose.yml as it says, but for the network of this machine, a prefix, and less patience."""

    def __init__(self, image: Store, bootstrap: str, prefix: str) -> None:
        self._image = image
        self._compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
        self._prefix = prefix
        self._here = {
            "STREAM_PEER_BOOTSTRAP": bootstrap,
            "STREAM_PEER_PREFIX": prefix,
            "STREAM_PEER_SHUTDOWN_DEADLINE": "9s",
        }

    @contextmanager
    def volumes(self) -> Iterator[None]:
        """Its volumes, which are gone behind the block."""
        try:
            yield
        finally:
            for name in ("signing-key", "gateway"):
                self._image.podman("volume", "rm", "--force", f"{self._prefix}{name}")

    def run(self, name: str) -> None:
        """Run a service to its end, which must be a good one."""
        service = self._compose["services"][name]
        words = ["1" if before == "--pace" else word for before, word in pairwise(["", *service["command"]])]
        ended = self._image.run(*words, **self._options(service))
        say(f"{name}: exit {ended.code}: {ended.out.strip().rsplit(chr(10), 1)[-1]}")
        assert ended.code == 0, ended

    def start(self, name: str) -> AbstractContextManager[Container]:
        """A worker, for as long as the block runs."""
        service, port = self._compose["services"][name], free_ports(1)[0]
        at = {"STREAM_PEER_HTTP__PORT": str(port), "STREAM_PEER_HTTP__ADVERTISE": f"http://127.0.0.1:{port}"}
        return self._image.container(*service["command"], **self._options(service, at))

    def _options(self, service: Any, more: Mapping[str, str] | None = None) -> dict[str, Any]:
        mounts = {ROOT / self._compose["configs"][c["source"]]["file"]: c["target"] for c in service["configs"]}
        environment = {**service["environment"], **self._here, **(more or {})}
        volumes = [f"{self._prefix}{volume}" for volume in service.get("volumes", [])]
        entrypoint = service.get("entrypoint", ())
        return {"entrypoint": entrypoint, "mounts": mounts, "environment": environment, "volumes": volumes}


def wait_weights(worker: Container) -> None:
    """Until the weights cover the demo's questions."""
    told: dict[str, Any] = {}

    def covered() -> bool:
        ended = worker.shell(f"stream-peer tail {FEED} --once")
        told.update(json.loads(ended.out) if ended.code == 0 else {})
        return float(told.get("questions", 0)) > 800

    wait_until(covered, 90.0, lambda: f"never covered: {told}\n{worker.logs()[-4000:]}", every=0.5)
    best = max(told["experts"], key=lambda expert: expert["mix"])
    say(f"weights of {told['questions']:.0f} questions, {told['status']}; most has {best['id']}: {best['mix']:.3f}")


def check_post(gateway: Container) -> None:
    """Who reads the token as the manual says may post."""
    tokens = gateway.shell(f"cat {GATEWAY_STATE}/tokens").out
    url = gateway.shell("echo $STREAM_PEER_HTTP__ADVERTISE").out.strip()
    headers = {"Authorization": f"Bearer {tokens.split()[1]}", "Content-Type": "application/json"}
    event = {"type": "question", "question_id": "posted", "feed": "posted", "at": "2026-03-01T09:00:00Z"}
    asked = urllib.request.Request(f"{url}/events", json.dumps(event).encode(), headers)  # noqa: S310 - the gateway
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
        assert (answer.status, json.load(answer)["accepted"]) == (202, 1)
    assert tokens.split()[1] not in gateway.logs()
    say("the gateway took an event")


def check_confinement(worker: Container) -> None:
    """What a process in the container may not do, and that its health checks left nothing behind."""
    user = worker.shell("id -u; id -g; grep CapEff /proc/1/status").out.split()
    written = worker.shell("touch /written || touch /opt/venv/written || touch /var/written")
    scratch = worker.shell("touch /tmp/written")
    zombies = worker.shell("grep -l '^State:.Z' /proc/[0-9]*/status")
    say(
        f"user {user[0]}; / is {written.err.strip().rsplit(': ', 1)[-1]}; /tmp is writable; zombies: {zombies.out or 0}"
    )

    assert user == ["10001", "10001", "CapEff:", "0" * 16]
    assert written.code != 0
    assert written.err.count("Read-only file system") == 3
    assert scratch.code == 0
    assert zombies.out == ""


def check_answers(workers: Sequence[Container]) -> None:
    """Either worker answers for the feed, whoever has it."""
    for worker in workers:
        url = worker.shell("echo $STREAM_PEER_HTTP__ADVERTISE").out.strip()
        with urllib.request.urlopen(f"{url}/feeds/{FEED}", timeout=30) as answer:  # noqa: S310 - the worker
            assert answer.status == 200
            assert json.load(answer)["feed"] == FEED

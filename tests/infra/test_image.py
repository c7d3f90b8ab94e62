"""The image, built from a clean export of the tree and run as a cluster would: `make image` shows how it goes."""

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer import __version__
from stream_peer.demo.feed import FEED, SETTINGS
from tests.infra.support.image import Container, Store, export, opened, say
from tests.infra.support.tools import ROOT
from tests.integration.support.client import KafkaClient
from tests.integration.support.kafka_broker import free_ports
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.image, pytest.mark.slow]

MOST_BYTES = 160_000_000
NOWHERE = "127.0.0.1:1"
CONFIG = "/etc/stream-peer/settings.yaml"
SECRET = "/etc/stream-peer/secret"
FEW = {"forecast_events": 4, "feed_log": 2, "control_events": 1, "dead_letters": 1}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that has the image of this tree."""
    with opened() as store:
        store.make_base()
        revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        tree = export(tmp_path_factory.mktemp("tree"))
        store.build(tree, VERSION=__version__, REVISION=revision.stdout.strip())
        yield store


def test_its_layers_are_small_and_hold_neither_tools_nor_tests_nor_secrets(image: Store) -> None:
    added = image.added_bytes()
    say(f"layers above the base: {added / 1e6:.0f} MB")
    unwanted = "-name tests -o -name pip -o -name '*.c' -o -name '*.a' -o -name .cache"
    found = image.shell(f"find /opt /src /root /home -xdev \\( {unwanted} \\) -print; command -v gcc cc ld make git")

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


def test_it_says_its_version_and_teaches_its_commands(image: Store) -> None:
    version, taught = image.run("--version"), image.run("--help")

    assert version == (0, f"stream-peer, version {__version__}\n", "")
    assert taught.code == 0
    assert "stream-peer worker --bootstrap" in taught.out


def test_what_is_wrong_is_a_sentence_and_an_exit_code(image: Store) -> None:
    misspelt = image.run("worker", STREAM_PEER_BOTSTRAP="kafka:9092")
    alone = image.run("worker", STREAM_PEER_BOOTSTRAP=NOWHERE, STREAM_PEER_BROKER_PATIENCE="1s")
    unhealthy = image.run("health", "--http-port", str(free_ports(1)[0]))

    assert (misspelt.code, alone.code, unhealthy.code) == (78, 69, 1)
    assert "botstrap (environment STREAM_PEER_BOTSTRAP): no such setting; did you mean bootstrap?" in misspelt.err
    assert NOWHERE in alone.err
    assert unhealthy.err.startswith("No worker answers at 127.0.0.1:")


def test_its_first_process_can_be_told_to_stop_before_it_serves(image: Store) -> None:
    with image.container("worker", STREAM_PEER_BOOTSTRAP=NOWHERE, STREAM_PEER_BROKER_PATIENCE="10m") as waiting:
        handled = "grep -i '^SigCgt:.*[4-7c-f]...$' /proc/1/status"  # the bit of signal 15
        wait_until(lambda: waiting.shell(handled).code == 0, 30.0, "process 1 never came to handle SIGTERM")
        waiting.signal("TERM")

        assert waiting.wait(10.0) in {0, 128 + signal.SIGTERM}


@pytest.mark.real_kafka
def test_on_a_real_kafka_it_serves_is_confined_and_stops(
    image: Store, kafka: KafkaClient, topic_prefix: str, tmp_path: Path
) -> None:
    deployment = Deployment(image, kafka, topic_prefix, tmp_path)
    for command in ("topics apply", "settings apply"):
        deployment.command(command)
    with deployment.worker() as worker:
        worker.wait_healthy()
        say(f"worker: {worker.shell('stream-peer health').out.strip()}")
        deployment.command("demo --feed-only --pace 2")
        deployment.wait_weights(worker)
        check_confinement(worker)
        worker.signal("TERM")
        code = worker.wait(10.0)
        say(f"SIGTERM: exit {code}")

        assert code == 0, worker.logs()


def check_confinement(worker: Container) -> None:
    """What a process in the container may not do, and that its health checks left nothing behind."""
    user = worker.shell("id -u; id -g; grep CapEff /proc/1/status").out.split()
    written = worker.shell("touch /written || touch /opt/venv/written || touch /home/written")
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


class Deployment:
    """A deployment whose commands and worker all run in containers."""

    def __init__(self, image: Store, kafka: KafkaClient, prefix: str, directory: Path) -> None:
        self._image = image
        settings, secret = directory / "settings.yaml", directory / "secret"
        content: dict[str, Any] = {
            "bootstrap": kafka.bootstrap,
            "prefix": prefix,
            "partitions": FEW,
            "shutdown_deadline": "9s",
            "secret_file": SECRET,
            "http": {"port": free_ports(1)[0]},
            "feeds": SETTINGS["feeds"],
        }
        settings.write_text(yaml.safe_dump(content))
        secret.write_text("of these tests")
        self._mounts = {settings: CONFIG, secret: SECRET}

    def command(self, command: str) -> None:
        """Run a command that must succeed."""
        ended = self._image.run(*shlex.split(command), mounts=self._mounts, STREAM_PEER_CONFIG=CONFIG)
        say(f"{command}: exit {ended.code}: {ended.out.strip().rsplit(chr(10), 1)[-1]}")
        assert ended.code == 0, ended

    def worker(self) -> Any:
        """A worker, for as long as the block runs."""
        return self._image.container("worker", mounts=self._mounts, STREAM_PEER_CONFIG=CONFIG)

    def wait_weights(self, worker: Container) -> None:
        """Until the weights cover the demo's questions."""
        told: dict[str, Any] = {}

        def covered() -> bool:
            ended = worker.shell(f"stream-peer tail {FEED} --once")
            told.update(json.loads(ended.out) if ended.code == 0 else {})
            return float(told.get("questions", 0)) > 800

        wait_until(covered, 90.0, lambda: f"never covered: {told}\n{worker.logs()[-4000:]}", every=0.5)
        best = max(told["experts"], key=lambda expert: expert["mix"])
        say(f"weights of {told['questions']:.0f} questions, {told['status']}; most has {best['id']}: {best['mix']:.3f}")

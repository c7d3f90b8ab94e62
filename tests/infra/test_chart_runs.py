"""What the chart would have a cluster run, run here: its containers as processes, on a real Kafka."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.infra.support.chart import (
    RELEASE,
    Manifest,
    containers,
    environment,
    manifests,
    mounted,
    one,
    set_up_job,
    worker,
)
from tests.integration.support.client import KafkaClient
from tests.integration.support.secured_kafka import PASSWORD, USER, secured_kafka
from tests.integration.support.service import Worker
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

SECURED = f"""
kafka:
  bootstrapServers: {{bootstrap}}
  replication: 1
  partitions: {{{{forecastEvents: 2, controlEvents: 1, feedLog: 2, deadLetters: 1}}}}
  security:
    protocol: sasl_ssl
    mechanism: SCRAM-SHA-512
    username: {USER}
    passwordSecret: {{{{name: peer}}}}
    caSecret: {{{{name: ca}}}}
    certificateSecret: {{{{name: tls}}}}
settings: {{{{broker_patience: 20s}}}}
"""
VALUES = """
kafka:
  bootstrapServers: {bootstrap}
  prefix: {prefix}
  replication: 1
  partitions: {{forecastEvents: 2, controlEvents: 1, feedLog: 2, deadLetters: 1}}
secret: {{name: draws}}
http: {{tokenSecret: {{name: http}}}}
settings: {{broker_patience: 20s}}
autoscaling: {{by: lag, maxReplicas: 2}}
feedSettings: {{defaults: {{round_every: 1d}}, feeds: {{econ: {{quorum: 5}}}}}}
"""


class Pod:
    """Containers as processes, with the files that are mounted and the variables that are set."""

    def __init__(self, every: Sequence[Manifest], files: Path, secrets: Mapping[str, bytes] | None = None) -> None:
        self._files = files
        for name, content in (secrets or {}).items():
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            (files / name).write_bytes(content)
        settings = files / "settings" / "settings.yaml"
        settings.parent.mkdir()
        settings.write_text(self._here(one("ConfigMap", every, "set-up")["data"]["settings.yaml"]), encoding="utf-8")

    def _here(self, text: str) -> str:
        return mounted(text, self._files).replace(f"{RELEASE}-stream-peer:8080", "127.0.0.1")

    def command(self, container: Manifest) -> list[str]:
        """What its entry point, that of the image, becomes here."""
        start = ["-m", "stream_peer"] if "command" not in container else container["command"][1:]
        arguments = [self._here(argument) for argument in container["args"]]
        return [sys.executable, *start, *("127.0.0.1" if a == f"{RELEASE}-stream-peer" else a for a in arguments)]

    def variables(self, container: Manifest, **others: str) -> dict[str, str]:
        """Its environment, in which the server binds the loopback address."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_PEER_")}
        own = {name: self._here(value) for name, value in environment(container).items()}
        return {**clean, **own, "STREAM_PEER_HTTP__HOST": "127.0.0.1", **others}

    def run(self, container: Manifest, **others: str) -> str:
        """Run it to its end, which has to be a good one; what it printed."""
        result = subprocess.run(
            self.command(container),
            env=self.variables(container, **others),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, f"{container['name']}: {result.stdout}{result.stderr}"
        return result.stdout


def triggers(every: Sequence[Manifest]) -> list[Manifest]:
    """What KEDA is told to look at."""
    return [trigger["metadata"] for trigger in one("ScaledObject", every)["spec"]["triggers"]]


def test_an_install_sets_up_becomes_ready_and_passes_its_own_test(
    kafka: KafkaClient, topic_prefix: str, tmp_path: Path
) -> None:
    every = manifests(VALUES.format(bootstrap=kafka.bootstrap, prefix=topic_prefix))
    pod = Pod(every, tmp_path)

    def committed() -> bool:
        return all(kafka.committed(each["consumerGroup"], each["topic"]) for each in triggers(every))

    made = [pod.run(container) for container in containers(set_up_job(every)["spec"]["template"]["spec"])]
    started = Worker(pod.command(worker(every)), pod.variables(worker(every)), tmp_path / "log")
    try:
        started.wait_ready()
        here = {"STREAM_PEER_HTTP__PORT": str(started.port), "WORKER": f"127.0.0.1:{started.port}"}
        tested = [pod.run(container, **here) for container in containers(one("Pod", every)["spec"])]
        after_upgrade = pod.run(*containers(set_up_job(every, "set-up-method")["spec"]["template"]["spec"]))
        without_token = started.http("/version")
        wait_until(committed, 60, lambda: f"KEDA would see no offsets: {triggers(every)}\n{started.said()}")
        code = started.terminate()
    finally:
        if not started.has_ended:
            started.kill()

    assert "Stored feed settings" in made[1]
    assert "is ready" in tested[0]
    assert after_upgrade.startswith("Nothing to do")
    assert without_token[0] == 401
    assert code == 0
    # The file of the worker and the settings that the Job has applied are the same.
    assert "feed_settings_differ_from_file" not in started.said()
    first = json.loads(started.said().splitlines()[0])
    assert (first["event"], first["stage"]) == ("worker_starts", "all")


@pytest.mark.usefixtures("own_kafka")  # runs where a broker can be had that is this test's own
def test_a_secured_install_logs_in_with_password_and_certificate(tmp_path: Path) -> None:
    with secured_kafka(tmp_path / "broker") as broker:
        every = manifests(SECURED.format(bootstrap=broker.bootstrap))
        pod = Pod(every, tmp_path, broker.files)

        made = [pod.run(container) for container in containers(set_up_job(every)["spec"]["template"]["spec"])]
        started = Worker(pod.command(worker(every)), pod.variables(worker(every)), tmp_path / "log")
        try:
            started.wait_ready()
            code = started.terminate()
        finally:
            if not started.has_ended:
                started.kill()

    assert "Stored feed settings" in made[1]
    assert code == 0
    assert PASSWORD not in started.said()

"""The example of the README, run against a deployment that serves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stream_peer.events import topics
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.service import Service

pytestmark = pytest.mark.real_kafka

DAY = 24


def test_the_example_mixes_forecasts_by_the_newest_weights(served: Service, repository: Path) -> None:
    feed, start = "read-weights", 60 * DAY
    for number in range(8):
        name = f"{feed}-q{number}"
        served.send([question(name, feed, start + DAY), *crowd(name, 4, start)])
    served.settle()
    served.tick(milliseconds(start + 2 * DAY))
    served.settle()

    given = {"e0": 0.9, "e2": 0.4, "a stranger": 0.01}
    arguments = [f"{expert}={probability}" for expert, probability in given.items()]
    run = subprocess.run(
        [sys.executable, str(repository / "examples" / "read_weights.py"), served.kafka.bootstrap, feed, *arguments],
        env={
            **os.environ,
            "STREAM_PEER_PREFIX": served.settings.prefix,
            "PYTHONPATH": str(repository / "client"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    newest = served.weights(feed)
    mix = {expert["id"]: expert["mix"] for expert in newest["experts"]}
    expected = (0.9 * mix["e0"] + 0.4 * mix["e2"]) / (mix["e0"] + mix["e2"])
    assert run.returncode == 0, run.stderr
    stretched = min(1.0, max(0.0, 0.5 + (1.0 + newest["stretch"]) * (expected - 0.5)))
    said = f"mixed {expected:.4f}, stretched {stretched:.4f}"
    assert run.stdout == f"{said} (status {newest['status']}, revision {newest['revision']})\n"
    assert newest["questions"] == 8
    (last,) = [one for one in served.read(topics.WEIGHTS) if one.key == feed.encode()][-1:]
    headers = dict(last.headers)
    assert headers["ce_id"].decode() == f"{feed}/{newest['revision']}"
    assert headers["ce_time"].decode() == newest["at"]
    assert headers["ce_source"].decode().endswith(f":{served.topic(topics.WEIGHTS)}")

"""The examples run as they stand."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from stream_peer.events import topics
from stream_peer.events.incoming import decode
from stream_peer.events.outputs import encode_output
from stream_peer.settings.process import load
from tests.feed_outputs import weights
from tests.integration.support.client import KafkaClient, Message, wait_until

pytestmark = pytest.mark.real_kafka


def environment(repository: Path, prefix: str) -> dict[str, str]:
    return {**os.environ, "STREAM_PEER_PREFIX": prefix, "PYTHONPATH": str(repository / "client")}


def example(repository: Path, name: str, *arguments: str, prefix: str) -> str:
    run = subprocess.run(
        [sys.executable, str(repository / "examples" / name), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(repository, prefix),
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_weights_are_read_and_applied(
    repository: Path, kafka: KafkaClient, kafka_bootstrap: str, topic_prefix: str
) -> None:
    kafka.create_topics({topic_prefix + topics.WEIGHTS: 2}, {"cleanup.policy": "compact"})
    for revision, experts in ((3, "ab"), (5, "abc")):
        found = encode_output(weights(revision, *experts))
        kafka.produce(topic_prefix + topics.WEIGHTS, [Message(b"econ", found)])

    given = ["a=0.2", "b=0.6", "stranger=0.9"]
    mixed = example(repository, "read_weights.py", kafka_bootstrap, "econ", *given, prefix=topic_prefix)

    assert mixed == "mixed 0.4000, stretched 0.4000 (status ok, revision 5)\n"


def posted(url: str, forecasts: object) -> tuple[int, dict[str, Any]]:
    try:
        with urlopen(Request(url, json.dumps(forecasts).encode()), timeout=30) as response:  # noqa: S310 - our own
            return response.status, json.load(response)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_mixed_forecasts_are_served(
    repository: Path, kafka: KafkaClient, kafka_bootstrap: str, topic_prefix: str
) -> None:
    kafka.create_topics({topic_prefix + topics.WEIGHTS: 2}, {"cleanup.policy": "compact"})
    kafka.produce(topic_prefix + topics.WEIGHTS, [Message(b"econ", encode_output(weights(5, "a", "b")))])
    command = [sys.executable, str(repository / "examples" / "serve_mix.py"), kafka_bootstrap, "0"]
    env = environment(repository, topic_prefix)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as server:
        try:
            assert server.stdout
            url = server.stdout.readline().split()[-1]
            mix = f"{url}/feeds/econ/mix"
            wait_until(lambda: posted(mix, {"a": 0.5})[0] == 200, 30.0, "nothing was ever served")

            code, mixed = posted(mix, {"a": 0.2, "b": 0.6, "stranger": 0.9})
            refused = [posted(mix, what)[0] for what in ({"a": 62}, {"stranger": 0.5}, [1], "a", {"a": None})]
            unknown = [posted(f"{url}/{path}", {"a": 0.5})[0] for path in ("feeds/none/mix", "feeds/econ")]
        finally:
            server.terminate()

    assert code == 200
    assert mixed["mix"] == pytest.approx(0.4, abs=1e-15)
    assert [mixed[name] for name in ("status", "stale", "revision")] == ["ok", False, 5]
    assert (refused, unknown) == ([422] * 5, [404] * 2)


def test_the_sample_events_are_sent_and_decode(
    repository: Path, kafka: KafkaClient, kafka_bootstrap: str, topic_prefix: str
) -> None:
    topic = topic_prefix + topics.FORECAST_EVENTS
    kafka.create_topics({topic: 2})
    file = repository / "examples" / "questions.jsonl"

    said = example(repository, "send_forecasts.py", kafka_bootstrap, str(file), prefix=topic_prefix)

    sent = kafka.read_all(topic)
    assert said == f"sent {len(sent)} events to {topic}\n"
    assert len(sent) == len(file.read_text().splitlines())
    assert all(decode(message.value) for message in sent)
    assert all((message.key or b"").decode() == json.loads(message.value or b"")["question_id"] for message in sent)


def test_the_commented_settings_are_right(repository: Path) -> None:
    loaded = load(repository / "examples" / "settings.yaml")

    assert loaded.book.of("econ").quorum == 10
    assert loaded.book.of("archive").backdate_limit is None

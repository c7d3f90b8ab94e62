"""The examples run as they stand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stream_peer.events import topics
from stream_peer.events.incoming import decode
from stream_peer.events.outputs import encode_output
from stream_peer.settings.process import load
from tests.feed_outputs import weights
from tests.integration.support.client import KafkaClient, Message

pytestmark = pytest.mark.real_kafka


def example(repository: Path, name: str, *arguments: str, prefix: str) -> str:
    run = subprocess.run(
        [sys.executable, str(repository / "examples" / name), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "STREAM_PEER_PREFIX": prefix},
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

"""The examples in Python, Java and JavaScript read the same weights from a real Kafka, compressed as ours are."""

import asyncio
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from stream_peer.events import topics
from stream_peer.events.outputs import encode_output, output_headers
from stream_peer.tools.demo.brokers import java_version
from tests.feed_outputs import part, weights
from tests.infra.support.tools import NODE
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.kafka_jars import fetch_jars

pytestmark = pytest.mark.real_kafka

Record = tuple[str, bytes | None, int]
"""Key, value and partition."""
GIVEN = ["a=0.2", "b=0.6", "stranger=0.9", "d=0.1"]
PARTITIONS = 3
LONGEST = 60


def written(bootstrap: str, topic: str, records: list[Record]) -> None:
    """Write as the service does: zstd, headers of an output."""

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type="zstd")
        await producer.start()
        try:
            for key, value, partition in records:
                headers = list(output_headers("9f3c"))
                await producer.send_and_wait(topic, value, key.encode(), partition, headers=headers)
        finally:
            await producer.stop()

    asyncio.run(write())


def command(language: str, repository: Path, directory: Path) -> list[str]:
    """How the example is started; skips the test where its runtime is not there."""
    examples = repository / "examples"
    if language == "Python":
        return [sys.executable, str(examples / "read_weights.py")]
    if language == "JavaScript":
        if shutil.which("node") is None or not (NODE / "node_modules" / ".complete").exists():
            pytest.skip("Node or its packages are missing: install nodejs and npm, run `make tools`")
        (directory / "node_modules").symlink_to(NODE / "node_modules")
        shutil.copy(examples / "javascript" / "read-weights.mjs", directory)
        return ["node", str(directory / "read-weights.mjs")]
    if java_version() is None or shutil.which("javac") is None:
        pytest.skip("a Java that compiles is missing: install openjdk-17-jdk-headless")
    class_path = f"{fetch_jars(os.environ).lib}/*"
    source = str(examples / "java" / "ReadWeights.java")
    return ["java", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR", "-cp", class_path, source]


def ended(commands: list[list[str]], environment: dict[str, str]) -> list[tuple[int, str, str]]:
    """Run commands side by side; exit code, output and errors of each."""
    env = {**os.environ, **environment}
    with ThreadPoolExecutor() as pool:
        runs = pool.map(
            lambda words: subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=env),
            commands,
        )
    return [(run.returncode, run.stdout, run.stderr) for run in runs]


@pytest.mark.parametrize("example", ["java/ReadWeights.java", "javascript/read-weights.mjs"])
def test_an_example_is_short(example: str, repository: Path) -> None:
    assert len((repository / "examples" / example).read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("language", ["Python", "Java", "JavaScript"])
def test_committed_weights_are_read_to_the_end_joined_and_applied(
    language: str, repository: Path, kafka: KafkaClient, topic_prefix: str, tmp_path: Path
) -> None:
    topic, deleted = topic_prefix + topics.WEIGHTS, encode_output(weights(4, "a", feed="gone"))
    kafka.create_topics({topic: PARTITIONS}, {"cleanup.policy": "compact"})
    whole = msgspec.structs.replace(weights(7), stretch=0.5)
    one, other = part(whole, 0, 2, "a", "b"), part(whole, 1, 2, "c", "d")
    news = encode_output(weights(9, "z", feed="news"))
    records: list[Record] = [("econ", encode_output(weights(3, "a")), 0), ("gone", deleted, 0), ("news", news, 1)]
    records += [("econ/0", one, 2), ("gone", None, 0), ("econ/1", other, 0)]
    written(kafka.bootstrap, topic, records)
    never = encode_output(weights(99, "stranger"))
    kafka.abort(topic, [Message(b"econ", never, partition) for partition in range(PARTITIONS)])

    start = command(language, repository, tmp_path)
    feeds = [[*start, kafka.bootstrap, feed, *GIVEN] for feed in ("econ", "gone")]
    strangers = [*start, kafka.bootstrap, "econ", "stranger=0.9"]
    mixed, nothing, nobody = ended(
        [*feeds, strangers], {"STREAM_PEER_PREFIX": topic_prefix, "PYTHONPATH": str(repository / "client")}
    )

    assert mixed[:2] == (0, "mixed 0.3000, stretched 0.2000 (status ok, revision 7)\n"), mixed
    assert nobody[:2] == (1, ""), nobody
    assert "none of these experts has a weight in econ" in nobody[2]
    assert nothing[:2] == (1, ""), nothing
    assert "no weights of gone" in nothing[2]
    with kafka.admin() as admin:
        assert not [group for group in map(str, admin.list_groups()) if "read-weights" in group]

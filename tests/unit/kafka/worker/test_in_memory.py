"""A worker's partitions on the port in memory: the product's stages, and a life with all that can happen in it."""

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping

from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.worker import feed_ownership, product_stages, question_ownership
from stream_peer.log.signatures import Signatures
from stream_peer.settings.process import Partitions, Settings
from tests.golden.random_lives import random_life
from tests.golden.records import bytes_of
from tests.unit.kafka.worker.memory import MemoryRuntime, MemoryTopics, MemoryWorker

SETTINGS = Settings(partitions=Partitions(forecast_events=3, feed_log=2))
PARTITIONS = {"forecast-events": 3, "feed-log": 2, "control-events": 1}
PORTION = 30


async def worker_of(topics: MemoryTopics, runtime: MemoryRuntime) -> MemoryWorker:
    made = MemoryWorker(topics, runtime)
    stages = product_stages(SETTINGS, b"secret", None, Signatures())
    await made.own(question_ownership(SETTINGS, made.context, stages.question), PARTITIONS)
    await made.own(feed_ownership(SETTINGS, made.context, stages), PARTITIONS)
    return made


async def lived() -> MemoryTopics:
    """The topics after a life. The worker is killed after each portion of it, and another one takes over."""
    topics, runtime = MemoryTopics(PARTITIONS), MemoryRuntime()
    sent = [each for each in random_life("memory", seed=2, questions=6).sent if each.topic in PARTITIONS]
    for start in range(0, len(sent), PORTION):
        worker = await worker_of(topics, runtime)
        for topic, at, key, value, headers in sent[start : start + PORTION]:
            partition = partition_of(bytes_of(key) or b"", PARTITIONS[topic])
            named = [(name, bytes_of(text) or b"") for name, text in headers]
            topics.append(TopicPartition(topic, partition), at, bytes_of(key), bytes_of(value), named)
        await worker.read_all()
        worker.die()
    worker = await worker_of(topics, runtime)
    await worker.read_all()
    await worker.leave()
    return topics


def digest(topics: MemoryTopics) -> str:
    """Of every byte on every topic, in the order in which it was written there."""
    return hashlib.sha256(repr(sorted(topics.logs.items())).encode()).hexdigest()


def newest(topics: MemoryTopics) -> Mapping[tuple[str, bytes | None], bytes | None]:
    """The newest value of each key of the topics that the feed stage writes."""
    known = {"weights", "error-rates", "peer-losses", "reference-answers", "mixed-forecasts"}
    return {(tp.topic, each.key): each.value for tp, log in topics.logs.items() if tp.topic in known for each in log}


def test_what_a_worker_writes_depends_on_neither_process_nor_hash_seed() -> None:
    command = [sys.executable, "-m", "tests.unit.kafka.worker.test_in_memory"]
    running = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE) for seed in "123"
    ]
    first, *others = (process.communicate()[0].splitlines()[-1] for process in running)  # behind its log

    assert others == [first, first]
    assert len(first) == len(hashlib.sha256().hexdigest())


async def test_what_killed_workers_published_last_follows_from_the_feed_log() -> None:
    topics = await lived()
    again = MemoryTopics(PARTITIONS)
    again.logs.update({tp: log for tp, log in topics.logs.items() if tp.topic == "feed-log"})

    reader = MemoryWorker(again, MemoryRuntime())
    stages = product_stages(SETTINGS, b"secret", None, Signatures())
    await reader.own(feed_ownership(SETTINGS, reader.context, stages), PARTITIONS)
    await reader.read_all()
    await reader.leave()

    assert len(newest(topics)) > 20
    assert newest(again) == newest(topics)


if __name__ == "__main__":
    print(digest(asyncio.run(lived())))  # noqa: T201 - for the process that compares

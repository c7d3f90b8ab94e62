"""Whether the work that was measured was done: a fast figure of a worker that skipped something is none."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer

from benchmarks.deployment import Deployment
from benchmarks.workload import EXPERTS_PER_QUESTION, FEEDS, Workload
from stream_peer.events.feed_log import Round, decode_feed_log


def check_work(bootstrap: str, deployment: Deployment, workload: Workload, *, is_whole: bool = True) -> None:
    """Every question gave its round of fifty experts, every round its reference answer, every feed its weights.

    ``is_whole``: both stages ran; otherwise there are rounds only.

    Raises
    ------
    RuntimeError
        With what is missing.
    """

    def read(logical: str) -> list[Any]:
        return read_all(bootstrap, deployment.topic(logical))

    rounds = [record for record in (decode_feed_log(r.value) for r in read("feed-log")) if isinstance(record, Round)]
    found = {
        "rounds": len(rounds),
        "full rounds": sum(len(record.experts) == EXPERTS_PER_QUESTION for record in rounds),
        "questions with a reference answer": len({record.key for record in read("reference-answers")}),
        "feeds with weights": len({record.key for record in read("weights")}),
        "dead letters": len(read("dead-letters")),
    }
    expected = {
        "rounds": workload.questions,
        "full rounds": workload.questions,
        "questions with a reference answer": workload.questions if is_whole else 0,
        "feeds with weights": FEEDS if is_whole else 0,
        "dead letters": 0,
    }
    if found != expected:
        msg = f"the worker did not do its work: {found}, not {expected}"
        raise RuntimeError(msg)


def read_all(bootstrap: str, topic: str) -> list[Any]:
    """Everything that a topic holds now, each partition in order."""
    return asyncio.run(_records(bootstrap, topic))


async def _records(bootstrap: str, topic: str) -> list[Any]:
    found: list[Any] = []
    async with AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        places = consumer.assignment()
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(place) < ends[place] for place in places]):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += records
    return found

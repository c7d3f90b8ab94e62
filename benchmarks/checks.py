"""Whether the work that was measured was done: a fast figure of a worker that skipped something is none."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from benchmarks.deployment import Deployment
from benchmarks.workload import EXPERTS_PER_QUESTION, FEEDS, Workload
from stream_peer.events.feed_log import Round, decode_feed_log


def check_work(bootstrap: str, deployment: Deployment, workload: Workload) -> None:
    """Every question gave its round of fifty experts, every round its reference answer, every feed its weights.

    Raises
    ------
    RuntimeError
        With what is missing.
    """
    rounds = [
        record
        for record in map(decode_feed_log, _values(bootstrap, deployment.topic("feed-log")))
        if isinstance(record, Round)
    ]
    answers = Counter(_keys(bootstrap, deployment.topic("reference-answers")))
    feeds = set(_keys(bootstrap, deployment.topic("weights")))
    found = {
        "rounds": len(rounds),
        "full rounds": sum(len(record.experts) == EXPERTS_PER_QUESTION for record in rounds),
        "questions with a reference answer": len(answers),
        "feeds with weights": len(feeds),
        "dead letters": len(list(_values(bootstrap, deployment.topic("dead-letters")))),
    }
    expected = {
        "rounds": workload.questions,
        "full rounds": workload.questions,
        "questions with a reference answer": workload.questions,
        "feeds with weights": FEEDS,
        "dead letters": 0,
    }
    if found != expected:
        msg = f"the worker did not do its work: {found}, not {expected}"
        raise RuntimeError(msg)


def _values(bootstrap: str, topic: str) -> Iterator[bytes]:
    return (record.value for record in _records(bootstrap, topic))


def _keys(bootstrap: str, topic: str) -> Iterator[bytes]:
    return (record.key for record in _records(bootstrap, topic))


def _records(bootstrap: str, topic: str) -> Iterator[Any]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    try:
        places = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        consumer.seek_to_beginning(*places)
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(timeout_ms=500).values():
                yield from records
    finally:
        consumer.close()

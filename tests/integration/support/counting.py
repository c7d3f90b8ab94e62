"""Counting workers as processes: start them, feed them, break them, compare what is left with the obvious way."""

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from stream_peer.events import topics
from stream_peer.kafka.client.topic_plan import wanted_topics
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.counting_stage import expected, settings_from
from tests.integration.support.service import Worker
from tests.integration.support.waiting import wait_until

OWNED = "partition_owned"


class CountingWorker(Worker):
    """One worker process with counting stages."""

    def __init__(self, options: dict[str, Any], log: Path, environment: dict[str, str]) -> None:
        env = {**os.environ, "COUNTING_SETTINGS": json.dumps(options), **environment}
        super().__init__([sys.executable, "-m", "tests.integration.support.counting_stage"], env, log)

    def is_frozen(self) -> bool:
        """Whether the process is stopped."""
        state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"

    def wait_owned(self) -> Self:
        """Until it owns something."""
        told = lambda: f"it owned nothing: {self.said()[-3000:]}"  # noqa: E731
        wait_until(lambda: OWNED in self.said() or self.has_ended, 45.0, told)
        return self


class _Feeder:
    """confluent's producer: it outlives a broker, and knows transactions."""

    def __init__(self, options: dict[str, Any], *, transactional: bool) -> None:
        from confluent_kafka import Producer

        self._transactional = transactional
        more: dict[str, Any] = {"enable.idempotence": True, "message.timeout.ms": 300_000}
        if transactional:
            more = {"transactional.id": uuid.uuid4().hex}
        self._producer = Producer({**options, **more})
        if transactional:
            self._producer.init_transactions(60)
            self._producer.begin_transaction()

    def produce(self, topic: str, key: str, value: str) -> None:
        """Hand over one event."""
        self._producer.produce(topic, key=key, value=value)

    def turn(self) -> None:
        """Begin the next transaction, and let the producer do its work."""
        self._producer.poll(0)
        if self._transactional:
            self._producer.commit_transaction()
            self._producer.begin_transaction()

    def finish(self, abandoned: threading.Event) -> None:
        """Until everything is acknowledged, or nobody wants it any more."""
        if self._transactional:
            self._producer.commit_transaction()
        while self._producer.flush(1) and not abandoned.is_set():
            pass
        self._producer.purge()


class Verdict(NamedTuple):
    """What a run left behind, against what it should have."""

    inputs: int
    missing: int
    repeated: int
    wrong: int
    wrong_keys: int
    lag: int
    ignored: int

    @property
    def exact(self) -> bool:
        """Everything is there, right, and committed."""
        return not (self.missing or self.wrong or self.wrong_keys or self.lag)


class Counting:
    """Topics of one counting deployment, its feeder, its workers and the final comparison."""

    def __init__(self, kafka: KafkaClient, prefix: str, directory: Path, **options: Any) -> None:
        self.kafka = kafka
        self.directory = directory
        self.options = {"bootstrap": kafka.bootstrap, "prefix": prefix, "stage": "question", **options}
        self.settings = settings_from(self.options)
        self.workers: dict[str, CountingWorker] = {}
        self.starts = 0
        self._enough, self._abandoned = threading.Event(), threading.Event()
        self._feeder: threading.Thread | None = None
        self._make_topics()

    def _make_topics(self) -> None:
        wanted = {topic.name: topic.partitions for topic in wanted_topics(self.settings)}
        forecasts = self.settings.topic(topics.FORECAST_EVENTS)
        changelogs = {name: n for name, n in wanted.items() if name.endswith("changelog")}
        rest = {name: n for name, n in wanted.items() if name not in changelogs and name != forecasts}
        self.kafka.create_topics({forecasts: wanted[forecasts]}, {"message.timestamp.type": "LogAppendTime"})
        self.kafka.create_topics(changelogs, {"cleanup.policy": "compact"})
        self.kafka.create_topics(rest)

    def start(
        self, name: str = "w1", *, fault: str = "", environment: dict[str, str] | None = None, **options: Any
    ) -> CountingWorker:
        """Start a worker, or start it again."""
        self.starts += 1
        environment = {**(environment or {}), **({"STREAM_PEER_FAULT": fault} if fault else {})}
        worker = CountingWorker({**self.options, **options}, self.directory / f"{name}.log", environment)
        self.workers[name] = worker
        return worker

    def restart_ended(self) -> None:
        """Whoever left is started again, as an orchestrator would."""
        for name, worker in list(self.workers.items()):
            if worker.has_ended:
                self.start(name)

    def feed(self, rate: float, count: int = sys.maxsize, *, transactional: bool = False) -> None:
        """Produce events at a steady pace, until ``count`` or ``drain``; transactions leave markers at the end."""
        self._feeder = threading.Thread(target=self._feed, args=(count, rate), kwargs={"transactional": transactional})
        self._feeder.start()

    def _feed(self, count: int, rate: float, *, transactional: bool) -> None:
        options = {"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 20, "partitioner": "murmur2_random"}
        feeder = _Feeder(options, transactional=transactional)
        choose, began = random.Random(7), time.monotonic()
        topic = self.settings.topic(topics.FORECAST_EVENTS)
        for index in range(count):
            key, value = f"q-{choose.randrange(200)}", json.dumps({"x": choose.randrange(1_000_000)})
            feeder.produce(topic, key, value)
            if index % 50 == 0:
                if self._enough.is_set():
                    break
                feeder.turn()
                time.sleep(max(0.0, began + index / rate - time.monotonic()))
        feeder.finish(self._abandoned)

    def lag(self) -> int:
        """Records of the inputs that no group offset covers yet."""
        return sum(self._lag(stage, topic) for stage, topic in self._inputs())

    def _inputs(self) -> list[tuple[Any, str]]:
        inputs: list[tuple[Any, str]] = [("question", topics.FORECAST_EVENTS)]
        return inputs if self.settings.stage == "question" else [*inputs, ("feed", topics.FEED_LOG)]

    def _lag(self, stage: Any, logical: str) -> int:
        topic = self.settings.topic(logical)
        ends = self.kafka.end_offsets(topic)
        committed = self.kafka.committed(self.settings.app_id(stage), topic)
        return sum(end - committed.get(partition, 0) for partition, end in ends.items())

    def drain(self, deadline: float = 60.0) -> None:
        """End the feeder and wait until everything is committed."""
        self._end_feeder()

        def drained() -> bool:
            self.restart_ended()
            return self.lag() == 0

        wait_until(drained, deadline, lambda: f"not drained: {self.lag()} behind; {self._said()}", every=0.3)

    def _end_feeder(self) -> None:
        self._enough.set()
        if self._feeder is not None:
            self._feeder.join(120)

    def _said(self) -> str:
        return "\n".join(f"{name}: {worker.said()[-1500:]}" for name, worker in self.workers.items())

    def stop(self) -> list[int]:
        """Stop all workers as an orchestrator does, none while Python still starts it; return their exit codes."""
        for worker in self.workers.values():
            worker.wait_owned()
        return [worker.end(signal.SIGTERM) for worker in self.workers.values() if not worker.has_ended]

    def kill(self) -> None:
        """End whatever still runs."""
        self._abandoned.set()
        self._end_feeder()
        for worker in self.workers.values():
            if not worker.has_ended:
                worker.kill()

    def verdicts(self) -> list[Verdict]:
        """Compare outputs, state and offsets of every stage with the slow obvious way."""
        first = self._verdict("question", topics.FORECAST_EVENTS, topics.FEED_LOG)
        if self.settings.stage == "question":
            return [first]
        return [first, self._verdict("feed", topics.FEED_LOG, topics.WEIGHTS)]

    def _verdict(self, stage: Any, source: str, output: str) -> Verdict:
        inputs = self.kafka.read_all(self.settings.topic(source))
        outputs = self.kafka.read_all(self.settings.topic(output))
        want = expected(((m.partition, m.offset, m.key, m.value) for m in inputs), remember_sources=stage == "feed")  # type: ignore[misc]  # read from a topic, so not None
        got: dict[Any, int] = defaultdict(int)
        wrong = 0
        for message in outputs:
            place = tuple(json.loads(message.value or b"")["src"])
            got[place] += 1
            wrong += want.get(place) != message.value
        state, ignored = self._state(self.settings.changelog(stage))
        return Verdict(
            inputs=len(inputs),
            missing=len(set(want) - set(got)),
            repeated=len(outputs) - len(got),
            wrong=wrong,
            wrong_keys=sum(state.get(key) != value for key, value in _last(inputs, want).items()),
            lag=self._lag(stage, source),
            ignored=ignored,
        )

    def _state(self, changelog: str) -> tuple[dict[Any, Any], int]:
        folds = self.kafka.states(changelog)
        state = {
            (partition, key[2:]): msgspec.msgpack.decode(value)
            for partition, fold in folds.items()
            for key, value in fold.recovered().entries.items()
        }
        return state, sum(fold.fenced_out for fold in folds.values())


def _last(inputs: list[Message], want: dict[Any, bytes]) -> dict[Any, Any]:
    """The state of each key after the whole input."""
    last: dict[Any, Any] = {}
    for message in inputs:
        value = want.get((message.partition, message.offset))
        if value is not None:
            last[message.partition, message.key] = json.loads(value)["state"]
    return last


@contextlib.contextmanager
def counting(kafka: KafkaClient, prefix: str, directory: Path, **options: Any) -> Iterator[Counting]:
    """A counting deployment whose workers are gone at the end, however the test ends."""
    deployment = Counting(kafka, prefix, directory, **options)
    try:
        yield deployment
    finally:
        deployment.kill()

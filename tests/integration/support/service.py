"""The service as a user runs it: a settings file, the commands of its manual, workers as processes of their own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import yaml
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from stream_peer.events import topics
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.log.dead_letters import REASON_HEADER
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output
from stream_peer.settings.process import Settings, load
from stream_peer.tools.demo.brokers import free_ports
from tests.integration.support.asking import ask
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.waiting import wait_until

Stage = Literal["question", "feed"]

SECRET = "of these tests"
SIGNING_KEY = b"the signing key of these tests"
APPLY = ("settings", "apply", "--patience", "2m")
"""Applies feed settings where a worker runs, however busy this machine is."""

_INPUTS: tuple[tuple[Stage, str], ...] = (
    ("feed", topics.CONTROL_EVENTS),
    ("question", topics.FORECAST_EVENTS),
    ("feed", topics.FEED_LOG),
)
_QUICK: dict[str, Any] = {
    "session": "10s",
    "rebalance_timeout": "12s",
    "shutdown_deadline": "10s",
    "broker_patience": "30s",
    "snapshot_every": {"seconds": "300ms"},
    "log": {"format": "console"},
}
_LOG_SHOWN = 6000


class Shape(NamedTuple):
    """How many partitions a deployment's topics have."""

    questions: int = 4
    feeds: int = 2

    def settings(self) -> dict[str, int]:
        """As in a settings file."""
        counts = {"forecast_events": self.questions, "feed_log": self.feeds}
        return {**counts, "control_events": 1, "dead_letters": 1}


class Worker:
    """One ``stream-peer worker``. Its log is a file that is read from this start on."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.port = free_ports(1)[0]
        self._log = log
        self._from = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            env = {**environment, "STREAM_PEER_HTTP__PORT": str(self.port)}
            self.process = subprocess.Popen(command, env=env, stdout=out, stderr=out)

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self.process.poll() is not None

    def said(self) -> str:
        """What it logged since its start."""
        with self._log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    def http(self, path: str, patience: float = 30.0) -> tuple[int, str]:
        """Status and body of its HTTP server's answer; (0, why) if there is none within so many seconds."""
        return ask(f"http://127.0.0.1:{self.port}{path}", patience)

    def wait_ready(self, deadline: float = 60.0) -> Self:
        """Until it is assigned and recovered."""

        def ready() -> bool:
            assert not self.has_ended, f"the worker ended with {self.process.returncode}:\n{self.said()[-_LOG_SHOWN:]}"
            return self.http("/healthz/ready")[0] == 200

        wait_until(ready, deadline, lambda: f"never ready: {self.http('/healthz/ready')}\n{self.said()[-_LOG_SHOWN:]}")
        return self

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still lives."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def end(self, number: signal.Signals, deadline: float = 30.0) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.send(number)
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            msg = f"the worker did not end by {number.name} within {deadline:g} s:\n{self.said()[-_LOG_SHOWN:]}"
            raise AssertionError(msg) from None

    def kill(self) -> int:
        """End it without a word."""
        self.send(signal.SIGCONT)
        return self.end(signal.SIGKILL)

    def terminate(self) -> int:
        """End it as an orchestrator does."""
        return self.end(signal.SIGTERM)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stopped by SIGSTOP while the block runs."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)


@cache
def _loaded(file: Path, content: bytes) -> Settings:
    """Of this content: whoever waits asks again and again."""
    del content
    return load(file, {}, {}).settings


class Service:
    """A deployment under a prefix of its own."""

    def __init__(
        self,
        kafka: KafkaClient,
        prefix: str,
        directory: Path,
        *,
        shape: Shape = Shape(),  # noqa: B008 - a value
        feeds: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.kafka = kafka
        self.shape = shape
        self.directory = directory
        self.workers: dict[str, Worker] = {}
        self._file = directory / "settings.yaml"
        secret = directory / "secret"
        secret.write_text(SECRET)
        signing_key = directory / "signing-key"
        signing_key.write_bytes(SIGNING_KEY)
        content = {
            "bootstrap": kafka.bootstrap,
            "prefix": prefix,
            "partitions": shape.settings(),
            "secret_file": str(secret),
            "signing_key_file": str(signing_key),
            **_QUICK,
            "defaults": {"history": True},
            "feeds": dict(feeds or {}),
            **settings,
        }
        self._file.write_text(yaml.safe_dump(content))
        self._clients = contextlib.ExitStack()
        self._watchers: dict[Stage, Any] = {}

    @property
    def settings(self) -> Settings:
        """As its workers read them."""
        return _loaded(self._file, self._file.read_bytes())

    def topic(self, logical: str) -> str:
        """Physical name of a topic."""
        return self.settings.topic(logical)

    # --- what a user does ---

    def command(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of the product to its end."""
        env = {**self.environment(), "STREAM_PEER_HTTP__PORT": str(free_ports(1)[0]), **environment}
        line = [sys.executable, "-m", "stream_peer", *arguments]
        return subprocess.run(line, env=env, capture_output=True, text=True, timeout=120, check=False)

    def run(self, *arguments: str) -> str:
        """Run a command that must succeed; its output."""
        done = self.command(*arguments)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, name: str = "w1", altered: str = "", **environment: str) -> Worker:
        """Start a worker, or start it again; ``altered``: with one of the alterations of ``altered_worker``."""
        env = {**self.environment(), **environment}
        self.workers[name] = self.worker(env, self.directory / f"{name}.log", altered)
        return self.workers[name]

    def worker(self, environment: dict[str, str], log: Path, altered: str) -> Worker:
        """The process, started."""
        program = ["tests.integration.support.altered_worker", altered] if altered else ["stream_peer"]
        return Worker([sys.executable, "-m", *program, "worker"], environment, log)

    def set_up(self, name: str = "w1", **environment: str) -> Self:
        """Make the topics, start a worker, apply the feed settings and wait until every partition has them."""
        self.run("topics", "apply")
        self.start(name, **environment)
        self.run(*APPLY)
        self.wait_configured()
        return self

    def recreate(self, *names: str) -> None:
        """Delete topics by their physical names, and make them as the manual says."""
        self.reconnect()
        self.kafka.delete(*names)
        self.run("topics", "apply")

    def reconnect(self) -> None:
        """Look on with other clients: those that there are may not get over what happened to topics or brokers."""
        self._clients.close()
        self._watchers.clear()

    def apply(self, feeds: Mapping[str, Mapping[str, Any]]) -> None:
        """Change settings of feeds in the file, and apply them."""
        self.change(feeds)
        self.run(*APPLY)

    def change(self, feeds: Mapping[str, Mapping[str, Any]]) -> None:
        """Change settings of feeds in the file."""
        content = yaml.safe_load(self._file.read_text())
        for feed, settings in feeds.items():
            content["feeds"][feed] = {**content["feeds"].get(feed, {}), **settings}
        self._file.write_text(yaml.safe_dump(content))

    def restart(self, name: str = "w1", **environment: str) -> Worker:
        """Stop a worker cleanly and start it again."""
        assert self.workers[name].terminate() == 0, self.logs()
        return self.start(name, **environment)

    def send(self, events: Iterable[Mapping[str, Any]], logical: str = topics.FORECAST_EVENTS) -> None:
        """Produce events keyed by their question (control events: by their feed), as a platform does."""
        key = "question_id" if logical == topics.FORECAST_EVENTS else "feed"
        self.produce(
            logical,
            [Message(str(event.get(key, "settings")).encode(), json.dumps(event).encode()) for event in events],
        )

    def produce(self, logical: str, messages: Iterable[Message]) -> list[tuple[int, int]]:
        """Produce whatever it is; (partition, offset) of each."""
        producer = KafkaProducer(bootstrap_servers=self.kafka.bootstrap, linger_ms=5, max_request_size=12_000_000)
        topic = self.topic(logical)
        try:
            sent = [producer.send(topic, m.value, m.key, list(m.headers), m.partition) for m in messages]
            return [(done.partition, done.offset) for done in (future.get(30) for future in sent)]
        finally:
            producer.close(timeout=10)

    def tick(self, now: Milliseconds) -> None:
        """Tell every partition that it is ``now``, as feeders of historical data do at their end."""
        self.tell_all(b"tick", json.dumps({"type": "tick", "now": to_iso(now)}).encode())

    def tell_all(self, key: bytes, value: bytes) -> None:
        """Tell every partition of forecast-events something, signed as the service's own."""
        signatures = self.signatures()
        places = range(self.shape.questions)
        outputs = [signatures.signed(Output(topics.FORECAST_EVENTS, key, value, 0, place)) for place in places]
        self.produce(
            topics.FORECAST_EVENTS, [Message(o.key, o.value, o.partition, headers=tuple(o.headers)) for o in outputs]
        )

    def signatures(self) -> Signatures:
        """Those of its workers."""
        topic = self.topic(topics.FORECAST_EVENTS)
        ids = self.kafka.ids(topic)
        return Signatures((SIGNING_KEY,), ids.cluster, ids.topics.get(topic, ""))

    # --- waiting ---

    def wait_configured(self, deadline: float = 60.0) -> None:
        """Until every partition of both logs holds the settings."""

        def configured() -> bool:
            self._look_after_workers()
            return all(
                min(self._ends(stage, logical).values()) > 0
                for stage, logical in _INPUTS
                if logical != "control-events"
            )

        wait_until(configured, deadline, lambda: f"the settings never reached every partition\n{self.logs()}")

    def wait_committed(self, records: int) -> None:
        """Until so many events were processed."""

        def committed() -> bool:
            self._look_after_workers()
            return sum(self.committed("question", topics.FORECAST_EVENTS).values()) >= records

        wait_until(committed, 60.0, lambda: f"never processed {records} events\n{self.logs()}", every=0.2)

    def lag(self) -> dict[str, int]:
        """Records of each input that no group offset covers yet."""
        return {logical: self._lag(stage, logical) for stage, logical in _INPUTS}

    def settle(self, deadline: float = 60.0, tended: Callable[[], None] | None = None) -> None:
        """Until everything that was sent is processed: read to the end, acknowledged, published.

        ``tended`` is called each time; without it a worker that ended fails the wait.
        """
        seen: list[dict[int, int]] = []

        def settled() -> bool:
            nonlocal seen
            (tended or self._look_after_workers)()
            before = seen
            lag = self.lag()
            seen = [self._ends(stage, logical) for stage, logical in _INPUTS]
            return not any(lag.values()) and seen == before

        wait_until(settled, deadline, lambda: f"never processed: {self.lag()} behind\n{self.logs()}", every=0.1)

    def _look_after_workers(self) -> None:
        ended = [name for name, worker in self.workers.items() if worker.has_ended]
        assert not ended, f"{ended} ended\n{self.logs()}"

    def _lag(self, stage: Stage, logical: str) -> int:
        watcher = self._watcher(stage)
        ends = self._ends(stage, logical)
        places = {partition: TopicPartition(self.topic(logical), partition) for partition in ends}
        return sum(end - (watcher.committed(places[partition]) or 0) for partition, end in ends.items())

    def _ends(self, stage: Stage, logical: str) -> dict[int, int]:
        watcher = self._watcher(stage)
        topic = self.topic(logical)
        wait_until(lambda: watcher.partitions_for_topic(topic), 30, f"no broker says which partitions {topic} has")
        places = [TopicPartition(topic, partition) for partition in sorted(watcher.partitions_for_topic(topic))]
        return {place.partition: end for place, end in watcher.end_offsets(places).items()}

    def _watcher(self, stage: Stage) -> Any:
        """A consumer that only asks."""
        if stage not in self._watchers:
            group = self.settings.app_id(stage)
            consumer = KafkaConsumer(bootstrap_servers=self.kafka.bootstrap, group_id=group, enable_auto_commit=False)
            self._clients.callback(consumer.close)
            self._watchers[stage] = consumer
        return self._watchers[stage]

    # --- looking ---

    def committed(self, stage: Stage, logical: str) -> dict[int, int]:
        """A stage's committed offsets by partition."""
        return self.kafka.committed(self.settings.app_id(stage), self.topic(logical))

    def covered(self, stage: Stage) -> dict[int, int]:
        """By partition, the first input offset that the state in the changelog does not cover."""
        folds = self.kafka.states(self.settings.changelog(stage))
        return {partition: fold.applied + 1 for partition, fold in sorted(folds.items())}

    def read(self, logical: str) -> list[Message]:
        """Everything on a topic."""
        return self.kafka.read_all(self.topic(logical))

    def outputs(self, logical: str, feed: str) -> list[dict[str, Any]]:
        """A feed's records of an output topic, in order."""
        return [value for _, value in self._of_feed(logical, feed)]

    def last(self, logical: str, feed: str) -> dict[str, dict[str, Any]]:
        """The last record of each key of a feed."""
        return dict(self._of_feed(logical, feed))

    def weights(self, feed: str) -> dict[str, Any]:
        """The newest weights of a feed."""
        return self.last(topics.WEIGHTS, feed)[feed]

    def _of_feed(self, logical: str, feed: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for message in self.read(logical):
            value = json.loads(message.value or b"{}")
            if value.get("feed") == feed:
                yield (message.key or b"").decode(), value

    def dead_letters(self) -> dict[tuple[str, int, int], "DeadLetter"]:
        """Dead letters by where the refused record stands."""
        letters = map(DeadLetter.of, self.read(topics.DEAD_LETTERS))
        return {(letter.topic, letter.partition, letter.offset): letter for letter in letters}

    def all_samples(self, worker: str = "w1") -> list[Any]:
        """All samples of a worker, read after this call: each has ``name``, ``labels`` and ``value``."""
        text = self.scraped(worker)
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def scraped(self, worker: str = "w1") -> str:
        """A worker's metrics, read after this call: an answer may be a second old, until the next reading differs."""
        answers = [self.workers[worker].http("/metrics")]

        def is_new() -> bool:
            answers.append(self.workers[worker].http("/metrics"))
            return answers[-1] != answers[0]

        wait_until(is_new, 30.0, self.workers[worker].said)
        status, text = answers[-1]
        assert status == 200, text
        return str(text)

    def samples(self, name: str, worker: str = "w1") -> list[Any]:
        """A worker's samples of one name: each has ``labels`` and ``value``."""
        return [sample for sample in self.all_samples(worker) if sample.name == name]

    def metric(self, name: str, worker: str = "w1", **labels: str) -> float:
        """Sum of a worker's samples of that name with these labels; 0.0 if there are none."""
        return float(sum(s.value for s in self.samples(name, worker) if labels.items() <= s.labels.items()))

    def logs(self) -> str:
        """The end of every worker's log, for whoever finds out why something never came."""
        return "\n".join(
            f"--- {name} ({worker.process.poll()})\n{worker.said()[-_LOG_SHOWN:]}"
            for name, worker in self.workers.items()
        )

    def close(self) -> None:
        """End all workers and clients."""
        for worker in self.workers.values():
            if not worker.has_ended:
                worker.kill()
        self._clients.close()

    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_PEER_")}
        return {**clean, "STREAM_PEER_CONFIG": str(self._file)}


class DeadLetter(NamedTuple):
    """A refused record and why it was refused."""

    message: Message
    reason: str
    text: str
    topic: str
    partition: int
    offset: int

    @classmethod
    def of(cls, message: Message) -> "DeadLetter":
        """Read from its headers."""
        found = {
            name: value.decode() for name, value in message.headers if name.startswith(("__streams", REASON_HEADER))
        }
        prefix = "__streams.errors."
        return cls(
            message,
            found["stream-peer-reason"],
            found[prefix + "message"],
            found[prefix + "topic"],
            int(found[prefix + "partition"]),
            int(found[prefix + "offset"]),
        )


@contextlib.contextmanager
def service(kafka: KafkaClient, directory: Path, **options: Any) -> Iterator[Service]:
    """A deployment whose workers and topics are gone at the end, however the test ends."""
    prefix = f"test-{uuid.uuid4().hex[:10]}-"
    directory.mkdir(parents=True, exist_ok=True)
    made = Service(kafka, prefix, directory, **options)
    try:
        yield made
    finally:
        made.close()
        kafka.delete_topics(prefix)

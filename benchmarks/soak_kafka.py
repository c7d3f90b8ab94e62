"""The soak on a real broker: a worker that lives through years in minutes, since a question's life is seconds.

The events come as they happen and every span of the settings is as much shorter as a question's life, so that it is
the live path that runs: deadlines by the clock, ticks, snapshots by time, and the changelog that a broker compacts.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from benchmarks.deployment import Deployment
from benchmarks.lives import FEEDS, Lives
from benchmarks.measuring import Groups, wait_for
from benchmarks.soak_bounds import MEMORY
from benchmarks.soak_log import Held, held
from stream_peer.events.partitioning import partition_of
from stream_peer.log.changelog import ChangelogReader
from stream_peer.tools.demo.brokers import free_ports
from tests.integration.support.asking import ask

PARTITIONS = 4
SAMPLES = 50
HISTORY, LEDGER, RETRACT = 2, 8, 3
"""``history_for``, ``ledger_for`` and ``retract_for``, each so many of the longest lives."""
LATE = (1, 2, 5, 11)
LIMIT_TIMES_OPEN = 9
DEADLINE, WORK_DEADLINE = 120.0, 600.0
CHANGELOGS = ("question", "feed")
GROWTH, NOISE = 1.08, 8_000_000
STUB_MEMORY = MEMORY.stubs


class LiveSample(NamedTuple):
    """What was found at one moment: questions told, memory of the worker, bytes of both changelogs on disk."""

    number: int
    rss: int
    disk: int


class LiveResult(NamedTuple):
    """What came of it. ``recovery_seconds``: from the start of the second worker until it was ready again."""

    samples: list[LiveSample]
    recovery_seconds: float
    held: Held
    compacted: int


class LiveSoak:
    """One deployment on a broker whose data lie in ``data``, and the questions that it lives through."""

    def __init__(self, deployment: Deployment, lives: Lives, questions: int, data: Path | None) -> None:
        self.deployment = deployment
        self.lives = lives._replace(late=LATE)
        self.questions = questions
        self._data = data
        (self._port,) = free_ports(1)
        self.samples: list[LiveSample] = []

    def settings(self) -> dict[str, Any]:
        """Feed settings whose spans fit the lives."""
        longest = self.lives.longest / 1000
        return {
            "round_every": longest / 2,
            "grace": longest / 10,
            "history_for": HISTORY * longest,
            "idle_after": 1.0,
            "ledger_for": LEDGER * longest,
            "retract_for": RETRACT * longest,
            "ledger_max": max(1, LIMIT_TIMES_OPEN * self.lives.most_open // FEEDS),
        }

    def prepare(self) -> None:
        """Topics, and feed settings in force on every partition."""
        counts = {"forecast_events": PARTITIONS, "feed_log": PARTITIONS}
        self.deployment.prepare(partitions=counts, http={"port": self._port}, defaults=self.settings(), instance="soak")
        with Groups(self.deployment.bootstrap) as groups, self.deployment.worker() as process:
            self.deployment.command("settings", "apply")
            topic = self.deployment.topic("forecast-events")
            wait_for(lambda: min(groups.ends(topic).values()) > 0, DEADLINE, "the settings never came", process)

    def run(self) -> LiveResult:
        """Feed as time goes, kill the worker in the middle, and wait until all is done; then have it compacted."""
        lives = self.lives._replace(first=time.time_ns() // 1_000_000 + 1000)
        feeder = Feeder(self.deployment, lives, self.questions)
        try:
            self._start()
            feeder.start()
            recovery = self._live(feeder, self.questions * lives.spacing / 1000 / SAMPLES)
            with Groups(self.deployment.bootstrap) as groups:
                wait_for(
                    lambda: self._is_done(groups),
                    WORK_DEADLINE,
                    lambda: f"the worker never finished: {self._behind(groups)}\n{self._said()}",
                    self._worker,
                )
            self._worker.terminate()
            if self._worker.wait(60):
                msg = f"the worker ended with {self._worker.returncode}, not 0:\n{self._said()}"
                raise RuntimeError(msg)
        finally:
            feeder.stop()
            self._worker.kill()
            self._worker.wait()
        return LiveResult(self.samples, recovery, self.held(), self._compact())

    def _live(self, feeder: "Feeder", seconds: float) -> float:
        """Sample until all is told, kill the worker in the middle; seconds until another one was ready."""
        recovery = -1.0
        while feeder.is_alive():
            feeder.join(seconds)
            if recovery < 0 and feeder.told >= self.questions // 2:
                self._worker.kill()
                self._worker.wait()
                recovery = self._start()
            if self._worker.poll() is not None:
                msg = f"the worker ended with {self._worker.returncode}:\n{self._said()}"
                raise RuntimeError(msg)
            self._sample(feeder.told, self._worker.pid)
        feeder.check()
        return recovery

    def _start(self) -> float:
        """Start a worker; seconds until it was ready."""
        since = time.monotonic()
        self._worker = self.deployment.start()
        wait_for(self._ready, DEADLINE, lambda: f"the worker never became ready:\n{self._said()}", self._worker)
        return time.monotonic() - since

    def _said(self) -> str:
        return self.deployment.log.read_text(errors="replace")[-4000:]

    def held(self) -> Held:
        """What the changelogs hold."""
        return held(*(self._state(stage) for stage in CHANGELOGS))

    def _state(self, stage: str) -> Iterator[tuple[bytes, bytes]]:
        folds: Mapping[int, ChangelogReader] = defaultdict(ChangelogReader)
        for record in _all_records(self.deployment.bootstrap, self._changelog(stage)):
            folds[record.partition].add(record.offset, record.key, record.value, record.headers)
        for fold in folds.values():
            yield from fold.recovered().entries.items()

    def _changelog(self, stage: str) -> str:
        return f"{self.deployment.group(stage)}-{stage}-state-changelog"

    def _ready(self) -> bool:
        return ask(f"http://127.0.0.1:{self._port}/healthz/ready")[0] == 200

    def _is_done(self, groups: Groups) -> bool:
        return not any(self._behind(groups).values())

    def _behind(self, groups: Groups) -> dict[str, dict[int, tuple[int, int]]]:
        """Committed offset and end of each partition that is not read to its end, by stage."""
        reads = {"question": "forecast-events", "feed": "feed-log"}
        return {s: groups.behind(self.deployment.group(s), self.deployment.topic(t)) for s, t in reads.items()}

    def _sample(self, told: int, pid: int) -> None:
        sample = LiveSample(told, _rss_of(pid), self.disk())
        self.samples.append(sample)
        print(
            f"{told:>9,} questions  memory {sample.rss / 1e6:6.1f} MB  changelogs {sample.disk / 1e6:7.1f} MB on disk",
            flush=True,
        )

    def disk(self) -> int:
        """Bytes of both changelogs in the broker's files; 0 if the broker is not ours."""
        if self._data is None:
            return 0
        names = [self._changelog(stage) for stage in CHANGELOGS]
        files = (file for name in names for file in self._data.glob(f"{name}-*/*.log"))
        return sum(file.stat().st_size for file in files)

    def _compact(self) -> int:
        """Bytes of the changelogs when everything but the last segment has been compacted."""
        if self._data is None:
            return 0
        self._hasten()
        self._close_segments()
        sizes = [self.disk()]
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and sizes[-10:] != [sizes[-1]] * 10:
            time.sleep(1.0)
            sizes.append(self.disk())
        return sizes[-1]

    def _close_segments(self) -> None:
        """Append to every partition, when the worker has gone, so that the segments before are closed."""
        producer: Any = KafkaProducer(bootstrap_servers=self.deployment.bootstrap)
        for _ in range(3):
            time.sleep(2.0)
            for stage in CHANGELOGS:
                for partition in range(PARTITIONS):
                    key = b"%d/claim/end" % partition
                    producer.send(self._changelog(stage), b"", key, partition=partition)
            producer.flush()
        producer.close(timeout=30)

    def _hasten(self) -> None:
        """Let the broker compact at once what it would keep for a day."""
        soon = {
            "min.compaction.lag.ms": "0",
            "segment.ms": "1000",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "0",
            "cleanup.policy": "compact",
        }
        admin: Any = KafkaAdminClient(bootstrap_servers=self.deployment.bootstrap)
        names = [self._changelog(stage) for stage in CHANGELOGS]
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs=soon) for name in names])
        admin.close()


class Feeder(threading.Thread):
    """Sends every message when its time has come. ``told``: questions opened so far."""

    def __init__(self, deployment: Deployment, lives: Lives, questions: int) -> None:
        super().__init__(daemon=True)
        self.told = 0
        self._stopped = threading.Event()
        self._deployment = deployment
        self._lives = lives
        self._questions = questions
        self._failed: BaseException | None = None

    def run(self) -> None:
        """Send all."""
        try:
            self._send()
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            self._failed = error

    def stop(self) -> None:
        """Send no more."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def check(self) -> None:
        """Say if it failed."""
        if self._failed is not None:
            msg = "the events could not be sent"
            raise RuntimeError(msg) from self._failed

    def _send(self) -> None:
        topic = self._deployment.topic("forecast-events")
        producer: Any = KafkaProducer(bootstrap_servers=self._deployment.bootstrap, linger_ms=20, batch_size=200_000)
        for number, messages in self._lives.steps(0, self._questions):
            ahead = self._lives.opens(number) / 1000 - time.time()
            if self._stopped.wait(ahead if ahead > 0.05 else 0):
                break
            for message in messages:
                partition = partition_of(message.key, PARTITIONS)
                producer.send(topic, message.value, message.key, partition=partition)
            self.told = number + 1
        producer.close(timeout=30)


def _all_records(bootstrap: str, topic: str) -> Iterator[Any]:
    """Everything that a topic holds now, each partition in order."""
    consumer: Any = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="earliest")
    places = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic) or ()]
    consumer.assign(places)
    ends = consumer.end_offsets(places)
    while any(consumer.position(place) < ends[place] for place in places):
        for records in consumer.poll(timeout_ms=500).values():
            yield from records
    consumer.close()


def _rss_of(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def live_faults(result: LiveResult, lives: Lives) -> list[str]:
    """What was more than the settings allow, or still grew.

    Stubs are let go of by the hour, so a run of minutes still has all of them; memory may grow by theirs.
    """
    most, told = lives.most_open, result.samples[-1].number
    allowed = Held(
        live=most * (HISTORY + 3),
        stubs=told,
        entries=most * min(LEDGER + 10, LIMIT_TIMES_OPEN),
        names=most * LIMIT_TIMES_OPEN,
    )
    found = [
        f"{count:,} {name}, {getattr(allowed, name):,} allowed"
        for name, count in result.held._asdict().items()
        if count > getattr(allowed, name)
    ]
    level = [s for s in result.samples if s.number > most * (LEDGER + LIMIT_TIMES_OPEN)]
    third = len(level) // 3
    if not third:
        return [*found, "too few questions to see whether memory grows"]
    before, after = (sum(s.rss for s in part) / third for part in (level[:third], level[-third:]))
    if after > before * GROWTH + NOISE + STUB_MEMORY * (told - level[0].number):
        found.append(f"memory grew from {before / 1e6:.1f} to {after / 1e6:.1f} MB")
    return found

"""What `pipeline.py` measures: our worker and its peers, each run once over topics of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.checks import check_work
from benchmarks.deployment import PARTITIONS, ROOT, Deployment
from benchmarks.feeding import feed
from benchmarks.measuring import Cost, Groups, Meter, wait_for
from benchmarks.peers import environments
from benchmarks.workload import Workload
from stream_peer.tools.demo.brokers import end_process

START_DEADLINE = 60.0
WORK_DEADLINE = 300.0
COMMIT_SECONDS = 2  # of peers: as often as our worker writes state
STOCK_FAUST_QUESTIONS = 100  # it is slow, and gets a small part of the events
AIOKAFKA_QUESTIONS = 2_500  # it is fast, and gets no fewer
PEERS = ROOT / "benchmarks" / "peers"


class Result(NamedTuple):
    """What a run cost.

    Attributes
    ----------
    later_half : int
        Events per CPU-second of the later half; 0 where outputs do not tell when that began.
    """

    events_per_cpu_second: int
    later_half: int
    events_per_second: int
    events: int
    cpu_seconds: float
    wall_seconds: float
    rss_peak_mb: int


class Bench(NamedTuple):
    """Where everything is measured."""

    bootstrap: str
    directory: Path
    questions: int
    profile: Path | None = None

    def deployment(self, name: str) -> Deployment:
        """A fresh deployment with its topics."""
        identity = f"{name}-{uuid.uuid4().hex[:6]}-"
        directory = self.directory / identity
        directory.mkdir()
        made = Deployment(self.bootstrap, identity, directory)
        made.prepare()
        return made


def ours(bench: Bench) -> Result:
    """The worker, an event a forecast."""
    return _worker(bench, "ours", Workload(bench.questions))


def ours_forecasts(bench: Bench) -> Result:
    """The worker, messages of fifty forecasts."""
    return _worker(bench, "ours-forecasts", Workload(bench.questions, as_messages=True))


def question_stage(bench: Bench) -> Result:
    """A worker of the question stage alone, an event a forecast."""
    return _worker(bench, "question-stage", Workload(bench.questions), stage="question")


def _worker(bench: Bench, name: str, workload: Workload, stage: str = "all") -> Result:
    deployment = bench.deployment(name)
    _apply_settings(deployment)
    feed(bench.bootstrap, deployment.topic("forecast-events"), PARTITIONS, workload)
    inputs = {"question": "forecast-events", "feed": "feed-log"}
    reads = [(deployment.group(s), topic) for s, topic in inputs.items() if stage in ("all", s)]
    with (
        Groups(bench.bootstrap) as groups,
        deployment.worker("--stage", stage) as process,
        Meter(process.pid) as meter,
    ):

        def started() -> bool:
            return any(groups.is_stable(group) for group, _ in reads)

        def done() -> bool:
            return all(groups.has_read_all(group, deployment.topic(topic)) for group, topic in reads)

        def unfinished() -> str:
            left = {topic: groups.behind(group, deployment.topic(topic)) for group, topic in reads}
            return f"the worker never finished; committed and end by partition: {left}"

        wait_for(started, START_DEADLINE, "the worker never joined its groups", process)
        start = time.monotonic()
        with _profiled(process.pid, bench.profile, name):
            wait_for(done, WORK_DEADLINE, unfinished, process)
        cost = meter.between(start, time.monotonic())
    check_work(bench.bootstrap, deployment, workload, is_whole=stage == "all")
    return _result(workload.forecasts, cost)


def _apply_settings(deployment: Deployment) -> None:
    """Have a worker broadcast the feed settings before the first event: they count from their place on."""
    with Groups(deployment.bootstrap) as groups, deployment.worker() as process:
        deployment.command("settings", "apply")
        topic = deployment.topic("forecast-events")
        wait_for(
            lambda: min(groups.ends(topic).values()) > 0,
            START_DEADLINE,
            "the feed settings never reached the partitions",
            process,
        )


@contextlib.contextmanager
def _profiled(pid: int, profile: Path | None, name: str) -> Iterator[None]:
    """Let py-spy watch, if asked; its figures are then those of a profiled worker."""
    if profile is None:
        yield
        return
    file = profile.with_name(f"{profile.stem}-{name}.txt")
    command = [
        str(Path(sys.executable).with_name("py-spy")),
        "record",
        "--pid",
        str(pid),
        "--format",
        "raw",
        "--output",
        str(file),
        "--rate",
        "200",
    ]
    with subprocess.Popen([*command, "--nonblocking", "--threads"], stdout=subprocess.DEVNULL) as watcher:
        try:
            yield
        finally:
            watcher.send_signal(signal.SIGINT)


def stock_faust(bench: Bench) -> Result:
    """Stock Faust: decode, one table write, one output. It is slow, so it gets a small part of the events."""
    peer = _Peer(bench, "stock-faust", min(STOCK_FAUST_QUESTIONS, bench.questions // 12))
    environment = {
        "STOCK_FAUST_ID": peer.name,
        "STOCK_FAUST_BOOTSTRAP": bench.bootstrap,
        "STOCK_FAUST_IN": peer.input,
        "STOCK_FAUST_OUT": peer.output,
        "STOCK_FAUST_DATA": peer.directory,
        "STOCK_FAUST_PARTITIONS": str(PARTITIONS),
    }
    script = [sys.executable, str(PEERS / "stock_faust.py"), "worker", "--without-web", "-l", "error"]
    return peer.run(script, environment, changelog=f"{peer.name}-counts-changelog")


def kafka_streams(bench: Bench) -> Result:
    """Kafka Streams: RocksDB with its cache, and a changelog."""
    peer = _Peer(bench, "kafka-streams", bench.questions)
    where = (bench.bootstrap, peer.name, peer.input, peer.output, peer.directory)
    return peer.run(environments.java_job(*where, str(1000 * COMMIT_SECONDS)))


def quix(bench: Bench) -> Result:
    """Quix Streams: RocksDB and a changelog."""
    peer = _Peer(bench, "quix", bench.questions)
    where = (bench.bootstrap, peer.name, peer.input, peer.output, peer.directory)
    return peer.run([str(environments.python()), str(PEERS / "quix.py"), *where, str(COMMIT_SECONDS)])


def bytewax(bench: Bench) -> Result:
    """Bytewax: state in memory without a changelog, no group."""
    peer = _Peer(bench, "bytewax", bench.questions)
    script = [str(environments.python()), str(PEERS / "bytewax_flow.py"), bench.bootstrap, peer.input, peer.output]
    return peer.run(script, has_group=False)


def aiokafka(bench: Bench) -> Result:
    """Raw aiokafka over the events of ``ours``: fetched, parsed, thrown away."""
    peer = _Peer(bench, "aiokafka", max(AIOKAFKA_QUESTIONS, bench.questions))
    script = [sys.executable, str(PEERS / "raw_aiokafka.py"), bench.bootstrap, peer.input, peer.name]
    return peer.run(script, has_outputs=False)


class _Peer:
    """A process that reads a topic of its own to the end, as a group of its name, and may write outputs."""

    def __init__(self, bench: Bench, name: str, questions: int) -> None:
        self.name = f"{name}-{uuid.uuid4().hex[:6]}"
        self.input, self.output = f"{self.name}-in", f"{self.name}-out"
        self.directory = str(bench.directory / self.name)
        self._bench = bench
        self._workload = Workload(questions)

    def run(
        self,
        command: Sequence[str],
        environment: dict[str, str] | None = None,
        *,
        changelog: str | None = None,
        has_group: bool = True,
        has_outputs: bool = True,
    ) -> Result:
        """Measure from its group's first assignment until every event has its output and is committed.

        A process without a group is measured from its first output on.
        """
        with Groups(self._bench.bootstrap) as groups:
            topics = [self.input, self.output, *([changelog] if changelog else [])]
            groups.create(topics, PARTITIONS)
            feed(self._bench.bootstrap, self.input, PARTITIONS, self._workload)
            events = sum(groups.ends(self.input).values())
            seen: list[tuple[float, int]] = []

            def outputs() -> int:
                count = sum(groups.ends(self.output).values())
                seen.append((time.monotonic(), count))
                return count

            def started() -> bool:
                return groups.is_stable(self.name) if has_group else outputs() > 0

            def done() -> bool:
                is_told = not has_outputs or outputs() >= events
                return is_told and (not has_group or groups.has_read_all(self.name, self.input))

            with _running(command, environment or {}) as process, Meter(process.pid) as meter:
                wait_for(started, START_DEADLINE, f"{self.name} never started", process)
                start, before = time.monotonic(), (0 if has_group else seen[-1][1])
                wait_for(done, WORK_DEADLINE, lambda: f"{self.name} never finished: {seen[-1:]}", process)
                end = time.monotonic()
                half = next(((at, count) for at, count in seen if 2 * count >= events), None)
                later = 0 if half is None else round((events - half[1]) / meter.between(half[0], end).cpu_seconds)
                return _result(events - before, meter.between(start, end), later)


@contextlib.contextmanager
def _running(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        end_process(process, 20.0)


def _result(events: int, cost: Cost, later_half: int = 0) -> Result:
    return Result(
        round(events / cost.cpu_seconds),
        later_half,
        round(events / cost.wall_seconds),
        events,
        round(cost.cpu_seconds, 2),
        round(cost.wall_seconds, 2),
        round(cost.rss_peak_mb),
    )


RUNS: dict[str, Callable[[Bench], Result]] = {
    "ours": ours,
    "ours_forecasts": ours_forecasts,
    "question_stage": question_stage,
    "kafka_streams": kafka_streams,
    "quix": quix,
    "bytewax": bytewax,
    "stock_faust": stock_faust,
    "aiokafka": aiokafka,
}

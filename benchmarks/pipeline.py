"""Forecasts per CPU-second, end to end, on real Kafka; beside it stock Faust and raw aiokafka in the same run.

``python benchmarks/pipeline.py [--short] [--json] [--bootstrap HOST:PORT] [--only NAME,...] [--profile FILE]``.
benchmarks/README.md says what is measured and how to read it.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.checks import check_work
from benchmarks.deployment import PARTITIONS, ROOT, Deployment
from benchmarks.feeding import feed
from benchmarks.measuring import Cost, Groups, Meter, wait_for
from benchmarks.workload import QUESTIONS, Workload
from tests.integration.support.kafka_broker import KafkaBroker, prepare
from tests.integration.support.kafka_jars import fetch_jars

START_DEADLINE = 60.0
WORK_DEADLINE = 180.0
SHORT = 8  # a short run has an eighth of the events
STOCK_FAUST_EVENTS = 16_000

Result = dict[str, float]


class Bench(NamedTuple):
    """Where everything is measured."""

    bootstrap: str
    directory: Path
    questions: int
    profile: Path | None

    def deployment(self, name: str) -> Deployment:
        """A fresh deployment with its topics."""
        directory = self.directory / name
        directory.mkdir()
        made = Deployment(self.bootstrap, f"{name}-{uuid.uuid4().hex[:6]}-", directory)
        made.prepare()
        return made


def ours(bench: Bench) -> Result:
    """The worker, an event a forecast."""
    return _worker(bench, "ours", Workload(bench.questions))


def ours_forecasts(bench: Bench) -> Result:
    """The worker, messages of fifty forecasts."""
    return _worker(bench, "ours-forecasts", Workload(bench.questions, as_messages=True))


def _worker(bench: Bench, name: str, workload: Workload) -> Result:
    deployment = bench.deployment(name)
    _apply_settings(deployment)
    feed(bench.bootstrap, deployment.topic("forecast-events"), PARTITIONS, workload)
    with Groups(bench.bootstrap) as groups, deployment.worker() as process, Meter(process.pid) as meter:
        reads = ((deployment.group("question"), "forecast-events"), (deployment.group("feed"), "feed-log"))

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
    check_work(bench.bootstrap, deployment, workload)
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
    events = STOCK_FAUST_EVENTS // (SHORT // 2 if bench.questions < QUESTIONS else 1)
    workload = Workload(max(1, events // Workload(1).forecasts))
    identity = f"stock-faust-{uuid.uuid4().hex[:6]}"
    topics = {"STOCK_FAUST_IN": f"{identity}-in", "STOCK_FAUST_OUT": f"{identity}-out"}
    with Groups(bench.bootstrap) as groups:
        groups.create([*topics.values(), f"{identity}-counts-changelog"], PARTITIONS)
        feed(bench.bootstrap, topics["STOCK_FAUST_IN"], PARTITIONS, workload)
        environment = {
            "STOCK_FAUST_ID": identity,
            "STOCK_FAUST_BOOTSTRAP": bench.bootstrap,
            "STOCK_FAUST_DATA": str(bench.directory / identity),
            "STOCK_FAUST_PARTITIONS": str(PARTITIONS),
            **topics,
        }
        script = [str(ROOT / "benchmarks" / "peers" / "stock_faust.py"), "worker", "--without-web", "-l", "error"]
        everything = sum(groups.ends(topics["STOCK_FAUST_IN"]).values())
        cost = _peer(
            [*script],
            environment,
            lambda: groups.is_stable(identity),
            lambda: sum(groups.ends(topics["STOCK_FAUST_OUT"]).values()) >= everything,
        )
    return _result(everything, cost)


def aiokafka(bench: Bench) -> Result:
    """Raw aiokafka over the events of ``ours``: fetched, parsed, thrown away."""
    topic = f"raw-{uuid.uuid4().hex[:6]}"
    with Groups(bench.bootstrap) as groups:
        groups.create([topic], PARTITIONS)
        feed(bench.bootstrap, topic, PARTITIONS, Workload(bench.questions))
        script = [str(ROOT / "benchmarks" / "peers" / "raw_aiokafka.py"), bench.bootstrap, topic, topic]
        cost = _peer(script, {}, lambda: groups.is_stable(topic), lambda: groups.has_read_all(topic, topic))
        everything = sum(groups.ends(topic).values())
    return _result(everything, cost)


def _peer(
    script: list[str], environment: dict[str, str], started: Callable[[], bool], done: Callable[[], bool]
) -> Cost:
    """What a script costs from its group's first assignment until it is done."""
    process = subprocess.Popen([sys.executable, *script], env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    try:
        with Meter(process.pid) as meter:
            wait_for(started, START_DEADLINE, f"{script[0]} never started", process)
            start = time.monotonic()
            wait_for(done, WORK_DEADLINE, f"{script[0]} never finished", process)
            return meter.between(start, time.monotonic())
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _result(events: int, cost: Cost) -> Result:
    return {
        "events_per_cpu_second": round(events / cost.cpu_seconds),
        "events_per_second": round(events / cost.wall_seconds),
        "events": events,
        "cpu_seconds": round(cost.cpu_seconds, 2),
        "wall_seconds": round(cost.wall_seconds, 2),
        "rss_peak_mb": round(cost.rss_peak_mb),
    }


MEASURED: dict[str, Callable[[Bench], Result]] = {
    "ours": ours,
    "ours_forecasts": ours_forecasts,
    "stock_faust": stock_faust,
    "aiokafka": aiokafka,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="an eighth of the events, for CI")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.add_argument("--bootstrap", help="a broker that is there; otherwise one is started")
    parser.add_argument("--only", default=",".join(MEASURED), help="which to measure, separated by commas")
    parser.add_argument("--profile", type=Path, help="let py-spy watch our worker and write here (slows it down)")
    parser.add_argument("--keep", action="store_true", help="keep the directory with the worker's log")
    return parser.parse_args()


@contextlib.contextmanager
def _broker(given: str | None, directory: Path) -> Iterator[str]:
    if given:
        yield given
        return
    jars = fetch_jars(os.environ)
    prepare(jars)
    with KafkaBroker(jars, directory / "broker") as broker:
        yield broker.bootstrap


@contextlib.contextmanager
def _directory(*, keep: bool) -> Iterator[Path]:
    if keep:
        yield Path(tempfile.mkdtemp(prefix="stream-peer-bench-"))
    else:
        with tempfile.TemporaryDirectory(prefix="stream-peer-bench-") as name:
            yield Path(name)


def main() -> None:
    """Measure what is asked for, one after the other, and print a table."""
    options = _options()
    results: dict[str, Any] = {}
    with _directory(keep=options.keep) as directory, _broker(options.bootstrap, directory) as bootstrap:
        questions = QUESTIONS // SHORT if options.short else QUESTIONS
        bench = Bench(bootstrap, directory, questions, options.profile)
        print(f"{platform.platform()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}", flush=True)
        if options.keep:
            print(f"files: {directory}", flush=True)
        for name in options.only.split(","):
            results[name] = MEASURED[name](bench)
            told = ", ".join(f"{key} {value:,}" for key, value in results[name].items())
            print(f"{name}: {told}", flush=True)
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()

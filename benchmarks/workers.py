"""Two workers against one, on real Kafka: ``python -m benchmarks.workers [--short] [--write FILE]``.

The events of ``ours`` in ``benchmarks.pipeline``, on topics of eight partitions: one worker has all of both topics, of
two workers each has four. Told are CPU and wall time of the workers, and the cores that the broker took meanwhile. The
events are sent when the groups have all their members; then the clock starts. On a machine of two cores two workers and
the broker share these: there CPU is to be compared, not wall time.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.checks import check_work
from benchmarks.deployment import FEED_SETTINGS, Deployment
from benchmarks.feeding import feed
from benchmarks.measuring import Cost, Groups, Meter, wait_for
from benchmarks.pages import write
from benchmarks.pipeline import SHORT, machine
from benchmarks.runs import START_DEADLINE, WORK_DEADLINE
from benchmarks.workload import QUESTIONS, Workload
from tests.integration.support.kafka_broker import KafkaBroker, prepare
from tests.integration.support.kafka_jars import fetch_jars

PARTITIONS = 8
NUMBERS = (1, 2)
READS = {"question": "forecast-events", "feed": "feed-log"}


class Run(NamedTuple):
    """How many forecasts, and what they cost each worker and the broker."""

    forecasts: int
    workers: Sequence[Cost]
    broker: Cost

    @property
    def cpu_seconds(self) -> float:
        """Of all workers."""
        return sum(cost.cpu_seconds for cost in self.workers)


def measure(broker: KafkaBroker, directory: Path, questions: int, number: int) -> Run:
    """So many workers of one deployment."""
    deployment = Deployment(broker.bootstrap, f"workers-{number}-{time.time_ns()}-", directory / str(number))
    deployment.directory.mkdir()
    counts = {"forecast_events": PARTITIONS, "feed_log": PARTITIONS}
    deployment.prepare(partitions=counts, defaults=FEED_SETTINGS)
    workload = Workload(questions)
    source, topic, group = deployment.topic("forecast-events"), deployment.topic, deployment.group
    with Groups(broker.bootstrap) as groups:
        with deployment.worker() as process:
            deployment.command("settings", "apply")
            settled = "the feed settings never reached the partitions"
            wait_for(lambda: min(groups.ends(source).values()) > 0, START_DEADLINE, settled, process)
        with ExitStack() as stack:
            processes = [stack.enter_context(deployment.worker()) for _ in range(number)]
            meters = [stack.enter_context(Meter(process.pid)) for process in processes]
            of_broker = stack.enter_context(Meter(broker.pid))

            def joined() -> bool:
                return all(groups.is_stable(group(stage), number) for stage in READS)

            def done() -> bool:
                return all(groups.has_read_all(group(stage), topic(name)) for stage, name in READS.items())

            moments = []

            def begin() -> None:
                wait_for(joined, START_DEADLINE, "not every worker joined", processes[0])
                moments.append(time.monotonic())

            feed(broker.bootstrap, source, PARTITIONS, workload, begin)
            wait_for(done, WORK_DEADLINE, "the workers never finished", processes[0])
            costs = [meter.between(moments[0], time.monotonic()) for meter in (*meters, of_broker)]
    check_work(broker.bootstrap, deployment, workload)
    return Run(workload.forecasts, costs[:-1], costs[-1])


def table(runs: Sequence[Run]) -> Iterator[str]:
    """A line for each number of workers."""
    yield "| workers | forecasts per CPU-second | forecasts a second | CPU s of each | wall s | cores of the broker |"
    yield "| ---: | ---: | ---: | --- | ---: | ---: |"
    for run in runs:
        wall = run.broker.wall_seconds
        cells = (
            f"{len(run.workers)}",
            f"{run.forecasts / run.cpu_seconds:,.0f}",
            f"{run.forecasts / wall:,.0f}",
            ", ".join(f"{cost.cpu_seconds:.1f}" for cost in run.workers),
            f"{wall:.1f}",
            f"{run.broker.cpu_seconds / wall:.2f}",
        )
        yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="an eighth of the events")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page as well")
    options = parser.parse_args()
    began = machine(1)
    jars = fetch_jars(os.environ)
    prepare(jars)
    questions = QUESTIONS // SHORT if options.short else QUESTIONS
    with tempfile.TemporaryDirectory(prefix="stream-peer-workers-") as name:
        directory = Path(name)
        with KafkaBroker(jars, directory / "broker") as broker:
            runs = [measure(broker, directory, questions, number) for number in NUMBERS]
    lines = [f"**Measured** on {began}:", "", *table(runs)]
    print("\n".join(lines))
    if options.write:
        write(options.write, lines, "workers")
    return 0


if __name__ == "__main__":
    sys.exit(main())

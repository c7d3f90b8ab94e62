"""Forecasts per CPU-second, end to end, on real Kafka, beside peers in the same run.

``python -m benchmarks.pipeline [--short] [--rounds N] [--only NAME ... | --peers] [--floors] [--write FILE] [--json]``.
benchmarks/README.md says what is measured and how to read it.
"""

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.pages import in_markdown, write
from benchmarks.runs import RUNS, Bench, Result
from benchmarks.workload import QUESTIONS
from tests.integration.support.kafka_broker import KafkaBroker, prepare
from tests.integration.support.kafka_jars import fetch_jars

SHORT = 8  # a short run has an eighth of the events
USUAL = ("ours", "ours_forecasts", "stock_faust", "aiokafka")
BOUND = "aiokafka"
FLOORS: Mapping[str, float] = {"ours": 0.075, "ours_forecasts": 0.11}
"""Of a short run: the least ratio to raw aiokafka, three quarters of what was measured."""

Rounds = Mapping[str, Sequence[Result]]
"""What was measured, by name, one for each round."""


def ratio(results: Rounds, name: str, other: str) -> float:
    """How many times the events per CPU-second of another one: of the medians."""
    return _median(results[name]) / _median(results[other])


def below_floors(results: Rounds, floors: Mapping[str, float] = FLOORS) -> list[str]:
    """What is slower than it may be, beside raw aiokafka."""
    found = {name: ratio(results, name, BOUND) for name in floors}
    return [
        f"{name} has {found[name]:.3f} of {BOUND}'s events per CPU-second, less than {least}"
        for name, least in floors.items()
        if found[name] < least
    ]


def table(results: Rounds) -> list[str]:
    """Of each name: figures of all rounds, and how many times its median ours are."""
    ours = [name for name in ("ours", "question_stage") if name in results]
    head = ["name", "events per CPU-second: least, median, most", "later half", "CPU-seconds, events", "peak MB"]
    head += [f"`{name}` is … times" for name in ours]
    rows = []
    for name, runs in results.items():
        figures = sorted(run.events_per_cpu_second for run in runs)
        later = median(run.later_half for run in runs)
        cells = (
            f"`{name}`",
            f"{figures[0]:,}, {median(figures):,.0f}, {figures[-1]:,}",
            f"{later:,.0f}" if later else "",
            f"{median(run.cpu_seconds for run in runs):.1f} for {runs[0].events:,}",
            f"{max(run.rss_peak_mb for run in runs)}",
            *(f"{ratio(results, one, name):.2f}" for one in ours),
        )
        rows.append(cells)
    return in_markdown(head, rows, len(head))


def _median(runs: Sequence[Result]) -> float:
    return median(run.events_per_cpu_second for run in runs)


def measured(bench: Bench, names: Sequence[str], rounds: int) -> Rounds:
    """Run all, one after the other, and again; the next round begins with the next name."""
    results: dict[str, list[Result]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in [*names[first:], *names[:first]]:
            result = RUNS[name](bench)
            results[name].append(result)
            told = ", ".join(f"{key} {value:,}" for key, value in result._asdict().items())
            print(f"{name}: {told}", flush=True)
    return results


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="an eighth of the events, for CI")
    parser.add_argument("--rounds", type=int, default=1, help="how often all are run, in turn; 1 if left out")
    parser.add_argument("--peers", action="store_true", help="measure all peers")
    parser.add_argument("--only", nargs="+", choices=RUNS, default=USUAL, metavar="NAME", help="which to measure")
    parser.add_argument("--floors", action="store_true", help="fail if ours are slow, beside raw aiokafka")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page as well")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.add_argument("--bootstrap", help="a broker that is there; otherwise one is started")
    parser.add_argument("--profile", type=Path, help="let py-spy watch our worker and write here (slows it down)")
    parser.add_argument("--keep", action="store_true", help="keep the directory with the worker's log")
    return parser.parse_args()


@contextlib.contextmanager
def broker(given: str | None, directory: Path) -> Iterator[str]:
    """The one that is given, or one that is started."""
    if given:
        yield given
        return
    jars = fetch_jars(os.environ)
    prepare(jars)
    with KafkaBroker(jars, directory / "broker") as started:
        yield started.bootstrap


@contextlib.contextmanager
def _directory(*, keep: bool) -> Iterator[Path]:
    if keep:
        yield Path(tempfile.mkdtemp(prefix="stream-peer-bench-"))
    else:
        with tempfile.TemporaryDirectory(prefix="stream-peer-bench-") as name:
            yield Path(name)


def machine(rounds: int) -> str:
    """When and where it is measured."""
    at, times = datetime.now(UTC).strftime("%-d %B %Y"), "one round" if rounds == 1 else f"{rounds} rounds"
    cores, load, python = len(os.sched_getaffinity(0)), os.getloadavg()[0], platform.python_version()
    return f"{at}, {times}; {platform.system()}, {cores} cores, load {load:.1f} before it began, Python {python}"


def main() -> int:
    """Measure what is asked for, and print a table."""
    options = _options()
    names = tuple(RUNS) if options.peers else tuple(options.only)
    began = machine(options.rounds)
    with _directory(keep=options.keep) as directory, broker(options.bootstrap, directory) as bootstrap:
        if options.keep:
            print(f"files: {directory}", flush=True)
        questions = QUESTIONS // SHORT if options.short else QUESTIONS
        results = measured(Bench(bootstrap, directory, questions, options.profile), names, options.rounds)
    lines = [f"**Measured** on {began}:", "", *table(results)]
    print("\n".join(lines), flush=True)
    if options.write:
        write(options.write, lines)
    if options.json:
        print(json.dumps({name: [run._asdict() for run in runs] for name, runs in results.items()}))
    slow = below_floors(results) if options.floors else []
    print("\n".join(slow))
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())

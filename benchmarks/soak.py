"""Years of a deployment in half an hour: what was once opened and closed may not stay in memory or state for ever.

``python -m benchmarks.soak`` folds a million questions, at most a thousand of them open at once, through both stages
of a partition, with state written and compacted as the worker's is. In the middle the process is killed and another
goes on from the state alone. Memory and state are sampled; the run fails if they exceed what the open set and the
limits of the settings allow, or still grow when they should be level.

A run of a hundredth is made with and without the kill, and must say the same byte for byte. ``--kafka`` has a worker on
a real broker do it, in minutes for years: see ``soak_kafka``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.deployment import Deployment
from benchmarks.lives import FEEDS, Lives
from benchmarks.soak_bounds import LIMIT_TIMES_OPEN, Bounds, Sample, bounds_of, faults
from benchmarks.soak_kafka import LiveSoak, live_faults
from benchmarks.soak_log import Held
from stream_peer.settings.feed.document import load_document
from tests.integration.support.kafka_broker import COMPACT_SOON, KafkaBroker, prepare
from tests.integration.support.kafka_jars import fetch_jars

ROOT = Path(__file__).parents[1]
QUESTIONS, OPEN = 1_000_000, 1_000
LIVE_QUESTIONS, LIVE_LONGEST = 40_000, 8_000
SHORT = 100
SAMPLES = 50
EVERY = 20_000
"""Records between two snapshots, as the worker has it; fewer in small runs."""
RECORDS_AN_OPEN = 20


class Plan(NamedTuple):
    """One run: who lives, how many, where it is interrupted (None: nowhere)."""

    lives: Lives
    questions: int
    restart_at: float | None
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        """The feed settings: the built-in ones, but for a limit that fits the size."""
        return {"defaults": {"ledger_max": max(1, LIMIT_TIMES_OPEN * self.lives.most_open // FEEDS)}}

    @property
    def every(self) -> int:
        """Records between two snapshots."""
        return min(EVERY, RECORDS_AN_OPEN * self.lives.most_open)

    @property
    def bounds(self) -> Bounds:
        """What it may hold."""
        return bounds_of(self.lives, load_document(self.document).default, FEEDS)

    def parts(self) -> Iterator[tuple[int, bool]]:
        """Up to which question each process goes, and whether it is killed there."""
        if self.restart_at is not None:
            yield int(self.questions * self.restart_at), True
        yield self.questions, False


class Found(NamedTuple):
    """What a run said: its samples as they were printed, and memory at the start of the first process."""

    lines: list[dict[str, Any]]
    base: int

    @property
    def samples(self) -> list[Sample]:
        """For people and for the judge; nothing of a process that has done nothing yet."""
        return [_sample(line) for line in self.lines if line["events"]]


def _sample(line: dict[str, Any]) -> Sample:
    held = Held(*(line[name] for name in Held._fields))
    numbers = (line["number"], line["seconds"], line["rss"], line["state"])
    return Sample(*numbers, held, line["events"], line["blocks"])


def run(plan: Plan, *, aloud: bool) -> Found:
    """Run it to its end, in a process for each part."""
    lines: list[dict[str, Any]] = []
    for end, killed in plan.parts():
        asked = [str(plan.directory), list(plan.lives), plan.document, plan.questions, end, plan.every, SAMPLES, killed]
        command = [sys.executable, "-m", "benchmarks.soak_run"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None  # noqa: S101 - what Popen promises
            assert process.stdout is not None  # noqa: S101 - as above
            process.stdin.write(json.dumps(asked))
            process.stdin.close()
            for text in process.stdout:
                lines.append(json.loads(text))
                if aloud:
                    _tell(lines[-1], plan.lives)
        if process.returncode:
            msg = f"a process of the run ended with {process.returncode}"
            raise RuntimeError(msg)
    return Found(lines, lines[0]["rss"])


def _tell(line: dict[str, Any], lives: Lives) -> None:
    if not line["events"] and line["number"]:
        print(f"killed; another process takes the state up, in {line['recovery_seconds']:.2f} s", flush=True)
        return
    sample = _sample(line)
    years = sample.number * lives.spacing / 31_536_000_000
    print(
        f"{sample.number:>9,} questions {years:5.1f} years  memory {sample.rss / 1e6:6.1f} MB"
        f"  state {sample.state / 1e6:7.2f} MB  live {sample.held.live:,} stubs {sample.held.stubs:,}"
        f" entries {sample.held.entries:,} names {sample.held.names:,}"
        f"  {sample.events / sample.seconds:,.0f} events/s",
        flush=True,
    )


def differences(straight: Found, restarted: Found) -> list[str]:
    """Where a run that was interrupted said something else, from the first whole window after it on."""
    again = next(n for n, line in enumerate(restarted.lines) if n and not line["events"])
    expected = {_place(line): line["digest"] for line in straight.lines}
    compared = restarted.lines[again + 2 :]
    found = [
        f"outputs up to question {_place(line)[0]:,}" for line in compared if line["digest"] != expected[_place(line)]
    ]
    if straight.lines[-1]["final"] != restarted.lines[-1]["final"]:
        found.append("the state at the end")
    if len(compared) < 2:
        found.append("too few questions after the restart")
    return found


def _place(line: dict[str, Any]) -> tuple[int, bool]:
    return line["number"], "final" in line


def table(found: Sequence[Sample], bounds: Bounds, base: int) -> Iterator[str]:
    """The most of everything, beside what was allowed."""
    for name in Held._fields:
        yield f"  {name:8} {max(getattr(s.held, name) for s in found):>12,} of {getattr(bounds.held, name):>12,}"
    memory = max(s.rss for s in found) - base
    yield f"  memory   {memory / 1e6:>12,.1f} of {bounds.memory / 1e6:>12,.1f} MB above the start"
    yield f"  state    {max(s.state for s in found) / 1e6:>12,.1f} of {bounds.state / 1e6:>12,.1f} MB"


def _small(options: argparse.Namespace) -> tuple[Lives, int]:
    questions = max(min(options.questions, QUESTIONS // SHORT), options.questions // SHORT)
    share = questions / options.questions
    return Lives(max(10, int(options.open * share)), options.experts, options.resolved), questions


def soak(options: argparse.Namespace, directory: Path) -> int:
    """Both runs; the exit code."""
    wrong: list[str] = []
    lives, questions = _small(options)
    straight, restarted = directory / "straight", directory / "restarted"
    for made in (straight, restarted):
        made.mkdir()
    small = Plan(lives, questions, options.restart_at, restarted)
    is_all = questions == options.questions
    for line in small.bounds.lines(lives) if is_all and not options.quiet else ():
        print(line)
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(run, small._replace(restart_at=None, directory=straight), aloud=False)
        found, without = run(small, aloud=is_all and not options.quiet), waiting.result()
    wrong += [f"not as without a restart: {difference}" for difference in differences(without, found)]
    print(f"{questions:,} questions with and without a restart: {'different' if wrong else 'the same byte for byte'}")
    plan = small
    if not is_all:
        directory = directory / "whole"
        directory.mkdir()
        plan = Plan(
            Lives(options.open, options.experts, options.resolved), options.questions, options.restart_at, directory
        )
        for line in plan.bounds.lines(plan.lives):
            print(line, flush=True)
        found = run(plan, aloud=not options.quiet)
    if options.samples:
        options.samples.write_text(json.dumps({"open": plan.lives.most_open, "lines": found.lines}), encoding="utf-8")
    wrong += faults(found.samples, plan.bounds, found.base)
    print("\n".join(table(found.samples, plan.bounds, found.base)))
    print(f"FAIL: {'; '.join(wrong)}" if wrong else "PASS")
    return 1 if wrong else 0


def soak_live(options: argparse.Namespace, directory: Path) -> int:
    """A worker on a real broker; the exit code."""
    jars = fetch_jars(os.environ)
    prepare(jars)
    lives = Lives(options.open, options.experts, options.resolved, longest=LIVE_LONGEST)
    with KafkaBroker(jars, directory / "broker", config=COMPACT_SOON) as broker:
        deployment = Deployment(broker.bootstrap, "soak-", directory)
        live = LiveSoak(deployment, lives, options.questions, broker.directory / "data")
        live.prepare()
        result = live.run()
    before = result.samples[-1].disk
    print(f"killed in the middle; ready again after {result.recovery_seconds:.1f} s")
    print(f"held at the end: {', '.join(f'{name} {count:,}' for name, count in result.held._asdict().items())}")
    print(f"changelogs: {before / 1e6:.1f} MB on disk, {result.compacted / 1e6:.1f} MB when compacted")
    wrong = live_faults(result, lives)
    print(f"FAIL: {'; '.join(wrong)}" if wrong else "PASS")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, help="1,000,000 by default; 40,000 with --kafka")
    parser.add_argument("--open", type=int, default=OPEN, help="questions open at once, at most")
    parser.add_argument("--experts", type=int, default=6, help="of a question")
    parser.add_argument("--resolved", type=float, default=0.10, help="share of questions with an outcome")
    parser.add_argument("--restart-at", type=float, default=0.5, help="where the process is killed, as a share")
    parser.add_argument("--short", action="store_true", help="a hundredth of the questions, and of those open")
    parser.add_argument("--kafka", action="store_true", help="a worker on a real broker, five minutes")
    parser.add_argument("--quiet", action="store_true", help="no line for every sample")
    parser.add_argument("--samples", type=Path, help="write all samples here, for the chart")
    options = parser.parse_args()
    if options.questions is None:
        options.questions = LIVE_QUESTIONS if options.kafka else QUESTIONS
    if options.short:
        options.questions, options.open = options.questions // SHORT, max(10, options.open // SHORT)
    return options


def main() -> None:
    """Soak, and say whether all was bounded."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="stream-peer-soak-") as name:
        sys.exit((soak_live if options.kafka else soak)(options, Path(name)))


if __name__ == "__main__":
    main()

"""``python -m tests.simulation SEEDS``: run that many deployments; those that fail are made smaller, and told.

``--seed N`` runs this one, and prints what happened in it.
"""

import argparse
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import click

from tests.simulation.mutants import MUTANTS
from tests.simulation.plan import Plan, plan_of
from tests.simulation.simulate import Result, carry_out, shrunk, simulate

_SHOWN = 60  # lines at the end of a timeline


def main() -> int:
    """Run seeds; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=1000, help="how many deployments to simulate")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run this seed only, and print its timeline")
    parser.add_argument("--mutant", choices=MUTANTS, help="break the mechanism, and stop at the first seed that fails")
    parser.add_argument("--digest", action="store_true", help="print a digest of all that each seed wrote, and when")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), help="how many at once")
    options = parser.parse_args()
    if options.seed is not None:
        return _replay(plan_of(options.seed), options.mutant)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    began, failed, done = time.monotonic(), [], []
    results = _results(range(options.first, options.first + options.seeds), options.mutant, options.processes)
    bar = click.progressbar(results, length=options.seeds, label="deployments", file=sys.stderr, update_min_steps=10)
    with bar as shown:
        for result in shown:
            done.append(result._replace(timeline=()))
            if options.digest:
                click.echo(result.digest)
            if result.problems:
                failed.append(result.seed)
                click.echo(f"\nseed {result.seed}: {'; '.join(result.problems[:3])}")
                if options.mutant:
                    break
    _sum_up(done, failed, time.monotonic() - began)
    if failed and not options.mutant:
        _replay(shrunk(plan_of(failed[0])), None)
    return 1 if failed else 0


def _results(seeds: range, mutant: str | None, processes: int) -> Iterator[Result]:
    if processes == 1:
        yield from (simulate(seed, mutant) for seed in seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        running = deque(pool.submit(simulate, seed, mutant) for seed in seeds[: 2 * processes])
        for seed in seeds[2 * processes :]:
            yield running.popleft().result()
            running.append(pool.submit(simulate, seed, mutant))
        yield from (each.result() for each in running)


def _sum_up(done: list[Result], failed: list[int], took: float) -> None:
    events, computed = sum(result.events for result in done), sum(result.seconds for result in done)
    click.echo(
        f"{len(done)} seeds, {len(failed)} failed: {failed}; {events} events, {events / max(computed, 1e-9):.0f} a "
        f"core-second, in {took:.0f} s"
    )
    ended = Counter(error for result in done for error in result.errors)
    for error, count in ended.most_common(10):
        click.echo(f"{count:7} workers ended with {error}")


def _replay(plan: Plan, mutant: str | None) -> int:
    result = carry_out(plan, mutant)
    click.echo(f"seed {plan.seed}: {len(plan.inputs)} events, {len(plan.faults)} faults")
    for line in result.timeline[-_SHOWN:]:
        click.echo(line)
    for problem in result.problems or ["nothing is wrong"]:
        click.echo(problem)
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())

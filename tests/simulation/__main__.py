"""``python -m tests.simulation SEEDS [--first N]``: run that many seeds; print those that fail, and how they went."""

import argparse
import sys
import time

import click

from tests.simulation.mutants import MUTANTS
from tests.simulation.simulate import simulate


def main() -> int:
    """Run seeds; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", type=int, help="how many deployments to simulate")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--timeline", action="store_true", help="print what happened in every seed that fails")
    parser.add_argument("--mutant", choices=MUTANTS, help="break the mechanism, and stop at the first seed that fails")
    parser.add_argument("--digest", action="store_true", help="print a digest of all that each seed wrote, and when")
    options = parser.parse_args()
    began, failed, events = time.process_time(), [], 0
    for seed in range(options.first, options.first + options.seeds):
        result = simulate(seed, options.mutant)
        events += result.events
        if options.digest:
            click.echo(result.digest)
        if result.problems:
            failed.append(seed)
            click.echo(f"seed {seed}: {'; '.join(result.problems[:3])}")
            if options.timeline:
                click.echo("\n".join(result.timeline))
            if options.mutant:
                break
    seconds = time.process_time() - began
    click.echo(
        f"{options.seeds} seeds, {len(failed)} failed: {failed}; {events / max(seconds, 1e-9):.0f} events a core-second"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

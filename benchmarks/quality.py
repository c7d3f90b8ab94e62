"""How good is the mix? ``python benchmarks/quality.py DATA_DIR [--seeds N] [--sets NAME …] [--json] [--write FILE]``.

Prequential: each question of each file in the directory is forecast by the product's engine with weights from before,
with 0, 2, 10, 30 and 100 % of the outcomes revealed right after the question closes, several draws of the middle ones,
and set against the plain mean and its rivals. Then once more with the built-in settings and the feeds, rounds and
delays of the files. Then what else is promised: intervals, warnings, clones. The exit code is 0 if the figures hold
for the sets that were run, 1 if not.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.pages import write
from benchmarks.quality_checks import Attack, Coverage, Doubt, clone_attack, interval_coverage
from benchmarks.quality_page import (
    COVERED,
    METHODS,
    Ratios,
    Worlds,
    by_set,
    of_attack,
    of_doubts,
    of_intervals,
    of_worlds,
    reached,
    summary,
)
from benchmarks.quality_rivals import best_expert, dawid_skene, gradient_boa, squared_losses
from benchmarks.quality_sets import Run, data_sets, name_of, run_as_it_is, run_as_one
from benchmarks.quality_worlds import KINDS, ratio_of
from benchmarks.quality_worlds import LEVELS as LEVELS_OF_WORLDS
from benchmarks.quality_worlds import SEEDS as WORLDS
from stream_peer.serve.terminal import progress_bar

LEVELS = (0.0, 0.02, 0.1, 0.3, 1.0)
SEEDS = 8
AS_IT_IS = -1.0
"""In place of a share: the file's own feeds, rounds and delays."""


class Task(NamedTuple):
    """One replay."""

    path: Path
    level: float
    seed: int = 0


class Found(NamedTuple):
    """Of one replay: ratios by method, and where the feed stood at its end."""

    task: Task
    ratios: dict[str, float]
    questions: int
    estimated: float
    measured: float | None
    rates: str
    trust: str
    so_far: bool
    skene: str


class Result(NamedTuple):
    """All that was measured."""

    seeds: int
    questions: Mapping[str, int]
    by_level: Mapping[float, Ratios]
    as_it_is: Ratios
    doubts: Mapping[str, Doubt]
    worlds: Worlds
    coverage: Coverage
    attack: Attack
    skene: str


def tasks_of(paths: Sequence[Path], seeds: int) -> list[Task]:
    """Middle levels by several seeds; nothing is drawn at 0 and 100 %."""
    levels = [(level, seed) for level in LEVELS for seed in range(seeds if 0.0 < level < 1.0 else 1)]
    return [Task(path, *level) for path in paths for level in (*levels, (AS_IT_IS, 0))]


def perform(task: Task) -> Found:
    """Replay, and have the rivals forecast the same questions; those that no outcome moves, only once."""
    as_it_is = task.level == AS_IT_IS
    run = run_as_it_is(task.path) if as_it_is else run_as_one(task.path, task.level, task.seed)
    ratios, skene = {method: run.ratio(method) for method in METHODS if method in run.losses}, ""
    rivals = {}
    if not as_it_is:
        rivals["boa"] = gradient_boa(run.questions, task.level, task.seed)
    if task.level == 0.0:
        rivals["best_expert"] = best_expert(run.questions)
        rivals["dawid_skene"], skene = dawid_skene(run.questions)
    for name, forecasts in rivals.items():
        ratios[name] = squared_losses(forecasts, run.questions) / run.losses["mean"]
    return _found(task, run, ratios, skene)


def _found(task: Task, run: Run, ratios: dict[str, float], skene: str) -> Found:
    weights = run.feeds[0].weights
    if weights is None:
        msg = f"{task.path}: nothing was published"
        raise ValueError(msg)
    rate = weights.error_rate
    estimated = (rate.zero + rate.one) / 2.0
    so_far = any(reason.startswith("so far ") for reason in weights.status_reasons)
    said = rate.status, weights.status, so_far
    return Found(task, ratios, len(run.questions), estimated, rate.measured, *said, skene)


def measured(paths: Sequence[Path], seeds: int, processes: int) -> Result:
    """Everything, with a bar on stderr for a person who waits."""
    tasks, found = tasks_of(paths, seeds), dict[Task, Found]()
    with progress_bar("replays") as told, _results(tasks, processes) as results:
        for done, one in enumerate(results, 1):
            found[one.task] = one
            if told is not None:
                told(done, len(tasks))
    names = {name_of(path): path for path in paths}
    by_level = {
        level: {
            name: found[Task(path, 0.0)].ratios
            | _mean([one.ratios for task, one in found.items() if (task.path, task.level) == (path, level)])
            for name, path in names.items()
        }
        for level in LEVELS
    }
    ends = {name: [found[Task(path, level)] for level in (0.0, 0.1, 1.0)] for name, path in names.items()}
    doubts = {
        name: Doubt(nothing.estimated, everything.measured or 0.0, tenth.rates, tenth.trust, tenth.so_far)
        for name, (nothing, tenth, everything) in ends.items()
    }
    return Result(
        seeds,
        {name: nothing.questions for name, (nothing, *_) in ends.items()},
        by_level,
        {name: found[Task(path, AS_IT_IS)].ratios for name, path in names.items()},
        doubts,
        simulated(WORLDS, processes),
        interval_coverage(),
        clone_attack(),
        next(iter(ends.values()))[0].skene,
    )


def simulated(seeds: int, processes: int) -> Worlds:
    """The ratios of simulated worlds."""
    tasks = [(kind, seed, level) for kind in KINDS for level in LEVELS_OF_WORLDS for seed in range(seeds)]
    with ProcessPoolExecutor(processes) as pool:
        ratios = pool.map(ratio_of, *zip(*tasks, strict=True))
    found: dict[tuple[str, float], list[float]] = {}
    for (kind, _, level), ratio in zip(tasks, ratios, strict=True):
        found.setdefault((kind, level), []).append(ratio)
    return found


@contextmanager
def _results(tasks: Sequence[Task], processes: int) -> Iterator[Iterator[Found]]:
    """What comes of the tasks, in whatever order they end."""
    if processes == 1:
        yield map(perform, tasks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield (future.result() for future in as_completed([pool.submit(perform, task) for task in tasks]))


def _mean(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Ratios, averaged over seeds."""
    return {method: float(np.mean([one[method] for one in several])) for method in several[0]}


def page(result: Result) -> tuple[list[str], bool]:
    """The tables, and whether every figure holds."""
    figures, held = reached(result.by_level)
    doubts, warned = of_doubts(result.doubts)
    worlds, simulated_well = of_worlds(result.worlds)
    total = sum(result.questions.values())
    lines = [
        f"{len(result.questions)} sets, {total:,} questions; 2, 10 and 30 % each by {result.seeds} draws, whose ratios",
        f"are averaged by set before the geometric mean. Dawid–Skene: {_SKENE[result.skene]}.",
        "",
        *figures,
        "",
        "Geometric mean (worst set):",
        "",
        *summary(result.by_level),
        "",
        "The stretched mix of each set, by share of outcomes; *files* has the feeds, rounds and delays of the files:",
        "",
        *by_set(result.by_level, result.as_it_is),
        "",
        "## Simulated worlds",
        "",
        f"Geometric mean over {WORLDS} worlds of each kind, by share of outcomes revealed.",
        "",
        *worlds,
        "",
        "## Error rates",
        "",
        *of_intervals(result.coverage),
        "",
        *doubts,
        "",
        "## Six clones",
        "",
        *of_attack(result.attack),
    ]
    covered = result.coverage.share >= COVERED
    return lines, held and warned and simulated_well and covered and result.attack.holds


_SKENE = {"crowd-kit": "crowd-kit's", "own": "an own small form of it, since crowd-kit is not installed"}


def _plain(worlds: Worlds) -> dict[str, dict[str, list[float]]]:
    """By kind and level."""
    found: dict[str, dict[str, list[float]]] = {}
    for (kind, level), ratios in worlds.items():
        found.setdefault(kind, {})[f"{level:g}"] = list(ratios)
    return found


def main() -> int:
    """Print the tables, or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="of the files")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"draws of each middle level; {SEEDS} if left out")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only those whose names begin so")
    parser.add_argument("--processes", type=int, default=1, help="replays at once; 1 if left out")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page as well")
    options = parser.parse_args()
    wanted = tuple(options.sets or ("",))
    paths = [path for path in data_sets(options.directory) if name_of(path).startswith(wanted)]
    if not paths:
        parser.error(f"no such data sets in {options.directory}")
    result = measured(paths, options.seeds, options.processes)
    lines, holds = page(result)
    print(
        json.dumps({**result._asdict(), "worlds": _plain(result.worlds), "holds": holds})
        if options.json
        else "\n".join(lines)
    )
    if not options.json:
        print(f"\nthe figures {'hold' if holds else 'do not hold'}")
    if options.write:
        write(options.write, lines)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())

"""The quality benchmark's results as text: tables that are valid Markdown and readable in a terminal."""

import math
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.pages import in_markdown
from benchmarks.quality_checks import Attack, Coverage, Doubt
from benchmarks.quality_worlds import HIGHEST_INDEPENDENT, HIGHEST_NOISE, INDEPENDENT, KINDS, LEVELS, NOISE

Ratios = Mapping[str, Mapping[str, float]]
"""Of each data set, by method: Brier score divided by that of the plain mean."""

Worlds = Mapping[tuple[str, float], Sequence[float]]
"""Of each kind of simulated worlds and share of outcomes: the ratio of each world."""

METHODS = {
    "stretched": "mix, stretched",
    "mix": "mix",
    "median": "median",
    "logit_mean": "logit mean",
    "best_expert": "best expert",
    "dawid_skene": "Dawid–Skene",
    "boa": "gradient BOA",
}
FIXED = ("median", "logit_mean", "best_expert", "dawid_skene")
LEARNING = ("stretched", "mix", "boa")
HIGHEST = {0.0: 0.930, 0.02: 0.885, 0.1: 0.835, 0.3: 0.800, 1.0: 0.772}
"""Of the geometric mean of the stretched mix's ratios, by share of outcomes revealed."""
WORST = 1.02
CHOSEN_ON = frozenset(
    ("crowd_bluebirds", "crowd_zencrowd_us", "ml_digits_weak", "replication_survey", "solar_flares_metoffice")
)
"""The sets, every second one by name, on which version 2 of the method was chosen. The others confirm it."""
COVERED = 0.90
WARNED = 0.80
_NOTICEABLE = 0.005
_SO_FAR = {True: ", with a doubt so far", False: ""}


def geometric_mean(values: Iterable[float]) -> float:
    """Of positive numbers."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs))


def of_method(ratios: Ratios, method: str) -> list[float]:
    """The ratios of a method, by data set."""
    return [by_method[method] for by_method in ratios.values()]


def table(ratios: Ratios, columns: Mapping[str, str]) -> list[str]:
    """Rows: data sets, geometric mean, sets better and worse by more than half a percent, the worst.

    ``columns`` has the heading of each ratio.
    """
    rows = [[name, *(f"{found[column]:.3f}" for column in columns)] for name, found in ratios.items()]
    values = [of_method(ratios, column) for column in columns]
    rows.append(["**geometric mean**", *(f"**{geometric_mean(column):.3f}**" for column in values)])
    rows.append(["better / worse", *(_better_worse(column) for column in values)])
    rows.append(["worst", *(f"{max(column):.3f}" for column in values)])
    return in_markdown(["", *columns.values()], rows)


def by_set(by_level: Mapping[float, Ratios], as_it_is: Ratios) -> list[str]:
    """The stretched mix of each data set at each level, beside what no outcome moves."""
    (_, nothing), *_ = by_level.items()
    ratios = {
        name: {f"{level:.0%}": found[name]["stretched"] for level, found in by_level.items()}
        | {"files": as_it_is[name]["stretched"]}
        | {method: fixed[method] for method in FIXED}
        for name, fixed in nothing.items()
    }
    levels = {f"{level:.0%}": f"{level:.0%}" for level in by_level}
    return table(ratios, levels | {"files": "files"} | {method: METHODS[method] for method in FIXED})


def summary(by_level: Mapping[float, Ratios]) -> list[str]:
    """Geometric mean and worst set of the methods that learn from outcomes."""
    rows = []
    for method in LEARNING:
        columns = [of_method(ratios, method) for ratios in by_level.values()]
        rows.append([METHODS[method], *(f"{geometric_mean(column):.3f} ({max(column):.3f})" for column in columns)])
    return in_markdown(["", *(f"{level:.0%}" for level in by_level)], rows)


def _better_worse(column: Sequence[float]) -> str:
    better = sum(ratio < 1.0 - _NOTICEABLE for ratio in column)
    return f"{better} / {sum(ratio > 1.0 + _NOTICEABLE for ratio in column)}"


def reached(by_level: Mapping[float, Ratios]) -> tuple[list[str], bool]:
    """The figures to reach as a table, and whether all hold."""
    head = "outcomes revealed", "geometric mean", "required", "worst set", "required", "chosen on", "confirmed on"
    rows, holds = [], True
    for level, ratios in by_level.items():
        column = of_method(ratios, "stretched")
        mean, worst = geometric_mean(column), max(column)
        holds = holds and mean <= HIGHEST[level] and worst <= WORST
        halves = (_half(ratios, chosen=chosen) for chosen in (True, False))
        figures = f"{level:.0%}", f"{mean:.3f}", f"{HIGHEST[level]:.3f}", f"{worst:.3f}", f"{WORST:.2f}"
        rows.append([*figures, *halves])
    return in_markdown(head, rows), holds


def _half(ratios: Ratios, *, chosen: bool) -> str:
    """Geometric mean over the sets on which the method was chosen, or over the others."""
    column = [found["stretched"] for name, found in ratios.items() if (name in CHOSEN_ON) is chosen]
    return f"{geometric_mean(column):.3f}" if column else ""


def of_worlds(found: Worlds) -> tuple[list[str], bool]:
    """Simulated worlds by kind, and whether those hold that must."""
    rows = []
    for kind in KINDS:
        cells = [f"{geometric_mean(found[kind, level]):.3f}" for level in LEVELS]
        rows.append([kind, *cells, f"{max(found[kind, 0.0]):.3f}"])
    lines = in_markdown(["", *(f"{level:.0%}" for level in LEVELS), "worst at 0%"], rows)
    independent = geometric_mean(ratio for kind in INDEPENDENT for ratio in found[kind, 0.0])
    noise = max(geometric_mean(found[kind, level]) for kind in NOISE for level in LEVELS)
    lines += [
        "",
        f"Where experts err independently: {independent:.3f} without outcomes (required: {HIGHEST_INDEPENDENT:.2f})."
        f" Where nobody knows anything: at most {noise:.3f} (required: {HIGHEST_NOISE:.3f}).",
    ]
    return lines, independent <= HIGHEST_INDEPENDENT and noise <= HIGHEST_NOISE


def of_intervals(coverage: Coverage) -> list[str]:
    """How often the interval held the true rate."""
    return [
        f"The 95 % interval of the error rate holds the true rate in {coverage.covered} of {coverage.streams} simulated"
        f" feeds of independent experts (required: {COVERED:.0%})."
    ]


def of_doubts(doubts: Mapping[str, Doubt]) -> tuple[list[str], bool]:
    """Where agreement misleads, and whether that is said often enough."""
    lines = ["| | by agreement | measured | status of rates | trust |", "| --- | ---: | ---: | --- | --- |"]
    lines += [
        f"| {name} | {one.estimated:.3f} | {one.measured:.3f} | {one.rates} | {one.trust}{_SO_FAR[one.so_far]} |"
        for name, one in doubts.items()
    ]
    needed = [one for one in doubts.values() if one.is_needed]
    named, early = sum(one.is_named for one in needed), sum(one.is_early for one in needed)
    lines += [
        "",
        f"The estimate is off by more than .1 in {len(needed)} sets. A status or its reasons name the fault in {named}"
        f" (required: {WARNED:.0%}); {early} are `warming-up` without a doubt so far.",
    ]
    return lines, named >= WARNED * len(needed)


def of_attack(attack: Attack) -> list[str]:
    """What became of the clones."""
    return [
        f"The group is named at question {attack.alarm}: {', '.join(attack.named) or 'nobody'}; trust goes"
        f" {' → '.join(attack.trusted)}. Right reference answers: {attack.alone:.3f} with one of the six,"
        f" {attack.off:.3f} with all, {attack.on:.3f} with `guard: on` ({attack.on / attack.alone:.3f} of the first;"
        " required: .95)."
    ]

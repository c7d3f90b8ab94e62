"""The quality benchmark's results as text: tables that are valid Markdown and readable in a terminal."""

import math
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.quality_checks import Attack, Coverage, Doubt

Ratios = Mapping[str, Mapping[str, float]]
"""Of each data set, by method: Brier score divided by that of the plain mean."""

METHODS = {
    "stretched": "mix, stretched",
    "mix": "mix",
    "median": "median",
    "logit_mean": "logit mean",
    "best_expert": "best expert in hindsight",
    "dawid_skene": "Dawid–Skene",
    "boa": "gradient BOA",
}
HIGHEST = {0.0: 0.961, 0.02: 0.922, 0.1: 0.864, 0.3: 0.827, 1.0: 0.797}
"""Of the geometric mean of the stretched mix's ratios, by share of outcomes revealed."""
WORST = 1.03
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


def table(ratios: Ratios, methods: Sequence[str]) -> list[str]:
    """Rows: data sets, geometric mean, sets better and worse by more than half a percent, the worst."""
    rows = [["", *(METHODS[method] for method in methods)], ["---", *("---:" for _ in methods)]]
    for name, by_method in ratios.items():
        rows.append([name, *(f"{by_method[method]:.3f}" for method in methods)])
    columns = [of_method(ratios, method) for method in methods]
    rows.append(["**geometric mean**", *(f"**{geometric_mean(column):.3f}**" for column in columns)])
    rows.append(["better / worse", *(_better_worse(column) for column in columns)])
    rows.append(["worst", *(f"{max(column):.3f}" for column in columns)])
    return ["| " + " | ".join(row) + " |" for row in rows]


def _better_worse(column: Sequence[float]) -> str:
    better = sum(ratio < 1.0 - _NOTICEABLE for ratio in column)
    return f"{better} / {sum(ratio > 1.0 + _NOTICEABLE for ratio in column)}"


def reached(by_level: Mapping[float, Ratios]) -> tuple[list[str], bool]:
    """The figures to reach as a table, and whether all hold."""
    lines = [
        "| outcomes revealed | geometric mean | at most | worst set | at most |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    holds = True
    for level, ratios in by_level.items():
        column = of_method(ratios, "stretched")
        mean, worst = geometric_mean(column), max(column)
        holds = holds and mean <= HIGHEST[level] and worst <= WORST
        lines.append(f"| {level:.0%} | {mean:.3f} | {HIGHEST[level]:.3f} | {worst:.3f} | {WORST:.2f} |")
    return lines, holds


def of_intervals(coverage: Coverage) -> list[str]:
    """How often the interval held the true rate."""
    return [
        f"The 95 % interval of η held the true rate in {coverage.covered} of {coverage.streams} simulated feeds of"
        f" independent experts ({coverage.share:.0%}; at least {COVERED:.0%} are asked for)."
    ]


def of_doubts(doubts: Mapping[str, Doubt]) -> tuple[list[str], bool]:
    """Where agreement misleads, and whether that is said often enough."""
    lines = ["| | η by agreement | measured | error rates say | trust says |", "| --- | ---: | ---: | --- | --- |"]
    lines += [
        f"| {name} | {one.estimated:.3f} | {one.measured:.3f} | {one.rates} | {one.trust}{_SO_FAR[one.so_far]} |"
        for name, one in doubts.items()
    ]
    needed = [one for one in doubts.values() if one.is_needed]
    named, early = sum(one.is_named for one in needed), sum(one.is_early for one in needed)
    lines += [
        "",
        f"Off by more than .1 in {len(needed)} sets. In {named} of them a status or its reasons name what is wrong (at"
        f" least {WARNED:.0%} are asked for); in {early} the feed is `warming-up` without a doubt so far.",
    ]
    return lines, named >= WARNED * len(needed)


def of_attack(attack: Attack) -> list[str]:
    """What became of the clones."""
    return [
        f"The group was named at question {attack.alarm} as {', '.join(attack.named) or 'nobody'}; trust went"
        f" {' → '.join(attack.trusted)}. Right reference answers: {attack.alone:.3f} with one of the six,"
        f" {attack.off:.3f} with all and the guard off, {attack.on:.3f} with `guard: on`"
        f" ({attack.on / attack.alone:.3f} of the first; at least .95 is asked for)."
    ]

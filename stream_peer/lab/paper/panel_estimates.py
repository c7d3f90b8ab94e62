"""Estimates from how often voters agree, of leave-one-out majorities: symmetric and class-dependent."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from stream_peer.lab.paper.answers import Voters, left_out_rates, watched
from stream_peer.lab.paper.results import (
    Area,
    ClaimCheck,
    Figure,
    Line,
    Mean,
    Table,
    around,
    at_least,
    mean_of,
    ratio_of,
)

N_VOTERS = 12
SPREADS = {"weak": (0.31, 0.48), "strong": (0.16, 0.42)}
"""Error rates of the voters, evenly spaced."""

EARLIER = {"weak": 0.028, "strong": 0.006}
"""Mean error of η̂ of like panels after 1,000 questions."""


class Watched(NamedTuple):
    """Of panels of one kind: mean absolute errors at the marks, and the share of intervals that held the truth."""

    marks: Sequence[int]
    symmetric: list[Mean]
    by_class: list[Mean]
    covered: list[float]


Panels: TypeAlias = Mapping[tuple[str, float], Watched]
"""By name of the voters and share of zeros."""


def panel(rng: np.random.Generator, voters: Voters, marks: Sequence[int], panels: int) -> Watched:
    """Streams of voters against what their leave-one-out majorities truly err."""
    truth = left_out_rates(voters)
    mean = 0.5 * (truth[0] + truth[1])
    streams = [watched(rng, voters, marks) for _ in range(panels)]
    symmetric, by_class, covered = [], [], []
    for place in range(len(marks)):
        read = [stream.symmetric[place].estimate() for stream in streams]
        classes = [stream.by_class[place].estimate() for stream in streams]
        symmetric.append(_absolute([(rate.zero, rate.one) for rate in read], truth))
        by_class.append(_absolute([(rate.zero, rate.one) for rate in classes], truth))
        covered.append(float(np.mean([rate.low <= mean <= rate.high for rate in read])))
    return Watched(marks, symmetric, by_class, covered)


def _absolute(found: Sequence[tuple[float, float]], truth: tuple[float, float]) -> Mean:
    return mean_of(np.abs(np.array(found) - np.array(truth)).mean(axis=1))


def even_voters(name: str, zeros: float) -> Voters:
    """Voters with evenly spaced error rates, the same for both outcomes."""
    errors = np.linspace(*SPREADS[name], N_VOTERS)
    return Voters(1.0 - errors, errors, zeros)


def unlike_voters() -> Voters:
    """Voters who err more often where the outcome is 1; three quarters of outcomes are 0."""
    return Voters(np.full(N_VOTERS, 0.6), np.full(N_VOTERS, 0.3), 0.75)


def panel_checks(panels: Panels) -> list[ClaimCheck]:
    """Errors of symmetric moments, whatever the share of zeros, and the coverage of their intervals."""
    checks = []
    for name, figure in EARLIER.items():
        even, skewed = panels[name, 0.5].symmetric[1], panels[name, 0.1].symmetric[1]
        ends = (0.4 * figure, 1.8 * figure)
        what = f"moments, {name} voters"
        checks += [
            around(f"{what}, T = 1,000: mean error", even, ends, "earlier runs of a like panel", f"{figure:g}"),
            around(
                f"{what}: error at P0 = .1 / at P0 = .5", ratio_of(skewed, even), (0.6, 1.6), "theory: about 1", "1"
            ),
        ]
    covered = float(np.mean([found.covered for found in panels.values()]))
    checks.append(
        at_least("moments: intervals of 95 % that hold the truth, share", covered, 0.9, "earlier runs: .90 to .97")
    )
    return checks


def class_checks(unlike: Watched) -> list[ClaimCheck]:
    """Class-dependent moments where the classes differ."""
    last = ratio_of(unlike.by_class[-1], unlike.symmetric[-1])
    steps = ratio_of(unlike.by_class[-1], unlike.by_class[0])
    fall = math.sqrt(unlike.marks[0] / unlike.marks[-1])
    what = "class-dependent voters: error of class moments"
    return [
        around(f"{what} / of symmetric moments", last, (0.0, 0.4), "earlier runs: a tenth to a quarter", "≤ 0.25"),
        around(f"{what} at the last T / at the first", steps, (0.5 * fall, 1.6 * fall), "theory: 1/√T", f"{fall:.2f}"),
    ]


def panel_figure(panels: Panels) -> Figure:
    """Errors of symmetric moments against the number of questions."""
    lines = [
        Line(
            f"{name} voters, P0 = {zeros:g}",
            [float(mark) for mark in found.marks],
            [mean.value for mean in found.symmetric],
            [mean.error for mean in found.symmetric],
        )
        for (name, zeros), found in panels.items()
    ]
    marks = np.array(next(iter(panels.values())).marks, dtype=np.float64)
    areas = [
        Area(
            "earlier runs of like panels",
            [*marks],
            [*(0.4 * figure * np.sqrt(1000.0 / marks))],
            [*(1.8 * figure * np.sqrt(1000.0 / marks))],
        )
        for figure in EARLIER.values()
    ]
    return Figure(
        name="moments",
        title="Leave-one-out moments",
        caption="Errors fall like 1/√T for weak and strong voters, and as much with few ones as with many.",
        x_label="questions T",
        y_label="mean error of η̂",
        lines=lines,
        areas=areas,
        log_x=True,
        log_y=True,
    )


def class_figure(unlike: Watched) -> Figure:
    """Symmetric and class-dependent moments where the classes differ."""
    marks = [float(mark) for mark in unlike.marks]
    first = unlike.by_class[0].value
    fall = np.sqrt(marks[0] / np.array(marks))
    return Figure(
        name="class-moments",
        title="Rates that differ by class (η0 = .08, η1 = .25, P0 = .75)",
        caption="Three moments of the votes tell the two rates apart; a single rate stays off whatever T.",
        x_label="questions T",
        y_label="mean error of η̂0 and η̂1",
        lines=[
            Line("class moments", marks, [m.value for m in unlike.by_class], [m.error for m in unlike.by_class]),
            Line("symmetric moments", marks, [m.value for m in unlike.symmetric], [m.error for m in unlike.symmetric]),
        ],
        areas=[Area("like 1/√T, from 0.3 to 2.5 times", marks, [*(0.3 * first * fall)], [*(2.5 * first * fall)])],
        log_x=True,
        log_y=True,
    )


def panel_table(panels: Panels, unlike: Watched) -> Table:
    """Errors of both kinds of moments for all panels."""
    named = [(f"{name}, P0 = {zeros:g}", found) for (name, zeros), found in panels.items()]
    named.append(("class-dependent, P0 = .75", unlike))
    rows = [
        [name, *(f"{s.value:.3f} / {c.value:.3f}" for s, c in zip(found.symmetric, found.by_class, strict=True))]
        for name, found in named
    ]
    return Table(
        title="Mean error of leave-one-out rates: symmetric / class-dependent moments",
        heads=["voters", *(f"T = {mark:,}" for mark in unlike.marks)],
        rows=rows,
    )

"""Claim 6: how exact estimates of error rates are, with few outcomes and with none.

From the answers of two groups, from how often voters agree (leave-one-out majorities, symmetric and class-dependent),
and from outcomes that are revealed now and then.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from stream_peer.lab.formulas.horvitz_thompson import HorvitzThompsonSums
from stream_peer.lab.formulas.two_groups import EqualGroupSums, two_group_deviations, two_group_solution
from stream_peer.lab.paper.results import (
    Area,
    ClaimCheck,
    Figure,
    Line,
    Mean,
    Result,
    Size,
    Table,
    around,
    at_least,
    between,
    mean_of,
    near,
    ratio_of,
    shown,
)
from stream_peer.lab.paper.worlds import (
    Shares,
    Voters,
    drawn_shares,
    expected_shares,
    left_out_rates,
    printed_first_rate,
    watched,
)
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import TruthSums, TwoGroupSums

FIRST, SECOND = 0.2, 0.25
"""Error rates of the two groups."""

ZEROS = (0.1, 0.2, 0.3, 0.4, 0.45, 0.5)
TIMES = (100, 500, 2000, 10_000, 50_000)
EARLIER_DEVIATIONS = {0.1: 0.58, 0.3: 0.92, 0.4: 1.69, 0.45: 3.30}
"""Standard deviation of η̂_A × √T, by share of zeros."""


class Errors(NamedTuple):
    """Mean absolute errors of η̂_A and their standard errors, (shares of zeros, times), by estimator."""

    corrected: FloatArray
    equal: FloatArray
    printed: FloatArray
    error: FloatArray


def two_groups(rng: np.random.Generator, runs: int) -> Errors:
    """Absolute errors of three ways to read the same shares of yes."""
    shape = (3, len(ZEROS), len(TIMES))
    means, errors = np.empty(shape), np.empty(shape)
    for row, zeros in enumerate(ZEROS):
        for column, questions in enumerate(TIMES):
            drawn = drawn_shares(rng, expected_shares(FIRST, SECOND, zeros), questions, runs)
            for way, read in enumerate((_corrected, _equal, printed_first_rate)):
                found = mean_of(np.abs(np.array([read(shares) for shares in drawn]) - FIRST))
                means[way, row, column], errors[way, row, column] = found
    return Errors(means[0], means[1], means[2], errors[0])


def _corrected(shares: Shares) -> float:
    return TwoGroupSums(*_sums(shares)).estimate().zero


def _equal(shares: Shares) -> float:
    return EqualGroupSums(*_sums(shares)).estimate().zero


def _sums(shares: Shares) -> tuple[float, float, float, float, float]:
    n = float(shares.questions)
    return n, n, n * shares.c1, n * shares.c2, n * shares.c3


def group_checks(rng: np.random.Generator, groups: Errors, runs: int) -> list[ClaimCheck]:
    """Deviations of η̂_A against the delta method, and errors of all three ways."""
    checks = [
        check for zeros, earlier in EARLIER_DEVIATIONS.items() for check in _deviation_checks(rng, zeros, earlier, runs)
    ]
    late = np.array(TIMES) >= 500
    power = float(np.polyfit(np.log(np.array(TIMES)[late]), np.log(groups.corrected[0, late]), 1)[0])
    least = float(groups.printed.min())
    balanced = abs(0.5 * (1.0 - math.sqrt((1.0 - 2.0 * FIRST) * (1.0 - 2.0 * SECOND))) - FIRST)
    ends = 0.9 * balanced, 1.1 * balanced
    what, last = f"two groups, P0 = .5, T = {TIMES[-1]:,}: mean error of η̂_A", float(groups.corrected[-1, -1])
    return [
        *checks,
        between("two groups, P0 = .1: power of T in the error", power, -0.7, -0.35, "theory: -½", "-0.5"),
        at_least("two groups as printed: smallest mean error at any P0 and T", least, 0.1, "Erratum E12"),
        between(what, last, *ends, "only √(ab) is known: its error ± 10 %", f"{balanced:.3f}"),
    ]


def _deviation_checks(rng: np.random.Generator, zeros: float, earlier: float, runs: int) -> list[ClaimCheck]:
    expected = expected_shares(FIRST, SECOND, zeros)
    drawn = drawn_shares(rng, expected, TIMES[-1], runs)
    solved = [two_group_solution(*shares[:3]) for shares in drawn]
    deviation = float(np.std([s.first for s in solved if s is not None])) * math.sqrt(TIMES[-1])
    measured = Mean(deviation, deviation / math.sqrt(2.0 * runs))
    formula, ends = two_group_deviations(*expected[:3])[0], (earlier - 0.01, earlier + 0.01)
    return [
        near(f"two groups: deviation of η̂_A × √T at P0 = {zeros:g}", measured, earlier),
        between(f"the same by the delta method, P0 = {zeros:g}", formula, *ends, "by hand ± .01", f"{earlier:g}"),
    ]


def time_figure(groups: Errors) -> Figure:
    """Errors against the number of questions."""
    times = [float(time) for time in TIMES]
    lines = [
        Line(f"corrected, P0 = {ZEROS[row]:g}", times, [*groups.corrected[row]], [*groups.error[row]])
        for row in (0, 2, 4, 5)
    ]
    lines.append(Line("as printed, P0 = 0.3", times, [*groups.printed[2]]))
    mean = EARLIER_DEVIATIONS[0.1] * math.sqrt(2.0 / math.pi) / np.sqrt(np.array(times))
    return Figure(
        name="two-groups",
        title="Two groups: error against the number of questions",
        caption="The corrected estimate improves like 1/√T where zeros and ones differ; the printed one never does.",
        x_label="questions T",
        y_label="mean error of η̂_A",
        lines=lines,
        areas=[Area("expected at P0 = .1, from ⅔ to 1½ times", times, [*(mean / 1.5)], [*(mean * 1.5)])],
        log_x=True,
        log_y=True,
    )


def zeros_figure(groups: Errors) -> Figure:
    """Errors after the most questions against the share of zeros."""
    last = len(TIMES) - 1
    return Figure(
        name="share-of-zeros",
        title=f"The same against the share of zeros, T = {TIMES[last]:,}",
        caption="Near one half two fixed groups cannot be told apart, and what is left is the mean of both.",
        x_label="share of zeros P0",
        y_label="mean error of η̂_A",
        lines=[
            Line("two groups, corrected", [*ZEROS], [*groups.corrected[:, last]], [*groups.error[:, last]]),
            Line("taken for equal groups", [*ZEROS], [*groups.equal[:, last]]),
        ],
        areas=[Area("error of √(ab), ± 10 %", [0.1, 0.5], [0.0235, 0.0235], [0.0287, 0.0287])],
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


RATE, REVEALED, QUESTIONS = 0.3, 0.2, 10_000


WAYS = ("Hájek: wrong / revealed", "Horvitz-Thompson: wrong / (p*·T)", "as printed: right / (p*·T)")


class Revealed(NamedTuple):
    """Means of three estimates from revealed outcomes, and their variances times T."""

    means: FloatArray
    variances: FloatArray
    runs: int


def revealed_spreads(rng: np.random.Generator, runs: int) -> Revealed:
    """Estimates from outcomes revealed with probability .2, in many runs."""
    known = rng.binomial(QUESTIONS, REVEALED, runs)
    wrong = rng.binomial(known, RATE)
    found = []
    for seen, errors in zip(known.tolist(), wrong.tolist(), strict=True):
        ratio = TruthSums(right_zero=seen - errors, wrong_zero=errors).estimate().zero
        inflated = errors / REVEALED
        weight = float(QUESTIONS)
        unbiased = HorvitzThompsonSums(weight, weight, inflated, inflated / REVEALED).estimate().zero
        found.append((ratio, unbiased, (seen - errors) / (REVEALED * weight)))
    table = np.array(found)
    return Revealed(table.mean(axis=0), QUESTIONS * table.var(axis=0, ddof=1), runs)


def revealed_checks(found: Revealed) -> list[ClaimCheck]:
    """Means and variances against theory."""
    theory = (
        RATE * (1.0 - RATE) / REVEALED,
        RATE / REVEALED - RATE**2,
        (1.0 - RATE) / REVEALED - (1.0 - RATE) ** 2,
    )
    checks = []
    for place, name in enumerate(WAYS):
        mean = Mean(float(found.means[place]), math.sqrt(theory[place] / QUESTIONS / found.runs))
        expected = 1.0 - RATE if place == 2 else RATE
        checks.append(near(f"{name}: mean", mean, expected, digits=3))
        variance = Mean(float(found.variances[place]), theory[place] * math.sqrt(2.0 / found.runs))
        checks.append(near(f"{name}: variance × T", variance, theory[place]))
    return checks


def revealed_table(found: Revealed) -> Table:
    """Means and variances of three estimates."""
    rows = [
        [name, f"{mean:.4f}", f"{variance:.2f}"]
        for name, mean, variance in zip(WAYS, found.means, found.variances, strict=True)
    ]
    return Table(
        title=f"From revealed outcomes: η = {RATE:g}, p* = {REVEALED:g}, T = {QUESTIONS:,}",
        heads=["estimate", "mean", "variance × T"],
        rows=rows,
        note="The printed indicator counts right answers: it estimates 1 - η (Erratum E1). Hájek's ratio varies least.",
    )


def estimators(rng: np.random.Generator, size: Size) -> Result:
    """Two groups at every share of zeros, panels of voters, and revealed outcomes."""
    quick = size is Size.QUICK
    groups = two_groups(rng, 100 if quick else 400)
    marks, panels = ((200, 1000), 16) if quick else ((200, 1000, 5000), 60)
    symmetric = {
        (name, zeros): panel(rng, even_voters(name, zeros), marks, panels) for name in SPREADS for zeros in (0.5, 0.1)
    }
    unlike = panel(rng, unlike_voters(), marks, panels)
    revealed = revealed_spreads(rng, 2000 if quick else 20_000)
    return Result(
        number=6,
        title="How exact estimates of error rates are",
        claim=(
            f"Theorem 7 estimates two groups' error rates ({FIRST:g} and {SECOND:g}) from three shares of yes, with "
            "an error of order 1/√T unless zeros and ones are equally frequent. Beside it the shortcut for groups "
            f"redrawn each question, leave-one-out moments of {N_VOTERS} voters (the service's default), their "
            "class-dependent form, and estimates from revealed outcomes."
        ),
        finding=(
            f"The corrected two-group estimate is off by {shown(float(groups.corrected[0, -1]))} at P0 = .1 and "
            f"{shown(float(groups.corrected[-1, -1]))} at P0 = .5 after {TIMES[-1]:,} questions, the printed one by "
            f"{shown(float(groups.printed[0, -1]))}; moments do not depend on P0."
        ),
        checks=[
            *group_checks(rng, groups, 400 if quick else 2000),
            *panel_checks(symmetric),
            *class_checks(unlike),
            *revealed_checks(revealed),
        ],
        figures=[time_figure(groups), zeros_figure(groups), panel_figure(symmetric), class_figure(unlike)],
        tables=[revealed_table(revealed), panel_table(symmetric, unlike)],
    )

"""Estimates from the answers of two groups, against the number of questions and the share of zeros."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.two_groups import EqualGroupSums, two_group_deviations, two_group_solution
from stream_peer.lab.paper.answers import Shares, drawn_shares, expected_shares, printed_first_rate
from stream_peer.lab.paper.results import Area, ClaimCheck, Figure, Line, Mean, at_least, between, mean_of, near
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import TwoGroupSums

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

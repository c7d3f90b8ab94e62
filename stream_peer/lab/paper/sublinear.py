"""Claim 1: regret grows like √T on peer losses, whatever is known of the error rate; linearly on naive ones."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.online import anytime_hedge_regret
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.lab.paper.following import AdaNormal, Hedge, revealed_rates, two_group_rates
from stream_peer.lab.paper.results import Area, ClaimCheck, Figure, Line, Result, Size, Table, at_most, between, shown
from stream_peer.lab.paper.worlds import flipped, outcomes, shrunk
from stream_peer.numerics.arguments import BoolArray, FloatArray

N_EXPERTS, RATE, REVEALED = 8, 0.3, 0.05
SHRINKAGES = np.array([0.0, 0.3, 0.5, 0.65, 0.75, 0.82, 0.87, 0.91])
SHARP, SHARE_OF_LIKELY = 0.4, 0.2
"""Chances of outcomes are ½ ± .4, a fifth of them the large one: then the two-group estimator has zeros to count."""

KINDS = ("η known", "η from 5 % of outcomes", "η from two groups", "naive")
EARLIER = (0.55, 0.56, 0.57, 0.99)
MARKS = (300, 1000, 3000, 10_000, 30_000, 100_000)
_REFRESH = 64
"""After so many questions estimates are read anew once in every 64th part of all so far."""


class Course(NamedTuple):
    """Regret at the marks, at the gap that is worst there, with standard errors: (marks, kinds), by learner."""

    marks: Sequence[int]
    hedge: FloatArray
    hedge_error: FloatArray
    normal: FloatArray
    normal_error: FloatArray


class _Rates:
    """What is known of the error rate by now: one rate for each kind and run, naive being a rate of 0."""

    def __init__(self, runs: int) -> None:
        self._yes = np.zeros((3, runs))
        self._questions = 0
        self._right, self._wrong = np.zeros(runs), np.zeros(runs)
        self.values = np.zeros((len(KINDS), runs))
        self.values[0] = RATE
        self._read()

    def observe(self, errs: BoolArray, revealed: BoolArray, answers: Sequence[FloatArray], question: int) -> None:
        """Count one question of every run; read the estimates anew now and then."""
        self._right += revealed & ~errs
        self._wrong += revealed & errs
        first, second = answers
        self._yes += np.stack([first * second, first, second])
        self._questions = question
        if question % max(question // _REFRESH, 1) == 0:
            self._read()

    def _read(self) -> None:
        self.values[1] = revealed_rates(self._right, self._wrong)
        self.values[2] = two_group_rates(self._yes, self._questions)


def sublinear_regret(rng: np.random.Generator, size: Size) -> Result:
    """One perfect expert among under-confident ones, at eight gaps; peer losses re-priced by the newest estimate."""
    runs, marks = (10, MARKS[:4]) if size is Size.QUICK else (16, MARKS)
    course = play(rng, runs, marks)
    slopes, _ = _slopes(course)
    return Result(
        number=1,
        title="Regret is sub-linear on peer losses, linear on naive ones",
        claim=(
            f"Theorem 3 with a standard learner promises regret of order √T. {N_EXPERTS} experts, one perfect, seven "
            "with forecasts ½ + κ(p - ½); reference answers err with η = .3. At every T the gap κ that is worst "
            f"there; any-time Hedge and AdaNormalHedge; {runs} runs. The rate is known, measured on 5 % of the "
            "outcomes (Hájek), or estimated from two groups' answers without any outcome (corrected closed form)."
        ),
        finding=(
            f"Regret grows like T to the power {slopes[0]:.2f} with η known, {slopes[1]:.2f} and {slopes[2]:.2f} with "
            f"it estimated, and {slopes[3]:.2f} on naive losses."
        ),
        checks=_checks(course),
        figures=[
            _figure("sublinear", "any-time Hedge", course, course.hedge, course.hedge_error),
            _figure("sublinear-normal", "AdaNormalHedge", course, course.normal, course.normal_error),
        ],
        tables=[_table(course)],
    )


def play(rng: np.random.Generator, runs: int, marks: Sequence[int]) -> Course:
    """All kinds, gaps and runs at once, one question after the other."""
    gaps = (1.0 - SHRINKAGES) ** 2 * SHARP**2
    shrinkages = np.broadcast_to(SHRINKAGES[:, None], (SHRINKAGES.size, N_EXPERTS)).copy()
    shrinkages[:, 0] = 1.0
    shape = (len(KINDS), runs, *shrinkages.shape)
    following: tuple[Hedge, AdaNormal] = (Hedge(shape[1:]), AdaNormal(shape))
    lost = np.zeros((2, *shape[:-1]))
    rates, course = _Rates(runs), []
    for question in range(1, marks[-1] + 1):
        rate = rates.values[..., None, None].copy()
        weights = [learner.weights(rate) for learner in following]
        lost += (1.0 - np.stack([chosen[..., 0] for chosen in weights])) * gaps
        chances = 0.5 + SHARP * np.where(rng.random(runs) < SHARE_OF_LIKELY, 1.0, -1.0)
        outcome, errs = outcomes(rng, chances), rng.random((2, runs)) < RATE
        answers = [flipped(outcome, err) for err in errs]
        losses = np.stack(loss_parts(shrunk(chances[:, None, None], shrinkages), answers[0][:, None, None]))
        for place, chosen in enumerate(weights):
            following[place].observe(losses, chosen, rate)
        rates.observe(errs[0], rng.random(runs) < REVEALED, answers, question)
        if question in marks:
            course.append(_worst(lost))
    means, errors = np.moveaxis(np.array(course), 1, 0)
    return Course(marks, means[:, 0], errors[:, 0], means[:, 1], errors[:, 1])


def _worst(lost: FloatArray) -> FloatArray:
    """Mean over runs at the worst gap, and its standard error: (2, learners, kinds)."""
    means = lost.mean(axis=2)
    errors = lost.std(axis=2, ddof=1) / math.sqrt(lost.shape[2])
    gap = means.argmax(axis=-1)[..., None]
    return np.stack([np.take_along_axis(values, gap, axis=-1)[..., 0] for values in (means, errors)])


def _slope(marks: Sequence[int], regret: FloatArray) -> float:
    """Power of T by least squares through the logarithms, from 1,000 questions on."""
    late = np.array(marks) >= 1000
    return float(np.polyfit(np.log(np.array(marks)[late]), np.log(regret[late]), 1)[0])


def _slopes(course: Course) -> tuple[list[float], list[float]]:
    hedge, normal = ([_slope(course.marks, column) for column in table.T] for table in (course.hedge, course.normal))
    return hedge, normal


def _checks(course: Course) -> list[ClaimCheck]:
    hedge, normal = _slopes(course)
    basis = "theory: ½; earlier runs: .45 to .6"
    checks = [
        between(f"Hedge, {KINDS[place]}: power of T", hedge[place], 0.3, 0.7, basis, f"{EARLIER[place]:g}")
        for place in range(3)
    ]
    checks.append(between("Hedge, naive: power of T", hedge[3], 0.95, 1.05, "theory: 1", f"{EARLIER[3]:g}"))
    checks += [
        at_most(f"AdaNormalHedge, {KINDS[place]}: power of T", normal[place], 0.7, "theory: at most ½", "≤ 0.5")
        for place in range(3)
    ]
    checks.append(between("AdaNormalHedge, naive: power of T", normal[3], 0.95, 1.05, "theory: 1", "1"))
    damage = float(course.hedge[-1, 3]) / course.marks[-1]
    expected = SHARP**2
    checks.append(
        between(
            "naive: regret a question at the end",
            damage,
            0.95 * expected,
            1.001 * expected,
            "(1 - κ)²·E(p - ½)² at κ = 0, from 5 % below",
            f"{expected:g}",
        )
    )
    known = float(course.hedge[-1, 0])
    bound = anytime_hedge_regret(N_EXPERTS, course.marks[-1]) / (1.0 - 2.0 * RATE)
    checks.append(at_most("Hedge, η known: regret at the end", known, bound, "Hedge's own bound / (1 - 2η)"))
    return checks


def _figure(name: str, learner: str, course: Course, table: FloatArray, errors: FloatArray) -> Figure:
    marks = [float(mark) for mark in course.marks]
    lines = [Line(kind, marks, [*table[:, place]], [*errors[:, place]]) for place, kind in enumerate(KINDS)]
    times = np.array(marks)
    bound = np.array([anytime_hedge_regret(N_EXPERTS, mark) for mark in course.marks]) / (1.0 - 2.0 * RATE)
    return Figure(
        name=name,
        title=f"Regret of {learner}",
        caption=(
            "On naive losses regret is a fixed share of the questions; on peer losses it bends away from that, with "
            "the error rate known or estimated."
        ),
        x_label="questions T",
        y_label="regret at the worst gap (summed loss)",
        lines=[*lines, Line("bound of any-time Hedge / (1 - 2η)", marks, [*bound], dashed=True)],
        areas=[
            Area("expected of naive losses ± 5 %", marks, [*(0.95 * SHARP**2 * times)], [*(1.05 * SHARP**2 * times)])
        ],
        log_x=True,
        log_y=True,
    )


def _table(course: Course) -> Table:
    rows = [
        [f"{learner}, {kind}", *(shown(float(value)) for value in values[:, place])]
        for learner, values in (("Hedge", course.hedge), ("AdaNormalHedge", course.normal))
        for place, kind in enumerate(KINDS)
    ]
    return Table(
        title="Regret at the worst gap (summed loss)",
        heads=["T =", *(f"{mark:,}" for mark in course.marks)],
        rows=rows,
        note="Regret in expectation over outcomes: the mean loss of the weights' draw less that of the perfect expert.",
    )

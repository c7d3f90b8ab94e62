"""What the simulations draw: outcomes, experts, voters and panels of known quality, and shares of answers of groups.

Of all of it the truth is known, so that what is estimated can be compared with it.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.answers import leave_one_out, majority, votes
from stream_peer.numerics.arguments import BoolArray, FloatArray, SmallIntArray
from stream_peer.numerics.error_rates import ClassMomentSums, MomentSums, class_moment_terms, moment_terms


def outcomes(rng: np.random.Generator, chances: FloatArray) -> FloatArray:
    """Outcomes, 0. or 1., each 1 with its chance."""
    return (rng.random(chances.shape) < chances).astype(np.float64)


def flipped(values: FloatArray | BoolArray, where: BoolArray) -> FloatArray:
    """Values of 0 and 1, turned into the other where told so."""
    return np.not_equal(values, where).astype(np.float64)


def shrunk(chances: FloatArray, shrinkage: FloatArray | float) -> FloatArray:
    """Forecasts of experts who know the chances and shrink them: ``½ + κ·(p - ½)``. κ = 1 is perfect, 0 knows nothing.

    The expected squared loss of κ exceeds that of the perfect expert by ``(1 - κ)²·E(p - ½)²``. A squared loss against
    a reference answer of error rate η prefers κ to the perfect expert if and only if ``1 - 4η < κ < 1``.
    """
    return np.asarray(0.5 + shrinkage * (chances - 0.5), dtype=np.float64)


class Seen(NamedTuple):
    """A panel's reference answers.

    Attributes
    ----------
    own : (n_questions, n_experts) int8
        Each expert's leave-one-out reference answer.
    published : (n_questions,) int8
        The majority of everybody.
    moments : list of MomentSums
        One contribution a question.
    """

    own: SmallIntArray
    published: SmallIntArray
    moments: list[MomentSums]


def seen(forecasts: FloatArray, coins: SmallIntArray) -> Seen:
    """Questions one after the other, through the functions of the service.

    Parameters
    ----------
    forecasts : (n_questions, n_experts) float64
        Probabilities in [0, 1].
    coins : (n_questions,) int8
        For ties.
    """
    own, cast = leave_one_out(forecasts, coins).answers, votes(forecasts)
    published = [majority(row, int(coin)).answer for row, coin in zip(forecasts, coins, strict=True)]
    terms = [moment_terms(row, answers) for row, answers in zip(cast, own, strict=True)]
    moments = [MomentSums.contribution(term) for term in terms if term is not None]
    return Seen(own, np.array(published, dtype=np.int8), moments)


def merged(moments: list[MomentSums]) -> MomentSums:
    """Sums over all of the questions."""
    return reduce(MomentSums.merge, moments, MomentSums())


class Shares(NamedTuple):
    """How often two groups' answers are 1: A, B, and both, of so many questions."""

    c1: float
    c2: float
    c3: float
    questions: int


def expected_shares(first: float, second: float, zeros: float) -> Shares:
    """Shares that two symmetric error rates and a share of zeros lead to (the equations of Theorem 7)."""
    ones = 1.0 - zeros
    both = zeros * first * second + ones * (1.0 - first) * (1.0 - second)
    return Shares(zeros * first + ones * (1.0 - first), zeros * second + ones * (1.0 - second), both, 1)


def drawn_shares(rng: np.random.Generator, expected: Shares, questions: int, runs: int) -> list[Shares]:
    """Shares as counted in so many questions, run by run."""
    cells = [expected.c3, expected.c1 - expected.c3, expected.c2 - expected.c3]
    counts = rng.multinomial(questions, [*cells, 1.0 - sum(cells)], size=runs)
    return [
        Shares((b + a) / questions, (b + o) / questions, b / questions, questions) for b, a, o, _ in counts.tolist()
    ]


def printed_first_rate(shares: Shares) -> float:
    """η_A by the quadratic that the paper prints for P0, with the root in [0, 1] that gives a rate below ½, if any.

    For comparison only (Erratum E12). Where no root can be used, ½.
    """
    c1, c2, c3, _ = shares
    d1, d2, d3 = (
        3.0 + 2.0 * c1 + 2.0 * c2 - 4.0 * c3,
        4.0 * c1 + 4.0 * c2 - 4.0 * c3 + 7.0,
        (c1 + 2.0) * (c2 + 2.0) - c3,
    )
    inside = d2 * d2 - 4.0 * d1 * d3
    if inside < 0.0:
        return 0.5
    roots = [(d2 + sign * math.sqrt(inside)) / (2.0 * d1) for sign in (1.0, -1.0)]
    rates = [(c1 - 1.0 + root) / (2.0 * root - 1.0) for root in roots if 0.0 <= root <= 1.0 and root != 0.5]
    return min((min(max(rate, 0.0), 0.5) for rate in rates), default=0.5)


class Voters(NamedTuple):
    """Voters who err independently given the outcome: P(yes | 1), P(yes | 0), and the share of zeros."""

    yes_if_one: FloatArray
    yes_if_zero: FloatArray
    zeros: float


def left_out_rates(voters: Voters) -> tuple[float, float]:
    """η0 and η1 of leave-one-out majorities, averaged over the voters, exactly: ties are decided by a fair coin."""
    zero = [_majority_yes(np.delete(voters.yes_if_zero, i)) for i in range(voters.yes_if_zero.size)]
    one = [_majority_yes(np.delete(voters.yes_if_one, i)) for i in range(voters.yes_if_one.size)]
    return float(np.mean(zero)), 1.0 - float(np.mean(one))


def _majority_yes(chances: FloatArray) -> float:
    counts = reduce(lambda so_far, p: np.convolve(so_far, [1.0 - p, p]), chances.tolist(), np.ones(1))
    half = chances.size / 2.0
    number = np.arange(counts.size)
    return float(counts[number > half].sum() + 0.5 * counts[number == half].sum())


class Estimates(NamedTuple):
    """After each of the marks: symmetric and class-dependent sums of one stream."""

    symmetric: list[MomentSums]
    by_class: list[ClassMomentSums]


def watched(rng: np.random.Generator, voters: Voters, marks: Sequence[int]) -> Estimates:
    """One stream of votes, through the functions of the service."""
    outcome = rng.random(marks[-1]) >= voters.zeros
    chances = np.where(outcome[:, None], voters.yes_if_one, voters.yes_if_zero)
    forecasts = np.where(rng.random(chances.shape) < chances, 0.6, 0.4)
    panel = seen(forecasts, rng.integers(0, 2, marks[-1]).astype(np.int8))
    terms = [class_moment_terms(row, own) for row, own in zip(votes(forecasts), panel.own, strict=True)]
    by_class = [ClassMomentSums.contribution(term) for term in terms if term is not None]
    found = Estimates([], [])
    symmetric, classes, begin = MomentSums(), ClassMomentSums(), 0
    for mark in marks:
        symmetric = reduce(MomentSums.merge, panel.moments[begin:mark], symmetric)
        classes = reduce(ClassMomentSums.merge, by_class[begin:mark], classes)
        found.symmetric.append(symmetric)
        found.by_class.append(classes)
        begin = mark
    return found

"""What the simulations draw: outcomes, noisy reference answers, experts of known quality, and panels of them."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.answers import leave_one_out, majority, votes
from stream_peer.numerics.arguments import BoolArray, FloatArray, SmallIntArray
from stream_peer.numerics.error_rates import MomentSums, moment_terms


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

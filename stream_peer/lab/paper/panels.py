"""What the service would see of a panel that answers question after question: references, votes, moments."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from stream_peer.numerics import (
    FloatArray,
    MomentSums,
    SmallIntArray,
    leave_one_out,
    majority,
    moment_terms,
    votes,
)


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

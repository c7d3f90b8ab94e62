"""How much reference answers are worth where outcomes are known as well: a slope."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from stream_peer.numerics.learners.regret_sums import check_columns
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import AT_LEAST_0, Numbers, Record, check_same, checked

_ROUNDING = 1e-12


SLOPES = Record(
    None,
    {"products": Numbers("..."), "squares": Numbers("...", low=0.0), "questions": Numbers("...", low=0.0)},
    check_columns,
)


@dataclass(frozen=True, slots=True, eq=False)
class SlopeSums:
    """Sums over questions with a known outcome: how true regrets follow the peer regrets of the same experts.

    Attributes
    ----------
    products, squares : (...) float64
        Σ r·u and Σ u² over questions and experts, r the true and u the peer regret on the unbiased scale.
    questions : (...) float64
        How many questions, by weight.

    Examples
    --------
    >>> import numpy as np
    >>> sums = SlopeSums.contribution(np.array([0.1, -0.1]), np.array([0.2, -0.2]))
    >>> round(float(sums.estimate()), 4), round(float(sums.merge(sums).merge(sums).estimate()), 4)
    (0.75, 0.625)
    """

    products: np.float64 | FloatArray
    squares: np.float64 | FloatArray
    questions: np.float64 | FloatArray

    @classmethod
    def nothing(cls, *shape: int) -> Self:
        """Sums over no question, of as many runs at once."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    @classmethod
    @checked(true_regrets=Numbers("... n"), peer_regrets=Numbers("... n"), weight=AT_LEAST_0)
    def contribution(cls, true_regrets: FloatArray, peer_regrets: FloatArray, weight: float = 1.0) -> Self:
        """The sums of one question.

        Parameters
        ----------
        true_regrets, peer_regrets : (..., n) float64
            r and u, means over the question's rounds; 0 for those that were absent.
        weight : float
            Of the question, ≥ 0.

        Returns
        -------
        SlopeSums
        """
        products = weight * np.add.reduce(true_regrets * peer_regrets, axis=-1)
        squares = weight * np.add.reduce(peer_regrets * peer_regrets, axis=-1)
        return cls(products, squares, np.full(np.shape(squares), float(weight)))

    def merge(self, other: Self) -> Self:
        """Sums of both."""
        check_same(self, other)
        return type(self)(
            self.products + other.products, self.squares + other.squares, self.questions + other.questions
        )

    @checked(self=SLOPES)
    def estimate(self) -> FloatArray:
        """Slope of true on peer regrets: near 0 the crowd's opinion does not rank experts here, near 1 it does.

        ``b = (Σ r·u + k)/(Σ u² + k)``, clipped to [0, 1], with ``k = Σ u²/questions``: a regression through 0, shrunk
        to 1 as if one more question had been seen on which both agreed. k is at least 1e-12, so that what rounding
        leaves of u where all forecasts are equal says nothing.

        Returns
        -------
        (...) float64
            In [0, 1]; 1 before the first question.
        """
        questions, squares = np.asarray(self.questions), np.asarray(self.squares)
        per_question = np.divide(squares, questions, out=np.zeros(squares.shape), where=questions > 0.0)
        one_more = np.maximum(per_question, _ROUNDING)
        return np.asarray(np.clip((self.products + one_more) / (squares + one_more), 0.0, 1.0), dtype=np.float64)

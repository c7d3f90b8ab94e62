"""How much reference answers are worth where outcomes are known as well: a slope, and means that need it."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from stream_peer.numerics.learners.regret_sums import check_columns
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import AT_LEAST_0, NUMBER, Numbers, Record, check_same, checked

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


@checked(
    sums=Numbers("n"),
    squares=Numbers("n", low=0.0),
    counts=Numbers("n", low=0.0),
    peer_means=Numbers("n"),
    slope=NUMBER,
)
def shrunk_means(
    sums: FloatArray, squares: FloatArray, counts: FloatArray, peer_means: FloatArray, slope: float = 1.0
) -> FloatArray:
    """Mean loss of each expert on outcomes, shrunk towards what its peer losses let expect: empirical Bayes.

    ``b·u_i + τ²/(τ² + σ²/m_i)·(r_i - b·u_i)`` with r_i = Σr/m_i the mean of the outcomes' losses of an expert, u_i
    that of its peer losses, both relative to the others (regrets, or losses less those of the mix). σ² is the variance
    of a loss around its expert's mean, pooled: ``Σ_i(Σr² - m_i·r_i²)/Σ_i(m_i - 1)``; τ² that of the experts' means
    around b·u, what is left of ``Σ m_i(r_i - b·u_i)²/Σ m_i`` after σ²'s part in it, at least 0. So many outcomes let an
    expert's own mean speak, few let its peers'.

    Notes
    -----
    Liu & Helmbold use revealed outcomes for the error rate alone. With one outcome in ten, these means ranked experts
    as well as peer losses do where these are right; where they are misled, the slope tells, and outcomes decide.

    Parameters
    ----------
    sums, squares : (n,) float64
        Σr and Σr² of each expert, over resolved questions.
    counts : (n,) float64
        m_i ≥ 0, how many these are.
    peer_means : (n,) float64
        u_i, on the scale of the outcome.
    slope : float
        b, as of `SlopeSums.estimate`.

    Returns
    -------
    (n,) float64
        b·u_i for an expert without outcomes, and for all while no expert has two.

    Raises
    ------
    FormulaInputError
        If a count is negative or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> sums, squares, counts = np.array([2.0, -2.0, 0.0]), np.array([0.6, 0.6, 0.0]), np.array([10.0, 10.0, 0.0])
    >>> shrunk_means(sums, squares, counts, np.array([0.1, -0.1, 0.05])).round(3)
    array([ 0.178, -0.178,  0.05 ])
    """
    expected = slope * peer_means
    seen = counts > 0.0
    off = np.divide(sums, counts, out=expected.copy(), where=seen) - expected
    total, resolved = float(np.add.reduce(counts)), float(np.add.reduce(seen))
    if total <= resolved:
        return expected
    spread = squares - np.divide(sums * sums, counts, out=np.zeros(sums.shape), where=seen)
    within = max(float(np.add.reduce(spread)) / (total - resolved), 0.0)
    between = max((float(np.add.reduce(counts * off * off)) - resolved * within) / total, 0.0)
    own = between * counts
    return np.asarray(expected + np.divide(own, own + within, out=np.zeros(own.shape), where=own > 0.0) * off)

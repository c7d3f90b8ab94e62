"""Mixers that compete with the best combination at their own forecast: the gradient trick.

Following weights w means forecasting f = Σ w·p. The squared loss (f - y)² has the slope 2(f - y) there, so along it an
expert's loss is 2(f - y)·p, and its regret 2(f - y)(f - p): a learner fed with these regrets learns to combine instead
of to choose. They are linear in y, so that a noisy reference answer can stand in without bias. Kept as `RegretSums`,
whose parts RL = Σ 2(f-ŷ)(f-p), RC1 = Σ 2(f-1)(f-p) and RC0 = Σ 2f(f-p) are priced at today's error rates. They are the
three sums Σ 2f(f-p) = RC0, Σ 2ŷ(f-p) = RC0 - RL and Σ 2(f-p) = RC0 - RC1 in another guise. `SlopeSums` say how much
reference answers are worth where outcomes are known as well.

The mixers of the live service do the same at the plain mean, which no weights have moved: order-free, and as good.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from stream_peer.lab.formulas.regret_sums import REGRET_SUMS, RegretSums, check_columns
from stream_peer.numerics.arguments import (
    ANSWERS,
    AT_LEAST_0,
    AWAKE,
    COUNT,
    FORECASTS,
    PRIOR,
    RATE,
    SHARE,
    WEIGHTS,
    Answers,
    BoolArray,
    Each,
    Fields,
    FloatArray,
    Numbers,
    check_same,
    checked,
    unchecked,
)
from stream_peer.numerics.learners import ada_normal_hedge, hedge, hedge_rate
from stream_peer.numerics.peer_losses import Rate, unit_peer_loss

__all__ = [
    "SlopeSums",
    "gradient_hedge",
    "gradient_normal_hedge",
    "outcome_gradients",
    "peer_gradients",
    "shared_with_all",
]

_ROUNDING = 1e-12


SLOPES = Fields(
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
    weights=WEIGHTS, forecasts=FORECASTS, reference_answers=ANSWERS, rates=Each(RATE, 2), weight=AT_LEAST_0, awake=AWAKE
)
def peer_gradients(
    weights: FloatArray,
    forecasts: FloatArray,
    reference_answers: Answers,
    rates: tuple[Rate, Rate],
    weight: float = 1.0,
    awake: BoolArray | None = None,
) -> RegretSums:
    """Linearised regrets of one question without an outcome, at the forecast that weights made.

    With ``f = Σ w·p`` the parts are ``2(f - ŷ)(f - p)``, and the same for ŷ = 1 and 0, so that they are priced as
    ``2(f - ỹ)(f - p)·(1 - η0 - η1)``, ỹ = (ŷ - η0)/(1 - η0 - η1): on average (1 - η0 - η1) times the regret with y, for
    either outcome. Summed over questions that regret bounds how much better any combination u would have done, for
    ``(f - y)² - (Σ u·p - y)² ≤ Σ_i u_i·2(f - y)(f - p_i)``.

    Notes
    -----
    The paper competes with the best single expert, and follows one that is drawn from w (Erratum E24). The forecast
    Σ w·p is never worse on average; here w is learnt for it.

    Parameters
    ----------
    weights : (..., n) float64
        w as followed, summing to 1; 0 for those that were absent. Equal ones linearise at the plain mean.
    forecasts : (..., n) float64
        p, in [0, 1]; of those that were absent any.
    reference_answers : float or array
        ŷ, each expert's own or one for all, in [0, 1].
    rates : (η0, η1)
        Of the time, for ``frozen`` and ``absolute``: floats, or arrays of shape (..., 1).
    weight : float
        Of the question, ≥ 0.
    awake : (..., n) bool, optional
        Who took part; everybody if left out.

    Returns
    -------
    RegretSums
        Of one question each part is in [-2, 2].

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If an answer is NaN or outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> sums = peer_gradients(np.array([0.5, 0.5]), np.array([0.9, 0.3]), 1, rates=(0.1, 0.1))
    >>> sums.against.round(3), sums.priced(0.1, 0.1).round(3)
    (array([ 0.24, -0.24]), array([ 0.252, -0.252]))
    """
    mixed, ahead, present = _at_the_mix(weights, forecasts, awake)
    parts = 2.0 * (mixed - reference_answers) * ahead, 2.0 * (mixed - 1.0) * ahead, 2.0 * mixed * ahead
    priced = unchecked(unit_peer_loss)(*parts, *rates)
    columns = (*parts, np.zeros(ahead.shape), priced, np.abs(priced), present)
    return RegretSums(*(weight * column for column in columns))


@checked(weights=WEIGHTS, forecasts=FORECASTS, outcome=ANSWERS, rates=Each(RATE, 2), weight=AT_LEAST_0, awake=AWAKE)
def outcome_gradients(
    weights: FloatArray,
    forecasts: FloatArray,
    outcome: Answers,
    rates: tuple[Rate, Rate] = (0.0, 0.0),
    weight: float = 1.0,
    awake: BoolArray | None = None,
) -> RegretSums:
    """Linearised regrets of one question whose outcome is known: ``2(f - y)(f - p)``, ``f = Σ w·p``.

    They take the place of `peer_gradients`, or stand beside it where a mixer learns from outcomes alone.

    Parameters
    ----------
    weights, forecasts, weight, awake
        As in `peer_gradients`.
    outcome : float, or array of shape (..., 1)
        y in [0, 1].
    rates : (η0, η1)
        Of the time, which bring ``frozen`` to the unit scale; 0 where no reference answers are used.

    Returns
    -------
    RegretSums

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If the outcome is NaN or outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> outcome_gradients(np.array([0.5, 0.5]), np.array([0.9, 0.3]), 1).outcome.round(3)
    array([ 0.24, -0.24])
    """
    mixed, ahead, present = _at_the_mix(weights, forecasts, awake)
    regret, nothing = 2.0 * (mixed - outcome) * ahead, np.zeros(ahead.shape)
    informative = 1.0 - rates[0] - rates[1]
    columns = (nothing, nothing, nothing, regret, informative * regret, np.abs(regret), present)
    return RegretSums(*(weight * column for column in columns))


def _at_the_mix(
    weights: FloatArray, forecasts: FloatArray, awake: BoolArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """f, f - p (0 for those that were absent), and who was present."""
    present = _present(forecasts, awake)
    mixed = np.add.reduce(weights * forecasts, axis=-1, keepdims=True)
    return mixed, present * (mixed - forecasts), present


@checked(weights=WEIGHTS, uniform_share=SHARE, awake=AWAKE)
def shared_with_all(weights: FloatArray, uniform_share: float, awake: BoolArray | None = None) -> FloatArray:
    """Weights of which a share is spread evenly: ``(1-σ)·w + σ·uniform``, over the experts that are awake.

    Parameters
    ----------
    weights : (..., n) float64
        w, summing to 1; 0 for those that are asleep.
    uniform_share : float
        σ, in [0, 1].
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where nobody is awake.

    Raises
    ------
    FormulaInputError
        If σ is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> shared_with_all(np.array([1.0, 0.0]), 0.5)
    array([0.75, 0.25])
    """
    present = _present(weights, awake)
    uniform = present / np.maximum(np.add.reduce(present, axis=-1, keepdims=True), 1.0)
    return np.asarray((1.0 - uniform_share) * weights + uniform_share * uniform, dtype=np.float64)


@checked(sums=REGRET_SUMS, rates=Each(RATE, 2), n_experts=COUNT, uniform_share=SHARE, awake=AWAKE)
def gradient_hedge(
    sums: RegretSums,
    rates: tuple[Rate, Rate],
    n_experts: int,
    uniform_share: float = 0.5,
    awake: BoolArray | None = None,
) -> FloatArray:
    """Mixing weights: exponential weights on linearised regrets, half of them shared with all.

    ``σ·uniform + (1-σ)·softmax(√(8 ln N/(n̄+1))·R)``, R priced at today's rates, n̄ the mean number of questions that
    those who are awake have answered. Of the mixers that learn without outcomes the best one: over 30 real data sets
    its mean squared error was on average .952 of the plain mean's, in the worst set 1.37 of it.

    Parameters
    ----------
    sums : RegretSums
        Of `peer_gradients`, or `outcome_gradients`, at the forecasts that these weights made.
    rates : (η0, η1)
        Floats, or arrays of shape (..., 1); their sum below 1.
    n_experts : int
        N ≥ 1, all experts seen.
    uniform_share : float
        σ, in [0, 1].
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where nobody is awake.

    Raises
    ------
    FormulaInputError
        If N < 1, σ is outside [0, 1], or a regret is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> sums = peer_gradients(np.array([0.5, 0.5]), np.array([0.9, 0.3]), 1, rates=(0.1, 0.1))
    >>> gradient_hedge(sums, (0.1, 0.1), n_experts=2).round(4)
    array([0.5991, 0.4009])
    """
    present = _present(sums.questions, awake)
    voters = np.maximum(np.add.reduce(present, axis=-1, keepdims=True), 1.0)
    answered = np.add.reduce(present * sums.questions, axis=-1, keepdims=True) / voters
    rate = np.asarray(unchecked(hedge_rate)(n_experts, answered + 1.0))
    learned = unchecked(hedge)(sums.priced(*rates), rate, awake=awake)
    return unchecked(shared_with_all)(learned, uniform_share, awake)


@checked(sums=REGRET_SUMS, rates=Each(RATE, 2), uniform_share=SHARE, prior=PRIOR, awake=AWAKE)
def gradient_normal_hedge(
    sums: RegretSums,
    rates: tuple[Rate, Rate],
    uniform_share: float = 0.5,
    prior: FloatArray | None = None,
    awake: BoolArray | None = None,
) -> FloatArray:
    """Mixing weights: AdaNormalHedge on linearised regrets, a share of them shared with all.

    ``σ·uniform + (1-σ)·ada_normal_hedge(R, A)``. With reference answers σ = ½; on outcomes alone (only
    `outcome_gradients`, at rates of 0) it needs no share: σ = 0.

    Parameters
    ----------
    sums : RegretSums
        Of `peer_gradients`, or `outcome_gradients`, at the forecasts that these weights made.
    rates : (η0, η1)
        Floats, or arrays of shape (..., 1).
    uniform_share : float
        σ, in [0, 1].
    prior : (..., n) float64, optional
        ≥ 0, of any sum; equal for all if left out.
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1; all 0 where nobody is awake.

    Raises
    ------
    FormulaInputError
        If σ is outside [0, 1], a regret is NaN, or a prior out of range.

    Examples
    --------
    >>> import numpy as np
    >>> truth = outcome_gradients(np.array([0.5, 0.5]), np.array([0.9, 0.3]), 1)
    >>> gradient_normal_hedge(truth, (0.0, 0.0), uniform_share=0.0).round(4)
    array([0.7529, 0.2471])
    """
    learned = unchecked(ada_normal_hedge)(sums.priced(*rates), sums.absolute, prior, awake)
    return unchecked(shared_with_all)(learned, uniform_share, awake)


def _present(like: FloatArray, awake: BoolArray | None) -> FloatArray:
    return np.ones(like.shape) if awake is None else np.broadcast_to(awake, like.shape).astype(np.float64)

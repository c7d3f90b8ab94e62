"""The paper's two flips, as it describes them. Neither gains anything: they are here so that anyone can see it."""

from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import (
    ANSWER_BITS,
    ANSWERS,
    EACH_FORECAST,
    HALF,
    HALF_RATE,
    INSIDE,
    SHARE,
    Answers,
    FloatArray,
    checked,
    unchecked,
)
from stream_peer.numerics.losses import Sides, read_linearly
from stream_peer.numerics.peer_losses import Rate


class FlippedQuestion(NamedTuple):
    """A question turned round, or left as it was.

    Attributes
    ----------
    forecasts : (..., n) float64
        Probabilities of what is now called 1.
    reference_answer : array
        ŷ, or 1 - ŷ.
    """

    forecasts: FloatArray
    reference_answer: FloatArray


@checked(forecasts=EACH_FORECAST, reference_answer=ANSWERS, coin=ANSWER_BITS)
def flip_question(forecasts: FloatArray, reference_answer: Answers, coin: Answers) -> FlippedQuestion:
    """Turn a question round with its forecasts: the paper's mapping to one error rate for both outcomes.

    Where the coin shows 1: ``p̃ = 1 - p``, the reference answer ``1 - ŷ`` (and the outcome ``1 - y``), section
    "Asymmetric error rate" of Liu & Helmbold. With a fair coin the error rate is then the same for both outcomes,
    see `rates_after_flip`.

    Notes
    -----
    Erratum E16: it changes nothing. A peer loss with one common rate is the same for (1 - p, 1 - ŷ) as for (p, ŷ),
    whether or not the question was turned round, for every loss that does not tell the outcomes apart. What the
    common rate gets wrong stays: with (η0 + η1)/2 the unbiased squared loss is off by
    ``(η1 - η0)/2·(2p - 1)/(1 - η0 - η1)``. Use class-dependent rates.

    Parameters
    ----------
    forecasts : (..., n) float64
        In [0, 1].
    reference_answer : float or array
        ŷ, in [0, 1].
    coin : {0, 1} or array of them
        Tossed by the caller, one for each question; 1 turns it round. Broadcast to forecasts and answers.

    Returns
    -------
    FlippedQuestion

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If a reference answer or a coin is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> turned = flip_question(np.array([0.75, 0.5]), 1, coin=1)
    >>> turned.forecasts.tolist(), float(turned.reference_answer)
    ([0.25, 0.5], 0.0)
    """
    turned = read_linearly(Sides(1.0 - forecasts, forecasts), coin)
    return FlippedQuestion(turned, unchecked(flip_answer)(reference_answer, coin))


@checked(rate0=SHARE, rate1=SHARE, share_of_zeros=SHARE, flip_probability=INSIDE)
def rates_after_flip(
    rate0: float, rate1: float, share_of_zeros: float = 0.5, flip_probability: float = 0.5
) -> tuple[float, float]:
    """Error rates with respect to the new outcome, of questions that were turned round with some probability.

    A question that now has outcome 0 was left as it was with weight ``P0·(1 - f)`` and turned round with weight
    ``(1 - P0)·f``, so ``η̃0 = [P0·(1-f)·η0 + (1-P0)·f·η1] / [P0·(1-f) + (1-P0)·f]``, and likewise η̃1. For a fair
    coin both are ``P0·η0 + (1 - P0)·η1``.

    Notes
    -----
    Erratum E16: the lemma in the section "Asymmetric error rate" of Liu & Helmbold is right, its use is void (see
    `flip_question`). Its proof gives the common rate as ``(η0 + η1)/2``, which takes the coin to be independent of
    the outcome *after* the flip: that is so for P0 = ½ only.

    Parameters
    ----------
    rate0, rate1 : float
        η0 and η1 before, in [0, 1].
    share_of_zeros : float
        P0, in [0, 1].
    flip_probability : float
        f, in (0, 1).

    Returns
    -------
    (float, float)
        η̃0 and η̃1.

    Raises
    ------
    FormulaInputError
        If a number is outside its range.

    Examples
    --------
    >>> [round(rate, 6) for rate in rates_after_flip(0.05, 0.35)]
    [0.2, 0.2]
    >>> [round(rate, 6) for rate in rates_after_flip(0.05, 0.35, share_of_zeros=0.9)]
    [0.08, 0.08]
    """
    share_of_ones, left = 1.0 - share_of_zeros, 1.0 - flip_probability
    zeros, ones = (share_of_zeros * left, share_of_ones * flip_probability)
    was_zero, was_one = (share_of_zeros * flip_probability, share_of_ones * left)
    return (
        (zeros * rate0 + ones * rate1) / (zeros + ones),
        (was_zero * rate0 + was_one * rate1) / (was_zero + was_one),
    )


@checked(reference_answer=ANSWERS, coin=ANSWER_BITS)
def flip_answer(reference_answer: Answers, coin: Answers) -> FloatArray:
    """Flip reference answers where the coin shows 1: the paper's way to make unlike error rates more alike.

    ``ỹ = 1 - ŷ`` with probability p̂, else ŷ; section "Heterogeneous error rates" of Liu & Helmbold. Score ỹ with
    `peer_loss` at the rate of `flipped_error_rate`.

    Notes
    -----
    Erratum E18: it only adds noise, see `flipped_error_rate`. For comparison, not for use.

    Parameters
    ----------
    reference_answer : float or array
        ŷ, in [0, 1].
    coin : {0, 1} or array of them
        Tossed by the caller: 1 with probability p̂. Broadcast to the answers' shape.

    Returns
    -------
    array
        ỹ, of the shape to which both broadcast.

    Raises
    ------
    FormulaInputError
        If a reference answer or a coin is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> flip_answer(np.array([0, 1, 1]), np.array([0, 0, 1]))
    array([0., 1., 0.])
    """
    answer = np.asarray(reference_answer, dtype=np.float64)
    return np.asarray(read_linearly(Sides(1.0 - answer, answer), coin), dtype=np.float64)


@checked(error_rate=HALF_RATE, flip_probability=HALF)
def flipped_error_rate(error_rate: Rate, flip_probability: float) -> Rate:
    """Error rate of reference answers that were flipped with some probability.

    ``η̃ = η·(1 - 2p̂) + p̂``, section "Heterogeneous error rates" of Liu & Helmbold; so ``1 - 2η̃ = (1 - 2p̂)(1 - 2η)``.

    Notes
    -----
    Erratum E17: this is the rate to score flipped answers with, ``s = ℓ(p, ỹ) + 2η̃·p·(1 - p)``; the paper prints
    the term without the factor 2. Erratum E18: rates come closer to each other, yet the weights 1 - 2η_t with
    which questions count in the peer losses all shrink by the same factor 1 - 2p̂: no ratio of two of them
    changes, so no order of experts does.

    Parameters
    ----------
    error_rate : float or array
        η of each question, in [0, ½].
    flip_probability : float
        p̂, in [0, ½].

    Returns
    -------
    float or array
        In [p̂, ½].

    Raises
    ------
    FormulaInputError
        If a number is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> flipped_error_rate(np.array([0.05, 0.45]), 0.4)
    array([0.41, 0.49])
    """
    return error_rate * (1.0 - 2.0 * flip_probability) + flip_probability

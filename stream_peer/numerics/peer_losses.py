"""Peer losses: scores against a noisy reference answer that, in expectation, rank like losses against the outcome.

Three forms of one number (error rates η0 = P(ŷ=1 | y=0), η1 = P(ŷ=0 | y=1), d = 1 - η0 - η1):

- `unit_peer_loss`, whose expectation is d·ℓ(p, y),
- `unbiased_peer_loss`, whose expectation is ℓ(p, y): comparable across questions and error rates,
- `peer_loss`, the paper's, which is the first plus η for the squared loss and one common rate.

The first two are linear in the losses, so they price sums of losses as well as single ones. They hold for every
proper loss; the paper's form for the squared loss only.
"""

from typing import TypeVar

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray, IntArray, SmallIntArray, check_probabilities, squared_loss

Losses = TypeVar("Losses", float, FloatArray)


def unit_peer_loss(
    loss_against_reference: Losses, loss_if_one: Losses, loss_if_zero: Losses, rate0: float, rate1: float
) -> Losses:
    """Peer loss on the scale of the reference answer.

    ``s = ℓ(p, ŷ) - η0·ℓ(p, 1) - η1·ℓ(p, 0)``, so that ``E[s | y] = (1 - η0 - η1)·ℓ(p, y)`` for either outcome.
    The same number as ``(1 - η_{1-ŷ})·ℓ(p, ŷ) - η_ŷ·ℓ(p, 1-ŷ)`` of Natarajan et al. (2013), which Liu & Helmbold
    use for class-dependent rates (Lemma 5), written so that the rates can be put in after summing.

    Parameters
    ----------
    loss_against_reference, loss_if_one, loss_if_zero : float or (n,) float64
        ℓ(p, ŷ), ℓ(p, 1), ℓ(p, 0), of one question each or summed over any.
    rate0, rate1 : float
        η0 and η1, in [0, 1].

    Returns
    -------
    float or (n,) float64
        For one squared loss within [-max(η0, η1), 1 - min(η0, η1)].

    Examples
    --------
    A forecast of .9, reference answer 1:

    >>> round(unit_peer_loss(0.01, 0.01, 0.81, 0.2, 0.2), 12)
    -0.154
    """
    return loss_against_reference - rate0 * loss_if_one - rate1 * loss_if_zero


def unbiased_peer_loss(
    loss_against_reference: Losses, loss_if_one: Losses, loss_if_zero: Losses, rate0: float, rate1: float
) -> Losses:
    """Peer loss on the scale of the outcome: an unbiased estimate of the unseen loss.

    ``u = s / (1 - η0 - η1)`` with s of `unit_peer_loss`, so that ``E[u | y] = ℓ(p, y)``.

    Parameters
    ----------
    loss_against_reference, loss_if_one, loss_if_zero : float or (n,) float64
        As in `unit_peer_loss`.
    rate0, rate1 : float
        η0 and η1, in [0, 1], their sum below 1.

    Returns
    -------
    float or (n,) float64
        May leave [0, 1] either way; only its mean is a loss.

    Raises
    ------
    FormulaInputError
        If the rates sum to 1 or more: such a reference answer says nothing about the outcome.

    Examples
    --------
    >>> round(unbiased_peer_loss(0.01, 0.01, 0.81, 0.2, 0.2), 12)
    -0.256666666667
    """
    informative = 1.0 - rate0 - rate1
    if not informative > 0.0:
        msg = f"error rates {rate0!r} and {rate1!r} sum to 1 or more; price them first"
        raise FormulaInputError(msg)
    return unit_peer_loss(loss_against_reference, loss_if_one, loss_if_zero, rate0, rate1) / informative


def peer_loss(forecasts: FloatArray, reference_answer: int | SmallIntArray | IntArray, error_rate: float) -> FloatArray:
    """Score forecasts against a noisy reference answer, as if the outcome were known: the paper's form.

    ``s = (ŷ - p)² + 2η·p·(1 - p)``, the definition in Theorem 4 of Liu & Helmbold. The second term cancels the
    part of the label noise that depends on p, so that for either outcome y, ``E[s | y] = (1 - 2η)·(y - p)² + η``.

    Notes
    -----
    The divergence printed with Theorem 4 is not zero for equal forecasts; the right one is
    ``g(p, q) = (1 - 2η)·(p - q)²``. For forecasts of 0 and 1 the second term vanishes: s is then the plain loss
    against the reference answer.

    Parameters
    ----------
    forecasts : (n,) float64
        Each expert's probability that the outcome is 1, in [0, 1].
    reference_answer : {0, 1} or (n,) array of them
        ŷ, the experts' stand-in for the outcome; with leave-one-out references each expert has its own.
    error_rate : float
        η = P(ŷ ≠ y), in [0, ½]. At ½ the reference answer carries no information.

    Returns
    -------
    (n,) float64
        Losses in [0, 1]; smaller is better.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If the error rate is outside [0, ½].

    Examples
    --------
    >>> import numpy as np
    >>> peer_loss(np.array([0.9, 0.5]), reference_answer=1, error_rate=0.2)
    array([0.046, 0.35 ])
    """
    check_probabilities(forecasts)
    if not 0.0 <= error_rate <= 0.5:
        msg = f"error_rate is {error_rate!r}, not within 0..0.5"
        raise FormulaInputError(msg)
    spread = forecasts * (1.0 - forecasts)
    return np.asarray(squared_loss(forecasts, reference_answer) + 2.0 * error_rate * spread, dtype=np.float64)

"""Peer losses of any proper loss, on the scale of the reference answer and on that of the outcome.

They are linear in three losses, of a question or summed over any: against the reference answer, against 1, against 0.
"""

from typing import TypeAlias, overload

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    RATE,
    FloatArray,
    Numbers,
    checked,
)

__all__ = [
    "Rate",
    "unbiased_peer_loss",
    "unit_peer_loss",
]

Rate: TypeAlias = float | FloatArray
"""An error rate, or one for each row of a batch."""


@overload
def unit_peer_loss(
    loss_against_reference: float, loss_if_one: float, loss_if_zero: float, rate0: float, rate1: float
) -> float: ...
@overload
def unit_peer_loss(
    loss_against_reference: FloatArray, loss_if_one: FloatArray, loss_if_zero: FloatArray, rate0: Rate, rate1: Rate
) -> FloatArray: ...
@checked(
    loss_against_reference=Numbers("..."),
    loss_if_one=Numbers("..."),
    loss_if_zero=Numbers("..."),
    rate0=RATE,
    rate1=RATE,
)
def unit_peer_loss(
    loss_against_reference: Rate, loss_if_one: Rate, loss_if_zero: Rate, rate0: Rate, rate1: Rate
) -> Rate:
    """Peer loss on the scale of the reference answer.

    ``s = ℓ(p, ŷ) - η0·ℓ(p, 1) - η1·ℓ(p, 0)``, so that ``E[s | y] = (1 - η0 - η1)·ℓ(p, y)`` for either outcome.
    The same number as the form of Natarajan et al. that Liu & Helmbold use (see `natarajan_peer_loss`), written so
    that the rates can be put in after summing.

    Parameters
    ----------
    loss_against_reference, loss_if_one, loss_if_zero : float or (..., n) float64
        ℓ(p, ŷ), ℓ(p, 1), ℓ(p, 0), of one question each or summed over any; of one question: see `loss_parts`.
    rate0, rate1 : float or array
        η0 and η1, in [0, 1]; arrays broadcast to the losses' shape.

    Returns
    -------
    float or (..., n) float64
        Of one question within [-max(η0, η1), 1 - min(η0, η1)], for losses in [0, 1].

    Examples
    --------
    A forecast of .9, reference answer 1:

    >>> round(unit_peer_loss(0.01, 0.01, 0.81, 0.2, 0.2), 12)
    -0.154
    """
    return loss_against_reference - rate0 * loss_if_one - rate1 * loss_if_zero


@overload
def unbiased_peer_loss(
    loss_against_reference: float, loss_if_one: float, loss_if_zero: float, rate0: float, rate1: float
) -> float: ...
@overload
def unbiased_peer_loss(
    loss_against_reference: FloatArray, loss_if_one: FloatArray, loss_if_zero: FloatArray, rate0: Rate, rate1: Rate
) -> FloatArray: ...
@checked(
    loss_against_reference=Numbers("..."),
    loss_if_one=Numbers("..."),
    loss_if_zero=Numbers("..."),
    rate0=RATE,
    rate1=RATE,
)
def unbiased_peer_loss(
    loss_against_reference: Rate, loss_if_one: Rate, loss_if_zero: Rate, rate0: Rate, rate1: Rate
) -> Rate:
    """Peer loss on the scale of the outcome: an unbiased estimate of the unseen loss.

    ``u = s / (1 - η0 - η1)`` with s of `unit_peer_loss`, so that ``E[u | y] = ℓ(p, y)``; s is that of the section
    "Asymmetric error rate" of Liu & Helmbold.

    Parameters
    ----------
    loss_against_reference, loss_if_one, loss_if_zero : float or (..., n) float64
        As in `unit_peer_loss`.
    rate0, rate1 : float or array
        η0 and η1, in [0, 1], their sum below 1.

    Returns
    -------
    float or (..., n) float64
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
    unit = loss_against_reference - rate0 * loss_if_one - rate1 * loss_if_zero
    return unit / _informative(rate0, rate1)


def _informative(rate0: Rate, rate1: Rate) -> Rate:
    """1 - η0 - η1, which has to be positive."""
    informative = 1.0 - rate0 - rate1
    if isinstance(informative, float):
        if informative > 0.0:
            return informative
        msg = f"error rates {rate0!r} and {rate1!r} sum to 1 or more; price them first"
        raise FormulaInputError(msg)
    if np.logical_and.reduce(informative > 0.0, None):
        return informative
    least = int(np.argmin(informative))
    msg = f"error rates sum to {1.0 - float(informative.flat[least])!r} at place {least}, 1 or more; price them first"
    raise FormulaInputError(msg)

"""Losses of a probability against an outcome or a reference answer, and the one check that forecasts get.

Losses lie in [0, 1]; smaller is better. Other proper losses (logarithmic, spherical) belong here.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stream_peer.errors import ForecastRangeError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
SmallIntArray: TypeAlias = npt.NDArray[np.int8]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def check_probabilities(forecasts: FloatArray) -> None:
    """Refuse forecasts that are no probabilities.

    Parameters
    ----------
    forecasts : (n,) float64
        May be empty.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1]. The message holds the first such value and its place.

    Examples
    --------
    >>> import numpy as np
    >>> check_probabilities(np.array([0.0, 0.3, 1.0]))
    >>> check_probabilities(np.array([0.5, 55.0]))
    Traceback (most recent call last):
    ...
    stream_peer.errors.ForecastRangeError: forecast 1 is 55.0, not within 0..1
    """
    if forecasts.size == 0 or (np.minimum.reduce(forecasts) >= 0.0 and np.maximum.reduce(forecasts) <= 1.0):
        return
    first = int(np.argmin((forecasts >= 0.0) & (forecasts <= 1.0)))
    msg = f"forecast {first} is {float(forecasts[first])!r}, not within 0..1"
    raise ForecastRangeError(msg)


def squared_loss(forecasts: FloatArray, outcome: int | SmallIntArray | IntArray) -> FloatArray:
    """Squared distance of each forecast from the outcome (Brier's score of one question).

    ``ℓ(p, y) = (y - p)²``, the loss of the section "Application to Square Loss" of Liu & Helmbold. It is proper:
    if the outcome is 1 with probability q, its expectation exceeds that of forecasting q by ``(p - q)²`` (Lemma 1).

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities that the outcome is 1, in [0, 1]. Not checked here: see `check_probabilities`.
    outcome : {0, 1} or (n,) array of them
        y, or ŷ. With leave-one-out references each forecast has its own.

    Returns
    -------
    (n,) float64
        Losses in [0, 1]; smaller is better.

    Examples
    --------
    >>> import numpy as np
    >>> squared_loss(np.array([0.9, 0.5]), 1)
    array([0.01, 0.25])
    """
    distance = forecasts - outcome
    return distance * distance

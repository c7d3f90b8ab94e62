"""Means of forecasts that run beside the mix, for comparison."""

import math

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import FORECAST_ROW, checked

_CLIP = 0.02


def _check_somebody(forecasts: FloatArray) -> None:
    """Refuse a round without forecasts."""
    if not forecasts.size:
        msg = f"forecasts are {forecasts!r}: of nobody there is no mean"
        raise FormulaInputError(msg)


@checked(_check_somebody, forecasts=FORECAST_ROW)
def median(forecasts: FloatArray) -> float:
    """The middle one of the forecasts, of an even number the mean of the two in the middle.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, n ≥ 1.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    FormulaInputError
        If there is no forecast.

    Examples
    --------
    >>> import numpy as np
    >>> round(median(np.array([0.9, 0.2, 0.6, 0.3])), 4)
    0.45
    """
    ordered = np.sort(forecasts)
    middle = len(ordered) // 2
    return float(ordered[middle] + ordered[-1 - middle]) / 2.0


@checked(_check_somebody, forecasts=FORECAST_ROW)
def logit_mean(forecasts: FloatArray) -> float:
    """The forecast whose log odds are the mean of the experts' log odds, each clipped to [.02, .98].

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, n ≥ 1. The clip keeps one forecast of 0 or 1 from deciding alone.

    Returns
    -------
    float
        In [.02, .98].

    Raises
    ------
    FormulaInputError
        If there is no forecast.

    Examples
    --------
    >>> import numpy as np
    >>> round(logit_mean(np.array([0.2, 0.8, 1.0])), 4)
    0.7854
    """
    clipped = np.minimum(np.maximum(forecasts, _CLIP), 1.0 - _CLIP)
    log_odds = float(np.add.reduce(np.log(clipped / (1.0 - clipped)))) / forecasts.size
    return 1.0 / (1.0 + math.exp(-log_odds))

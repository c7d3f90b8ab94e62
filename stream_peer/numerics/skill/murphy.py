"""A Brier score split into what could be mended by recalibration, what the forecasts know, and what nobody did."""

from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray, IntArray, SmallIntArray, squared_loss
from stream_peer.numerics.losses.arguments import FORECAST_ROW, OUTCOMES, checked, unchecked
from stream_peer.numerics.skill.isotonic import isotonic_fit


class MurphyTerms(NamedTuple):
    """The parts of a mean Brier score: ``loss = miscalibration - discrimination + uncertainty``.

    Attributes
    ----------
    loss : float
        The mean Brier score; smaller is better.
    miscalibration : float
        What the best recalibration that keeps the order would have saved; ≥ 0, smaller is better. Murphy's
        *reliability*.
    discrimination : float
        By how much the forecasts, recalibrated, beat the base rate; ≥ 0, larger is better. Murphy's *resolution*.
    uncertainty : float
        r·(1 - r) with the share r of ones: the loss of whoever always says r. Nothing of it is the forecaster's.
    """

    loss: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@checked(forecasts=FORECAST_ROW, outcomes=OUTCOMES)
def murphy_decomposition(forecasts: FloatArray, outcomes: IntArray | SmallIntArray) -> MurphyTerms:
    """Miscalibration, discrimination and uncertainty of forecasts whose outcomes are known.

    With c the isotonic fit (`isotonic_fit`), r the share of ones and S the mean Brier score of either:
    ``miscalibration = S(p) - S(c)``, ``discrimination = S(r) - S(c)``, ``uncertainty = S(r) = r·(1 - r)``, so that they
    add up exactly. Neither of the first two can be negative: p itself and the constant r are among the fits of which c
    is the best.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, n ≥ 1.
    outcomes : (n,) int
        0 or 1 each.

    Returns
    -------
    MurphyTerms

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If there are none, the two have not the same length, or an outcome is neither 0 nor 1.

    Notes
    -----
    Not in the paper. The CORP form of Dimitriadis, Gneiting & Jordan (2021) and not Murphy's (1973) bins: with bins the
    three terms add up only if all forecasts of a bin are equal (two more terms within bins mend the sum, not the
    meaning), and what comes out depends on how many bins one draws. Here nothing is chosen. Where all forecasts of a
    bin are equal and the shares of ones rise with them, the two are the same. Of few questions the fit follows chance:
    miscalibration of n calibrated forecasts is above 0, and falls as n grows; hold it against the bands of
    `reliability_bins`.

    Examples
    --------
    >>> import numpy as np
    >>> terms = murphy_decomposition(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 1, 0, 1]))
    >>> [round(float(term), 4) for term in terms]
    [0.185, 0.06, 0.125, 0.25]
    """
    fitted = unchecked(isotonic_fit)(forecasts, outcomes)
    if not forecasts.size:
        msg = f"forecasts are {forecasts!r}: of none there is no score"
        raise FormulaInputError(msg)
    rate = float(np.add.reduce(outcomes.astype(np.int64))) / forecasts.size
    loss, recalibrated = (_mean(unchecked(squared_loss)(said, outcomes)) for said in (forecasts, fitted))
    uncertainty = rate * (1.0 - rate)
    return MurphyTerms(loss, loss - recalibrated, uncertainty - recalibrated, uncertainty)


def _mean(values: FloatArray) -> float:
    return float(np.add.reduce(values)) / values.size

"""Bins of a reliability diagram, with bands that tell chance from miscalibration."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.losses.arguments import FORECAST_ROW, INSIDE, OUTCOMES, Numbers, checked, unchecked

_EXACT_UP_TO = 4_000


class ReliabilityBin(NamedTuple):
    """Forecasts of about the same probability, and how often it happened.

    Attributes
    ----------
    questions : int
        ≥ 1.
    forecast : float
        Their mean.
    happened : float
        The share of ones among their outcomes.
    low, high : float
        Where that share would lie, with at least the probability asked for, were the forecasts calibrated.
    """

    questions: int
    forecast: float
    happened: float
    low: float
    high: float


@checked(forecasts=FORECAST_ROW, outcomes=OUTCOMES, n_bins=Numbers(low=1, high=10**6, kind=np.int64), level=INSIDE)
def reliability_bins(
    forecasts: FloatArray, outcomes: IntArray | SmallIntArray, n_bins: int = 10, level: float = 0.95
) -> list[ReliabilityBin]:
    """The points of a reliability diagram: bins of equal width on [0, 1] without the empty ones, lowest first.

    A calibrated forecaster has each point within [low, high] with probability ``level`` at least, and so of ten points
    one half outside, on average, at the most. The band is around what was forecast, as in Bröcker & Smith (2007), not a
    confidence interval around what happened: a point outside of it is a forecast that was not calibrated.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities; n may be 0.
    outcomes : (n,) int
        0 or 1 each.
    n_bins : int
        ≥ 1. A forecast on a boundary belongs to the bin above it, 1 to the last.
    level : float
        Of each band by itself, in (0, 1).

    Returns
    -------
    list of ReliabilityBin

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If lengths differ, an outcome is neither 0 nor 1, or ``n_bins`` or ``level`` is out of range.

    Notes
    -----
    Not in the paper. Bröcker & Smith resample; the distribution of the share is known exactly (`consistency_band`), so
    that no dice are needed.

    Examples
    --------
    >>> import numpy as np
    >>> reliability_bins(np.array([0.1, 0.75, 0.75, 0.75]), np.array([0, 0, 1, 0]), n_bins=2)[1]
    ReliabilityBin(questions=3, forecast=0.75, happened=0.3333333333333333, low=0.3333333333333333, high=1.0)
    """
    places = np.searchsorted(np.arange(1, n_bins) / n_bins, forecasts, side="right")  # .29 * 100 is below 29
    bins = []
    for place in np.unique(places).tolist():
        said, happened = forecasts[places == place], outcomes[places == place].astype(np.int64)
        low, high = unchecked(consistency_band)(said, level)
        mean = float(np.add.reduce(said)) / said.size
        bins.append(ReliabilityBin(said.size, mean, float(np.add.reduce(happened)) / said.size, low, high))
    return bins


@checked(forecasts=FORECAST_ROW, level=INSIDE)
def consistency_band(forecasts: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """Where the share of ones would lie, were each forecast the probability of its outcome.

    The number of ones is then a sum of independent coins of different bias (Poisson binomial). Its distribution is
    built up coin by coin, ``P_t(k) = P_{t-1}(k)·(1 - p_t) + P_{t-1}(k-1)·p_t``, O(n²), and cut at (1 - level)/2 on
    either side: the band holds the share with probability ``level`` or, counts being whole, more.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, n ≥ 1.
    level : float
        In (0, 1).

    Returns
    -------
    (float, float)
        Ends of the band, in [0, 1], both included.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If there is no forecast, or ``level`` is out of range.

    Notes
    -----
    Not in the paper. Of more than 4,000 forecasts the normal distribution of the same mean and variance takes its
    place, one count wider on either side.

    Examples
    --------
    >>> import numpy as np
    >>> consistency_band(np.full(10, 0.5))
    (0.2, 0.8)
    """
    if not forecasts.size or not 0.0 < level < 1.0:
        msg = f"{forecasts.size} forecasts, level {level!r}: must be >= 1, within (0, 1)"
        raise FormulaInputError(msg)
    n = forecasts.size
    tail = (1.0 - level) / 2.0
    if n > _EXACT_UP_TO:
        return _normal_band(forecasts, tail)
    chances = _chances(forecasts)
    below = np.add.accumulate(chances)
    above = np.add.accumulate(chances[::-1])
    low = int(np.count_nonzero(below <= tail))
    high = n - int(np.count_nonzero(above <= tail))
    return low / n, high / n


def _chances(forecasts: FloatArray) -> FloatArray:
    """Probability of each number of ones."""
    chances = np.zeros(forecasts.size + 1)
    chances[0] = 1.0
    for number, forecast in enumerate(forecasts.tolist(), start=1):
        carried = chances[:number] * forecast
        chances[: number + 1] *= 1.0 - forecast
        chances[1 : number + 1] += carried
    return chances


def _normal_band(forecasts: FloatArray, tail: float) -> tuple[float, float]:
    n, mean = forecasts.size, float(np.add.reduce(forecasts))
    reach = _normal_quantile(tail) * math.sqrt(float(np.add.reduce(forecasts * (1.0 - forecasts)))) + 1.0
    return max(0.0, math.floor(mean - reach) / n), min(1.0, math.ceil(mean + reach) / n)


def _normal_quantile(tail: float) -> float:
    """The z that a standard normal exceeds with probability ``tail``; by halving."""
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if 0.5 * math.erfc(middle / math.sqrt(2.0)) > tail:
            low = middle
        else:
            high = middle
    return high

"""How good forecasts were, once outcomes are known, and on how hard questions.

- `skill_score`: loss beside a reference's on the same questions; who answers what is easy has a small loss without
  skill
- `isotonic_fit`: what forecasts should have said, were only their order right
- `murphy_decomposition`: a Brier score split into miscalibration, discrimination and uncertainty
- `reliability_bins`: bins of a reliability diagram, with bands that tell chance from miscalibration
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    FORECAST_ROW,
    INSIDE,
    OUTCOMES,
    FloatArray,
    IntArray,
    Numbers,
    SmallIntArray,
    checked,
    unchecked,
)
from stream_peer.numerics.losses import squared_loss

__all__ = [
    "MurphyTerms",
    "ReliabilityBin",
    "Skill",
    "consistency_band",
    "isotonic_fit",
    "murphy_decomposition",
    "reliability_bins",
    "skill_score",
]


class Skill(NamedTuple):
    """A forecaster's loss, and how hard its questions were.

    Attributes
    ----------
    questions : int
        On how many both are known.
    loss : float
        Its mean loss; smaller is better.
    difficulty : float
        The mean loss of the reference on the same questions. What it answers easily, everybody does.
    skill : float or None
        1 - loss/difficulty: 0 is as good as the reference, 1 is perfect. None if the difficulty is 0.
    deviation : float or None
        Standard deviation of ``skill``, were questions independent; None of fewer than two.
    """

    questions: int
    loss: float
    difficulty: float
    skill: float | None
    deviation: float | None


@checked(losses=Numbers("n", low=0.0), reference_losses=Numbers("n", low=0.0))
def skill_score(losses: FloatArray, reference_losses: FloatArray) -> Skill:
    """Skill against a reference, on the questions that the forecaster answered.

    With means L and D of the two: ``skill = 1 - L/D``, and its deviation by linearising the ratio,
    ``√(Σ (ℓ_t - (L/D)·d_t)²/(n·(n - 1)))/D``. Losses of two who answered different questions are not comparable,
    their skills are more so: an expert who answers only what is easy has a small L *and* a small D.

    Parameters
    ----------
    losses : (n,) float64
        The forecaster's, ≥ 0, of the questions that it answered; n ≥ 1.
    reference_losses : (n,) float64
        The reference's on the same questions, ≥ 0; here the plain mean of all forecasts.

    Returns
    -------
    Skill

    Raises
    ------
    FormulaInputError
        If there are none, lengths differ, or a loss is negative or NaN.

    Notes
    -----
    Not in the paper. The reference contains the forecaster, one of many.

    Examples
    --------
    >>> import numpy as np
    >>> found = skill_score(np.array([0.1, 0.3]), np.array([0.2, 0.3]))
    >>> [round(float(value), 3) for value in (found.loss, found.difficulty, found.skill, found.deviation)]
    [0.2, 0.25, 0.2, 0.24]
    """
    _check(losses, reference_losses)
    n = losses.size
    loss, difficulty = (float(np.add.reduce(each)) / n for each in (losses, reference_losses))
    if not difficulty > 0.0:
        return Skill(n, loss, difficulty, None, None)
    ratio = loss / difficulty
    if n == 1:
        return Skill(n, loss, difficulty, 1.0 - ratio, None)
    apart = losses - ratio * reference_losses
    deviation = math.sqrt(float(np.add.reduce(apart * apart)) / (n * (n - 1.0))) / difficulty
    return Skill(n, loss, difficulty, 1.0 - ratio, deviation)


def _check(losses: FloatArray, reference_losses: FloatArray) -> None:
    if losses.shape != reference_losses.shape or losses.ndim != 1 or not losses.size:
        msg = f"losses have shapes {losses.shape!r} and {reference_losses.shape!r}: must be (n,), (n,), n >= 1"
        raise FormulaInputError(msg)
    if not (np.minimum.reduce(losses) >= 0.0 and np.minimum.reduce(reference_losses) >= 0.0):
        msg = (
            f"the smallest losses are {np.minimum.reduce(losses)!r}, {np.minimum.reduce(reference_losses)!r}: negative"
        )
        raise FormulaInputError(msg)


@checked(forecasts=FORECAST_ROW, outcomes=OUTCOMES)
def isotonic_fit(forecasts: FloatArray, outcomes: IntArray | SmallIntArray) -> FloatArray:
    """The best recalibration that keeps the order: isotonic regression of the outcomes on the forecasts.

    Of all c that rise with the forecasts and are equal where these are, the one with the least ``Σ (c_t - y_t)²``. By
    pool-adjacent-violators: neighbours in order of forecast whose shares of ones fall are pooled until none falls.
    O(n log n). Shares are compared as fractions of whole numbers, so that no rounding decides what is pooled.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, in any order; n may be 0.
    outcomes : (n,) int
        0 or 1 each.

    Returns
    -------
    (n,) float64
        For each forecast the recalibrated one, in [0, 1].

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If the two have not the same length, or an outcome is neither 0 nor 1.

    Notes
    -----
    Not in the paper. Ayer et al. (1955); ties are pooled first, as in Dimitriadis, Gneiting & Jordan (2021).

    Examples
    --------
    >>> import numpy as np
    >>> isotonic_fit(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 1, 0, 1]))
    array([0. , 0.5, 0.5, 1. ])
    """
    _, places, counts = np.unique(forecasts, return_inverse=True, return_counts=True)
    ones = np.zeros(len(counts), dtype=np.int64)
    np.add.at(ones, places, outcomes.astype(np.int64))
    pooled: list[tuple[int, int, int]] = []  # ones, questions, values of each pool
    for one, count in zip(ones.tolist(), counts.tolist(), strict=True):
        pool = (one, count, 1)
        while pooled and pooled[-1][0] * pool[1] >= pool[0] * pooled[-1][1]:
            below = pooled.pop()
            pool = (below[0] + pool[0], below[1] + pool[1], below[2] + pool[2])
        pooled.append(pool)
    shares = np.array([one / count for one, count, _ in pooled], dtype=np.float64)
    fitted: FloatArray = np.repeat(shares, [values for _, _, values in pooled])[places]
    return fitted


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
        r·(1 - r) with the share r of ones: the loss of always forecasting r.
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
    reach = NormalDist().inv_cdf(1.0 - tail) * math.sqrt(float(np.add.reduce(forecasts * (1.0 - forecasts)))) + 1.0
    return max(0.0, math.floor(mean - reach) / n), min(1.0, math.ceil(mean + reach) / n)

"""What an estimate of error rates is, whichever way it was made; and rates as prices.

Every estimator is a frozen value of sums over questions: its ``contribution`` of one question, a
``merge`` that adds two of them up in any order, and an ``estimate`` that reads them.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias, get_args

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import AT_LEAST_0, NUMBER, SHARE, Fields, Numbers, OneOf, checked

__all__ = ["ErrorRate", "EstimateStatus", "PricedRates", "interval_ends", "priced"]

EstimateStatus: TypeAlias = Literal["ok", "insufficient", "balanced", "uninformative", "contradicted"]

HIGHEST_RATE = 0.475
"""Estimates are cut here: no reference answer is taken to be a coin."""

PRIOR_RATE = 0.25
"""What is taken for the rate before there is anything to go by."""

HIGHEST_PRICED_SUM = 0.8
"""Losses are priced at rates that sum to at most this, so that nothing is divided by less than .2."""

FEWEST_EFFECTIVE_QUESTIONS = 50.0
"""Below this many an estimate is published but not called ``ok``."""

PSEUDO_QUESTIONS = 20.0
"""Estimates begin as if so many questions had already spoken for `PRIOR_RATE`."""

LEAST_Z = 3.0
"""What must stand out from chance does so by this many standard deviations."""

MODEL_ALLOWANCE = 0.02
"""Numbers that no rates can give are called ``contradicted`` if they are off by more than this beyond chance."""

_INTERVAL_ALLOWANCE = 0.005

_ROUNDING = 1e-6
_WIDEST_LOG = 50.0

UNKNOWN_VARIANCE = 0.25
"""Variance of a rate of which nothing is known, the largest that a share can have."""


class ErrorRate(NamedTuple):
    """Estimated error rates of reference answers.

    Attributes
    ----------
    zero, one : float
        η0 = P(ŷ=1 | y=0) and η1 = P(ŷ=0 | y=1), in [0, .475].
    low, high : float
        Interval of their mean, within [0, .475], around it.
    effective_questions : float
        (Σw)²/Σw² of the questions behind the truth-free part; 0 if there are none.
    status : str
        ``insufficient`` below 50 effective questions; else ``uninformative`` if η0 + η1 > .8 (so also wherever the
        estimate is stuck at .475); ``balanced`` where an estimator needs unequal shares of zeros and ones and has
        equal ones; ``contradicted`` where numbers came out that no rates can give; else ``ok``.
    variance : float
        Of the truth-free estimate, at most ¼; ¼ also where it is not known.
    """

    zero: float
    one: float
    low: float
    high: float
    effective_questions: float
    status: EstimateStatus
    variance: float


def _check_interval(rate: ErrorRate) -> None:
    """Refuse an interval that goes beyond what rates can be."""
    half = 0.5 * abs(rate.zero - rate.one)
    if not (rate.low <= rate.high and rate.high + half <= 1.0 + _ROUNDING):
        msg = f"interval is {rate.low!r}..{rate.high!r}, of rates {rate.zero!r} and {rate.one!r}"
        raise FormulaInputError(msg)


ERROR_RATE = Fields(
    ErrorRate,
    {
        "status": OneOf(get_args(EstimateStatus)),
        **dict.fromkeys(("zero", "one", "low", "high"), SHARE),
        "effective_questions": AT_LEAST_0,
        "variance": Numbers(low=0.0, high=UNKNOWN_VARIANCE),
    },
    _check_interval,
)


class PricedRates(NamedTuple):
    """Error rates to price losses with.

    Attributes
    ----------
    zero, one : float
        η0 and η1, whose sum is at most .8.
    capped : bool
        Whether it was above, and they were scaled down.
    """

    zero: float
    one: float
    capped: bool


@checked(zero=SHARE, one=SHARE)
def priced(zero: float, one: float) -> PricedRates:
    """Error rates as they enter prices: if their sum exceeds .8, both are scaled to sum to .8.

    So d = 1 - η0 - η1 ≥ .2, and nothing is divided by almost nothing.

    Parameters
    ----------
    zero, one : float
        η0 and η1, in [0, 1].

    Returns
    -------
    PricedRates

    Examples
    --------
    >>> priced(0.1, 0.3)
    PricedRates(zero=0.1, one=0.3, capped=False)
    >>> priced(0.5, 0.5)
    PricedRates(zero=0.4, one=0.4, capped=True)
    """
    total = zero + one
    if total <= HIGHEST_PRICED_SUM:
        return PricedRates(zero, one, capped=False)
    return PricedRates(zero * HIGHEST_PRICED_SUM / total, one * HIGHEST_PRICED_SUM / total, capped=True)


@checked(rate=ERROR_RATE)
def interval_ends(rate: ErrorRate) -> tuple[tuple[float, float], ...]:
    """Both rates along their interval, shifted alike, wherever a regret can be largest; for `live_bounds`.

    A rate that would fall below 0 stays there, and the other falls twice as fast, so that the mean goes all the way
    down to ``low``. Between the rates returned a regret rises or falls throughout: it is a Möbius function of the mean.

    Parameters
    ----------
    rate : ErrorRate

    Returns
    -------
    tuple of (float, float)
        (η0, η1) at ``low`` first, at ``high`` last, and between them those where one rate reaches 0, if it does.

    Examples
    --------
    >>> ends = interval_ends(ErrorRate(0.1, 0.3, 0.15, 0.25, 500.0, "ok", 0.001))
    >>> [(round(zero, 3), round(one, 3)) for zero, one in ends]
    [(0.05, 0.25), (0.15, 0.35)]
    >>> ends = interval_ends(ErrorRate(0.1, 0.3, 0.05, 0.25, 500.0, "ok", 0.001))
    >>> [(round(zero, 3), round(one, 3)) for zero, one in ends]
    [(0.0, 0.1), (0.0, 0.2), (0.15, 0.35)]
    """
    half = 0.5 * (rate.zero - rate.one)
    return rate_corners(rate.low, rate.high, half, half)


def rate_corners(low: float, high: float, least: float, most: float) -> tuple[tuple[float, float], ...]:
    """Corners (η0, η1) of all rates with a mean and half a difference, (η0 - η1)/2, between these; none is below 0.

    The others are averages of the corners. By their means, smallest first. Where the mean is less than a difference
    allows, the difference is as large as it can be.
    """
    kinks = {abs(half) for half in (least, most) if low < abs(half) < high}
    corners = [
        (mean + half, mean - half)
        for mean in sorted([low, high, *kinks])
        for half in dict.fromkeys(min(max(bound, -mean), mean) for bound in (least, most))
    ]
    return tuple(corners)


def effective_size(weight: float, weight2: float) -> float:
    """How many questions of equal weight would say as much: (Σw)²/Σw²; 0 for none."""
    return weight * weight / weight2 if weight2 > 0.0 else 0.0


def check_sums(
    sums: Sequence[float], variables: Iterable[tuple[float, float]] = (), low: float = 0.0, high: float = 1.0
) -> None:
    """Refuse sums that no questions have.

    Parameters
    ----------
    sums : sequence of float
        All of them; Σw and Σw² first.
    variables : iterable of (float, float)
        Of each number x that was summed Σw·x and Σw·x².
    low, high : float
        Between which each x lies.

    Raises
    ------
    FormulaInputError
        If they contradict one another by more than rounding.
    """
    for one in sums:
        NUMBER.admit("a sum", NUMBER.read("a sum", one))
    weight, weight2, *_ = sums
    room = _ROUNDING * (1.0 + abs(weight))
    # Σw² may be above (Σw)²: where only some of a question's rounds count, both have the same share of w and of w².
    fits = weight >= 0.0 <= weight2 and (weight2 > 0.0 or weight <= room) and (weight > 0.0 or weight2 <= room)
    for total, square in variables if fits else ():
        fits &= low * weight - room <= total <= high * weight + room
        fits &= square <= max(low * low, high * high) * weight + room
        fits &= total * total <= (square + room) * (weight + room)
    if not fits:
        msg = f"sums are {[float(one) for one in sums]}: no questions have these"
        raise FormulaInputError(msg)


def unknown_rate(effective: float) -> ErrorRate:
    """The estimate where votes say nothing at all: both rates at the highest, and anything possible."""
    status = status_of(effective, HIGHEST_RATE, HIGHEST_RATE)
    return ErrorRate(HIGHEST_RATE, HIGHEST_RATE, 0.0, HIGHEST_RATE, effective, status, UNKNOWN_VARIANCE)


def interval_of_distance(mean: float, distance: float, relative: float, confidence: float) -> tuple[float, float]:
    """Interval of (η0+η1)/2 from d = 1 - η0 - η1 > 0 and the standard deviation of ln d.

    ``½(1 - d·exp(±z·sd))``, widened by the model's own error of .005 and cut, so that ``0 ≤ low ≤ mean ≤ high ≤ .475``.
    """
    factor = math.exp(min(normal_quantile(confidence) * relative, _WIDEST_LOG))
    low, high = 0.5 * (1.0 - distance * factor), 0.5 * (1.0 - distance / factor)
    return min(max(low - _INTERVAL_ALLOWANCE, 0.0), mean), max(min(high + _INTERVAL_ALLOWANCE, HIGHEST_RATE), mean)


def status_of(effective: float, zero: float, one: float) -> EstimateStatus:
    """Status that follows from the amount of data and the size of the rates."""
    if effective < FEWEST_EFFECTIVE_QUESTIONS:
        return "insufficient"
    return "uninformative" if zero + one > HIGHEST_PRICED_SUM else "ok"


@lru_cache(maxsize=64)
def normal_quantile(confidence: float) -> float:
    """Half-width of a two-sided normal interval in standard deviations: 1.96 for .95."""
    upper = 0.5 + 0.5 * confidence
    return NormalDist().inv_cdf(upper) if upper < 1.0 else -NormalDist().inv_cdf(0.5 - 0.5 * confidence)

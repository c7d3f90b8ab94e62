"""How far is a forecast from an answer? Proper losses, in [0, B]; smaller is better.

Their logarithm has the same bits on every processor.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from stream_peer.numerics.arguments import (
    ANSWER_BITS,
    ANSWERS,
    CLIP,
    EACH_FORECAST,
    Answers,
    FloatArray,
    Numbers,
    checked,
    unchecked,
)

__all__ = [
    "LOG",
    "LOSSES",
    "SPHERICAL",
    "SQUARED",
    "LogLoss",
    "ProperLoss",
    "Sides",
    "SphericalLoss",
    "SquaredLoss",
    "TwoSidedLoss",
    "portable_log",
    "portable_log_of",
    "squared_loss",
]

_LN_2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476
_TERMS_BEFORE = tuple(1.0 / divisor for divisor in range(19, 1, -2))
_LARGEST_FLOAT = sys.float_info.max
_LAST_TERM = 1.0 / 21.0
"""Of z¹⁰; z¹¹/23 < 1e-18 for every z = s² that occurs, so the rest is below a double's last digit."""


@checked(values=Numbers("...", low=0.0, high=_LARGEST_FLOAT, above=True))
def portable_log(values: FloatArray) -> FloatArray:
    """Natural logarithm, bit for bit the same on every processor.

    ``ln(m·2^e) = e·ln 2 + 2·(s + s³/3 + s⁵/5 + …)`` with ``s = (m-1)/(m+1)`` and m within [√½, √2]. The last digit of
    numpy's logarithm depends on the vector instructions that it finds, that of sums, products and quotients does
    not: what reaches the service's state must not depend on the machine.

    Parameters
    ----------
    values : (..., n) float64
        Positive and finite.

    Returns
    -------
    (..., n) float64
        Within 2e-15 of ln for values in [1e-3, 1e3]; elsewhere within 5e-16 times the larger of 1 and ``|ln|``.

    Examples
    --------
    >>> import numpy as np
    >>> portable_log(np.array([1.0, 0.5, 1e-300])).round(6)
    array([   0.      ,   -0.693147, -690.775528])
    """
    mantissa, exponent = np.frexp(values)
    low = mantissa < _SQRT_HALF
    mantissa = mantissa + mantissa * low
    exponent = exponent - low
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series: FloatArray = z * _LAST_TERM
    for coefficient in _TERMS_BEFORE:
        series += coefficient
        series *= z
    series += 1.0
    series *= s
    series += series
    series += exponent * _LN_2
    return series


@checked(value=Numbers(low=0.0, high=_LARGEST_FLOAT, above=True))
def portable_log_of(value: float) -> float:
    """`portable_log` of one number, with the same bits; an array of one costs ten times as much.

    Parameters
    ----------
    value : float
        Positive and finite.

    Returns
    -------
    float

    Examples
    --------
    >>> bool(portable_log_of(0.5) == portable_log(np.array([0.5]))[0])
    True
    """
    mantissa, exponent = math.frexp(value)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = mantissa + mantissa, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = z * _LAST_TERM
    for coefficient in _TERMS_BEFORE:
        series = (series + coefficient) * z
    series = (series + 1.0) * s
    return series + series + exponent * _LN_2


class Sides(NamedTuple):
    """Losses of forecasts for either answer.

    Attributes
    ----------
    if_one, if_zero : (..., n) float64
        ℓ(p, 1) and ℓ(p, 0).
    """

    if_one: FloatArray
    if_zero: FloatArray


class ProperLoss(Protocol):
    """A loss ℓ(p, y) in [0, `upper`] whose expectation is smallest at the true probability.

    Attributes
    ----------
    name : str
    upper : float
        B, the largest value. Learners that want losses in [0, 1] get ``scaled``.
    """

    @property
    def name(self) -> str:
        """As settings call it."""
        ...

    @property
    def upper(self) -> float:
        """The largest value B."""
        ...

    def sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, B]; forecasts are not checked."""
        ...

    def scaled_sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, 1]; forecasts are not checked. What the service sums."""
        ...

    def __call__(self, forecasts: FloatArray, outcome: Answers) -> FloatArray:
        """Losses in [0, B], elementwise."""
        ...

    def scaled(self, forecasts: FloatArray, outcome: Answers) -> FloatArray:
        """Losses divided by B, elementwise."""
        ...


class TwoSidedLoss(ABC):
    """A proper loss of which only the losses for either answer have to be written: base of those that are here.

    ``ℓ(p, y) = y·ℓ(p, 1) + (1 - y)·ℓ(p, 0)``: a soft outcome y in [0, 1] is read linearly, which keeps the identities
    in the section "Asymmetric error rate" of Liu & Helmbold. Calls and ``scaled`` take forecasts of shape (..., n)
    and an outcome that is one number or broadcasts to that shape.

    Raises
    ------
    ForecastRangeError
        When called: if a forecast is NaN or outside [0, 1].
    FormulaInputError
        When called: if an outcome is NaN or outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> class Brier(TwoSidedLoss):
    ...     name, upper = "both sides", 2.0
    ...
    ...     def sides(self, forecasts):
    ...         return Sides(2.0 * (1.0 - forecasts) ** 2, 2.0 * forecasts**2)
    >>> loss = Brier()
    >>> loss(np.array([0.5, 1.0]), 0).tolist(), loss.scaled(np.array([0.5, 1.0]), 0).tolist()
    ([0.5, 2.0], [0.25, 1.0])
    """

    name: str
    upper: float

    @abstractmethod
    def sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, B]; forecasts are not checked."""

    def scaled_sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, 1]; forecasts are not checked. What the service sums."""
        if_one, if_zero = self.sides(forecasts)
        return Sides(if_one / self.upper, if_zero / self.upper)

    @checked(forecasts=EACH_FORECAST, outcome=ANSWERS)
    def __call__(self, forecasts: FloatArray, outcome: Answers) -> FloatArray:
        """Losses in [0, B]; smaller is better. Raises if a forecast or an outcome is outside [0, 1]."""
        return read_linearly(self.sides(forecasts), outcome)

    @checked(forecasts=EACH_FORECAST, outcome=ANSWERS)
    def scaled(self, forecasts: FloatArray, outcome: Answers) -> FloatArray:
        """Losses divided by B; smaller is better. Raises if a forecast or an outcome is outside [0, 1]."""
        return read_linearly(self.scaled_sides(forecasts), outcome)


def read_linearly(sides: Sides, answer: Answers) -> FloatArray:
    """Loss against an answer that is 0, 1 or between: exactly one of the sides, or a mixture of them."""
    loss: FloatArray = answer * sides.if_one + (1 - answer) * sides.if_zero
    return loss


@checked(forecasts=EACH_FORECAST, outcome=ANSWER_BITS)
def squared_loss(forecasts: FloatArray, outcome: Answers) -> FloatArray:
    """Squared distance of each forecast from the outcome (Brier's score of one question).

    ``ℓ(p, y) = (y - p)²``, the loss of the section "Application to Square Loss" of Liu & Helmbold. It is proper:
    if the outcome is 1 with probability q, its expectation exceeds that of forecasting q by ``(p - q)²`` (Lemma 1).

    Parameters
    ----------
    forecasts : (..., n) float64
        Probabilities that the outcome is 1, in [0, 1].
    outcome : {0, 1} or array of them
        y, or ŷ. With leave-one-out references each forecast has its own. For soft ones use `SquaredLoss`, which
        reads them linearly: the squared distance from an answer between 0 and 1 is another number.

    Returns
    -------
    (..., n) float64
        Losses in [0, 1]; smaller is better.

    Examples
    --------
    >>> import numpy as np
    >>> squared_loss(np.array([0.9, 0.5]), 1)
    array([0.01, 0.25])
    """
    distance: FloatArray = forecasts - outcome
    return distance * distance


@dataclass(frozen=True)
class SquaredLoss(TwoSidedLoss):
    """The squared loss as a `ProperLoss`.

    ``ℓ(p, y) = (y - p)²`` for y in {0, 1}, see `squared_loss`; G(p) = -p(1 - p), B = 1.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredLoss()(np.array([0.9, 0.5]), 1)
    array([0.01, 0.25])
    """

    name: str = field(default="squared", init=False)
    upper: float = field(default=1.0, init=False)

    def sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, 1]; forecasts are not checked."""
        return Sides(unchecked(squared_loss)(forecasts, 1), forecasts * forecasts)

    def scaled_sides(self, forecasts: FloatArray) -> Sides:
        """As `sides`: they lie in [0, 1]."""
        return self.sides(forecasts)


@dataclass(frozen=True)
class LogLoss(TwoSidedLoss):
    """Logarithmic loss of clipped forecasts.

    ``ℓ(p, y) = -ln(1 - |y - p̄|)`` with p̄ = p clipped to [ε, 1 - ε], so that forecasts of exactly 0 and 1 have a
    finite loss; G(p) = p·ln p + (1 - p)·ln(1 - p), B = -ln ε. Clipped, it is one of the bounded proper
    losses to which the section "Loss calibration" of Liu & Helmbold extends: no forecast within [ε, 1 - ε] does
    better than the one that is believed.

    Parameters
    ----------
    clip : float
        ε, in (0, ½). The default, .001, makes B = 6.9: an expert that is certain and wrong loses as much as
        ten that said ½. A smaller ε lets one such mistake outweigh more of everything else.

    Raises
    ------
    FormulaInputError
        If ``clip`` is outside (0, ½).

    Notes
    -----
    Made of the four basic operations only, see `portable_log`: losses reach the service's state, which must not
    depend on the processor.

    Examples
    --------
    >>> import numpy as np
    >>> LogLoss()(np.array([0.9, 0.5, 0.0]), 1).round(4)
    array([0.1054, 0.6931, 6.9078])
    >>> LogLoss().scaled(np.array([0.9, 0.5, 0.0]), 1).round(4)
    array([0.0153, 0.1003, 1.    ])
    """

    clip: float = 0.001
    name: str = field(default="log", init=False)
    upper: float = field(init=False)

    def __post_init__(self) -> None:
        CLIP.admit("clip", CLIP.read("clip", self.clip))
        object.__setattr__(self, "upper", -float(unchecked(portable_log)(np.array([self.clip]))[0]))

    def sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, B]; forecasts are not checked."""
        chances = np.stack((forecasts, 1.0 - forecasts))
        np.maximum(chances, self.clip, out=chances)
        np.minimum(chances, 1.0 - self.clip, out=chances)
        if_one, if_zero = -unchecked(portable_log)(chances)
        return Sides(if_one, if_zero)


@dataclass(frozen=True)
class SphericalLoss(TwoSidedLoss):
    """Spherical loss: one minus the cosine between the forecast and the outcome.

    ``ℓ(p, y) = 1 - P(y)/√(p² + (1 - p)²)`` with P(1) = p, P(0) = 1 - p; G(p) = √(p² + (1 - p)²), B = 1. One of
    the bounded proper losses that the section "Loss calibration" of Liu & Helmbold extends to.

    Examples
    --------
    >>> import numpy as np
    >>> SphericalLoss()(np.array([0.9, 0.5, 0.0]), 1).round(4)
    array([0.0061, 0.2929, 1.    ])
    """

    name: str = field(default="spherical", init=False)
    upper: float = field(default=1.0, init=False)

    def sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, 1]; forecasts are not checked."""
        against = 1.0 - forecasts
        length = np.sqrt(forecasts * forecasts + against * against)
        return Sides(1.0 - forecasts / length, 1.0 - against / length)


SQUARED = SquaredLoss()
LOG = LogLoss()
SPHERICAL = SphericalLoss()

LOSSES: Mapping[str, ProperLoss] = MappingProxyType({loss.name: loss for loss in (SQUARED, LOG, SPHERICAL)})
"""The losses that settings can name."""

"""Any proper loss from a convex function: the representation of Savage."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    CLIP,
    EACH_FORECAST,
    HALF_RATE,
    NUMBER,
    Each,
    FloatArray,
    Has,
    Numbers,
    checked,
)
from stream_peer.numerics.losses import Sides, TwoSidedLoss
from stream_peer.numerics.peer_losses import Rate

Curve: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of forecasts, elementwise."""

_TRIAL_FORECASTS = 65
_TOLERANCE = 1e-9
_HIGHEST_ORDER = 16.0
_OFFSET = Each(NUMBER, 2)
_CLIP = replace(CLIP, above=False)


@dataclass(frozen=True)
class SavageLoss(TwoSidedLoss):
    """The proper loss of a convex function G.

    ``ℓ(p, y) = -G(p) - (y - p)·G'(p) + φ(y)``, from the appendix "Savage representation" of Liu & Helmbold. Every
    proper loss has this form. If the outcome is 1 with probability q, forecasting p instead of q costs
    ``G(q) - G(p) - (q - p)·G'(p)``, the distance of G at q from its tangent at p, which is never negative.

    Notes
    -----
    Erratum E11: the paper sums up with ``(1-p)^y·p^(1-y)`` in the place of ``y - p``, which for y = 0 has the
    wrong sign.

    Parameters
    ----------
    name : str
    potential, slope : callable
        G and its derivative (or a subgradient), of an array of forecasts, elementwise.
    clip : float
        ε in [0, ½): forecasts are clipped to [ε, 1 - ε] first. Above 0 where the loss is unbounded.
    offset : (float, float), optional
        φ(0) and φ(1). By default such that the best forecast of either outcome has loss 0.

    Raises
    ------
    FormulaInputError
        If ``clip`` is out of its range, a value is not finite (clip more), G lies below a tangent (not convex, or
        G' not its slope), or a loss is negative (raise the offset); checked at 65 forecasts.

    Examples
    --------
    >>> import numpy as np
    >>> squared = SavageLoss("brier", lambda p: p * p - p, lambda p: 2.0 * p - 1.0)
    >>> squared(np.array([0.9, 0.5]), 1).round(12)
    array([0.01, 0.25])
    >>> squared.upper
    1.0
    """

    name: str
    potential: Curve
    slope: Curve
    clip: float = 0.0
    offset: tuple[float, float] | None = None
    upper: float = field(init=False)
    _offset: tuple[float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _CLIP.admit("clip", _CLIP.read("clip", self.clip))
        for name in ("potential", "slope"):
            Has().read(name, getattr(self, name))
        if self.offset is not None:
            _OFFSET.admit("offset", _OFFSET.read("offset", self.offset))
        trial = np.linspace(self.clip, 1.0 - self.clip, _TRIAL_FORECASTS)
        if_one, if_zero = self._without_offset(trial)
        self._check_convexity(trial, if_one, if_zero)
        offset = self.offset or (-float(if_zero[0]), -float(if_one[-1]))
        lowest = min(float(if_zero[0]) + offset[0], float(if_one[-1]) + offset[1])
        highest = max(float(if_zero[-1]) + offset[0], float(if_one[0]) + offset[1])
        if lowest < -_TOLERANCE * highest or not highest > 0.0:
            msg = f"offset {offset!r} makes losses lie in {lowest!r}..{highest!r}, not above 0"
            raise FormulaInputError(msg)
        object.__setattr__(self, "_offset", offset)
        object.__setattr__(self, "upper", highest)

    def sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, B]; forecasts are not checked."""
        clipped = np.minimum(np.maximum(forecasts, self.clip), 1.0 - self.clip)
        if_one, if_zero = self._without_offset(clipped)
        zero, one = self._offset
        return Sides(self._within_range(if_one + one), self._within_range(if_zero + zero))

    def _without_offset(self, forecasts: FloatArray) -> Sides:
        level, slope = values_and_slopes(self.potential, self.slope, forecasts)
        return Sides(-level - (1.0 - forecasts) * slope, -level + forecasts * slope)

    def _within_range(self, losses: FloatArray) -> FloatArray:
        """Without what rounding left beyond the ends."""
        return np.minimum(np.maximum(losses, 0.0), self.upper)

    def _check_convexity(self, trial: FloatArray, if_one: FloatArray, if_zero: FloatArray) -> None:
        """No trial forecast may expect less of another one than of itself."""
        believed = trial[:, np.newaxis]
        expected = believed * if_one + (1.0 - believed) * if_zero
        gain = np.diagonal(expected)[:, np.newaxis] - expected
        scale = float(np.maximum.reduce(np.abs(expected), None))
        worst = int(np.argmax(gain))
        if gain.flat[worst] > _TOLERANCE * scale:
            chance, said = (float(trial[place]) for place in divmod(worst, len(trial)))
            msg = f"who believes {chance!r} gains by forecasting {said!r}: G is not convex, or G' not its slope"
            raise FormulaInputError(msg)


def values_and_slopes(potential: Curve, slope: Curve, forecasts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """G(p) and G'(p), or an error that names the forecast at which one of them is not finite."""
    with np.errstate(all="ignore"):
        level, steepness = potential(forecasts), slope(forecasts)
    finite = np.ravel(np.isfinite(level) & np.isfinite(steepness))
    if not np.logical_and.reduce(finite):
        where = float(np.ravel(forecasts)[int(np.argmin(finite))])
        msg = f"G or its slope is not finite at forecast {where!r}: clip forecasts"
        raise FormulaInputError(msg)
    return level, steepness


@checked(clip=CLIP)
def boosting_loss(clip: float = 0.001) -> SavageLoss:
    """Boosting loss: the square root of the odds against what happened.

    ``ℓ(p, 1) = √((1-p)/p)``, ``ℓ(p, 0) = √(p/(1-p))``, less the loss of the best forecast that the clip allows;
    G(p) = -2·√(p(1-p)). The exponential loss of boosting as a loss of probabilities, in the form of the appendix
    "Savage representation" of Liu & Helmbold.

    Parameters
    ----------
    clip : float
        ε in (0, ½): forecasts are clipped to [ε, 1 - ε].

    Returns
    -------
    SavageLoss
        B = √((1-ε)/ε) - √(ε/(1-ε)).

    Raises
    ------
    FormulaInputError
        If ``clip`` is outside (0, ½).

    Examples
    --------
    >>> import numpy as np
    >>> loss = boosting_loss(clip=0.1)
    >>> loss(np.array([0.1, 0.5, 0.9]), 1).round(4)
    array([2.6667, 0.6667, 0.    ])
    """

    def potential(p: FloatArray) -> FloatArray:
        return -2.0 * np.sqrt(p * (1.0 - p))

    def slope(p: FloatArray) -> FloatArray:
        return (2.0 * p - 1.0) / np.sqrt(p * (1.0 - p))

    return SavageLoss("boosting", potential, slope, clip)


@checked(order=Numbers(low=1.0, high=_HIGHEST_ORDER, above=True))
def tsallis_loss(order: float = 1.5) -> SavageLoss:
    """Loss whose uncertainty is the entropy of Tsallis.

    ``G(p) = p^α + (1-p)^α - 1`` in the form of the appendix "Savage representation" of Liu & Helmbold. Order 2 is
    twice the squared loss; near 1 it comes close to the logarithmic loss times α - 1, yet stays bounded.

    Parameters
    ----------
    order : float
        α, in (1, 16].

    Returns
    -------
    SavageLoss
        B = α.

    Raises
    ------
    FormulaInputError
        If ``order`` is outside (1, 16].

    Examples
    --------
    >>> import numpy as np
    >>> tsallis_loss(1.5)(np.array([0.0, 0.5, 1.0]), 1).round(4)
    array([1.5   , 0.2929, 0.    ])
    """

    def potential(p: FloatArray) -> FloatArray:
        return np.asarray(p**order + (1.0 - p) ** order - 1.0, dtype=np.float64)

    def slope(p: FloatArray) -> FloatArray:
        return np.asarray(order * (p ** (order - 1.0) - (1.0 - p) ** (order - 1.0)), dtype=np.float64)

    return SavageLoss(f"tsallis {order:g}", potential, slope)


@checked(potential=Has(), slope=Has(), forecasts=EACH_FORECAST, error_rate=HALF_RATE)
def savage_correction(potential: Curve, slope: Curve, forecasts: FloatArray, error_rate: Rate) -> FloatArray:
    """What to add to the loss against a noisy reference answer, for the proper loss of any convex function.

    ``η·[2·G(p) + (1 - 2p)·G'(p)]``. With ``ℓ(p, y) = -G(p) - (y - p)·G'(p) + φ(y)`` (see `SavageLoss`) it is
    ``-η·[ℓ(p, 0) + ℓ(p, 1)]`` but for a constant, so that the expectation of ``ℓ(p, ŷ)`` plus it is
    ``(1 - 2η)·ℓ(p, y)`` plus a constant. For the squared loss it is ``2η·p·(1 - p) - η``, Theorem 4.

    Notes
    -----
    Erratum E11: the appendix "Savage representation" of Liu & Helmbold says to add ``2η·G(p) - η·G'(p)``. Neither
    adding nor subtracting that cancels what depends on p.

    Parameters
    ----------
    potential, slope : callable
        G and G', elementwise.
    forecasts : (..., n) float64
        In [0, 1], and clipped where G or G' is not finite at the ends.
    error_rate : float or array
        η, in [0, ½].

    Returns
    -------
    (..., n) float64
        In the unit of the loss itself, not scaled.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If the error rate is outside [0, ½], or G or G' not finite at a forecast.

    Examples
    --------
    >>> import numpy as np
    >>> savage_correction(lambda p: p * p - p, lambda p: 2.0 * p - 1.0, np.array([0.0, 0.5]), 0.2)
    array([-0.2, -0.1])
    """
    level, steepness = values_and_slopes(potential, slope, forecasts)
    correction: FloatArray = error_rate * (2.0 * level + (1.0 - 2.0 * forecasts) * steepness)
    return correction

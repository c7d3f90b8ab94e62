"""Any proper loss from a convex function: the representation of Savage."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import Sides, TwoSidedLoss
from stream_peer.numerics.peer_losses import Rate

Curve: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of forecasts, elementwise."""


@dataclass(frozen=True)
class SavageLoss(TwoSidedLoss):
    """The proper loss of a convex function G with slope G', of forecasts clipped to [ε, 1 - ε].

    ``ℓ(p, y) = -G(p) - (y - p)·G'(p) + φ(y)``, from the appendix "Savage representation" of Liu & Helmbold; φ is such
    that the best forecast of either outcome has loss 0, or the ``offset``.

    Notes
    -----
    Erratum E11: the paper sums up with ``(1-p)^y·p^(1-y)`` in the place of ``y - p``, which for y = 0 has the
    wrong sign.

    Examples
    --------
    >>> import numpy as np
    >>> SavageLoss("brier", lambda p: p * p - p, lambda p: 2.0 * p - 1.0)(np.array([0.9, 0.5]), 1).round(12)
    array([0.01, 0.25])
    """

    name: str
    potential: Curve
    slope: Curve
    clip: float = 0.0
    offset: tuple[float, float] | None = None
    upper: float = field(init=False)
    _offset: tuple[float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if_one, if_zero = self._without_offset(np.array([self.clip, 1.0 - self.clip]))
        offset = self.offset or (-float(if_zero[0]), -float(if_one[1]))
        object.__setattr__(self, "_offset", offset)
        object.__setattr__(self, "upper", max(float(if_zero[1]) + offset[0], float(if_one[0]) + offset[1]))

    def sides(self, forecasts: FloatArray) -> Sides:
        """Losses for either answer, in [0, B]; forecasts are not checked."""
        if_one, if_zero = self._without_offset(np.clip(forecasts, self.clip, 1.0 - self.clip))
        zero, one = self._offset
        return Sides(np.clip(if_one + one, 0.0, self.upper), np.clip(if_zero + zero, 0.0, self.upper))

    def _without_offset(self, forecasts: FloatArray) -> Sides:
        level, slope = self.potential(forecasts), self.slope(forecasts)
        return Sides(-level - (1.0 - forecasts) * slope, -level + forecasts * slope)


def savage_correction(potential: Curve, slope: Curve, forecasts: FloatArray, error_rate: Rate) -> FloatArray:
    """What E[ℓ(p, ŷ)] lacks to (1-2η)·ℓ(p, y), up to a constant: ``η·[2·G(p) + (1 - 2p)·G'(p)]``.

    Notes
    -----
    Erratum E11: printed as ``2η·G - η·G'``.

    Examples
    --------
    >>> import numpy as np
    >>> savage_correction(lambda p: p * p - p, lambda p: 2.0 * p - 1.0, np.array([0.0, 0.5]), 0.2)
    array([-0.2, -0.1])
    """
    return error_rate * (2.0 * potential(forecasts) + (1.0 - 2.0 * forecasts) * slope(forecasts))

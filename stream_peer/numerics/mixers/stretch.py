"""Recalibration of a mixed forecast: further from ½, or closer, as outcomes justify."""

from stream_peer.errors import ForecastRangeError
from stream_peer.numerics.losses.arguments import AT_LEAST_0, NUMBER, Numbers, checked

_STRETCH_SHRINKAGE = 5.0


@checked(sum_error_product=NUMBER, sum_square=AT_LEAST_0)
def stretch_factor(sum_error_product: float, sum_square: float) -> float:
    """How much too timid (positive) or too bold (negative) the published mix has been on resolved questions.

    ``β = max(-1, Σ(y-f)(f-½) / (Σ(f-½)² + 5))``, f the mix as published: a shrunk regression through ½. It stops at -1,
    where every stretched forecast is ½: a crowd that was wrong so far is not turned round.

    Parameters
    ----------
    sum_error_product : float
        Σ(y-f)(f-½).
    sum_square : float
        Σ(f-½)² ≥ 0.

    Returns
    -------
    float
        At least -1; 0 without resolved questions.

    Examples
    --------
    >>> stretch_factor(3.0, 25.0), stretch_factor(-40.0, 25.0)
    (0.1, -1.0)
    """
    return max(sum_error_product / (sum_square + _STRETCH_SHRINKAGE), -1.0)


@checked(forecast=Numbers(low=0.0, high=1.0, error=ForecastRangeError), factor=Numbers(low=-1.0))
def stretched(forecast: float, factor: float) -> float:
    """A mixed forecast moved away from ½ by the stretch factor: ``½ + (1+β)(f - ½)``, clipped to [0, 1].

    Parameters
    ----------
    forecast : float
        f, in [0, 1].
    factor : float
        β of `stretch_factor`.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> stretched(0.75, 0.2), stretched(0.9, 0.5)
    (0.8, 1.0)
    """
    return min(max(0.5 + (1.0 + factor) * (forecast - 0.5), 0.0), 1.0)

"""The natural logarithm from the four basic operations, so that it has the same bits on every processor."""

import math
import sys

import numpy as np

from stream_peer.numerics.losses.arguments import FloatArray, Numbers, checked

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

"""The natural logarithm from the four basic operations, so that it has the same bits on every processor."""

import numpy as np

from stream_peer.numerics.losses.forecasts import FloatArray

_LN_2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476
_LAST_TERM = 10
"""z¹¹/23 < 1e-18 for every z = s² that occurs: the rest of the series is below a double's last digit."""


def portable_log(values: FloatArray) -> FloatArray:
    """Natural logarithm, bit for bit the same on every processor.

    ``ln(m·2^e) = e·ln 2 + 2·(s + s³/3 + s⁵/5 + …)`` with ``s = (m-1)/(m+1)`` and m within [√½, √2]. The last digit of
    numpy's logarithm depends on the vector instructions that it finds, that of sums, products and quotients does
    not: what reaches the service's state must not depend on the machine.

    Parameters
    ----------
    values : (..., n) float64
        Positive and finite. Not checked.

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
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = np.full_like(z, 1.0 / (2 * _LAST_TERM + 1))
    for term in range(_LAST_TERM - 1, -1, -1):
        series = series * z + 1.0 / (2 * term + 1)
    logarithm: FloatArray = (exponent - low) * _LN_2 + 2.0 * s * series
    return logarithm

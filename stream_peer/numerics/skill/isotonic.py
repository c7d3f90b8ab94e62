"""What forecasts should have said, were only their order right."""

import numpy as np

from stream_peer.numerics.losses import FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.losses.arguments import FORECAST_ROW, OUTCOMES, checked


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

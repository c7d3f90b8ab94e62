"""How far the forecasts of options, or of thresholds, were from what happened. Smaller is better.

- `multi_category_brier`: options of which one came true
- `ranked_probability_score`: the probability of at most each threshold, and the value that came

Both are squared distances from one of the outcomes that the projections of `coherent` never move away from.
"""

from collections.abc import Sequence

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import FORECAST_ROW, OUTCOMES, FloatArray, IntArray, SmallIntArray, checked

__all__ = ["multi_category_brier", "ranked_probability_score"]


def _check_one(outcomes: IntArray, **_: object) -> None:
    if not len(outcomes) or int(np.count_nonzero(outcomes)) > 1:
        msg = f"outcomes has {len(outcomes)} options of which {int(np.count_nonzero(outcomes))} are 1: at most one is"
        raise FormulaInputError(msg)


def _check_rise(outcomes: IntArray, **_: object) -> None:
    if not len(outcomes) or bool(np.any(np.diff(outcomes) < 0)):
        msg = f"outcomes is {np.asarray(outcomes).tolist()!r}: a value at most one threshold is at most each later one"
        raise FormulaInputError(msg)


@checked(_check_one, forecasts=FORECAST_ROW, outcomes=OUTCOMES)
def multi_category_brier(
    forecasts: FloatArray | Sequence[float], outcomes: IntArray | SmallIntArray | Sequence[int]
) -> float:
    """The Brier score of options: ``Σ_k (p_k - y_k)²``, as Brier (1950) defined it.

    From 0 to 2 if forecasts sum to 1, to n if they need not. Of two options with p and 1 - p it is twice the score of
    a yes/no question, ``2·(p - y)²``.

    Parameters
    ----------
    forecasts : (n,)
        p, a probability for each option, n ≥ 1. They need not sum to 1.
    outcomes : (n,) int
        y: 1 for the option that came true, 0 for the others; all 0 if it is none of these.

    Returns
    -------
    float

    Notes
    -----
    Not in the paper. G. W. Brier, Verification of forecasts expressed in terms of probability (1950).

    Examples
    --------
    >>> round(multi_category_brier([0.5, 0.3, 0.2], [0, 1, 0]), 4)
    0.78
    >>> multi_category_brier([1.0, 0.0], [0, 1])
    2.0
    """
    apart = np.asarray(forecasts) - np.asarray(outcomes)
    return float(np.add.reduce(apart * apart))


@checked(_check_rise, forecasts=FORECAST_ROW, outcomes=OUTCOMES)
def ranked_probability_score(
    forecasts: FloatArray | Sequence[float], outcomes: IntArray | SmallIntArray | Sequence[int]
) -> float:
    """The ranked probability score of a cdf: ``1/n Σ_k (F_k - y_k)²``, the mean Brier score of its thresholds.

    From 0 to 1. It also counts how far off a forecast was: mass beside the outcome costs less than mass far away. With
    thresholds that lie evenly it is proportional to the CRPS, as an integral over the thresholds.

    Parameters
    ----------
    forecasts : (n,)
        F, the probability of at most each threshold, in ascending order, n ≥ 1. They may fall.
    outcomes : (n,) int
        y: 1 where the value is at most the threshold, 0 below; they never fall.

    Returns
    -------
    float

    Notes
    -----
    Not in the paper. E. S. Epstein, A scoring system for probability forecasts of ranked categories (1969), in the form
    of Murphy (1971), over the n thresholds between n + 1 categories.

    Examples
    --------
    >>> round(ranked_probability_score([0.1, 0.4, 0.9], [0, 1, 1]), 4)
    0.1267
    >>> ranked_probability_score([0.0, 0.0, 1.0], [0, 1, 1]) < ranked_probability_score([0.0, 0.0, 0.0], [0, 1, 1])
    True
    """
    apart = np.asarray(forecasts) - np.asarray(outcomes)
    return float(np.add.reduce(apart * apart)) / len(apart)

"""Error rates that independent experts would have, beside those they have."""

import math

import numpy as np

from stream_peer.numerics.error_rates.rate import ERROR_RATE, UNKNOWN_VARIANCE, ErrorRate
from stream_peer.numerics.error_rates.truth import TRUTH_SUMS, TruthSums
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import SHARE, Numbers, checked, unchecked


@checked(error_rates=Numbers("n", 0.0, 1.0))
def majority_error_rate(error_rates: FloatArray) -> float:
    """How often the majority of independent voters is wrong, a tie counting one half.

    ``P(W > n/2) + ½·P(W = n/2)`` for the number W of wrong votes, whose distribution (Poisson's binomial) is built up
    voter by voter, O(n²).

    Parameters
    ----------
    error_rates : (n_experts,) float64
        In [0, 1].

    Returns
    -------
    float
        In [0, 1]; ½ without voters.

    Raises
    ------
    FormulaInputError
        If an error rate is NaN or outside [0, 1].

    Examples
    --------
    >>> round(majority_error_rate(np.array([0.2, 0.2, 0.2])), 6)
    0.104
    """
    n = error_rates.size
    wrong = np.zeros(n + 1)
    wrong[0] = 1.0
    for k, error in enumerate(error_rates.tolist(), start=1):
        wrong[1 : k + 1] = wrong[1 : k + 1] * (1.0 - error) + wrong[:k] * error
        wrong[0] *= 1.0 - error
    more = float(np.add.reduce(wrong[n // 2 + 1 :]))
    return more if n % 2 else more + 0.5 * float(wrong[n // 2])


@checked(error_rate=SHARE, individual_error_rates=Numbers("n", 0.0, 1.0))
def condorcet_gap(error_rate: float, individual_error_rates: FloatArray) -> float:
    """By how much the majority errs more often than independent voters of these error rates would.

    ``η - majority_error_rate(…)``. Far above 0: voters share errors (clusters) or questions differ in difficulty.

    Parameters
    ----------
    error_rate : float
        Of the majority, measured or estimated, in [0, 1].
    individual_error_rates : (n_experts,) float64
        In [0, 1].

    Returns
    -------
    float
        In [-1, 1].

    Raises
    ------
    FormulaInputError
        If an error rate is NaN or outside [0, 1].

    Examples
    --------
    >>> round(condorcet_gap(0.154, np.array([0.2, 0.2, 0.2])), 6)
    0.05
    """
    return error_rate - unchecked(majority_error_rate)(individual_error_rates)


@checked(measured=TRUTH_SUMS, free=ERROR_RATE)
def truth_z(measured: TruthSums, free: ErrorRate) -> float | None:
    """By how many standard deviations the error rate measured on outcomes exceeds the one estimated without them.

    ``(η̂_truth - η̂_free)/√(V1 + V2)``, η̂ the means of both classes' rates, V1 the variance of the measured mean and V2
    ``free.variance``. The only test that sees shared shocks.

    Parameters
    ----------
    measured : TruthSums
    free : ErrorRate
        Such as `MomentSums.estimate` gives.

    Returns
    -------
    float or None
        None with fewer than 50 outcomes or none of one class, and where the other estimate is insufficient or of a
        variance of ¼.

    Examples
    --------
    >>> measured = TruthSums(right_zero=70, wrong_zero=30, right_one=70, wrong_one=30)
    >>> free = ErrorRate(0.1, 0.1, 0.04, 0.16, 2000.0, "ok", 0.0007)
    >>> round(truth_z(measured, free) or 0.0, 2)
    4.77
    """
    mean = unchecked(TruthSums.mean_rate)(measured)
    unknown = free.status == "insufficient" or free.variance >= UNKNOWN_VARIANCE
    if mean is None or unknown or unchecked(TruthSums.estimate)(measured).status == "insufficient":
        return None
    rate, variance = mean
    return (rate - 0.5 * (free.zero + free.one)) / math.sqrt(variance + free.variance)

"""Error rates measured on resolved questions, and their combination with an estimate made without them."""

import math

from stream_peer.numerics.error_rates.rate import HIGHEST_RATE, ErrorRate, normal_quantile, status_of

_MOST_PSEUDO_LABELS = 30.0
_LEAST_PRIOR_RATE = 0.005


def combine_with_truth(
    free: ErrorRate,
    wrong0: float,
    revealed0: float,
    wrong1: float,
    revealed1: float,
    confidence: float = 0.95,
) -> ErrorRate:
    """Correct a truth-free estimate by the errors seen on resolved questions, per class.

    ``η̂_k = (wrong_k + n_k·η̂_free) / (revealed_k + n_k)``, ``n_k = min(η̂_free(1 - η̂_free)/V_free, 30)``: the truth-free
    estimate counts as a Beta prior of at most 30 labels, because more data does not help it where experts
    share errors. Clamped to [0, .475]. Without outcomes of a class that class keeps the truth-free rate.

    Interval of (η0+η1)/2: the half-widths of the truth-free one, scaled by the mean share n_k/(revealed_k + n_k), and
    z times the binomial standard deviation of the revealed part, added as squares. So it starts as the truth-free
    interval and ends as that of the counts.

    Notes
    -----
    Differs from the paper's estimator with limited ground truth twice. It counts disagreements: the paper's indicator
    counts agreements, whose mean is 1 - η. And it divides by the number revealed instead of weighting by 1/p*, which
    needs no p* and has a smaller variance. In n_k an η̂_free below .005 counts as .005, so that a first error does
    not meet a prior of no weight.

    Parameters
    ----------
    free : ErrorRate
        Such as `MomentSums.estimate` gives.
    wrong0, revealed0, wrong1, revealed1 : float
        Weights of wrong reference answers and of all, where the outcome was 0 and where it was 1. 0 ≤ wrong ≤ revealed.
    confidence : float
        In (0, 1), that of ``free``.

    Returns
    -------
    ErrorRate
        With the status of the combined rates; ``effective_questions`` and ``variance`` are those of ``free``.

    Examples
    --------
    >>> from stream_peer.numerics.error_rates.moments import MomentSums
    >>> sums = MomentSums(weight=1000, weight2=1000, pair=250, rest=400, pair2=160, rest2=300, pair_rest=150)
    >>> rate = combine_with_truth(sums.estimate(), wrong0=3, revealed0=30, wrong1=18, revealed1=30)
    >>> round(rate.zero, 4), round(rate.one, 4), round(rate.low, 4), round(rate.high, 4)
    (0.1012, 0.3512, 0.1735, 0.2787)
    """
    zero, share0, noise0 = _corrected(free.zero, free.variance, wrong0, revealed0)
    one, share1, noise1 = _corrected(free.one, free.variance, wrong1, revealed1)
    mean_free, mean = 0.5 * (free.zero + free.one), 0.5 * (zero + one)
    share = 0.5 * (share0 + share1)
    noise = 0.5 * normal_quantile(confidence) * math.sqrt(noise0 + noise1)
    low = mean - math.hypot(share * (mean_free - free.low), noise)
    high = mean + math.hypot(share * (free.high - mean_free), noise)
    status = status_of(free.effective_questions, zero, one)
    return ErrorRate(zero, one, max(low, 0.0), min(high, HIGHEST_RATE), free.effective_questions, status, free.variance)


def _corrected(free_rate: float, variance: float, wrong: float, revealed: float) -> tuple[float, float, float]:
    """One class: the combined rate, the share of the prior in it, the variance of the revealed part."""
    if not revealed > 0.0:
        return free_rate, 1.0, 0.0
    counted = max(free_rate, _LEAST_PRIOR_RATE)
    spread = counted * (1.0 - counted)
    prior = spread / variance if variance * _MOST_PSEUDO_LABELS > spread else _MOST_PSEUDO_LABELS
    total = revealed + prior
    rate = min((wrong + prior * free_rate) / total, HIGHEST_RATE)
    return rate, prior / total, revealed * rate * (1.0 - rate) / (total * total)

"""From logarithms to weights: the one place where learners exponentiate."""

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import BoolArray, FloatArray
from stream_peer.numerics.losses.arguments import AWAKE, LOGS, PRIOR, checked


@checked(logs=LOGS, prior=PRIOR, awake=AWAKE)
def softmax(logs: FloatArray, prior: FloatArray | None = None, awake: BoolArray | None = None) -> FloatArray:
    """Weights proportional to the prior times the exponentials of ``logs``, over the experts that are awake.

    ``w_i = q_i·exp(l_i - max l) / Σ_j q_j·exp(l_j - max l)``: never overflows, and ratios of weights stay right down to
    the smallest numbers. Where all of q·exp(l) is 0, ``w ∝ q``; where that is 0 as well, all that are awake weigh the
    same.

    Parameters
    ----------
    logs : (..., n) float64
        Finite or -inf.
    prior : (..., n) float64, optional
        q ≥ 0, of any sum; equal for all if left out.
    awake : (..., n) bool, optional
        Who may get weight; everybody if left out.

    Returns
    -------
    (..., n) float64
        Non-negative, summing to 1 along the last axis; all 0 where nobody is awake.

    Raises
    ------
    FormulaInputError
        If a log weight of an expert that is awake is NaN or +inf, or a prior is negative, NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([1000.0, 1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    >>> softmax(np.zeros(3), prior=np.array([1.0, 3.0, 9.0]), awake=np.array([True, True, False]))
    array([0.25, 0.75, 0.  ])
    """
    if logs.shape[-1] == 0:
        return np.zeros(logs.shape)
    start = None if prior is None else _log_prior(prior)
    scored = _among(logs if start is None else logs + start, awake)
    peak = np.maximum.reduce(scored, axis=-1, keepdims=True)
    if np.count_nonzero(np.isfinite(peak)) == peak.size:
        return _shares(scored, peak)
    return _with_a_start(scored, start, awake)


def _shares(logs: FloatArray, peak: FloatArray) -> FloatArray:
    weights = logs - peak
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis=-1, keepdims=True)
    return weights


def _among(logs: FloatArray, awake: BoolArray | None) -> FloatArray:
    return logs if awake is None else np.where(awake, logs, -np.inf)


def _log_prior(prior: FloatArray) -> FloatArray:
    """Logarithms of the prior, -inf where it is 0."""
    return np.log(prior, out=np.full(prior.shape, -np.inf), where=prior > 0.0)


def _with_a_start(scored: FloatArray, start: FloatArray | None, awake: BoolArray | None) -> FloatArray:
    """Weights where in some row nobody has any: by the prior there, or all the same."""
    for spare in (start, np.zeros(scored.shape)):
        if spare is not None:
            stuck = np.maximum.reduce(scored, axis=-1, keepdims=True) == -np.inf
            scored = np.where(stuck, _among(spare, awake), scored)
    peak = np.maximum.reduce(scored, axis=-1, keepdims=True)
    refused = ~(scored < np.inf)
    if refused.any():
        place = tuple(np.argwhere(refused)[0])
        msg = f"log weight of expert {int(place[-1])} is {float(scored[place])}"
        raise FormulaInputError(msg)
    nobody = peak == -np.inf
    weights = _shares(np.where(nobody, 0.0, scored), np.where(nobody, 0.0, peak))
    return np.where(nobody, 0.0, weights)

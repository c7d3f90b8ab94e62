"""Mixers: sums in, mixing weights out.

Combining is another task than following one expert: it competes with the best convex combination of those present. The
first two mixers do so on the loss linearised at the plain mean b, on sums that no order of the questions changes; the
third at its own forecast f, as it was made. Sums per expert, over the questions it answered:

- from reference answers alone: ``mix_level`` Σ 2b(b-p), ``mix_slope`` Σ 2(b-p), ``mix_answer`` Σ 2(b-p)·ŷ_i;
- from outcomes: ``mix_regret`` Σ [2b(b-p) - 2(b-p)·y - ½(b-p)²];
- from outcomes: ``fast_regret`` Σ 2(f-y)(f-p), ``fast_absolute`` Σ |the same|.

The names are those of the columns of a feed. In the mathematics they are SU, SV, SVY, RH, RF and AF.

½(b-p)² is half of the curvature that linearising throws away; it needs no outcome. The paper has no such part.

The first two weigh experts by their regret a question. Textbook rates, which divide a sum by the root of the number of
questions, put all weight on one expert in the end, however little better it is; what an expert is worth to a
combination does not grow with the number of questions, only how well it is known. In version 1 of
the method the number is the same for all present: who skips a question is weighed as who says what the mean says. From
version 2 on it is each expert's own (``own_counts``).

`mixers_side_by_side` reads the same sums under several settings at once. `median` and `logit_mean` are published beside
the mixed forecast, for comparison.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    FORECAST_ROW,
    NUMBER,
    Each,
    Fields,
    FloatArray,
    Numbers,
    Optional,
    checked,
)

__all__ = [
    "SideBySide",
    "logit_mean",
    "median",
    "mixers_side_by_side",
]

_CLIP = 0.02


def _check_somebody(forecasts: FloatArray) -> None:
    """Refuse a round without forecasts."""
    if not forecasts.size:
        msg = f"forecasts are {forecasts!r}: of nobody there is no mean"
        raise FormulaInputError(msg)


@checked(_check_somebody, forecasts=FORECAST_ROW)
def median(forecasts: FloatArray) -> float:
    """The middle one of the forecasts, of an even number the mean of the two in the middle.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, n ≥ 1.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    FormulaInputError
        If there is no forecast.

    Examples
    --------
    >>> import numpy as np
    >>> round(median(np.array([0.9, 0.2, 0.6, 0.3])), 4)
    0.45
    """
    ordered = forecasts.copy()
    ordered.sort()
    middle = len(ordered) // 2
    return float(ordered[middle] + ordered[-1 - middle]) / 2.0


@checked(_check_somebody, forecasts=FORECAST_ROW)
def logit_mean(forecasts: FloatArray) -> float:
    """The forecast whose log odds are the mean of the experts' log odds, each clipped to [.02, .98].

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities, n ≥ 1. The clip keeps one forecast of 0 or 1 from deciding alone.

    Returns
    -------
    float
        In [.02, .98].

    Raises
    ------
    FormulaInputError
        If there is no forecast.

    Examples
    --------
    >>> import numpy as np
    >>> round(logit_mean(np.array([0.2, 0.8, 1.0])), 4)
    0.7854
    """
    clipped = np.minimum(np.maximum(forecasts, _CLIP), 1.0 - _CLIP)
    log_odds = float(np.add.reduce(np.log(clipped / (1.0 - clipped)))) / forecasts.size
    return 1.0 / (1.0 + math.exp(-log_odds))


PEER_PRIOR = 40.0
"""So many questions at which all did as the mean does go before the regrets by reference answers."""
TRUTH_PRIOR = 10.0
"""The same before the regrets by outcomes, which are less noisy."""


def peer_mixer_logs(
    sums: FloatArray,
    counts: FloatArray,
    resolved: FloatArray,
    voices: FloatArray | None = None,
    *,
    nominal: float,
    rate: float,
    own_counts: bool,
) -> FloatArray:
    """Logarithms, unscaled, of the mixing weights from reference answers, before their uniform share.

    ``rate·((1-2η)·mix_level + η·mix_slope - mix_answer)/(n̄+40)``, of which one softmax makes the weights of all mixers:
    exponential weights on the linearised peer regret 2b(b-p) - 2(b-p)·ỹ a question, ỹ = (ŷ-η)/(1-2η), on the unit
    scale. n̄ is the mean count of those present; 40 questions without regret are put before. The error rate η is
    nominal on purpose: estimated ones mix worse. ``sums`` are (4, n): ``mix_level`` to ``mix_regret``.

    ``own_counts``: each expert's own numbers count, by `pooled_regrets` with these ``voices``, and outcomes as well:
    each as four more reference answers, its regret double. Else nothing is read of outcomes.
    """
    level, slope, answer, mix_regret = sums
    regrets: FloatArray = (1.0 - 2.0 * nominal) * level + nominal * slope - answer
    if own_counts:
        return rate * _pooled_peers(regrets, counts, mix_regret, resolved, voices)
    return rate / (_mean_count(counts) + PEER_PRIOR) * regrets


_OF_OUTCOME, _ANSWERS_OF_OUTCOME = 2.0, 4.0
"""How much a regret by an outcome is of one by a reference answer, and as how many more answers it counts."""


def _pooled_peers(
    regrets: FloatArray, counts: FloatArray, mix_regret: FloatArray, resolved: FloatArray, voices: FloatArray | None
) -> FloatArray:
    """Pooled regrets of reference answers and outcomes together.

    For who is above the average, the mean number of answers n̄ takes the place of a smaller own one: so to stay away
    from hard questions earns nothing, and what was earned fades while others answer.
    """
    by_outcomes = _ANSWERS_OF_OUTCOME * resolved
    n_voices = counts.shape[-1] if voices is None else float(np.add.reduce(voices)) or 1.0
    earning = np.maximum(counts, _total(counts, voices) / n_voices) + by_outcomes
    return pooled_regrets(regrets + _OF_OUTCOME * mix_regret, counts + by_outcomes, PEER_PRIOR, earning, voices)


def _total(amounts: FloatArray, voices: FloatArray | None) -> FloatArray | float:
    """The sum over those present, each by its part of a voice; of one row a plain number, which is faster."""
    counted = amounts if voices is None else voices * amounts
    if counted.ndim == 1:
        return float(np.add.reduce(counted))
    total: FloatArray = np.add.reduce(counted, axis=-1, keepdims=True)
    return total


def _average(regrets: FloatArray, counts: FloatArray, voices: FloatArray | None) -> FloatArray | float:
    """Regrets a question; 0 where nothing is counted yet."""
    total, answered = _total(regrets, voices), _total(counts, voices)
    if isinstance(answered, float):
        return total / (answered if answered > 0.0 else 1.0)
    return total / np.where(answered > 0.0, answered, 1.0)


def pooled_regrets(
    regrets: FloatArray,
    counts: FloatArray,
    prior: float,
    earning: FloatArray | None = None,
    voices: FloatArray | None = None,
) -> FloatArray:
    """Regrets a question above the average of all present, r̄ = ΣR/Σn, shrunk by k questions of an average expert.

    ``(R_i - n_i·r̄)/(n_i + k)``, which is ``(R_i + k·r̄)/(n_i + k)`` but for a constant: a regret that nearly everybody
    has a little of costs nobody more for answering more, and somebody new, who begins as an average expert, weighs no
    more than who has answered well for long. Nothing is counted yet: all are 0.

    Parameters
    ----------
    regrets, counts : (..., n) float64
        R and n ≥ 0 of those present.
    prior : float
        k > 0, so many questions of an average expert.
    earning : (..., n) float64, optional
        What n_i + k has in place of n_i where the regret is above the average.
    voices : (n,) float64, optional
        How much each counts in the sums of the average: who shares one voice with k others counts 1/(k + 1), so that no
        group moves the average further than one expert does. Without them everybody counts 1.
    """
    above: FloatArray = regrets - _average(regrets, counts, voices) * counts
    shrunk: FloatArray = above / ((counts if earning is None else np.where(above > 0.0, earning, counts)) + prior)
    return shrunk


def with_uniform_share(weights: FloatArray, uniform_share: float) -> FloatArray:
    """``σ·uniform + (1-σ)·w`` over the experts present, at least one."""
    return uniform_share / weights.size + (1.0 - uniform_share) * weights


def truth_slow_logs(
    mix_regret: FloatArray, resolved: FloatArray, voices: FloatArray | None = None, *, rate: float, own_counts: bool
) -> FloatArray:
    """Logarithms, unscaled, of the mixing weights from outcomes, by how each expert did against the plain mean.

    ``rate·mix_regret/(m̄+10)``, m̄ the mean number of resolved questions of those present; ten without regret are put
    before. The fast mixer is AdaNormalHedge on ``fast_regret`` and ``fast_absolute``: it competes with the best
    combination at its own forecast, and so goes on learning where the combination that it has reached errs, which the
    plain mean says nothing of. ``own_counts``: by `pooled_regrets` with these ``voices``.
    """
    if own_counts:
        return rate * pooled_regrets(mix_regret, resolved, TRUTH_PRIOR, voices=voices)
    return rate / (_mean_count(resolved) + TRUTH_PRIOR) * mix_regret


def _mean_count(counts: FloatArray) -> float:
    return float(np.add.reduce(counts)) / counts.size


class SideBySide(NamedTuple):
    """Settings of several mixers: what to make of the sums.

    Attributes
    ----------
    coefficients : (k, 4) float64
        Of ``mix_level``, ``mix_slope``, ``mix_answer`` and ``mix_regret`` a question.
    """

    coefficients: FloatArray

    @classmethod
    @checked(peers=Each(Each(NUMBER, 2)), slow=Each(NUMBER))
    def of(cls, peers: Sequence[tuple[float, float]], slow: Sequence[float]) -> "SideBySide":
        """Peer mixers by nominal error rate and rate, then slow truth mixers by rate.

        Examples
        --------
        >>> SideBySide.of([(0.35, 20.0)], [24.0]).coefficients.round(2)
        array([[  6.,   7., -20.,   0.],
               [  0.,   0.,   0.,  24.]])
        """
        rows = [(rate * (1.0 - 2.0 * nominal), rate * nominal, -rate, 0.0) for nominal, rate in peers]
        rows += [(0.0, 0.0, 0.0, rate) for rate in slow]
        return cls(np.array(rows, dtype=np.float64).reshape(-1, 4))


_COUNTS = Numbers("n", low=0.0)


def _check_anybody(sums: FloatArray, **_: object) -> None:
    """Refuse sums of nobody."""
    if not sums.shape[1]:
        msg = f"sums has the shape {sums.shape}: of nobody there are no weights"
        raise FormulaInputError(msg)


@checked(
    _check_anybody,
    mixers=Fields(SideBySide, {"coefficients": Numbers("k 4")}),
    sums=Numbers("4 n"),
    scored=_COUNTS,
    compared=_COUNTS,
    voices=Optional(Numbers("n", low=0.0)),
    own_counts=Numbers(kind=np.bool_),
)
def mixers_side_by_side(
    mixers: SideBySide,
    sums: FloatArray,
    scored: FloatArray,
    compared: FloatArray,
    voices: FloatArray | None = None,
    *,
    own_counts: bool = True,
) -> FloatArray:
    """Mixing weights from reference answers, without the uniform share, and from outcomes, under several settings.

    ``softmax((c₁·mix_level + c₂·mix_slope + c₃·mix_answer)/(n̄+40) + c₄·mix_regret/(m̄+10))`` for each, n̄ and m̄ the mean
    numbers of questions and of resolved ones that those present answered.

    Parameters
    ----------
    mixers : SideBySide
    sums : (4, n) float64
        Those four columns of the n ≥ 1 experts present.
    scored, compared : (n,) float64
        How many questions without outcome, and how many resolved ones, each of them answered.
    voices : (n,) float64, optional
        Of `pooled_regrets`.
    own_counts : bool
        Whether each expert's own numbers count instead of the means: then regrets are those of `pooled_regrets`.

    Returns
    -------
    (k, n) float64
        Each row sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([[0.0, 2.0], [0.0, 1.0], [0.0, -1.0], [0.0, 1.0]])
    >>> counts = np.array([11.0, 11.0]), np.array([9.0, 9.0])
    >>> mixers_side_by_side(SideBySide.of([(0.35, 24.0)], [24.0]), sums, *counts, own_counts=False).round(4)
    array([[0.3143, 0.6857],
           [0.2204, 0.7796]])
    """
    weights: FloatArray
    if own_counts:
        of_answers, rates = mixers.coefficients[:, :3] @ sums[:3], -mixers.coefficients[:, 2:3]
        peers = _pooled_peers(of_answers, compared + scored, rates * sums[3], compared, voices)
        slow = pooled_regrets(sums[3], compared, TRUTH_PRIOR, voices=voices)
        weights = peers + mixers.coefficients[:, 3:] * slow
    else:
        n_open, n_resolved = np.add.reduce(scored), np.add.reduce(compared)
        answered, resolved = float(n_resolved + n_open) / scored.size, float(n_resolved) / scored.size
        numbers = np.array([answered + PEER_PRIOR] * 3 + [resolved + TRUTH_PRIOR])
        weights = np.einsum("kc,cn->kn", mixers.coefficients / numbers, sums)
    weights -= np.maximum.reduce(weights, axis=1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis=1, keepdims=True)
    return weights

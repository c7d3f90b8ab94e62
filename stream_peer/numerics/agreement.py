"""What the experts' agreement with each other says about the mix, while no outcome is known.

- `agreement_evidence`: whether experts agree more than by chance
- `cross_agreement`: of one round, how the mix and the plain mean agree with those who did not make them
- `peer_stretch`: how much too timid the mixed forecast is, if experts err independently

With y the outcome, π the share of y = 1, c_i = p_i - ½, and experts who err independently, any two of them have
E[c_i·c_j] = E[c_i]·E[c_j] + π(1-π)·a_i·a_j, where a_i = E[c_i | y = 1] - E[c_i | y = 0]. So products of different
experts tell how far forecasts go with the outcome.
"""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.answers import team_numbers
from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    FORECAST_ROW,
    NUMBER,
    TEAMS,
    FloatArray,
    IntArray,
    Numbers,
    checked,
)

__all__ = ["CrossAgreement", "agreement_evidence", "cross_agreement", "peer_stretch"]


class CrossAgreement(NamedTuple):
    """Means over pairs of voters that differ; a team is one voter.

    Attributes
    ----------
    level : float
        c_u·c_v, u and v by equal weights.
    cross : float
        c_i·c_v, an expert i by the weights of the mix, v among the other voters by equal weights.
    centre : float
        c_u, u by equal weights: of single voters, not of pairs.
    """

    level: float
    cross: float
    centre: float


_FEWEST_VOTERS = 2


def _check_weights(forecasts: FloatArray, weights: FloatArray, **_: object) -> None:
    """Refuse weights that are not one for each forecast."""
    if weights.shape != forecasts.shape:
        msg = f"weights have the shape {weights.shape}, forecasts {forecasts.shape}"
        raise FormulaInputError(msg)


@checked(_check_weights, forecasts=FORECAST_ROW, weights=Numbers("n", 0.0, 1.0), teams=TEAMS)
def cross_agreement(forecasts: FloatArray, weights: FloatArray, teams: IntArray | None = None) -> CrossAgreement | None:
    """How the mix and the plain mean of a round agree with the experts who did not make them.

    With S = Σ c_u over k voters, ``level = (S² - Σ c_u²)/(k(k-1))``, ``cross = Σ w_i·c_i·(S - c_u)/(k-1)`` over
    experts i, each of the voter u, and ``centre = S/k``. The forecast of a team is the mean of its members'.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities.
    weights : (n,) float64
        Of the mix, summing to 1.
    teams : (n,) int64, optional
        Experts with equal numbers are in one team, those with negative ones in none.

    Returns
    -------
    CrossAgreement or None
        None with fewer than two voters.

    Examples
    --------
    >>> import numpy as np
    >>> cross_agreement(np.array([1.0, 1.0, 0.0]), np.array([0.5, 0.5, 0.0])).cross
    0.0
    >>> cross_agreement(np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    CrossAgreement(level=0.25, cross=0.25, centre=0.5)
    """
    said, size = forecasts - 0.5, len(forecasts)
    weighted = weights * said
    if teams is not None:
        number, n_numbers = team_numbers(teams)
        members = np.bincount(number, minlength=n_numbers)
        said = np.bincount(number, said, n_numbers) / np.maximum(members, 1)
        weighted = np.bincount(number, weighted, n_numbers).astype(np.float64)
        size = int(np.count_nonzero(members))
    if size < _FEWEST_VOTERS:
        return None
    total = float(np.add.reduce(said))
    squares = float(np.add.reduce(said * said))
    cross = float(np.add.reduce(weighted * (total - said)))
    return CrossAgreement((total * total - squares) / (size * (size - 1)), cross / (size - 1), total / size)


_SURE_FROM, _SURE_WITHIN = 1.0, 2.0


@checked(pair=NUMBER, pair2=AT_LEAST_0, by_chance=AT_LEAST_0)
def agreement_evidence(pair: float, pair2: float, by_chance: float) -> float:
    """How sure it is that votes agree more than by chance.

    ``clip((z-1)/2, 0, 1)``, z = (Σwx - Σwm²)/√Σ(wx)², w the weight of a question, x the mean product of the votes of
    two experts in it, m the mean vote of all questions: coins that say yes as often agree by m². Where votes are fair
    coins, z is like a normal number, and where experts know something about common outcomes it exceeds 3 after some
    tens of questions. The more votes are alike, the smaller is z: with rare outcomes it may stay below 1 for long.

    Parameters
    ----------
    pair, pair2 : float
        Σwx and Σ(wx)² ≥ 0.
    by_chance : float
        Σwm² ≥ 0.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> agreement_evidence(10.0, 4.0, 0.0), agreement_evidence(10.0, 4.0, 6.0), agreement_evidence(0.0, 0.0, 0.0)
    (1.0, 0.5, 0.0)
    """
    z = (pair - by_chance) / math.sqrt(pair2) if pair2 > 0.0 else 0.0
    return min(max((z - _SURE_FROM) / _SURE_WITHIN, 0.0), 1.0)


_SHRINKAGE = 5.0
_BOLDEST = 1.0


@checked(rounds=AT_LEAST_0, level=NUMBER, cross=NUMBER, square=AT_LEAST_0, centre=NUMBER, told=NUMBER)
def peer_stretch(rounds: float, level: float, cross: float, square: float, centre: float, told: float) -> float:
    """How much too timid the mixed forecast is, by the agreement of experts who err independently.

    The best factor in ``½ + (1+β)(f - ½)`` is Σ(y-½)(f-½)/Σ(f-½)² - 1. Without outcomes its numerator is, a question,
    ``c̄·f̄ + √(¼-c̄²)·(cross - c̄·f̄)/√(level - c̄²)``, with c̄ and f̄ the means of c_u and f - ½: the mix goes with the
    other experts as it goes with the outcome, times how far they go with the outcome themselves. ½ + c̄ stands for the
    share of questions with the outcome 1, as experts say it who are calibrated on average. β is shrunk like
    `stretch_factor`, by 5, and clipped to [0, 1].

    Parameters
    ----------
    rounds : float
        How many questions.
    level, cross, centre : float
        Sums of those of `CrossAgreement`.
    square : float
        Σ(f-½)² ≥ 0, f the mix as published.
    told : float
        Σ(f-½).

    Returns
    -------
    float
        β, in [0, 1]; 0 where experts do not agree more than by what all say always.

    Examples
    --------
    >>> round(peer_stretch(100.0, 4.0, 4.0, 4.0, 0.0, 0.0), 4)
    0.6667
    >>> peer_stretch(100.0, 4.0, 4.0, 4.0, 20.0, 20.0), peer_stretch(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    (0.0, 0.0)
    """
    if rounds <= 0.0:
        return 0.0
    own, mixed = centre / rounds, told / rounds
    shared = level / rounds - own * own
    if shared <= 0.0:
        return 0.0
    apart = math.sqrt(max(0.25 - own * own, 0.0) / shared) * (cross / rounds - own * mixed)
    with_outcome = rounds * (own * mixed + apart)
    return min(max((with_outcome - square) / (square + _SHRINKAGE), 0.0), _BOLDEST)

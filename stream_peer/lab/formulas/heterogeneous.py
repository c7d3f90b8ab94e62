"""Bounds where the error rate differs from question to question, and nothing but its smallest and largest is known."""

import math

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.apriori import RegretBound, martingale_gap, one_sided_gap, regret_bound
from stream_peer.numerics.arguments import AT_LEAST_0, BOUND, COUNT, INSIDE, FloatArray, Numbers, checked, unchecked

_RATES = Numbers("t", 0.0, 0.5, below=True)


@checked(rates=_RATES, best_loss=AT_LEAST_0)
def order_kept_beyond(rates: FloatArray, best_loss: float) -> float:
    """By how much an expert must lose more than the best, to do so in weighted losses too: ``(w_max/w_min - 1)·L*``.

    With w_t = 1 - 2η_t, peer losses add up to Σw_t·ℓ_t in expectation. If L_i - L* ≥ (w_max/w_min - 1)·L*, then
    Σw_t·ℓ_i ≥ Σw_t·ℓ*.

    Notes
    -----
    Replaces Lemma 7 of Liu & Helmbold, which is false (Erratum E19): L* = 10 where w = .9 and L_i = 20 where w = .1 are
    9 and 2 when weighted. Flipping reference answers at random multiplies every w_t by 1 - 2p̂ and changes no order
    (Erratum E18).

    Parameters
    ----------
    rates : (T,) float64
        η_t, in [0, ½); the smallest and the largest are enough.
    best_loss : float
        L* ≥ 0.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If there are no rates, one is outside [0, ½), or L* is negative.

    Examples
    --------
    >>> import numpy as np
    >>> round(order_kept_beyond(np.array([0.05, 0.45]), best_loss=10.0), 9)
    80.0
    """
    least, most = _weights(rates, best_loss)
    return (most / least - 1.0) * best_loss


@checked(online=BOUND, n_experts=COUNT, questions=AT_LEAST_0, rates=_RATES, best_loss=AT_LEAST_0, delta=INSIDE)
def heterogeneous_bound(
    online: float, n_experts: int, questions: float, rates: FloatArray, best_loss: float, delta: float
) -> RegretBound:
    """Regret where error rates differ: ``R ≤ (w_max/w_min - 1)·L* + (E_online + √(2T ln(N/δ)))/w_min``, w_t = 1 - 2η_t.

    Of the factor L* nothing can be spared: without knowing the rate of each question, an expert that errs where answers
    are bad looks better than it is.

    Notes
    -----
    Replaces Theorem 9 of Liu & Helmbold (`heterogeneous_bound_printed`): smaller, for all rates and without flipping
    (Errata E18, E20).

    Parameters
    ----------
    online : float
        E_online(T, N), on the scale of the reference answer.
    n_experts : int
        N ≥ 1.
    questions : float
        T ≥ 0.
    rates : (T,) float64
        η_t, in [0, ½); the smallest and the largest are enough.
    best_loss : float
        L* ≥ 0, the best expert's summed loss.
    delta : float
        In (0, 1).

    Returns
    -------
    RegretBound

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.lab.formulas.online import hedge_regret
    >>> bound = heterogeneous_bound(hedge_regret(4, 4000), 4, 4000, np.array([0.05, 0.45]), best_loss=400.9, delta=0.05)
    >>> bound.value, round(bound.formula)
    (inf, 5606)
    """
    least, most = _weights(rates, best_loss)
    noise = one_sided_gap(n_experts, questions, delta)
    return regret_bound((most / least - 1.0) * best_loss + (online + noise) / least, questions)


@checked(
    online=BOUND,
    n_experts=COUNT,
    questions=AT_LEAST_0,
    rates=_RATES,
    best_loss=AT_LEAST_0,
    delta=INSIDE,
    alpha=Numbers(low=2.0),
    sigma=AT_LEAST_0,
)
def heterogeneous_bound_printed(
    online: float,
    n_experts: int,
    questions: float,
    rates: FloatArray,
    best_loss: float,
    delta: float,
    *,
    alpha: float = 2.0,
    sigma: float = 2.0,
) -> RegretBound:
    """The bound of Theorem 9 of Liu & Helmbold as printed; its proof does not hold, for comparison only.

    ``[E_mart(δ/2N, 2, T) + E_mart(δ/2N, σ_g, T) + E_online]/w_min + α·(1/w_min + 1)·L*`` with w_min = 1 - 2·max η̃_t,
    η̃_t the rate after flipping a reference answer with probability p̂, ``η̃ = η(1 - 2p̂) + p̂``.

    Notes
    -----
    Erratum E20: α·L*/w_min should be (1+α)·L*/w_min, and the probability δ_g of the statement is not defined. Erratum
    E19: the lemma behind it is false. Erratum E21: the average rate, which it needs, is not what agreement without
    truth estimates.

    Parameters
    ----------
    online, n_experts, questions, best_loss, delta
        As of `heterogeneous_bound`.
    rates : (T,) float64
        η̃_t after flipping, in [0, ½): see `peer_losses.flipped_error_rate`.
    alpha : float
        α ≥ 2. The theorem is for every α > 2; 2 is their limit, and kindest to it.
    sigma : float
        σ_g; for forecasts of 0 and 1 only, as there, 2 is enough.

    Returns
    -------
    RegretBound

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.lab.formulas.online import hedge_regret
    >>> rates = np.array([0.05, 0.45])
    >>> bound = heterogeneous_bound_printed(hedge_regret(4, 4000), 4, 4000, rates, best_loss=400.9, delta=0.05)
    >>> bound.value, round(bound.formula)
    (inf, 17939)
    """
    least, _ = _weights(rates, best_loss)
    part = delta / (2.0 * n_experts)
    noise = unchecked(martingale_gap)(part, 2.0, questions) + unchecked(martingale_gap)(part, sigma, questions)
    return regret_bound((noise + online) / least + alpha * (1.0 / least + 1.0) * best_loss, questions)


def _weights(rates: FloatArray, best_loss: float) -> tuple[float, float]:
    """Smallest and largest of 1 - 2η_t."""
    low = float(np.minimum.reduce(rates, axis=None, initial=math.inf))
    high = float(np.maximum.reduce(rates, axis=None, initial=-math.inf))
    if not (low >= 0.0 and 0.0 <= high < 0.5) or not best_loss >= 0.0:
        msg = f"rates from {low!r} to {high!r}, best_loss {best_loss!r}: must be within [0, 0.5), >= 0"
        raise FormulaInputError(msg)
    return 1.0 - 2.0 * high, 1.0 - 2.0 * low

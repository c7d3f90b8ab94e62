"""Bounds that hold before anything is seen: as printed in the paper, the same repaired, and a direct one.

All three take the same arguments, so that they can be set side by side. δ is the probability of failing, in all.
"""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    BOUND,
    COUNT,
    HALF,
    INSIDE,
    SHARE,
    SIDES,
    WEIGHTS,
    Each,
    FloatArray,
    checked,
    unchecked,
)


class RegretBound(NamedTuple):
    """An upper bound on regret over T questions.

    Attributes
    ----------
    value : float
        In summed loss; ``inf`` where the bound is vacuous: where the formula gives more than T, which no regret
        exceeds, or 1 - η0 - η1 ≤ 0.
    formula : float
        What the formula gives, vacuous or not; ``inf`` if 1 - η0 - η1 ≤ 0.
    """

    value: float
    formula: float

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing."""
        return math.isinf(self.value)


def regret_bound(formula: float, questions: float) -> RegretBound:
    """The bound that a formula gives for so many questions."""
    return RegretBound(formula if formula <= questions else math.inf, formula)


@checked(delta=INSIDE, sigma=AT_LEAST_0, questions=AT_LEAST_0)
def martingale_gap(delta: float, sigma: float, questions: float) -> float:
    """How far a sum with bounded increments can be from its mean, at one time: ``E_mart = σ·√(2T ln(2/δ))``.

    Hoeffding and Azuma, for a sum fixed in advance: with probability 1 - δ. Equations 2 and 5 of Liu & Helmbold.

    Parameters
    ----------
    delta : float
        In (0, 1).
    sigma : float
        σ ≥ 0; half the spread of an increment, or more.
    questions : float
        T ≥ 0.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> round(martingale_gap(0.05, 1.0, 500), 3)
    60.736
    """
    return sigma * math.sqrt(2.0 * questions * math.log(2.0 / delta))


@checked(error_rate=HALF)
def printed_sigma(error_rate: float) -> float:
    """The σ_g printed below Theorem 4 of Liu & Helmbold: ``max{4 + max F, 2 - min F}``, which is ``4 + η/2``.

    F(η, p) = -η(1-η)(1-2p)² + 2ηp² - 2ηp + η lies between η² (at p = 0) and η/2 (at p = ½). Far too large (Erratum E7):
    an increment of either martingale has two values, 2·|p - q| ≤ 2 apart, so that σ = 1 is enough.

    Parameters
    ----------
    error_rate : float
        η, in [0, ½].

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If η is outside [0, ½].

    Examples
    --------
    >>> printed_sigma(0.1)
    4.05
    """
    largest, smallest = error_rate / 2.0, error_rate * error_rate
    return max(4.0 + largest, 2.0 - smallest)


@checked(online=BOUND, n_experts=COUNT, questions=AT_LEAST_0, rates=Each(HALF, 2), delta=INSIDE, estimation=BOUND)
def printed_bound(
    online: float,
    n_experts: int,  # noqa: ARG001 - so that the three bounds take the same arguments
    questions: float,
    rates: tuple[float, float],
    delta: float,
    estimation: float = 0.0,
) -> RegretBound:
    """The bound of Theorems 3, 4 and 6 of Liu & Helmbold as printed; not valid as it stands, for comparison only.

    ``[2·E_mart(δ/4, σ_g, T) + E_online + Σε_t]/(1 - η0 - η1) + 2·E_mart(δ/4, 2, T)``, stated with probability 1 - 4δ;
    here δ is the whole of it. σ_g of `printed_sigma`, at the larger rate.

    Notes
    -----
    Erratum E8: the best experts are chosen in hindsight, but no union bound over experts is taken; only the sizes of
    σ_g and σ = 2 (Erratum E7) hide it. Erratum E9: Σε_t/2 is enough. See `repaired_bound`, and `direct_bound`, which is
    smaller by more.

    Parameters
    ----------
    online : float
        E_online(T, N) of the learner, for instance `hedge_regret`.
    n_experts : int
        N ≥ 1, which the printed form does not depend on but for ``online``.
    questions : float
        T ≥ 0.
    rates : (η0, η1)
        Each in [0, ½].
    delta : float
        In (0, 1).
    estimation : float
        Σε_t if the rates are estimates: `estimation_printed`.

    Returns
    -------
    RegretBound

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> from stream_peer.lab.formulas.online import hedge_regret
    >>> bound = printed_bound(hedge_regret(4, 500), 4, 500, rates=(0.1, 0.1), delta=0.05)
    >>> bound.value, round(bound.formula)
    (inf, 1030)
    """
    shared = unchecked(martingale_gap)(delta / 4.0, unchecked(printed_sigma)(max(rates)), questions)
    tail = unchecked(martingale_gap)(delta / 4.0, 2.0, questions)
    return regret_bound(_over(rates, 2.0 * shared + online + estimation) + 2.0 * tail, questions)


@checked(online=BOUND, n_experts=COUNT, questions=AT_LEAST_0, rates=Each(SHARE, 2), delta=INSIDE, estimation=BOUND)
def repaired_bound(
    online: float,
    n_experts: int,
    questions: float,
    rates: tuple[float, float],
    delta: float,
    estimation: float = 0.0,
) -> RegretBound:
    """The printed bound with its faults mended, in the same structure.

    ``[2·E_mart(δ/4N, 1, T) + E_online + E_est]/(1 - η0 - η1) + 2·E_mart(δ/4N, 1, T)``: a union bound over the N experts
    (Erratum E8), σ = 1 in both martingales (Erratum E7).

    Parameters
    ----------
    online, n_experts, questions, rates, delta
        As of `printed_bound`.
    estimation : float
        What estimated rates add: `estimation_frozen` or `estimation_repriced`.

    Returns
    -------
    RegretBound

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> from stream_peer.lab.formulas.online import hedge_regret
    >>> round(repaired_bound(hedge_regret(4, 500), 4, 500, rates=(0.1, 0.1), delta=0.05).value)
    385
    """
    gap = 2.0 * unchecked(martingale_gap)(delta / (4.0 * n_experts), 1.0, questions)
    return regret_bound(_over(rates, gap + online + estimation) + gap, questions)


@checked(online=BOUND, n_experts=COUNT, questions=AT_LEAST_0, rates=Each(SHARE, 2), delta=INSIDE, estimation=BOUND)
def direct_bound(
    online: float,
    n_experts: int,
    questions: float,
    rates: tuple[float, float],
    delta: float,
    estimation: float = 0.0,
) -> RegretBound:
    """A bound from one martingale: ``[E_online + √(2T ln(N/δ)) + E_est]/(1 - η0 - η1)``.

    Given the outcome, a question's peer regret Σ_j w_j·s_j - s_i has mean (1 - η0 - η1)·(its true regret) and two
    values at most 2 apart: of one shared reference answer `shared_answer_spread`.
    So no calibration functions are needed, nor a second pair of martingales, and ln N comes once.

    Parameters
    ----------
    online, n_experts, questions, rates, delta, estimation
        As of `repaired_bound`.

    Returns
    -------
    RegretBound

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> from stream_peer.lab.formulas.online import hedge_regret
    >>> round(direct_bound(hedge_regret(4, 500), 4, 500, rates=(0.1, 0.1), delta=0.05).value)
    106
    """
    return regret_bound(_over(rates, online + one_sided_gap(n_experts, questions, delta) + estimation), questions)


def one_sided_gap(n_experts: int, questions: float, delta: float) -> float:
    """How far any of N sums can fall below its mean, at one time, increments at most 2 apart: ``√(2T ln(N/δ))``."""
    return math.sqrt(2.0 * questions * math.log(n_experts / delta))


def _over(rates: tuple[float, float], total: float) -> float:
    """On the scale of the outcome."""
    informative = 1.0 - rates[0] - rates[1]
    return total / informative if informative > 0.0 else math.inf


@checked(weights=WEIGHTS, if_one=SIDES, if_zero=SIDES)
def shared_answer_spread(weights: FloatArray, if_one: FloatArray, if_zero: FloatArray) -> FloatArray:
    """How far apart a question's peer regret is between ŷ = 0 and ŷ = 1, if all experts have the same reference answer.

    ``c_i = |Σ_j w_j·h_j - h_i|`` with h = ℓ(p, 1) - ℓ(p, 0), which for the squared loss is 2·|p_i - Σw·p|. The V of
    `noise_boundary` is the sum over questions of c²/4.

    Parameters
    ----------
    weights : (..., n) float64
        w as followed, summing to 1.
    if_one, if_zero : (..., n) float64
        ℓ(p, 1) and ℓ(p, 0).

    Returns
    -------
    (..., n) float64
        Within [0, 2] for losses in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> forecasts = np.array([0.9, 0.5])
    >>> shared_answer_spread(np.array([0.5, 0.5]), (1 - forecasts) ** 2, forecasts**2).round(6)
    array([0.4, 0.4])
    """
    slope = if_one - if_zero
    return np.abs(np.add.reduce(weights * slope, axis=-1, keepdims=True) - slope)

"""What it costs that error rates are estimated: a term E_est that a-priori bounds add to the learner's regret.

A rate that is off by ε changes how far two experts' peer losses are apart by 2ε·|p(1-p) - q(1-q)| ≤ ε/2.
"""

import math

import numpy as np

from stream_peer.numerics.arguments import AT_LEAST_0, BOUND, CHANCE, INSIDE, FloatArray, Numbers, checked, unchecked
from stream_peer.numerics.certificate import noise_boundary


@checked(errors=Numbers("t", low=0.0))
def estimation_printed(errors: FloatArray) -> float:
    """What Theorem 6 of Liu & Helmbold adds: ``Σε_t``. Correct, and twice what is needed (Erratum E9).

    Parameters
    ----------
    errors : (T,) float64
        ε_t ≥ the distance of η̂_t from η, for every question.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If an ε is negative or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> estimation_printed(np.array([0.5, 0.25]))
    0.75
    """
    return float(np.add.reduce(errors))


@checked(errors=Numbers("t", low=0.0))
def estimation_frozen(errors: FloatArray) -> float:
    """What estimates add whose losses stay priced at the rates of their time: ``Σε_t/2``, for any sequence of them.

    Parameters
    ----------
    errors : (T,) float64
        ε_t ≥ the distance of η̂_t from η.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If an ε is negative or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> estimation_frozen(np.array([0.5, 0.25]))
    0.375
    """
    return 0.5 * unchecked(estimation_printed)(errors)


@checked(last_error=AT_LEAST_0, questions=AT_LEAST_0)
def estimation_repriced(last_error: float, questions: float) -> float:
    """What estimates add where all losses are priced at the newest one: ``T·ε_T/2``.

    Smaller than `estimation_frozen` where estimates improve. It comes with a second term, the sum over questions of how
    far the weights moved times how far their prices were wrong, which is O(√T) when weights settle and has no bound
    against an adversary; it is not included.

    Parameters
    ----------
    last_error : float
        ε_T ≥ the distance of η̂_T from η.
    questions : float
        T ≥ 0.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If an argument is negative or NaN.

    Examples
    --------
    >>> estimation_repriced(0.25, 8)
    1.0
    """
    return 0.5 * questions * last_error


@checked(questions=AT_LEAST_0, reveal_probability=CHANCE, delta=INSIDE)
def limited_truth_regret_printed(questions: float, reveal_probability: float, delta: float) -> float:
    """What limited ground truth costs as printed: ``Σε_t ≤ √(2T ln(2/δ))/p*`` with ``ε_t = √(ln(2/δ)/(2t))/p*``.

    Notes
    -----
    Section "Limited access to ground truth" of Liu & Helmbold claims the ε_t for all t at once, from an inequality that
    allows for one (Erratum E2).

    Parameters
    ----------
    questions : float
        T ≥ 0.
    reveal_probability : float
        p*, in (0, 1].
    delta : float
        In (0, 1).

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> round(limited_truth_regret_printed(1000, 0.25, 0.05), 2)
    343.58
    """
    return math.sqrt(2.0 * questions * math.log(2.0 / delta)) / reveal_probability


@checked(questions=AT_LEAST_0, reveal_probability=CHANCE, delta=INSIDE)
def limited_truth_regret(questions: float, reveal_probability: float, delta: float) -> float:
    """What limited ground truth costs: ``Σε_t/2`` with ``ε_t = √(ln(2/δ)/(2K_t))``, about ``√(T ln(2/δ)/(2p*))``.

    K_t ≈ p*·t is the number of outcomes revealed: only they carry noise, and 1/√p* is enough (Erratum E3). Smaller than
    printed by the factor 2/√p*. Each ε_t holds at its time; for all times at once there is
    `error_rates.revealed_error_bound`.

    Parameters
    ----------
    questions : float
        T ≥ 0.
    reveal_probability : float
        p*, in (0, 1].
    delta : float
        In (0, 1).

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> round(limited_truth_regret(1000, 0.25, 0.05), 2)
    85.89
    """
    printed = unchecked(limited_truth_regret_printed)(questions, reveal_probability, delta)
    return printed * math.sqrt(reveal_probability) / 2.0


@checked(questions=AT_LEAST_0, delta=INSIDE)
def no_truth_regret_printed(questions: float, delta: float) -> float:
    """What estimating without any truth costs as printed: ``Σ√(ln(6/δ)/(2t))``, at most ``√(2T ln(6/δ))``.

    Notes
    -----
    After Theorem 8 of Liu & Helmbold, which leaves a constant open that is taken as 1 here. It is not one: it grows
    like 1/((1-2η_A)(1-2η_B)) and like 1/|P0 - ½| (Erratum E13). See `no_truth_regret`.

    Parameters
    ----------
    questions : float
        T ≥ 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> round(no_truth_regret_printed(1000, 0.05), 2)
    97.85
    """
    return math.sqrt(2.0 * questions * math.log(6.0 / delta))


@checked(questions=AT_LEAST_0, deviation=BOUND, delta=INSIDE)
def no_truth_regret(questions: float, deviation: float, delta: float) -> float:
    """What estimating without any truth costs: ``Σε_t/2`` with ``ε_t = c·√(2 ln(2/δ)/t)``, at most ``c·√(2T ln(2/δ))``.

    c is the standard deviation of the estimate after t questions times √t: a property of the estimator and the pool, of
    two groups with error rates .2 and .25 for instance .58 where P0 = .1, and 16.4 where P0 = .49 (Erratum E13).

    Parameters
    ----------
    questions : float
        T ≥ 0.
    deviation : float
        c ≥ 0; ``inf`` where the rates cannot be told, as the two groups' at P0 = ½ (Errata E14, E15).
    delta : float
        In (0, 1), for an ε_t at its time, with the normal tail.

    Returns
    -------
    float
        ``inf`` if c is.

    Raises
    ------
    FormulaInputError
        If an argument is out of range.

    Examples
    --------
    >>> round(no_truth_regret(1000, 0.58, 0.05), 2)
    49.82
    """
    return deviation * math.sqrt(2.0 * questions * math.log(2.0 / delta)) if questions > 0.0 else 0.0


@checked(revealed=AT_LEAST_0, delta=INSIDE)
def revealed_error_bound(revealed: float, delta: float) -> float:
    """How far the share of wrong answers among those revealed can be from η, at any number revealed.

    ``ε_K = √((V+ρ)·(2 ln(2/δ) + ln((V+ρ)/ρ)))/K`` with V = K/4, ρ = 25: the boundary of `noise_boundary` with one
    half of δ for either side. With probability 1 - δ, |wrong/K - η| ≤ ε_K for all K at once.

    Parameters
    ----------
    revealed : float
        K, the number of revealed outcomes, ≥ 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        ``inf`` for K = 0; a bound above 1 says nothing either.

    Raises
    ------
    FormulaInputError
        If K < 0 or δ is out of range.

    Notes
    -----
    Replaces the paper's |η̂_t - η| ≤ √(ln(2/δ))/(p*·√(2t)) "for all t". It applies a maximal inequality whose ε may
    not depend on t (Erratum E2): at p* = 1, η = ½, δ = .1 some t ≤ 100,000 violates it with probability .36. At a fixed
    time it is looser than need be by 1/√p* (Erratum E3), since only the revealed outcomes carry noise.

    Examples
    --------
    >>> round(revealed_error_bound(1000, delta=0.1), 4), revealed_error_bound(0, delta=0.1)
    (0.048, inf)
    """
    boundary = float(unchecked(noise_boundary)(np.array([0.25 * revealed]), 2, delta)[0])
    return boundary / revealed if revealed > 0.0 else math.inf

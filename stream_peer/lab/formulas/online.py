"""What learners promise about their regret on the losses that they were fed, whoever chose them.

For losses whose range within a question is at most 1, as symmetric peer losses on the unit scale; multiply by the range
where it is larger. Regret is that of the expected loss under the published weights (Erratum E24): Liu & Helmbold mix
the expectation over the learner's own draws with the losses of the experts it happened to draw.
"""

import math

import numpy as np

from stream_peer.numerics.arguments import AT_LEAST_0, COUNT, FloatArray, Numbers, checked, unchecked


@checked(n_experts=COUNT, questions=AT_LEAST_0)
def hedge_regret(n_experts: int, questions: float) -> float:
    """Largest regret of exponential weights whose fixed rate was chosen for the horizon: ``√(T ln N/2)``.

    The E_online(T, N) of Theorem 3 of Liu & Helmbold, which leaves the learner open (Cesa-Bianchi & Lugosi 2006).

    Parameters
    ----------
    n_experts : int
        N ≥ 1.
    questions : float
        T ≥ 0.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If N or T is out of range.

    Examples
    --------
    >>> round(hedge_regret(4, 500), 3)
    18.616
    """
    return math.sqrt(0.5 * questions * math.log(n_experts))


@checked(n_experts=COUNT, questions=AT_LEAST_0)
def anytime_hedge_regret(n_experts: int, questions: float) -> float:
    """Largest regret of exponential weights at the any-time rate, at every T: ``2√(T ln N/2) + √(ln N/8)``.

    Parameters
    ----------
    n_experts : int
        N ≥ 1.
    questions : float
        T ≥ 0.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If N or T is out of range.

    Examples
    --------
    >>> round(anytime_hedge_regret(4, 500), 3)
    37.649
    """
    return 2.0 * unchecked(hedge_regret)(n_experts, questions) + math.sqrt(math.log(n_experts) / 8.0)


@checked(n_experts=COUNT, questions=AT_LEAST_0)
def ada_hedge_regret(n_experts: int, questions: float) -> float:
    """Largest regret of AdaHedge, at every T: ``√(T ln N) + 4/3·ln N + 2`` (de Rooij et al. 2014).

    Parameters
    ----------
    n_experts : int
        N ≥ 1.
    questions : float
        T ≥ 0.

    Returns
    -------
    float

    Raises
    ------
    FormulaInputError
        If N or T is out of range.

    Examples
    --------
    >>> round(ada_hedge_regret(4, 500), 3)
    30.176
    """
    log_n = math.log(n_experts)
    return math.sqrt(questions * log_n) + 4.0 / 3.0 * log_n + 2.0


@checked(absolute=Numbers("... n", low=0.0))
def normal_hedge_regret(absolute: FloatArray) -> FloatArray:
    """Largest regret of AdaNormalHedge to each expert, at every time.

    ``√(3A_i·(ln N + ln B + ln(1 + ln N)))`` with ``B = 1 + 3/2·mean_i(1 + ln(1 + A_i))`` (Luo & Schapire 2015). It
    depends on what was observed: A_i is at most T, and small for an expert that differed little from the weights.

    Parameters
    ----------
    absolute : (..., n) float64
        A_i ≥ 0, the sums of absolute regrets, over the questions that the expert was awake in.

    Returns
    -------
    (..., n) float64

    Raises
    ------
    FormulaInputError
        If an A is negative or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> normal_hedge_regret(np.array([0.0, 100.0])).round(3)
    array([ 0.   , 30.025])
    """
    n_experts = absolute.shape[-1]
    if n_experts == 0:
        return np.zeros(absolute.shape)
    spread = 1.0 + 1.5 * np.mean(1.0 + np.log1p(absolute), axis=-1, keepdims=True)
    log_n = math.log(n_experts)
    return np.asarray(np.sqrt(3.0 * absolute * (log_n + np.log(spread) + math.log1p(log_n))), dtype=np.float64)

"""The live certificate: what can be promised at every moment, from what was observed."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import (
    COUNT,
    INSIDE,
    POSITIVE,
    SHARE,
    SIDES,
    WEIGHTS,
    Each,
    FloatArray,
    Numbers,
    checked,
    unchecked,
)
from stream_peer.numerics.peer_losses import unit_peer_loss

__all__ = [
    "LEAST_INFORMATION",
    "CertificateTerms",
    "certificate_terms",
    "live_bounds",
    "live_certificate",
    "noise_boundary",
    "shared_answer_spread",
]

LEAST_INFORMATION = 0.2
"""Below this d = 1 - η0 - η1 nothing is certified: the noise is blown up by 1/d."""


_RATES = Each(Each(SHARE, 2), fewest=1)


@checked(variance=Numbers("... n", low=0.0), n_experts=COUNT, delta=INSIDE, rho=POSITIVE)
def noise_boundary(variance: FloatArray, n_experts: int, delta: float, rho: float = 25.0) -> FloatArray:
    """How far summed label noise can have carried peer regrets from their means, at any time, for any expert.

    ``√((V+ρ)·(2 ln(N/δ) + ln((V+ρ)/ρ)))``: the normal-mixture boundary for sub-Gaussian sums, over N experts.

    Notes
    -----
    Differs from the paper's E_mart, which holds at one time fixed in advance and for one expert fixed in advance;
    the best expert is known in hindsight only, so the union over N is needed.

    Parameters
    ----------
    variance : (n,) float64
        V = Σ_t c²/4 ≥ 0 with c the spread of the peer-regret increment of question t between ŷ = 0 and 1.
    n_experts : int
        N ≥ 1, all experts ever seen.
    delta : float
        Probability with which some sum may leave the boundary at some time, in (0, 1).
    rho : float
        The V at which the boundary is tightest, > 0.

    Returns
    -------
    (n,) float64

    Raises
    ------
    FormulaInputError
        If N, δ or ρ is out of range, or a V is negative or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> noise_boundary(np.array([0.0, 100.0]), n_experts=10, delta=0.04).round(3)
    array([16.615, 39.769])
    """
    widened = variance + rho
    return np.sqrt(widened * (2.0 * math.log(n_experts / delta) + np.log(widened / rho)))


@checked(
    regret_l=Numbers("n"),
    regret_1=Numbers("n"),
    regret_0=Numbers("n"),
    variance=Numbers("n", low=0.0),
    true_regret=Numbers("n"),
    rates=_RATES,
    n_experts=COUNT,
    delta=INSIDE,
)
def live_certificate(
    regret_l: FloatArray,
    regret_1: FloatArray,
    regret_0: FloatArray,
    variance: FloatArray,
    true_regret: FloatArray,
    rates: tuple[tuple[float, float], ...],
    n_experts: int,
    delta: float,
) -> float:
    """Upper bound on the regret so far of following the published selection weights, from what was observed.

    ``max_i max_η [(DL_i - η0·D1_i - η1·D0_i + boundary(V_i)) / (1 - η0 - η1) + T_i]``, η over the rates of
    `error_rates.interval_ends`, boundary of `noise_boundary`. Between two neighbours of them it is a Möbius function of
    the rates' mean, hence largest at one of the two.

    Notes
    -----
    Replaces the bound of Theorem 3 of Liu & Helmbold, which lacks a union bound over experts chosen in hindsight and
    whose constant is several times too large. This one holds at all times at once with probability 1 - δ, less
    the probability that the interval misses the rates; both are conditional on errors of the reference answers
    that are independent of the scored forecast given the outcome. The interval is that of the rates' mean: how far
    they are apart is taken as it was estimated.

    Parameters
    ----------
    regret_l, regret_1, regret_0 : (n,) float64
        DL, D1, D0: Σ over unresolved questions of Σ_j w_j·ℓ_j - ℓ_i with ℓ against ŷ, 1 and 0; w as published.
    variance : (n,) float64
        V of the same questions.
    true_regret : (n,) float64
        T: the same sum over resolved questions, ℓ against the outcome.
    rates : tuple of (η0, η1)
        At the lower and the upper end of their interval, and where one of them reaches 0 in between.
    n_experts : int
        N, all experts ever seen.
    delta : float
        δ, the part spent on label noise.

    Returns
    -------
    float
        In summed loss. ``inf`` if at some of the rates 1 - η0 - η1 < .2; 0 if there are no experts.

    Raises
    ------
    FormulaInputError
        If there are no rates, a rate is outside [0, 1], or an argument of `noise_boundary` out of range.

    Examples
    --------
    >>> import numpy as np
    >>> zero = np.zeros(1)
    >>> sums = np.array([5.0]), np.array([8.0]), np.array([-2.0]), np.array([75.0]), np.array([1.0])
    >>> round(live_certificate(*sums, rates=((0.1, 0.1), (0.2, 0.2)), n_experts=4, delta=0.05), 3)
    60.433
    """
    if not regret_l.size:
        return 0.0
    bounds = unchecked(live_bounds)(regret_l, regret_1, regret_0, variance, rates, n_experts, delta) + true_regret
    return float(np.maximum.reduce(bounds))


@checked(
    regret_l=Numbers("... n"),
    regret_1=Numbers("... n"),
    regret_0=Numbers("... n"),
    variance=Numbers("... n", low=0.0),
    rates=_RATES,
    n_experts=COUNT,
    delta=INSIDE,
)
def live_bounds(
    regret_l: FloatArray,
    regret_1: FloatArray,
    regret_0: FloatArray,
    variance: FloatArray,
    rates: tuple[tuple[float, float], ...],
    n_experts: int,
    delta: float,
) -> FloatArray:
    """The part of `live_certificate` that comes from unresolved questions, of each expert alone.

    ``max_η (DL_i - η0·D1_i - η1·D0_i + boundary(V_i)) / (1 - η0 - η1)``. Where reference answers are of several
    kinds, each with rates of its own, the parts of an expert add up, each with its share of δ.

    Parameters
    ----------
    regret_l, regret_1, regret_0, variance : (n,) float64
    rates : tuple of (η0, η1)
    n_experts : int
    delta : float
        All as in `live_certificate`.

    Returns
    -------
    (n,) float64
        All ``inf`` if at some of the rates 1 - η0 - η1 < .2.

    Raises
    ------
    FormulaInputError
        If there are no rates, a rate is outside [0, 1], or an argument of `noise_boundary` out of range.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([5.0]), np.array([8.0]), np.array([-2.0]), np.array([75.0])
    >>> live_bounds(*sums, rates=((0.1, 0.1), (0.2, 0.2)), n_experts=4, delta=0.05).round(3)
    array([59.433])
    """
    noise = unchecked(noise_boundary)(variance, n_experts, delta)
    bounds = np.full(regret_l.shape, -math.inf)
    for rate0, rate1 in rates:
        informative = 1.0 - rate0 - rate1
        if not informative >= LEAST_INFORMATION:
            return np.full(regret_l.shape, math.inf)
        priced = unchecked(unit_peer_loss)(regret_l, regret_1, regret_0, rate0, rate1)
        np.maximum(bounds, (priced + noise) / informative, out=bounds)
    return bounds


class CertificateTerms(NamedTuple):
    """What a certificate is made of, for each expert.

    Attributes
    ----------
    rates : (η0, η1)
        Those of the error rates' interval that they are for.
    priced : (n,) float64
        Peer regret of unresolved questions at these rates, on the scale of the reference answer.
    boundary : (n,) float64
        What label noise may have taken from it.
    informative : float
        d = 1 - η0 - η1, by which both are divided.
    true_regret : (n,) float64
        Regret of resolved questions.
    """

    rates: tuple[float, float]
    priced: FloatArray
    boundary: FloatArray
    informative: float
    true_regret: FloatArray

    @property
    def bounds(self) -> FloatArray:
        """``(priced + boundary)/d + true_regret``; ``inf`` where d < .2."""
        if not self.informative >= LEAST_INFORMATION:
            return np.full(self.priced.shape, math.inf)
        return np.asarray((self.priced + self.boundary) / self.informative + self.true_regret, dtype=np.float64)


@checked(
    regret_l=Numbers("... n"),
    regret_1=Numbers("... n"),
    regret_0=Numbers("... n"),
    variance=Numbers("... n", low=0.0),
    true_regret=Numbers("... n"),
    rates=_RATES,
    n_experts=COUNT,
    delta=INSIDE,
)
def certificate_terms(
    regret_l: FloatArray,
    regret_1: FloatArray,
    regret_0: FloatArray,
    variance: FloatArray,
    true_regret: FloatArray,
    rates: tuple[tuple[float, float], ...],
    n_experts: int,
    delta: float,
) -> CertificateTerms:
    """The terms of `live_certificate`, at the rates that decide it: what to look at when it is large.

    Parameters
    ----------
    regret_l, regret_1, regret_0, variance, true_regret, rates, n_experts, delta
        All as in `live_certificate`.

    Returns
    -------
    CertificateTerms
        The largest of its ``bounds`` is the certificate.

    Raises
    ------
    FormulaInputError
        If there are no rates, a rate is outside [0, 1], or an argument of `noise_boundary` out of range.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([5.0]), np.array([8.0]), np.array([-2.0]), np.array([75.0]), np.array([1.0])
    >>> terms = certificate_terms(*sums, rates=((0.1, 0.1), (0.2, 0.2)), n_experts=4, delta=0.05)
    >>> terms.rates, terms.priced.round(3), terms.boundary.round(3), round(terms.informative, 3), terms.true_regret
    ((0.2, 0.2), array([3.8]), array([31.86]), 0.6, array([1.]))
    >>> terms.bounds.round(3)
    array([60.433])
    """
    noise = unchecked(noise_boundary)(variance, n_experts, delta)
    ends = [
        CertificateTerms(
            (rate0, rate1),
            unchecked(unit_peer_loss)(regret_l, regret_1, regret_0, rate0, rate1),
            noise,
            1.0 - rate0 - rate1,
            true_regret,
        )
        for rate0, rate1 in rates
    ]
    return max(ends, key=lambda terms: float(np.maximum.reduce(terms.bounds, axis=None, initial=-math.inf)))


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

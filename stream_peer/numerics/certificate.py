"""The live certificate: what can be promised at every moment, from what was observed."""

import math

import numpy as np

from stream_peer.numerics.arguments import (
    COUNT,
    INSIDE,
    POSITIVE,
    SHARE,
    Each,
    FloatArray,
    Numbers,
    checked,
    unchecked,
)
from stream_peer.numerics.peer_losses import unit_peer_loss

__all__ = [
    "LEAST_INFORMATION",
    "live_bounds",
    "noise_boundary",
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
    """Upper bound on the regret so far of following the published selection weights, against each expert alone.

    ``max_η (DL_i - η0·D1_i - η1·D0_i + boundary(V_i)) / (1 - η0 - η1)``, η over the rates of `interval_ends`, boundary
    of `noise_boundary`. Between two neighbours of them it is a Möbius function of the rates' mean, hence largest at one
    of the two. Of unresolved questions; the regret on resolved ones is known and is added. Where reference answers are
    of several kinds, each with rates of its own, the bounds of an expert add up, each with its share of δ. The
    certificate is the largest of the experts' sums.

    Notes
    -----
    Replaces the bound of Theorem 3 of Liu & Helmbold, which lacks a union bound over experts chosen in hindsight and
    whose constant is several times too large. This one holds at all times at once with probability 1 - δ, less
    the probability that the interval misses the rates; both are conditional on errors of the reference answers
    that are independent of the scored forecast given the outcome. The interval is that of the rates' mean: how far
    they are apart is taken as it was estimated.

    Parameters
    ----------
    regret_l, regret_1, regret_0 : (..., n) float64
        DL, D1, D0: Σ over unresolved questions of Σ_j w_j·ℓ_j - ℓ_i with ℓ against ŷ, 1 and 0; w as published.
    variance : (..., n) float64
        V of the same questions.
    rates : tuple of (η0, η1)
        At the lower and the upper end of their interval, and where one of them reaches 0 in between.
    n_experts : int
        N, all experts ever seen.
    delta : float
        δ, the part spent on label noise.

    Returns
    -------
    (..., n) float64
        In summed loss. All ``inf`` if at some of the rates 1 - η0 - η1 < .2.

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
    if not all(1.0 - rate0 - rate1 >= LEAST_INFORMATION for rate0, rate1 in rates):
        return np.full(regret_l.shape, math.inf)
    noise = unchecked(noise_boundary)(variance, n_experts, delta)
    bounds: FloatArray | None = None
    for rate0, rate1 in rates:
        priced = unchecked(unit_peer_loss)(regret_l, regret_1, regret_0, rate0, rate1)
        at_rates: FloatArray = (priced + noise) / (1.0 - rate0 - rate1)
        bounds = at_rates if bounds is None else np.maximum(bounds, at_rates)
    return np.full(regret_l.shape, -math.inf) if bounds is None else bounds

"""What can be promised about the regret of following the selection weights.

A-priori bounds (direct, as printed in the paper, repaired) belong here too.
"""

import math

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.peer_losses import unit_peer_loss

LEAST_INFORMATION = 0.2
"""Below this d = 1 - η0 - η1 nothing is certified: the noise is blown up by 1/d."""


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
        If N, δ or ρ is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> noise_boundary(np.array([0.0, 100.0]), n_experts=10, delta=0.04).round(3)
    array([16.615, 39.769])
    """
    if n_experts < 1 or not 0.0 < delta < 1.0 or not rho > 0.0:
        msg = f"n_experts {n_experts!r}, delta {delta!r}, rho {rho!r}: must be >= 1, within (0, 1), > 0"
        raise FormulaInputError(msg)
    widened = variance + rho
    return np.sqrt(widened * (2.0 * math.log(n_experts / delta) + np.log(widened / rho)))


def live_certificate(
    regret_l: FloatArray,
    regret_1: FloatArray,
    regret_0: FloatArray,
    variance: FloatArray,
    true_regret: FloatArray,
    rates: tuple[tuple[float, float], tuple[float, float]],
    n_experts: int,
    delta: float,
) -> float:
    """Upper bound on the regret so far of following the published selection weights, from what was observed.

    ``max_i max_η [(DL_i - η0·D1_i - η1·D0_i + boundary(V_i)) / (1 - η0 - η1) + T_i]``, η over the two ends of the
    error rates' interval, boundary of `noise_boundary`. D/(1-η0-η1) is a Möbius function of a common shift of
    both rates, hence largest at an end.

    Notes
    -----
    Replaces the bound of Theorem 3 of Liu & Helmbold, which lacks a union bound over experts chosen in hindsight and
    whose constant is several times too large. This one holds at all times at once with probability 1 - δ, less
    the probability that the interval misses the rates; both are conditional on errors of the reference answers
    that are independent of the scored forecast given the outcome.

    Parameters
    ----------
    regret_l, regret_1, regret_0 : (n,) float64
        DL, D1, D0: Σ over unresolved questions of Σ_j w_j·ℓ_j - ℓ_i with ℓ against ŷ, 1 and 0; w as published.
    variance : (n,) float64
        V of the same questions.
    true_regret : (n,) float64
        T: the same sum over resolved questions, ℓ against the outcome.
    rates : ((η0, η1), (η0, η1))
        At the lower and the upper end of their interval.
    n_experts : int
        N, all experts ever seen.
    delta : float
        δ, the part spent on label noise.

    Returns
    -------
    float
        In summed loss. ``inf`` if at either end 1 - η0 - η1 < .2; 0 if there are no experts.

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
    bounds = live_bounds(regret_l, regret_1, regret_0, variance, rates, n_experts, delta) + true_regret
    return float(np.maximum.reduce(bounds))


def live_bounds(
    regret_l: FloatArray,
    regret_1: FloatArray,
    regret_0: FloatArray,
    variance: FloatArray,
    rates: tuple[tuple[float, float], tuple[float, float]],
    n_experts: int,
    delta: float,
) -> FloatArray:
    """The part of `live_certificate` that comes from unresolved questions, of each expert alone.

    ``max_η (DL_i - η0·D1_i - η1·D0_i + boundary(V_i)) / (1 - η0 - η1)``. Where reference answers are of several
    kinds, each with rates of its own, the parts of an expert add up, each with its share of δ.

    Parameters
    ----------
    regret_l, regret_1, regret_0, variance : (n,) float64
    rates : ((η0, η1), (η0, η1))
    n_experts : int
    delta : float
        All as in `live_certificate`.

    Returns
    -------
    (n,) float64
        All ``inf`` if at either end 1 - η0 - η1 < .2.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([5.0]), np.array([8.0]), np.array([-2.0]), np.array([75.0])
    >>> live_bounds(*sums, rates=((0.1, 0.1), (0.2, 0.2)), n_experts=4, delta=0.05).round(3)
    array([59.433])
    """
    noise = noise_boundary(variance, n_experts, delta)
    bounds = np.full(len(variance), -math.inf)
    for rate0, rate1 in rates:
        informative = 1.0 - rate0 - rate1
        if not informative >= LEAST_INFORMATION:
            return np.full(len(variance), math.inf)
        priced = unit_peer_loss(regret_l, regret_1, regret_0, rate0, rate1)
        np.maximum(bounds, (priced + noise) / informative, out=bounds)
    return bounds

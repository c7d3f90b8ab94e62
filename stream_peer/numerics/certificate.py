"""The live certificate: what can be promised at every moment, from what was observed."""

import math
from statistics import NormalDist

import numpy as np

from stream_peer.numerics.arguments import (
    AT_LEAST_0,
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
    "SUREST",
    "answer_variance",
    "confidence_at_all_times",
    "live_bounds",
    "noise_boundary",
    "one_sided_boundary",
    "regret_bounds",
]

LEAST_INFORMATION = 0.2
"""Below this d = 1 - η0 - η1 nothing is certified: the noise is blown up by 1/d."""


_RATES = Each(Each(SHARE, 2), fewest=1)

SUREST = 1.0 - 2.0**-53
"""The largest confidence below 1: what ten million steps ask for would be rounded to 1."""


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
        It is tightest at V of about 12ρ, > 0.

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
    if not _are_informative(rates):
        return np.full(regret_l.shape, math.inf)
    noise = unchecked(noise_boundary)(variance, n_experts, delta)
    return _largest(regret_l, regret_1, regret_0, noise, rates)


def _are_informative(rates: tuple[tuple[float, float], ...]) -> bool:
    """Whether 1 - η0 - η1 ≥ .2 at all rates; .4 and .4, the largest that price losses, are rounded to less."""
    return all(1.0 - rate0 - rate1 >= LEAST_INFORMATION - 1e-12 for rate0, rate1 in rates)


def _largest(
    regret_l: FloatArray,
    regret_1: FloatArray,
    regret_0: FloatArray,
    noise: FloatArray,
    rates: tuple[tuple[float, float], ...],
) -> FloatArray:
    """Regrets, priced, with what noise may have hidden, at the rates that make them largest."""
    bounds = np.full(regret_l.shape, -math.inf)
    for rate0, rate1 in rates:
        priced = unchecked(unit_peer_loss)(regret_l, regret_1, regret_0, rate0, rate1)
        bounds = np.maximum(bounds, (priced + noise) / (1.0 - rate0 - rate1))
    return bounds


# --- all questions, with an outcome or without ---


@checked(rates=_RATES)
def answer_variance(rates: tuple[tuple[float, float], ...]) -> float:
    """The variance of a normal variable whose tails are no lighter than those of a reference answer, at any rate given.

    ``κ(η) = (1 - 2η) / (2 ln((1-η)/η))``, ¼ at η = ½ and 0 at η = 0; it rises up to ½ and then falls. The largest of
    all rates and of those between the smallest and the largest.

    Notes
    -----
    Kearns and Saul (1998), Buldygin and Moskvichova (2013): for b = 1 with probability η, else 0, and every λ,
    ``E exp(λ(b - η)) ≤ exp(λ²κ(η)/2)``, and no smaller number does. Hoeffding's ¼, which `live_bounds` takes, holds
    whatever the rate is.

    Parameters
    ----------
    rates : tuple of (η0, η1)

    Returns
    -------
    float
        In [0, ¼].

    Examples
    --------
    >>> round(answer_variance(((0.05, 0.1),)), 4), answer_variance(((0.4, 0.6),)), answer_variance(((0.0, 0.0),))
    (0.182, 0.25, 0.0)
    """
    every = [rate for pair in rates for rate in pair]
    least, most = min(every), max(every)
    if least <= 0.5 <= most:
        return 0.25
    near = most if most < 0.5 else 1.0 - least
    odds = math.log1p(-near) - math.log(near) if near > 0.0 else math.inf
    return min((0.5 - near) / odds, 0.25) if odds > 0.0 else 0.25


@checked(variance=Numbers("... n", low=0.0), n_experts=COUNT, delta=INSIDE, rho=POSITIVE)
def one_sided_boundary(variance: FloatArray, n_experts: int, delta: float, rho: float = 4.0) -> FloatArray:
    """How far noise can have pushed peer regrets *below* their means, at any time, for any of N experts.

    ``√(2(V+ρ)·ln(1 + N/(2δ)·√((V+ρ)/ρ)))``.

    Notes
    -----
    Robbins (1970); Howard, Ramdas, McAuliffe and Sekhon (2021), section 3.2: exp(λS - λ²V/2), mixed over
    λ = |Z|/√ρ with a standard normal Z, is ``2Φ(x)·√(ρ/(V+ρ))·exp(x²/2)`` with x = S/√(V+ρ). By Ville's inequality
    it never reaches N/δ, with probability 1 - δ/N. Where S is the boundary it is at least that, since
    Φ(x) ≥ 1 - exp(-x²/2). Only one side is needed: `noise_boundary` pays for both, and is tightest at a V of about 400.

    Parameters
    ----------
    variance : (n,) float64
        V ≥ 0, Σ of the increments' variances as in `answer_variance`.
    n_experts : int
        N ≥ 1.
    delta : float
        In (0, 1): with which probability some sum may leave the boundary at some time.
    rho : float
        It is tightest at V of about 12ρ, > 0.

    Returns
    -------
    (n,) float64

    Raises
    ------
    FormulaInputError
        If N, δ or ρ is out of range, or a V is negative or NaN.

    Examples
    --------
    >>> one_sided_boundary(np.array([0.0, 100.0]), n_experts=10, delta=0.04).round(3)
    array([ 6.22 , 36.653])
    """
    widened = variance + rho
    wealth = 0.5 * n_experts / delta * np.sqrt(widened / rho)
    found: FloatArray = np.sqrt(2.0 * widened * np.log1p(wealth))
    return found


@checked(questions=AT_LEAST_0, delta=INSIDE, rho=POSITIVE)
def confidence_at_all_times(questions: float, delta: float, rho: float = 20.0) -> float:
    """The confidence to ask of an interval so that the intervals of all times together miss with probability δ only.

    That of the normal quantile ``z = √((1 + ρ/n)·(2 ln(1/δ) + ln((n+ρ)/ρ)))``, n questions.

    Notes
    -----
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), theorem 2.2: the two-sided normal-mixture boundary for a
    mean whose variance is estimated. It holds asymptotically, as the intervals of `error_rates` do, not for each n.

    Parameters
    ----------
    questions : float
        n ≥ 0.
    delta : float
        In (0, 1).
    rho : float
        It is tightest at n of about 10ρ, > 0.

    Returns
    -------
    float
        In (0, 1), below 1 also where that is rounded to 1.

    Examples
    --------
    >>> round(confidence_at_all_times(200.0, delta=0.01), 6), confidence_at_all_times(0.0, delta=0.01) < 1.0
    (0.999648, True)
    """
    if questions <= 0.0:
        return SUREST
    z = math.sqrt((1.0 + rho / questions) * (math.log1p(questions / rho) - 2.0 * math.log(delta)))
    return min(2.0 * NormalDist().cdf(z) - 1.0, SUREST)


@checked(
    regret_l=Numbers("... n"),
    regret_1=Numbers("... n"),
    regret_0=Numbers("... n"),
    spread=Numbers("... n", low=0.0),
    rates=_RATES,
    n_experts=COUNT,
    delta=INSIDE,
)
def regret_bounds(
    regret_l: FloatArray,
    regret_1: FloatArray,
    regret_0: FloatArray,
    spread: FloatArray,
    rates: tuple[tuple[float, float], ...],
    n_experts: int,
    delta: float,
) -> FloatArray:
    """Upper bound on the regret of following the published selection weights, at all times at once.

    ``max_η (DL_i - η0·D1_i - η1·D0_i + boundary(κ·C_i)) / (1 - η0 - η1)``, η over the rates given, κ that of
    `answer_variance` over all of them, boundary that of `one_sided_boundary`.

    Notes
    -----
    As `live_bounds`, with a smaller noise term: the rate's variance in place of ¼, one side, a boundary that is
    tightest early. It adds up *all* questions, also those with an outcome, as if there was none: so no share of δ is
    spent at each outcome, if the rates hold for all. ``docs/numerics.md`` has the proof.

    Parameters
    ----------
    regret_l, regret_1, regret_0 : (..., n) float64
        DL, D1, D0: Σ over questions of Σ_j w_j·ℓ_j - ℓ_i with ℓ against ŷ, 1 and 0; w as published.
    spread : (..., n) float64
        C = Σ c², c how far the regret of a question can be moved by its reference answers.
    rates : tuple of (η0, η1)
        As `interval_ends` gives them.
    n_experts : int
    delta : float

    Returns
    -------
    (..., n) float64
        In summed loss. All ``inf`` if at some of the rates 1 - η0 - η1 < .2.

    Examples
    --------
    >>> sums = np.array([5.0]), np.array([8.0]), np.array([-2.0]), np.array([300.0])
    >>> regret_bounds(*sums, rates=((0.1, 0.1), (0.2, 0.2)), n_experts=4, delta=0.05).round(3)
    array([50.602])
    """
    if not _are_informative(rates):
        return np.full(regret_l.shape, math.inf)
    noise = unchecked(one_sided_boundary)(unchecked(answer_variance)(rates) * spread, n_experts, delta)
    return _largest(regret_l, regret_1, regret_0, noise, rates)

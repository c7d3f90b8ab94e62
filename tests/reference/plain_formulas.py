"""Closed forms that no worker computes: what the served formulas are compared with."""

import math
from dataclasses import fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stream_peer.lab.formulas.three_references import central_moments, class_rates, share_of_zeros
from stream_peer.numerics.arguments import FloatArray, SmallIntArray
from stream_peer.numerics.dependence import VoteMoments
from stream_peer.numerics.dependence.fourth_moment import moments_of_counts
from stream_peer.numerics.learners import softmax
from stream_peer.numerics.mixers import peer_mixer_logs, truth_slow_logs, with_uniform_share

_NO_SIGNAL = 1e-12
_EstimatorSums = TypeVar("_EstimatorSums", bound=Any)


def discounted(sums: _EstimatorSums, factor: float) -> _EstimatorSums:
    """Sums whose questions all weigh less: each sum times the factor, Σw² times its square."""
    factors = {field.name: factor * factor if field.name == "weight2" else factor for field in fields(sums)}
    return replace(sums, **{name: by * getattr(sums, name) for name, by in factors.items()})


def peer_mixer(
    mix_level: FloatArray,
    mix_slope: FloatArray,
    mix_answer: FloatArray,
    counts: FloatArray,
    *,
    nominal: float,
    rate: float,
    uniform_share: float,
) -> FloatArray:
    """``σ·uniform + (1-σ)·softmax(…)`` of `peer_mixer_logs`: the mixer from reference answers alone."""
    nothing = np.zeros(len(counts))
    sums = np.array([mix_level, mix_slope, mix_answer, nothing])
    return with_uniform_share(
        softmax(peer_mixer_logs(sums, counts, nothing, nominal=nominal, rate=rate, own_counts=False)), uniform_share
    )


def truth_slow(mix_regret: FloatArray, resolved: FloatArray, *, rate: float) -> FloatArray:
    """``softmax(rate·mix_regret/(m̄+10))``, the slow mixer from outcomes alone."""
    return softmax(truth_slow_logs(mix_regret, resolved, rate=rate, own_counts=False))


class ThreeReferenceClassSolution(NamedTuple):
    """Class-dependent error rates of three reference answers, and the share of zeros."""

    zero: FloatArray
    one: FloatArray
    share_of_zeros: float


def three_reference_solution(g12: float, g13: float, g23: float) -> tuple[float, float, float] | None:
    """Error rates of three reference answers from G = 2·agreement - 1 of each two: ``a_1 = √(G12·G13/G23)``."""
    if not min(g12, g13, g23) > _NO_SIGNAL:
        return None
    alignments = (math.sqrt(g12 / g23 * g13), math.sqrt(g12 / g13 * g23), math.sqrt(g13 / g12 * g23))
    first, second, third = (0.5 * (1.0 - a) for a in alignments)
    return first, second, third


def three_reference_class_solution(shares: FloatArray) -> ThreeReferenceClassSolution | None:
    """Their class-dependent error rates from how often they say yes, alone and together: c1, c2, c3, c12, … c123."""
    central = central_moments(shares)
    if not float(central[3:6].min()) > _NO_SIGNAL:
        return None
    rates, _ = class_rates(central)
    return ThreeReferenceClassSolution(rates[:3], rates[3:], share_of_zeros(central))


def denoised_answers(reference_answers: FloatArray | float, rate0: float, rate1: float) -> FloatArray:
    """Reference answers that are right on average: ``ỹ = (ŷ - η0)/(1 - η0 - η1)``, so that ``E[ỹ | y] = y``."""
    return np.asarray((np.asarray(reference_answers) - rate0) / (1.0 - rate0 - rate1), dtype=np.float64)


def peer_loss_range(rate0: float, rate1: float) -> tuple[float, float]:
    """Lowest and highest unit peer loss, for losses in [0, 1]: ``[-max(η0, η1), 1 - min(η0, η1)]``."""
    return -max(rate0, rate1), 1.0 - min(rate0, rate1)


def own_answer_spread(weights: FloatArray, if_one: FloatArray, if_zero: FloatArray) -> FloatArray:
    """How far apart a question's peer regret can be if each expert has a reference answer of its own.

    ``c_i = Σ_j |w_j - [j = i]|·|h_j|`` with h = ℓ(p, 1) - ℓ(p, 0).
    """
    slope = np.abs(if_one - if_zero)
    return np.add.reduce(weights * slope, axis=-1, keepdims=True) + (1.0 - 2.0 * weights) * slope


def vote_weights(error_rates: FloatArray) -> FloatArray:
    """Weights ``max(0, ln((1-e)/e))``, with which a weighted majority of independent voters errs least."""
    right = np.clip(1.0 - error_rates, 0.02, 0.98)
    return np.maximum(np.log(right / (1.0 - right)), 0.0)


def vote_moments(votes: SmallIntArray) -> VoteMoments | None:
    """Factorial moments of the yes votes of a round; +1, -1, or 0 for no vote."""
    return moments_of_counts(int(np.count_nonzero(votes > 0)), int(np.count_nonzero(votes)))

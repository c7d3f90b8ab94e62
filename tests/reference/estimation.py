"""What it costs that error rates are estimated: a term E_est that a-priori bounds add to the learner's regret.

A rate that is off by ε changes how far two experts' peer losses are apart by 2ε·|p(1-p) - q(1-q)| ≤ ε/2. No worker
computes these; they are what the errata of docs/paper.md say in numbers.
"""

import math

import numpy as np

from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.certificate import noise_boundary


def estimation_printed(errors: FloatArray) -> float:
    """What Theorem 6 of Liu & Helmbold adds: ``Σε_t``. Correct, and twice what is needed (Erratum E9)."""
    return float(np.add.reduce(errors))


def estimation_frozen(errors: FloatArray) -> float:
    """What estimates add whose losses stay priced at the rates of their time: ``Σε_t/2``, for any sequence of them."""
    return 0.5 * estimation_printed(errors)


def estimation_repriced(last_error: float, questions: float) -> float:
    """What estimates add where all losses are priced at the newest one: ``T·ε_T/2``.

    It comes with a second term, the sum over questions of how far the weights moved times how far their prices were
    wrong, which is O(√T) when weights settle and has no bound against an adversary; it is not included.
    """
    return 0.5 * questions * last_error


def limited_truth_regret_printed(questions: float, reveal_probability: float, delta: float) -> float:
    """What limited ground truth costs as printed: ``Σε_t ≤ √(2T ln(2/δ))/p*`` with ``ε_t = √(ln(2/δ)/(2t))/p*``.

    Section "Limited access to ground truth" of Liu & Helmbold claims the ε_t for all t at once, from an inequality that
    allows for one (Erratum E2).
    """
    return math.sqrt(2.0 * questions * math.log(2.0 / delta)) / reveal_probability


def limited_truth_regret(questions: float, reveal_probability: float, delta: float) -> float:
    """What limited ground truth costs: ``Σε_t/2`` with ``ε_t = √(ln(2/δ)/(2K_t))``, about ``√(T ln(2/δ)/(2p*))``.

    K_t ≈ p*·t is the number of outcomes revealed: only they carry noise, and 1/√p* is enough (Erratum E3). Each ε_t
    holds at its time; for all times at once there is `revealed_error_bound`.
    """
    return limited_truth_regret_printed(questions, reveal_probability, delta) * math.sqrt(reveal_probability) / 2.0


def no_truth_regret_printed(questions: float, delta: float) -> float:
    """What estimating without any truth costs as printed: ``Σ√(ln(6/δ)/(2t))``, at most ``√(2T ln(6/δ))``.

    After Theorem 8 of Liu & Helmbold, which leaves a constant open that is taken as 1 here. It is not one: it grows
    like 1/((1-2η_A)(1-2η_B)) and like 1/|P0 - ½| (Erratum E13).
    """
    return math.sqrt(2.0 * questions * math.log(6.0 / delta))


def no_truth_regret(questions: float, deviation: float, delta: float) -> float:
    """What estimating without any truth costs: ``Σε_t/2`` with ``ε_t = c·√(2 ln(2/δ)/t)``, at most ``c·√(2T ln(2/δ))``.

    c is the standard deviation of the estimate after t questions times √t: a property of the estimator and the pool;
    ``inf`` where the rates cannot be told, as the two groups' at P0 = ½ (Errata E13 to E15).
    """
    return deviation * math.sqrt(2.0 * questions * math.log(2.0 / delta)) if questions > 0.0 else 0.0


def revealed_error_bound(revealed: float, delta: float) -> float:
    """How far the share of wrong answers among K revealed can be from η, with probability 1 - δ for all K at once.

    ``ε_K = √((V+ρ)·(2 ln(2/δ) + ln((V+ρ)/ρ)))/K`` with V = K/4, ρ = 25: `noise_boundary` with half of δ a side.

    It replaces the paper's |η̂_t - η| ≤ √(ln(2/δ))/(p*·√(2t)) "for all t", from a maximal inequality whose ε may not
    depend on t (Erratum E2): at p* = 1, η = ½, δ = .1 some t ≤ 100,000 violates it with probability .36.
    """
    boundary = float(noise_boundary(np.array([0.25 * revealed]), 2, delta)[0])
    return boundary / revealed if revealed > 0.0 else math.inf

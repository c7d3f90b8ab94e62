"""Estimates from outcomes that are revealed now and then."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.horvitz_thompson import HorvitzThompsonSums
from stream_peer.lab.paper.results import ClaimCheck, Mean, Table, near
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import TruthSums

RATE, REVEALED, QUESTIONS = 0.3, 0.2, 10_000


WAYS = ("Hájek: wrong / revealed", "Horvitz-Thompson: wrong / (p*·T)", "as printed: right / (p*·T)")


class Revealed(NamedTuple):
    """Means of three estimates from revealed outcomes, and their variances times T."""

    means: FloatArray
    variances: FloatArray
    runs: int


def revealed_spreads(rng: np.random.Generator, runs: int) -> Revealed:
    """Estimates from outcomes revealed with probability .2, in many runs."""
    known = rng.binomial(QUESTIONS, REVEALED, runs)
    wrong = rng.binomial(known, RATE)
    found = []
    for seen, errors in zip(known.tolist(), wrong.tolist(), strict=True):
        ratio = TruthSums(right_zero=seen - errors, wrong_zero=errors).estimate().zero
        inflated = errors / REVEALED
        weight = float(QUESTIONS)
        unbiased = HorvitzThompsonSums(weight, weight, inflated, inflated / REVEALED).estimate().zero
        found.append((ratio, unbiased, (seen - errors) / (REVEALED * weight)))
    table = np.array(found)
    return Revealed(table.mean(axis=0), QUESTIONS * table.var(axis=0, ddof=1), runs)


def revealed_checks(found: Revealed) -> list[ClaimCheck]:
    """Means and variances against theory."""
    theory = (
        RATE * (1.0 - RATE) / REVEALED,
        RATE / REVEALED - RATE**2,
        (1.0 - RATE) / REVEALED - (1.0 - RATE) ** 2,
    )
    checks = []
    for place, name in enumerate(WAYS):
        mean = Mean(float(found.means[place]), math.sqrt(theory[place] / QUESTIONS / found.runs))
        expected = 1.0 - RATE if place == 2 else RATE
        checks.append(near(f"{name}: mean", mean, expected, digits=3))
        variance = Mean(float(found.variances[place]), theory[place] * math.sqrt(2.0 / found.runs))
        checks.append(near(f"{name}: variance × T", variance, theory[place]))
    return checks


def revealed_table(found: Revealed) -> Table:
    """Means and variances of three estimates."""
    rows = [
        [name, f"{mean:.4f}", f"{variance:.2f}"]
        for name, mean, variance in zip(WAYS, found.means, found.variances, strict=True)
    ]
    return Table(
        title=f"From revealed outcomes: η = {RATE:g}, p* = {REVEALED:g}, T = {QUESTIONS:,}",
        heads=["estimate", "mean", "variance × T"],
        rows=rows,
        note="The printed indicator counts right answers: it estimates 1 - η (Erratum E1). Hájek's ratio varies least.",
    )

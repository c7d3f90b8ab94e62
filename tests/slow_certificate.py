"""The certificate of version 2 once more, slow and obvious: the steps of its proof in ``docs/numerics.md``.

Rates by votes alone are the closed form of MATH.md 4c, their deviations the delta method with numeric derivatives.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from statistics import NormalDist

from tests.slow_feed import Said

NAMES = ("first", "second", "third", "answer", "both")
"""Shares of single votes, pairs and triples that are all yes; of reference answers; of both."""
HIGHEST, PSEUDO = 0.475, 20.0
Matrix = Sequence[Sequence[float]]
Vector = Sequence[complex]


def added_up(
    rounds: Sequence[Said], rules: Sequence[str], outcome: int | None, weight: float, e: str
) -> dict[str, float]:
    """What a question adds of an expert: reach and regrets of the rounds under the bound, by rule; the others'."""
    is_over = outcome is not None or rounds[-1].final
    under = [r for r in rounds if r.counts and is_over]
    others = [r for r in rounds if not (r.counts and is_over)]

    def mean(of: Callable[[Said], float], some: Sequence[Said]) -> float:
        return math.fsum(of(r) for r in some if e in r.p) / len(rounds)

    def regret(some: Sequence[Said], against: str) -> float:
        return mean(lambda r: r.regret(e, against, published=True), some)

    found = {}
    for rule in rules:
        of_rule = [r for r in under if r.rule == rule]
        found[f"reach {rule}"] = weight * mean(lambda r: moved(r, e), of_rule) ** 2
        found |= {f"closed {k} {rule}": regret(of_rule, k) for k in "y10"}
    if outcome is not None:
        return found | {"other": regret(others, str(outcome))}
    return found | {"other": max(regret(others, k) for k in "10"), "most": max(regret(rounds, k) for k in "10")}


def moved(r: Said, e: str) -> float:
    """How far own reference answers can move the regret against an expert: all of them alike, or each its own."""
    moves = [(r.select[j] - (j == e)) * (r.score(p, 1) - r.score(p, 0)) for j, p in r.p.items()]
    alike = len(set(r.answer.values())) == 1
    return abs(math.fsum(moves)) if alike else math.fsum(map(abs, moves))


# --- bounds ---


def variance_of_answers(rates: Sequence[tuple[float, float]]) -> float:
    """The largest κ(η) of all rates, and of what lies between the least and the greatest."""
    every = [rate for pair in rates for rate in pair]
    if min(every) <= 0.5 <= max(every):
        return 0.25
    return max((1.0 - 2.0 * rate) / (2.0 * math.log((1.0 - rate) / rate)) if rate else 0.0 for rate in every)


def boundary(variance: float, n_experts: int, delta: float) -> float:
    """Tightest at a variance of twelve times ρ = 4."""
    v = variance + 4.0
    return math.sqrt(2.0 * v * math.log(1.0 + n_experts / (2.0 * delta) * math.sqrt(v / 4.0)))


def bound_of(
    regrets: Sequence[float], reach: float, rates: Sequence[tuple[float, float]], n_experts: int, delta: float
) -> float:
    """Of a regret against the reference answers, 1 and 0: at the rates that make it largest."""
    if min(1.0 - zero - one for zero, one in rates) < 0.2:
        return math.inf
    noise = boundary(variance_of_answers(rates) * reach, n_experts, delta)
    against, if_one, if_zero = regrets
    return max((against - zero * if_one - one * if_zero + noise) / (1.0 - zero - one) for zero, one in rates)


def confidence_of_all_times(questions: float, delta: float) -> float:
    """The normal mixture of ρ = 20."""
    if not questions:
        return 1.0 - 2.0**-53
    z = math.sqrt((1.0 + 20.0 / questions) * (2.0 * math.log(1.0 / delta) + math.log((questions + 20.0) / 20.0)))
    return min(2.0 * NormalDist().cdf(z) - 1.0, 1.0 - 2.0**-53)


# --- rates by votes alone ---


def rates_allowed(sums: Mapping[str, float], confidence: float) -> list[tuple[float, float]]:
    """Corners (η0, η1) of what votes allow: mean and half the difference are within their intervals, no rate below 0.

    ``sums``: of ``weight``, ``weight2``, of the five shares and of their products. ``confidence``: of either interval.
    """
    everything = [(HIGHEST, HIGHEST)]
    if not sums["weight"]:
        return everything
    total = sums["weight"]
    means = [sums[name] / total for name in NAMES]
    products = {}
    for (i, a), (j, b) in combinations_with_replacement(enumerate(NAMES), 2):
        products[i, j] = products[j, i] = sums[f"{a}_{b}"] / total
    effective = total**2 / sums["weight2"]
    covariance = [[(products[i, j] - means[i] * means[j]) / effective for j in range(5)] for i in range(5)]
    share = total / (total + PSEUDO)
    seen = carried(lambda some: central(some, share), means, covariance)
    first, answer, cross, spread, skew = (value.real for value in central(means, share))
    if spread <= 0.0 or cross <= 0.0:
        return everything
    skew = math.copysign(math.sqrt(max(skew**2 - seen[4][4], 0.0)), skew)
    middle = [first, answer, cross, spread, skew]
    largest = [0.0, 1.0 / 4.0, 1.0 / 16.0, 1.0 / 16.0, 1.0 / 64.0]
    noise = [[seen[i][j] + (i == j) * largest[i] * PSEUDO / (total + PSEUDO) ** 2 for j in range(5)] for i in range(5)]
    joint = carried(kinds, middle, noise)
    zero, one, *_ = values = [value.real for value in kinds(middle)]
    outside = [max(-value, value - 1.0) - 0.02 - 3.0 * math.sqrt(joint[i][i]) for i, value in enumerate(values)]
    of_votes = share * (means[1] - means[0] ** 2)  # without pseudo-questions
    if max(outside) > 0.0 or of_votes <= 3.0 * math.sqrt(max(seen[3][3], 0.0)):
        return everything
    z = -NormalDist().inv_cdf((1.0 - confidence) / 2.0)
    of_mean, of_half = ((joint[0][0] + sign * 2.0 * joint[0][1] + joint[1][1]) / 4.0 for sign in (1.0, -1.0))
    mean = math.fsum(min(max(rate, 0.0), HIGHEST) for rate in (zero, one)) / 2.0
    distance = 1.0 - zero - one
    factor = math.exp(min(z * 2.0 * math.sqrt(max(of_mean, 0.0)) / distance, 50.0))
    low = min(max((1.0 - distance * factor) / 2.0 - 0.005, 0.0), mean)
    high = max(min((1.0 - distance / factor) / 2.0 + 0.005, HIGHEST), mean)
    halves = [(zero - one) / 2.0 + sign * z * math.sqrt(max(of_half, 0.0)) for sign in (-1.0, 1.0)]
    places = [low, high, *(abs(half) for half in halves if low < abs(half) < high)]
    return [(m + gap, m - gap) for m in places for gap in [min(max(half, -m), m) for half in halves]]


def central(means: Vector, share: float) -> list[complex]:
    """m1, E[R], C, D and K of the five means, all but the first with those of pseudo-questions of η = .25."""
    first, second, third, answer, both = means
    seen = (answer, both - answer * first, second - first**2, third - 3.0 * first * second + 2.0 * first**3)
    pseudo = (0.5, 0.5 * math.sqrt(0.1) / 4.0, 0.1 / 4.0, 0.0)
    return [first, *(share * one + (1.0 - share) * other for one, other in zip(seen, pseudo, strict=True))]


def kinds(moments: Vector) -> list[complex]:
    """Error rates on either outcome, and shares of yes votes on 1 and on 0, of votes of two kinds of questions."""
    first, answer, cross, spread, skew = moments
    lean = skew / spread
    root = (lean**2 + 4.0 * spread) ** 0.5
    above, below = (root + lean) / 2.0, (root - lean) / 2.0
    return [answer - cross / above, 1.0 - answer - cross / below, first + above, first - below]


def carried(function: Callable[[Vector], Vector], at: Vector, covariance: Matrix) -> list[list[float]]:
    """The covariance of what a function makes of numbers, by the delta method; derivatives by complex steps."""
    step, size = 1e-30, len(at)
    slopes = []
    for i in range(size):
        moved_to = [complex(value.real, step * (i == j)) for j, value in enumerate(at)]
        slopes.append([complex(value).imag / step for value in function(moved_to)])
    made = range(len(slopes[0]))
    return [
        [
            math.fsum(slopes[i][a] * covariance[i][j] * slopes[j][b] for i in range(size) for j in range(size))
            for b in made
        ]
        for a in made
    ]

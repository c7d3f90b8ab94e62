"""Claim 5: error rates that change from question to question; flipping reference answers only hurts."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.flips import flip_answer, flipped_error_rate
from stream_peer.lab.formulas.heterogeneous import heterogeneous_bound, heterogeneous_bound_printed
from stream_peer.lab.formulas.online import hedge_regret
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.lab.paper.following import fixed_hedge
from stream_peer.lab.paper.results import (
    DELTA,
    Area,
    ClaimCheck,
    Figure,
    Line,
    Mean,
    Result,
    Size,
    Table,
    around,
    between,
    mean_of,
    near,
    none_of,
    shown,
)
from stream_peer.lab.paper.worlds import outcomes
from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.peer_losses import unbiased_peer_loss

QUESTIONS, N_EXPERTS = 4000, 4
EASY, HARD = 0.05, 0.45
"""Error rates of reference answers on the two halves of the questions."""

FLIPS = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
GAPS = np.array([0.04, 0.06, 0.08, 0.1])
"""Of the experts' error rates, at flip probability 0; divided by 1 - 2p̂ elsewhere, so that each is as easy to see."""

BEST_ERROR = 0.1
EARLIER = (58.0, 72.0, 103.0, 158.0, 289.0)
OPPOSED_BEST, OPPOSED_RIVAL = 0.2, 0.38
"""Error of the best expert on easy questions, and of its rival on hard ones; neither errs elsewhere."""


class Heterogeneous(NamedTuple):
    """Bounds where the error rate changes from question to question: repaired, and Theorem 9 as printed."""

    repaired: float
    printed: float


def heterogeneous_promises(rates: FloatArray, best_loss: float, n_experts: int) -> Heterogeneous:
    """For the rates of all questions, after flipping."""
    online = hedge_regret(n_experts, rates.size)
    repaired = heterogeneous_bound(online, n_experts, rates.size, rates, best_loss, DELTA)
    printed = heterogeneous_bound_printed(online, n_experts, rates.size, rates, best_loss, DELTA)
    return Heterogeneous(repaired.formula, printed.formula)


class Aligned(NamedTuple):
    """Regret with errors spread alike over easy and hard questions: means and standard errors, (flips, gaps)."""

    regret: FloatArray
    error: FloatArray
    best_loss: float
    largest: FloatArray
    """Largest regret of a run over the gaps, (flips,)."""


class Opposed(NamedTuple):
    """Whether the best expert had the smallest sum, by run: (flips, runs) and (runs,)."""

    flipped: FloatArray
    by_question: FloatArray


def heterogeneous(rng: np.random.Generator, size: Size) -> Result:
    """Half of the reference answers are wrong in 5 %, half in 45 %; experts answer 0 or 1."""
    quick = size is Size.QUICK
    aligned = play_aligned(rng, 60 if quick else 400)
    opposed = play_opposed(rng, 200 if quick else 1000)
    bounds = [heterogeneous_promises(_rates(flip), aligned.best_loss, N_EXPERTS) for flip in FLIPS]
    worst = aligned.regret.max(axis=1)
    return Result(
        number=5,
        title="Error rates that differ between questions",
        claim=(
            "The last section of the paper flips reference answers with probability p̂, to make their error rates "
            f"alike. Half of {QUESTIONS:,} questions have η = {EASY:g}, half {HARD:g}; {N_EXPERTS} experts forecast 0 "
            "or 1, the best one errs in a tenth. Errors spread alike over both halves (aligned), or the best "
            "expert's all on easy questions and its rival's all on hard ones (opposed)."
        ),
        finding=(
            f"Flipping multiplies regret by {worst[-1] / worst[0]:.1f} at p̂ = .4 and does not repair an order; only "
            f"losses priced with each question's own rate find the right expert ({opposed.by_question.mean():.0%} of "
            "runs)."
        ),
        checks=[
            *_aligned_checks(aligned),
            *_opposed_checks(opposed),
            none_of("regrets above the repaired bound", _above(aligned, [bound.repaired for bound in bounds])),
            _bound_check("repaired bound at p̂ = 0, summed loss", bounds[0].repaired, 5606.0),
            _bound_check("bound as printed at p̂ = 0, summed loss", bounds[0].printed, 17_939.0),
            _bound_check("repaired bound at p̂ = .4, summed loss", bounds[-1].repaired, 15_189.0),
            _bound_check("bound as printed at p̂ = .4, summed loss", bounds[-1].printed, 86_323.0),
        ],
        figures=[_regret_figure(aligned), _order_figure(opposed)],
        tables=[_table(worst, bounds)],
    )


def play_aligned(rng: np.random.Generator, runs: int) -> Aligned:
    """Fixed-rate Hedge on losses against flipped reference answers, for all p̂ and gaps on the same questions."""
    gaps = GAPS / (1.0 - 2.0 * FLIPS[:, None])
    errors = np.full((FLIPS.size, GAPS.size, N_EXPERTS), BEST_ERROR)
    errors[..., 1:] += gaps[..., None]
    cumulative = np.zeros((runs, *errors.shape))
    regret = np.zeros((runs, *gaps.shape))
    for _ in range(QUESTIONS):
        regret += (1.0 - fixed_hedge(cumulative, QUESTIONS)[..., 0]) * gaps
        rate = np.where(rng.random((runs, 1, 1)) < 0.5, EASY, HARD)
        reference = flip_answer(
            outcomes(rng, rate), outcomes(rng, np.broadcast_to(FLIPS[:, None], (runs, FLIPS.size, 1)))
        )
        wrong = rng.random((runs, 1, 1, N_EXPERTS)) < errors
        cumulative += squared_loss(wrong.astype(np.float64), reference[..., None])
    error = regret.std(axis=0, ddof=1) / math.sqrt(runs)
    return Aligned(regret.mean(axis=0), error, BEST_ERROR * QUESTIONS, regret.max(axis=(0, 2)))


def play_opposed(rng: np.random.Generator, runs: int) -> Opposed:
    """Sums of two experts' losses; the outcome is called 0, so that a forecast of 1 is an error."""
    hard = np.arange(QUESTIONS) % 2 == 1
    rates = np.where(hard, HARD, EASY)
    right = np.zeros((FLIPS.size, runs))
    priced = np.zeros(runs)
    for run in range(runs):
        best = ((rng.random(QUESTIONS) < OPPOSED_BEST) & ~hard).astype(np.float64)
        rival = ((rng.random(QUESTIONS) < OPPOSED_RIVAL) & hard).astype(np.float64)
        reference = outcomes(rng, rates)
        coins = rng.random(QUESTIONS)
        for place, flip in enumerate(FLIPS):
            answers = flip_answer(reference, (coins < flip).astype(np.float64))
            sums = [float(squared_loss(forecasts, answers).sum()) for forecasts in (best, rival)]
            right[place, run] = sums[0] < sums[1]
        ours, theirs = (_unbiased(forecasts, reference, hard) for forecasts in (best, rival))
        priced[run] = ours < theirs
    return Opposed(right, priced)


def _unbiased(forecasts: FloatArray, reference: FloatArray, hard: BoolArray) -> float:
    """Sum of unbiased peer losses, each priced with the rate of its own question."""
    total = 0.0
    for where, rate in ((~hard, EASY), (hard, HARD)):
        parts = loss_parts(forecasts[where], reference[where])
        total += float(unbiased_peer_loss(*parts, rate, rate).sum())
    return total


def _rates(flip: float) -> FloatArray:
    return np.asarray(flipped_error_rate(np.where(np.arange(QUESTIONS) % 2 == 1, HARD, EASY), flip))


def _aligned_checks(found: Aligned) -> list[ClaimCheck]:
    worst = found.regret.argmax(axis=1)
    checks = [
        around(
            f"aligned: regret at p̂ = {FLIPS[place]:g}, summed loss",
            Mean(float(found.regret[place, worst[place]]), float(found.error[place, worst[place]])),
            (0.75 * earlier, 1.25 * earlier),
            "earlier runs of a like design ± 25 %",
            f"{earlier:.0f}",
        )
        for place, earlier in enumerate(EARLIER)
    ]
    first = found.regret[0].max()
    shares = found.regret.max(axis=1) * (1.0 - 2.0 * FLIPS) / first
    low = float(shares[1:].min())
    checks.append(
        between("aligned: smallest regret × (1 - 2p̂) / regret without flipping", low, 0.9, 1.5, "theory: ≥ 1", "≥ 1")
    )
    return checks


def _opposed_checks(found: Opposed) -> list[ClaimCheck]:
    checks = [
        between(
            f"opposed: right expert elected at p̂ = {FLIPS[place]:g}, share of runs",
            float(found.flipped[place].mean()),
            0.0,
            0.02,
            "earlier runs: never",
            "0",
        )
        for place in range(4)
    ]
    half = QUESTIONS / 2
    mean = half * (OPPOSED_RIVAL - OPPOSED_BEST)
    variance = half * sum(
        error / (1.0 - 2.0 * rate) ** 2 - error * error for error, rate in ((OPPOSED_BEST, EASY), (OPPOSED_RIVAL, HARD))
    )
    expected = 0.5 * (1.0 + math.erf(mean / math.sqrt(2.0 * variance)))
    runs = found.by_question.size
    error = math.sqrt(expected * (1.0 - expected) / runs)
    measured = Mean(float(found.by_question.mean()), error)
    return [
        *checks,
        near("opposed: right expert elected with each question's own rate, share of runs", measured, expected),
    ]


def _bound_check(what: str, measured: float, earlier: float) -> ClaimCheck:
    return between(
        what, measured, 0.97 * earlier, 1.03 * earlier, "earlier: L* measured, within 3 %", f"{earlier:,.0f}"
    )


def _above(found: Aligned, bounds: list[float]) -> int:
    return int(np.count_nonzero(found.largest > np.array(bounds)))


def _regret_figure(found: Aligned) -> Figure:
    worst = found.regret.argmax(axis=1)
    measured = [float(found.regret[place, gap]) for place, gap in enumerate(worst)]
    error = [float(found.error[place, gap]) for place, gap in enumerate(worst)]
    fine = np.linspace(0.0, 0.4, 41)
    expected = measured[0] / (1.0 - 2.0 * fine)
    return Figure(
        name="flipping",
        title="Aligned errors: flipping only hurts",
        caption="Regret grows at least like 1/(1 - 2p̂): the flip is noise and nothing else.",
        x_label="flip probability p̂",
        y_label="regret (summed loss)",
        lines=[Line("measured", [*FLIPS], measured, error), Line("earlier runs", [*FLIPS], EARLIER, dashed=True)],
        areas=[Area("1 to 1.3 times regret without flipping / (1 - 2p̂)", [*fine], [*expected], [*(1.3 * expected)])],
    )


def _order_figure(found: Opposed) -> Figure:
    shares = [mean_of(row) for row in found.flipped]
    own = mean_of(found.by_question)
    return Figure(
        name="opposed",
        title="Opposed errors: who is elected",
        caption="No flip probability repairs the order; each question's own rate does.",
        x_label="flip probability p̂",
        y_label="right expert elected (share of runs)",
        lines=[
            Line("one rate, flipped", [*FLIPS], [m.value for m in shares], [m.error for m in shares]),
            Line("each question's own rate, no flip", [0.0, 0.4], [own.value, own.value], dashed=True),
        ],
        areas=[Area("expected of own rates", [0.0, 0.4], [0.86, 0.86], [0.94, 0.94])],
    )


def _table(worst: FloatArray, bounds: list[Heterogeneous]) -> Table:
    rows = [
        [f"{flip:g}", f"{earlier:.0f}", shown(float(regret)), shown(ours), shown(printed)]
        for flip, earlier, regret, (ours, printed) in zip(FLIPS, EARLIER, worst, bounds, strict=True)
    ]
    return Table(
        title="Aligned errors: regret and what is promised of it (summed loss)",
        heads=["p̂", "earlier", "measured", "repaired bound", "bound as printed"],
        rows=rows,
        note=f"Of {QUESTIONS:,} questions: a bound above that says nothing.",
    )

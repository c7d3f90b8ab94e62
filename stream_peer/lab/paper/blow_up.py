"""Claim 3: regret grows like 1/(1 - 2η) as reference answers get worse."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.online import hedge_regret
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.lab.paper.following import fixed_hedge
from stream_peer.lab.paper.results import Area, ClaimCheck, Figure, Line, Mean, Result, Size, at_most, near
from stream_peer.lab.paper.worlds import flipped, outcomes
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.peer_losses import unit_peer_loss

HORIZON = 4000
RATES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.45])
GAPS = np.array([0.015, 0.02, 0.03, 0.04, 0.06])
"""Differences of the experts' error rates times 1 - 2η: what the learner can see of them a question."""
WORST = 2
EXACT = np.array([18.46, 20.61, 21.97, 21.76, 20.85])
"""Regret times 1 - 2η at each gap, exactly: summed over all paths of the difference of the two cumulative losses."""


class Outcome(NamedTuple):
    """Regret times 1 - 2η: means of repetitions and their standard errors, (rates, gaps)."""

    scaled: FloatArray
    error: FloatArray


def blow_up(rng: np.random.Generator, size: Size) -> Result:
    """Two experts who say 0 or 1 and err almost half the time; fixed-rate Hedge follows their peer losses."""
    found = simulate(rng, repetitions=200 if size is Size.QUICK else 1500)
    bound = hedge_regret(2, HORIZON)
    checks = [_check(found, place) for place in range(RATES.size)]
    checks.append(
        at_most(
            "largest regret × (1 - 2η), summed loss",
            float(found.scaled.max()),
            bound,
            "Hedge's own bound, √(T ln 2 / 2)",
        )
    )
    spread = float(np.ptp(found.scaled[:, WORST]) / found.scaled[:, WORST].mean())
    return Result(
        number=3,
        title="Regret blows up like 1/(1 - 2η)",
        claim=(
            "The bound of Theorem 3 is divided by 1 - 2η. Two experts who forecast 0 or 1 err in about half of "
            f"{HORIZON:,} questions, one of them less; fixed-rate Hedge sees losses against a reference answer of "
            "error rate η only. At the gap that is worst for it, regret times 1 - 2η should not depend on η."
        ),
        finding=f"Regret × (1 - 2η) differs by {spread:.0%} between η = 0 and η = .45; regret itself grows tenfold.",
        checks=checks,
        figures=[_against_rate(found, bound), _against_gap(found)],
    )


def simulate(rng: np.random.Generator, repetitions: int) -> Outcome:
    """Play all error rates and gaps on the same outcomes."""
    shape = (repetitions, RATES.size, GAPS.size)
    rates = RATES[:, None]
    true_gaps = GAPS / (1.0 - 2.0 * rates)
    errors = 0.5 + 0.5 * np.stack([-true_gaps, true_gaps], axis=-1)
    parts = np.zeros((3, *shape, 2))
    regret = np.zeros(shape)
    for _ in range(HORIZON):
        weights = fixed_hedge(unit_peer_loss(parts[0], parts[1], parts[2], rates[..., None], rates[..., None]), HORIZON)
        regret += true_gaps * weights[..., 1]
        outcome = outcomes(rng, np.full((repetitions, 1, 1), 0.5))
        reference = flipped(outcome, rng.random((repetitions, 1, 1)) < rates)
        forecasts = flipped(outcome[..., None], rng.random((repetitions, 1, 1, 2)) < errors)
        parts += np.stack(loss_parts(forecasts, reference[..., None]))
    scaled = (1.0 - 2.0 * rates) * regret
    return Outcome(scaled.mean(axis=0), scaled.std(axis=0, ddof=1) / math.sqrt(repetitions))


def _check(found: Outcome, place: int) -> ClaimCheck:
    measured = Mean(float(found.scaled[place, WORST]), float(found.error[place, WORST]))
    return near(f"regret × (1 - 2η) at η = {RATES[place]:g}, summed loss", measured, float(EXACT[WORST]))


def _against_rate(found: Outcome, bound: float) -> Figure:
    informative = 1.0 - 2.0 * RATES
    fine = np.linspace(0.0, 0.46, 47)
    expected = EXACT[WORST] / (1.0 - 2.0 * fine)
    return Figure(
        name="blow-up",
        title="Regret against the error rate",
        caption="Measured regret lies on a constant divided by 1 - 2η, below Hedge's bound divided by the same.",
        x_label="error rate η of reference answers",
        y_label="regret (summed loss)",
        lines=[
            Line("measured", [*RATES], [*found.scaled[:, WORST] / informative], [*found.error[:, WORST] / informative]),
            Line("Hedge's bound / (1 - 2η)", [*fine], [*bound / (1.0 - 2.0 * fine)], dashed=True),
        ],
        areas=[Area("expected ± 5 %", [*fine], [*0.95 * expected], [*1.05 * expected])],
        log_y=True,
    )


def _against_gap(found: Outcome) -> Figure:
    lines = [
        Line(f"η = {rate:g}", [*GAPS], [*found.scaled[place]], [*found.error[place]])
        for place, rate in enumerate(RATES)
    ]
    return Figure(
        name="blow-up-gaps",
        title="The same, for every gap",
        caption="Scaled by 1 - 2η, the curves of six error rates lie on one another at every gap.",
        x_label="gap × (1 - 2η), loss a question",
        y_label="regret × (1 - 2η) (summed loss)",
        lines=lines,
        areas=[Area("exact ± 5 %", [*GAPS], [*0.95 * EXACT], [*1.05 * EXACT])],
    )

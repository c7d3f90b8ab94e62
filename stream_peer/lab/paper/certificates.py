"""Claim 7: what the bounds are worth: as printed, repaired, direct and live, against the regret itself."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.apriori import direct_bound, printed_bound, repaired_bound, shared_answer_spread
from stream_peer.lab.formulas.online import hedge_regret
from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.lab.paper.following import AdaNormal
from stream_peer.lab.paper.results import (
    DELTA,
    Area,
    ClaimCheck,
    Figure,
    Line,
    Result,
    Size,
    Table,
    between,
    none_of,
    shown,
)
from stream_peer.lab.paper.worlds import flipped, outcomes, shrunk
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.certificate import regret_bounds
from stream_peer.numerics.losses import squared_loss

LOOKED_AT = 10
"""The certificate is compared with the regret after every tenth question: it promises to hold at all of them."""

_BAND_FROM = "30 to 140 by the certificate of version 1, which is two to three times as large"


class Promises(NamedTuple):
    """Values of three bounds in summed loss, also where they exceed the number of questions and so say nothing."""

    direct: float
    repaired: float
    printed: float


def promises(n_experts: int, questions: int, rate: float) -> Promises:
    """Direct bound, Theorem 3 repaired, and as printed, the error rate known."""
    online = hedge_regret(n_experts, questions)
    return Promises(
        *(
            bound(online, n_experts, questions, (rate, rate), DELTA).formula
            for bound in (direct_bound, repaired_bound, printed_bound)
        )
    )


class Row(NamedTuple):
    """One setting, and the a-priori bounds found for it earlier: direct, repaired, printed."""

    n_experts: int
    questions: int
    rate: float
    earlier: tuple[float, float, float]


QUICK = (Row(4, 500, 0.1, (106, 385, 1030)), Row(32, 2000, 0.35, (0, 0, 0)))
FULL = (
    Row(4, 500, 0.1, (106, 385, 1030)),
    Row(4, 5000, 0.3, (671, 1927, 5723)),
    Row(32, 5000, 0.1, (434, 1431, 3298)),
    Row(32, 5000, 0.35, (0, 0, 0)),
    Row(32, 50_000, 0.3, (2745, 7205, 18_368)),
)


class PlayedCertificates(NamedTuple):
    """Means over runs at the marks, and in how many runs the certificate was ever below the regret."""

    row: Row
    marks: Sequence[int]
    regret: FloatArray
    live: FloatArray
    largest: float
    violations: int
    runs: int


def play(rng: np.random.Generator, row: Row, runs: int) -> PlayedCertificates:
    """AdaNormalHedge on peer losses with a known rate and one reference answer for all.

    The certificate is that of version 2 of the method: of each expert the smaller of the bound by reference answers and
    the largest regret that any outcomes can give; of all experts the largest.
    """
    shrinkages = np.linspace(1.0, 0.0, row.n_experts)
    learner, rate = AdaNormal((runs, row.n_experts)), np.full((1, 1), row.rate)
    spread, most, ahead = np.zeros((3, runs, row.n_experts))
    violated, course = np.zeros(runs, dtype=bool), []
    marks = _marks(row.questions)
    for question in range(1, row.questions + 1):
        weights = learner.weights(rate)
        chances = rng.random((runs, 1))
        outcome = outcomes(rng, chances)
        reference = flipped(outcome, rng.random((runs, 1)) < row.rate)
        forecasts = shrunk(chances, shrinkages)
        parts = loss_parts(forecasts, reference)
        spread += np.square(shared_answer_spread(weights, parts.if_one, parts.if_zero))
        if_one, if_zero = ((weights * loss).sum(axis=-1, keepdims=True) - loss for loss in parts[1:])
        most += np.maximum(if_one, if_zero)
        losses = squared_loss(forecasts, outcome)
        ahead += (weights * losses).sum(axis=-1, keepdims=True) - losses
        learner.observe(np.stack(parts), weights, rate)
        if question % LOOKED_AT == 0 or question in marks:
            live, regret = _certified(learner.regrets, spread, most, row), ahead.max(axis=-1)
            violated |= regret > live
            if question in marks:
                course.append((regret.mean(), live.mean(), regret.max()))
    regret, live, largest = np.array(course).T
    return PlayedCertificates(row, marks, regret, live, float(largest[-1]), int(violated.sum()), runs)


def _certified(regrets: FloatArray, spread: FloatArray, most: FloatArray, row: Row) -> FloatArray:
    against, if_one, if_zero = regrets
    bounds = regret_bounds(against, if_one, if_zero, spread, ((row.rate, row.rate),), row.n_experts, DELTA)
    return np.asarray(np.maximum.reduce(np.minimum(bounds, most), axis=-1), dtype=np.float64)


def _marks(questions: int) -> list[int]:
    return [mark for mark in (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000) if mark <= questions]


def certificates(rng: np.random.Generator, size: Size) -> Result:
    """Bounds beside the regret of AdaNormalHedge in the paper's own model, the error rate known."""
    quick = size is Size.QUICK
    played = [play(rng, row, _runs(row, quick=quick)) for row in (QUICK if quick else FULL)]
    if not quick:
        played.append(play(rng, Row(8, 3000, 0.3, (0, 0, 0)), 400))
    bounds = [_promises(found.row) for found in played]
    last, promised = played[0], bounds[0]
    return Result(
        number=7,
        title="What the bounds are worth",
        claim=(
            "Outcomes y ~ p with p uniform; N experts of evenly spaced confidence; one reference answer for all with "
            f"known error rate η; AdaNormalHedge on peer losses. Bounds at confidence {1 - DELTA:.0%}: Theorem 3 as "
            "printed, the same repaired (constants of the increments, union over experts), the direct bound (one "
            "martingale), and the live certificate of version 2 of the method, which uses what was observed and "
            "holds at all times at once."
        ),
        finding=(
            f"With {last.row.n_experts} experts, {last.row.questions:,} questions and η = {last.row.rate:g}, regret "
            f"was {shown(float(last.regret[-1]))}; the live certificate said {shown(float(last.live[-1]))}, the "
            f"printed bound {shown(promised.printed)}. No certificate was ever below the regret."
        ),
        checks=_checks(played, bounds),
        figures=[_figure(found, place) for place, found in enumerate(played[:2])],
        tables=[_table(played, bounds)],
    )


def _runs(row: Row, *, quick: bool) -> int:
    if quick:
        return 30
    return 60 if row.questions <= 5000 else 12


def _promises(row: Row) -> Promises:
    return promises(row.n_experts, row.questions, row.rate)


def _checks(played: Sequence[PlayedCertificates], bounds: Sequence[Promises]) -> list[ClaimCheck]:
    runs = sum(found.runs for found in played)
    checks = [
        none_of(
            f"runs of {runs} in which the certificate was below the regret at any time",
            sum(p.violations for p in played),
        ),
        none_of(
            "regrets above a bound",
            sum(found.largest > promised.direct for found, promised in zip(played, bounds, strict=True)),
        ),
        none_of(
            "settings in which not: live < direct < repaired < printed",
            sum(
                not found.live[-1] < promised.direct < promised.repaired < promised.printed
                for found, promised in zip(played, bounds, strict=True)
            ),
        ),
    ]
    for found, promised in zip(played, bounds, strict=True):
        checks += _earlier_checks(found.row, promised)
        if found.row.rate <= 0.3 and found.row.questions <= 5000:
            ratio = promised.printed / float(found.live[-1])
            checks.append(
                between(f"printed bound / live certificate, {_name(found.row)}", ratio, 60.0, 420.0, _BAND_FROM)
            )
    return checks


def _earlier_checks(row: Row, promised: Promises) -> list[ClaimCheck]:
    named = zip(("direct", "repaired", "printed"), promised, row.earlier, strict=True)
    return [
        between(
            f"{name} bound, {_name(row)}, summed loss",
            value,
            0.995 * earlier,
            1.005 * earlier,
            "earlier, by hand ± 0.5 %",
            f"{earlier:,}",
        )
        for name, value, earlier in named
        if earlier
    ]


def _name(row: Row) -> str:
    return f"N = {row.n_experts}, T = {row.questions:,}, η = {row.rate:g}"


def _figure(found: PlayedCertificates, place: int) -> Figure:
    marks = [float(mark) for mark in found.marks]
    promised = [_promises(found.row._replace(questions=mark)) for mark in found.marks]
    return Figure(
        name=f"bounds-{place + 1}",
        title=_name(found.row),
        caption="From below: regret, live certificate, three a-priori bounds; above the dashes a bound says nothing.",
        x_label="questions T",
        y_label="summed loss",
        lines=[
            Line("regret", marks, [*found.regret]),
            Line("live certificate", marks, [*found.live]),
            Line("direct bound", marks, [bound.direct for bound in promised]),
            Line("repaired bound", marks, [bound.repaired for bound in promised]),
            Line("bound as printed", marks, [bound.printed for bound in promised]),
            Line("T: all that can be lost", marks, marks, dashed=True),
        ],
        areas=[
            Area(
                "2 to 15 times the regret (version 1: 5 to 33)",
                marks,
                [*(2.0 * found.regret)],
                [*(15.0 * found.regret)],
            )
        ],
        log_x=True,
        log_y=True,
    )


def _table(played: Sequence[PlayedCertificates], bounds: Sequence[Promises]) -> Table:
    rows = []
    for found, promised in zip(played, bounds, strict=True):
        vacuous = " (> T)" if promised.printed > found.row.questions else ""
        cells = (float(found.regret[-1]), float(found.live[-1]), promised.direct, promised.repaired, promised.printed)
        texts = [shown(cell) for cell in cells]
        texts[-1] += vacuous
        rows.append([_name(found.row), *texts, f"{found.violations} of {found.runs}"])
    return Table(
        title="Regret and bounds at the end (summed loss)",
        heads=["setting", "regret", "live", "direct", "repaired", "as printed", "violations"],
        rows=rows,
        note="Regret and live certificate: means over runs. From η = .4 on the latter is the largest possible regret.",
    )

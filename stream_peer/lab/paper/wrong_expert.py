"""Claim 2: losses against a reference answer elect the wrong expert, peer losses the right one."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.forms import peer_loss
from stream_peer.lab.formulas.gaps import calibration_gap, noisy_label_gap
from stream_peer.lab.paper.results import (
    Cells,
    ClaimCheck,
    Figure,
    Line,
    Mean,
    Result,
    Size,
    Table,
    at_least,
    at_most,
    between,
    mean_of,
    near,
    none_of,
)
from stream_peer.lab.paper.worlds import flipped, merged, outcomes, seen, shrunk
from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.losses import squared_loss

QUESTIONS = 1000
RATES = np.arange(1, 10) * 0.05
SHRINKAGES = np.arange(-4, 10) * 0.1
POINTS = ((0.2, 0.4), (0.35, 0.0), (0.45, 0.4), (0.1, 0.4))
"""η and κ of the duels that are counted one by one; only the last lies outside of the region where B looks better."""

VOTERS, ACCURACY, SHRINKAGE, PANEL_QUESTIONS = 40, 0.54, 0.75, 4000


class Duel(NamedTuple):
    """Whether the perfect expert had the smaller sum, by run: (runs,) each."""

    naive: BoolArray
    peer: BoolArray


class PanelRun(NamedTuple):
    """One run of the panel: who was elected by what, and the error rate with its estimate."""

    naive_own: bool
    naive_full: bool
    peer: bool
    rate: float
    estimate: float


def wrong_expert(rng: np.random.Generator, size: Size) -> Result:
    """A perfect and an under-confident expert under answers of a known error rate; then a panel with real votes."""
    runs, panels = (100, 6) if size is Size.QUICK else (400, 30)
    shares = wrong_shares(rng, runs)
    points = [duel(rng, error_rate, shrinkage, runs) for error_rate, shrinkage in POINTS]
    played = [panel_run(rng) for _ in range(panels)]
    checks = [_map_check(shares)]
    for (error_rate, shrinkage), found in zip(POINTS, points, strict=True):
        where = f"right expert elected at η = {error_rate:g}, κ = {shrinkage:g}, share of runs"
        expected = chances_to_be_elected(error_rate, shrinkage)
        checks.append(_share_check(f"naive: {where}", found.naive, expected[0]))
        checks.append(_share_check(f"peer: {where}", found.peer, expected[1]))
    checks += _panel_checks(played)
    return Result(
        number=2,
        title="Naive labels elect the wrong expert",
        claim=(
            "A perfect expert A (forecast p) meets B with forecast ½ + κ(p - ½), p uniform. Scored against reference "
            "answers of error rate η, B looks better if and only if 1 - 4η < κ < 1 (noisy label identity); by peer "
            f"losses A does. {QUESTIONS:,} questions, {runs} runs a cell. Then a panel of {VOTERS} voters who are "
            f"right in 54 %, A, and B with κ = {SHRINKAGE:g}: references are real votes, η is estimated without any "
            "outcome."
        ),
        finding=(
            f"Naive losses elected the under-confident expert in {np.mean([not run.naive_own for run in played]):.0%} "
            f"of panels, peer losses in {np.mean([not run.peer for run in played]):.0%}."
        ),
        checks=checks,
        figures=[_map(shares), _margins(rng, runs)],
        tables=[_panel_table(played)],
    )


def duel(rng: np.random.Generator, error_rate: float, shrinkage: float, runs: int) -> Duel:
    """Sums of naive and of peer losses of A and B over the same questions."""
    chances = rng.random((runs, QUESTIONS))
    reference = flipped(outcomes(rng, chances), rng.random(chances.shape) < error_rate).astype(np.int64)
    forecasts = (chances, shrunk(chances, shrinkage))
    naive = [squared_loss(p, reference).sum(axis=1) for p in forecasts]
    peer = [peer_loss(p, reference, error_rate).sum(axis=1) for p in forecasts]
    return Duel(naive[0] < naive[1], peer[0] < peer[1])


def chances_to_be_elected(error_rate: float, shrinkage: float) -> tuple[float, float]:
    """Chance that A's sum is the smaller one, by naive and by peer losses, when it is close to normal.

    With x = p - ½ uniform and z = 2ŷ - 1, B's loss exceeds A's by ``(1 - κ)·(z·x - c·x²)``, c = 1 + κ for naive losses
    and (1 + κ)(1 - 2η) for peer losses; E[z | x] = (1 - 2η)·2x.
    """
    informative, second, fourth = 1.0 - 2.0 * error_rate, 1.0 / 12.0, 1.0 / 80.0
    found = []
    for curvature in (1.0 + shrinkage, (1.0 + shrinkage) * informative):
        mean = (2.0 * informative - curvature) * second
        variance = second + (curvature * curvature - 4.0 * informative * curvature) * fourth - mean * mean
        found.append(NormalDist().cdf(mean * math.sqrt(QUESTIONS / variance)))
    return found[0], found[1]


def wrong_shares(rng: np.random.Generator, runs: int) -> FloatArray:
    """Share of runs in which naive losses elect B: (shrinkages, rates)."""
    shares = np.empty((SHRINKAGES.size, RATES.size))
    for column, rate in enumerate(RATES):
        for row, shrinkage in enumerate(SHRINKAGES):
            shares[row, column] = 1.0 - duel(rng, float(rate), float(shrinkage), runs).naive.mean()
    return shares


def panel_run(rng: np.random.Generator) -> PanelRun:
    """Two experts among voters, over 4,000 questions: everything as the service computes it."""
    chances = rng.random(PANEL_QUESTIONS)
    outcome = outcomes(rng, chances).astype(np.int64)
    right = rng.random((PANEL_QUESTIONS, VOTERS)) < ACCURACY
    voters = np.where(right == (outcome[:, None] == 1), ACCURACY, 1.0 - ACCURACY)
    forecasts = np.column_stack([chances, shrunk(chances, SHRINKAGE), voters])
    panel = seen(forecasts, rng.integers(0, 2, PANEL_QUESTIONS).astype(np.int8))
    estimate = merged(panel.moments).estimate().zero
    duellists, own = forecasts[:, :2], panel.own[:, :2]
    naive = squared_loss(duellists, own).sum(axis=0)
    full = squared_loss(duellists, panel.published[:, None]).sum(axis=0)
    peer = peer_loss(duellists, own, estimate).sum(axis=0)
    rate = float(np.mean(panel.own != outcome[:, None]))
    return PanelRun(bool(naive[0] < naive[1]), bool(full[0] < full[1]), bool(peer[0] < peer[1]), rate, estimate)


def _share_check(what: str, elected: BoolArray, expected: float) -> ClaimCheck:
    error = math.sqrt(expected * (1.0 - expected) / elected.size) + 0.25 / elected.size
    check = near(what, Mean(float(elected.mean()), error), expected)
    return check._replace(low=max(check.low, 0.0), high=min(check.high, 1.0))


def _map_check(shares: FloatArray) -> ClaimCheck:
    line = 1.0 - 4.0 * RATES
    distance = SHRINKAGES[:, None] - line
    away = np.abs(distance) > 0.05
    wrong = (shares > 0.5) != (distance > 0.0)
    return none_of("cells of the map whose runs mostly disagree with 1 - 4η < κ < 1", int((wrong & away).sum()))


def _panel_checks(played: list[PanelRun]) -> list[ClaimCheck]:
    right = {
        name: float(np.mean([getattr(run, name) for run in played])) for name in ("naive_own", "naive_full", "peer")
    }
    estimate = mean_of(np.array([run.estimate - run.rate for run in played]))
    what = "panel: right expert elected by"
    return [
        at_most(
            f"{what} naive losses against the others' majority, share",
            right["naive_own"],
            0.05,
            "20 earlier runs: none",
            "0",
        ),
        at_most(
            f"{what} naive losses against everybody's majority, share",
            right["naive_full"],
            0.2,
            "20 earlier runs: none",
            "0",
        ),
        at_least(
            f"{what} peer losses, η estimated without outcomes, share", right["peer"], 0.9, "20 earlier runs: all", "1"
        ),
        between("panel: η estimated less η true", estimate.value, -0.03, 0.03, "earlier runs: .009 apart", "0"),
    ]


def _map(shares: FloatArray) -> Figure:
    rates = np.linspace(0.05, 0.35, 7)
    return Figure(
        name="wrong-expert",
        title="Where naive labels elect the wrong expert",
        caption="Naive losses prefer the under-confident expert in the cells above the line, as predicted.",
        x_label="error rate η of reference answers",
        y_label="κ of the rival (1: as confident as A)",
        lines=[Line("boundary κ = 1 - 4η", [*rates], [*(1.0 - 4.0 * rates)], dashed=True)],
        cells=Cells("share of runs that elect the worse expert", [*RATES], [*SHRINKAGES], shares.tolist()),
    )


def _margins(rng: np.random.Generator, runs: int) -> Figure:
    rates = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    shrinkage = 0.4
    chances = rng.random((runs, QUESTIONS))
    outcome, noise = outcomes(rng, chances), rng.random(chances.shape)
    forecasts = (chances, shrunk(chances, shrinkage))
    naive, peer = [], []
    for rate in rates:
        reference = flipped(outcome, noise < rate).astype(np.int64)
        a, b = (squared_loss(p, reference) for p in forecasts)
        naive.append(mean_of((b - a).mean(axis=1)))
        s, r = (peer_loss(p, reference, float(rate)) for p in forecasts)
        peer.append(mean_of((r - s).mean(axis=1)))
    grid = np.linspace(0.00025, 0.99975, 2000, dtype=np.float64)
    theory = [
        [float(gap(shrunk(grid, shrinkage), grid, float(rate)).mean()) for rate in rates]
        for gap in (calibration_gap, noisy_label_gap)
    ]
    return Figure(
        name="margins",
        title="How clearly, for κ = .4",
        caption="By peer losses the better expert leads at every η; by naive losses it falls behind at η = .15.",
        x_label="error rate η of reference answers",
        y_label="lead of the better expert (loss a question)",
        lines=[
            Line("peer losses", [*rates], [m.value for m in peer], [m.error for m in peer]),
            Line("naive losses", [*rates], [m.value for m in naive], [m.error for m in naive]),
            Line("expected of peer losses", [*rates], theory[0], dashed=True),
            Line("expected of naive losses", [*rates], theory[1], dashed=True),
        ],
    )


def _panel_table(played: list[PanelRun]) -> Table:
    rate, estimate = (mean_of(np.array([getattr(run, name) for run in played])) for name in ("rate", "estimate"))
    wrong = [sum(not getattr(run, name) for run in played) for name in ("naive_own", "naive_full", "peer")]
    counts = [f"{count} of {len(played)}" for count in wrong]
    return Table(
        title="The panel: wrong expert elected",
        heads=["", "naive, others' majority", "naive, everybody's majority", "peer", "η true", "η estimated"],
        rows=[
            ["earlier", "20 of 20", "20 of 20", "0 of 20", ".24 to .26", ".252"],
            ["measured", *counts, f"{rate.value:.3f}", f"{estimate.value:.3f}"],
        ],
        note="True error rates are those of the experts' own (leave-one-out) reference answers, averaged.",
    )

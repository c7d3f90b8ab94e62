"""Claim 4: with few outcomes revealed, estimating one error rate costs regret that does not depend on N."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.regret_sums import loss_parts
from stream_peer.lab.paper.following import any_time_hedge, revealed_rates
from stream_peer.lab.paper.results import (
    Area,
    Figure,
    Line,
    Mean,
    Result,
    Size,
    Table,
    around,
    at_most,
    mean_of,
    shown,
)
from stream_peer.lab.paper.worlds import flipped, outcomes, shrunk
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.peer_losses import unit_peer_loss

RATE = 0.3
REVEALED = np.array([0.005, 0.02, 0.1, 0.5])
PANELS = (4, 32, 256)


class PlayedPanel(NamedTuple):
    """Regrets of runs with one number of experts.

    Attributes
    ----------
    known : (runs,)
        The error rate known.
    excess : (reveal probabilities, runs)
        With the rate measured on revealed outcomes, less ``known``.
    weighted : (reveal probabilities, runs)
        By losses against revealed outcomes alone, weighted by 1/p*.
    """

    known: FloatArray
    excess: FloatArray
    weighted: FloatArray


def limited_truth(rng: np.random.Generator, size: Size) -> Result:
    """Hedge on peer losses whose rate is measured on revealed outcomes, beside Hedge on those outcomes alone."""
    runs, questions = (48, 1500) if size is Size.QUICK else (300, 4000)
    seeds = rng.integers(0, 2**32, size=2)
    played = [play(np.random.default_rng(seeds), n_experts, runs, questions) for n_experts in PANELS]
    slope, growth = _slope(played), _growth(played)
    return Result(
        number=4,
        title="The price of a measured error rate does not depend on N",
        claim=(
            "With outcomes revealed with probability p*, the paper estimates η from them and scores experts against "
            f"reference answers (η = {RATE:g}). N experts of evenly spaced confidence, {questions:,} questions, "
            f"{runs} runs, the same for every N; η̂ is Hájek's ratio (the printed indicator estimates 1 - η, Erratum "
            "E1) and each loss is priced when it comes, as printed. Excess: regret beyond that with η known."
        ),
        finding=(
            f"Excess regret falls like p* to the power {slope.value:.2f}; from N = {PANELS[0]} to N = {PANELS[-1]} it "
            f"changes by the factor {growth.value:.2f}."
        ),
        checks=[
            around(
                "power of p* in the excess regret", slope, (-1.0, -0.5), "theory: -1 to -.5; earlier runs: -.6", "-0.6"
            ),
            around(
                f"excess at N = {PANELS[-1]} / excess at N = {PANELS[0]}, p* = {REVEALED[0]:g}",
                growth,
                (0.8, 1.25),
                "level: 1; like √(ln N), as for weighted losses: 2",
                "1",
            ),
            at_most(
                "excess / regret with η known, p* = 0.5, mean of all N",
                _last_share(played),
                0.2,
                "earlier runs: a tenth",
            ),
        ],
        figures=[_excess_figure(played), _panel_figure(played)],
        tables=[_table(played)],
    )


def play(rng: np.random.Generator, n_experts: int, runs: int, questions: int) -> PlayedPanel:
    """One panel size; the same generator gives the same questions whatever the size."""
    shrinkages = np.linspace(1.0, 0.0, n_experts)
    amount = REVEALED.size
    known, true = np.zeros((runs, n_experts)), np.zeros((runs, n_experts))
    priced, weighted = np.zeros((amount, runs, n_experts)), np.zeros((amount, runs, n_experts))
    regret = [np.zeros(runs), np.zeros((amount, runs)), np.zeros((amount, runs))]
    right, wrong = np.zeros((amount, runs)), np.zeros((amount, runs))
    rates = revealed_rates(right, wrong)
    for question in range(1, questions + 1):
        chances, errs, reveal = (
            rng.random((runs, 1)),
            rng.random((runs, 1)) < RATE,
            rng.random((1, runs)) < REVEALED[:, None],
        )
        outcome = outcomes(rng, chances)
        reference = flipped(outcome, errs)
        forecasts = shrunk(chances, shrinkages)
        losses = squared_loss(forecasts, outcome)
        for place, cumulative in enumerate((known, priced, weighted)):
            regret[place] += (any_time_hedge(cumulative, question) * losses).sum(axis=-1)
        true += losses
        changed = reveal.any()
        right, wrong = right + (reveal & ~errs[:, 0]), wrong + (reveal & errs[:, 0])
        rates = revealed_rates(right, wrong, rates, reveal) if changed else rates
        parts = loss_parts(forecasts, reference)
        known += unit_peer_loss(*parts, RATE, RATE)
        priced += unit_peer_loss(*parts, rates[..., None], rates[..., None])
        weighted += reveal[..., None] * losses / REVEALED[:, None, None]
    return PlayedPanel(regret[0] - true.min(axis=-1), regret[1] - regret[0], regret[2] - true.min(axis=-1))


def _slope(played: list[PlayedPanel]) -> Mean:
    """Power of p* by least squares through the logarithms of the mean excess, over all panels."""
    runs = np.mean([found.excess for found in played], axis=0)
    excess = np.maximum(runs.mean(axis=1), 0.05)
    x = np.log(REVEALED) - np.log(REVEALED).mean()
    pull = x / (x @ x)
    return Mean(float(pull @ np.log(excess)), mean_of((pull / excess) @ runs).error)


def _growth(played: list[PlayedPanel]) -> Mean:
    """Excess of the largest panel by that of the smallest; runs are paired, so the error is that of a ratio."""
    small, large = played[0].excess[0], played[-1].excess[0]
    ratio = float(large.mean() / small.mean())
    return Mean(ratio, mean_of(large - ratio * small).error / abs(float(small.mean())))


def _last_share(played: list[PlayedPanel]) -> float:
    return float(np.mean([found.excess[-1].mean() / found.known.mean() for found in played]))


def _excess_figure(played: list[PlayedPanel]) -> Figure:
    lines = []
    for n_experts, found in zip(PANELS, played, strict=True):
        means = [mean_of(row) for row in found.excess]
        lines.append(Line(f"N = {n_experts}", [*REVEALED], [m.value for m in means], [m.error for m in means]))
    fine = np.geomspace(REVEALED[0], REVEALED[-1], 40)
    means = np.log([np.maximum(found.excess.mean(axis=1), 0.05) for found in played]).mean()
    expected = np.exp(means - 0.6 * (np.log(fine) - np.log(REVEALED).mean()))
    return Figure(
        name="limited-truth",
        title="What it costs to measure the error rate",
        caption="The curves of 4, 32 and 256 experts lie on one another and fall with the share of outcomes revealed.",
        x_label="reveal probability p*",
        y_label="excess regret (summed loss)",
        lines=lines,
        areas=[
            Area("like p* to the power -.6, from half to double", [*fine], [*(0.5 * expected)], [*(2.0 * expected)])
        ],
        log_x=True,
        log_y=True,
    )


def _panel_figure(played: list[PlayedPanel]) -> Figure:
    lines = []
    for place, probability in enumerate(REVEALED):
        means = [mean_of(found.excess[place]) for found in played]
        lines.append(Line(f"p* = {probability:g}", [*PANELS], [m.value for m in means], [m.error for m in means]))
    growth = np.sqrt(np.log(PANELS) / math.log(PANELS[0]))
    first = float(played[0].excess[0].mean())
    lines.append(Line("√(ln N), as for weighted losses", [*PANELS], [*(first * growth)], dashed=True))
    return Figure(
        name="limited-truth-experts",
        title="The same, against the number of experts",
        caption="Excess regret stays level while N grows sixty-fold.",
        x_label="number of experts N",
        y_label="excess regret (summed loss)",
        lines=lines,
        areas=[Area("level ± a quarter, p* = 0.005", [*PANELS], [0.75 * first] * 3, [1.25 * first] * 3)],
        log_x=True,
    )


def _table(played: list[PlayedPanel]) -> Table:
    rows = []
    for place, probability in enumerate(REVEALED):
        excess = [shown(float(found.excess[place].mean())) for found in played]
        weighted = [shown(float(found.weighted[place].mean())) for found in played]
        rows.append([f"{probability:g}", " / ".join(excess), " / ".join(weighted)])
    known = " / ".join(shown(float(found.known.mean())) for found in played)
    return Table(
        title=f"Regret for N = {', '.join(map(str, PANELS))} (summed loss)",
        heads=["p*", "excess of a measured η", "by revealed losses / p* alone"],
        rows=rows,
        note=f"With η known: {known}. Where many outcomes come, learning from them directly is better than from peers.",
    )

"""Two seeded worlds, many runs at once, in which learners follow experts; everything but the draws is the product's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stream_peer.lab.formulas.apriori import shared_answer_spread
from stream_peer.lab.formulas.forms import peer_loss
from stream_peer.lab.formulas.reference_rules import answers_of_all, answers_of_groups, ballots
from stream_peer.lab.formulas.regret_sums import RegretSums, loss_parts
from stream_peer.lab.paper.worlds import flipped, outcomes, shrunk
from stream_peer.numerics.answers import leave_one_out, votes
from stream_peer.numerics.arguments import FloatArray, IntArray, unchecked
from stream_peer.numerics.certificate import live_bounds
from stream_peer.numerics.error_rates import MomentSums, TwoGroupSums, interval_ends, moment_terms, priced
from stream_peer.numerics.learners import ada_normal_hedge, hedge, hedge_rate
from stream_peer.numerics.losses import squared_loss
from tests.reference.plain_formulas import own_answer_spread


class Situation(NamedTuple):
    """Error rate of question t (from 1), and its estimate then, in runs with a standard normal number each."""

    rate: Callable[[int], float]
    estimate: Callable[[int, FloatArray], FloatArray | float]


class Question(NamedTuple):
    """Forecasts (runs, n), outcome and shared reference answer (runs, 1)."""

    forecasts: FloatArray
    outcome: FloatArray
    answer: FloatArray


def shrunk_expert_question(rng: np.random.Generator, shape: tuple[int, int], rate: FloatArray | float) -> Question:
    """The paper's model: chances of arcsine law, experts who shrink them to ½ + κ(p - ½), κ from 0 to 1."""
    runs, n_experts = shape
    chances = rng.beta(0.5, 0.5, (runs, 1))
    outcome = outcomes(rng, chances)
    wrong = rng.random((runs, 1)) < rate
    return Question(shrunk(chances, np.linspace(0.0, 1.0, n_experts)), outcome, flipped(outcome, wrong))


def true_regret(weights: FloatArray, question: Question) -> FloatArray:
    losses = loss_parts(question.forecasts, question.outcome).against
    return np.asarray(np.add.reduce(weights * losses, axis=-1, keepdims=True) - losses)


class Prices(NamedTuple):
    """Mean regret of the best of (situations, marks), of frozen and re-priced any-time exponential weights."""

    frozen: FloatArray
    repriced: FloatArray


def frozen_and_repriced(
    situations: list[Situation], marks: tuple[int, ...], runs: int = 160, n_experts: int = 8
) -> Prices:
    """All situations and both ways on the same draws."""
    rng = np.random.default_rng(6)
    shape = len(situations), runs, n_experts
    sums = [RegretSums.nothing(*shape) for _ in Prices._fields]
    regret, found = np.zeros((2, *shape)), np.zeros((2, len(situations), len(marks)))
    draw = rng.normal(size=(runs, 1))
    for t in range(1, marks[-1] + 1):
        rates = np.array([situation.rate(t) for situation in situations])[:, None, None]
        estimates = np.stack([np.broadcast_to(situation.estimate(t, draw), draw.shape) for situation in situations])
        question = shrunk_expert_question(rng, (runs, n_experts), rates)
        parts = loss_parts(question.forecasts, question.answer)
        for way, read in enumerate((sums[0].frozen, sums[1].priced(estimates, estimates))):
            weights = hedge(read, float(hedge_rate(n_experts, t)))
            sums[way] = sums[way].merge(RegretSums.contribution(weights, parts, (estimates, estimates)))
            regret[way] += true_regret(weights, question)
        if t in marks:
            found[:, :, marks.index(t)] = regret.max(axis=-1).mean(axis=-1)
    return Prices(*found)


class Certified(NamedTuple):
    """Mean regret of the best and mean certificate at the end, and how many runs were ever above theirs."""

    regret: float
    certificate: float
    violated: int


def certified(n_experts: int, questions: int, rate: float, runs: int) -> Certified:
    """AdaNormalHedge in the paper's model at a known error rate, looked at after every question."""
    rng = np.random.default_rng([8, n_experts, questions])
    sums, variance = RegretSums.nothing(runs, n_experts), np.zeros((runs, n_experts))
    regret, violated = np.zeros((runs, n_experts)), np.zeros(runs, dtype=np.bool_)
    certificates = np.zeros(runs)
    for _ in range(questions):
        question = shrunk_expert_question(rng, (runs, n_experts), rate)
        parts = loss_parts(question.forecasts, question.answer)
        weights = ada_normal_hedge(sums.frozen, sums.absolute)
        sums = sums.merge(RegretSums.contribution(weights, parts, (rate, rate)))
        variance += shared_answer_spread(weights, parts.if_one, parts.if_zero) ** 2 / 4.0
        regret += true_regret(weights, question)
        ends = ((rate, rate), (rate, rate))
        bounds = live_bounds(sums.against, sums.if_one, sums.if_zero, variance, ends, n_experts, 0.05)
        certificates = bounds.max(axis=-1)
        violated |= regret.max(axis=-1) > certificates
    return Certified(float(regret.max(axis=-1).mean()), float(certificates.mean()), int(violated.sum()))


@dataclass
class Crowd:
    """Experts with signals of their own on a fair outcome: x = ±strength + noise, forecasts of log odds 2·κ·strength·x.

    Strengths are uniform within .05-.5 standard deviations, κ log-uniform within .4-2.5, where 1 is calibrated.
    """

    rng: np.random.Generator
    runs: int
    n_experts: int
    strength: FloatArray = field(init=False)
    scale: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        shape = self.runs, self.n_experts
        self.strength = self.rng.uniform(0.05, 0.5, shape)
        self.scale = np.exp(self.rng.uniform(np.log(0.4), np.log(2.5), shape))

    def question(self) -> tuple[FloatArray, FloatArray]:
        """Forecasts (runs, n), outcomes (runs, 1)."""
        outcome = self.rng.integers(0, 2, (self.runs, 1)).astype(np.float64)
        signal = (2.0 * outcome - 1.0) * self.strength + self.rng.normal(size=self.strength.shape)
        return 1.0 / (1.0 + np.exp(-2.0 * self.scale * self.strength * signal)), outcome

    def coins(self) -> IntArray:
        return self.rng.integers(0, 2, self.runs)


class Robust:
    """Leave-one-out answers, rate from moments, re-priced AdaNormalHedge."""

    def __init__(self, runs: int, n_experts: int) -> None:
        self.sums = RegretSums.nothing(runs, n_experts)
        self.moments = [MomentSums() for _ in range(runs)]
        self.rates = np.array([[sums.estimate().zero] for sums in self.moments])

    def weights(self) -> FloatArray:
        return ada_normal_hedge(self.sums.priced(self.rates, self.rates), self.sums.absolute)

    def learn(self, weights: FloatArray, forecasts: FloatArray, coins: IntArray) -> None:
        answers = leave_one_out(forecasts, coins).answers
        parts = loss_parts(forecasts, answers)
        self.sums = self.sums.merge(RegretSums.contribution(weights, parts, (self.rates, self.rates)))
        side = votes(forecasts)
        for run, sums in enumerate(self.moments):
            terms = unchecked(moment_terms)(side[run], answers[run])
            if terms is not None:
                self.moments[run] = sums.merge(MomentSums.contribution(terms))
        estimates = [unchecked(MomentSums.estimate)(sums).zero for sums in self.moments]
        self.rates = np.array([[unchecked(priced)(rate, rate).zero] for rate in estimates])


class Paper:
    """Two fixed groups, the answer of A, the corrected two-group rate, frozen losses, any-time exponential weights."""

    def __init__(self, runs: int, n_experts: int) -> None:
        self.in_a = np.arange(n_experts) % 2 == 0
        self.losses, self.questions = np.zeros((runs, n_experts)), 0
        self.groups = [TwoGroupSums() for _ in range(runs)]

    def weights(self) -> FloatArray:
        return hedge(-self.losses, hedge_rate(self.losses.shape[-1], self.questions))

    def learn(self, forecasts: FloatArray, coins: tuple[IntArray, IntArray]) -> None:
        found = answers_of_groups(ballots(forecasts, "majority"), self.in_a, coins)
        for run, (a, b) in enumerate(zip(found.a.answers.tolist(), found.b.answers.tolist(), strict=True)):
            self.groups[run] = self.groups[run].merge(TwoGroupSums.contribution(a, b))
        rates = np.array([[unchecked(TwoGroupSums.estimate)(sums).zero] for sums in self.groups])
        losses = peer_loss(forecasts, found.a.answers[:, None], rates)
        self.losses += losses - losses.mean(axis=-1, keepdims=True)
        self.questions += 1


class Estimated(NamedTuple):
    """Runs whose regret was above their certificate at some time, and the share whose interval held the true rate."""

    violated: int
    covered: float
    regret: float
    certificate: float


def certified_by_estimates(n_experts: int, questions: int, runs: int) -> Estimated:
    """Leave-one-out answers, their worst spread and both ends of the estimated rate's interval, every 25 questions."""
    crowd = Crowd(np.random.default_rng([9, n_experts]), runs, n_experts)
    robust = Robust(runs, n_experts)
    regret, variance = np.zeros((2, runs, n_experts))
    violated, wrong, certificates = np.zeros(runs, dtype=np.bool_), np.zeros(runs), np.zeros(runs)
    for t in range(1, questions + 1):
        forecasts, outcome = crowd.question()
        weights, coins = robust.weights(), crowd.coins()
        regret += true_regret(weights, Question(forecasts, outcome, outcome))
        wrong += (leave_one_out(forecasts, coins).answers != outcome).mean(axis=-1)
        variance += own_answer_spread(weights, squared_loss(forecasts, 1), squared_loss(forecasts, 0)) ** 2 / 4.0
        robust.learn(weights, forecasts, coins)
        if t % 25 == 0:
            sums = robust.sums
            for run, moments in enumerate(robust.moments):
                parts = sums.against[run], sums.if_one[run], sums.if_zero[run], variance[run]
                ends = interval_ends(moments.estimate(0.99))
                certificates[run] = live_bounds(*parts, ends, n_experts, 0.04).max()
            violated |= regret.max(axis=-1) > certificates
    rates = [moments.estimate() for moments in robust.moments]
    covered = np.mean([rate.low <= share <= rate.high for rate, share in zip(rates, wrong / questions, strict=True)])
    finite = certificates[np.isfinite(certificates)]
    return Estimated(int(violated.sum()), float(covered), float(regret.max(axis=-1).mean()), float(finite.mean()))


class EndToEnd(NamedTuple):
    """Mean regret of the best, of four ways to follow experts."""

    paper: float
    robust: float
    naive: float
    informed: float


def end_to_end(n_experts: int, questions: int, runs: int) -> EndToEnd:
    """The presets, and AdaNormalHedge on everybody's majority as if it were true, and on outcomes."""
    crowd = Crowd(np.random.default_rng([7, n_experts]), runs, n_experts)
    robust, paper = Robust(runs, n_experts), Paper(runs, n_experts)
    naive, informed = RegretSums.nothing(runs, n_experts), RegretSums.nothing(runs, n_experts)
    regret = np.zeros((4, runs, n_experts))
    for _ in range(questions):
        forecasts, outcome = crowd.question()
        ways = [
            paper.weights(),
            robust.weights(),
            ada_normal_hedge(naive.frozen, naive.absolute),
            ada_normal_hedge(informed.frozen, informed.absolute),
        ]
        for way, weights in enumerate(ways):
            regret[way] += true_regret(weights, Question(forecasts, outcome, outcome))
        coins = crowd.coins()
        paper.learn(forecasts, (coins, crowd.coins()))
        robust.learn(ways[1], forecasts, coins)
        majority = answers_of_all(ballots(forecasts, "majority"), coins).answers[:, None]
        naive = naive.merge(RegretSums.contribution(ways[2], loss_parts(forecasts, majority), (0.0, 0.0)))
        informed = informed.merge(RegretSums.contribution(ways[3], loss_parts(forecasts, outcome), (0.0, 0.0)))
    return EndToEnd(*(float(value) for value in regret.max(axis=-1).mean(axis=-1)))

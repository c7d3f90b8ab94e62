"""Does the certificate hold, and how large is it? ``python -m benchmarks.certificates [--write FILE]``.

In simulated worlds of four to ten experts who err independently given the outcome, ``select`` is followed, and the
certificates of both versions of the method are compared with the regret after every tenth question. The formulas are
the product's. The exit code is 0 if the certificate of version 2 was never below the regret and, where experts err
alike on both outcomes, is no larger than it may be (`LARGEST`), 1 if not.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.pages import in_markdown, write
from stream_peer.numerics.arguments import BoolArray, FloatArray, unchecked
from stream_peer.numerics.certificate import confidence_at_all_times, live_bounds, regret_bounds
from stream_peer.numerics.error_rates import ClassMomentSums, MomentSums, combine_with_truth, interval_ends
from stream_peer.numerics.learners import ada_normal_hedge

DELTA = 0.05
_OF_RULE = DELTA / 2
"""Each of the two vote rules has its part."""
_FOR_NOISE, _FOR_RATES = 0.8, 0.2
LOOKED_AT = 10
MARKS = (200, 1500)
LARGEST = (0.22, 0.057)
"""What version 2 may say at these marks where experts err alike: half of what version 1 said in such worlds."""

_corners, _symmetric = unchecked(ClassMomentSums.corners), unchecked(MomentSums.estimate)
_combined, _hedge = unchecked(combine_with_truth), unchecked(ada_normal_hedge)
_regret_bounds, _live_bounds = unchecked(regret_bounds), unchecked(live_bounds)


class Drawn(NamedTuple):
    """Forecasts (questions, rounds, runs, n), NaN of experts who are asleep; outcomes (questions, runs)."""

    forecasts: FloatArray
    outcomes: FloatArray


Draw = Callable[[np.random.Generator, tuple[int, int, int, int]], Drawn]


def votes(rng: np.random.Generator, shape: tuple[int, int, int, int]) -> Drawn:
    """Votes of 0 or 1, right on both outcomes alike; in a later round three of ten are cast again."""
    _, _, runs, n_experts = shape
    return _votes(rng, shape, np.broadcast_to(rng.uniform(0.55, 0.9, (runs, n_experts)), (2, runs, n_experts)))


def unequal_votes(rng: np.random.Generator, shape: tuple[int, int, int, int]) -> Drawn:
    """Votes that are right on one outcome much more often than on the other."""
    _, _, runs, n_experts = shape
    often, seldom = rng.uniform(0.8, 0.98, (runs, n_experts)), rng.uniform(0.55, 0.75, (runs, n_experts))
    is_one = rng.random((runs, 1)) < 0.5
    return _votes(rng, shape, np.stack((np.where(is_one, seldom, often), np.where(is_one, often, seldom))))


def misled_votes(rng: np.random.Generator, shape: tuple[int, int, int, int]) -> Drawn:
    """Votes of a crowd that is right on .98 of zeros and .62 of ones, but for one expert: on .86 and .82.

    Half of the outcomes are ones.
    """
    accuracy = np.broadcast_to(np.array([[[0.98]], [[0.62]]]), (2, *shape[2:])).copy()
    accuracy[:, :, -1] = [[0.86], [0.82]]
    return _votes(rng, shape, accuracy, ones=(0.5, 0.5))


def _votes(
    rng: np.random.Generator,
    shape: tuple[int, int, int, int],
    accuracy: FloatArray,
    ones: tuple[float, float] = (0.3, 0.7),
) -> Drawn:
    outcomes = _outcomes(rng, shape, ones)
    forecasts, right = np.empty(shape), np.zeros((len(outcomes), *shape[2:]), np.bool_)
    chances = np.where(outcomes[..., None] == 1.0, accuracy[1], accuracy[0])
    for number in range(shape[1]):
        again = rng.random(right.shape) < (0.3 if number else 1.0)
        right = np.where(again, rng.random(right.shape) < chances, right)
        forecasts[:, number] = np.where(right, outcomes[..., None], 1.0 - outcomes[..., None])
    return Drawn(forecasts, outcomes)


def probabilities(rng: np.random.Generator, shape: tuple[int, int, int, int]) -> Drawn:
    """Probabilities from signals of different strength, too bold or too timid."""
    outcomes = _outcomes(rng, shape)
    strength, boldness = rng.uniform(0.2, 1.0, shape[2:]), np.exp(rng.normal(0.0, 0.5, shape[2:]))
    towards = (2.0 * outcomes[..., None] - 1.0) * strength
    forecasts, noise = np.empty(shape), rng.normal(size=(len(outcomes), *shape[2:]))
    for number in range(shape[1]):
        if number:
            noise = 0.7 * noise + np.sqrt(1.0 - 0.49) * rng.normal(size=noise.shape)
        forecasts[:, number] = 1.0 / (1.0 + np.exp(-2.0 * strength * boldness * (towards + noise)))
    return Drawn(forecasts, outcomes)


def sleepers(rng: np.random.Generator, shape: tuple[int, int, int, int]) -> Drawn:
    """Probabilities of experts who answer six of ten questions; at least three answer each."""
    drawn = probabilities(rng, shape)
    awake = rng.random((shape[0], *shape[2:])) < 0.6
    awake |= awake.sum(axis=-1, keepdims=True) < 3
    return drawn._replace(forecasts=np.where(awake[:, None], drawn.forecasts, np.nan))


def _outcomes(
    rng: np.random.Generator, shape: tuple[int, int, int, int], ones: tuple[float, float] = (0.3, 0.7)
) -> FloatArray:
    """Of each run the share of ones is between two shares."""
    return (rng.random((shape[0], shape[2])) < rng.uniform(*ones, shape[2])).astype(np.float64)


class World(NamedTuple):
    """Whom it is of, how many rounds a question has, which outcomes are revealed: ``easy``, where votes agree."""

    name: str
    draw: Draw
    rounds: int = 1
    revealed: float = 0.0
    easy: bool = False
    alike: bool = True


WORLDS = (
    World("votes", votes),
    World("probabilities", probabilities),
    World("probabilities, a tenth of the outcomes", probabilities, revealed=0.1),
    World("six of ten questions each, a tenth of the outcomes", sleepers, revealed=0.1),
    World("votes, three rounds", votes, rounds=3),
    World("probabilities, three rounds, a tenth of the outcomes", probabilities, rounds=3, revealed=0.1),
    World("votes, outcomes of easy questions only", votes, revealed=0.3, easy=True),
    World("votes, better on one outcome", unequal_votes, alike=False),
    World("votes of a crowd misled on ones", misled_votes, alike=False),
)


class Found(NamedTuple):
    """Of each run: the regret and both certificates at the marks (marks, runs), and the least margin of version 2.

    ``violated``: runs in which the certificate of version 2 was ever below the regret; ``former``: that of version 1.
    """

    regret: FloatArray
    first: FloatArray
    second: FloatArray
    margin: FloatArray
    violated: BoolArray


class _Round(NamedTuple):
    """What a round says: regrets (3, runs, n) against the answers, 1 and 0; reach, (runs, n); terms of the rates."""

    regrets: FloatArray
    own: FloatArray
    reach: FloatArray
    pair: FloatArray
    rest: FloatArray
    classes: FloatArray
    wrong: FloatArray


def _round(forecasts: FloatArray, weights: FloatArray, outcome: FloatArray, coin: BoolArray) -> _Round:
    awake = ~np.isnan(forecasts)
    p = np.where(awake, forecasts, 0.5)
    cast = np.where(awake, np.where(p > 0.5, 1, -1), 0)
    n, lead = awake.sum(axis=1, keepdims=True), cast.sum(axis=1, keepdims=True) - cast
    mean = (np.where(awake, p, 0.0).sum(axis=1, keepdims=True) - np.where(awake, p, 0.0)) / (n - 1)
    answer = np.where(lead != 0, lead > 0, np.where(mean != 0.5, mean > 0.5, coin)) & awake
    if_one, if_zero = (1.0 - p) ** 2, p**2
    losses = np.stack((np.where(answer, if_one, if_zero), if_one, if_zero))
    followed = (weights * losses).sum(axis=2, keepdims=True)
    regrets = np.where(awake, followed - losses, 0.0)
    moved = np.abs(if_one - if_zero)
    own = np.where(awake, (weights * moved).sum(axis=1, keepdims=True) + (1.0 - 2.0 * weights) * moved, 0.0)
    answers = answer.sum(axis=1, keepdims=True)
    alike = (answers == 0) | (answers == n)
    yes, total, both = (cast > 0).sum(axis=1), cast.sum(axis=1), (answer & (cast > 0)).sum(axis=1)
    n, answers = n[:, 0], answers[:, 0]
    return _Round(
        regrets,
        own,
        np.where(alike, np.abs(regrets[1] - regrets[2]), own),
        (total * total - n) / (n * (n - 1)),
        (2 * (2 * both - answers) - total) / n,
        np.stack(
            (yes / n, yes * (yes - 1) / (n * (n - 1)), yes * (yes - 1) * (yes - 2) / (n * (n - 1) * (n - 2)),
             answers / n, both / n)
        ),
        np.where(outcome == 1.0, n - answers, answers) / n,
    )  # fmt: skip


class Life:
    """Runs of one world at once: what the product sums, and what came of it."""

    def __init__(self, world: World, runs: int, n_experts: int, questions: int, seed: int) -> None:
        self.rng = np.random.default_rng([seed, n_experts, *world.name.encode()])
        self.world, self.questions = world, questions
        self.drawn = world.draw(self.rng, (questions, world.rounds, runs, n_experts))
        shape = runs, n_experts
        self.all, self.open = np.zeros((3, *shape)), np.zeros((3, *shape))  # regrets against answers, 1 and 0
        self.absolute, self.true, self.known, self.most = np.zeros((4, *shape))
        self.variance, self.spread = np.zeros((2, *shape))
        self.moments, self.classes = np.zeros((7, runs)), np.zeros((22, runs))
        self.cells = np.zeros((4, runs))  # wrong and all answers by outcome, on resolved questions
        self.outcomes = np.zeros(runs)

    def rates(self) -> FloatArray:
        """As votes at one half price losses: the same for both outcomes, at most .4."""
        pair, rest = (
            (self.moments[at] + 20.0 * start) / (self.moments[0] + 20.0)
            for at, start in ((2, 0.1), (3, 0.5 * 0.1**0.5))
        )
        alignment = rest / np.sqrt(np.maximum(pair, 1e-12))
        return np.clip(np.where(pair > 0.0, 0.5 * (1.0 - alignment), 0.4), 0.0, 0.4)

    def step(self, number: int) -> None:
        """Follow ``select`` on a question, all its rounds by the weights from before it."""
        outcome, rate = self.drawn.outcomes[number], self.rates()[:, None]
        distance = 1.0 - 2.0 * rate
        priced = (self.open[0] - rate * (self.open[1] + self.open[2])) / distance + self.known
        awake = ~np.isnan(self.drawn.forecasts[number, 0])
        weights = _hedge(priced * distance, self.absolute, None, awake)
        coin = self.rng.random((len(outcome), 1)) < 0.5
        rounds = [_round(forecasts, weights, outcome, coin) for forecasts in self.drawn.forecasts[number]]
        said = _Round(*(np.mean(np.stack(parts), axis=0) for parts in zip(*rounds, strict=True)))
        self._add(said, outcome, rate, self._revealed(said))

    def _revealed(self, said: _Round) -> BoolArray:
        if self.world.easy:
            return np.asarray(np.abs(said.classes[0] - 0.5) > 0.5 - self.world.revealed / 2.0)
        return self.rng.random(len(said.pair)) < self.world.revealed

    def _add(self, said: _Round, outcome: FloatArray, rate: FloatArray, revealed: BoolArray) -> None:
        is_open, against, if_one, if_zero = ~revealed[:, None], *said.regrets
        true = np.where(outcome[:, None] == 1.0, if_one, if_zero)
        self.true += true
        self.known += np.where(is_open, 0.0, true)
        self.most += np.where(is_open, np.maximum(if_one, if_zero), true)
        self.all += said.regrets
        self.open += np.where(is_open, said.regrets, 0.0)
        self.absolute += np.abs(np.where(is_open, against - rate * (if_one + if_zero), true * (1.0 - 2.0 * rate)))
        self.spread += said.reach**2
        self.variance += np.where(is_open, said.own**2 / 4.0, 0.0)
        one = np.ones_like(said.pair)
        pair, rest = said.pair, said.rest
        self.moments += np.stack((one, one, pair, rest, pair * pair, rest * rest, pair * rest))
        first, second = np.triu_indices(5)
        self.classes += np.concatenate((np.stack((one, one)), said.classes, said.classes[first] * said.classes[second]))
        zeros, ones = revealed & (outcome == 0.0), revealed & (outcome == 1.0)
        self.cells += np.stack((zeros * said.wrong, zeros, ones * said.wrong, ones))
        self.outcomes += revealed

    def second(self) -> FloatArray:
        """The certificate of version 2, of each run."""
        confidence = confidence_at_all_times(float(self.moments[0, 0]), 0.5 * _FOR_RATES * _OF_RULE)
        bounds = np.empty_like(self.true)
        for run, sums in enumerate(self.classes.T.tolist()):
            corners = _corners(ClassMomentSums(*sums), confidence)
            against, if_one, if_zero = self.all[:, run]
            bounds[run] = _regret_bounds(
                against, if_one, if_zero, self.spread[run], corners, self.true.shape[1], _FOR_NOISE * _OF_RULE
            )
        return np.asarray(np.minimum(bounds, self.most).max(axis=1))

    def first(self) -> FloatArray:
        """The certificate of version 1, of each run."""
        bounds = np.empty_like(self.true)
        for run, sums in enumerate(self.moments.T.tolist()):
            steps = 1.0 + self.outcomes[run]
            delta = DELTA / (steps * (steps + 1.0))
            confidence = min(1.0 - 0.2 * delta, 1.0 - 2.0**-53)
            wrong0, zeros, wrong1, ones = self.cells[:, run].tolist()
            rate = _combined(_symmetric(MomentSums(*sums), confidence), wrong0, zeros, wrong1, ones, confidence)
            against, if_one, if_zero = self.open[:, run]
            ends, n_experts = interval_ends(rate), self.true.shape[1]
            bounds[run] = _live_bounds(against, if_one, if_zero, self.variance[run], ends, n_experts, 0.8 * delta)
        return np.asarray((bounds + self.known).max(axis=1))


def lived(world: World, runs: int, n_experts: int, questions: int, seed: int = 1) -> Found:
    """Many runs of a world, looked at after every tenth question and at the marks."""
    life = Life(world, runs, n_experts, questions, seed)
    margin, at_marks = np.full(runs, np.inf), []
    for number in range(1, questions + 1):
        life.step(number - 1)
        if number % LOOKED_AT == 0 or number in MARKS:
            regret, bound = life.true.max(axis=1), life.second()
            margin = np.minimum(margin, bound - regret)
            if number in MARKS:
                at_marks.append(np.stack((regret, life.first(), bound)) / number)
    regret, first, second = np.stack(at_marks, axis=1) if at_marks else np.empty((3, 0, runs))
    return Found(regret, first, second, margin, margin < -1e-9)  # sums are rounded


def measured(runs: int, questions: int, processes: int) -> Iterator[tuple[World, Found]]:
    """All worlds, of each so many runs, with four to ten experts."""
    sizes = (4, 5, 7, 8, 10)
    with ProcessPoolExecutor(processes) as pool:
        parts = [
            (world, [pool.submit(lived, world, runs // len(sizes), size, questions) for size in sizes])
            for world in WORLDS
        ]
        for world, lives in parts:
            found = [life.result() for life in lives]
            yield world, Found(*(np.concatenate(each, axis=-1) for each in zip(*found, strict=True)))


def page(found: Sequence[tuple[World, Found]], questions: int) -> tuple[list[str], bool]:
    """Lines of the page, and whether all is as it should be."""
    marks = [mark for mark in MARKS if mark <= questions]
    head = ["world", "runs", "below the regret", *(f"after {mark:,}: regret, version 1, version 2" for mark in marks)]
    rows, total, violations = [], 0, 0
    for world, of in found:
        n, violated = len(of.violated), int(of.violated.sum())
        total, violations = total + n, violations + violated
        rows.append([world.name, f"{n}", f"{violated}", *_medians(of)])
    first, second = (
        [float(np.median(np.concatenate([row[at] for row in rows]))) for at in range(len(marks))]
        for rows in zip(*((of.first, of.second) for world, of in found if world.alike), strict=True)
    )
    said = f"{total} runs of {questions:,} questions, looked at after every tenth: {violations} with a certificate"
    lines = [*in_markdown(head, rows), "", f"{said} of version 2 below the regret. Medians a question."]
    fits = all(value <= limit for value, limit in zip(second, LARGEST, strict=False))
    said = " and ".join(
        f"{one:.3f} instead of {other:.3f} after {mark:,}"
        for one, other, mark in zip(second, first, marks, strict=True)
    )
    lines.append(f"Where experts err alike on both outcomes version 2 says {said} questions.")
    return lines, fits and not violations


def _medians(found: Found) -> list[str]:
    return [
        " / ".join(_shown(float(np.median(values[at]))) for values in (found.regret, found.first, found.second))
        for at in range(len(found.regret))
    ]


def _shown(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "none"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50, help="of each world; 50 if left out")
    parser.add_argument("--questions", type=int, default=3000, help="of each run; 3000 if left out")
    parser.add_argument("--processes", type=int, default=1, help="at once; 1 if left out")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page as well")
    options = parser.parse_args()
    lines, holds = page(list(measured(options.runs, options.questions, options.processes)), options.questions)
    print("\n".join(lines))
    if options.write:
        write(options.write, lines)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())

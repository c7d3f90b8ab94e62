"""Simulated worlds of the quality benchmark: crowds whose errors are known, through the product's engine.

Nothing is chosen on its own confirmation half: rules were chosen on worlds of even seeds and confirmed on odd ones.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.quality_sets import Floats, run_as_one
from stream_peer.events.times import to_iso

Ints = npt.NDArray[np.int64]
Generator = np.random.Generator
_BEGIN, _HOUR = 1_704_067_200_000, 3_600_000
_QUESTIONS, _EXPERTS = (400, 800, 1200), (7, 12, 25)
_ABSENT = -1.0
"""In place of a forecast."""

LEVELS = (0.0, 0.1, 1.0)
SEEDS = 4
INDEPENDENT = ("independent votes", "independent probabilities", "sparse crowd")
NOISE = ("coins", "noisy probabilities")
HIGHEST_INDEPENDENT = 0.80
"""Of the geometric mean over worlds whose experts err independently, without outcomes."""
HIGHEST_NOISE = 1.003
"""Of that over worlds in which nobody knows anything, at each level."""


class World(NamedTuple):
    """What each expert says of each question, (questions, experts), and the outcomes."""

    forecasts: Floats
    outcomes: Ints


def _votes(right: npt.NDArray[np.bool_], outcomes: Ints) -> Floats:
    return np.where(right, outcomes[:, None], 1 - outcomes[:, None]).astype(np.float64)


def _independent_votes(random: Generator, outcomes: Ints, n: int) -> Floats:
    errors = random.uniform(0.1, 0.45, n)
    return _votes(random.random((len(outcomes), n)) >= errors, outcomes)


def _independent_probabilities(random: Generator, outcomes: Ints, n: int) -> Floats:
    """Signals of different strength, of which experts make too much or too little."""
    strength = random.uniform(0.3, 1.6, n)
    signals = (outcomes[:, None] - 0.5) * strength + random.normal(size=(len(outcomes), n))
    return _expit(signals * strength * random.uniform(0.5, 1.2, n))


def _sparse_crowd(random: Generator, outcomes: Ints, _: int) -> Floats:
    """Eighty workers, of whom nine answer a question, some often and most hardly ever."""
    activity = random.gamma(0.7, size=80) + 0.02
    said = _independent_votes(random, outcomes, 80)
    for row in said:
        row[np.setdiff1d(np.arange(80), random.choice(80, 9, replace=False, p=activity / activity.sum()))] = _ABSENT
    return said


def _shared_errors(random: Generator, outcomes: Ints, n: int) -> Floats:
    """Part of each signal is the same for all."""
    strength, common = random.uniform(0.4, 1.2, n), 0.64 * random.normal(size=len(outcomes))
    own = 0.6 * random.normal(size=(len(outcomes), n))
    return _expit(1.3 * strength * ((outcomes[:, None] - 0.5) * strength + common[:, None] + own))


def _misleading_questions(random: Generator, outcomes: Ints, n: int) -> Floats:
    """A quarter of the questions misleads most experts, the better ones more."""
    errors, misleads = random.uniform(0.05, 0.3, n), random.random(len(outcomes)) < 0.25
    return _votes(random.random((len(outcomes), n)) >= np.where(misleads[:, None], 1 - 0.8 * errors, errors), outcomes)


def _herd(random: Generator, outcomes: Ints, n: int) -> Floats:
    """Half of the experts say seven times in ten what the first one says."""
    said, size = _independent_votes(random, outcomes, n), n // 2
    follows = random.random((len(outcomes), size)) < 0.7
    said[:, 1 : size + 1] = np.where(follows, said[:, :1], said[:, 1 : size + 1])
    return said


def _misled_class(random: Generator, outcomes: Ints, n: int) -> Floats:
    """Right on nearly all zeros, and on half of the ones."""
    errors = np.where(outcomes[:, None] == 1, random.uniform(0.35, 0.6, n), random.uniform(0.02, 0.1, n))
    return _votes(random.random((len(outcomes), n)) >= errors, outcomes)


def _rare(random: Generator, outcomes: Ints, n: int) -> Floats:
    """One in twenty is yes, and everybody knows that."""
    strength = random.uniform(0.6, 2.5, n)
    signals = outcomes[:, None] * strength + random.normal(size=(len(outcomes), n))
    return _expit(signals * strength - 0.5 * strength**2 + np.log(0.05 / 0.95))


def _coins(random: Generator, outcomes: Ints, n: int) -> Floats:
    return (random.random((len(outcomes), n)) < 0.5).astype(np.float64)


def _noisy_probabilities(random: Generator, outcomes: Ints, n: int) -> Floats:
    return random.beta(2.0, 2.0, size=(len(outcomes), n))


def _expit(log_odds: Floats) -> Floats:
    odds: Floats = 1.0 / (1.0 + np.exp(-log_odds))
    return odds


KINDS: Mapping[str, Callable[[Generator, Ints, int], Floats]] = {
    "independent votes": _independent_votes,
    "independent probabilities": _independent_probabilities,
    "sparse crowd": _sparse_crowd,
    "shared errors": _shared_errors,
    "misleading questions": _misleading_questions,
    "herd": _herd,
    "misled class": _misled_class,
    "rare outcomes": _rare,
    "coins": _coins,
    "noisy probabilities": _noisy_probabilities,
}


def world_of(kind: str, seed: int) -> World:
    """400 to 1,200 questions and, but for the sparse crowd, 7 to 25 experts, the same of each seed."""
    random = np.random.default_rng([seed, *kind.encode()])
    questions, experts = _QUESTIONS[seed // 2 % 3], _EXPERTS[(seed + 1) // 2 % 3]
    share = 0.05 if kind == "rare outcomes" else (0.5, 0.4)[seed % 2]
    outcomes = (random.random(questions) < share).astype(np.int64)
    return World(KINDS[kind](random, outcomes, experts), outcomes)


def ratio_of(kind: str, seed: int, level: float) -> float:
    """Brier score of the stretched mix over that of the plain mean, in one world."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{kind}-{seed}-{level}.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in _events(world_of(kind, seed))), encoding="utf-8")
        return run_as_one(path, level, seed).ratio("stretched")


def _events(world: World) -> list[Mapping[str, object]]:
    """Of a file: a question an hour, with its forecasts, and its outcome after the close."""
    events: list[Mapping[str, object]] = []
    for number, (row, outcome) in enumerate(zip(world.forecasts.tolist(), world.outcomes.tolist(), strict=True)):
        opens, question = _BEGIN + 2 * number * _HOUR, {"question_id": f"q{number:05d}"}
        times = {"opens_at": to_iso(opens), "closes_at": to_iso(opens + _HOUR)}
        events.append({"type": "question", "feed": "world", **question, **times})
        said = {"type": "forecast", **question, "at": to_iso(opens + 60_000)}
        events += [
            {**said, "expert_id": f"e{place:02d}", "probability": p} for place, p in enumerate(row) if p != _ABSENT
        ]
        events.append({"type": "resolution", **question, "outcome": outcome, "at": to_iso(opens + _HOUR + 1)})
    return events

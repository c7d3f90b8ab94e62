"""Worlds in which it is known how good the experts are: questions as feeds are asked them."""

import numpy as np

from stream_peer.numerics.arguments import BoolArray, FloatArray, IntArray
from tests.integration.support.chronicle import Asked


class World:
    """Outcomes, and calibrated forecasts of experts who each see them through noise of their own.

    Parameters
    ----------
    skills : sequence of float
        Of each expert, in standard deviations of its noise.
    share_of_ones : float
        Of the outcomes.
    misled : float
        Share of questions at which all see the opposite of the outcome, as experts do who read the same false news.
    """

    def __init__(
        self, seed: int, skills: list[float], questions: int, share_of_ones: float = 0.5, misled: float = 0.0
    ) -> None:
        generator, strengths = np.random.default_rng(seed), np.array(skills)
        self.outcomes: IntArray = (generator.random(questions) < share_of_ones).astype(np.int64)
        false = generator.random(questions) < misled
        seen = np.where(false, 1 - self.outcomes, self.outcomes)
        signals = (2 * seen - 1)[:, None] * strengths + generator.normal(size=(questions, len(strengths)))
        odds = np.log(share_of_ones / (1 - share_of_ones)) + 2 * strengths * signals
        self.forecasts: FloatArray = 1 / (1 + np.exp(-odds))

    def asked(self, *, resolved: bool = False) -> list[Asked]:
        """All questions, in order."""
        outcomes = self.outcomes.tolist() if resolved else [None] * len(self.outcomes)
        return [Asked(named(row), outcome) for row, outcome in zip(self.forecasts.tolist(), outcomes, strict=True)]


def named(row: list[float]) -> dict[str, float]:
    """Forecasts by the experts' names: e0, e1, …"""
    return {f"e{place}": probability for place, probability in enumerate(row)}


def opinions(truth: BoolArray, errors: list[float], seed: int) -> FloatArray:
    """Forecasts (questions, experts) of experts who err at such shares of the questions, each more or less firmly."""
    generator, shape = np.random.default_rng(seed), (len(truth), len(errors))
    says_yes = truth[:, None] != (generator.random(shape) < errors)
    firmness = generator.uniform(0.05, 0.45, shape)
    return np.where(says_yes, 0.5 + firmness, 0.5 - firmness)


def split(questions: int) -> list[Asked]:
    """Half of six say yes and half say no, always others."""
    return [Asked(named([0.7 if (k + e) % 6 < 3 else 0.3 for e in range(6)])) for k in range(questions)]


def unlucky(questions: int) -> list[Asked]:
    """All six say the same, and every outcome is the opposite."""
    rows = [[0.9 - 0.01 * e if k % 2 else 0.1 + 0.01 * e for e in range(6)] for k in range(questions)]
    return [Asked(named(row), 1 - k % 2) for k, row in enumerate(rows)]


def unanimous() -> list[Asked]:
    """All say yes, or all say no: one, two or six of them."""
    return [
        Asked(named([0.51 + 0.08 * e if side else 0.49 - 0.08 * e for e in range(voters)]))
        for voters in (1, 2, 6)
        for side in (0, 1)
    ]

"""What rounds and questions add to the sums of a feed once more, slow and obvious, from what was published.

Own reference answers, ties and mixed forecasts are taken from records. Votes at 1/2, squared loss, no teams.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stream_peer.events.feed_log import Verdict

Floats = npt.NDArray[np.float64]

COLUMNS = (
    *("n", "m", "H", "T", "rH", "AH", "A", "V", "judged", "judged peer", "judged true", "evaluated", "evaluated H"),
    *(f"{kind} {against}" for kind in ("learnt", "published") for against in "y10"),
)
"""Of each expert."""


class Price(NamedTuple):
    """Error rates as they price losses, summing to at most .8."""

    zero: float
    one: float

    @property
    def distance(self) -> float:
        return 1.0 - self.zero - self.one

    def unit(self, losses: Floats) -> Floats:
        """Of losses against the reference answer, 1 and 0."""
        return np.asarray(losses[0] - self.zero * losses[1] - self.one * losses[2])


@dataclass
class Told:
    """A round: what was forecast, what its records say, and the weights under which it was scored."""

    experts: list[int]
    p: Floats
    own: Floats
    tie: bool
    published: Mapping[str, float]
    price: Price
    learnt: Floats
    select: Floats

    @property
    def votes(self) -> Floats:
        return np.sign(self.p - 0.5)

    @property
    def voters(self) -> int:
        return int(np.count_nonzero(self.votes))

    @property
    def counts(self) -> bool:
        return self.voters >= 3

    @property
    def losses(self) -> Floats:
        return np.array([(self.p - self.own) ** 2, (self.p - 1.0) ** 2, self.p**2])

    def regrets(self, weights: Floats) -> Floats:
        return np.asarray((self.losses * weights).sum(axis=1, keepdims=True) - self.losses)

    @property
    def spread(self) -> Floats:
        gap = np.abs(1.0 - 2.0 * self.p)
        return float((self.select * gap).sum()) + (1.0 - 2.0 * self.select) * gap

    @property
    def pair(self) -> float:
        n = self.voters
        return float(self.votes.sum() ** 2 - n) / (n * (n - 1))

    @property
    def rest(self) -> float:
        return float((self.votes * (2.0 * self.own - 1.0)).sum()) / self.voters


@dataclass
class Asked:
    """A question."""

    weight: float = 1.0
    evidence: Verdict = "open"
    rounds: dict[int, Told] = field(default_factory=dict)
    scored: Told | None = None
    is_fixed: bool = False

    def fix(self, scored: Told | None) -> None:
        """Once for good, which forecast of it is scored, if any is."""
        if not self.is_fixed:
            self.scored, self.is_fixed = scored, True

    @property
    def evaluated(self) -> Told | None:
        """The scored forecast, if it counts as things stand."""
        return self.scored if self.rounds and self.outcome is not None else None

    @property
    def outcome(self) -> int | None:
        return self.evidence if isinstance(self.evidence, int) else None

    @property
    def is_in(self) -> bool:
        """Whether it is in any sum."""
        return bool(self.rounds) and self.evidence != "annulled"

    def mean(self, of: Callable[[Told], float], *, counting: bool = False) -> float:
        """Over its rounds, 0 for those that do not count."""
        return math.fsum(of(told) for told in self.rounds.values() if told.counts or not counting) / len(self.rounds)

    def spread_out(self, n_experts: int, of: Callable[[Told], Floats], *, counting: bool) -> Floats:
        """The same of numbers of each expert, 0 where it was absent."""
        found = np.zeros(n_experts)
        for told in self.rounds.values():
            if told.counts or not counting:
                found[told.experts] += of(told) / len(self.rounds)
        return found

    def columns(self, n_experts: int) -> Floats:
        """Rows as in ``COLUMNS``."""
        found = {name: np.zeros(n_experts) for name in COLUMNS}

        def mean(of: Callable[[Told], Floats], *, counting: bool = False) -> Floats:
            return self.spread_out(n_experts, of, counting=counting)

        if self.outcome is None:
            found["n"] = mean(lambda told: np.ones(len(told.p)), counting=True)
            for k, against in enumerate("y10"):
                found[f"learnt {against}"] = mean(partial(regret, k, "learnt"), counting=True)
                found[f"published {against}"] = mean(partial(regret, k, "select"), counting=True)
            found["A"] = np.abs(mean(lambda told: told.price.unit(told.regrets(told.learnt)), counting=True))
            found["V"] = self.weight * mean(lambda told: told.spread, counting=True) ** 2 / 4.0
        else:
            k = 1 if self.outcome else 2
            found["m"] = mean(lambda told: np.ones(len(told.p)))
            found["H"] = mean(lambda told: told.losses[k])
            found["T"] = mean(lambda told: told.regrets(told.select)[k])
            found["rH"] = mean(lambda told: told.regrets(told.learnt)[k])
            found["AH"] = np.abs(found["rH"])
            found["judged"] = mean(lambda told: np.ones(len(told.p)), counting=True)
            found["judged peer"] = mean(lambda t: centred(t.price.unit(t.losses) / t.price.distance), counting=True)
            found["judged true"] = mean(lambda told: centred(told.losses[k]), counting=True)
        if self.evaluated is not None:
            found["evaluated"][self.evaluated.experts] = 1.0
            found["evaluated H"][self.evaluated.experts] = (self.evaluated.p - float(self.outcome or 0)) ** 2
        return self.weight * np.array([found[name] for name in COLUMNS])

    def of_feed(self) -> Counter[str]:
        """What it adds to the numbers of the feed."""
        counting = [told for told in self.rounds.values() if told.counts]
        share = len(counting) / len(self.rounds)
        found: dict[str, float] = {
            "asked": 1.0,
            "counted": share,
            "questions": share if self.outcome is None else 1.0,
            "voters": self.mean(lambda told: told.voters),
            "tied": self.mean(lambda told: told.tie, counting=True),
        }
        if counting:
            pair, rest = (math.fsum(getattr(t, name) for t in counting) / len(counting) for name in ("pair", "rest"))
            moments = {"pair": pair, "rest": rest, "pair2": pair**2, "rest2": rest**2, "pair rest": pair * rest}
            found |= {name: share * value for name, value in moments.items()}
            found["weight2"] = self.weight * share**2
        if self.outcome is not None:
            y = self.outcome
            found["resolved"] = 1.0
            found[f"revealed {y}"] = share
            found[f"wrong {y}"] = self.mean(lambda told: float(np.mean(told.own != y)), counting=True)
        if self.evaluated is not None:
            found["evaluated"] = 1.0
            for name in ("mix", "stretched", "mean", "median"):
                found[name] = score(name, self.outcome or 0, self.evaluated)
        return Counter({name: self.weight * value for name, value in found.items()})


def regret(against: int, weights: str, told: Told) -> Floats:
    """Of the one or the other weights, against the reference answer (0), 1 (1) or 0 (2)."""
    return np.asarray(told.regrets(getattr(told, weights))[against])


def score(forecast: str, y: int, told: Told) -> float:
    return (told.published[forecast] - y) ** 2


def centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean())


def hedge(regrets: Floats, absolute: Floats) -> Floats:
    """AdaNormalHedge of experts that are awake."""
    up, down = (np.maximum(regrets + step, 0.0) ** 2 / (3.0 * (absolute + 1.0)) for step in (1.0, -1.0))
    if not (up > down).any():
        return np.full(len(regrets), 1.0 / len(regrets))
    logs = np.full(len(regrets), -np.inf)
    awake = up > down
    logs[awake] = up[awake] + np.log(-np.expm1(down[awake] - up[awake]))
    raw = np.exp(logs - logs.max())
    return np.asarray(raw / raw.sum(), dtype=np.float64)

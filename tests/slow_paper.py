"""The preset ``paper`` once more, slow and obvious, for comparison: plain floats, everything computed from the start.

Only the closed form of the two-group error rate is the product's own: it has a slow one beside it.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stream_peer.numerics.error_rates.groups import TwoGroupSums
from tests.slow_feed import side, softmax

FEWEST_VOTERS = 3
Evidence = Literal["open", 0, 1, "annulled"]


def hashed(*parts: bytes, size: int = 8) -> bytes:
    text = b"".join(str(len(part)).encode() + b":" + part for part in parts)
    return hashlib.blake2b(text, digest_size=size).digest()


def in_units(value: float) -> float:
    """Sums are kept in units of 2^-40: so that both take the same side of every limit."""
    return round(value * 2**40) / 2**40


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


@dataclass
class Said:
    """A round as it was scored."""

    p: Mapping[str, float]
    answers: tuple[int | None, int | None]
    rate: float
    select: Mapping[str, float]
    coin: int

    @property
    def counts(self) -> bool:
        return self.answers[0] is not None and sum(p != 0.5 for p in self.p.values()) >= FEWEST_VOTERS

    @property
    def answer(self) -> int:
        """Of group A; the coin where it is empty."""
        return self.coin if self.answers[0] is None else self.answers[0]

    def loss(self, expert: str) -> float:
        """The paper's: ℓ(p, ŷ) + 2η̂·p(1 - p)."""
        p = self.p[expert]
        return (p - self.answer) ** 2 + 2.0 * self.rate * p * (1.0 - p)

    def unbiased(self, expert: str, rate: float) -> float:
        """What is published: 0 at best, on the scale of the loss against the outcome."""
        p = self.p[expert]
        return ((p - self.answer) ** 2 - rate * (p**2 + (1.0 - p) ** 2)) / (1.0 - 2.0 * rate)


@dataclass
class Known:
    weight: float = 1.0
    evidence: Evidence = "open"
    rounds: dict[int, Said] = field(default_factory=dict)

    @property
    def counting(self) -> list[Said]:
        return [said for said in self.rounds.values() if said.counts]

    @property
    def share(self) -> float:
        return len(self.counting) / len(self.rounds) if self.rounds else 0.0

    def behind(self, expert: str) -> float:
        """What the question adds to F."""
        if self.evidence == "annulled" or not self.rounds:
            return 0.0
        losses = [
            said.loss(expert) - mean([said.loss(e) for e in said.p]) if expert in said.p and said.counts else 0.0
            for said in self.rounds.values()
        ]
        return self.weight * mean(losses)

    def counted(self) -> float:
        if self.evidence == "annulled" or not self.rounds:
            return 0.0
        return self.weight * (self.share if self.evidence == "open" else 1.0)

    def of(self, expert: str) -> float:
        """How much of the question the expert took part in."""
        if self.evidence == "annulled" or not self.rounds:
            return 0.0
        there = [expert in said.p and (said.counts or self.evidence != "open") for said in self.rounds.values()]
        return self.weight * sum(there) / len(there)

    def answered(self) -> tuple[float, ...]:
        """Share of rounds in which both groups answered; in which A, in which B, in which both said yes."""
        if self.evidence == "annulled" or not self.rounds:
            return (0.0,) * 5
        pairs = [(a, b) for a, b in (said.answers for said in self.counting) if a is not None and b is not None]
        sums = len(pairs), sum(a for a, _ in pairs), sum(b for _, b in pairs), sum(a * b for a, b in pairs)
        share, first, second, both = (in_units(self.weight * number / len(self.rounds)) for number in sums)
        return share, in_units(self.weight * self.weight * len(pairs) / len(self.rounds)), first, second, both


class SlowPaper:
    """A feed under the preset ``paper``."""

    def __init__(self, name: str = "f", secret: bytes = b"secret") -> None:
        self.name = name.encode()
        self.seed = hashed(secret, self.name, b"", size=32)
        self.questions: dict[str, Known] = {}

    def round(self, question: str, boundary: int, forecasts: Mapping[str, float], weight: float) -> None:
        known = self.questions.setdefault(question, Known())
        evidence, known.evidence = known.evidence, "annulled"  # the question does not count where its round is scored
        coins = [self.coin(question, boundary, f"tie {number}") for number in range(2)]
        answers = [
            side(members, [0.5] * len(members), coin)[0] if members else None
            for members, coin in zip(self.groups(forecasts), coins, strict=True)
        ]
        said = Said(forecasts, (answers[0], answers[1]), self.rate(), self.select(list(forecasts)), coins[0])
        known.evidence, known.weight = evidence, weight
        known.rounds[boundary] = said

    def withdraw(self, question: str, boundary: int) -> None:
        if question in self.questions:
            self.questions[question].rounds.pop(boundary, None)

    def outcome(self, question: str, evidence: Evidence) -> None:
        self.questions.setdefault(question, Known()).evidence = evidence

    def coin(self, question: str, boundary: int, purpose: str) -> int:
        number = hashed(self.seed, self.name, question.encode(), str(boundary).encode(), purpose.encode())
        return int(number[0] < 128)

    def groups(self, forecasts: Mapping[str, float]) -> tuple[list[float], list[float]]:
        """Forecasts of A, whose hash is even, and of B."""
        parity = {e: hashed(self.seed, self.name, e.encode(), b"", b"group")[-1] % 2 for e in forecasts}
        return [p for e, p in forecasts.items() if not parity[e]], [p for e, p in forecasts.items() if parity[e]]

    def rate(self) -> float:
        """η̂, as it prices."""
        sums = [
            math.fsum(column) for column in zip(*(known.answered() for known in self.questions.values()), strict=True)
        ]
        return min(TwoGroupSums(*sums).estimate().zero if sums else 0.25, 0.4)

    def questions_of(self, expert: str) -> float:
        return math.fsum(known.of(expert) for known in self.questions.values())

    def listed(self) -> list[str]:
        seen = {e for known in self.questions.values() for said in known.rounds.values() for e in said.p}
        return sorted(e for e in seen if self.questions_of(e))

    def select(self, experts: Sequence[str]) -> dict[str, float]:
        if not experts:
            return {}
        n_experts = len({*self.listed(), *experts})
        n_questions = max(math.fsum(known.counted() for known in self.questions.values()), 1.0)
        rate = math.sqrt(8.0 * math.log(n_experts) / n_questions)
        behind = [math.fsum(known.behind(e) for known in self.questions.values()) for e in experts]
        return dict(zip(experts, softmax([-rate * total for total in behind]), strict=True))

    def peer_loss(self, expert: str) -> float | None:
        """Mean over the questions without outcome, at the newest rate."""
        rate, total, count = self.rate(), 0.0, 0.0
        for known in self.questions.values():
            if known.evidence == "open" and known.rounds:
                losses = [said.unbiased(expert, rate) for said in known.counting if expert in said.p]
                total += known.weight * math.fsum(losses) / len(known.rounds)
                count += known.weight * len(losses) / len(known.rounds)
        return total / count if count else None

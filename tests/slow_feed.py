"""The feed stage once more, slow and obvious, for comparison: plain floats, no state but what was said and is known.

Contributions follow the table of columns, readings the formulas. Default settings, one feed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist
from typing import Literal

PRIORS = (0.30, 0.50, 0.12, 0.08)  # plain mean, peer, slow and fast truth
FEWEST_VOTERS = 3
Evidence = Literal["open", 0, 1, "annulled"]
Key = tuple[object, ...]


def squared(forecast: float, answer: int) -> float:
    return (forecast - answer) ** 2


def side(forecasts: Sequence[float], coin: int) -> tuple[int, bool]:
    """Majority, else the side of the mean, else the coin; and whether the votes were tied."""
    lead = sum((p > 0.5) - (p < 0.5) for p in forecasts)
    if lead:
        return int(lead > 0), False
    lean = sum(round(p * 2**40) - 2**39 or (p > 0.5) - (p < 0.5) for p in forecasts)
    return (int(lean > 0) if lean else coin), True


def softmax(logs: Sequence[float]) -> list[float]:
    raw = [math.exp(log - max(logs)) for log in logs]
    return [x / math.fsum(raw) for x in raw]


def hedge(regrets: Sequence[float], absolute: Sequence[float]) -> list[float]:
    """AdaNormalHedge of experts that are awake."""
    up = [max(r + 1.0, 0.0) ** 2 / (3.0 * (a + 1.0)) for r, a in zip(regrets, absolute, strict=True)]
    down = [max(r - 1.0, 0.0) ** 2 / (3.0 * (a + 1.0)) for r, a in zip(regrets, absolute, strict=True)]
    logs = [x + math.log(-math.expm1(z - x)) if x > z else -math.inf for x, z in zip(up, down, strict=True)]
    return [1.0 / len(logs)] * len(logs) if max(logs) == -math.inf else softmax(logs)


def solved(rows: list[list[float]]) -> list[float]:
    """Solution of a small linear system, the right side its last column."""
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(len(rows)):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def cost(shares: Sequence[float], second: Sequence[Sequence[float]], cross: Sequence[float]) -> float:
    """What the outer layer minimises over the simplex."""
    fit = sum(shares[a] * shares[b] * second[a][b] for a in range(4) for b in range(4))
    gain = sum(m * h for m, h in zip(shares, cross, strict=True))
    return 16.0 * (fit - 2.0 * gain) + sum((m - p) ** 2 / (2.0 * p) for m, p in zip(shares, PRIORS, strict=True))


def outer(second: Sequence[Sequence[float]], cross: Sequence[float]) -> list[float]:
    """The cheapest of the stationary points of all 15 faces that lie in the simplex."""
    found = []
    for face in [f for size in range(1, 5) for f in combinations(range(4), size)]:
        rows = [[32.0 * second[a][b] + (a == b) / PRIORS[a] for b in face] + [1.0, 32.0 * cross[a] + 1.0] for a in face]
        values = dict(zip(face, solved([*rows, [1.0] * len(face) + [0.0, 1.0]]), strict=False))
        point = [values.get(k, 0.0) for k in range(4)]
        if min(point) >= 0.0:
            found.append(point)
    return min(found, key=lambda point: cost(point, second, cross))


@dataclass
class Said:
    """Facts of a round."""

    p: Mapping[str, float]
    answer: Mapping[str, int]
    everybody: tuple[int, bool]
    votes: Mapping[str, int]
    pair: float
    rest: float
    rates: tuple[float, float]
    select: Mapping[str, float]
    b: float
    shadows: Sequence[float]
    unguarded: float
    mix: float
    stretched: float

    @property
    def counts(self) -> bool:
        return len(self.votes) >= FEWEST_VOTERS

    def loss(self, expert: str, against: str) -> float:
        """Against ``y`` (the expert's own reference answer), ``1`` or ``0``."""
        return squared(self.p[expert], self.answer[expert] if against == "y" else int(against))

    def regret(self, expert: str, against: str) -> float:
        return math.fsum(w * self.loss(e, against) for e, w in self.select.items()) - self.loss(expert, against)

    def spread(self, expert: str) -> float:
        gaps = {e: abs(1.0 - 2.0 * p) for e, p in self.p.items()}
        return math.fsum(w * gaps[e] for e, w in self.select.items()) + (1.0 - 2.0 * self.select[expert]) * gaps[expert]


@dataclass
class Known:
    """A question."""

    weight: float = 1.0
    evidence: Evidence = "open"
    rounds: dict[int, Said] = field(default_factory=dict)

    def mean(self, of: Callable[[Said], float], expert: str | None = None, *, counting: bool = False) -> float:
        """Mean over the rounds, 0 where the expert is absent or (``counting``) voters are too few."""
        rounds = [r for r in self.rounds.values() if (expert is None or expert in r.p) and (r.counts or not counting)]
        return math.fsum(of(r) for r in rounds) / len(self.rounds)

    def contribution(self) -> dict[Key, float]:
        if not self.rounds or self.evidence == "annulled":
            return {}
        found: dict[Key, float] = {}
        for expert in {e for r in self.rounds.values() for e in r.p}:
            columns = self._mixers(expert) | (self._peer(expert) if self.evidence == "open" else self._true(expert))
            found |= {(name, expert): self.weight * value for name, value in columns.items()}
        found |= {(name,): self.weight * value for name, value in (self._moments() | self._outcome()).items()}
        if ("W",) in found:
            found["W2",] = found["W",] ** 2
        return found

    def _mixers(self, e: str) -> dict[str, float]:
        return {
            "SU": self.mean(lambda r: 2.0 * r.b * (r.b - r.p[e]), e, counting=True),
            "SV": self.mean(lambda r: 2.0 * (r.b - r.p[e]), e, counting=True),
            "SVY": self.mean(lambda r: 2.0 * (r.b - r.p[e]) * r.answer[e], e, counting=True),
        }

    def _peer(self, e: str) -> dict[str, float]:
        found = {f"loss {k}": self.mean(lambda r, k=k: r.loss(e, k), e, counting=True) for k in "y10"}  # type: ignore[misc]
        found |= {f"regret {k}": self.mean(lambda r, k=k: r.regret(e, k), e, counting=True) for k in "y10"}  # type: ignore[misc]

        def priced(r: Said) -> float:
            return r.regret(e, "y") - r.rates[0] * r.regret(e, "1") - r.rates[1] * r.regret(e, "0")

        spread = self.mean(lambda r: r.spread(e), e, counting=True)
        return found | {
            "n": self.mean(lambda _: 1.0, e, counting=True),
            "A": abs(self.mean(priced, e, counting=True)),
            "V": self.weight * spread**2 / 4.0,
        }

    def _true(self, e: str) -> dict[str, float]:
        y = int(self.evidence)
        regret = self.mean(lambda r: r.regret(e, str(y)), e)
        linear = self.mean(lambda r: 2.0 * (r.b - y) * (r.b - r.p[e]) - (r.b - r.p[e]) ** 2 / 2.0, e)
        loss, present = self.mean(lambda r: squared(r.p[e], y), e), self.mean(lambda _: 1.0, e)
        return {"H": loss, "m": present, "rH": regret, "A": abs(regret), "RH": linear, "AH": abs(linear)}

    def _moments(self) -> dict[str, float]:
        counting = [r for r in self.rounds.values() if r.counts]
        share = len(counting) / len(self.rounds)
        found = {"questions": share if self.evidence == "open" else 1.0}
        if counting:
            pair = math.fsum(r.pair for r in counting) / len(counting)
            rest = math.fsum(r.rest for r in counting) / len(counting)
            moments = {"W": 1.0, "P": pair, "R": rest, "PP": pair**2, "RR": rest**2, "PR": pair * rest}
            found |= {name: share * value for name, value in moments.items()}
        return found

    def _outcome(self) -> dict[str, float]:
        if self.evidence not in (0, 1):
            return {}
        y = int(self.evidence)
        b, f = self.mean(lambda r: r.b), self.mean(lambda r: r.mix)
        q = [self.mean(lambda r, k=k: r.shadows[k] - r.b) for k in range(4)]  # type: ignore[misc]
        worse = squared(self.mean(lambda r: r.unguarded), y) - squared(b, y)
        wrong = self.mean(lambda r: sum(answer != y for answer in r.answer.values()) / len(r.p))
        found = {"M" + str(i) + str(j): q[i] * q[j] for i in range(4) for j in range(4)}
        found |= {f"h{k}": q[k] * (y - b) for k in range(4)}
        found |= {"fit": (y - f) * (f - 0.5), "fit2": (f - 0.5) ** 2, "worse": worse, "worse2": worse**2}
        return found | {"resolved": 1.0, f"revealed{y}": 1.0, f"wrong{y}": wrong}


class SlowFeed:
    """Folds rounds and outcomes; reads everything afresh whenever asked. ``coin`` decides what nothing else does."""

    def __init__(self, coin: Callable[[str, int], int]) -> None:
        self.coin = coin
        self.questions: dict[str, Known] = {}
        self.seen: set[str] = set()
        self.net_share = 0.0
        self.outcomes = 0
        self._parts: dict[str, dict[Key, float]] = {}
        self._terms: dict[Key, list[float]] = {}

    def round(self, question: str, boundary: int, forecasts: Mapping[str, float], weight: float) -> None:
        known = self.questions.setdefault(question, Known())
        self.seen |= forecasts.keys()
        self._put(question, {})
        said = self._said(forecasts, self.coin(question, boundary))
        known.rounds[boundary], known.weight = said, weight
        self._put(question, known.contribution())

    def withdraw(self, question: str, boundary: int) -> None:
        known = self.questions.get(question, Known())
        known.rounds.pop(boundary, None)
        self._put(question, known.contribution())

    def outcome(self, question: str, evidence: Evidence) -> None:
        known = self.questions.setdefault(question, Known())
        if known.evidence == evidence:
            return
        known.evidence = evidence
        self._put(question, known.contribution())
        self.outcomes += 1
        z = self.sum("worse") / math.sqrt(self.sum("worse2") + 0.001)
        self.net_share += min(max(min(max((z - 1.0) / 2.0, 0.0), 1.0) - self.net_share, -0.05), 0.05)

    def _put(self, question: str, part: dict[Key, float]) -> None:
        """Give a question's contribution, and collect all of them anew."""
        self._parts[question] = part
        self._terms = {}
        for found in self._parts.values():
            for key, value in found.items():
                self._terms.setdefault(key, []).append(value)

    def sum(self, *key: object) -> float:
        return math.fsum(self._terms.get(key, ()))

    def _said(self, p: Mapping[str, float], coin: int) -> Said:
        ids = sorted(p)
        answer = {i: side([p[j] for j in ids if j != i], coin)[0] for i in ids}
        votes = {i: 1 if p[i] > 0.5 else -1 for i in ids if p[i] != 0.5}
        n, lead = len(votes), sum(votes.values())
        rest = sum(v * (2 * answer[i] - 1) for i, v in votes.items()) / n if n else 0.0
        b = math.fsum(p.values()) / len(p)
        shadows = [math.fsum(w * p[i] for w, i in zip(ws, ids, strict=True)) for ws in self.mixers(ids)]
        unguarded = sum(m * f for m, f in zip(self.shares(), shadows, strict=True))
        mix = (1.0 - self.net_share) * unguarded + self.net_share * b
        return Said(
            p=p,
            answer=answer,
            everybody=side(list(p.values()), coin),
            votes=votes,
            pair=(lead * lead - n) / (n * (n - 1)) if n > 1 else 0.0,
            rest=rest,
            rates=self.priced(),
            select=dict(zip(ids, self.select(ids), strict=True)),
            b=b,
            shadows=shadows,
            unguarded=unguarded,
            mix=mix,
            stretched=min(max(0.5 + (1.0 + self.stretch()) * (mix - 0.5), 0.0), 1.0),
        )

    # --- readings ---

    def listed(self) -> list[str]:
        return sorted(e for e in self.seen if self.sum("n", e) + self.sum("m", e) > 0.0)

    def rates(self, confidence: float = 0.95) -> tuple[float, float, float, float]:
        """Both error rates, and the interval of their mean."""
        z, total, pseudo = NormalDist().inv_cdf(0.5 + confidence / 2.0), self.sum("W") + 20.0, 0.5 * math.sqrt(0.1)
        pair, rest = (self.sum("P") + 2.0) / total, (self.sum("R") + 20.0 * pseudo) / total
        a = rest / math.sqrt(pair) if pair > 0.0 else 0.0
        free = min(max((1.0 - a) / 2.0, 0.0), 0.475)
        low, high, variance = 0.0, 0.475, 0.25
        if a > 0.0:
            of_pair = ((self.sum("PP") + 20.0) / total - pair**2) / pair**2
            of_rest = ((self.sum("RR") + 20.0) / total - rest**2) / rest**2
            of_both = ((self.sum("PR") + 2.0 * pseudo) / total - pair * rest) / (pair * rest)
            log_variance = max(of_rest + of_pair / 4.0 - of_both, 0.0) * (self.sum("W2") + 20.0) / total**2
            variance = min(a * a * log_variance / 4.0, 0.25)
            if self.sum("W") > 0.0:
                stretch = math.exp(min(z * math.sqrt(log_variance), 50.0))
                low = min(max((1.0 - a * stretch) / 2.0 - 0.005, 0.0), free)
                high = max(min((1.0 - a / stretch) / 2.0 + 0.005, 0.475), free)
        return self._with_truth(free, low, high, variance, z)

    def _with_truth(
        self, free: float, low: float, high: float, variance: float, z: float
    ) -> tuple[float, float, float, float]:
        rates, shares, noise = [], [], 0.0
        spread = max(free, 0.005) * (1.0 - max(free, 0.005))
        for y in (0, 1):
            revealed = self.sum(f"revealed{y}")
            prior = min(spread / variance, 30.0) if variance else 30.0
            rate = min((self.sum(f"wrong{y}") + prior * free) / (revealed + prior), 0.475)
            rates.append(rate)
            shares.append(prior / (revealed + prior))
            noise += revealed * rate * (1.0 - rate) / (revealed + prior) ** 2
        mean, share, error = sum(rates) / 2.0, sum(shares) / 2.0, z * math.sqrt(noise) / 2.0
        down, up = math.hypot(share * (free - low), error), math.hypot(share * (high - free), error)
        return rates[0], rates[1], max(mean - down, 0.0), min(mean + up, 0.475)

    def priced(self) -> tuple[float, float]:
        zero, one, *_ = self.rates()
        scale = min(0.8 / (zero + one), 1.0) if zero + one else 1.0
        return zero * scale, one * scale

    def select(self, experts: Sequence[str]) -> list[float]:
        zero, one = self.priced()
        regrets = [
            self.sum("regret y", e)
            - zero * self.sum("regret 1", e)
            - one * self.sum("regret 0", e)
            + (1.0 - zero - one) * self.sum("rH", e)
            for e in experts
        ]
        return hedge(regrets, [self.sum("A", e) for e in experts])

    def mixers(self, experts: Sequence[str]) -> list[list[float]]:
        n, seen = len(experts), len({*self.listed(), *experts})
        resolved = math.fsum(self.sum("m", e) for e in experts)
        answered = math.fsum(self.sum("n", e) for e in experts) + resolved
        quick = 0.42 * math.sqrt(8.0 * math.log(seen) / (answered / n + 1.0))
        slow = 0.25 * math.sqrt(8.0 * math.log(seen) / (resolved / n + 1.0))
        peer = softmax(
            [quick * (0.3 * self.sum("SU", e) + 0.35 * self.sum("SV", e) - self.sum("SVY", e)) for e in experts]
        )
        return [
            [1.0 / n] * n,
            [0.5 / n + 0.5 * w for w in peer],
            softmax([slow * self.sum("RH", e) for e in experts]),
            hedge([self.sum("RH", e) for e in experts], [self.sum("AH", e) for e in experts]),
        ]

    def shares(self) -> list[float]:
        second = [[self.sum("M" + str(i) + str(j)) for j in range(4)] for i in range(4)]
        return outer(second, [self.sum(f"h{k}") for k in range(4)])

    def mix(self, experts: Sequence[str]) -> list[float]:
        by_expert: Iterable[tuple[float, ...]] = zip(*self.mixers(experts), strict=True)
        mixed = [sum(m * w for m, w in zip(self.shares(), ws, strict=True)) for ws in by_expert]
        return [(1.0 - self.net_share) * w + self.net_share / len(experts) for w in mixed]

    def stretch(self) -> float:
        return self.sum("fit") / (self.sum("fit2") + 5.0)

    def peer_loss(self, e: str) -> float | None:
        zero, one = self.priced()
        total = self.sum("loss y", e) - zero * self.sum("loss 1", e) - one * self.sum("loss 0", e)
        return total / (1.0 - zero - one) / self.sum("n", e) if self.sum("n", e) else None

    def outcome_loss(self, e: str) -> float | None:
        return self.sum("H", e) / self.sum("m", e) if self.sum("m", e) else None

    def certificate(self) -> float | None:
        """The published weights are the learner's own, so that their regrets are."""
        times = (self.outcomes + 1) * (self.outcomes + 2)
        a, b, low, high = self.rates(1.0 - 0.01 / times)
        bounds = []
        for shift in (low - (a + b) / 2.0, high - (a + b) / 2.0):
            zero, one = max(a + shift, 0.0), max(b + shift, 0.0)
            if 1.0 - zero - one < 0.2:
                return None
            for e in self.listed():
                regret = self.sum("regret y", e) - zero * self.sum("regret 1", e) - one * self.sum("regret 0", e)
                v = self.sum("V", e) + 25.0
                noise = math.sqrt(v * (2.0 * math.log(len(self.seen) * times / 0.04) + math.log(v / 25.0)))
                bounds.append((regret + noise) / (1.0 - zero - one) + self.sum("rH", e))
        return max(bounds)

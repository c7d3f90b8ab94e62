"""The feed stage once more, slow and obvious, for comparison: plain floats, no state but what was said and is known.

Contributions follow the table of columns, readings the formulas. One feed; of its settings loss and vote rule. Only the
closed form of class-dependent error rates is the product's own: it has a slow one beside it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from statistics import NormalDist
from typing import Literal

from stream_peer.events.feed_log import Round
from stream_peer.numerics.error_rates import ClassMomentSums

PRIORS = (0.40, 0.35, 0.15, 0.10)  # plain mean, peer, slow and fast truth
FEWEST_VOTERS = 3
Evidence = Literal["open", 0, 1, "annulled"]
Rule = Literal["half", "own-median"]
Setting = Literal["half", "own-median", "auto"]
Loss = Callable[[float, int], float]
Key = tuple[object, ...]
RULES: tuple[Rule, Rule] = ("half", "own-median")
FINE = [0.0, *(part * 2.0**-power for power in range(13, 5, -1) for part in (1.0, 1.5))]
EDGES = [*FINE, *(k / 64 for k in range(2, 63)), *(1.0 - edge for edge in reversed(FINE))]
BINS = len(EDGES) - 1


def squared(forecast: float, answer: int) -> float:
    return (forecast - answer) ** 2


def logarithmic(forecast: float, answer: int) -> float:
    """In units of its largest value."""
    chance = min(max(forecast if answer else 1.0 - forecast, 0.001), 0.999)
    return math.log(chance) / math.log(0.001)


def side(forecasts: Sequence[float], thresholds: Sequence[float], coin: int) -> tuple[int, bool]:
    """Majority, else the side of the mean, else the coin; and whether the votes were tied."""
    both = list(zip(forecasts, thresholds, strict=True))
    lead = sum((p > t) - (p < t) for p, t in both)
    if lead:
        return int(lead > 0), False
    lean = sum(round(p * 2**40) - round(t * 2**40) or (p > t) - (p < t) for p, t in both)
    return (int(lean > 0) if lean else coin), True


def bin_of(forecast: float) -> int:
    return max(k for k in range(BINS) if EDGES[k] <= forecast)


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


def cost(
    shares: Sequence[float], second: Sequence[Sequence[float]], cross: Sequence[float], priors: Sequence[float]
) -> float:
    """What the outer layer minimises over the simplex."""
    fit = sum(shares[a] * shares[b] * second[a][b] for a in range(4) for b in range(4))
    gain = sum(m * h for m, h in zip(shares, cross, strict=True))
    return 16.0 * (fit - 2.0 * gain) + sum((m - p) ** 2 / (2.0 * p) for m, p in zip(shares, priors, strict=True) if p)


def outer(second: Sequence[Sequence[float]], cross: Sequence[float], priors: Sequence[float] = PRIORS) -> list[float]:
    """The cheapest of the stationary points of all faces that lie in the simplex, without mixers of prior 0."""
    found, some = [], [k for k in range(4) if priors[k]]
    for face in [f for size in range(1, 5) for f in combinations(some, size)]:
        rows = [[32.0 * second[a][b] + (a == b) / priors[a] for b in face] + [1.0, 32.0 * cross[a] + 1.0] for a in face]
        values = dict(zip(face, solved([*rows, [1.0] * len(face) + [0.0, 1.0]]), strict=False))
        point = [values.get(k, 0.0) for k in range(4)]
        if min(point) >= 0.0:
            found.append(point)
    return min(found, key=lambda point: cost(point, second, cross, priors))


@dataclass
class Said:
    """Facts of a round."""

    final: bool
    p: Mapping[str, float]
    answer: Mapping[str, int]
    mixer_answer: Mapping[str, int]
    everybody: tuple[int, bool]
    half_votes: Mapping[str, int]
    teams: Mapping[str, str]
    rule: Rule
    score: Loss
    votes: Mapping[str, int]
    rates: tuple[float, float]
    learnt: Mapping[str, float]
    select: Mapping[str, float]
    b: float
    shadows: Sequence[float]
    unguarded: float
    mix: float
    stretched: float
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        return len(self.minds(self.votes)) >= FEWEST_VOTERS

    def minds(self, experts: Iterable[str]) -> list[list[str]]:
        """Experts by team; who is in none is one by itself."""
        found: dict[tuple[bool, str], list[str]] = {}
        for e in experts:
            found.setdefault((e in self.teams, self.teams.get(e, e)), []).append(e)
        return list(found.values())

    def by_mind(self, of: Callable[[str], float], experts: Iterable[str]) -> float:
        """Mean over teams of the mean over their members."""
        means = [math.fsum(of(e) for e in members) / len(members) for members in self.minds(experts)]
        return math.fsum(means) / len(means)

    def across(self, of: Callable[[str], float], size: int) -> float:
        """Mean over voters of so many different teams of the product of theirs, any such teams counting alike."""
        means = [math.fsum(of(e) for e in members) / len(members) for members in self.minds(self.votes)]
        products = [math.prod(chosen) for chosen in combinations(means, size)]
        return math.fsum(products) / len(products)

    @cached_property
    def pair(self) -> float:
        return self.across(lambda e: self.votes[e], 2)

    @cached_property
    def rest(self) -> float:
        return self.by_mind(lambda e: self.votes[e] * (2 * self.answer[e] - 1), self.votes)

    def loss(self, expert: str, against: str) -> float:
        """Against ``y`` (the expert's own reference answer), ``1`` or ``0``."""
        return self.score(self.p[expert], self.answer[expert] if against == "y" else int(against))

    def regret(self, expert: str, against: str, *, published: bool = False) -> float:
        """Of the learner's own selection weights, or of the published ones."""
        weights = self.select if published else self.learnt
        return math.fsum(w * self.loss(e, against) for e, w in weights.items()) - self.loss(expert, against)

    def spread(self, expert: str) -> float:
        gaps = {e: abs(self.score(p, 1) - self.score(p, 0)) for e, p in self.p.items()}
        return math.fsum(w * gaps[e] for e, w in self.select.items()) + (1.0 - 2.0 * self.select[expert]) * gaps[expert]


@dataclass
class Known:
    """A question."""

    weight: float = 1.0
    evidence: Evidence = "open"
    rounds: dict[int, Said] = field(default_factory=dict)
    scored: Said | None = None
    scored_at: int = -1
    is_fixed: bool = False

    def fix(self, scored: Said | None) -> None:
        """Once for good, which forecast of it is scored, if any is."""
        if not self.is_fixed:
            self.scored, self.is_fixed = scored, True

    @property
    def evaluated(self) -> Said | None:
        """The scored forecast, if it counts as things stand."""
        return self.scored if self.rounds and self.evidence in (0, 1) else None

    def mean(
        self,
        of: Callable[[Said], float],
        expert: str | None = None,
        *,
        counting: bool = False,
        rule: Rule | None = None,
    ) -> float:
        """Mean over the rounds, 0 where the expert is absent, (``counting``) voters are too few, the rule another."""
        rounds = [r for r in self.rounds.values() if (expert is None or expert in r.p) and (r.counts or not counting)]
        return math.fsum(of(r) for r in rounds if rule in (None, r.rule)) / len(self.rounds)

    def contribution(self) -> dict[Key, float]:
        if not self.rounds or self.evidence == "annulled":
            return {}
        found: dict[Key, float] = {}
        for expert in {e for r in self.rounds.values() for e in r.p}:
            columns = self._mixers(expert) | (self._peer(expert) if self.evidence == "open" else self._true(expert))
            columns |= self._histogram(expert)
            found |= {(name, expert): self.weight * value for name, value in columns.items()}
        found |= {(name,): self.weight * value for name, value in (self._counts() | self._outcome()).items()}
        for rule in RULES:
            found |= {(name, rule): self.weight * value for name, value in self._moments(rule).items()}
            for name in ("W", "class_weight"):
                if (name, rule) in found:
                    found[name + "2", rule] = found[name, rule] ** 2
        return found

    def _histogram(self, e: str) -> dict[str, float]:
        """Forecasts by bin; rounds that count."""
        found: dict[str, float] = {}
        for r in self.rounds.values():
            if r.counts and e in r.p:
                name = f"bin {bin_of(r.p[e])}"
                found[name] = found.get(name, 0.0) + 1.0 / len(self.rounds)
        return found

    def _mixers(self, e: str) -> dict[str, float]:
        return {
            "SU": self.mean(lambda r: 2.0 * r.b * (r.b - r.p[e]), e, counting=True),
            "SV": self.mean(lambda r: 2.0 * (r.b - r.p[e]), e, counting=True),
            "SVY": self.mean(lambda r: 2.0 * (r.b - r.p[e]) * r.mixer_answer[e], e, counting=True),
        }

    def _peer(self, e: str) -> dict[str, float]:
        def priced(r: Said) -> float:
            return r.regret(e, "y") - r.rates[0] * r.regret(e, "1") - r.rates[1] * r.regret(e, "0")

        found = {"n": self.mean(lambda _: 1.0, e, counting=True)}
        for rule in RULES:
            for k in "y10":
                found[f"loss {k} {rule}"] = self.mean(lambda r, k=k: r.loss(e, k), e, counting=True, rule=rule)  # type: ignore[misc]
                found[f"regret {k} {rule}"] = self.mean(lambda r, k=k: r.regret(e, k), e, counting=True, rule=rule)  # type: ignore[misc]
                said = self.mean(lambda r, k=k: r.regret(e, k, published=True), e, counting=True, rule=rule)  # type: ignore[misc]
                found[f"published {k} {rule}"] = said
            spread = self.mean(lambda r: r.spread(e), e, counting=True, rule=rule)
            found[f"A {rule}"] = abs(self.mean(priced, e, counting=True, rule=rule))
            found[f"V {rule}"] = self.weight * spread**2 / 4.0
        return found

    def _true(self, e: str) -> dict[str, float]:
        y = int(self.evidence)
        regret = self.mean(lambda r: r.regret(e, str(y)), e)
        linear = self.mean(lambda r: 2.0 * (r.b - y) * (r.b - r.p[e]) - (r.b - r.p[e]) ** 2 / 2.0, e)
        loss, present = self.mean(lambda r: r.score(r.p[e], y), e), self.mean(lambda _: 1.0, e)
        fast = self.mean(lambda r: 2.0 * (r.shadows[3] - y) * (r.shadows[3] - r.p[e]), e)
        said = self.mean(lambda r: r.regret(e, str(y), published=True), e)
        compared = self.mean(lambda r: float(len(r.p) > 1), e)
        found = {"H": loss, "m": present, "k": compared, "rH": regret, "AH true": abs(regret), "pH": said}
        return found | {"RH": linear, "RF": fast, "AF": abs(fast)}

    def _counts(self) -> dict[str, float]:
        share = self.mean(lambda r: float(r.counts))
        return {
            "questions": share if self.evidence == "open" else 1.0,
            "yes": self.mean(lambda r: sum(v > 0 for v in r.half_votes.values()), counting=True),
            "half votes": self.mean(lambda r: len(r.half_votes), counting=True),
        }

    def _moments(self, rule: Rule) -> dict[str, float]:
        """Of one vote rule: moments of its rounds that count, and its reference answers against the outcome."""
        found: dict[str, float] = {}
        counting = [r for r in self.rounds.values() if r.counts and r.rule == rule]
        share = len(counting) / len(self.rounds)
        if counting:
            pair = math.fsum(r.pair for r in counting) / len(counting)
            rest = math.fsum(r.rest for r in counting) / len(counting)
            moments = {"W": 1.0, "P": pair, "R": rest, "PP": pair**2, "RR": rest**2, "PR": pair * rest}
            moments |= {"class_" + name: value for name, value in self._of_classes(counting).items()}
            found |= {name: share * value for name, value in moments.items()}
        if self.evidence in (0, 1):
            y = int(self.evidence)
            found[f"revealed{y}"] = share
            found[f"wrong{y}"] = self.mean(
                lambda r: r.by_mind(lambda e: float(r.answer[e] != y), r.p), counting=True, rule=rule
            )
        return found

    @staticmethod
    def _of_classes(rounds: Sequence[Said]) -> dict[str, float]:
        """Shares of single votes, pairs and triples that are all yes; of reference answers; of both."""
        names = ("first", "second", "third", "answer", "both")
        sums = dict.fromkeys(names, 0.0)
        for r in rounds:
            for size, name in enumerate(names[:3], 1):
                sums[name] += r.across(lambda e, r=r: float(r.votes[e] > 0), size)  # type: ignore[misc]
            sums["answer"] += r.by_mind(lambda e, r=r: r.answer[e], r.votes)  # type: ignore[misc]
            sums["both"] += r.by_mind(lambda e, r=r: r.answer[e] * (r.votes[e] > 0), r.votes)  # type: ignore[misc]
        means = {name: total / len(rounds) for name, total in sums.items()}
        products = {f"{a}_{b}": means[a] * means[b] for a, b in combinations_with_replacement(names, 2)}
        return {"weight": 1.0, **means, **products}

    def _outcome(self) -> dict[str, float]:
        if self.evidence not in (0, 1):
            return {}
        y, shared = int(self.evidence), [r for r in self.rounds.values() if len(r.p) > 1]
        if not shared:  # one expert alone teaches nothing about others
            return {"resolved": 1.0}

        def mean(of: Callable[[Said], float]) -> float:
            return math.fsum(map(of, shared)) / len(shared)

        b, f = mean(lambda r: r.b), mean(lambda r: r.mix)
        q = [mean(lambda r, k=k: r.shadows[k] - r.b) for k in range(4)]  # type: ignore[misc]
        worse = squared(mean(lambda r: r.unguarded), y) - squared(b, y)
        found = {"M" + str(i) + str(j): q[i] * q[j] for i in range(4) for j in range(4)}
        found |= {f"h{k}": q[k] * (y - b) for k in range(4)}
        found |= {"fit": (y - f) * (f - 0.5), "fit2": (f - 0.5) ** 2, "worse": worse, "worse2": worse**2}
        share = len(shared) / len(self.rounds)
        return {name: share * value for name, value in found.items()} | {"resolved": 1.0}


class SlowFeed:
    """Folds rounds and outcomes; reads everything afresh whenever asked. ``coin`` decides what nothing else does."""

    def __init__(self, coin: Callable[[str, int], int], *, vote_rule: Setting = "half", loss: str = "squared") -> None:
        self.coin = coin
        self.setting = vote_rule
        self.score, self.unit = (squared, 1.0) if loss == "squared" else (logarithmic, -math.log(0.001))
        self.rule: Rule = "half" if vote_rule == "auto" else vote_rule
        self.questions: dict[str, Known] = {}
        self.seen: set[str] = set()
        self.teams: dict[str, str] = {}
        self.excluded: set[str] = set()
        self.net_share = 0.0
        self.shrink = 0.0
        self.steps = 1
        self._parts: dict[str, dict[Key, float]] = {}
        self._terms: dict[Key, dict[str, float]] = {}

    def round(self, event: Round, revision: int = -1) -> None:
        """``revision``: of what is published of it."""
        question, boundary = event.question_id, event.boundary
        said_by = zip(event.experts, event.probabilities, strict=True)
        forecasts = {e: p for e, p in said_by if e not in self.excluded}
        if not forecasts:
            self.withdraw(question, boundary, revision)
            return
        known = self.questions.setdefault(question, self.new_question())
        self.seen |= forecasts.keys()
        self._put(question, {})
        said = self._said(forecasts, self.coin(question, boundary))
        said.final = event.final
        known.rounds[boundary], known.weight = said, event.weight
        if not known.is_fixed:
            known.scored_at = revision
        if event.after_outcome:
            known.fix(None)
        elif event.final:
            known.fix(said)
        self._put(question, known.contribution())
        self._follow_votes()

    def member(self, expert: str, team: str | None) -> None:
        """From here on."""
        self.teams = {e: t for e, t in self.teams.items() if e != expert} | ({expert: team} if team else {})

    def exclude(self, expert: str, *, excluded: bool) -> None:
        """From here on treated as absent, or not any more; its columns stand still."""
        self.excluded = self.excluded - {expert} | ({expert} if excluded else set())

    def withdraw(self, question: str, boundary: int, revision: int = -1) -> None:
        known = self.questions.get(question, self.new_question())
        found = known.rounds.pop(boundary, None)
        if found and known.rounds and not known.is_fixed:
            known.scored_at = revision
        self._put(question, known.contribution())
        if found:
            self._follow_votes()

    def outcome(self, question: str, evidence: Evidence) -> None:
        known = self.questions.setdefault(question, self.new_question())
        if known.evidence == evidence:
            return
        known.evidence = evidence
        if evidence in (0, 1):
            known.fix(known.rounds[max(known.rounds)] if known.rounds else None)
        self._put(question, known.contribution())
        self.steps += 1
        z = self.sum("worse") / math.sqrt(self.sum("worse2") + 0.001)
        self.net_share += min(max(min(max((z - 1.0) / 2.0, 0.0), 1.0) - self.net_share, -0.05), 0.05)
        self._follow_votes()

    def follow_trust(self, status: str, _heeded: str) -> None:
        """A record changed a question, and left the feed in this state of trust."""
        aim = {"dependent": 0.1, "contradicted": 0.25, "uninformative": 1.0}.get(status, 0.0)
        self.shrink += min(max(aim - self.shrink, -0.05), 0.05)

    def _follow_votes(self) -> None:
        """Change the vote rule if next to all votes are alike, or no longer."""
        votes, yes = self.sum("half votes"), self.sum("yes")
        if self.setting != "auto" or votes < 200.0:
            return
        rarer = min(yes, votes - yes) / votes
        rule: Rule = "own-median" if rarer < (0.15 if self.rule == "half" else 0.2) else "half"
        self.steps += rule != self.rule
        self.rule = rule

    def _put(self, question: str, part: dict[Key, float]) -> None:
        """Give a question's contribution, in the place of what it had before."""
        for key in self._parts.pop(question, {}):
            del self._terms[key][question]
        self._parts[question] = part
        for key, value in part.items():
            self._terms.setdefault(key, {})[question] = value

    def sum(self, *key: object) -> float:
        return math.fsum(self._terms.get(key, {}).values())

    def _said(self, p: Mapping[str, float], coin: int) -> Said:
        ids = sorted(p)
        line = {i: self.line(i, p[i]) if self.rule == "own-median" else 0.5 for i in ids}
        answer = self.answers(p, line, coin)
        votes = {i: 1 if p[i] > line[i] else -1 for i in ids if p[i] != line[i]}
        b = math.fsum(p.values()) / len(p)
        shadows = [math.fsum(w * p[i] for w, i in zip(ws, ids, strict=True)) for ws in self.mixers(ids)]
        unguarded = math.fsum(w * p[i] for w, i in zip(self.mixed(ids), ids, strict=True))
        mix = (1.0 - self.net_share) * unguarded + self.net_share * b
        return Said(
            final=False,
            p=p,
            answer=answer,
            mixer_answer=self.mixer_answers(p, answer, coin),
            everybody=self.everybody(p, coin),
            half_votes=self.half_votes(p),
            teams=self.together(),
            rule=self.rule,
            score=self.score,
            votes=votes,
            rates=self.priced(),
            learnt=dict(zip(ids, self.select(ids), strict=True)),
            select=dict(zip(ids, self.published(ids), strict=True)),
            b=b,
            shadows=shadows,
            unguarded=unguarded,
            mix=mix,
            stretched=min(max(0.5 + (1.0 + self.stretch()) * (mix - 0.5), 0.0), 1.0),
        )

    def together(self) -> Mapping[str, str]:
        """By expert: the team that it is in."""
        return self.teams

    def everybody(self, p: Mapping[str, float], coin: int) -> tuple[int, bool]:
        """The published reference answer, and whether it was a tie."""
        return side(list(p.values()), [0.5] * len(p), coin)

    def half_votes(self, p: Mapping[str, float]) -> dict[str, int]:
        """Votes at 1/2."""
        return {i: 1 if p[i] > 0.5 else -1 for i in p if p[i] != 0.5}

    def answers(self, p: Mapping[str, float], line: Mapping[str, float], coin: int) -> dict[str, int]:
        """Of each expert the majority of all others who are not in its team."""
        answer = {}
        for i in p:
            others = [j for j in p if j != i and (i not in self.teams or self.teams[i] != self.teams.get(j))]
            answer[i] = side([p[j] for j in others], [line[j] for j in others], coin)[0]
        return answer

    def mixer_answers(self, _p: Mapping[str, float], answer: Mapping[str, int], _coin: int) -> Mapping[str, int]:
        """The reference answers that the peer mixer learns from: those by the vote rule in force."""
        return answer

    def new_question(self) -> Known:
        """Nothing is known of it."""
        return Known()

    # --- readings ---

    def listed(self) -> list[str]:
        return sorted(e for e in self.seen - self.excluded if self.sum("n", e) + self.sum("m", e) > 0.0)

    def line(self, e: str, forecast: float) -> float:
        """The median of an expert's forecasts, by the bin that holds it; 1/2 with fewer than ten questions.

        The forecast itself, if it lies in that bin with three quarters of all that the expert has said.
        """
        counts = [self.sum(f"bin {k}", e) for k in range(BINS)]
        total, below = math.fsum(counts), 0.0
        if round(total, 9) < 10.0:
            return 0.5
        for k, count in enumerate(counts):
            if round(below + count, 9) >= round(total / 2.0, 9):
                steady = round(count, 9) >= round(0.75 * total, 9)
                inside = (total / 2.0 - below) / count
                return forecast if steady and bin_of(forecast) == k else EDGES[k] + inside * (EDGES[k + 1] - EDGES[k])
            below = math.fsum(counts[: k + 1])
        raise AssertionError

    def used(self) -> list[Rule]:
        """Vote rules, that in force first."""

        def scored(rule: Rule) -> bool:
            return self.sum("W", rule) + self.sum("revealed0", rule) + self.sum("revealed1", rule) > 0.0

        return [self.rule, *(rule for rule in RULES if rule != self.rule and scored(rule))]

    def told(self, _trust: str) -> tuple[float, float, float, float]:
        """What is published of ``rates`` in a state of trust."""
        return self.rates()

    def effective(self, rule: Rule) -> float:
        """Effective questions with votes by a rule."""
        return self.sum("W", rule) ** 2 / self.sum("W2", rule) if self.sum("W2", rule) else 0.0

    def may_be_ok(self, _trust: str) -> bool:
        """Whether error rates may be called so in a state of trust."""
        return self.effective(self.rule) >= 50.0 and sum(self.rates()[:2]) <= 0.8

    def measured(self) -> float | None:
        """Share of wrong reference answers on resolved questions."""
        resolved = math.fsum(self.sum(f"revealed{y}", self.rule) for y in (0, 1))
        return math.fsum(self.sum(f"wrong{y}", self.rule) for y in (0, 1)) / resolved if resolved else None

    def rates(self, confidence: float = 0.95, rule: Rule | None = None) -> tuple[float, float, float, float]:
        """Both error rates, and the interval of their mean."""
        rule = rule or self.rule
        above = 0.5 + confidence / 2.0
        z = NormalDist().inv_cdf(above) if above < 1.0 else -NormalDist().inv_cdf(0.5 - confidence / 2.0)
        if rule == "own-median":
            names = ClassMomentSums.__dataclass_fields__
            found = ClassMomentSums(**{name: self.sum(f"class_{name}", rule) for name in names}).estimate(confidence)
            if found.variance < 0.25:
                return self._with_truth(rule, (found.zero, found.one), found.low, found.high, found.variance, z)
        total, pseudo = self.sum("W", rule) + 20.0, 0.5 * math.sqrt(0.1)
        pair, rest = (self.sum("P", rule) + 2.0) / total, (self.sum("R", rule) + 20.0 * pseudo) / total
        a = rest / math.sqrt(pair) if pair > 0.0 else 0.0
        free = min(max((1.0 - a) / 2.0, 0.0), 0.475)
        low, high, variance = 0.0, 0.475, 0.25
        if a > 0.0:
            of_pair = ((self.sum("PP", rule) + 20.0) / total - pair**2) / pair**2
            of_rest = ((self.sum("RR", rule) + 20.0) / total - rest**2) / rest**2
            of_both = ((self.sum("PR", rule) + 2.0 * pseudo) / total - pair * rest) / (pair * rest)
            log_variance = max(of_rest + of_pair / 4.0 - of_both, 0.0) * (self.sum("W2", rule) + 20.0) / total**2
            variance = min(a * a * log_variance / 4.0, 0.25)
            if self.sum("W", rule) > 0.0:
                stretch = math.exp(min(z * math.sqrt(log_variance), 50.0))
                low = min(max((1.0 - a * stretch) / 2.0 - 0.005, 0.0), free)
                high = max(min((1.0 - a / stretch) / 2.0 + 0.005, 0.475), free)
        return self._with_truth(rule, (free, free), low, high, variance, z)

    def _with_truth(
        self, rule: Rule, free: tuple[float, float], low: float, high: float, variance: float, z: float
    ) -> tuple[float, float, float, float]:
        rates, shares, noise = [], [], 0.0
        for y in (0, 1):
            spread = max(free[y], 0.005) * (1.0 - max(free[y], 0.005))
            revealed = self.sum(f"revealed{y}", rule)
            prior = min(spread / variance, 30.0) if variance else 30.0
            rate = min((self.sum(f"wrong{y}", rule) + prior * free[y]) / (revealed + prior), 0.475)
            rates.append(rate)
            shares.append(prior / (revealed + prior))
            noise += revealed * rate * (1.0 - rate) / (revealed + prior) ** 2
        mean, before = sum(rates) / 2.0, sum(free) / 2.0
        share, error = sum(shares) / 2.0, z * math.sqrt(noise) / 2.0
        down, up = math.hypot(share * (before - low), error), math.hypot(share * (high - before), error)
        return rates[0], rates[1], max(mean - down, 0.0), min(mean + up, 0.475)

    def priced(self, rule: Rule | None = None) -> tuple[float, float]:
        zero, one, *_ = self.rates(rule=rule)
        scale = min(0.8 / (zero + one), 1.0) if zero + one else 1.0
        return zero * scale, one * scale

    def unbiased(self, kind: str, e: str, rule: Rule) -> float:
        """Summed losses or regrets of a vote rule, priced with its own rates."""
        zero, one = self.priced(rule)
        against, if_one, if_zero = (self.sum(f"{kind} {k} {rule}", e) for k in "y10")
        return (against - zero * if_one - one * if_zero) / (1.0 - zero - one)

    def published(self, experts: Sequence[str]) -> list[float]:
        """Selection weights with the share of uniform ones that trust asks for."""
        return [(1.0 - self.shrink) * w + self.shrink / len(experts) for w in self.select(experts)]

    def select(self, experts: Sequence[str]) -> list[float]:
        distance, loss_range = 1.0 - sum(self.priced()), 1.0 + abs(self.priced()[0] - self.priced()[1])
        used = {rule: distance / (1.0 - sum(self.priced(rule))) for rule in self.used()}
        regrets = [
            distance * (self.sum("rH", e) + math.fsum(self.unbiased("regret", e, rule) for rule in used))
            for e in experts
        ]
        absolute = [
            self.sum("AH true", e) + math.fsum(scale * self.sum(f"A {rule}", e) for rule, scale in used.items())
            for e in experts
        ]
        return hedge([r / loss_range for r in regrets], [a / loss_range for a in absolute])

    def mixers(
        self, experts: Sequence[str], peer: float = 24.0, truth: float = 24.0, err: float = 0.35, even: float = 0.0
    ) -> list[list[float]]:
        """Weights of plain mean, peer, slow and fast truth, at their rates; the peer's nominal error rate and share."""
        n = len(experts)
        regrets = [
            (1.0 - 2.0 * err) * self.sum("SU", e) + err * self.sum("SV", e) - self.sum("SVY", e) for e in experts
        ]
        resolved = math.fsum(self.sum("k", e) for e in experts)
        answered = math.fsum(self.sum("n", e) for e in experts) + resolved
        own = softmax([peer * regret / (answered / n + 40.0) for regret in regrets])
        return [
            [1.0 / n] * n,
            [even / n + (1.0 - even) * w for w in own],
            softmax([truth * self.sum("RH", e) / (resolved / n + 10.0) for e in experts]),
            hedge([self.sum("RF", e) for e in experts], [self.sum("AF", e) for e in experts]),
        ]

    def shares(self, priors: Sequence[float] = PRIORS) -> list[float]:
        second = [[self.sum("M" + str(i) + str(j)) for j in range(4)] for i in range(4)]
        return outer(second, [self.sum(f"h{k}") for k in range(4)], priors)

    def mix(self, experts: Sequence[str]) -> list[float]:
        return [(1.0 - self.net_share) * w + self.net_share / len(experts) for w in self.mixed(experts)]

    def mixed(self, experts: Sequence[str]) -> list[float]:
        """Weights of the mix before the safety net."""
        by_expert: Iterable[tuple[float, ...]] = zip(*self.mixers(experts), strict=True)
        shares = self.shares()
        return [sum(m * w for m, w in zip(shares, ws, strict=True)) for ws in by_expert]

    def stretch(self) -> float:
        return max(self.sum("fit") / (self.sum("fit2") + 5.0), -1.0)

    def peer_loss(self, e: str) -> float | None:
        total = math.fsum(self.unbiased("loss", e, rule) for rule in self.used())
        return self.unit * total / self.sum("n", e) if self.sum("n", e) else None

    def outcome_loss(self, e: str) -> float | None:
        return self.unit * self.sum("H", e) / self.sum("m", e) if self.sum("m", e) else None

    def certificate(self) -> float | None:
        """Of the published weights."""
        shares = self.steps * (self.steps + 1) * len(self.used())
        bounds = {e: self.sum("pH", e) for e in self.listed()}
        for rule in self.used():
            a, b, low, high = self.rates(1.0 - 0.01 / shares, rule)
            half = (a - b) / 2.0
            means = [low, *([abs(half)] if low < abs(half) < high else []), high]
            ends = [(m + g, m - g) for m in means for g in [min(max(half, -m), m)]]
            if min(1.0 - zero - one for zero, one in ends) < 0.2:
                return None
            for e in bounds:
                v = self.sum(f"V {rule}", e) + 25.0
                noise = math.sqrt(v * (2.0 * math.log(len(self.seen) * shares / 0.04) + math.log(v / 25.0)))
                y, c1, c0 = (self.sum(f"published {k} {rule}", e) for k in "y10")
                bounds[e] += max((y - zero * c1 - one * c0 + noise) / (1.0 - zero - one) for zero, one in ends)
        return self.unit * max(bounds.values())

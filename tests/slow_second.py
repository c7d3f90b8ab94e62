"""The slow twin of a feed under version 2 of the method: what differs from version 1, word by word.

``docs/numerics.md`` has the formulas. The state of trust is given.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations_with_replacement, pairwise
from statistics import NormalDist

from stream_peer.events.feed_log import Round
from tests.slow_certificate import NAMES, added_up, bound_of, confidence_of_all_times, rates_allowed
from tests.slow_feed import PRIORS, RULES, Evidence, Key, Known, Said, Setting, SlowFeed, side, softmax
from tests.slow_guard import Asked, Group, look

HEEDED = {"ok": (2.0, 1.0), "warming-up": (1.0, 0.5), "contradicted": (0.25, 0.0), "uninformative": (0.0, 0.0)}
"""By the state of trust: by what the prior of the peer mixer is multiplied, how much of the peers' stretch counts."""


def towards(goal: float, before: float, step: float) -> float:
    return before + min(max(goal - before, -step), step)


def pooled(
    regrets: Sequence[float],
    counts: Sequence[float],
    prior: float,
    least: Sequence[float] | None = None,
    voices: Sequence[float] | None = None,
) -> list[float]:
    """(R - n·r̄)/(n + k), r̄ = ΣR/Σn by voices; of who is above r̄, the last n is at least the one given."""
    total = total_of(counts, voices)
    average = total_of(regrets, voices) / total if total else 0.0
    found = []
    for regret, n, at_least in zip(regrets, counts, least or counts, strict=True):
        above = regret - n * average
        found.append(above / ((max(n, at_least) if above > 0.0 else n) + prior))
    return found


def total_of(amounts: Sequence[float], voices: Sequence[float] | None) -> float:
    """Each by its part of a voice."""
    return math.fsum(one * voice for one, voice in zip(amounts, voices or [1.0] * len(amounts), strict=True))


class SecondKnown(Known):
    """A question, with what version 2 adds up besides."""

    def contribution(self) -> dict[Key, float]:
        found = super().contribution()
        if not found:
            return found
        outcome = None if self.evidence == "open" else int(self.evidence)
        rounds = [self.rounds[boundary] for boundary in sorted(self.rounds)]
        for expert in {e for r in rounds for e in r.p}:
            terms = added_up(rounds, RULES, outcome, self.weight, expert)
            found |= {(name, expert): self.weight * value for name, value in terms.items()}
        return found | {(name,): self.weight * value for name, value in self._agreed().items()}

    def _agreed(self) -> dict[str, float]:
        """How forecasts agree, over rounds with two voters; which error the mean states of itself, over all."""
        stated = [min(r.b, 1.0 - r.b) for r in self.rounds.values()]
        found = {"stated_error": math.fsum(stated) / len(stated), "asked": 1.0}
        both = [r for r in self.rounds.values() if len(r.minds(r.p)) > 1]
        for r in both:
            level, cross = agreement(r)
            said = {"agreed": 1.0, "level": level, "cross": cross, "size": (r.mix - 0.5) ** 2}
            for name, value in (said | {"centre": voters_mean(r), "mix": r.mix - 0.5}).items():
                found[name] = found.get(name, 0.0) + value / len(self.rounds)
        return found


def asked(rounds: Sequence[Said]) -> Asked:
    """What the guard looks at: the latest round, and first forecasts beside the figures of three rounds before."""
    figures, first = list[float](), dict[str, tuple[float, Sequence[float]]]()
    for before, r in pairwise(rounds):
        figures += (before.b, before.mix, before.stretched)
        late = r.p.keys() - first.keys() - rounds[0].p.keys()
        first |= {e: (r.p[e], figures[-9:]) for e in late}
    last = rounds[-1]
    said_before = [said for before in rounds[-2:-1] for said in (before.mix, before.stretched)]
    return Asked(last.p, last.votes, last.answer, said_before, first)


def voters_mean(r: Said) -> float:
    """How far the mean of all voters is from 1/2."""
    minds = r.minds(r.p)
    return math.fsum(math.fsum(r.p[e] - 0.5 for e in members) / len(members) for members in minds) / len(minds)


def agreement(r: Said) -> tuple[float, float]:
    """Means of (p - 1/2)(q - 1/2): of any two voters; of an expert by the weights of the mix and any other voter."""
    minds = r.minds(r.p)
    said = [math.fsum(r.p[e] - 0.5 for e in members) / len(members) for members in minds]
    mixed = [math.fsum(r.weights[e] * (r.p[e] - 0.5) for e in members) for members in minds]
    rest = [math.fsum(q for other, q in enumerate(said) if other != one) / (len(said) - 1) for one in range(len(said))]
    level = math.fsum(p * q for p, q in zip(said, rest, strict=True)) / len(said)
    return level, math.fsum(p * q for p, q in zip(mixed, rest, strict=True))


class SecondSlowFeed(SlowFeed):
    """A feed under version 2.

    ``prior`` and ``heed``: how far trust lets the agreement of experts count. ``copies``, ``followers``: whom the guard
    has found, at each 25th new question. A group votes once, and shares the weight of one; so do followers, but for no
    weight. ``new``: whom it holds together in the present round.
    """

    def __init__(self, coin: Callable[[str, int], int], *, vote_rule: Setting = "half", loss: str = "squared") -> None:
        super().__init__(coin, vote_rule=vote_rule, loss=loss)
        self.prior = self.heed = 0.0
        self.copies: list[Group] = []
        self.followers: Group | None = None
        self.looked_at = 0
        self.new: set[str] = set()

    def new_question(self) -> Known:
        """Nothing is known of it."""
        return SecondKnown()

    @property
    def groups(self) -> list[set[str]]:
        return [set(group.experts) for group in self.copies]

    @property
    def weightless(self) -> set[str]:
        return set(self.followers.experts) if self.followers else set()

    def round(self, event: Round, revision: int = -1) -> None:
        """With a look at what has been said last, if it is time."""
        super().round(event, revision)
        self._look()

    def outcome(self, question: str, evidence: Evidence) -> None:
        """It may come before anything else of its question."""
        super().outcome(question, evidence)
        self._look()

    def _look(self) -> None:
        if len(self.questions) < self.looked_at + 25:
            return
        self.looked_at = len(self.questions)
        known = [known for known in [*self.questions.values()][-512:] if known.rounds and known.evidence != "annulled"]
        rounds = [[said for _, said in sorted(one.rounds.items())] for one in known]
        self.copies, self.followers = look(
            list(map(asked, rounds)), self.groups, self.weightless, self.teams, self.excluded
        )

    def follow_trust(self, status: str, heeded: str) -> None:
        """As under version 1; and the prior share of the peer mixer moves by .05 at most, as the stretch does.

        ``heeded``: the state if groups that the guard holds together are no sign against the feed.
        """
        super().follow_trust(status, heeded)
        evidence = min(max((self.agreement_z() - 1.0) / 2.0, 0.0), 1.0)
        prior, stretch = HEEDED.get(heeded, (1.0, 0.0))
        stretch = max(stretch, self.sum("resolved") / (self.sum("resolved") + 40.0))
        self.prior = towards(evidence * prior, self.prior, 0.05 / PRIORS[1])
        self.heed = towards(evidence * stretch, self.heed, 0.05)

    def agreement_z(self) -> float:
        """By how many standard deviations votes agree more than coins that say yes as often.

        By own medians as many say yes as no.
        """
        used = [rule for rule in RULES if self.sum("W", rule)]
        pair = math.fsum(self.sum("P", rule) for rule in used)
        variance = math.fsum(self.sum("PP", rule) * self.sum("W2", rule) / self.sum("W", rule) for rule in used)
        yes = self.sum("yes") / self.sum("half votes") if self.sum("half votes") else 0.5
        chance = (2.0 * yes - 1.0) ** 2 * self.sum("W", "half")
        return (pair - chance) / math.sqrt(variance) if variance > 0.0 else 0.0

    def _said(self, p: Mapping[str, float], coin: int) -> Said:
        self.new = self.newcomers(sorted(p))
        said = super()._said(p, coin)
        said.weights = dict(zip(sorted(p), self.mix(sorted(p)), strict=True))
        self.new = set()
        return said

    def newcomers(self, experts: Sequence[str]) -> set[str]:
        """Who has answered fewer than 50 questions, and less than a third of what four voices have answered."""
        answered = {e: self.sum("n", e) + self.sum("k", e) for e in experts}
        voices, heard = dict(zip(experts, self.voices(experts), strict=True)), 0.0
        for e in sorted(experts, key=lambda one: -answered[one]):
            heard += voices[e]
            if heard > 3.999:
                held = set().union(*self.groups, self.weightless)
                return {one for one in experts if answered[one] < min(50.0, answered[e] / 3.0)} - held
        return set()

    def units(self, experts: Iterable[str]) -> list[list[str]]:
        """Who votes together, and shares a weight."""
        found = [[e for e in sorted(experts) if e in group] for group in (*self.groups, self.weightless, self.new)]
        found += [[e] for e in sorted(experts) if not any(e in unit for unit in found)]
        return [unit for unit in found if unit]

    def together(self) -> Mapping[str, str]:
        """Teams and units that share a member are one."""
        teams = [{e for e, team in self.teams.items() if team == name} for name in set(self.teams.values())]
        found: list[set[str]] = []
        for some in (*teams, *self.groups, self.weightless, self.new):
            touched = [other for other in found if some & other]
            found = [other for other in found if not some & other] + [some.union(*touched)]
        return {e: min(some) for some in found for e in some}

    def everybody(self, p: Mapping[str, float], coin: int) -> tuple[int, bool]:
        """Each unit has one vote."""
        votes = [self.spoken(unit, p, dict.fromkeys(p, 0.5)) for unit in self.units(p)]
        return side([forecast for forecast, _ in votes], [line for _, line in votes], coin)

    def half_votes(self, p: Mapping[str, float]) -> dict[str, int]:
        """Each unit has one."""
        votes = {unit[0]: self.spoken(unit, p, dict.fromkeys(p, 0.5))[0] for unit in self.units(p)}
        return super().half_votes(votes)

    def answers(self, p: Mapping[str, float], line: Mapping[str, float], coin: int) -> dict[str, int]:
        """The majority of the other units, without those of the same team."""
        found: dict[str, int] = {}
        teams, units = self.together(), self.units(p)
        for unit in units:
            mine = {teams[e] for e in unit if e in teams}
            others = [other for other in units if other != unit and not any(teams.get(e) in mine for e in other)]
            votes = [self.spoken(other, p, line) for other in others]
            answer = side([forecast for forecast, _ in votes], [at for _, at in votes], coin)[0]
            found |= dict.fromkeys(unit, answer)
        return found

    @staticmethod
    def spoken(unit: Sequence[str], p: Mapping[str, float], line: Mapping[str, float]) -> tuple[float, float]:
        """Forecast and line of the first of a unit who votes as most of it do; where they are tied it has no vote."""
        votes = [(p[e] > line[e]) - (p[e] < line[e]) for e in unit]
        for e, vote in zip(unit, votes, strict=True):
            if vote * sum(votes) > 0:
                return p[e], line[e]
        return line[unit[0]], line[unit[0]]

    def shared(self, weights: Sequence[float], experts: Sequence[str]) -> list[float]:
        """A group has the weight of one; the weightless have none, unless nobody else is there."""
        size = {e: len(unit) for unit in self.units(experts) for e in unit}
        own = {e: w / size[e] for e, w in zip(experts, weights, strict=True)}
        if some := [e for e in experts if e not in self.weightless]:
            own |= dict.fromkeys(self.weightless, 0.0)
            own = own if any(own[e] for e in some) else {e: float(e in some) for e in experts}
        return [own[e] / math.fsum(own[e] for e in experts) for e in experts]

    def voices(self, experts: Sequence[str]) -> list[float]:
        """A group has one voice in what is average; the weightless have none, unless nobody else is there."""
        if all(e in self.weightless for e in experts):
            return [1.0] * len(experts)
        size = {e: len(unit) for unit in self.units(experts) for e in unit}
        return [0.0 if e in self.weightless else 1.0 / size[e] for e in experts]

    def published(self, experts: Sequence[str]) -> list[float]:
        return self.shared(super().published(experts), experts)

    def mixed(self, experts: Sequence[str]) -> list[float]:
        return self.shared(super().mixed(experts), experts)

    def mixer_answers(self, p: Mapping[str, float], _answer: Mapping[str, int], coin: int) -> Mapping[str, int]:
        """By votes at 1/2, whatever the vote rule."""
        return self.answers(p, dict.fromkeys(p, 0.5), coin)

    def mixers(
        self, experts: Sequence[str], peer: float = 24.0, truth: float = 24.0, err: float = 0.35, even: float = 0.0
    ) -> list[list[float]]:
        """Those of version 1, but for the weights of peer and slow truth: by each expert's own number of questions."""
        uniform, _, _, fast = super().mixers(experts, peer, truth, err, even)
        resolved = [self.sum("k", e) for e in experts]
        answers = [self.sum("n", e) + m for e, m in zip(experts, resolved, strict=True)]
        by_answers = [
            (1.0 - 2.0 * err) * self.sum("SU", e) + err * self.sum("SV", e) - self.sum("SVY", e) for e in experts
        ]
        by_outcomes = [self.sum("RH", e) for e in experts]
        both = [regret + 2.0 * more for regret, more in zip(by_answers, by_outcomes, strict=True)]
        counts = [n + 4.0 * m for n, m in zip(answers, resolved, strict=True)]
        voices = self.voices(experts)
        mean = total_of(answers, voices) / math.fsum(voices)
        least = [mean + 4.0 * m for m in resolved]
        own = softmax([peer * regret for regret in pooled(both, counts, 40.0, least, voices)])
        slow = softmax([truth * regret for regret in pooled(by_outcomes, resolved, 10.0, voices=voices)])
        return [uniform, [even / len(experts) + (1.0 - even) * w for w in own], slow, fast]

    def shares(self, priors: Sequence[float] = PRIORS) -> list[float]:
        """With the prior of the peer mixer that trust sets, .9 at most; the others in proportion."""
        mean, peer, slow, fast = priors
        trusted = min(self.prior * peer, 0.9)
        scale = (1.0 - trusted) / (mean + slow + fast)
        return super().shares((scale * mean, trusted, scale * slow, scale * fast))

    def stretch(self) -> float:
        """Shrunk towards what peers ask for, as far as that is heeded."""
        return max((self.sum("fit") + 2.5 * self.heed * self.peer_stretch()) / (self.sum("fit2") + 2.5), -1.0)

    def peer_stretch(self) -> float:
        """The regression on outcomes, with what follows from agreement in the place of its numerator."""
        n = self.sum("agreed")
        if not n:
            return 0.0
        level, cross, centre, of_mix = (self.sum(name) / n for name in ("level", "cross", "centre", "mix"))
        of_experts, of_outcome = level - centre**2, 0.25 - centre**2
        if of_experts <= 0.0:
            return 0.0
        with_outcome = (cross - centre * of_mix) * math.sqrt(max(of_outcome, 0.0) / of_experts) + centre * of_mix
        return min(max((n * with_outcome - self.sum("size")) / (self.sum("size") + 5.0), 0.0), 1.0)

    def certificate(self) -> float | None:
        """Of all rounds of all questions."""
        return self.unit * max(map(min, self.bounds().values()))

    def bounds(self) -> dict[str, tuple[float, float]]:
        """Of the regret against each expert listed: by reference answers, and the largest that there can be."""
        rules, experts = self.used(), self.listed()
        delta = 0.05 / (2 if self.setting == "auto" else len(rules))
        found = {e: self.sum("other", e) for e in experts}
        for rule in rules:
            names = [*NAMES, *(f"{a}_{b}" for a, b in combinations_with_replacement(NAMES, 2)), "weight", "weight2"]
            sums = {name: self.sum(f"class_{name}", rule) for name in names}
            questions = sums["weight"] ** 2 / sums["weight2"] if sums["weight2"] else 0.0
            rates = rates_allowed(sums, confidence_of_all_times(questions, 0.1 * delta))
            for e in experts:
                regrets = [self.sum(f"closed {k} {rule}", e) for k in "y10"]
                found[e] += bound_of(regrets, self.sum(f"reach {rule}", e), rates, len(self.seen), 0.8 * delta)
        return {e: (found[e], self.sum("pH", e) + self.sum("most", e)) for e in experts}

    # --- error rates ---

    def told(self, trust: str) -> tuple[float, float, float, float]:
        """Unless trust is ``ok``, the interval goes up to where experts may err who know no more than their mean."""
        zero, one, low, high = self.rates()
        return zero, one, low, high if trust == "ok" else max(high, self.doubted())

    def may_be_ok(self, trust: str) -> bool:
        """Not where votes or outcomes have shown that experts share errors."""
        return super().may_be_ok(trust) and trust not in ("dependent", "contradicted")

    def measured(self) -> float | None:
        """The mean of the shares of both outcomes, or that of the one of which some are known."""
        known = [(self.sum(f"wrong{y}", self.rule), self.sum(f"revealed{y}", self.rule)) for y in (0, 1)]
        shares = [wrong / n for wrong, n in known if n]
        return sum(shares) / len(shares) if shares else None

    def doubted(self) -> float:
        """The mean of min(b, 1 - b) and what chance adds, or the upper end by outcomes alone; .475 at most."""
        if not self.sum("asked"):
            return 0.475
        z, questions = NormalDist().inv_cdf(0.975), self.effective(self.rule)
        stated = min(self.sum("stated_error") / self.sum("asked"), 0.5)
        return min(stated + z * math.sqrt(stated * (1.0 - stated) / max(questions, 1.0)), self.by_outcomes(z), 0.475)

    def by_outcomes(self, z: float) -> float:
        """The upper end of the mean of both rates, each by Wilson's interval."""
        known = [(self.sum(f"wrong{y}", self.rule), self.sum(f"revealed{y}", self.rule)) for y in (0, 1)]
        resolved = math.fsum(n for _, n in known)
        overall = math.fsum(wrong for wrong, _ in known) / resolved if resolved else 0.25
        rates = [wrong / n if n else overall for wrong, n in known]
        ends = [
            (rate + z**2 / (2.0 * n) + z * math.sqrt(rate * (1.0 - rate) / n + z**2 / (4.0 * n**2))) / (1.0 + z**2 / n)
            if n
            else 1.0
            for rate, (_, n) in zip(rates, known, strict=True)
        ]
        up = [end - rate for end, rate in zip(ends, rates, strict=True)]
        reach = math.hypot(*up) if all(n for _, n in known) else sum(up)
        return sum(rates) / 2.0 + reach / 2.0

"""Experts who say the same, looked for once more, slow and obvious: pair by pair, question by question.

The docstrings of ``stream_peer.numerics.dependence`` have the formulas. Of few experts: none of them waits for a turn.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, permutations
from typing import NamedTuple

Votes = Sequence[Mapping[str, int]]
"""Of each question, by expert: +1 or -1; who has none is left out."""
PARTS = 10
WITNESSED = 20


class Group(NamedTuple):
    """Who says the same: mean product of two votes, what it would be by the outcome alone, common questions."""

    experts: tuple[str, ...]
    agreement: float
    expected: float
    questions: int


class Both(NamedTuple):
    """Two experts, over their common questions: how many, and means of the product of their votes and of each."""

    common: int
    product: float
    left: float
    right: float

    @property
    def covariance(self) -> float:
        return self.product - self.left * self.right

    @property
    def differ(self) -> float:
        """On which share they do."""
        return (1.0 - self.product) / 2.0

    @property
    def by_chance(self) -> float:
        return (1.0 - self.left * self.right) / 2.0

    def expected(self, covariance: float) -> float:
        """On which share they should differ, having so much in common: not less than nothing, nor than there can be."""
        most = math.sqrt((1.0 - self.left**2) * (1.0 - self.right**2))
        return self.by_chance - min(max(covariance, 0.0), most) / 2.0


class Heard:
    """Some questions; ``both`` of two experts."""

    def __init__(self, votes: Votes) -> None:
        self.votes = votes
        self.both = cache(self._both)

    def _both(self, one: str, other: str) -> Both:
        said = [(votes[one], votes[other]) for votes in self.votes if one in votes and other in votes]
        if not said:
            return Both(0, 0.0, 0.0, 0.0)
        n = len(said)
        return Both(n, sum(v * w for v, w in said) / n, sum(v for v, _ in said) / n, sum(w for _, w in said) / n)

    def n_votes(self, expert: str) -> int:
        return sum(expert in votes for votes in self.votes)

    def units(self, one: Collection[str], other: Collection[str]) -> tuple[int, float]:
        """Of some experts with others: common questions and mean covariance, over all pairs of them."""
        pairs = [self.both(a, b) for a in one for b in other]
        n = sum(pair.common for pair in pairs)
        return n, math.fsum(pair.common * pair.covariance for pair in pairs) / max(n, 1)

    def explained(self, one: str, other: str, witnesses: Sequence[Collection[str]]) -> float:
        """The covariance of two by what witnesses k ≠ l have in common with them; no limit where these do not tell."""
        above, below = [], []
        of_one, of_other = ([self.units([expert], witness) for witness in witnesses] for expert in (one, other))
        for i, j in permutations(range(len(witnesses)), 2):
            n, covariance = self.units(witnesses[i], witnesses[j])
            if min(n, of_one[i][0], of_other[j][0]) >= WITNESSED:
                above.append(of_one[i][1] * of_other[j][1])
                below.append(covariance)
        return math.fsum(above) / math.fsum(below) if math.fsum(below) > 0.0 else math.inf


def by_parts(votes: Votes, of: Callable[[Heard], float]) -> float:
    """The jackknife's variance: each part of the questions is left out once; the first ones have one more."""
    size, more = divmod(len(votes), PARTS)
    ends = [part * size + min(part, more) for part in range(PARTS + 1)]
    values = [of(Heard([*votes[: ends[part]], *votes[ends[part + 1] :]])) for part in range(PARTS)]
    mean = math.fsum(values) / PARTS
    return (PARTS - 1) / PARTS * math.fsum((value - mean) ** 2 for value in values)


def joined(groups: Iterable[Collection[str]]) -> list[set[str]]:
    """Groups that share a member are one."""
    found: list[set[str]] = []
    for group in groups:
        touched = [other for other in found if not other.isdisjoint(group)]
        found = [other for other in found if other not in touched] + [set(group).union(*touched)]
    return found


# --- copies: two by two ---


@dataclass(frozen=True)
class Suspects:
    """Two experts, on what they should differ and do, and by how many standard deviations that is below half."""

    pair: tuple[str, str]
    both: Both
    expected: float
    z: float


def suspect(heard: Heard, one: str, other: str, witnesses: Sequence[str]) -> Suspects:
    both = heard.both(one, other)
    own = both.differ / max(both.by_chance, 1e-9)

    def is_far(witness: str, expert: str) -> bool:
        with_it = heard.both(expert, witness)
        share = with_it.differ / max(with_it.by_chance, 1e-9)
        return witness != expert and (share > 1.5 * own + 0.05 or with_it.common < WITNESSED)

    asked = [[w] for w in witnesses if is_far(w, one) and is_far(w, other)]

    def excess(some: Heard) -> float:
        pair = some.both(one, other)
        return pair.expected(some.explained(one, other, asked)) / 2.0 - pair.differ

    expected = both.expected(heard.explained(one, other, asked))
    if excess(heard) <= 0.0 or len(asked) < 2:
        return Suspects((one, other), both, expected, -math.inf)
    by_chance = max(both.differ * (1.0 - both.differ), 1.0 / both.common) / both.common
    z = excess(heard) / math.sqrt(by_parts(heard.votes, excess) + by_chance)
    return Suspects((one, other), both, expected, z)


def likely(heard: Heard, experts: Sequence[str], is_apart: Callable[[str, str], bool]) -> Iterator[tuple[str, str]]:
    """Of each expert the three who differ least from it, beside what chance allows."""
    for one in experts:
        near = []
        for other in experts:
            both = heard.both(one, other)
            is_near = both.differ < both.by_chance / 2.0 and both.by_chance - both.differ >= 0.1
            if one < other and is_apart(one, other) and both.common >= 40 and is_near:
                near.append((both.differ / both.by_chance, other))
        yield from ((one, other) for _, other in sorted(near)[:3])


def within(group: Sequence[str]) -> Iterator[tuple[str, str]]:
    """All pairs; of more than six experts each with the three next."""
    near = {0, 1, 2, 3, len(group) - 1, len(group) - 2, len(group) - 3} if len(group) > 6 else set(range(len(group)))
    yield from ((a, b) for (i, a), (j, b) in combinations(enumerate(group), 2) if j - i in near)


def unlike(heard: Heard, experts: Sequence[str]) -> list[str]:
    """Those with the most votes first, and none who differs from one of them on a tenth of what chance allows."""
    found: list[str] = []
    for e in sorted(experts, key=lambda e: -heard.n_votes(e)):
        with_them = [heard.both(e, w) for w in found]
        if not any(both.differ <= both.by_chance / 10.0 and both.common >= WITNESSED for both in with_them):
            found.append(e)
    return found


def copies(votes: Votes, known: Sequence[Collection[str]], teams: Mapping[str, str]) -> list[Group]:
    """Pairs that differ on half of what they should, by five standard deviations, two within a known group."""
    heard = Heard(votes)
    experts = [e for e in sorted({e for row in votes for e in row}) if heard.n_votes(e) >= 40]
    former = [[e for e in experts if e in group] for group in known]

    def is_apart(one: str, other: str) -> bool:
        is_team = one in teams and teams[one] == teams.get(other)
        return not is_team and not any(one in group and other in group for group in former)

    witnesses, found = unlike(heard, experts), []
    for pairs, deviations, effect in (
        (likely(heard, experts, is_apart), 5.0, 0.1),
        (chain.from_iterable(map(within, former)), 2.0, 0.05),
    ):
        suspects = [suspect(heard, *pair, witnesses) for pair in pairs]
        found += [one for one in suspects if one.z >= deviations and one.expected - one.both.differ >= effect]
    groups = []
    for group in joined(suspects.pair for suspects in found):
        own = [suspects for suspects in found if suspects.pair[0] in group]
        agreed = math.fsum(suspects.both.product for suspects in own) / len(own)
        expected = math.fsum(1.0 - 2.0 * suspects.expected for suspects in own) / len(own)
        questions = round(sum(suspects.both.common for suspects in own) / len(own))
        groups.append(Group(tuple(sorted(group)), agreed, expected, questions))
    return sorted(groups)


# --- blocks: branches of a tree ---


@dataclass
class Branch:
    """Experts that the tree has joined, of two parts; and at which agreement others are joined to them."""

    parts: tuple[tuple[str, ...], tuple[str, ...]]
    level: float
    next: float = -1.0

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(sorted(self.parts[0] + self.parts[1]))


def agreement(both: Both) -> float:
    return 1.0 - both.differ / max(both.by_chance, 1e-9)


def tree(heard: Heard, experts: Sequence[str]) -> Iterator[Branch]:
    """The two that agree most in the mean over pairs are joined first, down to an agreement of .24."""

    def of_pair(one: str, other: str) -> float:
        both = heard.both(one, other)
        return agreement(both) if both.common >= WITNESSED else 0.0

    groups: dict[tuple[str, ...], Branch | None] = {(e,): None for e in experts}
    while len(groups) > 1:
        levels = {
            (one, other): math.fsum(of_pair(a, b) for a in one for b in other) / (len(one) * len(other))
            for one, other in combinations(sorted(groups), 2)
        }
        highest = max(levels.values())
        parts = min(pair for pair, level in levels.items() if level > highest - 1e-12)
        if highest < 0.8 * 0.3:
            break
        for part in parts:
            if (before := groups.pop(part)) is not None:
                before.next = highest
                yield before
        branch = Branch(parts, highest)
        groups[branch.members] = branch
    yield from (branch for branch in groups.values() if branch is not None)


class Mean(NamedTuple):
    """On which share of common questions pairs should differ, and do."""

    expected: float
    found: float

    @property
    def excess(self) -> float:
        return 0.75 * self.expected - self.found


def mean_of(heard: Heard, pairs: Iterable[tuple[str, str]], witnesses: Sequence[Collection[str]]) -> Mean:
    """Over the common questions of pairs."""
    of_pairs = [(heard.both(*pair), heard.explained(*pair, witnesses)) for pair in pairs]
    n = max(sum(both.common for both, _ in of_pairs), 1)
    expected = math.fsum(both.common * both.expected(covariance) for both, covariance in of_pairs) / n
    return Mean(expected, math.fsum(both.common * both.differ for both, _ in of_pairs) / n)


class Blocks:
    """Of three voters or more; ``votes``, ``known`` and ``teams`` as of ``copies``.

    A team is one voter, under the name of its first member: it votes as most of them do.
    """

    def __init__(self, votes: Votes, known: Sequence[Collection[str]], teams: Mapping[str, str]) -> None:
        members = sorted({e for row in votes for e in row})
        first = {team: min(e for e in teams if teams[e] == team) for team in teams.values()}
        self.voter = {e: first[teams[e]] if e in teams else e for e in {*members, *teams}}
        self.members = {voter: [e for e in members if self.voter[e] == voter] for voter in self.voter.values()}
        sums = [{voter: sum(row.get(e, 0) for e in some) for voter, some in self.members.items()} for row in votes]
        self.heard = Heard([{e: 1 if lead > 0 else -1 for e, lead in row.items() if lead} for row in sums])
        self.experts = [e for e in sorted(self.members) if self.heard.n_votes(e) >= 25]
        of_known = [{self.voter[e] for e in group if e in self.voter} for group in known]
        self.known = [[e for e in self.experts if e in group] for group in of_known]
        self.tree = list(tree(self.heard, self.experts))

    def found(self) -> list[Group]:
        """Larger ones first, no voter in two."""
        blocks: list[Group] = []
        likely = [b for b in self.tree if len(b.members) > 2 and b.level >= 0.3 and b.next <= 0.8 * b.level]
        candidates = [*map(self._of_known, self.known), *map(self._of_branch, likely)]
        for block in sorted(filter(None, candidates), key=lambda block: -len(block.experts)):
            if not any(set(block.experts) & set(other.experts) for other in blocks):
                blocks.append(block)
        every = ([e for voter in block.experts for e in self.members[voter]] for block in blocks)
        return sorted(
            block._replace(experts=tuple(sorted(experts))) for block, experts in zip(blocks, every, strict=True)
        )

    def _of_branch(self, branch: Branch) -> Group | None:
        block, witnesses = branch.members, self._witnesses(branch.members)
        if len(witnesses) < 3 or self._of_witnesses(witnesses) < 0.09:
            return None
        last = mean_of(self.heard, [(a, b) for a in branch.parts[0] for b in branch.parts[1]], witnesses)
        whole = mean_of(self.heard, combinations(block, 2), witnesses)
        if min(last.excess, whole.excess) <= 0.0 or min(one.expected - one.found for one in (last, whole)) < 0.1:
            return None
        if whole.found > whole.expected * (0.5 - 0.5 / len(block)):
            return None
        return self._named(block, witnesses, 3.0 + 4.0 / len(block))

    def _of_known(self, block: Sequence[str]) -> Group | None:
        """Of those who agree with the others still: three quarters of what they should, and half of the effect."""
        witnesses = self._witnesses(block) if len(block) > 2 else []
        if len(witnesses) < 3:
            return None
        stays = []
        for e in block:
            own = mean_of(self.heard, [(e, other) for other in block if other != e], witnesses)
            stays += [e] if own.excess > 0.0 and own.expected - own.found >= 0.05 else []
        if len(stays) < 3:
            return None
        whole = mean_of(self.heard, combinations(stays, 2), witnesses)
        is_enough = whole.excess > 0.0 and whole.expected - whole.found >= 0.05
        return self._named(stays, witnesses, 1.0) if is_enough else None

    def _named(self, block: Sequence[str], witnesses: Sequence[Collection[str]], least: float) -> Group | None:
        """If it is so many standard deviations from chance."""
        pairs = list(combinations(block, 2))
        common = sum(self.heard.both(*pair).common for pair in pairs) / len(pairs)
        if common < 25:
            return None
        whole = mean_of(self.heard, pairs, witnesses)
        by_chance = max(whole.found * (1.0 - whole.found), 1.0 / common) / (common * (len(block) - 1))
        spread = by_parts(self.heard.votes, lambda some: mean_of(some, pairs, witnesses).excess)
        if whole.excess < least * math.sqrt(by_chance + spread):
            return None
        return Group(tuple(block), 1.0 - 2.0 * whole.found, 1.0 - 2.0 * whole.expected, round(common))

    def _witnesses(self, block: Sequence[str]) -> list[tuple[str, ...]]:
        """Those outside; who agree with each other by three quarters of what members do are one."""
        levels = [agreement(self.heard.both(*pair)) for pair in combinations(block, 2)]
        level, found = 0.75 * math.fsum(levels) / len(levels), list[tuple[str, ...]]()
        free = set(self.experts) - set(block)
        for branch in sorted(self.tree, key=lambda b: -len(b.members)):
            if branch.level >= level and free.issuperset(branch.members):
                found.append(branch.members)
                free -= set(branch.members)
        return [*found, *((e,) for e in free)]

    def _of_witnesses(self, witnesses: Sequence[Collection[str]]) -> float:
        """Their mean covariance."""
        found = [self.heard.units(one, other) for one, other in combinations(witnesses, 2)]
        known = [covariance for n, covariance in found if n >= WITNESSED]
        return math.fsum(known) / max(len(known), 1)


# --- followers: by forecasts ---


@dataclass
class Asked:
    """A question by its latest round.

    ``said_before``: mixed forecasts of the round before it. ``first``: of experts who came after something was
    published what they said first, and the figures of the three rounds before that.
    """

    p: Mapping[str, float]
    votes: Mapping[str, int]
    answer: Mapping[str, int]
    said_before: Sequence[float]
    first: Mapping[str, tuple[float, Sequence[float]]]


def without(asked: Sequence[Asked], experts: Collection[str]) -> Votes:
    return [{e: v for e, v in one.votes.items() if e not in experts} for one in asked]


def upper_median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


class Crowd:
    """Who follows it, of those who are present: the excluded are not."""

    def __init__(self, asked: Sequence[Asked], excluded: Collection[str]) -> None:
        self.asked = asked
        self.present = [[e for e in one.p if e not in excluded] for one in asked]
        self.experts = sorted({e for some in self.present for e in some})

    def _apart(self, one: Asked, e: str) -> float:
        """From the mean of the others; of a crowd, which are four."""
        others = [p for other, p in one.p.items() if other != e]
        return one.p[e] - math.fsum(others) / len(others) if len(one.p) >= 4 else 0.0

    def _scatter(self, one: Asked) -> float:
        n = len(one.p)
        mean = math.fsum(one.p.values()) / n
        return math.fsum((p - mean) ** 2 for p in one.p.values()) / (n - 1) ** 2 if n >= 4 else 0.0

    def _questions(self, e: str) -> list[Asked]:
        return [one for one, some in zip(self.asked, self.present, strict=True) if e in some]

    def followers(self, before: Collection[str]) -> list[str]:
        """Nearer to the crowd, or to what it said before, than it scatters from question to question."""
        scatter = [self._scatter(one) for one in self.asked]
        crowds = {
            e: sum(s > 0.0 and e in some for s, some in zip(scatter, self.present, strict=True)) for e in self.experts
        }
        usual = [e for e in self.experts if crowds[e] >= 40]
        if not usual:
            return []
        went, varies = {}, {}
        for e in self.experts:
            apart, n = [self._apart(one, e) for one in self._questions(e)], max(crowds[e], 1)
            went[e] = math.fsum(value**2 for value in apart) / n
            varies[e] = max(went[e] - (math.fsum(apart) / n) ** 2, 0.0)
        allowed = []
        for s, some in zip(scatter, self.present, strict=True):
            allowed.append(min(s, math.fsum(varies[e] for e in some) / max(len(some), 1) ** 2))
        found = []
        for e in usual:
            near = 0.0
            for one in self._questions(e):
                if len(one.p) >= 4:
                    near += min([self._apart(one, e) ** 2, *((one.p[e] - said) ** 2 for said in one.said_before)])
            room = math.fsum(a for a, some in zip(allowed, self.present, strict=True) if e in some)
            is_near = went[e] <= 0.25 * upper_median(went[other] for other in usual)
            if is_near and near <= (0.5 if e in before else 0.25) * room:
                found.append(e)
        return found

    def repeaters(self, before: Collection[str]) -> list[str]:
        """Whose first forecasts are what was published of the question before."""
        usual = [e for e in self.experts if len(self._questions(e)) >= 40]
        if not usual:
            return []
        went = []
        for e in usual:
            apart = [self._apart(one, e) ** 2 for one in self._questions(e)]
            went.append(math.fsum(apart) / len(apart))
        median, found = upper_median(went), []
        for e in self.experts:
            came = [min((p - said) ** 2 for said in figures) for p, figures in self._first(e)]
            if median and len(came) >= 40 and math.fsum(came) <= (0.25 if e in before else 0.1) * len(came) * median:
                found.append(e)
        return found

    def _first(self, e: str) -> Iterator[tuple[float, Sequence[float]]]:
        return (one.first[e] for one in self.asked if e in one.first)


# --- a look ---


def look(
    asked: Sequence[Asked],
    known: Sequence[Collection[str]],
    followed: Collection[str],
    teams: Mapping[str, str],
    excluded: Collection[str],
) -> tuple[list[Group], Group | None]:
    """Copies and blocks, and the followers: one group of all who follow, none of whom is in another.

    ``known`` and ``followed``: what the look before has found.
    """
    crowd = Crowd(asked, excluded)
    repeaters = crowd.repeaters(followed)
    votes = without(asked, {*excluded, *repeaters})
    both = [*Blocks(votes, known, teams).found(), *copies(votes, known, teams)]
    groups = []
    for experts in joined(group.experts for group in both):
        largest = max((group for group in both if experts.issuperset(group.experts)), key=lambda one: len(one.experts))
        names = {teams.get(e) for e in experts}
        if None in names or len(names) > 1:
            groups.append(largest._replace(experts=tuple(sorted(experts))))
    elsewhere = {e for group in groups for e in group.experts}
    following = [e for e in sorted({*crowd.followers(followed), *repeaters}) if e not in elsewhere]
    return sorted(groups), _followers(without(asked, excluded), asked, crowd, following) if following else None


def _followers(votes: Votes, asked: Sequence[Asked], crowd: Crowd, following: Sequence[str]) -> Group:
    """Their agreement is that with their own reference answers; expected is that of the median expert."""
    agreed = {}
    for e in crowd.experts:
        said = [row[e] * (2 * one.answer[e] - 1) for row, one in zip(votes, asked, strict=True) if e in row]
        agreed[e] = (len(said), sum(said) / max(len(said), 1))
    usual = [share for n, share in agreed.values() if n >= 40]
    present = sum(e in some for some in crowd.present for e in following)
    mean = math.fsum(agreed[e][1] for e in following) / len(following)
    return Group(tuple(following), mean, upper_median(usual) if usual else 0.0, round(present / len(following)))

"""Feeds of which it is known whom to trust: what the chronicle of the cases tells."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from stream_peer.numerics.arguments import BoolArray
from tests.integration.support.chronicle import CHAPTERS, KILLED_IN, Asked, Chronicle, cut, told
from tests.integration.support.events import Event, at
from tests.integration.support.lives import DAY
from tests.integration.support.worlds import World, named, opinions, split, unanimous, unlucky

EVENLY = 20
"""Questions a chapter, where nothing else is said."""

# --- C16: many accounts, one mind ---

GUARDS: dict[str, dict[str, Any]] = {guard: {"guard": guard} for guard in ("off", "on")}
LIKENESS = {"exact": 0.0, "alike": 0.01}
"""And how often an account says the opposite of the others of its kind."""
INDEPENDENT = [f"e{number}" for number in range(4)]
ACCOUNTS = [f"mind-{number}" for number in range(6)]
ALONE = "c16alone"
ALARM_BY = 200
"""Questions; among them are those in the middle of which the worker is killed."""

TRUTH: BoolArray = np.random.default_rng(16).random(2 * EVENLY * CHAPTERS) < 0.5


def tell_accounts(chronicle: Chronicle) -> None:
    """Four who err at 15 % of the questions, without and with six accounts of one who errs at 35 %."""
    sizes = [2 * EVENLY] * CHAPTERS
    four, mind = opinions(TRUTH, [0.15] * 4, seed=1), opinions(TRUTH, [0.35], seed=2)
    chronicle.add(ALONE, cut(ALONE, [Asked(dict(zip(INDEPENDENT, row, strict=True))) for row in four.tolist()], sizes))
    for (likeness, own), (guard, settings) in product(LIKENESS.items(), GUARDS.items()):
        feed, denies = f"c16{likeness}-{guard}", np.random.default_rng(3).random((len(TRUTH), len(ACCOUNTS))) < own
        rows = np.hstack([four, np.where(denies, 1 - mind, mind)]).tolist()
        asked = [Asked(dict(zip([*INDEPENDENT, *ACCOUNTS], row, strict=True))) for row in rows]
        chronicle.add(feed, cut(feed, asked, sizes), **settings)


# --- C17: unanimous vote, opposite answer ---

METHODS: dict[str, dict[str, Any]] = {
    "half": {"vote_rule": "half"},
    "medians": {"vote_rule": "own-median"},
    "auto": {"vote_rule": "auto", "loss": "log"},
    "guarded": {"vote_rule": "half", "guard": "on"},
    "paper": {"vote_rule": "half", "preset": "paper"},
}


def copied(asked: list[Asked]) -> list[Asked]:
    """The fifth and the sixth say what the fourth says."""
    return [Asked({**said, "e4": said["e3"], "e5": said["e3"]}, outcome) for said, outcome in asked]


PASTS: dict[str, list[Asked]] = {
    "new": [],
    "trusted": World(17, [0.8] * 6, 12 * EVENLY).asked(),
    "skewed": World(18, [0.8] * 6, 6 * EVENLY, share_of_ones=0.1).asked(),
    "split": split(3 * EVENLY),
    "unlucky": unlucky(3 * EVENLY),
    "misled": World(19, [1.2] * 6, 12 * EVENLY, misled=0.25).asked(resolved=True),
    "copied": copied(World(20, [0.8] * 9, 12 * EVENLY).asked()),
    "lone": [Asked({"e0": 0.2})] * EVENLY,
}
"""What a feed knows before all agree. Half of six against the others, outcomes that deny all, errors that all share."""

UNANIMOUS_IN = (3, 11)
"""Chapters at the ends of which all agree: before the worker is killed, and after."""


def tell_opinions(chronicle: Chronicle) -> None:
    """Feeds of every past under every method, each asked what all agree on."""
    for (past, asked), (method, settings) in product(PASTS.items(), METHODS.items()):
        feed = f"c17{past}-{method}"
        chapters = cut(feed, asked, [min(EVENLY, len(asked) - first) for first in range(0, len(asked), EVENLY)])
        for number, chapter in enumerate(UNANIMOUS_IN):
            first = len(asked) + number * len(unanimous())
            chapters[chapter] += told(feed, chapter * DAY + DAY / 2, first, unanimous())
        chronicle.add(feed, chapters, **settings)


# --- C18: error rates that cannot be told ---

SHARES = (0.5, 0.03, 0.97)
CROWDS = ("apart", "alike")
PRESETS: dict[str, dict[str, Any]] = {"robust": {"vote_rule": "auto"}, "paper": {"preset": "paper"}}
ONE_BY_ONE = range(47, 55)
"""Questions that are chapters of their own: the fiftieth is the first after the kill."""


def tell_rates(chronicle: Chronicle) -> None:
    """A hundred questions of ten experts, or of copies of two."""
    sizes = [ONE_BY_ONE[0] - 1, *[1] * len(ONE_BY_ONE), 46]
    skills = np.random.default_rng(18).uniform(0.3, 1.2, 10).tolist()
    for share, crowd, preset in product(SHARES, CROWDS, PRESETS):
        feed, world = f"c18-{share:g}-{crowd}-{preset}", World(1, skills, 100, share)
        if crowd == "alike":
            world.forecasts = world.forecasts[:, np.arange(10) % 2]
        chronicle.add(feed, cut(feed, world.asked(), sizes), **PRESETS[preset])


# --- C19: experts answer different subsets ---

TWIN, FOLLOWED = "c19twin", "c19followed"
PICKY = [f"c19picky{seed}" for seed in range(4)]


def tell_subsets(chronicle: Chronicle) -> None:
    """Every second question is not answered by one of two experts who know the same."""
    sizes = [EVENLY] * CHAPTERS
    chronicle.add(TWIN, cut(TWIN, [with_a_twin(asked, number, {}) for number, asked in enumerate(twins(19))], sizes))
    nearly_agreed = twins(20, daring=0.15)
    chronicle.followers[FOLLOWED] = lambda chapter, select: told(
        FOLLOWED,
        chapter * DAY,
        chapter * EVENLY,
        [with_a_twin(nearly_agreed[n], n, select) for n in range(chapter * EVENLY, (chapter + 1) * EVENLY)],
    )
    for seed, feed in enumerate(PICKY):
        chronicle.add(feed, cut(feed, with_a_picky_one(seed), sizes))


def twins(seed: int, daring: float = 1.0) -> list[Asked]:
    """The last two of six know the same. On every second question all are so far from their mean as if less daring."""
    world = World(seed, [0.3, 0.9, 0.5, 0.7, 0.6, 0.6], CHAPTERS * EVENLY)
    world.forecasts[:, 5] = world.forecasts[:, 4]
    mean = world.forecasts[1::2, :4].mean(axis=1, keepdims=True)
    world.forecasts[1::2] = mean + daring * (world.forecasts[1::2] - mean)
    return world.asked()


def with_a_twin(asked: Asked, number: int, select: Mapping[str, float]) -> Asked:
    """What e5 skips, its twin e4 answers as the others together, weighted by ``select`` or alike."""
    if number % 2 == 0:
        return asked
    others = {expert: said for expert, said in asked.forecasts.items() if expert not in ("e4", "e5")}
    weights = [select.get(expert, 0.0) for expert in others]
    weights = weights if sum(weights) else [1.0] * len(others)
    return Asked({**others, "e4": float(np.average([*others.values()], weights=weights))})


def with_a_picky_one(seed: int) -> list[Asked]:
    """Experts 0 and 1 say the same; 1 stays away from every second question, on which all dare less."""
    world = World(seed, [1.2, 1.2, 0.7, 0.8, 0.9, 0.7, 0.8], CHAPTERS * EVENLY)
    world.forecasts[1::2] = 0.5 + 0.3 * (world.forecasts[1::2] - 0.5)
    world.forecasts[:, 1] = world.forecasts[:, 0]
    return [
        Asked({expert: said for expert, said in asked.forecasts.items() if not (number % 2 and expert == "e1")})
        for number, asked in enumerate(world.asked())
    ]


# --- C20: cold start and temporary absence ---

AGED, AGED_WITHOUT = "c20aged", "c20without"
ROUNDS = 10_000
AWAY, STAYED = "c20away", "c20stayed"
ONCE, TWICE = "c20once", "c20twice"
JOINS_IN = KILLED_IN - 1
_SHORT_LEDGER = {"ledger_for": "2d", "retract_for": "2d"}


def aged() -> Iterator[Event]:
    """The past of a feed: ten thousand questions of six who are equally good; the first has one expert more."""
    world = World(20, [0.6] * 6, ROUNDS)
    yield from told(AGED, -120 * DAY, 0, [all_agree("neutral"), *world.asked()])


def all_agree(*others: str) -> Asked:
    """A question on which all are of one opinion, so that nobody is better than anybody."""
    return Asked({**named([0.7] * 6), **dict.fromkeys(others, 0.7)})


def tell_late_ones(chronicle: Chronicle) -> None:
    """Experts who join late, go and return, or come twice at once."""
    for feed, newcomers in ((AGED, ["late"]), (AGED_WITHOUT, [])):
        chapters = cut(feed, [], [])
        chapters[KILLED_IN] = [*told(feed, KILLED_IN * DAY, ROUNDS + 1, [all_agree(*newcomers)])]
        chronicle.add(feed, chapters, **_SHORT_LEDGER)
    for feed, order in ((AWAY, range(8)), (STAYED, (0, 1, 2, 6, 7, 3, 4, 5))):
        away = range(3, 6)
        asked = [without("e5", part) if number in away else part for number, part in enumerate(parts(21))]
        chronicle.add(feed, reordered(feed, asked, order))
    for feed in (ONCE, TWICE):
        asked = [part if number >= JOINS_IN else without("e5", part) for number, part in enumerate(parts(22))]
        chronicle.add(feed, reordered(feed, asked, range(8)))
    repeated = chronicle.chapters[TWICE]
    repeated[JOINS_IN] = [event for event in repeated[JOINS_IN] for _ in range(2)]
    repeated[KILLED_IN + 1] = [*repeated[JOINS_IN], *repeated[KILLED_IN + 1]]
    for chapter in (JOINS_IN, KILLED_IN):
        included = {"type": "expert", "feed": TWICE, "expert_id": "e5", "excluded": False, "at": at(chapter * DAY)}
        chronicle.controls[chapter] = [included, included]


def parts(seed: int) -> list[list[Asked]]:
    """Questions of eight chapters."""
    asked = World(seed, [0.4, 0.9, 0.5, 0.7, 0.6, 0.8], 8 * EVENLY).asked()
    return [asked[first : first + EVENLY] for first in range(0, len(asked), EVENLY)]


def without(expert: str, asked: Iterable[Asked]) -> list[Asked]:
    """Questions as they were if one expert had been away."""
    return [Asked({name: said for name, said in one.forecasts.items() if name != expert}) for one in asked]


def reordered(feed: str, asked: list[list[Asked]], order: Iterable[int]) -> list[list[Event]]:
    """Chapters in another order; a question keeps its number."""
    chapters = cut(feed, [], [])
    for chapter, number in enumerate(order):
        chapters[chapter] = [*told(feed, chapter * DAY, number * EVENLY, asked[number])]
    return chapters

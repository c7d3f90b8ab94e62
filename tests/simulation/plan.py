"""What a seed means: a deployment, what is written to it and when, and what breaks; drawn before anything runs.

So a seed that fails can be made smaller: without some of its events and faults, the rest is as it was.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stream_peer.events import topics
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.process import SnapshotEvery
from tests.simulation.broker import Rates

START = 1_772_366_400_000
"""The time of day at which every simulation begins, in milliseconds."""

FEEDS = ("red", "green")
EXPERTS = ("ann", "bob", "cyd", "dan", "eve", "fay")

CHANGELOGS = {topics.FORECAST_EVENTS: "question-changelog", topics.FEED_LOG: "feed-changelog"}

SETTINGS: Mapping[str, Any] = {
    "round_every": "10s", "grace": "1s", "min_experts": 3, "trust": {"warm_up_questions": 5}
}  # fmt: skip
SMALL = 4
"""Questions in a ledger that is small enough to overflow."""
LATER: Sequence[Mapping[str, Any]] = ({"loss": "log"}, {"vote_rule": "half"}, {"min_experts": 2}, {"guard": "on"})
CONTROLS: Sequence[Mapping[str, Any]] = ({"forget": True}, {"excluded": True}, {"excluded": False}, {"team": "desk"})

FAULTS = (
    "kill", "kill", "freeze", "freeze", "cut off", "leader", "leader", "compact", "rebalance", "clock", "transaction",
    "retention", "all at once", "upgrade", "rolled back",
    "retention ahead",
)  # fmt: skip
"""Kinds of faults, the usual ones more than once."""

REFUSED: Sequence[Mapping[str, Any]] = (
    {"type": "forecast", "question_id": "q0", "expert_id": "ann", "probability": 7},
    {"type": "unheard-of"},
    {"type": "resolution", "question_id": "q1", "outcome": "perhaps"},
    {"type": "question", "question_id": "q2", "closes_at": "2999-01-01T00:00:00Z"},
)
"""Events that cannot be used."""

_SECONDS: Mapping[str, Sequence[float]] = {
    "freeze": (0.5, 3.0, 9.0, 15.0),
    "cut off": (2.0, 5.0, 9.0, 15.0),
    "clock": (-86_400.0, -60.0, -1.0, 1.0, 60.0, 290.0, 600.0, 86_400.0),
    "transaction": (0.1, 2.0, 8.0),
}


class Sent(NamedTuple):
    """A record of the input: when it is written, and what."""

    at: float
    topic: str
    key: str
    event: Mapping[str, Any]


class Fault(NamedTuple):
    """What breaks, and when.

    Attributes
    ----------
    who : float
        Below 1: which of the workers that live then, or of the partitions.
    steps : int
        A worker meets it after so many of its steps: between any two of its awaits. How it freezes, see ``FREEZES``.
    seconds : float
        How long it lasts; of a clock, by how much it is wrong from then on.
    """

    at: float
    kind: str
    who: float
    steps: int
    seconds: float


FREEZES = ("between awaits", "a producer sends", "fencing tokens are written", "a heartbeat is under way")
"""Of a worker that freezes: at which moment; by its steps."""


class Plan(NamedTuple):
    """A deployment, its input, and its faults."""

    seed: int
    seconds: float
    partitions: int
    feed_log_partitions: int
    workers: int
    every: SnapshotEvery
    rates: Rates
    inputs: Sequence[Sent]
    faults: Sequence[Fault]


def plan_of(seed: int) -> Plan:
    """Draw a deployment; every other seed is a small one."""
    dice = random.Random(seed)
    is_small = seed % 2 == 0
    rate = dice.choice((0.0, 0.01, 0.05))
    seconds = dice.uniform(40, 60) if is_small else dice.uniform(60, 100)
    questions = dice.randint(3, 6) if is_small else dice.randint(25, 38)
    plan = Plan(
        seed=seed,
        seconds=seconds,
        partitions=dice.randint(1, 4),
        feed_log_partitions=dice.randint(1, 2),
        workers=dice.randint(1, 5),
        every=SnapshotEvery(seconds=dice.choice((1.0, 3.0)), records=dice.choice((3, 20, 1000))),
        rates=Rates(rate, rate, dice.choice((0.0, 0.02)), dice.choice((0.0, 0.01))),
        inputs=(),
        faults=[_fault(seconds, dice) for _ in range(dice.randint(0, 6) if is_small else dice.randint(2, 12))],
    )
    if _is_late(seed):
        plan = plan._replace(faults=[_early_freeze(seed), *plan.faults])
    if seed % 3 < 2 and plan.feed_log_partitions == 1:
        plan = plan._replace(rates=plan.rates._replace(rebuild_seconds=0.5))
    return plan._replace(inputs=sorted(_inputs(plan, questions, dice), key=lambda sent: sent.at))


def raises_schema(fault: Fault) -> bool:
    """Whether an upgrade is to a release with another state of feeds."""
    return fault.kind == "upgrade" and fault.who < 0.5


def moment_of(freeze: Fault) -> str:
    """At which moment a worker freezes."""
    return FREEZES[freeze.steps % len(FREEZES)]


def _fault(seconds: float, dice: random.Random) -> Fault:
    """Some come late: what a frozen worker then writes stays the last record of its key."""
    kind = dice.choice(FAULTS)
    lasts = dice.choice(_SECONDS[kind]) if kind in _SECONDS else dice.uniform(0.2, 8)
    first = 3.0 if dice.random() < 0.7 else seconds - 15.0
    return Fault(dice.uniform(first, seconds), kind, dice.random(), dice.randint(1, 200), lasts)


def _is_late(seed: int) -> bool:
    """Whether settings come late: before, a worker freezes in a first recovery, and meanwhile others write state."""
    return seed % 10 == 4


def _early_freeze(seed: int) -> Fault:
    dice = random.Random(f"early freeze of {seed}")
    steps = FREEZES.index("fencing tokens are written") + len(FREEZES) * dice.randrange(2)
    return Fault(dice.uniform(2, 8), "freeze", dice.random(), steps, 15.0)


def _inputs(plan: Plan, questions: int, dice: random.Random) -> Iterator[Sent]:
    """Questions, forecasts, outcomes, corrections, moves and controls, in no order."""
    for number in range(questions):
        opens = dice.uniform(1, plan.seconds * 0.6)
        yield from _of_question(f"q{number}", dice.choice(FEEDS), opens, dice)
    yield from _of_groups(plan)
    is_late = _is_late(plan.seed)  # then a small ledger would already be too large
    defaults = {**SETTINGS, "ledger_max": SMALL} if dice.random() < 0.1 and not is_late else SETTINGS
    yield _settings(12.0 if is_late else 0.5, {"defaults": defaults})
    yield from _of_one_feed(plan, defaults)
    for _ in range(dice.randint(0, 3)):
        yield _settings(dice.uniform(5, plan.seconds), {"defaults": {**defaults, **dice.choice(LATER)}})
    for _ in range(dice.randint(0, 4)):
        feed, expert = dice.choice(FEEDS), dice.choice(EXPERTS)
        yield _control(dice.uniform(5, plan.seconds), "expert", feed=feed, expert_id=expert, **dice.choice(CONTROLS))
    for change in ("reset", "delete"):
        if dice.random() < 0.2:
            yield _control(dice.uniform(10, plan.seconds), "feed", feed=dice.choice(FEEDS), **{change: True})
    for _ in range(dice.randint(0, 3)):
        key = f"q{dice.randint(0, 9)}"
        yield Sent(dice.uniform(5, plan.seconds), topics.FORECAST_EVENTS, key, dice.choice(REFUSED))


def _of_question(question: str, feed: str, opens: float, dice: random.Random) -> Iterator[Sent]:
    closes = opens + dice.uniform(5, 30)

    def sent(moment: float, kind: str, /, **fields: Any) -> Sent:
        return Sent(moment, topics.FORECAST_EVENTS, question, {"type": kind, "question_id": question, **fields})

    said = sent(opens, "question", feed=feed, opens_at=iso(opens), closes_at=iso(closes), at=iso(opens))
    if dice.random() < 0.1:  # it comes late, and perhaps in the partition of another question
        said = said._replace(at=dice.uniform(opens, closes + 5), key=dice.choice((question, "elsewhere")))
    yield said
    for expert in EXPERTS:
        for _ in range(dice.randint(0, 2)):
            at = dice.uniform(opens, closes)
            yield sent(at, "forecast", expert_id=expert, probability=round(dice.random(), 2), at=iso(at))
    for _ in range(dice.randint(1, 3) if dice.random() < 0.15 else 0):
        at = dice.uniform(opens, closes + 20)
        yield sent(at, "question", feed=dice.choice(FEEDS), at=iso(at))
    if dice.random() < 0.8:
        at = closes + dice.uniform(0.5, 20)
        yield sent(at, "resolution", outcome=dice.choice(("yes", "no")), at=iso(at))
        if dice.random() < 0.2:
            outcome = dice.choice(("yes", "no", None, "open"))
            yield sent(at + dice.uniform(1, 10), "resolution", outcome=outcome, at=iso(at))


def _of_groups(plan: Plan) -> Iterator[Sent]:
    """Groups of every seventh seed, by dice of their own: all else is as it would be without them."""
    dice = random.Random(f"groups of {plan.seed}")
    for number in range(dice.randint(1, 4) if plan.seed % 7 == 6 else 0):
        yield from _of_group(f"g{number}", dice.uniform(1, plan.seconds * 0.6), dice)


def _of_one_feed(plan: Plan, defaults: Mapping[str, Any]) -> Iterator[Sent]:
    """Where a rebuild lasts: settings of one feed, so that the other one goes on meanwhile; by dice of their own."""
    dice = random.Random(f"one feed of {plan.seed}")
    for _ in range(dice.randint(2, 4) if plan.rates.rebuild_seconds else 0):
        feeds = {dice.choice(FEEDS): dice.choice(LATER[:3])}
        yield _settings(dice.uniform(0.4, 0.9) * plan.seconds, {"defaults": defaults, "feeds": feeds})


def _of_group(group: str, opens: float, dice: random.Random) -> Iterator[Sent]:
    """A question with options or thresholds, some of which come late; it moves, and its outcome may be another one."""
    closes, names = opens + dice.uniform(5, 30), ("1", "2", "3", "4")
    kind, asked = dice.choice((("options", "options"), ("cdf", "thresholds")))

    def sent(moment: float, what: str, /, **fields: Any) -> Sent:
        key = dice.choice((group, group, "elsewhere"))
        return Sent(
            moment, topics.FORECAST_EVENTS, key, {"type": what, "question_id": group, "at": iso(moment), **fields}
        )

    times = {"opens_at": iso(opens), "closes_at": iso(closes)}
    yield sent(opens, "question", feed=dice.choice(FEEDS), **times, **{asked: names[:3]})
    for expert in EXPERTS:
        for _ in range(dice.randint(0, 3)):
            said = sorted(round(dice.random(), 2) for _ in range(dice.randint(1, 4)))
            at = dice.uniform(opens, closes)
            yield sent(at, "forecast", expert_id=expert, **{kind: dict(zip(names, said, strict=False))})
    for _ in range(dice.randint(0, 2)):
        yield sent(dice.uniform(opens, closes + 20), "question", feed=dice.choice(FEEDS))
    for at in (closes + dice.uniform(0.5, 20) for _ in range(dice.randint(0, 2))):
        outcome = {"option": dice.choice(names[:3])} if kind == "options" else {"value": dice.randint(0, 5)}
        yield sent(at, "resolution", **outcome)


def _control(at: float, kind: str, /, **fields: Any) -> Sent:
    return Sent(at, topics.CONTROL_EVENTS, str(fields.get("feed", "settings")), {"type": kind, "at": iso(at), **fields})


def _settings(at: float, document: Mapping[str, Any]) -> Sent:
    return _control(at, "settings", document=document, hash=document_hash(document))


def iso(at: float) -> str:
    """A moment of the simulation, as events state it."""
    moment = datetime.fromtimestamp((START + int(at * 1000)) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

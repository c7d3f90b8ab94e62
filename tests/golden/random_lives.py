"""Random lives, which cover what no file has.

They are drawn with ``random.Random.random`` alone, which gives the same numbers on every Python. Nothing here knows the
product: the same life can be folded by any of its versions.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from tests.golden.records import Life, Sent

START = 1_772_366_400_000  # 2026-03-01T12:00Z
HOUR = 3_600_000
DAY = 24 * HOUR
T = TypeVar("T")
Document = Mapping[str, Any]

SETTINGS: dict[str, Any] = {
    "defaults": {
        "round_every": "1d",
        "grace": "60s",
        "min_experts": 3,
        "history_for": "12d",
        "ledger_for": "60d",
        "retract_for": "20d",
        "max_open": "30d",
        "trust": {"warm_up_questions": 25},
    },
    "feeds": {
        "half": {"vote_rule": "half", "guard": "on"},
        "own": {"vote_rule": "own-median", "loss": "log", "memory": 40},
        "auto": {"shadows": [{"name": "eager", "mixer": {"peer_rate": 48}}, {"name": "plain", "stretch": False}]},
        "paper": {"preset": "paper", "quorum": 4, "late_forecasts": "refuse", "forecast_for": "3d"},
        "past": {"history": True, "round_every": "3d"},
    },
}
FEEDS = tuple(SETTINGS["feeds"])

SETTINGS_LATER: Sequence[Document] = (
    {"half": {"loss": "log"}, "auto": {"mixer": {"uniform_share": 0.1}, "stretch": False}},
    {"own": {"vote_rule": "auto", "memory": None}, "half": {"min_experts": 2, "guard": "off", "confidence": 0.9}},
    {"auto": {"vote_rule": "own-median", "guard": "on", "shadows": [{"name": "late", "mixer": {"truth_rate": 6}}]}},
    {"paper": {"preset": "robust"}, "half": {"trust": {"acknowledged": "dependent"}}, "own": {"seed": "other"}},
    {"half": {"memory": 30, "loss": "log"}, "past": {"vote_rule": "half", "round_every": "1d"}},
    {},
)
"""Over ``SETTINGS``, one after the other; most have a feed rebuilt."""


class Expert(NamedTuple):
    """A synthetic expert: how often it is right, how sure it is, and whose forecasts it repeats."""

    id: str
    skill: float
    sureness: float
    copies: str | None = None


_EXPERTS = [
    *(Expert(f"e{n}", 0.55 + 0.03 * n, 0.1 + 0.03 * n) for n in range(10)),
    Expert("zoë", 0.8, 0.4),
    Expert("E3", 0.5, 0.2),
    Expert("copy-a", 0.0, 0.0, "e8"),
    Expert("copy-b", 0.0, 0.0, "e8"),
]


class Dice:
    """Chance, by one function of ``random`` only."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random

    def hits(self, share: float) -> bool:
        return self._next() < share

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._next()

    def whole(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""
        return low + int(self._next() * (high - low + 1))

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self._next() * len(choices))]


def random_life(name: str, *, seed: int, questions: int, changes: bool = True) -> Life:
    """Questions of five feeds, one after the other, with all that can happen to them; controls; records without use.

    ``changes``: whether settings change.
    """
    dice = Dice(seed)
    sent = [record for number in range(questions) for record in _question(dice, number, seed)]
    end = max(record.at for record in sent) + 2 * DAY
    sent += _ticks(dice, end)
    sent += [*_controls(dice, end, max(20, questions // 6)), *_unusable(dice, end, questions // 4)]
    sent += _changes(end) if changes else ()
    sent.sort(key=lambda record: record.at)  # a stable sort: the same moment keeps the order of above
    return Life(name, "worker", {}, [settings_event(START, SETTINGS, "first"), *sent], 3, 2)


def _question(dice: Dice, number: int, seed: int) -> Iterator[Sent]:
    feed = FEEDS[number % len(FEEDS)]
    name = f"{feed}-{seed}-{number}"
    opens = START + number * 8 * HOUR + dice.whole(0, 3 * HOUR)
    closes = opens + dice.whole(12, 100) * HOUR
    answer = int(dice.hits(0.35))
    plain = {"question_id": name, "feed": feed}
    if dice.hits(0.93):  # else it is known by its forecasts alone
        weight = {"weight": dice.one_of((0.5, 0.25, 2.0))} if dice.hits(0.1) else {}
        yield event(opens, name, "question", **plain, opens_at=iso(opens), closes_at=iso(closes), **weight)
    yield from _forecasts(dice, plain, (opens, closes), answer)
    yield from _news(dice, plain, opens, closes)
    yield from _outcomes(dice, plain, closes, answer)


def _forecasts(dice: Dice, plain: Document, span: tuple[int, int], answer: int) -> Iterator[Sent]:
    name = plain["question_id"]
    opens, closes = span
    said: dict[str, float] = {}
    for moment in sorted(dice.whole(opens, closes + 2 * HOUR) for _ in range(dice.whole(1, 3))):
        _think(dice, said, answer)
        if dice.hits(0.6):
            yield event(moment + 5, name, "forecasts", **plain, at=iso(moment), forecasts=dict(said))
        else:
            yield from _one_by_one(dice, plain, said, moment)
    yield from _late(dice, plain, said, opens, closes)


def _think(dice: Dice, said: dict[str, float], answer: int) -> None:
    """Most experts change what they say."""
    for expert in _EXPERTS:
        if expert.copies in said:
            said[expert.id] = said[expert.copies]
        elif dice.hits(0.7):
            right = answer if dice.hits(expert.skill) else 1 - answer
            lean = dice.between(0.0, expert.sureness)
            said[expert.id] = round(0.5 + (lean if right else -lean), 3 if dice.hits(0.8) else 0)


def _one_by_one(dice: Dice, plain: Document, said: Mapping[str, float], moment: int) -> Iterator[Sent]:
    for number, (expert_id, probability) in enumerate(said.items()):
        if dice.hits(0.5):
            at = moment + number * 60_000
            fields = {**plain, "expert_id": expert_id, "probability": probability, "at": iso(at)}
            record = event(at + 5, plain["question_id"], "forecast", **fields)
            yield record
            if dice.hits(0.05):
                yield record  # sent twice


def _late(dice: Dice, plain: Document, said: Document, opens: int, closes: int) -> Iterator[Sent]:
    """Corrections, withdrawals, and forecasts that come after the close, or state a time long ago."""
    name = plain["question_id"]
    for expert_id in said:
        if dice.hits(0.06):
            at, delay = dice.whole(opens, closes), dice.one_of((0, 2 * HOUR, 30 * HOUR, 6 * DAY))
            probability = None if dice.hits(0.3) else round(dice.between(0.0, 1.0), 2)
            fields = {**plain, "expert_id": expert_id, "probability": probability, "at": iso(at)}
            yield event(at + delay, name, "forecast", **fields)


def _news(dice: Dice, plain: Document, opens: int, closes: int) -> Iterator[Sent]:
    """A close that moves, an opening that moves, another feed, another weight."""
    name = plain["question_id"]
    if dice.hits(0.15):
        moved = closes + dice.one_of((-10, -3, 20, 60)) * HOUR
        when = min(closes, moved) - dice.one_of((-2, 5)) * HOUR
        yield event(max(when, opens + 1), name, "question", **plain, closes_at=iso(moved), at=iso(when))
    if dice.hits(0.05):
        yield event(closes - HOUR, name, "question", **plain, opens_at=iso(opens + 5 * HOUR))
    if dice.hits(0.06):
        other = {**plain, "feed": dice.one_of(FEEDS)}
        when = dice.whole(opens, closes + DAY)
        yield event(when, name, "question", **other, at=iso(when))
    if dice.hits(0.04):
        yield event(closes - 2 * HOUR, name, "question", **plain, weight=0.75)


def _outcomes(dice: Dice, plain: Document, closes: int, answer: int) -> Iterator[Sent]:
    """Outcomes, some of them provisional first, revised, retracted, annulled, or with a close in the past."""
    name, at = plain["question_id"], closes + dice.whole(-4, 40) * HOUR
    if dice.hits(0.2):
        yield event(at, name, "resolution", **plain, outcome=answer, at=iso(at), provisional=True)
    if not dice.hits(0.75):
        return
    told = dice.one_of((answer, bool(answer), "yes" if answer else "no")) if dice.hits(0.9) else 1 - answer
    cut = {"closed_at": iso(closes - 6 * HOUR)} if dice.hits(0.12) else {}
    at += HOUR
    yield event(at, name, "resolution", **plain, outcome=told, at=iso(at), **cut)
    for _ in range(dice.whole(0, 2) if dice.hits(0.2) else 0):
        at += dice.one_of((3 * HOUR, 4 * DAY, 15 * DAY, 25 * DAY))
        verdict = dice.one_of((None, "open", answer, 1 - answer))
        yield event(at, name, "resolution", **plain, outcome=verdict, at=iso(at))


def _ticks(dice: Dice, end: int) -> list[Sent]:
    """Time passes, also when nothing is sent."""
    return [Sent("tick", at + dice.whole(0, HOUR), None, None) for at in range(START + HOUR, end + DAY, 9 * HOUR)]


def _controls(dice: Dice, end: int, number: int) -> Iterator[Sent]:
    """Teams, exclusions, renames and erasures of experts; feeds that begin anew, are deleted, and come again."""
    changes: list[dict[str, Any]] = [
        {"team": "red"},
        {"team": None},
        {"excluded": True},
        {"excluded": False},
        {"team": "blue", "excluded": True},
        {"rename": "e-new"},
        {"forget": True, "team": "red"},
        {"rename": "e1"},
        {},
    ]
    for place in range(number):
        at = START + DAY + (end - START - DAY) * place // number
        expert, feed = dice.one_of(_EXPERTS).id, dice.one_of(FEEDS)
        change = dice.one_of(changes) if place % 9 != 8 else {"forget": True}
        if "rename" in change and dice.hits(0.8):
            change = {"rename": f"{expert}-{place}"}
        yield control(at, feed, "expert", expert_id=expert, at=iso(at), **change)
    for place, (feed, change) in enumerate(
        [("paper", {"reset": True}), ("past", {"delete": True}), ("auto", {"reset": True}), ("own", {}), ("no", {})], 1
    ):
        at = START + (end - START) * place // 6 + 77
        yield control(at, feed, "feed", **change)
    yield control(START + 5 * DAY, "paper", "feed", delete=True, reset=True)
    yield control(end - 4 * DAY, "paper", "feed", delete=True)


def _changes(end: int) -> Iterator[Sent]:
    for place, later in enumerate(SETTINGS_LATER, 1):
        feeds = {name: {**own, **later.get(name, {})} for name, own in SETTINGS["feeds"].items()}
        at = START + (end - START) * place // (len(SETTINGS_LATER) + 1)
        yield settings_event(at, {**SETTINGS, "feeds": feeds}, f"change-{place}")
    yield settings_event(START + 3 * DAY, {"defaults": {"loss": "cubed"}}, "misspelt")
    yield settings_event(START + 4 * DAY, SETTINGS, "other-hash")._replace(
        value=json.dumps({"type": "settings", "document": {"defaults": {"loss": "log"}}, "hash": "00000000"})
    )


_NOT_USABLE: Sequence[str | None] = (
    None,
    "",
    "{",
    "\udcff\udcfe",
    "[1, 2]",
    '{"type": "guess", "question_id": "half-x"}',
    '{"type": "forecast", "question_id": "half-x", "expert_id": "e1", "probability": 1.5, "at": "AT"}',
    '{"type": "forecast", "question_id": "half-x", "expert_id": "e1", "probability": "often", "at": "AT"}',
    '{"type": "forecast", "question_id": "half-x", "expert_id": "e1", "probability": 0.5, "at": "yesterday"}',
    '{"type": "forecast", "question_id": "half-x", "expert_id": "", "probability": 0.5, "at": "AT"}',
    '{"type": "forecast", "question_id": "half-x", "expert_id": "e1", "probability": 0.5, "at": "1970-01-21T00:00Z"}',
    '{"type": "forecast", "question_id": "half-x", "expert_id": "e1", "probability": 0.5, "at": "2099-01-01T00:00Z"}',
    '{"type": "forecast", "question_id": "half-x", "expert_id": "e1", "probability": 0.5, "at": "AT", "feed": "a b"}',
    '{"type": "forecasts", "question_id": "half-x", "at": "AT", "forecasts": {"e1": 0.4, "e2": 2, "e\\u0000": 0.5}}',
    '{"type": "resolution", "question_id": "half-x", "outcome": 0.7, "at": "AT"}',
    '{"type": "question", "question_id": "half-x", "closes_at": "2026-02-30T00:00:00Z"}',
    '{"type": "tick", "now": "AT"}',
    '{"type": "feed", "feed": "half", "delete": true}',
    '{"type": "forecast", "question_id": "half-y", "expert_id": "e1", "probability": 0.5, "at": "AT", "confidence": 1}',
    '{"type": "question", "question_id": "half-y", "feed": "half", "closes_at": "AT", "opens_at": "2026-09-01"}',
)


def _unusable(dice: Dice, end: int, number: int) -> Iterator[Sent]:
    """Records that are refused, or of which only a part is used; some bear headers that only the service writes."""
    for place in range(number):
        at = START + (end - START) * place // number + 13
        value = _NOT_USABLE[place % len(_NOT_USABLE)]
        headers = [("stream-peer-src", "forged"), ("trace", "7")] if dice.hits(0.3) else []
        key = dice.one_of(("half-x", None, "\udcff"))
        topic = "control-events" if dice.hits(0.15) else "forecast-events"
        yield Sent(topic, at, key, value and value.replace("AT", iso(at)), headers)


def event(at: int, key: str, kind: str, /, **fields: Any) -> Sent:
    return Sent("forecast-events", at, key, json.dumps({"type": kind, **fields}, ensure_ascii=False))


def control(at: int, feed: str, kind: str, /, **fields: Any) -> Sent:
    return Sent("control-events", at, feed, json.dumps({"type": kind, "feed": feed, **fields}, ensure_ascii=False))


def settings_event(at: int, document: Document, event_id: str) -> Sent:
    """Settings under their hash, which every release computes so: it is what the event's field promises."""
    canonical = msgspec.json.encode({name: value for name, value in document.items() if value}, order="deterministic")
    named = hashlib.blake2b(canonical, digest_size=4).hexdigest()
    fields = {"type": "settings", "document": document, "hash": named, "event_id": event_id}
    return Sent("control-events", at, "settings", json.dumps(fields))


def iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def longer() -> Life:
    """A random life that is too long for every day."""
    return random_life("longer", seed=4, questions=900)


def short() -> Life:
    """A random life that is short enough for its state to be kept as a file."""
    return random_life("short", seed=2, questions=36)


def moved() -> Life:
    """A feed that moves to another deployment in the middle of its life, on one partition of everything."""
    life = random_life("moved", seed=3, questions=60, changes=False)
    middle = len(life.sent) * 6 // 10
    at = life.sent[middle].at
    before = [sent for sent in life.sent[:middle] if _is_of("half", sent)]
    behind = [sent for sent in life.sent[middle:] if _is_of("half", sent)]
    settings = settings_event(at, {**SETTINGS, "feeds": {"half": SETTINGS["feeds"]["half"]}}, "moved")
    sent = [*before, Sent("move", at, "half", None), settings, *behind]
    return life._replace(sent=sent, ends=True)


def _is_of(feed: str, sent: Sent) -> bool:
    return sent.topic != "forecast-events" or (sent.key or "").startswith(feed)

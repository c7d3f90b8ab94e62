"""Lives of what is rare: a crowd that copies and follows, outputs that are too large for one record, edges of rules."""

import hmac
from collections.abc import Iterator
from typing import Any

from tests.golden.random_lives import DAY, HOUR, START, Dice, Document, control, event, iso, settings_event
from tests.golden.records import Life, Sent

_SETTINGS = {"defaults": {"round_every": None, "trust": {"warm_up_questions": 50}, "ledger_for": "2y"}}


# --- a crowd ---


def crowd() -> Life:
    """Two feeds with many questions: experts who copy and follow, who grow worse, and outcomes that are rarely yes."""
    dice = Dice(5)
    feeds = {"guarded": {"guard": "on", "vote_rule": "half"}, "rare": {"vote_rule": "auto", "guard": "on"}}
    sent = [settings_event(START, {**_SETTINGS, "feeds": feeds}, "first")]
    for number in range(360):
        sent += _of_crowd(dice, number)
    sent.append(control(START + 200 * HOUR, "guarded", "expert", expert_id="e1", at=iso(START), rename="e-one"))
    sent.append(control(START + 500 * HOUR, "rare", "expert", expert_id="e2", at=iso(START), excluded=True))
    sent.append(control(START + 660 * HOUR, "guarded", "expert", expert_id="copy-1", at=iso(START), forget=True))
    less = {"guarded": {**feeds["guarded"], "guard": "off"}, "rare": {**feeds["rare"], "memory": 60}}
    sent.append(settings_event(START + 690 * HOUR, {**_SETTINGS, "feeds": less}, "second"))
    sent.sort(key=lambda record: record.at)
    return Life("crowd", "worker", {}, sent, 2, 1)


def _of_crowd(dice: Dice, number: int) -> Iterator[Sent]:
    feed, at = ("guarded", "rare")[number % 2], START + 2 * number * HOUR
    name = f"{feed}-{number}"
    rare = feed == "rare" and not 200 < number < 300
    answer = int(dice.hits(0.04 if rare else 0.45))
    said: dict[str, float] = {}
    for place in range(9):
        skill = 0.62 + 0.03 * place if place != 8 or number < 180 else 0.3  # the best one grows worse
        side = answer if dice.hits(skill) else 1 - answer
        said[f"e{place}"] = round(0.5 + dice.between(0.05, 0.45) * (1 if side else -1), 3)
        if rare:
            said[f"e{place}"] = round(said[f"e{place}"] * 0.45, 3)
    mean = sum(said.values()) / len(said)
    said |= {f"follower-{place}": round(mean + dice.between(-0.005, 0.005), 3) for place in range(3)}
    said |= {f"copy-{place}": said["e0"] for place in range(1, 4)}
    plain = {"question_id": name, "feed": feed}
    yield event(at, name, "question", **plain, opens_at=iso(at), closes_at=iso(at + HOUR))
    yield event(at + 1, name, "forecasts", **plain, at=iso(at + 1), forecasts=said)
    if dice.hits(0.7):
        yield event(at + 2 * HOUR, name, "resolution", **plain, outcome=answer, at=iso(at + 2 * HOUR))


# --- groups ---


def grouped() -> Life:
    """Options, numbers and dates: some come late, some move; one feed loses an expert, the other one is deleted."""
    dice = Dice(7)
    settings = {"defaults": {"method_version": 2, "round_every": "6h", "min_experts": 2}}
    sent = [settings_event(START, settings, "first")]
    for number in range(24):
        sent += _of_group(dice, number)
    sent.append(control(START + 90 * HOUR, "polls", "expert", expert_id="e1", at=iso(START), forget=True))
    sent.append(control(START + 100 * HOUR, "rates", "feed", delete=True))
    sent += [Sent("tick", START + hours * HOUR, None, None) for hours in range(6, 130, 6)]
    sent.sort(key=lambda record: record.at)
    return Life("grouped", "worker", {}, sent, 2, 2)


def _of_group(dice: Dice, number: int) -> Iterator[Sent]:
    name, at = f"group-{number}", START + 4 * number * HOUR
    feed, other = ("polls", "rates") if number % 2 else ("rates", "polls")
    kind, names, outcome = (
        ("options", ("Ada", "Bo", "Cy", "Dee"), {"option": "Bo"}),
        ("cdf", ("1.5", "2", "2.5", "10"), {"value": 2.2}),
        ("cdf", ("2026-06-01", "2026-09-01", "2027-01-01"), {"value": "2026-07-01"}),
    )[number % 3]
    asked = {"options" if kind == "options" else "thresholds": names[:-1]}
    times = {"opens_at": iso(at), "closes_at": iso(at + 20 * HOUR), "at": iso(at)}
    yield event(at, name, "question", question_id=name, feed=feed, **times, **asked)
    for place in range(5):
        when = at + (1 + 3 * place) * HOUR
        said = sorted(round(dice.between(0.01, 0.99), 3) for _ in names)
        forecasts = dict(zip(names if place > 2 else names[:-1], said, strict=False))
        yield event(when, name, "forecast", question_id=name, expert_id=f"e{place}", at=iso(when), **{kind: forecasts})
    if number % 5 == 1:
        when = at + 15 * HOUR
        yield event(when, name, "question", question_id=name, feed=other, at=iso(when))
    if dice.hits(0.8):
        when = at + 24 * HOUR
        yield event(when, name, "resolution", question_id=name, at=iso(when), **outcome)


# --- what is too large for one record ---


def wide() -> Life:
    """Thousands of experts with long names, a renamed one and an erased one among them; then the feed is deleted."""
    dice = Dice(6)
    experts = [f"{number:05}-{'x' * 190}" for number in range(4_700)]
    sent = [settings_event(START, {"defaults": {"round_every": None}}, "first")]
    for number in range(2):
        name, at = f"q{number}", START + (number + 1) * DAY
        plain = {"question_id": name, "feed": "wide"}
        sent.append(event(at, name, "question", **plain, opens_at=iso(at), closes_at=iso(at + HOUR)))
        for first in range(0, len(experts), 2_500):
            some = {expert: round(dice.between(0, 1), 2) for expert in experts[first : first + 2_500]}
            sent.append(event(at + first + 1, name, "forecasts", **plain, at=iso(at + first + 1), forecasts=some))
        sent.append(event(at + 2 * HOUR, name, "resolution", **plain, outcome=number, at=iso(at + 2 * HOUR)))
        about = {"expert_id": experts[7 + number], "at": iso(at)}
        change: dict[str, Any] = {"forget": True} if number else {"rename": "short"}
        sent.append(control(at + 3 * HOUR, "wide", "expert", **about, **change))
    sent.append(control(START + 4 * DAY, "wide", "feed", delete=True))
    sent.append(Sent("tick", START + 5 * DAY, None, None))
    return Life("wide", "worker", {}, sent, 1, 1)


# --- edges ---

_KEYS = {"house": "a key of the house's own", "guest": "a key of a guest, as long"}
PRODUCERS = {
    "house": {"keys": [_KEYS["house"]], "experts": ["e*", "new*"], "may_ask": True, "may_resolve": True},
    "guest": {"keys": [_KEYS["guest"]], "experts": ["g*"], "feeds": ["open"]},
}


def edges() -> Life:
    """Producers who sign; ledgers that are full; questions without rounds; long histories; stubs that have news."""
    defaults = {"round_every": "6h", "ledger_max": 3, "history_for": "2d", "min_experts": 2, "max_open": "9d"}
    feeds = {"open": {}, "other": {}, "brief": {"ledger_max": 9, "ledger_for": "5d", "retract_for": "2d"}}
    sent = [settings_event(START, {"defaults": defaults, "feeds": feeds}, "first"), *_brief()]
    for number in range(14):
        sent += _edge(number)
    sent += [Sent("tick", START + hours * HOUR, None, None) for hours in range(4, 24 * 24, 4)]
    document = {"defaults": {**defaults, "ledger_max": 2, "history_for": "1d", "round_every": "3h", "quorum": 2}}
    sent.append(settings_event(START + 9 * DAY, document, "second"))
    sent.sort(key=lambda record: record.at)
    return Life("edges", "worker", {}, sent, 2, 2, producers=PRODUCERS)


def _brief() -> Iterator[Sent]:
    """Outcomes that come the moment that the ledger lets go of their questions: one was resolved, one was not."""
    for name, told in (("brief-1", (48, 96)), ("brief-2", (132,))):
        plain = {"question_id": name, "feed": "brief"}
        times = {"opens_at": iso(START), "closes_at": iso(START + 10 * HOUR), "at": iso(START)}
        yield _signed("house", event(START, name, "question", **plain, **times))
        yield _panel(plain, {"e1": 0.3, "e2": 0.6, "e4": 0.8}, START + HOUR)
        for hours in told:
            at = START + hours * HOUR
            yield _signed("house", event(at, name, "resolution", **plain, outcome=hours // 48 % 2, at=iso(at)))


def _edge(number: int) -> Iterator[Sent]:
    name, opens = f"q{number}", START + number * DAY
    closes = opens + (-HOUR if number == 3 else 20 * DAY if number == 4 else 18 * HOUR)
    plain: dict[str, Any] = {"question_id": name, "feed": "open"}
    asked = event(opens, name, "question", **plain, opens_at=iso(opens), closes_at=iso(closes), at=iso(opens))
    yield _signed("house", asked)
    yield asked._replace(at=opens + 1)  # nobody has signed it
    for place, expert in enumerate(("e1", "e2", "e3", "g1", "g2", "stranger")[: 1 if number == 12 else 6]):
        who = "guest" if expert[0] == "g" else "house"
        yield _forecast(who, plain, expert, round(0.1 + 0.13 * place, 2), opens + 2 * HOUR + place)
    if number in _ODD:
        yield from _ODD[number](plain, opens + 4 * HOUR)
    cut = {2: opens - HOUR, 5: opens + 40 * HOUR, 6: opens + 6 * HOUR}.get(number)
    closed = {} if cut is None else {"closed_at": iso(cut)}
    at = opens + 30 * HOUR
    yield _signed("house", event(at, name, "resolution", **plain, outcome=number % 2, at=iso(at), **closed))
    yield _signed("guest", event(at + 1, name, "resolution", **plain, outcome=1, at=iso(at + 1)))
    later = event(at + 2, name, "question", **plain, closes_at=iso(opens + 50 * HOUR), at=iso(at + 2))
    yield _signed("house", later)
    if number % 3 == 0:  # by now it is a stub
        at = opens + 6 * DAY
        told = {"outcome": 1 - number % 2, "at": iso(at), "provisional": number % 6 == 0}
        yield _signed("house", event(at, name, "resolution", **plain, **told))
        yield _forecast("house", plain, "e1", 0.5, at + 1)


def _very_many(plain: Document, at: int) -> Iterator[Sent]:
    """Forecasts of one expert, more than are kept."""
    for step in range(90):
        said = round((step % 19) / 20, 2)
        yield _forecast("house", plain, "e1", said, at + step * 60_000)


def _renamed(plain: Document, at: int) -> Iterator[Sent]:
    """An expert whose new id has spoken before, in the same question."""
    yield _panel(plain, {"new0": 0.3, "new1": 0.3, "new2": 0.3}, at)
    yield control(at + 1, "open", "expert", expert_id="e2", at=iso(at), rename="new1")
    yield _panel(plain, {"new1": 0.8, "e2": 0.7, "e3": 0.6}, at + 2)


def _to_another_feed(plain: Document, at: int) -> Iterator[Sent]:
    """By a producer who may not, then by one who may."""
    moved = event(at, plain["question_id"], "question", **{**plain, "feed": "other"}, at=iso(at))
    yield _signed("guest", moved)
    yield _signed("house", moved._replace(at=at + 1))


def _forged(plain: Document, at: int) -> Iterator[Sent]:
    """Headers that only the service writes, and signatures of nobody; then an erasure."""
    said = event(at, plain["question_id"], "forecast", **plain, expert_id="e1", probability=0.9, at=iso(at))
    yield _signed("house", said, *_FORGED)
    yield said._replace(headers=[("stream-peer-producer", "house:00")])
    yield said._replace(headers=[("stream-peer-producer", "nobody:00")])
    yield _signed("house", said, ("stream-peer-producer", "house:00"))
    yield control(at + 1, "open", "expert", expert_id="e3", at=iso(at), forget=True)
    yield _panel(plain, {"e1": 0.4, "e3": 0.4}, at + 2)


def _just_in_time(plain: Document, at: int) -> Iterator[Sent]:
    """Forecasts as late as they may be, and a millisecond later."""
    for late, expert in enumerate(("e1", "e2")):
        yield _forecast("house", plain, expert, 0.2, at)._replace(at=at + DAY + late)


def _on_the_dot(_: Document, at: int) -> Iterator[Sent]:
    """Ticks a millisecond before the question's last round is due, and then."""
    due = at + 14 * HOUR + 60_000
    yield from (Sent("tick", moment, None, None) for moment in (due - 1, due))


_ODD = {
    1: _very_many,
    7: _renamed,
    8: _to_another_feed,
    9: _forged,
    10: _on_the_dot,
    11: _just_in_time,
}
"""What happens to some of the questions, by their numbers."""
_FORGED = (("stream-peer-src", '["control-events",0,0,1,0]'), ("stream-peer-mac", "0" * 64))


def _forecast(producer: str, plain: Document, expert: str, probability: float, at: int) -> Sent:
    said = {**plain, "expert_id": expert, "probability": probability, "at": iso(at)}
    return _signed(producer, event(at, plain["question_id"], "forecast", **said))


def _panel(plain: Document, forecasts: Document, at: int) -> Sent:
    return _signed("house", event(at, plain["question_id"], "forecasts", **plain, at=iso(at), forecasts=forecasts))


def _signed(producer: str, sent: Sent, *headers: tuple[str, str]) -> Sent:
    """A record that a producer signs, as the documentation says: over topic, key and value, each after its length."""
    parts = [part.encode() for part in (sent.topic, sent.key or "", sent.value or "")]
    prefixed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    mac = hmac.digest(_KEYS[producer].encode(), prefixed, "sha256").hex()
    return sent._replace(headers=[*headers, ("stream-peer-producer", f"{producer}:{mac}")])

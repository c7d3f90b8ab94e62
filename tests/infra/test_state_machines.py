"""The pictures of docs/semantics.md against the engine: it takes every arrow, and no other."""

import random
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from docs.generator.state_machines import MACHINES, picture
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    ExpertChanged,
    FeedLogRecord,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    Source,
    encode_feed_log,
)
from stream_peer.events.outputs import ErrorRateStatus, StateOfQuestion, TrustState
from stream_peer.feeds.reading.rates import Rates
from stream_peer.feeds.reading.trust import NamedGroup, Signs, next_trust
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.numerics.dependence import Dependence, RankAgreement
from stream_peer.numerics.error_rates import ErrorRate
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.tools.explain.question_events import state_of
from stream_peer.tools.explain.question_timeline import PlanAt
from tests.feed_histories import carry_out_rebuilds
from tests.unit.questions.question_log import (
    T0,
    book,
    broadcast,
    event,
    forecast,
    question,
    resolution,
    signed,
    stage,
    tick,
)

Transition = tuple[str, str]
MINUTE = 60_000
QUESTION_SETTINGS = {
    "round_every": "1h",
    "max_open": "5h",
    "history_for": "2h",
    "ledger_for": "4h",
    "retract_for": "3h",
    "grace": "0s",
    "history": True,
}


def taken(walks: Iterator[list[str]]) -> set[Transition]:
    """The steps between different states of all walks."""
    return {step for walk in walks for step in pairwise(walk) if step[0] != step[1]}


# --- a question in the question stage ---


def question_state(of: QuestionStage) -> str:
    state = state_of(PlanAt(of.clock, of.plan_of("q")))
    return "stub" if state == "unknown" and of._store.stub("q", of.clock) is not None else state


def some_event(rng: random.Random, now: int) -> tuple[bytes, bool]:
    """An event about the question, and whether the control stage sends it."""

    def near() -> int:
        return now + rng.randrange(-4 * 60, 4 * 60) * MINUTE

    kinds: list[Callable[[], tuple[bytes, bool]]] = [
        lambda: (forecast("ann", 0.7, now - rng.randrange(90) * MINUTE), False),
        lambda: (question(at=now, opens_at=near()), False),
        lambda: (question(at=now, opens_at=near(), closes_at=near()), False),
        lambda: (question(at=now, closes_at=near()), False),
        lambda: (resolution(rng.choice(["yes", "no", None, "open", "open"]), now), False),
        lambda: (event("feed", feed="default", delete=True), True),
    ]
    return rng.choices(kinds, weights=[6, 2, 2, 3, 3, 1])[0]()


def question_walk(seed: int) -> list[str]:
    rng = random.Random(seed)
    of, now, states = stage(book(**QUESTION_SETTINGS)), T0, ["unknown"]
    for offset in range(120):
        now += rng.choice([0, 7, 25, 55]) * MINUTE
        value, is_control = some_event(rng, now) if rng.random() < 0.35 else (tick(now), False)
        source = broadcast(offset) if is_control else None
        of.step(LogRecord(offset, now, b"key", value, signed(value, source)), Effects())
        states.append(question_state(of))
    return states


def test_a_question_takes_every_arrow_of_its_picture_and_no_other() -> None:
    found = taken(question_walk(seed) for seed in range(150))

    assert found == set(MACHINES["question"].transitions())


# --- what is published of it ---


def folded(records: Iterator[FeedLogRecord]) -> Iterator[tuple[FeedStage, Effects]]:
    """A feed stage after each record, rebuilt where it asks for it, and what the record gave."""
    of, log = FeedStage(topic=topics.FEED_LOG, partition=0), list[LogRecord]()
    for offset, record in enumerate(records):
        log.append(LogRecord(offset, T0 + offset, b"econ", encode_feed_log(record)))
        effects = Effects()
        of.step(log[-1], effects)
        carry_out_rebuilds(of, log)
        yield of, effects


def a_round(source: Source, experts: list[str], boundary: int) -> Round:
    probabilities = [0.7] * len(experts)
    return Round(
        src=source, feed="econ", question_id="q", boundary=boundary, experts=experts, probabilities=probabilities
    )


def truth_records(rng: random.Random, steps: int) -> Iterator[FeedLogRecord]:
    for number in range(steps):
        source, boundary = Source(topics.FORECAST_EVENTS, 0, 0, number, 0), rng.randrange(2)
        roll = rng.random()
        if roll < 0.4:
            yield a_round(source, ["a", "b", "c", "d"][: rng.choice([2, 4])], boundary)
        elif roll < 0.7:
            yield RoundWithdrawn(src=source, feed="econ", question_id="q", boundary=boundary)
        else:
            yield OutcomeRevealed(
                src=source, feed="econ", question_id="q", outcome=rng.choice([0, 1, "annulled", "open", "open"])
            )


def published_walk(seed: int) -> list[str]:
    states = ["nothing"]
    for _, effects in folded(truth_records(random.Random(seed), 60)):
        answers = [o.value for o in effects.outputs if o.topic == topics.REFERENCE_ANSWERS and o.value]
        states += [msgspec.json.decode(value)["state"] for value in answers]
    return states


@pytest.mark.slow
def test_what_is_published_takes_every_arrow_of_its_picture_and_no_other() -> None:
    found = taken(published_walk(seed) for seed in range(50))

    assert found == set(MACHINES["published"].transitions())
    assert set(MACHINES["published"].states) == {"nothing", *get_args(StateOfQuestion)}


# --- trust ---


STATUSES: list[ErrorRateStatus] = ["ok", "ok", "uninformative", "contradicted"]


def some_signs(rng: random.Random, questions: float) -> Signs:
    z = rng.choice([0.0, 0.0, 0.0, 2.5, 4.0])
    ranks = RankAgreement(rng.choice([0.9, 0.9, 0.9, -0.1]), 60)
    groups = rng.choice([[], [], [], [NamedGroup(["ann", "bea"])]])
    return Signs(Dependence(0.01 * z, 0.01, z, z > 3.0, questions, "ok"), ranks, groups)


def trust_walk(seed: int) -> list[str]:
    rng = random.Random(seed)
    states: list[TrustState] = ["warming-up"]
    for _ in range(200):
        rate, questions = rng.choice([0.2, 0.39, 0.45]), rng.choice([60.0, 190.0, 300.0])
        status = rng.choice(STATUSES)
        estimate = ErrorRate(rate, rate, rate, rate, questions, "ok", 0.01)
        rates = Rates(0, estimate, rate, rate, status, 0.0, 0.0, 0.0, 0.0)
        voters = rng.choice([2.0, 3.1, 5.0, 5.0])
        states.append(next_trust(states[-1], rates, voters, FeedSettings(), some_signs(rng, questions)).state)
    return list(states)


def test_trust_takes_every_arrow_of_its_picture_and_no_other() -> None:
    found = taken(trust_walk(seed) for seed in range(40))

    assert found == set(MACHINES["trust"].transitions())
    assert set(MACHINES["trust"].states) == set(get_args(TrustState))


# --- an expert ---


def expert_records(rng: random.Random, steps: int) -> Iterator[FeedLogRecord]:
    for number in range(steps):
        roll = rng.random()
        if roll < 0.6:
            source = Source(topics.FORECAST_EVENTS, 0, 0, number, 0)
            yield a_round(source, ["ann", "b", "c", "d"][rng.randrange(2) :], number)
        elif roll < 0.98:
            source = Source(topics.CONTROL_EVENTS, 0, 0, number, 0)
            team = rng.choice(["panel", None])
            excluded = rng.choice([True, False])
            yield ExpertChanged(src=source, feed="econ", expert_id="ann", team=team, excluded=excluded)
        else:
            yield ExpertChanged(
                src=Source(topics.CONTROL_EVENTS, 0, 0, number, 0), feed="econ", expert_id="ann", forget=True
            )


def expert_walk(seed: int) -> list[str]:
    states, in_last, ever = ["unknown"], False, False
    for of, effects in folded(expert_records(random.Random(seed), 30)):
        for value in (o.value for o in effects.outputs if o.topic == topics.PEER_LOSSES and o.value):
            in_last = "ann" in {expert["id"] for expert in msgspec.json.decode(value)["experts"]}
            ever = ever or in_last
        roster = of.feeds.by_name["econ"].roster
        if roster.is_erased("ann"):
            states.append("forgotten")
        elif "ann" in roster.excluded:
            states.append("excluded")
        else:
            states.append("present" if in_last else "absent" if ever else "unknown")
    return states


@pytest.mark.slow
def test_an_expert_takes_every_arrow_of_its_picture_and_no_other() -> None:
    found = taken(expert_walk(seed) for seed in range(70))

    assert found == set(MACHINES["expert"].transitions())


# --- the pictures ---


def test_pictures_are_svg_and_name_every_state_and_every_arrow(repository: Path) -> None:
    for name, machine in MACHINES.items():
        text = (repository / "docs" / "generated" / f"state-{name}.svg").read_text(encoding="utf-8")
        words = " ".join(ET.fromstring(text).itertext())  # noqa: S314 - our own file
        labels = {arrow.when for arrow in machine.arrows if not arrow.hidden}
        assert set(machine.states) <= set(words.split())
        assert all(" ".join(label.split()[:2]) in words for label in labels)
        assert "prefers-color-scheme:dark" in text


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_no_label_of_a_picture_lies_on_another_or_on_a_state(name: str) -> None:
    drawn = ET.fromstring(picture(MACHINES[name]))  # noqa: S314 - our own picture
    rects = list(drawn.iter("{http://www.w3.org/2000/svg}rect"))
    labels = [rect for rect in rects if rect.get("class") == "card"][1:]
    states = [rect for rect in rects if str(rect.get("class")).startswith("box")]

    for place, label in enumerate(labels):
        for other in (*labels[place + 1 :], *states):
            assert not _overlap(label, other)


def _overlap(one: ET.Element, other: ET.Element) -> bool:
    """Whether two boxes lie on each other, by more than the pixels by which letters are narrower than their place."""
    ends = (
        (float(box.get(at, 0)), float(box.get(at, 0)) + float(box.get(size, 0)))
        for at, size in (("x", "width"), ("y", "height"))
        for box in (one, other)
    )
    left, right, top, bottom = ends
    return all(min(a[1], b[1]) - max(a[0], b[0]) > 4.0 for a, b in ((left, right), (top, bottom)))

"""Promises of the question stage for arbitrary histories: what is emitted adds up to a slow, obvious reference."""

import random
from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stream_peer.log.stage import Effects, LogRecord, Output, Record
from stream_peer.questions.stage import QuestionStage
from tests.hypothesis_profiles import examples
from tests.unit.questions.question_log import (
    DAY,
    GRACE,
    HOUR,
    T0,
    Content,
    Told,
    book,
    broadcast,
    event,
    forecast,
    question,
    records,
    resolution,
    settings_event,
    signed,
    stage,
    tick,
)

Events = list[tuple[int, bytes]]  # record time, payload

LIVE: dict[str, Any] = {"round_every": "7h", "quorum": 2, "backdate_limit": "5h", "history_for": "9000d"}
HISTORICAL: dict[str, Any] = {**LIVE, "history": True, "backdate_limit": None}
FEEDS = ("econ", "sport")

hours = st.integers(0, 40).map(lambda hour: T0 + hour * HOUR)
names = st.sampled_from(["q", "r", "s"])
feeds = st.sampled_from([..., ..., *FEEDS])
experts = st.sampled_from(["ann", "bob", "cyd"])
probabilities = st.sampled_from([None, 0.0, 0.25, 0.5, 1.0])

forecasts = st.builds(
    lambda name, expert, p, at, feed: forecast(expert, p, at, name, feed=feed),
    names, experts, probabilities, hours, feeds,
)  # fmt: skip
panels = st.builds(
    lambda name, panel, at: event("forecasts", question_id=name, forecasts=panel, at=at),
    names, st.dictionaries(experts, probabilities), hours,
)  # fmt: skip
questions = st.builds(
    lambda name, at, opens, closes, feed, weight: question(
        name, at=at, opens_at=opens, closes_at=closes, feed=feed, weight=weight
    ),
    names, hours | st.just(...), hours | st.just(...), hours | st.just(...), feeds, st.sampled_from([..., 0.5, 1.0]),
)  # fmt: skip
resolutions = st.builds(
    lambda name, outcome, at, closed: resolution(outcome, at, name, closed_at=closed),
    names, st.sampled_from([0, 1, None, "open"]), hours, hours | st.just(...),
)  # fmt: skip
ticks = hours.map(tick)
payloads = st.one_of(forecasts, forecasts, forecasts, panels, questions, resolutions, ticks, st.just(b"{}"))


@st.composite
def logs(draw: st.DrawFn) -> Events:
    """Events in the order of their record times, which run ahead of what they state."""
    values = draw(st.lists(payloads, max_size=40))
    times = sorted(draw(st.lists(hours, min_size=len(values), max_size=len(values))))
    return [*zip(times, values, strict=True), (T0 + 3 * DAY, tick(T0 + 3 * DAY))]


strange = st.builds(
    lambda value, change: change(value),
    forecasts | panels,
    st.sampled_from(
        [
            lambda value: value.replace(b'Z"', b'"'),
            lambda value: value.replace(b'Z"', b'.9999999+02:00"'),
            lambda value: value.replace(b'"at"', b'"why":1,"at"'),
            lambda value: value.replace(b"ann", "änn".encode()),
            lambda value: value.replace(b"bob", b"b" * 300),
            lambda value: value[:-1] + b',"schema":2}',
            lambda value: value[:-1],
            lambda value: value + b" " * 1_000_000,
        ]
    ),
)
controls = st.sampled_from(
    [
        settings_event({"defaults": {"backdate_limit": "2h", "late_forecasts": "refuse"}}),
        settings_event({"defaults": LIVE, "feeds": {"sport": HISTORICAL}}),
        event("expert", feed="default", expert_id="ann", at=T0, rename="dot"),
        event("expert", feed="sport", expert_id="bob", at=T0, forget=True),
    ]
)
many = st.lists(st.one_of(payloads, forecasts, forecasts, forecasts, panels, strange, st.none(), controls), max_size=60)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values=many, data=st.data())
def test_folding_runs_is_folding_one_by_one(values: list[bytes | None], data: st.DataObject) -> None:
    size = len(values)
    times = sorted(data.draw(st.lists(hours, min_size=size, max_size=size)))
    keys = data.draw(st.lists(st.sampled_from([b"key", b"key", b"key", None, b"\xff"]), min_size=size, max_size=size))
    shift = data.draw(st.sampled_from([0, -5 * HOUR, 2 * DAY]))
    log = [_record(*row, shift) for row in zip(range(size), times, keys, values, strict=True)]
    documents = data.draw(st.sampled_from([LIVE, HISTORICAL, {"history_for": "3h", "round_every": "2h"}]))
    partitions = data.draw(st.sampled_from([1, 2]))
    one, other = (stage(book(**documents), partitions=partitions) for _ in range(2))
    singly, in_runs = Effects(), Effects()

    for record in log:
        one.step(record, singly)
    done = 0
    while done < size:
        done += other.steps(log[done : done + 16], in_runs)

    assert one.snapshot() == other.snapshot()
    for name in Effects.__slots__:
        assert getattr(singly, name) == getattr(in_runs, name), name
    assert (one.deadline(), one.next_deadline, one.clock) == (other.deadline(), other.next_deadline, other.clock)


def _record(offset: int, time: int, key: bytes | None, value: bytes | None, shift: int) -> LogRecord:
    """A record of which the service has signed what only it writes."""
    at, headers = time + shift, signed(value) if (value or b"").startswith(b'{"type":"tick"') else ()
    if (value or b"").startswith((b'{"type":"expert"', b'{"type":"settings"')):
        headers = signed(value, broadcast(offset), key=key or b"")
    return LogRecord(offset, at, key, value, headers)


def test_of_plain_forecasts_none_is_folded_singly() -> None:
    class Noting(QuestionStage):
        def step(self, record: Record, effects: Effects) -> None:
            stepped.append(record.offset)
            super().step(record, effects)

    stepped: list[int] = []
    noting = Noting(topic="forecast-events", partition=0, partitions=1, feed_log_partitions=1)
    panel = event("forecasts", question_id="q", forecasts={"ann": 0.3, "dot": None}, at=T0 + 4 * HOUR)
    said = [
        question(at=T0, closes_at=T0 + DAY, feed="econ"),
        forecast("ann", 0.5, T0, feed="econ"),
        *(forecast(name, 0.5, T0 + hour * HOUR) for hour, name in enumerate(["ann", "bob", "cyd"], 1)),
        panel,
    ]
    log = [LogRecord(offset, T0 + 4 * HOUR, b"q", value) for offset, value in enumerate(said)]

    assert noting.steps(log, Effects()) == len(log)
    assert stepped == [0, 1]


def fold(stage_: QuestionStage, log: Events, start: int = 0) -> list[Output]:
    effects = Effects()
    for offset, (time, value) in enumerate(log, start):
        headers = signed(value) if value.startswith(b'{"type":"tick"') else ()
        stage_.step(LogRecord(offset, time, b"key", value, headers), effects)
    return effects.outputs


@pytest.mark.parametrize("defaults", [LIVE, HISTORICAL], ids=["live", "historical"])
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=logs())
def test_what_was_emitted_adds_up_to_the_reference(defaults: dict[str, Any], log: Events) -> None:
    outputs = fold(stage(book(**defaults)), log)

    told = Told(records(outputs))
    reference = Reference(log, historical=defaults is HISTORICAL)
    assert told.rounds == reference.rounds
    for place, outcome in reference.outcomes.items():
        assert told.outcomes.get(place, "open") == outcome


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=logs(), cuts=st.lists(st.integers(0, 42), max_size=4), data=st.data())
def test_a_restart_anywhere_changes_no_byte(log: Events, cuts: list[int], data: st.DataObject) -> None:
    document = {"defaults": data.draw(st.sampled_from([LIVE, HISTORICAL, {"history_for": "3h", "round_every": "2h"}]))}
    log = [(T0, settings_event(document)), *log]
    straight = fold(stage(), log)

    stored: dict[bytes, bytes] = {}
    interrupted: list[Output] = []
    current = stage()
    edges = sorted({min(cut, len(log)) for cut in cuts} | {0, len(log)})
    for start, end in pairwise(edges):
        interrupted += fold(current, log[start:end], start)
        snapshot = current.snapshot()
        for key, value in snapshot.entries.items():
            stored.pop(key, None)
            stored.update({} if value is None else {key: value})
        current = stage()
        current.load(snapshot.head, stored)

    assert interrupted == straight


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=logs(), seed=st.integers(0, 1000))
@example(log=[(T0, question("q", opens_at=T0)), (T0, question("r", opens_at=T0))], seed=0)
def test_other_interleavings_of_historical_questions_give_the_same_final_rounds(log: Events, seed: int) -> None:
    by_question: dict[str, Events] = defaultdict(list)
    for time, value in log:
        name = msgspec.json.decode(value).get("question_id")
        if name is not None:
            by_question[name].append((time, value))
    end = (T0 + 3 * DAY, tick(T0 + 3 * DAY))

    one_way = Told(records(fold(stage(book(**HISTORICAL)), [*_by_turns(by_question, 0), end])))
    other_way = Told(records(fold(stage(book(**HISTORICAL)), [*_by_turns(by_question, seed), end])))

    assert one_way.rounds == other_way.rounds
    asked = {key[:2] for key in one_way.rounds}  # an outcome without a round, which may have been withdrawn, is nothing
    assert {k: v for k, v in one_way.outcomes.items() if v != "open" and k in asked} == {
        k: v for k, v in other_way.outcomes.items() if v != "open" and k in asked
    }


@settings(max_examples=examples(30), deadline=None)
@given(log=logs(), size=st.integers(1, 7))
def test_how_the_log_is_cut_into_batches_changes_no_byte(log: Events, size: int) -> None:
    at_once = fold(stage(book(**LIVE)), log)

    current = stage(book(**LIVE))
    in_batches = [
        output for start in range(0, len(log), size) for output in fold(current, log[start : start + size], start)
    ]

    assert in_batches == at_once


@settings(max_examples=examples(30), deadline=None)
@given(log=logs())
def test_sources_grow_along_the_feed_log(log: Events) -> None:
    emitted = records(fold(stage(book(**LIVE)), log))

    positions = [record.src.position for record in emitted]
    assert positions == sorted(set(positions))


def _by_turns(by_question: dict[str, Events], seed: int) -> Events:
    """Questions interleaved at random, the order within each kept; the record time is the largest moment so far."""
    rng = random.Random(seed)
    queues = [list(queue) for queue in by_question.values()]
    log: Events = []
    now = 0
    while any(queues):
        time, value = rng.choice([queue for queue in queues if queue]).pop(0)
        now = max(now, time)
        log.append((now, value))
    return log


class Reference:
    """Rounds from scratch: every event again, every boundary again, every expert again, by the definitions."""

    def __init__(self, log: Events, *, historical: bool) -> None:
        self.rounds: dict[tuple[str, str, int], Content] = {}
        self.outcomes: dict[tuple[str, str], object] = {}
        self.historical = historical
        decoded = [(time, msgspec.json.decode(value)) for time, value in log]
        stated = [(time, _moment(e.get("now" if e["type"] == "tick" else "at"))) for time, e in decoded if "type" in e]
        self.clock = max((at for time, at in stated if at and at <= time + 300_000), default=0)
        for name in {e["question_id"] for _, e in decoded if "question_id" in e}:
            self._question(name, [(time, e) for time, e in decoded if e.get("question_id") == name])

    def _question(self, name: str, events: list[tuple[int, dict[str, Any]]]) -> None:
        fields = self._fields(events)
        truth = _latest([(at, e) for _, at, e in self._timed(events) if e["type"] == "resolution"])
        entries = self._entries(events)
        feed = fields.get("feed", fields.get("other_feed", "default"))
        declared = [at for _, at, e in self._timed(events) if e["type"] == "question"]
        first = min((at for at, _, _ in entries), default=min(declared, default=None))
        opens = _moment(fields.get("opens_at")) or first
        verdict = "open" if truth is None else truth["outcome"]
        cut = None if truth is None or verdict == "open" else _moment(truth.get("closed_at", truth["at"]))
        ends = [_moment(fields.get("closes_at")), cut, None if opens is None else opens + 2 * 365 * DAY]
        close = min((end for end in ends if end is not None), default=None)
        if opens is not None and close is not None:
            self._rounds(name, feed, fields.get("weight", 1.0), entries, opens, close)
        if not any(key[1] == name for key in self.rounds):
            return
        if verdict == "open":
            self.outcomes[feed, name] = "open"
        elif close is not None and close + GRACE <= self.clock:
            self.outcomes[feed, name] = "annulled" if verdict is None else verdict

    def _timed(self, events: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, int, dict[str, Any]]]:
        """(record time, stated time, event): a question without ``at`` states its arrival, or in a file its opening."""
        timed = []
        for time, e in events:
            default = e.get("opens_at") if self.historical else None
            timed.append((time, _moment(e.get("at", default)) or time, e))
        return timed

    def _fields(self, events: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
        timed = [(at, e) for _, at, e in self._timed(events)]
        own = [(at, e) for at, e in timed if e["type"] == "question"]
        fields = {}
        for field in ("opens_at", "closes_at", "weight", "feed"):
            stating = _latest([(at, e) for at, e in own if field in e])
            fields.update({} if stating is None else {field: stating[field]})
        other = _latest([(at, e) for at, e in timed if e["type"] != "question" and "feed" in e])
        return fields if other is None else {**fields, "other_feed": other["feed"]}

    def _entries(self, events: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, str, float | None]]:
        entries: list[tuple[int, str, float | None]] = []
        said: list[tuple[str, int, float | None]] = []
        for place, (time, at, e) in enumerate(self._timed(events)):
            before = [(at, e) for _, at, e in self._timed(events)[:place] if e["type"] == "resolution"]
            truth = _latest(before)
            resolved = truth is not None and truth["outcome"] != "open"
            counts = at if self.historical else max(at, time - 5 * HOUR, time if resolved else 0)
            panel = e.get("forecasts") or ({e["expert_id"]: e["probability"]} if "expert_id" in e else {})
            late = counts != at
            newer = {who for who, stated, _ in said if stated > at}
            used = [who for who, p in panel.items() if not late or (who not in newer and (who, at, p) not in said)]
            entries += [(counts, expert, panel[expert]) for expert in used]
            said += [(expert, at, p) for expert, p in panel.items()]
        return entries

    def _rounds(
        self, name: str, feed: str, weight: float, entries: list[tuple[int, str, float | None]], opens: int, close: int
    ) -> None:
        intervals = [7 * HOUR * 2 ** (k // 8) for k in range(32)]
        boundaries = {close, *(opens + sum(intervals[: k + 1]) for k in range(32))}
        moments = sorted({opens, *(at for at, _, _ in entries)})
        quorum = [moment for moment in moments if moment >= opens and len(_standing(entries, moment)) >= 2]
        boundaries.update(quorum[:1])
        for boundary in boundaries:
            standing = _standing(entries, boundary)
            if opens <= boundary <= close and boundary + GRACE <= self.clock and standing:
                self.rounds[feed, name, boundary] = boundary == close, weight, standing


def _latest(stating: list[tuple[int, dict[str, Any]]]) -> dict[str, Any] | None:
    """The event stated last; of equally late ones the last in the log."""
    return max(enumerate(stating), key=lambda one: (one[1][0], one[0]))[1][1] if stating else None


def _standing(entries: list[tuple[int, str, float | None]], moment: int) -> dict[str, float]:
    in_order = sorted(entries, key=lambda entry: entry[0])
    latest = {expert: probability for at, expert, probability in in_order if at <= moment}
    return {expert: probability for expert, probability in latest.items() if probability is not None}


def _moment(value: str | None) -> int | None:
    return None if value is None else round(datetime.fromisoformat(value).timestamp() * 1000)

"""Whatever happens to the questions of a partition, in whatever order: what was told last is what follows from it all.

Two stages fold the same records: one that is restarted from its stored state now and then, and one that is not. They
must answer with the same bytes, and both must have told what ``slow_question`` says.
"""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stream_peer.events import topics
from stream_peer.events.feed_log import Source
from stream_peer.log.stage import Effects, Headers, LogRecord, Output
from tests.hypothesis_profiles import examples
from tests.slow_question import SlowPartition
from tests.unit.questions.question_log import (
    HOUR,
    T0,
    Told,
    delete,
    event,
    forecast,
    forget,
    question,
    records,
    resolution,
    settings_event,
    signed,
    stage,
    tick,
)

PARTITIONS = 2
EXPERTS = ("ann", "bob", "cyd")
FEEDS = ("econ", "sport")

STAYS: dict[str, Any] = {"ledger_for": "80h", "retract_for": "20h"}
SHORT: dict[str, Any] = {**STAYS, "round_every": "7h", "quorum": 2, "backdate_limit": "9h", "history_for": "25h"}
DOCUMENTS: list[dict[str, Any]] = [
    {"defaults": SHORT},
    {"defaults": {**SHORT, "history_for": "9000d", "forecast_for": "11h", "late_forecasts": "refuse"}},
    {"defaults": {**STAYS, "history": True, "round_every": "5h", "history_for": "50h", "max_open": "40h"}},
    {"defaults": SHORT, "feeds": {"econ": {"round_every": None, "quorum": None}}},
    {"defaults": SHORT, "feeds": {"econ": {"round_every": "3h", "forecast_for": "6h", "grace": "2h"}}},
    {"defaults": {**SHORT, "quorum": 3, "ledger_for": "20h"}, "feeds": {"sport": {"history": True, "horizon": "50h"}}},
]

names = st.sampled_from(["q0"] * 4 + ["q1"] * 4 + ["q2"])  # the last one is at home in the other partition
experts = st.sampled_from(EXPERTS)
feeds = st.sampled_from((..., *FEEDS))
probabilities = st.sampled_from([0.1, 0.5, 0.9, None])
ago = st.integers(-4, 30).map(lambda hours: hours * HOUR)
maybe_ago = ago | st.just(...)
ahead = st.integers(-30, 40).map(lambda hours: hours * HOUR)
maybe_ahead = ahead | st.just(...)
outcomes = st.sampled_from([0, 1, None, "open"])
provisional = st.sampled_from([..., ..., True])
elapsed = st.sampled_from([0, 0, 1, HOUR, 3 * HOUR, 8 * HOUR, 26 * HOUR])


class Known(Told):
    """What a feed stage knows of all rounds and outcomes, without deleted feeds and forgotten experts."""

    def forget(self, feed: str, expert: str) -> None:
        for key, (final, weight, who) in list(self.rounds.items()):
            left = {other: p for other, p in who.items() if other != expert or key[0] != feed}
            self.rounds[key] = final, weight, left
            if not left:
                del self.rounds[key]

    def delete(self, feed: str) -> None:
        self.rounds = {key: content for key, content in self.rounds.items() if key[0] != feed}
        self.outcomes = {key: outcome for key, outcome in self.outcomes.items() if key[0] != feed}
        self.provisional = {key: outcome for key, outcome in self.provisional.items() if key[0] != feed}


class Questions(RuleBasedStateMachine):
    """Sends anything, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = T0
        self.offset = 0
        self.controls = 0
        self.forwards = 0
        self.effects = Effects()
        self.stored: dict[bytes, bytes] = {}
        self.restarted, self.straight = self._stage(), self._stage()
        self.slow = SlowPartition(0, PARTITIONS)
        self.told = Known([])
        self.sent: list[tuple[bytes, Source]] = []

    @initialize(document=st.sampled_from([None, *DOCUMENTS]))
    def begin(self, document: dict[str, Any] | None) -> None:
        if document is not None:
            self._control(settings_event(document))

    # --- what platforms send ---

    @rule(name=names, expert=experts, p=probabilities, before=ago, feed=feeds, after=elapsed, away=st.booleans())
    def one_forecast(
        self, name: str, expert: str, p: float | None, before: int, feed: Any, after: int, away: bool
    ) -> None:
        self._pass(after)
        self._send(forecast(expert, p, self.now - before, name, feed=feed), came_from_elsewhere=away)

    @rule(name=names, panel=st.dictionaries(experts, probabilities, min_size=1), before=ago, feed=feeds, after=elapsed)
    def many_forecasts(self, name: str, panel: dict[str, float | None], before: int, feed: Any, after: int) -> None:
        self._pass(after)
        self._send(event("forecasts", question_id=name, at=self.now - before, forecasts=panel, feed=feed))

    @rule(
        name=names, at=maybe_ago, opens=maybe_ahead, closes=maybe_ahead, feed=feeds, weight=st.sampled_from([..., 0.5])
    )
    def a_question(self, name: str, at: Any, opens: Any, closes: Any, feed: Any, weight: Any) -> None:
        moments = {"at": self._at(at, -1), "opens_at": self._at(opens, 1), "closes_at": self._at(closes, 1)}
        self._send(question(name, feed=feed, weight=weight, **moments))

    @rule(name=names, outcome=outcomes, before=ago, closed=maybe_ahead, feed=feeds, provisional=provisional)
    def a_resolution(
        self, name: str, outcome: object, before: int, closed: Any, feed: Any, provisional: object
    ) -> None:
        moments = {"at": self.now - before, "closed_at": self._at(closed, 1)}
        self._send(resolution(outcome, question_id=name, feed=feed, provisional=provisional, **moments))

    @rule(after=st.sampled_from([1, 4, 9, 20, 31, 50]))
    def time_passes(self, after: int) -> None:
        self._pass(after * HOUR)
        self._send(tick(self.now))

    @rule(name=names, lasts=st.sampled_from([2, 8, 20]), feed=feeds, outcome=st.sampled_from([..., 1]))
    def a_short_life(self, name: str, lasts: int, feed: Any, outcome: Any) -> None:
        opens, closes = self.now, self.now + lasts * HOUR
        self._send(question(name, at=opens, opens_at=opens, closes_at=closes, feed=feed))
        self._send(event("forecasts", question_id=name, at=opens, forecasts={"ann": 0.4, "bob": 0.6}))
        self._pass((lasts + 1) * HOUR)
        self._send(tick(self.now) if outcome is ... else resolution(outcome, closes, name))

    @rule(name=names, distance=st.sampled_from([-1, 0, 1]), stays=st.sampled_from([20, 80]), provisional=provisional)
    def an_outcome_comes_when_what_is_left_may_just_have_ended(
        self, name: str, distance: int, stays: int, provisional: object
    ) -> None:
        stub = self.slow.stub(name)
        if stub is not None:
            self.now = max(self.now, stub.news + stays * HOUR + distance)
            self._send(tick(self.now))
            self._send(resolution(self.now % 2, self.now, name, provisional=provisional))

    # --- what operators do ---

    @rule(what=st.sampled_from(["settings", "settings", "forget", "forget", "delete"]), data=st.data())
    def somebody_operates(self, what: str, data: st.DataObject) -> None:
        if what == "settings":
            since = self.now - data.draw(st.sampled_from([0, HOUR, 30 * HOUR]))
            self._control(settings_event(data.draw(st.sampled_from(DOCUMENTS)), since=since))
            return
        at_stake = sorted({stub.feed for stub in self.slow.stubs.values()}.intersection(FEEDS))
        feed = data.draw(st.sampled_from(at_stake or FEEDS))
        if what == "delete":
            self._control(delete(feed))
            self.told.delete(feed)
            self._send(resolution(1, self.now, "q0"))
            self._send(resolution(1, self.now, "q1"))
        else:
            expert = data.draw(experts)
            self._control(forget(expert, feed))
            self.told.forget(feed, expert)

    # --- what goes wrong ---

    @rule()
    def the_owner_changes(self) -> None:
        snapshot = self.restarted.snapshot()
        for key, value in snapshot.entries.items():
            self.stored.pop(key, None)
            self.stored.update({} if value is None else {key: value})
        self.restarted = self._stage()
        self.restarted.load(snapshot.head, self.stored)

    @rule(
        value=st.sampled_from([forecast("ann", 0.9, T0, "q0"), delete("econ"), settings_event({})]),
        place=st.sampled_from([(topics.FORECAST_EVENTS, 1), (topics.CONTROL_EVENTS, 0)]),
    )
    def somebody_forges_a_header(self, value: bytes, place: tuple[str, int]) -> None:
        header, *mac = signed(b"something else", Source(*place, 0, 10**12, 0))
        self._fold(value, None, (header,))
        self._fold(value, None, (header, *mac))

    @rule(data=st.data())
    def something_comes_again(self, data: st.DataObject) -> None:
        if self.sent:
            value, source = data.draw(st.sampled_from(self.sent))
            assert not self._fold(value, source)

    @invariant()
    def what_was_told_last_follows_from_all_that_was_said(self) -> None:
        assert self.told.rounds == self.slow.rounds
        assert self.told.outcomes == self.slow.outcomes
        assert {key: shown for key, shown in self.told.provisional.items() if shown != "open"} == self.slow.provisional
        assert self.restarted.clock == self.straight.clock == self.slow.clock

    @invariant()
    def nothing_is_dropped_silently(self) -> None:
        counts = self.effects.counts
        letters = [output for output in self.effects.outputs if output.topic == topics.DEAD_LETTERS]
        reasons = [dict(letter.headers)["stream-peer-reason"].decode() for letter in letters]
        assert reasons == self.slow.refused
        assert (counts["too-late", ""], counts["forwarded", ""]) == (self.slow.too_late, self.slow.forwarded)
        assert counts["duplicate", ""] == self.slow.repeated
        assert {what: counts[what, ""] for what in self.slow.noted} == self.slow.noted

    # ---

    @staticmethod
    def _stage() -> Any:
        return stage(partition=0, partitions=PARTITIONS)

    def _at(self, distance: Any, sign: int) -> Any:
        return ... if distance is ... else self.now + sign * distance

    def _pass(self, milliseconds: int) -> None:
        self.now += milliseconds

    def _control(self, value: bytes) -> None:
        self.controls += 1
        self._fold(value, Source(topics.CONTROL_EVENTS, 0, 0, self.controls, 0))

    def _send(self, value: bytes, *, came_from_elsewhere: bool = False) -> None:
        if not came_from_elsewhere:
            self._fold(value, None)
            return
        self.forwards += 1
        self._fold(value, Source(topics.FORECAST_EVENTS, 1, 0, self.forwards, 0))

    def _fold(self, value: bytes, source: Source | None, forged: Headers = ()) -> bool:
        is_ours = source is not None or value.startswith(b'{"type":"tick"')
        record = LogRecord(self.offset, self.now, b"key", value, signed(value, source) if is_ours else forged)
        self.offset += 1
        outputs = self._step(self.straight, record, self.effects)
        assert self._step(self.restarted, record, Effects()) == outputs
        if source is not None:
            self.sent.append((value, source))
        self.told.add(records(outputs))
        named = None if source is None else (source.topic, source.partition, 0, source.offset, source.index)
        return self.slow.add(self.now, value, named)

    @staticmethod
    def _step(stage_: Any, record: LogRecord, effects: Effects) -> list[Output]:
        before, warned = len(effects.outputs), len(effects.warnings)
        stage_.step(record, effects)
        assert len({warning.question_id for warning in effects.warnings[warned:]}) == len(effects.warnings[warned:])
        return effects.outputs[before:]


Questions.TestCase.settings = settings(
    max_examples=examples(70), stateful_step_count=45, deadline=None, suppress_health_check=list(HealthCheck)
)
TestQuestions = Questions.TestCase

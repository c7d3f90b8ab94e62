"""A feed's long life, in any order: what is left is what follows from the final set of evidence, bit for bit.

The reference keeps the list of everything that was said and recomputes from it, each time, what is known at the end. Of
that it makes the shortest log there is, one round each and one outcome, and folds it once.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from hypothesis import settings as options
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stream_peer.events.feed_log import (
    ExpertChanged,
    FeedChanged,
    FeedLogRecord,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    Source,
    Verdict,
    encode_feed_log,
)
from stream_peer.feeds.columns import EXPERT, FEED, RULE_PART
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from tests.feed_histories import (
    START,
    Changelog,
    carry_out_rebuilds,
    changed,
    expert,
    folded,
    log_of,
    outcome,
    round_of,
    settings,
    stage,
    withdrawn,
)
from tests.hypothesis_profiles import examples

EXPERTS = [f"e{number}" for number in range(6)]
LEDGER_FOR, RETRACT_FOR = 24_000, 12_000
LIMITS = {"ledger_for": "24s", "retract_for": "12s", "vote_rule": "half"}

OF_THE_PATH = (
    *("regret", "absolute", "variance", "outcome_regret", "outcome_absolute", "true_regret", "judged_peer"),
    "fast",  # the mixer that competes at its own forecast
    "evaluated",  # a question whose outcome comes before its first round has no scored forecast, for good
)
EXPERT_COLUMNS = [
    name for name in (*EXPERT.names(), "loss", "loss_if_one", "loss_if_zero") if not name.startswith(OF_THE_PATH)
]
FEED_COLUMNS = [*FEED.between("questions", "votes"), *RULE_PART]


class Timed(NamedTuple):
    """An event and the time of its record."""

    event: FeedLogRecord
    at: int


class Known(NamedTuple):
    """A round as it counts: who was there, with which forecast, and who was in which team."""

    forecasts: Mapping[str, float]
    teams: Mapping[str, str]


class Evidence:
    """What is known of a question at the end."""

    def __init__(self) -> None:
        self.weight = 1.0
        self.outcome: Verdict = "open"
        self.rounds: dict[int, Known] = {}
        self.touched = 0
        self.expired = False


class Reference:
    """Recomputes a feed from everything that was said of it."""

    def __init__(self, said: list[Timed]) -> None:
        last_end = max(
            (k for k, (event, _) in enumerate(said) if isinstance(event, FeedChanged) and event.delete), default=-1
        )
        self.questions: dict[str, Evidence] = {}
        self.teams: dict[str, str] = {}
        self.excluded: set[str] = set()
        ours = said[last_end + 1 :]
        self.forgotten = {e.expert_id for e, _ in ours if isinstance(e, ExpertChanged) and e.forget}
        self.clock = max((at for _, at in said[: last_end + 1]), default=0)
        for event, at in ours:
            self.clock = max(self.clock, at)
            self._hear(event, at)

    def _hear(self, event: FeedLogRecord, at: int) -> None:
        if isinstance(event, ExpertChanged):
            self._member(event)
        elif isinstance(event, FeedChanged):
            self.questions.clear()
        elif isinstance(event, Round):
            self._round(event, at)
        elif isinstance(event, RoundWithdrawn):
            question = self._question(event.question_id) if event.question_id in self.questions else None
            if question is not None:
                question.rounds.pop(event.boundary, None)
                question.touched = at
        elif isinstance(event, OutcomeRevealed):
            self._outcome(event, at)

    def _member(self, event: ExpertChanged) -> None:
        if event.expert_id in self.forgotten:
            return
        if event.team is not msgspec.UNSET:
            self.teams.pop(event.expert_id, None)
            if event.team is not None:
                self.teams[event.expert_id] = event.team
        if event.excluded is not msgspec.UNSET:
            (self.excluded.add if event.excluded else self.excluded.discard)(event.expert_id)

    def _round(self, event: Round, at: int) -> None:
        said = zip(event.experts, event.probabilities, strict=True)
        forecasts = {e: p for e, p in said if e not in self.excluded | self.forgotten}
        if not forecasts and event.question_id not in self.questions:
            return
        question = self._question(event.question_id)
        if question is None:
            return
        question.rounds.pop(event.boundary, None)
        if forecasts:
            question.weight = event.weight
            question.rounds[event.boundary] = Known(forecasts, dict(self.teams))
        question.touched = at

    def _outcome(self, event: OutcomeRevealed, at: int) -> None:
        if event.outcome == "open" and event.question_id not in self.questions:
            return
        question = self._question(event.question_id)
        if question is not None and question.outcome != event.outcome:
            question.outcome, question.touched = event.outcome, at

    def _question(self, question_id: str) -> Evidence | None:
        """The question, None if its time is over."""
        for question in self.questions.values():
            limit = LEDGER_FOR if question.outcome == "open" else RETRACT_FOR
            question.expired = question.expired or question.touched + limit <= self.clock
        found = self.questions.setdefault(question_id, Evidence())
        return None if found.expired else found

    def shortest_log(self) -> list[FeedLogRecord]:
        """The final evidence, and nothing else."""
        events: list[FeedLogRecord] = []
        for name, question in sorted(self.questions.items()):
            for boundary, known in sorted(question.rounds.items()):
                events += [expert(e, team=known.teams.get(e)) for e in EXPERTS]
                hours = (boundary - START) // 3_600_000
                events.append(round_of(name, known.forecasts, boundary=hours, weight=question.weight))
            if question.outcome != "open":
                events.append(outcome(name, question.outcome))
        return events


def order_free_columns(feed_stage: FeedStage) -> dict[tuple[str, str], int]:
    """Columns of the sums that depend on nothing but the evidence, by name and expert; without zeros."""
    feed = feed_stage.feeds.feed("f")
    columns = {("", name): int(feed.buckets.sums.feed[FEED.at(name)]) for name in FEED_COLUMNS}
    for place, name in enumerate(feed.roster.experts):
        columns |= {
            (name, column): int(feed.buckets.sums.matrix[EXPERT.at(column), place]) for column in EXPERT_COLUMNS
        }
    return {key: value for key, value in columns.items() if value}


probabilities = st.one_of(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), st.floats(0.0, 1.0))
forecasts = st.one_of(
    st.dictionaries(st.sampled_from(EXPERTS), probabilities, min_size=1),
    st.fixed_dictionaries(dict.fromkeys(EXPERTS, probabilities)),
)
questions = st.sampled_from([f"q{number}" for number in range(4)])
members = st.sampled_from(EXPERTS)


class LongLife(RuleBasedStateMachine):
    """Everything that can happen to a feed, and to the worker that folds it."""

    @initialize()
    def begin(self) -> None:
        self.said: list[Timed] = []
        self.log: list[LogRecord] = []
        self.now = START
        self.meaning: dict[str, Any] = {}
        self.changelog = Changelog()
        self.stored = 0
        self.stage = stage(**LIMITS)

    def tell(self, event: FeedLogRecord) -> None:
        offset = len(self.log)
        self.now += 1000
        sourced = msgspec.structs.replace(event, src=Source("forecast-events", 0, 0, offset, 0))
        record = LogRecord(offset, self.now, (event.feed or "settings").encode(), encode_feed_log(sourced))
        self.said.append(Timed(event, self.now))
        self.log.append(record)
        self.stage.step(record, Effects())
        carry_out_rebuilds(self.stage, self.log)

    @rule(question=questions, said=forecasts, boundary=st.integers(1, 3), weight=st.sampled_from([1.0, 1.0, 0.3]))
    def a_round(self, question: str, said: Mapping[str, float], boundary: int, weight: float) -> None:
        self.tell(round_of(question, said, boundary=boundary, weight=weight))

    @rule(question=questions, value=st.sampled_from([0, 1, 0, 1, "annulled", "open"]))
    def an_outcome(self, question: str, value: Verdict) -> None:
        self.tell(outcome(question, value))

    @rule(question=questions, boundary=st.integers(1, 3))
    def a_withdrawal(self, question: str, boundary: int) -> None:
        self.tell(withdrawn(question, boundary=boundary))

    @rule(member=members, team=st.sampled_from(["red", "red", None]))
    def a_team(self, member: str, team: str | None) -> None:
        self.tell(expert(member, team=team))

    @rule(member=members, excluded=st.booleans())
    def an_exclusion(self, member: str, excluded: bool) -> None:
        self.tell(expert(member, excluded=excluded))

    @precondition(lambda self: len(Reference(self.said).forgotten) < 2)
    @rule(member=members)
    def a_forgotten_one(self, member: str) -> None:
        self.tell(expert(member, forget=True))

    @rule(delete=st.booleans())
    @precondition(lambda self: len(self.log) > 12)
    def an_end_or_a_new_beginning(self, delete: bool) -> None:
        self.tell(changed(delete=delete, reset=not delete))

    @rule(loss=st.sampled_from(["squared", "log"]), min_experts=st.integers(2, 4), rate=st.sampled_from([5.0, 50.0]))
    def other_settings(self, loss: str, min_experts: int, rate: float) -> None:
        self.meaning = {"loss": loss, "min_experts": min_experts}
        shadows = [{"name": "timid", "stretch": False}, {"name": "other", "mixer": {"peer_rate": rate}}]
        self.tell(settings({"defaults": {**LIMITS, **self.meaning, "stretch": rate > 10.0, "shadows": shadows}}))

    @rule(seconds=st.sampled_from([5, 8, 10]))
    def time_that_passes(self, seconds: int) -> None:
        self.now += 1000 * seconds

    @rule()
    def a_snapshot(self) -> None:
        self.changelog.take(self.stage)
        self.stored = len(self.log)

    @rule()
    def a_crash(self) -> None:
        self.stage = self.changelog.restored(**LIMITS)
        folded(self.log[self.stored :], self.stage, self.log[: self.stored])

    @precondition(lambda self: self.stored > 0)
    @rule()
    def another_release(self) -> None:
        self.stage = stage(**LIMITS)
        self.stage.load(msgspec.msgpack.encode([3, "of another layout"]), self.changelog.entries)
        carry_out_rebuilds(self.stage, self.log)

    @rule()
    def an_audit(self) -> None:
        for _ in self.stage.audit():
            pass

    @invariant()
    def sums_follow_from_the_ledger(self) -> None:
        if hasattr(self, "stage"):
            assert not self.stage.needs_rebuild
            assert self.stage.agrees()

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            reference = Reference(self.said)
            shortest, _ = folded(log_of(reference.shortest_log()), stage(vote_rule="half", **self.meaning))
            assert order_free_columns(self.stage) == order_free_columns(shortest)


LongLife.TestCase.settings = options(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestLongLife = LongLife.TestCase

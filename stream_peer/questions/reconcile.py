"""When questions are due, and what is written of them then."""

from stream_peer.events.times import NEVER, YEAR_1900, Milliseconds
from stream_peer.log.clock import Agenda, Clock
from stream_peer.log.stage import Effects, Record, Warned
from stream_peer.questions.contradictions import missing
from stream_peer.questions.rounds import reconcile
from stream_peer.questions.routing import Routes
from stream_peer.questions.schedule import RoundPlan, Terms
from stream_peer.questions.state import QuestionState
from stream_peer.questions.store import QuestionStore


class Reconciler:
    """Brings what was emitted of a partition's questions up to date with what they say, as the clock moves on.

    Attributes
    ----------
    agenda : Agenda
        When questions are due next, by the partition's clock.
    ticks : Agenda
        When a tick is needed if the clock has not met a deadline.
    deadlines : Agenda
        When the next round is due of questions that have one to come: of those that are open.
    """

    __slots__ = ("_clock", "_routes", "_store", "agenda", "deadlines", "ticks")

    def __init__(self, routes: Routes, clock: Clock, store: QuestionStore) -> None:
        self._routes = routes
        self._clock = clock
        self._store = store
        self.agenda = Agenda()
        self.ticks = Agenda()
        self.deadlines = Agenda()

    def attend(
        self, question: QuestionState, record: Record, effects: Effects, unchanged_before: Milliseconds = YEAR_1900
    ) -> None:
        """Reconcile a question, and look when it is due again."""
        self._routes.begin(record)
        plan = question.plan()
        written = len(effects.outputs)
        is_first = question.terms is None
        for feed_record, value in reconcile(
            question, plan, self._clock.now, self._routes.next_source, unchanged_before
        ):
            effects.outputs.append(self._routes.to_feed_log(feed_record, value, record))
        if is_first and question.terms is not None:
            question.terms_at = record.timestamp
        if len(effects.outputs) > written:
            self._store.touch(question)
            if is_first and question.terms is not None:
                warn(question, "missing-times", missing(question, plan), effects)
        self.schedule(question, plan)

    def attend_due(self, record: Record, effects: Effects) -> None:
        """Attend to every question that is due."""
        now = self._clock.now
        for question_id in self.agenda.due(now):
            self.attend(self._store.live[question_id], record, effects, unchanged_before=NEVER)
        if now >= self._store.stubs.next_end:
            self._store.expire(now)

    def schedule(self, question: QuestionState, plan: RoundPlan) -> None:
        """Note when the question is due next; let its history go if that time has come."""
        now = self._clock.now
        settings = question.settings
        grace = (question.terms or Terms.of(settings)).grace
        closed = 0 if plan.close is None else plan.close + grace
        ends = max(closed, question.touched) + settings.history_for
        if ends <= now:
            self.discard(question)
            return
        waiting = [boundary + grace for boundary in plan.boundaries if boundary + grace > now]
        if closed > now:
            waiting.append(closed)
        due = min(waiting, default=None)
        self.agenda.put(question.id, ends if due is None else min(due, ends))
        self.deadlines.put(question.id, due)
        idle_after = settings.idle_after if question.history.experts else None
        self.ticks.put(question.id, None if due is None or idle_after is None else due + idle_after)
        question.watch(plan, now - grace)

    def discard(self, question: QuestionState, *, wholly: bool = False) -> None:
        """Let a question's history go; what was emitted of it leaves a stub, unless it is to go ``wholly``."""
        for agenda in (self.agenda, self.ticks, self.deadlines):
            agenda.put(question.id, None)
        leaves_stub = question.terms is not None and not wholly
        self._store.shrink(question, question.stub(self._clock.now) if leaves_stub else None)

    def clear(self) -> None:
        """Remove all deadlines."""
        for agenda in (self.agenda, self.ticks, self.deadlines):
            agenda.clear()


def warn(question: QuestionState, code: str, sentence: str | None, effects: Effects) -> None:
    """Count what is wrong with a question's times, if anything is; the first time it is a warning as well."""
    if sentence is None:
        return
    effects.counts[code, ""] += 1
    if not question.warned:
        question.warned = True
        effects.warnings.append(Warned(code, question.feed, question.id, sentence))

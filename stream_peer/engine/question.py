"""The question stage: one partition of ``forecast-events`` in, rounds and outcomes of its questions out.

Rounds are a function of (history, schedule, truth, clock), so late events, moved closes, reopened questions, cuts in
the past and backfills all take the same path: merge what the record says, then reconcile what is due with what was
emitted.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from stream_peer.engine.clock import Agenda, Clock
from stream_peer.engine.dead_letters import refuse
from stream_peer.engine.merging import counts_from, merge_question, merged_truth, note_feed, plausible_moment
from stream_peer.engine.question_state import DEFAULT_FEED, QuestionState, Told
from stream_peer.engine.question_store import SCHEMA, Head, QuestionStore, decode_head, encode_head
from stream_peer.engine.rounds import outcome_record, reconcile
from stream_peer.engine.routing import Routes
from stream_peer.engine.schedule import Plan, Terms
from stream_peer.engine.sources import Seen, is_broadcast, source_of
from stream_peer.engine.stage import Effects, NeverRefolds, Record, Snapshot
from stream_peer.errors import RejectedEvent, SettingsError
from stream_peer.events.feed_settings import FeedSettingsBook, load_document
from stream_peer.events.incoming import Forecast, Forecasts, Question, Resolution, SettingsControl, Tick, decode, moment
from stream_peer.events.rejections import Reason
from stream_peer.events.times import NEVER, YEAR_2000, Milliseconds, to_milliseconds


class QuestionStage(NeverRefolds):
    """The fold of one partition of ``forecast-events``.

    Parameters
    ----------
    topic : str
        Physical name of the topic, for dead letters.
    partition, partitions : int
        Which of how many partitions of it this is.
    feed_log_partitions : int
        Partitions of the feed-log.
    settings : FeedSettingsBook, optional
        In force until the log says otherwise; the built-in defaults if left out.
    incarnation : int
        How often the topic was found deleted and made anew.
    """

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        partitions: int,
        feed_log_partitions: int,
        settings: FeedSettingsBook | None = None,
        incarnation: int = 0,
    ) -> None:
        self._topic = topic
        self._routes = Routes(partition, partitions, feed_log_partitions, incarnation)
        self._book = settings if settings is not None else load_document({})
        self._document: dict[str, Any] | None = None
        self._clock = Clock(self._book.default.skew)
        self._agenda = Agenda()
        self._ticks = Agenda()
        self._seen = Seen()
        self._store = QuestionStore()
        self._live = self._store.live
        self._handlers: dict[type, Callable[[Any, Record, Effects], None]] = {
            Forecast: self._forecast,
            Forecasts: self._forecasts,
            Question: self._question,
            Resolution: self._resolution,
            SettingsControl: self._settings,
            Tick: self._tick,
        }

    @property
    def clock(self) -> Milliseconds:
        """The partition's time: the largest credible time stated in its records; 0 before the first."""
        return self._clock.now

    @property
    def incarnation(self) -> int:
        """How often the source topic was found deleted and made anew."""
        return self._routes.incarnation

    def plan_of(self, question_id: str) -> Plan | None:
        """The moments of a question, as its events so far give them; None if it is unknown, or a stub."""
        question = self._live.get(question_id)
        return None if question is None else question.plan()

    def step(self, record: Record, effects: Effects) -> None:
        """Fold one record."""
        try:
            key = record.key
            if key is not None and not key.isascii():
                _check_key(key)
            event = decode(record.value)
            handler = self._handlers.get(type(event))
            if handler is None:
                msg = "this type belongs on control-events"
                raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=msg)  # noqa: TRY301
            if record.headers and self._is_repeat(record, type(event), effects):
                return
            handler(event, record, effects)
        except RejectedEvent as rejection:
            refuse(record, self._topic, self._routes.partition, rejection, effects)

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        """Nothing: this stage has no outputs per feed."""

    def changed_feeds(self) -> Mapping[str, Milliseconds]:
        """None, ever."""
        return {}

    def deadline(self) -> Milliseconds | None:
        """When a tick should be written if the clock has not met the next deadline; None: nothing waits."""
        return self._ticks.next if self._ticks.next < NEVER else None

    def snapshot(self) -> Snapshot:
        """State changed since the last call."""
        head = Head(
            schema=SCHEMA,
            clock=self._clock.now,
            seen=list(self._seen),
            document=self._document,
            incarnation=self._routes.incarnation,
        )
        return Snapshot(self._store.changes(), encode_head(head))

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Take up the state that an earlier owner left."""
        if head is None:
            return
        stored = decode_head(head)
        if stored.document is not None:
            self._adopt(load_document(stored.document), stored.document)
        self._clock.now = stored.clock
        self._seen = Seen(stored.seen)
        self._routes.incarnation = max(self._routes.incarnation, stored.incarnation)
        self._store.load(entries, self._book.default, self._routes.is_foreign)
        for question in list(self._live.values()):
            question.settings = self._book.of(question.feed)
            self._schedule(question, question.plan())

    # One handler a type: check, merge, hear the time, attend to what became due.

    def _forecast(self, event: Forecast, record: Record, effects: Effects) -> None:
        # The hot path: what is rare is left to others, and what is cheap is written out.
        question = self._live.get(event.question_id)
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        at = to_milliseconds(event.at)
        record_time = record.timestamp
        settings = question.settings
        if not YEAR_2000 <= at <= record_time + settings.horizon:
            plausible_moment(event.at, "at", record_time, settings.horizon)
        if event.feed is not None:
            self._note_feed(question, event.feed, at)
        effective = at
        limit = settings.backdate_limit
        if question.resolved or (limit is not None and at < record_time - limit):
            effective = counts_from(question, at, record_time)
        surplus = question.history.add(event.expert_id, effective, event.probability)
        if surplus or effective != at or question.heard_from is not None:
            self._note_unusual(question, (event.expert_id,), at, effective, effects)
        effects.counts["event", "forecast"] += 1
        self._attend_forecast(question, at, effective, record, effects)

    def _forecasts(self, event: Forecasts, record: Record, effects: Effects) -> None:
        question = self._live.get(event.question_id)
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        at = plausible_moment(event.at, "at", record.timestamp, question.settings.horizon) or 0
        if event.feed is not None:
            self._note_feed(question, event.feed, at)
        effective = counts_from(question, at, record.timestamp)
        surplus = question.history.add_all(event.forecasts, effective)
        if surplus or effective != at or question.heard_from is not None:
            self._note_unusual(question, event.forecasts, at, effective, effects)
        effects.counts["event", "forecasts"] += 1
        self._attend_forecast(question, at, effective, record, effects)

    def _question(self, event: Question, record: Record, effects: Effects) -> None:
        question = self._live.get(event.question_id)
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        stated = merge_question(question, event, record.timestamp, self._book)
        effects.counts["event", "question"] += 1
        opens, closes = question.opens, question.closes
        if opens and closes and closes[1] < opens[1]:
            effects.counts["contradictory-times", ""] += 1
        self._attend_all(question, stated, record, effects)

    def _resolution(self, event: Resolution, record: Record, effects: Effects) -> None:
        if self._store.is_stub(event.question_id):
            self._resolve_stub(event, record, effects)
            return
        question = self._live.get(event.question_id)
        known = question is not None
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        truth, at = merged_truth(question.truth, event, record.timestamp, question.settings.horizon)
        question.truth = truth
        question.resolved = truth.verdict != "open"
        note_feed(question, event.feed, at, self._book)
        effects.counts["event", "resolution"] += 1
        if not known:
            effects.counts["unknown-question", ""] += 1
        self._attend_all(question, at, record, effects)

    def _settings(self, event: SettingsControl, record: Record, effects: Effects) -> None:
        if not is_broadcast(record.headers):
            msg = "settings belong on control-events: write them with `stream-peer settings apply`"
            raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=msg)
        try:
            book = load_document(event.document)
        except SettingsError as error:
            raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
        self._adopt(book, event.document)
        effects.counts["event", "settings"] += 1
        for question_id in sorted(self._live):
            question = self._live[question_id]
            question.settings = book.of(question.feed)
            self._attend(question, record, effects, unchanged_before=NEVER)

    def _tick(self, event: Tick, record: Record, effects: Effects) -> None:
        if not self._clock.hear(moment(event.now, "now"), record.timestamp):
            effects.counts["tick-ahead", ""] += 1
            return
        effects.counts["event", "tick"] += 1
        self._attend_due(record, effects)

    # What handlers share.

    def _note_feed(self, question: QuestionState, feed: str, at: Milliseconds) -> None:
        if note_feed(question, feed, at, self._book):
            question.alert = question.replan_before = NEVER

    def _note_unusual(
        self,
        question: QuestionState,
        experts: Collection[str],
        at: Milliseconds,
        effective: Milliseconds,
        effects: Effects,
    ) -> None:
        """After forecasts were added: those that count from another moment than stated, surplus, chunks."""
        history = question.history
        if effective != at:
            effects.counts["late", ""] += len(experts)
            for expert_id in experts:
                history.note_moved(expert_id, at, effective)
        surplus = history.surplus(experts)
        if surplus:
            moments = sorted({*question.plan().boundaries, *question.emitted})
            effects.counts["history-trimmed", ""] += sum(history.trim(expert_id, moments) for expert_id in surplus)
        if question.heard_from is not None:
            question.heard_from.update(experts)

    def _attend_forecast(
        self, question: QuestionState, at: Milliseconds, effective: Milliseconds, record: Record, effects: Effects
    ) -> None:
        question.touched = record.timestamp
        if not question.dirty:
            self._store.touch(question)
        clock = self._clock
        if at > clock.now:
            clock.hear(at, record.timestamp)
        if effective <= question.alert:
            unchanged_before = effective if effective >= question.replan_before else 0
            self._attend(question, record, effects, unchanged_before)
        if clock.now >= self._agenda.next:
            self._attend_due(record, effects)

    def _attend_all(
        self, question: QuestionState, stated: Milliseconds | None, record: Record, effects: Effects
    ) -> None:
        question.touched = record.timestamp
        self._store.touch(question)
        if stated is not None:
            self._clock.hear(stated, record.timestamp)
        self._attend(question, record, effects)
        self._attend_due(record, effects)

    def _attend_due(self, record: Record, effects: Effects) -> None:
        for question_id in self._agenda.due(self._clock.now):
            self._attend(self._live[question_id], record, effects, unchanged_before=NEVER)

    def _attend(
        self, question: QuestionState, record: Record, effects: Effects, unchanged_before: Milliseconds = 0
    ) -> None:
        """Reconcile a question, and look when it is due again."""
        self._routes.begin(record)
        plan = question.plan()
        written = len(effects.outputs)
        for feed_record, value in reconcile(
            question, plan, self._clock.now, self._routes.next_source, unchanged_before
        ):
            effects.outputs.append(self._routes.to_feed_log(feed_record, value, record))
        if len(effects.outputs) > written:
            self._store.touch(question)
        self._schedule(question, plan)

    def _schedule(self, question: QuestionState, plan: Plan) -> None:
        """Note when the question is due next; let its history go if that time has come."""
        now = self._clock.now
        settings = question.settings
        grace = (question.terms or Terms.of(settings)).grace
        closed = 0 if plan.close is None else plan.close + grace
        ends = max(closed, question.touched) + settings.history_for
        if ends <= now:
            self._agenda.put(question.id, None)
            self._ticks.put(question.id, None)
            self._store.shrink(question, question.stub() if question.terms else None)
            return
        waiting = [boundary + grace for boundary in plan.boundaries if boundary + grace > now]
        if closed > now:
            waiting.append(closed)
        due = min(waiting, default=None)
        self._agenda.put(question.id, ends if due is None else min(due, ends))
        idle_after = settings.idle_after if question.history.experts else None
        self._ticks.put(question.id, None if due is None or idle_after is None else due + idle_after)
        question.watch(plan, now - grace)

    def _unusual(self, question_id: str, feed: str | None, record: Record, effects: Effects) -> QuestionState | None:
        """The question of an event that is new, or at home elsewhere; None if the event ends here."""
        if self._forwards(question_id, record, effects):
            return None
        if self._store.is_stub(question_id):
            effects.counts["too-late", ""] += 1
            return None
        known = self._live.get(question_id)
        settings = self._book.of(feed or DEFAULT_FEED)
        return known or QuestionState(question_id, settings, foreign=self._routes.is_foreign(question_id))

    def _forwards(self, question_id: str, record: Record, effects: Effects) -> bool:
        """Send an event that came to the wrong partition to the right one; False if it is at home here."""
        if not self._routes.is_elsewhere(question_id, record.headers):
            return False
        effects.outputs.append(self._routes.forwarded(question_id, record))
        effects.counts["forwarded", ""] += 1
        return True

    def _resolve_stub(self, event: Resolution, record: Record, effects: Effects) -> None:
        stub = self._store.stub(event.question_id)
        if stub is None or self._forwards(event.question_id, record, effects):
            return
        truth, at = merged_truth(stub.truth, event, record.timestamp, self._book.of(stub.feed).horizon)
        told = stub.told
        if truth.verdict != (told.verdict if told else "open"):
            self._routes.begin(record)
            told = Told(stub.feed, truth.verdict)
            outcome = outcome_record(told, event.question_id, self._routes.next_source())
            effects.outputs.append(self._routes.to_feed_log(*outcome, record))
        self._store.put_stub(event.question_id, msgspec.structs.replace(stub, truth=truth, told=told))
        effects.counts["event", "resolution"] += 1
        self._clock.hear(at, record.timestamp)
        self._attend_due(record, effects)

    def _is_repeat(self, record: Record, event_type: type, effects: Effects) -> bool:
        """Whether a forwarded or broadcast record was folded before.

        A source that no record of ours could name is not noted: it would hide later ones, or let the head grow.
        """
        source = source_of(record.headers)
        if source is None or not self._routes.is_likely(source, event_type) or self._seen.add(source):
            return False
        effects.counts["duplicate", ""] += 1
        return True

    def _adopt(self, book: FeedSettingsBook, document: dict[str, Any]) -> None:
        self._book = book
        self._document = document
        self._clock.skew = book.default.skew


def _check_key(key: bytes) -> None:
    try:
        key.decode()
    except UnicodeDecodeError as error:
        raise RejectedEvent(Reason.KEY_NOT_UTF8, message=f"the key {key[:40]!r} is not UTF-8") from error

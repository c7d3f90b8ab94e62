"""The question stage: one partition of ``forecast-events`` in, rounds and outcomes of its questions out.

Rounds are a function of (history, schedule, truth, clock), so late events, moved closes, reopened questions, cuts in
the past and backfills all take the same path: merge what the record says, then reconcile what is due with what was
emitted.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import msgspec

from stream_peer.errors import ForeignSecretError, RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import Source
from stream_peer.events.incoming import (
    AnyEvent,
    ExpertControl,
    FeedControl,
    FeedImport,
    Forecast,
    Forecasts,
    GroupForecast,
    GroupResolution,
    PartialForecasts,
    Question,
    Resolution,
    SettingsControl,
    SettingsStanding,
    SignaturesFromHere,
    Tick,
    decode,
    moment,
)
from stream_peer.events.rejections import Reason
from stream_peer.events.times import NEVER, YEAR_1900, YEAR_2000, Milliseconds, to_milliseconds
from stream_peer.log.clock import Clock
from stream_peer.log.dead_letters import bare, refuse
from stream_peer.log.draws import fingerprint
from stream_peer.log.ids import Names, erased_rejection
from stream_peer.log.producers import Producers
from stream_peer.log.signatures import Signatures, disbelieved, is_signed, names_ours
from stream_peer.log.sources import MARKERS, DedupWatermarks, source_of
from stream_peer.log.stage import Effects, Record, Snapshot, Warned
from stream_peer.questions.controls import QuestionControls, refuse_sender
from stream_peer.questions.dating import BEGINNING
from stream_peer.questions.groups import Check, GroupEvents
from stream_peer.questions.merging import (
    counts_from,
    feed_with,
    merge_question,
    merged_truth,
    note_feed,
    plausible_moment,
)
from stream_peer.questions.plain import PlainForecasts
from stream_peer.questions.producer_gate import Handler, ProducerGate
from stream_peer.questions.rounds import Reconciler, outcome_record, provisional_record, warn
from stream_peer.questions.routing import Routes
from stream_peer.questions.schedule import RoundPlan, contradiction_of_times
from stream_peer.questions.state import DEFAULT_FEED, NOT_TOLD, QuestionState, Stub, Told
from stream_peer.questions.store import SCHEMA, QuestionHead, QuestionStore, decode_question_head, encode_head
from stream_peer.settings.feed.document import FeedSettingsBook, load_document
from stream_peer.settings.feed.model import FeedSettings

_HOUR: Milliseconds = 3_600_000
_OF_QUESTIONS = (Forecast, GroupForecast, Forecasts, Question, Resolution, GroupResolution)


class QuestionStage:
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
        In force until the log says otherwise; the defaults if left out.
    secret : bytes
        The release's: erased ids are recognised by digests made with it.
    producers : Producers, optional
        Who may say what; everybody may say everything if left out.
    signatures : Signatures, optional
        Sign what is forwarded, and tell which records the service wrote itself.

    Attributes
    ----------
    needs_marker : bool
        The state is from before signatures: until a marker comes, no header of ours is believed.
    """

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        partitions: int,
        feed_log_partitions: int,
        settings: FeedSettingsBook | None = None,
        secret: bytes = b"",
        producers: Producers | None = None,
        signatures: Signatures | None = None,
    ) -> None:
        self._topic = topic
        self._signatures = signatures or Signatures()
        self._routes = Routes(partition, partitions, feed_log_partitions, 0, self._signatures)
        self._secret = secret
        book = settings if settings is not None else load_document({})
        self._clock = Clock(book.default.skew)
        self._seen = DedupWatermarks()
        self._warns_from: Milliseconds = 0
        self.needs_marker = False
        self._store = QuestionStore(book.of)
        self._reconciler = Reconciler(self._routes, self._clock, self._store)
        around = self._routes, self._clock, self._store, self._reconciler
        self._controls = QuestionControls(*around, book=book, secret=secret)
        # Attributes for the hot path:
        self._live = self._store.live
        self._periods, self._names = self._controls.periods, self._controls.names
        self._digests = self._controls.erased.digests
        self._unknown: list[str] = []
        self._agenda = self._reconciler.agenda
        self._handlers = self._own_handlers()
        self._plain: PlainForecasts | None = None
        check: Check = lambda _event, _record: None  # noqa: E731
        if producers is None:
            known = self._periods, self._names, self._digests
            self._plain = PlainForecasts(self._store, self._clock, self._agenda, *known, self._note_unusual)
        else:
            experts = self._controls.erased, self._names
            gate = ProducerGate(producers, topic, self._routes, self._clock, self._store, *experts)
            self._handlers.update(gate.guarded(self._handlers))
            check = gate.check
        groups = GroupEvents(self._routes, self._store, self._forwards, check, self._question)
        self._handlers.update(groups.around(self._handlers))

    def _own_handlers(self) -> dict[type, Handler]:
        """The handler of each type of event."""
        return {
            Forecast: self._forecast,
            Forecasts: self._forecasts,
            PartialForecasts: self._forecasts,
            Question: self._question,
            Resolution: self._resolution,
            ExpertControl: self._controls.change_expert,
            FeedControl: self._controls.change_feed,
            FeedImport: self._controls.take_in,
            SettingsControl: self._controls.change_settings,
            Tick: self._tick,
            SignaturesFromHere: self._trust,
        }

    @property
    def clock(self) -> Milliseconds:
        """The partition's time: the largest credible time stated in its records; 0 before the first."""
        return self._clock.now if self._clock.now > YEAR_1900 else 0

    @property
    def generation(self) -> int:
        """Tells the source topic from one that was deleted under the same name; 0 if that is not known."""
        return self._routes.generation

    @property
    def open_questions(self) -> int:
        """Questions with a round still to come."""
        return len(self._reconciler.deadlines)

    @property
    def next_deadline(self) -> Milliseconds | None:
        """When the next of these rounds is due, by the partition's clock; None: no question is open."""
        due = self._reconciler.deadlines.next
        return due if due < NEVER else None

    @property
    def settings_hash(self) -> str:
        """Names the feed settings in force."""
        return self._controls.book.hash

    def is_marker(self, record: Record) -> bool:
        """Whether a record is a marker: signatures count from there on."""
        if not names_ours(record.headers) or self._signatures.believed(record, self._routes.partition) is not record:
            return False
        try:
            event = decode(record.value)
        except RejectedEvent:
            return False
        return isinstance(event, SignaturesFromHere) and event.marks is not None

    def plan_of(self, question_id: str) -> RoundPlan | None:
        """The moments of a question, as its events so far give them; None if it is unknown, or a stub."""
        question = self._live.get(question_id)
        return None if question is None else question.plan()

    def step(self, record: Record, effects: Effects) -> None:
        """Fold one record."""
        try:
            key = record.key
            if key is not None and not key.isascii():
                _check_key(key)
            unknown = self._unknown
            event = decode(record.value, unknown)
            handler = self._handlers[type(event)]
            if unknown:
                effects.note_unknown(self._feed_named(event), str(event.__struct_config__.tag), unknown)
                unknown.clear()
            if record.headers and names_ours(record.headers):
                self._step_signed(event, record, effects)
            else:
                handler(event, record, effects)
        except RejectedEvent as rejection:
            self._unknown.clear()
            self._refuse(bare(record) if rejection.reason == Reason.FORGOTTEN else record, rejection, effects)
        if self._routes.groups:
            effects.outputs += self._routes.changed_groups(self._store.parts_of, record)

    def steps(self, records: Sequence[Record], effects: Effects) -> int:
        """Fold records, the same as ``step`` for each, up to the first that causes outputs; return how many.

        What causes outputs takes long: the caller looks at the time in between.
        """
        written, done = len(effects.outputs), 0
        while done < len(records) and len(effects.outputs) == written:
            if self._plain is not None:
                done = self._plain.take(records, done, effects)
            if done < len(records):
                self.step(records[done], effects)
                done += 1
        return done

    def _feed_named(self, event: AnyEvent) -> str:
        """The feed that an event names, else that of its question, if it is known."""
        question = self._live.get(getattr(event, "question_id", ""))
        return getattr(event, "feed", None) or (DEFAULT_FEED if question is None else question.feed)

    def deadline(self) -> Milliseconds | None:
        """When a tick should be written if the clock has not met the next deadline; None: nothing waits."""
        due = self._reconciler.ticks.next
        return due if due < NEVER else None

    def snapshot(self) -> Snapshot:
        """State changed since the last call."""
        controls = self._controls
        changes = {**self._store.changes(), **controls.transfers.snapshot()}
        head = QuestionHead(
            schema=SCHEMA,
            clock=self._clock.now,
            seen=list(self._seen),
            document=controls.document,
            generation=self._routes.generation,
            stubs_since=self._store.stubs.since,
            forgotten=controls.erased.stored(),
            secret=fingerprint(self._secret) if self._digests else "",
            scrub=self._store.purges,
            signed=not self.needs_marker,
            periods=controls.periods.stored(),
            names={feed: names.given for feed, names in sorted(self._names.items())},
            deleted=dict(sorted(self._routes.deleted.items())),
        )
        return Snapshot(changes, encode_head(head))

    def begin_topic(self, generation: int, base: int, *, keep: bool) -> None:  # noqa: ARG002 - no revisions here
        """Begin at the start of a topic that was deleted and recreated, after ``load`` and before the first step.

        Sources go on growing: they name the next generation. With ``keep`` all that is known stays. Else the new log
        tells everything again; what stays is what it cannot tell: the settings in force, who was renamed or asked to be
        forgotten, and which sources were seen. Entries that were loaded go with the next snapshot.
        """
        self._routes.begin_topic(generation)
        if not keep:
            self._clock.now = YEAR_1900
            self._store.clear(self._controls.book.of)
            self._reconciler.clear()
            self._controls.transfers.clear()

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Take up the state that an earlier owner left.

        Raises
        ------
        StateError
            If this release cannot read it; as ForeignSecretError, if ids were forgotten under another secret.
        """
        if head is None:
            return
        stored = decode_question_head(head)
        if stored.secret and stored.secret != fingerprint(self._secret):
            raise ForeignSecretError(expected=stored.secret, given=fingerprint(self._secret))
        if stored.document is not None:
            self._controls.adopt(load_document(stored.document), stored.document, BEGINNING)
            self._periods.load(stored.periods)
        self._digests.update(stored.forgotten)
        self._names.update((feed, Names(given)) for feed, given in stored.names.items())
        self._routes.deleted.update(stored.deleted)
        self._clock.now = stored.clock
        self.needs_marker = not stored.signed
        self._seen = DedupWatermarks(stored.seen) if stored.signed else DedupWatermarks(stored.seen).of(MARKERS)
        self._routes.generation = stored.generation
        self._store.load(entries, self._controls.book.default, self._routes.is_foreign)
        self._controls.transfers.load(entries)
        self._store.stubs.since = stored.clock if stored.stubs_since is None else stored.stubs_since
        self._store.follow(self._controls.book.of, 0)
        for question in list(self._live.values()):
            question.settings = self._controls.book.of(question.feed)
            question.history.rules = self._periods.of(question.feed)
            self._reconciler.schedule(question, question.plan())
            if stored.scrub:
                self._store.rewrite(question)

    # One handler for each type but controls: check, merge, advance the clock, reconcile what is due.

    def _forecast(self, event: Forecast, record: Record, effects: Effects) -> None:
        question = self._live.get(event.question_id)
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        at = to_milliseconds(event.at)
        record_time = record.timestamp
        feed, settings, expert_id = event.feed, question.settings, event.expert_id
        if self._digests or self._names or (feed is not None and feed != question.feed):
            settings, expert_id = self._admitted(question, event, at)
        if not YEAR_2000 <= at <= record_time + settings.horizon:
            plausible_moment(event.at, "at", record_time, settings.horizon, is_history=settings.history)
        effective = at
        if self._may_count_later(question, settings, at, record_time):
            said = {expert_id: event.probability}
            effective = self._counts_from(question, feed, said, at, record_time, effects)
        if feed is not None:
            self._note_feed(question, feed, at)
        surplus = question.history.add(expert_id, event.probability, at, record_time, effective)
        if surplus or question.changed_experts is not None:
            self._note_unusual(question, (expert_id,), effects)
        effects.counts["event", "forecast"] += 1
        self._attend_forecast(question, at, effective, record, effects)

    def _forecasts(self, event: Forecasts, record: Record, effects: Effects) -> None:
        question = self._live.get(event.question_id)
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        settings, refused = question.settings, list[str]()
        if self._digests or self._names or (event.feed is not None and event.feed != question.feed):
            feed = self._feed_with(question, event.feed, to_milliseconds(event.at))
            settings = self._controls.book.of(feed)
            event = self._by_first_ids(event, feed)
            refused = self._controls.erased.among(feed, event.forecasts)
        if isinstance(event, PartialForecasts):
            self._refuse_entries(question, event, record, effects)
        if not refused:
            self._merge_forecasts(question, settings, event, record, effects)
            return
        bare_record = bare(record)
        self._refuse(bare_record, erased_rejection(len(refused), len(event.forecasts)), effects)
        others = {expert_id: p for expert_id, p in event.forecasts.items() if expert_id not in refused}
        if others:
            try:
                rest = msgspec.structs.replace(event, forecasts=others)
                self._merge_forecasts(question, settings, rest, bare_record, effects)
            except RejectedEvent as rejection:
                self._refuse(bare_record, rejection, effects)

    def _refuse_entries(
        self, question: QuestionState, event: PartialForecasts, record: Record, effects: Effects
    ) -> None:
        """One dead letter for all entries that cannot be used; it names no expert if one of them is erased."""
        feed = self._feed_with(question, event.feed, to_milliseconds(event.at))
        is_open = not self._controls.erased.among(feed, event.named)
        self._refuse(record if is_open else bare(record), event.rejection(names=is_open), effects)

    def _merge_forecasts(
        self, question: QuestionState, settings: FeedSettings, event: Forecasts, record: Record, effects: Effects
    ) -> None:
        stated = plausible_moment(event.at, "at", record.timestamp, settings.horizon, is_history=settings.history)
        at = stated or 0
        effective = at
        if self._may_count_later(question, settings, at, record.timestamp):
            effective = self._counts_from(question, event.feed, event.forecasts, at, record.timestamp, effects)
        if event.feed is not None:
            self._note_feed(question, event.feed, at)
        surplus = question.history.add_all(event.forecasts, at, record.timestamp, effective)
        if surplus or question.changed_experts is not None:
            self._note_unusual(question, event.forecasts, effects)
        effects.counts["event", "forecasts"] += 1
        effects.counts["forecasts", ""] += len(event.forecasts)
        self._attend_forecast(question, at, effective, record, effects)

    def _question(self, event: Question, record: Record, effects: Effects) -> None:
        question = self._live.get(event.question_id)
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        before = question.feed
        stated = merge_question(question, event, record.timestamp, self._controls.book)
        self._moved(question, before)
        effects.counts["event", "question"] += 1
        warn(question, "contradictory-times", contradiction_of_times(question), effects)
        self._attend_all(question, stated, record, effects)

    def _resolution(self, event: Resolution, record: Record, effects: Effects) -> None:
        stub = self._store.stub(event.question_id, self._clock.now)
        if stub is not None:
            self._resolve_stub(stub, event, record, effects)
            return
        question = self._live.get(event.question_id)
        known = question is not None
        if question is None or question.foreign:
            question = self._unusual(event.question_id, event.feed, record, effects)
            if question is None:
                return
        settings = question.settings
        so_far = question.provisional if event.provisional else question.truth
        truth, at = merged_truth(so_far, event, record.timestamp, settings.horizon, is_history=settings.history)
        if event.provisional:
            question.provisional = truth
        else:
            question.truth = truth
        before = question.feed
        note_feed(question, event.feed, at, self._controls.book)
        self._moved(question, before)
        effects.counts["event", "resolution"] += 1
        if not known:
            effects.counts["unknown-question", ""] += 1
        warn(question, "contradictory-times", contradiction_of_times(question), effects)
        self._attend_all(question, at, record, effects)

    def _tick(self, event: Tick, record: Record, effects: Effects) -> None:
        if not is_signed(record.headers):
            effects.counts["unsigned", "tick"] += 1
            raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message="only the service itself writes ticks")
        if not self._clock.hear(moment(event.now, "now"), record.timestamp):
            effects.counts["tick-ahead", ""] += 1
            return
        effects.counts["event", "tick"] += 1
        self._reconciler.attend_due(record, effects)

    def _trust(self, event: SignaturesFromHere, record: Record, effects: Effects) -> None:
        """Apply the content of ``control-events``; once it is complete, signatures count."""
        source = source_of(record.headers)
        if source is None or source.topic != MARKERS:
            raise refuse_sender(effects, "only `stream-peer repair` writes this type")
        for named in event.renamed:
            with suppress(RejectedEvent):  # the feed stage refused it as well
                self._controls.rename(named.feed, named.expert_id, named.rename, record, effects)
        erased = defaultdict[str, list[str]](list)
        for one in event.erased:
            erased[one.feed].append(one.expert_id)
        self._controls.erase(erased, record, effects)
        deleted = {one.feed: one.at for one in event.deleted}
        self._controls.drop(deleted)
        self._controls.note_deletions(deleted)
        if event.marks is not None:
            self._count_signatures(event.settings, event.marks, record, effects)
        effects.counts["event", "signatures-from-here"] += 1

    def _count_signatures(
        self, settings: SettingsStanding | None, marks: Collection[Source], record: Record, effects: Effects
    ) -> None:
        """Signatures count from here on. Sources seen without them are dropped."""
        known = self._seen.of(MARKERS, topics.CONTROL_EVENTS)
        newer = {mark.partition for mark in marks if known.is_ahead_of(mark)}
        if settings is not None and settings.partition not in newer:
            self._controls.put_in_force(settings.document, settings.at, record, effects)
        elif settings is None and self.needs_marker:
            self._controls.put_in_force(None, BEGINNING, record, effects)
        for mark in marks:
            known.add(mark)
        self._seen = known
        self.needs_marker = False

    # Shared by handlers.

    def _admitted(self, question: QuestionState, event: Forecast, at: Milliseconds) -> tuple[FeedSettings, str]:
        """Settings of the feed that a question belongs to with a forecast, and the first id of its expert there.

        Raises
        ------
        RejectedEvent
            If the expert is erased there.
        """
        feed = self._feed_with(question, event.feed, at)
        expert_id = self._controls.first_id(feed, event.expert_id)
        is_known = feed == question.feed and expert_id in question.history.experts
        if not is_known and self._controls.erased.among(feed, (expert_id,)):
            raise erased_rejection(1, 1)
        return self._controls.book.of(feed), expert_id

    def _by_first_ids(self, event: Forecasts, feed: str) -> Forecasts:
        """A batch in which each renamed expert has its first id. Of two ids of an expert in it, the last one counts."""
        if feed not in self._names:
            return event
        said = {self._controls.first_id(feed, expert_id): p for expert_id, p in event.forecasts.items()}
        return msgspec.structs.replace(event, forecasts=said)

    def _feed_with(self, question: QuestionState, feed: str | None, at: Milliseconds) -> str:
        """The feed that a question belongs to with an event that may name one."""
        return question.feed if feed is None or feed == question.feed else feed_with(question, feed, at)

    def _note_feed(self, question: QuestionState, feed: str, at: Milliseconds) -> None:
        before = question.feed
        if note_feed(question, feed, at, self._controls.book):
            question.alert = question.replan_before = NEVER
            self._moved(question, before)

    def _moved(self, question: QuestionState, before: str) -> None:
        """If a question has moved to another feed, apply that feed's dating, names and erased experts."""
        if question.feed != before:
            question.history.redate(self._periods.of(question.feed))
            self._controls.unite(question)
            self._controls.drop_erased(question)

    def _refuse(self, record: Record, rejection: RejectedEvent, effects: Effects) -> None:
        refuse(record, self._topic, self._routes.partition, rejection, effects)

    def _may_count_later(
        self, question: QuestionState, settings: FeedSettings, at: Milliseconds, record_time: Milliseconds
    ) -> bool:
        """Whether forecasts may count from a later moment than stated, by the settings of their feed."""
        limit = settings.backdate_limit
        is_late = limit is not None and at < record_time - limit
        return is_late or question.history.is_resolved or record_time < self._periods.since

    def _counts_from(
        self,
        question: QuestionState,
        feed: str | None,
        forecasts: Mapping[str, float | None],
        at: Milliseconds,
        record_time: Milliseconds,
        effects: Effects,
    ) -> Milliseconds:
        """From when forecasts count that may name another feed than their question's; NEVER: none of them is used."""
        feed = self._feed_with(question, feed, at)
        rules = self._periods.of(feed)
        counts = counts_from(question, rules, at, record_time)
        if counts == at:
            return at
        repeated, overtaken = question.history.unused_of(rules, forecasts, at)
        used = len(forecasts) - len(repeated) - len(overtaken)
        for kind, number in (("late", used), ("repeated", len(repeated)), ("overtaken", len(overtaken))):
            effects.note(feed, kind, number)
        return counts if used else NEVER

    @staticmethod
    def _note_unusual(question: QuestionState, experts: Collection[str], effects: Effects) -> None:
        """After forecasts were added: trim surplus entries, and note changed chunks."""
        history = question.history
        surplus = history.surplus(experts)
        if surplus:
            moments = sorted({*question.plan().boundaries, *question.emitted})
            effects.note(question.feed, "history-trimmed", sum(history.trim(one, moments) for one in surplus))
            effects.busy_experts.update((question.feed, expert) for expert in surplus)
        if question.changed_experts is not None:
            question.changed_experts.update(experts)

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
            unchanged_before = effective if question.replan_before <= effective < NEVER else 0
            self._reconciler.attend(question, record, effects, unchanged_before)
        if clock.now >= self._agenda.next:
            self._reconciler.attend_due(record, effects)

    def _attend_all(
        self, question: QuestionState, stated: Milliseconds | None, record: Record, effects: Effects
    ) -> None:
        question.touched = record.timestamp
        self._store.touch(question)
        if stated is not None:
            self._clock.hear(stated, record.timestamp)
        self._reconciler.attend(question, record, effects)
        self._reconciler.attend_due(record, effects)

    def _unusual(self, question_id: str, feed: str | None, record: Record, effects: Effects) -> QuestionState | None:
        """The question of an event that is new or has another partition; None if nothing is left to do."""
        if self._forwards(question_id, record, effects):
            return None
        stub = self._store.stub(question_id, self._clock.now)
        if stub is not None:
            effects.note(stub.feed, "too-late", 1)
            return None
        known = self._live.get(question_id)
        settings = self._controls.book.of(feed or DEFAULT_FEED)
        if known is None:
            known = QuestionState(question_id, settings, foreign=self._routes.is_foreign(question_id))
            known.history.redate(self._periods.of(known.feed))
        return known

    def _forwards(self, question_id: str, record: Record, effects: Effects) -> bool:
        """Forward an event that came to the wrong partition; False if this is the right one."""
        if not self._routes.is_elsewhere(question_id, record.headers):
            return False
        effects.outputs.append(self._routes.forwarded(question_id, record))
        effects.counts["forwarded", ""] += 1
        return True

    def _resolve_stub(self, stub: Stub, event: Resolution, record: Record, effects: Effects) -> None:
        if self._forwards(event.question_id, record, effects):
            return
        settings = self._controls.book.of(stub.feed)
        so_far = None if event.provisional else stub.truth
        truth, at = merged_truth(so_far, event, record.timestamp, settings.horizon, is_history=settings.history)
        told = stub.told
        if event.provisional:
            if told is None or told.verdict == "open":
                self._routes.begin(record)
                source = self._routes.next_source()
                shown = provisional_record(Told(stub.feed, truth.verdict), event.question_id, source)
                effects.outputs.append(self._routes.to_feed_log(*shown, record))
        elif truth.verdict != (told.verdict if told else "open"):
            self._routes.begin(record)
            told = (told or NOT_TOLD).then(stub.feed, truth.verdict)
            outcome = outcome_record(told, event.question_id, self._routes.next_source())
            effects.outputs.append(self._routes.to_feed_log(*outcome, record))
        effects.counts["event", "resolution"] += 1
        self._clock.hear(at, record.timestamp)
        news = max(self._clock.now, record.timestamp)
        if not event.provisional:
            self._store.put_stub(event.question_id, msgspec.structs.replace(stub, truth=truth, told=told, news=news))
        self._reconciler.attend_due(record, effects)

    def _step_signed(self, event: AnyEvent, record: Record, effects: Effects) -> None:
        """Fold a record with headers of the service. Unsigned ones are ignored."""
        believed = self._signatures.believed(record, self._routes.partition)
        if believed is not record:
            self._note_unsigned(event, record, effects)
        elif self.needs_marker and not isinstance(event, SignaturesFromHere):
            believed = disbelieved(record)
        elif self._is_repeat(record, type(event), effects):
            return
        self._handlers[type(event)](event, believed, effects)

    def _note_unsigned(self, event: AnyEvent, record: Record, effects: Effects) -> None:
        """Count headers of the service without a valid signature; log at most one line an hour."""
        if isinstance(event, _OF_QUESTIONS):  # all others are refused and counted there
            effects.counts["unsigned", "event"] += 1
        if record.timestamp >= self._warns_from:
            self._warns_from = record.timestamp + _HOUR
            place = f"{self._topic}-{self._routes.partition}, offset {record.offset}"
            msg = f"{place}: a header that only the service writes has no valid signature, and is ignored"
            effects.warnings.append(Warned("unsigned-record", "", "", msg))

    def _is_repeat(self, record: Record, event_type: type, effects: Effects) -> bool:
        """Whether a forwarded or broadcast record was folded before.

        A source that no record of ours could name is not noted: it would hide later ones, or let the head grow.
        """
        source = source_of(record.headers)
        if source is None or not self._routes.is_likely(source, event_type) or self._seen.add(source):
            return False
        effects.counts["duplicate", ""] += 1
        return True


def _check_key(key: bytes) -> None:
    try:
        key.decode()
    except UnicodeDecodeError as error:
        raise RejectedEvent(Reason.KEY_NOT_UTF8, message=f"the key {key[:40]!r} is not UTF-8") from error

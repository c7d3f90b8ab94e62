"""Rounds: what must have been emitted of a question by now, compared with what was.

``reconcile`` compares one question; ``Reconciler`` knows when which question of a partition is due.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from stream_peer.events.feed_log import (
    FeedLogRecord,
    OutcomeRevealed,
    ProvisionalOutcome,
    QuestionArrived,
    QuestionMoved,
    Round,
    RoundWithdrawn,
    Source,
    Verdict,
    encode_feed_log,
)
from stream_peer.events.times import NEVER, YEAR_1900, Milliseconds
from stream_peer.events.topics import MAX_RECORD_BYTES
from stream_peer.log.clock import Agenda, Clock
from stream_peer.log.stage import Effects, Record, Warned
from stream_peer.questions.history import StandingForecasts
from stream_peer.questions.routing import Routes
from stream_peer.questions.schedule import RoundPlan, Terms, missing_times
from stream_peer.questions.state import NOT_TOLD, Emitted, QuestionState, Told
from stream_peer.questions.store import QuestionStore

_DIGEST_BYTES = 12

NextSource = Callable[[], Source]

_encode_content = msgspec.msgpack.Encoder().encode


def content_digest(boundary: Milliseconds, standing: StandingForecasts, weight: float, *, final: bool) -> bytes:
    """A digest of a round's content: equal content has the same digest."""
    content = _encode_content((boundary, final, weight, standing.experts, standing.probabilities))
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def reconcile(
    question: QuestionState,
    plan: RoundPlan,
    now: Milliseconds,
    next_source: NextSource,
    unchanged_before: Milliseconds = YEAR_1900,
) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """Bring what was emitted of a question up to date: records to append, each with its bytes.

    A move comes first, then withdrawals, then rounds by boundary, then the outcome. The first round fixes the terms.

    Parameters
    ----------
    question : QuestionState
        ``emitted``, ``told`` and ``terms`` are updated.
    plan : Plan
        Its moments now.
    now : int
        The partition's clock: boundaries up to ``grace`` before it are due.
    next_source : callable
        Gives each record its source.
    unchanged_before : int
        Boundaries before it need no look: only forecasts that count from then on are new.
    """
    terms = question.terms or Terms.of(question.settings)
    due = [boundary for boundary in plan.boundaries if boundary + terms.grace <= now]
    looked_at = [moment for moment in due if moment >= unchanged_before or moment not in question.emitted]
    fresh: dict[Milliseconds, tuple[StandingForecasts, Emitted]] = {}
    gone = set(question.emitted).difference(due)
    standings = question.history.standing_at(looked_at, terms.forecast_for)
    for boundary, standing in zip(looked_at, standings, strict=True):
        digest = content_digest(boundary, standing, _weight(question), final=boundary == plan.close)
        told = question.emitted.get(boundary)
        if not standing.experts:
            gone.update(() if told is None else (boundary,))
        elif told is None or told.digest != digest or told.feed != question.feed:
            fresh[boundary] = standing, Emitted(question.feed, digest)
    yield from _move_records(question, next_source)
    moved = {boundary for boundary in fresh if _is_elsewhere(question, boundary)}
    for boundary in sorted(gone | moved):
        feed = question.emitted.pop(boundary).feed
        yield _encoded(RoundWithdrawn(src=next_source(), feed=feed, question_id=question.id, boundary=boundary))
    for boundary, (standing, emitted) in fresh.items():
        question.emitted[boundary] = emitted
        if boundary == plan.close:
            yield from _final_records(question, boundary, standing, terms, next_source)
        else:
            yield from _round_records(question, boundary, standing, next_source)
    if question.emitted:
        question.terms = terms
        question.published_in = question.published_in or (question.feed, 0)
    yield from _outcome_records(question, plan, now - terms.grace, next_source)
    yield from _provisional_records(question, next_source)


def refresh_emitted(question: QuestionState, plan: RoundPlan) -> None:
    """Compute the digests of emitted rounds without experts that were dropped: readers of the feed-log drop them, too.

    A round that has no other expert counts as not emitted.
    """
    terms = question.terms or Terms.of(question.settings)
    boundaries = sorted(question.emitted)
    for boundary, standing in zip(
        boundaries, question.history.standing_at(boundaries, terms.forecast_for), strict=True
    ):
        feed = question.emitted.pop(boundary).feed
        if standing.experts:
            digest = content_digest(boundary, standing, _weight(question), final=boundary == plan.close)
            question.emitted[boundary] = Emitted(feed, digest)


def outcome_record(told: Told, question_id: str, source: Source) -> tuple[FeedLogRecord, bytes]:
    """The feed-log record of an outcome."""
    return _encoded(OutcomeRevealed(src=source, feed=told.feed, question_id=question_id, outcome=told.verdict))


def provisional_record(told: Told, question_id: str, source: Source) -> tuple[FeedLogRecord, bytes]:
    """The feed-log record of a provisional outcome."""
    return _encoded(ProvisionalOutcome(src=source, feed=told.feed, question_id=question_id, outcome=told.verdict))


def _move_records(question: QuestionState, next_source: NextSource) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """Tell both feeds that the question moved; before all else, so that the former one publishes nothing of it."""
    feed, moves = question.published_in or _emitted_in(question)
    if feed == question.feed:
        return
    move = moves + 1
    question.published_in = question.feed, move
    yield _encoded(QuestionMoved(src=next_source(), feed=feed, question_id=question.id, move=move, to=question.feed))
    yield _encoded(
        QuestionArrived(src=next_source(), feed=question.feed, question_id=question.id, move=move, origin=feed)
    )


def _emitted_in(question: QuestionState) -> tuple[str, int]:
    """The same of a question whose state is from an earlier release, which did not note it."""
    emitted = question.emitted
    return (emitted[max(emitted)].feed if emitted else question.feed), 0


def _is_elsewhere(question: QuestionState, boundary: Milliseconds) -> bool:
    told = question.emitted.get(boundary)
    return told is not None and told.feed != question.feed


def _outcome_records(
    question: QuestionState, plan: RoundPlan, passed: Milliseconds, next_source: NextSource
) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """Emit the outcome once a round was emitted and the close has passed; retract one that no longer holds."""
    told = question.told
    if told is not None and told.verdict != "open" and _is_retracted(question, told):
        question.told = told.then(told.feed, "open")
        yield outcome_record(question.told, question.id, next_source())
    verdict = _verdict(question)
    if verdict == "open" or question.terms is None or plan.close is None or plan.close > passed:
        return
    told = question.told or NOT_TOLD
    if (told.feed, told.verdict) != (question.feed, verdict):
        question.told = told.then(question.feed, verdict)
        yield outcome_record(question.told, question.id, next_source())


def _provisional_records(question: QuestionState, next_source: NextSource) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """Emit a provisional outcome once a round was emitted; retract one that no longer holds."""
    if question.terms is None:
        return
    before = question.told_provisional or Told(question.feed, "open")
    wanted = Told(question.feed, question.provisional_verdict)
    if before.feed != wanted.feed and before.verdict != "open":
        yield provisional_record(Told(before.feed, "open"), question.id, next_source())
    if before != wanted and not (before.verdict == wanted.verdict == "open"):
        yield provisional_record(wanted, question.id, next_source())
    question.told_provisional = None if wanted.verdict == "open" else wanted


def _verdict(question: QuestionState) -> Verdict:
    return question.truth.verdict if question.truth else "open"


def _is_retracted(question: QuestionState, told: Told) -> bool:
    return told.feed != question.feed or _verdict(question) == "open"


def _weight(question: QuestionState) -> float:
    return question.weight[1] if question.weight else 1.0


def _encoded(record: FeedLogRecord) -> tuple[FeedLogRecord, bytes]:
    return record, encode_feed_log(record)


def _final_records(
    question: QuestionState,
    boundary: Milliseconds,
    standing: StandingForecasts,
    terms: Terms,
    next_source: NextSource,
) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """The round of the close. Forecasts after a resolution that is not emitted yet are a correction of that round.

    So the round is emitted without them first, since the first one is scored; if nobody else stands, none is.
    """
    foreseen = standing
    if question.resolved and not (question.told or NOT_TOLD).is_known:
        (foreseen,) = question.history.standing_at([boundary], terms.forecast_for, before_outcome=True)
        if foreseen.experts and foreseen != standing:
            yield from _round_records(question, boundary, foreseen, next_source, final=True)
    is_late = not foreseen.experts
    yield from _round_records(question, boundary, standing, next_source, final=True, is_late=is_late)


def _round_records(
    question: QuestionState,
    boundary: Milliseconds,
    standing: StandingForecasts,
    next_source: NextSource,
    *,
    final: bool = False,
    is_late: bool = False,
) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """The round in as few parts as its size allows; ``is_late``: all of it came after the outcome."""
    whole = Round(
        src=next_source(),
        feed=question.feed,
        question_id=question.id,
        boundary=boundary,
        final=final,
        after_outcome=is_late or (question.told or NOT_TOLD).is_known,
        weight=_weight(question),
        experts=standing.experts,
        probabilities=standing.probabilities,
    )
    yield from in_parts(whole, next_source)


def in_parts(whole: Round, next_source: NextSource) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """A round in as few records as its size allows, each with its bytes; the first has the source that it has."""
    encoded = encode_feed_log(whole)
    if len(encoded) <= MAX_RECORD_BYTES:
        yield whole, encoded
        return
    cuts = _cuts(whole)
    for part, (start, end) in enumerate(pairwise(cuts)):
        record = msgspec.structs.replace(
            whole,
            src=whole.src if part == 0 else next_source(),
            experts=whole.experts[start:end],
            probabilities=whole.probabilities[start:end],
            part=part,
            parts=len(cuts) - 1,
        )
        yield _encoded(record)


def _cuts(whole: Round) -> list[int]:
    """Where to cut a big round, so that each part stays below the limit with room for its other fields."""
    cuts = [0]
    size = 0
    for place, (expert, probability) in enumerate(zip(whole.experts, whole.probabilities, strict=True)):
        row = len(encode_feed_log(expert)) + len(encode_feed_log(probability)) + 2
        if size + row > MAX_RECORD_BYTES - 10_000:
            cuts.append(place)
            size = 0
        size += row
    return [*cuts, len(whole.experts)]


class Reconciler:
    """Emits what is due of a partition's questions as its clock moves on.

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
        """Reconcile a question, and note when it is due again."""
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
                warn(question, "missing-times", missing_times(question, plan), effects)
        self.schedule(question, plan)

    def attend_due(self, record: Record, effects: Effects) -> None:
        """Reconcile every question that is due."""
        now = self._clock.now
        for question_id in self.agenda.due(now):
            self.attend(self._store.live[question_id], record, effects, unchanged_before=NEVER)
        if now >= self._store.stubs.next_end:
            self._store.expire(now)

    def schedule(self, question: QuestionState, plan: RoundPlan) -> None:
        """Note when the question is due next; drop its history once ``history_for`` has passed."""
        now = self._clock.now
        settings = question.settings
        grace = (question.terms or settings).grace
        closed = 0 if plan.close is None else plan.close + grace
        ends = max(closed, question.touched) + settings.history_for
        if ends <= now:
            self.discard(question)
            return
        next_due = bisect_right(plan.boundaries, now - grace)  # the close comes last, if it is one of them
        due = plan.boundaries[next_due] + grace if next_due < len(plan.boundaries) else None
        if due is None and closed > now:
            due = closed
        self.agenda.put(question.id, ends if due is None else min(due, ends))
        self.deadlines.put(question.id, due)
        idle_after = settings.idle_after if question.history.experts else None
        self.ticks.put(question.id, None if due is None or idle_after is None else due + idle_after)
        question.watch(plan, now - grace)

    def discard(self, question: QuestionState, *, wholly: bool = False) -> None:
        """Drop a question's history. A stub keeps what was emitted of it, unless ``wholly``."""
        for agenda in (self.agenda, self.ticks, self.deadlines):
            agenda.put(question.id, None)
        leaves_stub = question.terms is not None and not wholly
        self._store.shrink(question, question.stub(self._clock.now) if leaves_stub else None)

    def clear(self) -> None:
        """Remove all deadlines."""
        for agenda in (self.agenda, self.ticks, self.deadlines):
            agenda.clear()


def warn(question: QuestionState, code: str, sentence: str | None, effects: Effects) -> None:
    """Count a problem of a question's times, if there is one; the first of a question is also a warning."""
    if sentence is None:
        return
    effects.counts[code, ""] += 1
    if not question.warned:
        question.warned = True
        effects.warnings.append(Warned(code, question.feed, question.id, sentence))

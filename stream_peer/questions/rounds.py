"""Rounds: what a question's history, schedule and truth say must have been emitted by now, against what was."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from stream_peer.events.feed_log import (
    FeedLogRecord,
    OutcomeRevealed,
    ProvisionalOutcome,
    Round,
    RoundWithdrawn,
    Source,
    Verdict,
    encode_feed_log,
)
from stream_peer.events.times import YEAR_1900, Milliseconds
from stream_peer.questions.history import StandingForecasts
from stream_peer.questions.schedule import RoundPlan, Terms
from stream_peer.questions.state import NOT_TOLD, Emitted, QuestionState, Told

MAX_RECORD_BYTES = 900_000
_DIGEST_BYTES = 12

NextSource = Callable[[], Source]

_encode_content = msgspec.msgpack.Encoder().encode


def content_digest(boundary: Milliseconds, standing: StandingForecasts, weight: float, *, final: bool) -> bytes:
    """What tells a round's content from another's."""
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

    Withdrawals come first, then rounds by boundary, then the outcome. The first round fixes the question's terms.

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
    """The record that tells an outcome."""
    return _encoded(OutcomeRevealed(src=source, feed=told.feed, question_id=question_id, outcome=told.verdict))


def provisional_record(told: Told, question_id: str, source: Source) -> tuple[FeedLogRecord, bytes]:
    """The record that tells a provisional outcome."""
    return _encoded(ProvisionalOutcome(src=source, feed=told.feed, question_id=question_id, outcome=told.verdict))


def _is_elsewhere(question: QuestionState, boundary: Milliseconds) -> bool:
    told = question.emitted.get(boundary)
    return told is not None and told.feed != question.feed


def _outcome_records(
    question: QuestionState, plan: RoundPlan, passed: Milliseconds, next_source: NextSource
) -> Iterator[tuple[FeedLogRecord, bytes]]:
    """Tell the outcome once a round was emitted and the close has passed; take it back where it no longer holds."""
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
    """Tell a provisional outcome once a round was emitted, and that there is none any more."""
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
    """The round of the close. Forecasts that came after a resolution which is not told yet are a correction of it.

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

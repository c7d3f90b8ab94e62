"""What happened to one question in a replay, taken down as it happens: the causes are those that the engine names.

Every record of the feed-log names the input record that caused it, every output the record of the feed-log. So a line
of a file, what the question stage made of it and what was published stand together, and nothing is guessed.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    ExpertChanged,
    FeedChanged,
    decode_feed_log,
)
from stream_peer.events.incoming import Event, Forecast, Forecasts, decode
from stream_peer.events.outputs import MixedForecast, PeerLosses, ReferenceAnswer
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.views import FeedView
from stream_peer.log.dead_letters import Refusal, refusal_of
from stream_peer.log.stage import Effects, LogRecord, Output, Warned
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.schedule import RoundPlan
from stream_peer.questions.stage import QuestionStage
from stream_peer.tools.replay.file_events import FileEvent
from stream_peer.tools.replay.run import CONTROLS, InputRecord

_Answer = TypeVar("_Answer", ReferenceAnswer, PeerLosses, MixedForecast)

_NOTHING = InputRecord(FileEvent("", b""), "", -1, -1, 0)

_decode_answer = msgspec.json.Decoder(ReferenceAnswer).decode
_decode_mixed = msgspec.json.Decoder(MixedForecast).decode
_decode_losses = msgspec.json.Decoder(PeerLosses).decode


class Look(NamedTuple):
    """The question as the question stage has it: the stage's clock, and the question's moments (None: unknown)."""

    clock: Milliseconds
    plan: RoundPlan | None


class Logged(NamedTuple):
    """A record of the feed-log and what the feed stage made of it. Its offset is the revision of what came of it.

    ``cause`` is the input record that it names, None if that is none of the line being folded. ``before`` and
    ``after`` are the feed's weights and error rates; the outputs are None where nothing was published.
    """

    revision: int
    cause: InputRecord | None
    record: AnyFeedLogRecord
    before: FeedView | None
    after: FeedView | None
    answer: ReferenceAnswer | None
    losses: PeerLosses | None
    mixed: MixedForecast | None


class Chapter(NamedTuple):
    """An input record, and all that it caused of the question.

    ``own``: it is about the question itself. ``event`` is None if nothing can be read from it; ``late`` tells how many
    of its forecasts count from a later moment than they say.
    """

    arrival: InputRecord
    own: bool
    event: Event | None
    before: Look
    after: Look
    late: int
    refused: tuple[Refusal, ...]
    warnings: tuple[Warned, ...]
    logged: tuple[Logged, ...]

    @property
    def time(self) -> Milliseconds:
        """When it arrived."""
        return self.arrival.time

    @property
    def forecasts(self) -> dict[str, float | None]:
        """Who says what of the question in it."""
        if self.own and isinstance(self.event, Forecast):
            return {self.event.expert_id: self.event.probability}
        return dict(self.event.forecasts) if self.own and isinstance(self.event, Forecasts) else {}


class _Open:
    """A chapter that is not finished."""

    def __init__(self, arrival: InputRecord, before: Look, *, own: bool) -> None:
        self.arrival = arrival
        self.own = own
        self.before = self.after = before
        self.late = 0
        self.refused: list[Refusal] = []
        self.warnings: list[Warned] = []
        self.logged: list[Logged] = []

    def closed(self) -> Chapter:
        return Chapter(
            self.arrival,
            self.own,
            _event_of(self.arrival.event.payload),
            self.before,
            self.after,
            self.late,
            tuple(self.refused),
            tuple(self.warnings),
            tuple(self.logged),
        )


class Explainer:
    """A witness (see ``Witness``) that takes down the life of one question.

    Parameters
    ----------
    question_id : str
        Which one.

    Attributes
    ----------
    feed : str or None
        The feed that it was in last.
    questions : set of str
        Every question that the files name.
    """

    def __init__(self, question_id: str) -> None:
        self.question_id = question_id
        self.feed: str | None = None
        self.questions: set[str] = set()
        self._home = -2
        self._chapters: list[Chapter] = []
        self._open: _Open | None = None
        self._arrival = _NOTHING
        self._places: dict[tuple[str, int, int], InputRecord] = {}
        self._look = Look(0, None)
        self._record: LogRecord | None = None
        self._before: FeedView | None = None

    def chapters(self) -> list[Chapter]:
        """What was taken down, in order."""
        self._turn_page()
        return self._chapters

    # --- what a witness is shown ---

    def arrives(self, arrival: InputRecord, stage: QuestionStage | ControlStage) -> None:
        """An input record is about to be folded."""
        del stage
        if self._arrival.event is not arrival.event:
            self._turn_page()
            self._places.clear()
        self._arrival = arrival
        self._places[arrival.topic, arrival.partition, arrival.offset] = arrival
        if arrival.event.question_id is not None:
            self.questions.add(arrival.event.question_id)
        if arrival.event.question_id == self.question_id:
            self._home = arrival.partition
            self._chapter()

    def arrived(self, effects: Effects, stage: QuestionStage | ControlStage) -> None:
        """It was folded: how the question stands now, and what of the line was late or refused."""
        if isinstance(stage, QuestionStage):
            self._look_at(stage)
        if self._open is not None and self._is_about(self._open.arrival):
            self._note(effects)

    def logs(self, record: LogRecord, stage: FeedStage) -> None:
        """A record of the feed-log is about to be folded."""
        found = _decoded(record)
        if found is None or not self._concerns(found):
            self._record = None
            return
        self.feed = found.feed
        self._record, self._before = record, stage.views().get(found.feed)

    def logged(self, effects: Effects, stage: FeedStage) -> None:
        """It was folded."""
        record, self._record = self._record, None
        found = None if record is None else _decoded(record)
        if record is None or found is None:
            return
        chapter = self._chapter()
        if isinstance(found, ExpertChanged | FeedChanged):
            self._note(effects)
        own = [output for output in effects.outputs if output.key == self.question_id.encode()]
        chapter.logged.append(
            Logged(
                record.offset,
                self._places.get((*found.src.place, found.src.offset)),
                found,
                self._before,
                stage.views().get(found.feed),
                _newest(own, topics.REFERENCE_ANSWERS, _decode_answer),
                _newest(own, topics.PEER_LOSSES, _decode_losses),
                _newest(own, topics.MIXED_FORECASTS, _decode_mixed),
            )
        )

    # --- chapters ---

    def _turn_page(self) -> None:
        if self._open is not None:
            self._chapters.append(self._open.closed())
            self._open = None

    def _chapter(self) -> _Open:
        """The chapter of the record that is being folded."""
        if self._open is None:
            self._open = _Open(self._arrival, self._look, own=self._is_about(self._arrival))
        return self._open

    def _look_at(self, stage: QuestionStage) -> None:
        """Note where the question stands; a moment of it that the clock has passed opens a chapter."""
        arrival = self._arrival
        if arrival.partition != self._home:
            return
        before = self._look
        own = arrival.event.question_id == self.question_id or arrival.event.kind in CONTROLS
        plan = stage.plan_of(self.question_id) if own or _is_over(before) else before.plan
        now = Look(stage.clock, plan)
        if self._open is not None or _has_passed(before, now):
            self._chapter().after = now
        self._look = now

    def _note(self, effects: Effects) -> None:
        chapter = self._chapter()
        chapter.late += sum(number for (kind, _), number in effects.counts.items() if kind == "late")
        chapter.warnings += [warning for warning in effects.warnings if warning.question_id == self.question_id]
        letters = (output for output in effects.outputs if output.topic == topics.DEAD_LETTERS)
        chapter.refused += [refusal_of(letter.headers) for letter in letters]

    def _is_about(self, arrival: InputRecord) -> bool:
        return arrival.event.question_id == self.question_id

    def _concerns(self, record: AnyFeedLogRecord) -> bool:
        if isinstance(record, ExpertChanged | FeedChanged):
            return record.feed == self.feed
        return getattr(record, "question_id", None) == self.question_id


def _event_of(payload: bytes) -> Event | None:
    try:
        return decode(payload)
    except RejectedEvent:
        return None


def _decoded(record: LogRecord) -> AnyFeedLogRecord | None:
    try:
        found: AnyFeedLogRecord = decode_feed_log(record.value or b"")
    except msgspec.MsgspecError:
        return None
    return found


def _is_over(look: Look) -> bool:
    """Whether the question has closed: its history may go with any line."""
    return look.plan is not None and look.plan.close is not None and look.clock >= look.plan.close


def _has_passed(before: Look, now: Look) -> bool:
    """Whether the clock has passed the opening or the close of the question, or the end of its history."""
    plan = now.plan
    if plan is None and before.plan is not None:
        return True
    moments = () if plan is None else (plan.opens, plan.close)
    return any(moment is not None and before.clock < moment <= now.clock for moment in moments)


def _newest(outputs: Iterable[Output], topic: str, decoder: Callable[[bytes], _Answer]) -> _Answer | None:
    values = [output.value for output in outputs if output.topic == topic and output.value]
    return decoder(values[-1]) if values else None

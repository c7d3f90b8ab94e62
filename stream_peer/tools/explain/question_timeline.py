"""The life of one question in a replay, step by step: the causes are those that the records name.

Every record of the feed-log names the input record that caused it, every output the record of the feed-log. So a line
of a file, what the question stage made of it and what was published stand together, and nothing is guessed.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import AnyFeedLogRecord, ExpertChanged, FeedChanged
from stream_peer.events.groups import group_id_of, outcome_of
from stream_peer.events.incoming import Event, Forecast, Forecasts, GroupForecast, GroupResolution, decode
from stream_peer.events.outputs import MixedForecast, MixedGroup, PeerLosses, ReferenceAnswer
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.views import FeedView
from stream_peer.log.dead_letters import Refusal, refusal_of
from stream_peer.log.stage import Effects, Output, Record, Warned
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.schedule import RoundPlan
from stream_peer.questions.stage import QuestionStage
from stream_peer.tools.explain.weight_timeline import event_of
from stream_peer.tools.replay.file_events import FileEvent
from stream_peer.tools.replay.history import head_of
from stream_peer.tools.replay.run import CONTROLS, InputRecord, ReplayProbe

_Answer = TypeVar("_Answer", ReferenceAnswer, PeerLosses, MixedForecast, MixedGroup)

_NOTHING = InputRecord(FileEvent("", b""), "", -1, -1, 0)


_decode_answer = msgspec.json.Decoder(ReferenceAnswer).decode
_decode_mixed = msgspec.json.Decoder(MixedForecast).decode
_decode_group = msgspec.json.Decoder(MixedGroup).decode
_decode_losses = msgspec.json.Decoder(PeerLosses).decode


class PlanAt(NamedTuple):
    """The question as the question stage has it: the stage's clock, and the question's moments (None: unknown)."""

    clock: Milliseconds
    plan: RoundPlan | None


class FeedStep(NamedTuple):
    """A record of the feed-log and what the feed stage made of it. Its offset is the revision of what came of it.

    ``cause`` is the input record that ``event`` names, None if that is none of the line being folded. ``before`` and
    ``after`` are the feed's weights and error rates; the outputs are None where nothing was published.
    """

    revision: int
    cause: InputRecord | None
    event: AnyFeedLogRecord
    before: FeedView | None
    after: FeedView | None
    answer: ReferenceAnswer | None
    losses: PeerLosses | None
    mixed: MixedForecast | None


class LifeStep(msgspec.Struct):
    """An input record, and all that it caused of the question.

    ``own``: it is about the question itself. ``event`` is None if nothing can be read from it; ``late`` tells how many
    of its forecasts count from a later moment than they say. ``group`` is the record of the question's group then.
    """

    arrival: InputRecord
    own: bool
    event: Event | None
    before: PlanAt
    after: PlanAt
    late: int = 0
    refused: list[Refusal] = []
    warnings: list[Warned] = []
    feed_steps: list[FeedStep] = []
    group: MixedGroup | None = None

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


class QuestionProbe(ReplayProbe):
    """Keeps the steps in the life of one question, while files are replayed.

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
        self._group = group_id_of(question_id)
        self.feed: str | None = None
        self.questions: set[str] = set()
        self._home = -2
        self._steps: list[LifeStep] = []
        self._open: LifeStep | None = None
        self._arrival = _NOTHING
        self._inputs: dict[tuple[str, int, int], InputRecord] = {}
        self._plan = PlanAt(0, None)
        self._record: tuple[int, AnyFeedLogRecord] | None = None
        self._before: FeedView | None = None

    def steps(self) -> list[LifeStep]:
        """The steps so far, in order."""
        self._close()
        return self._steps

    # --- the replay ---

    def before_input(self, arrival: InputRecord, stage: QuestionStage | ControlStage) -> None:
        """An input record is about to be folded."""
        del stage
        if self._arrival.event is not arrival.event:
            self._close()
            self._inputs.clear()
        self._arrival = arrival
        self._inputs[arrival.topic, arrival.partition, arrival.offset] = arrival
        if arrival.event.question_id is not None:
            self.questions.add(arrival.event.question_id)
        if self._is_about(arrival):
            self._home = arrival.partition
            self._step()

    def after_input(self, effects: Effects, stage: QuestionStage | ControlStage) -> None:
        """It was folded: how the question stands now, and what of the line was late or refused."""
        if isinstance(stage, QuestionStage):
            self._note_plan(stage)
        if self._open is not None and self._is_about(self._open.arrival):
            self._note(effects)

    def before_record(self, record: Record, stage: FeedStage) -> None:
        """Note the feed's weights, if the record of the feed-log is about the question or its feed."""
        event = event_of(record)
        self._record = None if event is None or not self._concerns(event) else (record.offset, event)
        if self._record is not None:
            self.feed = self._record[1].feed
            self._before = stage.views().get(self.feed)

    def after_record(self, effects: Effects, stage: FeedStage) -> None:
        """Note the weights again, and what was published of the question, or of its group in the same step."""
        if self._group is not None and self._open is not None:
            of_group = [output for output in effects.outputs if output.key == self._group.encode()]
            self._open.group = _newest(of_group, topics.MIXED_GROUPS, _decode_group) or self._open.group
        if self._record is None:
            return
        revision, event = self._record
        step = self._step()
        if isinstance(event, ExpertChanged | FeedChanged):
            self._note(effects)
        own = [output for output in effects.outputs if output.key == self.question_id.encode()]
        step.feed_steps.append(
            FeedStep(
                revision,
                self._inputs.get((*event.src.place, event.src.offset)),
                event,
                self._before,
                stage.views().get(event.feed),
                _newest(own, topics.REFERENCE_ANSWERS, _decode_answer),
                _newest(own, topics.PEER_LOSSES, _decode_losses),
                _newest(own, topics.MIXED_FORECASTS, _decode_mixed),
            )
        )

    # --- steps ---

    def _close(self) -> None:
        if self._open is not None:
            self._steps.append(self._open)
            self._open = None

    def _step(self) -> LifeStep:
        """The step of the record that is being folded."""
        if self._open is None:
            arrival, plan = self._arrival, self._plan
            event = _event_of(arrival.event.payload, self.question_id)
            is_silent = event is None and arrival.event.question_id == self._group
            self._open = LifeStep(arrival, self._is_about(arrival) and not is_silent, event, plan, plan)
        return self._open

    def _note_plan(self, stage: QuestionStage) -> None:
        """Note where the question stands; a moment of it that the clock has passed opens a step."""
        arrival = self._arrival
        if arrival.partition != self._home:
            return
        before = self._plan
        own = self._is_about(arrival) or arrival.event.kind in CONTROLS
        plan = stage.plan_of(self.question_id) if own or _is_over(before) else before.plan
        now = PlanAt(stage.clock, plan)
        if self._open is not None or _has_passed(before, now):
            self._step().after = now
        self._plan = now

    def _note(self, effects: Effects) -> None:
        step = self._step()
        step.late += sum(number for (kind, _), number in effects.counts.items() if kind == "late")
        step.warnings += [warning for warning in effects.warnings if warning.question_id == self.question_id]
        letters = (output for output in effects.outputs if output.topic == topics.DEAD_LETTERS)
        step.refused += [refusal_of(letter.headers) for letter in letters]

    def _is_about(self, arrival: InputRecord) -> bool:
        return arrival.event.question_id in (self.question_id, self._group or self.question_id)

    def _concerns(self, record: AnyFeedLogRecord) -> bool:
        if isinstance(record, ExpertChanged | FeedChanged):
            return record.feed == self.feed
        return getattr(record, "question_id", None) == self.question_id


def _event_of(payload: bytes, question_id: str) -> Event | None:
    """What is said of a question; what is said of its group, as if it were said of the question alone."""
    try:
        event = decode(payload)
        if isinstance(event, GroupForecast):
            said = {part: p for part, p in event.parts.items() if part == question_id}
            return next(iter(event.forecasts_of(said)), None)
        if isinstance(event, GroupResolution):
            outcome = outcome_of(question_id, event.said)
            return None if outcome is None else event.of_part(question_id, outcome)
    except RejectedEvent:
        return None
    return event


def _is_over(look: PlanAt) -> bool:
    """Whether the question has closed: its history may go with any line."""
    return look.plan is not None and look.plan.close is not None and look.clock >= look.plan.close


def _has_passed(before: PlanAt, now: PlanAt) -> bool:
    """Whether the clock has passed the opening or the close of the question, or the end of its history."""
    plan = now.plan
    if plan is None and before.plan is not None:
        return True
    moments = () if plan is None else (plan.opens, plan.close)
    return any(moment is not None and before.clock < moment <= now.clock for moment in moments)


def _newest(outputs: Iterable[Output], topic: str, decoder: Callable[[bytes], _Answer]) -> _Answer | None:
    values = [output.value for output in outputs if output.topic == topic and output.value]
    return decoder(values[-1]) if values else None


class RevisionCounter:
    """Counts how often each question was published again; the question with most revisions is explained by default."""

    def __init__(self) -> None:
        self.revisions: Counter[str] = Counter()

    def write(self, output: Output) -> None:
        """Take up an output."""
        if output.topic == topics.REFERENCE_ANSWERS and output.value is not None:
            self.revisions[head_of(output.value).question] += 1

    def ranked(self) -> list[str]:
        """The questions that were published, those with the most revisions first."""
        return sorted(self.revisions, key=lambda name: (-self.revisions[name], name))

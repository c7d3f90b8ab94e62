"""Events of groups of questions, taken apart: each part gets an event of its own, as if it had come alone.

An event of a group lies in the partition of the group, which is that of all its parts. Questions of a group are those
that its events have named so far.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.groups import outcomes_of
from stream_peer.events.incoming import Forecast, GroupForecast, GroupResolution, Question, Resolution
from stream_peer.events.rejections import Reason
from stream_peer.events.times import from_iso, to_iso
from stream_peer.log.stage import Effects, Record
from stream_peer.questions.producer_gate import Handler
from stream_peer.questions.routing import Routes
from stream_peer.questions.state import DEFAULT_FEED, QuestionState
from stream_peer.questions.store import QuestionStore

Forwards = Callable[[str, Record, Effects], bool]
Check = Callable[[Forecast, Record], None]
_OF_QUESTION = ("opens", "closes", "weight", "own_feed")


class GroupEvents:
    """Takes events of groups apart.

    Parameters
    ----------
    routes : Routes
    store : QuestionStore
    forwards : callable
        Forwards an event that came to the wrong partition; False if this is the right one.
    check : callable
        Checks that the producer of a record may send its event.
    announce : callable
        The handler of ``question`` events without such checks.
    """

    def __init__(
        self, routes: Routes, store: QuestionStore, forwards: Forwards, check: Check, announce: Handler
    ) -> None:
        self._routes = routes
        self._store = store
        self._forwards = forwards
        self._check = check
        self._announce = announce
        self._single: Mapping[type, Handler] = {}

    def around(self, handlers: Mapping[type, Handler]) -> dict[type, Handler]:
        """Handlers of events that may be about a group; those of one question are handed on to ``handlers``."""
        self._single = dict(handlers)
        return {
            GroupForecast: self._forecast,
            Question: self._question,
            Resolution: self._resolution,
            GroupResolution: self._group_resolution,
        }

    def _forecast(self, event: GroupForecast, record: Record, effects: Effects) -> None:
        if not self._forwards(event.question_id, record, effects):
            _each(self._single[Forecast], self._forecasts(event, record, effects), record, effects)

    def _question(self, event: Question, record: Record, effects: Effects) -> None:
        here = not self._routes.is_elsewhere(event.question_id, record.headers)
        parts = sorted({*event.parts, *self._store.parts_of(event.question_id)}) if here else []
        plain = msgspec.structs.replace(event, options=None, thresholds=None)
        events = [msgspec.structs.replace(plain, question_id=part) for part in parts]
        _each(self._single[Question], events or (event,), record, effects)

    def _resolution(self, event: Resolution, record: Record, effects: Effects) -> None:
        here = not self._routes.is_elsewhere(event.question_id, record.headers)
        parts = self._store.parts_of(event.question_id) if here else []
        if parts and event.verdict in (0, 1):
            raise _unknown(f"outcome is {event.outcome!r}, of a group: say which option or value it is")
        events = [msgspec.structs.replace(event, question_id=part) for part in parts]
        _each(self._single[Resolution], events or (event,), record, effects)

    def _group_resolution(self, event: GroupResolution, record: Record, effects: Effects) -> None:
        if not self._forwards(event.question_id, record, effects):
            parts = self._store.parts_of(event.question_id)
            _each(self._single[Resolution], _resolutions(event, parts), record, effects)

    def _forecasts(self, event: GroupForecast, record: Record, effects: Effects) -> list[Forecast]:
        """The forecast of each part. A part that is new has the schedule of the others, unless these are resolved."""
        parts, known = event.parts, self._store.parts_of(event.question_id)
        new = [part for part in parts if part not in known]
        if new and known:
            alive = [self._store.live[part] for part in known if part in self._store.live]
            if not alive or any(one.truth is not None and one.truth.verdict != "open" for one in alive):
                feed = alive[0].feed if alive else event.feed or DEFAULT_FEED
                effects.note(feed, "too-late", len(new))
                parts = {part: p for part, p in parts.items() if part in known}
            elif model := next((one for one in alive if one.declared is not None), None):
                self._check(event.forecasts_of({model.id: None})[0], record)  # before there are questions
                _each(self._announce, (_schedule_of(model, part) for part in new), record, effects)
        return event.forecasts_of(parts)


def _schedule_of(model: QuestionState, part: str) -> Question:
    """The ``question`` event that gives a part what is stated of another one."""
    stated = {name: value for name in _OF_QUESTION if (value := getattr(model, name)) is not None}
    opens, closes = (from_iso(to_iso(stated[name][1])) if name in stated else None for name in ("opens", "closes"))
    return Question(
        question_id=part,
        at=from_iso(to_iso(max((at for at, _ in stated.values()), default=model.declared or 0))),
        feed=stated["own_feed"][1] if "own_feed" in stated else None,
        opens_at=opens,
        closes_at=closes,
        weight=stated["weight"][1] if "weight" in stated else None,
    )


def _resolutions(event: GroupResolution, parts: Sequence[str]) -> list[Resolution]:
    """The resolution of each part.

    Raises
    ------
    RejectedEvent
        If it is none of this group.
    """
    try:
        outcomes = outcomes_of(parts, event.said)
    except ValueError as error:
        raise _unknown(str(error)) from None
    return [event.of_part(part, outcome) for part, outcome in outcomes.items()]


def _unknown(message: str) -> RejectedEvent:
    return RejectedEvent(Reason.OUTCOME_UNKNOWN, field="outcome", message=message)


def _each(
    handler: Handler, events: Iterable[Forecast | Question | Resolution], record: Record, effects: Effects
) -> None:
    """Handle events of one record; if some are refused, the record is, with the first reason, after all were tried."""
    refused = None
    for event in events:
        try:
            handler(event, record, effects)
        except RejectedEvent as rejection:
            refused = refused or rejection
    if refused is not None:
        raise refused

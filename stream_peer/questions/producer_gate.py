"""Checks of producers in the question stage: an event that its producer may not send becomes a dead letter."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import Forecast, Forecasts, PartialForecasts, Question, Resolution
from stream_peer.log.clock import Clock
from stream_peer.log.ids import ErasedExperts, Names, erased_rejection
from stream_peer.log.producers import Producers, SignedEvent
from stream_peer.log.stage import Effects, Record
from stream_peer.questions.routing import Routes
from stream_peer.questions.state import DEFAULT_FEED
from stream_peer.questions.store import QuestionStore

Handler = Callable[[Any, Record, Effects], None]


class ProducerGate:
    """Checks that the producer of each event may send it, before a handler gets the event."""

    def __init__(
        self,
        producers: Producers,
        topic: str,
        routes: Routes,
        clock: Clock,
        store: QuestionStore,
        erased: ErasedExperts,
        names: Mapping[str, Names],
    ) -> None:
        self._producers = producers
        self._topic = topic
        self._routes = routes
        self._clock = clock
        self._store = store
        self._erased = erased
        self._names = names

    def guarded(self, handlers: Mapping[type, Handler]) -> dict[type, Handler]:
        """The handlers of the events that producers write, each behind the check."""
        kinds = Forecast, Forecasts, PartialForecasts, Question, Resolution
        return {kind: self._behind_check(handlers[kind]) for kind in kinds}

    def _behind_check(self, handler: Handler) -> Handler:
        def handle(event: SignedEvent, record: Record, effects: Effects) -> None:
            # An event of another partition's question is forwarded with its header: only there the feed is known.
            if not self._routes.is_elsewhere(event.question_id, record.headers):
                self.check(event, record)
            handler(event, record, effects)

        return handle

    def check(self, event: SignedEvent, record: Record) -> None:
        """Check that the producer of a record may send an event of a question that belongs here.

        Raises
        ------
        RejectedEvent
        """
        present = self._feed_of(event.question_id) or event.feed or DEFAULT_FEED
        named = event.feed or present
        moves = named != present and not isinstance(event, Question) and not self._is_settled(event.question_id)
        feeds = {present: None, named: None}

        def ids(expert_id: str) -> Iterator[str]:
            yield expert_id
            yield from (one for feed in feeds if feed in self._names for one in self._names[feed].all_of(expert_id))

        try:
            self._producers.check(event, record, self._topic, feeds, moves=moves, ids=ids)
        except RejectedEvent:
            self._check_erased(event, present)
            raise

    def _feed_of(self, question_id: str) -> str | None:
        """The feed of a question, if a ``question`` event described it or any event has named its feed."""
        question = self._store.live.get(question_id)
        if question is not None:
            is_asked = question.declared is not None
            return question.feed if is_asked or question.own_feed or question.other_feed else None
        stub = self._store.stub(question_id, self._clock.now)
        return None if stub is None else stub.feed

    def _is_settled(self, question_id: str) -> bool:
        """Whether forecasts and resolutions cannot move a question: a ``question`` event has named its feed."""
        question = self._store.live.get(question_id)
        return question is None or question.own_feed is not None

    def _check_erased(self, event: SignedEvent, feed: str) -> None:
        """A refused event that names an erased expert is kept without payload: this reason precedes others."""
        if isinstance(event, Forecast | Forecasts):
            experts = (event.expert_id,) if isinstance(event, Forecast) else tuple(event.named)
            refused = self._erased.among(feed, experts)
            if refused:
                raise erased_rejection(len(refused), len(experts))

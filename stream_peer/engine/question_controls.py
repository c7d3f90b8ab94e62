"""What control events do to the questions of a partition: settings, forgetting, deleting, importing.

The control agent writes them to every partition; from anybody else they are refused.
"""

from collections.abc import Collection
from typing import Any

from stream_peer.engine.clock import Clock
from stream_peer.engine.forgotten import Forgotten
from stream_peer.engine.question_import import ImportedQuestions
from stream_peer.engine.question_state import QuestionState
from stream_peer.engine.question_store import QuestionStore
from stream_peer.engine.reconciling import Reconciler
from stream_peer.engine.rounds import emitted_anew
from stream_peer.engine.routing import Routes
from stream_peer.engine.sources import is_broadcast
from stream_peer.engine.stage import Effects, Record
from stream_peer.engine.transfers import Transfers
from stream_peer.errors import RejectedEvent, SettingsError
from stream_peer.events.feed_settings import FeedSettingsBook, load_document
from stream_peer.events.incoming import ExpertControl, FeedControl, FeedImport, SettingsControl
from stream_peer.events.rejections import Reason
from stream_peer.events.times import NEVER


class QuestionControls:
    """What controls have said to one partition of the question stage so far.

    Parameters
    ----------
    book : FeedSettingsBook
        In force until the log says otherwise.
    secret : bytes
        The release's: ids that are to be forgotten are known again by digests that are made with it.

    Attributes
    ----------
    book : FeedSettingsBook
        The settings in force.
    document : dict or None
        The same, as they were applied; None: the log has said nothing of them.
    forgotten : Forgotten
        Who is refused.
    transfers : Transfers
        The parts that have come of questions that are imported.
    """

    def __init__(
        self,
        routes: Routes,
        clock: Clock,
        store: QuestionStore,
        reconciler: Reconciler,
        *,
        book: FeedSettingsBook,
        secret: bytes,
    ) -> None:
        self.book = book
        self.document: dict[str, Any] | None = None
        self.forgotten = Forgotten(secret)
        self.transfers = Transfers()
        self._routes = routes
        self._clock = clock
        self._store = store
        self._reconciler = reconciler

    # One method a type: check, then change every question that it is about.

    def settle(self, event: SettingsControl, record: Record, effects: Effects) -> None:
        """Settings from here on, for all questions."""
        _check_sender(record, effects, ": write them with `stream-peer settings apply`")
        try:
            book = load_document(event.document)
        except SettingsError as error:
            raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
        if _stays(book) != _stays(self.book):
            self._store.follow(book.of, self._clock.now)
        self.adopt(book, event.document)
        effects.counts["event", "settings"] += 1
        for question_id in sorted(self._store.live):
            question = self._store.live[question_id]
            question.settings = book.of(question.feed)
            self._reconciler.attend(question, record, effects, unchanged_before=NEVER)

    def change_expert(self, event: ExpertControl, record: Record, effects: Effects) -> None:
        """Forget an expert; all else of experts is the feed stage's."""
        _check_sender(record, effects, is_for_questions=event.forget)
        effects.counts["event", "expert"] += 1
        self.forgotten.add(event.feed, event.expert_id)
        for question_id in sorted(self._store.live):
            question = self._store.live[question_id]
            if question.feed == event.feed and event.expert_id in question.history.experts:
                self._let_go(question, (event.expert_id,))
                emitted_anew(question, question.plan())
                self._reconciler.attend(question, record, effects, unchanged_before=NEVER)

    def change_feed(self, event: FeedControl, record: Record, effects: Effects) -> None:
        """Delete a feed; all else of feeds is the feed stage's."""
        _check_sender(record, effects, is_for_questions=event.delete)
        effects.counts["event", "feed"] += 1
        for question in [question for question in self._store.live.values() if question.feed == event.feed]:
            self._reconciler.let_go(question, wholly=True)
        self._store.drop_stubs(self._store.stubs.of_feed(event.feed))
        self.transfers.drop(event.feed)

    def take_in(self, event: FeedImport, record: Record, effects: Effects) -> None:
        """A part of the questions of an imported feed; they are taken up with the last."""
        _check_sender(record, effects, ": write them with `stream-peer import`")
        if event.partition != self._routes.partition:
            msg = f"its questions are for partition {event.partition}, this is {self._routes.partition}"
            raise RejectedEvent(Reason.IMPORT_REFUSED, field="partition", message=msg)
        effects.counts["event", "feed-import"] += 1
        whole = self.transfers.add(event)
        if whole is None:
            return
        imported = ImportedQuestions(whole, event.feed, self.book.of(event.feed))
        self._clock.hear(min(imported.clock, record.timestamp), record.timestamp)  # others' deadlines are not met early
        self.forgotten.digests.update(imported.forgotten)
        for question in imported.take_up(self._store, self._reconciler, self._routes.is_foreign):
            question.settings = self.book.of(question.feed)
            if self.let_go_forgotten(question):
                emitted_anew(question, question.plan())
            self._reconciler.attend(question, record, effects)
        self._reconciler.attend_due(record, effects)

    # What the rest of the stage asks for.

    def adopt(self, book: FeedSettingsBook, document: dict[str, Any]) -> None:
        """Settings from here on, for what comes; questions alive keep theirs."""
        self.book = book
        self.document = document
        self._clock.skew = book.default.skew

    def let_go_forgotten(self, question: QuestionState) -> bool:
        """Keep nothing of those in a question who are forgotten in its feed; whether there were any."""
        forgotten = self.forgotten.among(question.feed, question.history.experts)
        if forgotten:
            self._let_go(question, forgotten)
        return bool(forgotten)

    def _let_go(self, question: QuestionState, experts: Collection[str]) -> None:
        """Keep nothing of some experts in a question."""
        question.history.let_go(experts)
        if question.heard_from is not None:
            question.heard_from.difference_update(experts)
        self._store.scrub(question)


def _check_sender(record: Record, effects: Effects, how: str = "", *, is_for_questions: bool = True) -> None:
    """Whether the control agent wrote a record, and means the question stage."""
    is_ours = is_broadcast(record.headers)
    if not is_ours:
        effects.counts["unsigned", "control"] += 1
    if not (is_for_questions and is_ours):
        msg = f"this type belongs on control-events{how}"
        raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=msg)


def _stays(book: FeedSettingsBook) -> tuple[object, ...]:
    """How long stubs stay, feed by feed."""
    spans = {feed: (settings.ledger_for, settings.retract_for) for feed, settings in book.feeds.items()}
    return (book.default.ledger_for, book.default.retract_for), spans

"""What control events change in the questions of a partition: settings, renamed and erased experts, feeds.

The control stage writes them to every partition; from anybody else they are refused.
"""

from collections.abc import Collection, Mapping
from typing import Any

from stream_peer.errors import RejectedEvent, SettingsError
from stream_peer.events.incoming import ExpertControl, FeedControl, FeedImport, SettingsControl
from stream_peer.events.rejections import Reason
from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.log.clock import Clock
from stream_peer.log.ids import ErasedExperts, Given, Names, erased_rejection
from stream_peer.log.sources import is_broadcast
from stream_peer.log.stage import Effects, Record
from stream_peer.log.transfers import Transfers
from stream_peer.questions.dating import BEGINNING, Periods
from stream_peer.questions.moved import MovedQuestions
from stream_peer.questions.rounds import Reconciler, refresh_emitted
from stream_peer.questions.routing import Routes
from stream_peer.questions.schedule import Terms
from stream_peer.questions.state import QuestionState
from stream_peer.questions.store import QuestionStore
from stream_peer.settings.feed.document import FeedSettingsBook, load_document


class QuestionControls:
    """The controls that one partition of the question stage has folded so far.

    Parameters
    ----------
    book : FeedSettingsBook
        In force until the log says otherwise.
    secret : bytes
        The release's: erased ids are recognised by digests made with it.

    Attributes
    ----------
    book : FeedSettingsBook
        The settings in force.
    document : dict or None
        The same, as they were applied; None: the log has said nothing of them.
    periods : Periods
        What dates forecasts, by when they arrive.
    erased : ErasedExperts
        Who is refused.
    names : dict of str to Names
        Who was renamed, by feed; without feeds in which nobody was.
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
        self.book = self._first_book = book
        self.document: dict[str, Any] | None = None
        self.periods = Periods(book)
        self.erased = ErasedExperts(secret)
        self.names: dict[str, Names] = {}
        self.transfers = Transfers()
        self._routes = routes
        self._clock = clock
        self._store = store
        self._reconciler = reconciler

    # One method a type: check, then change every question that it is about.

    def change_settings(self, event: SettingsControl, record: Record, effects: Effects) -> None:
        """Apply settings to all questions."""
        _check_sender(record, effects, ": write them with `stream-peer settings apply`")
        self.put_in_force(event.document, record.timestamp if event.since is None else event.since, record, effects)
        effects.counts["event", "settings"] += 1

    def put_in_force(
        self, document: dict[str, Any] | None, since: Milliseconds, record: Record, effects: Effects
    ) -> None:
        """A document, or those that hold before any is applied, for what arrives from ``since`` on.

        The first document that a partition meets is in force for everything before it, too.

        Raises
        ------
        RejectedEvent
            If it is none.
        """
        try:
            book = self._first_book if document is None else load_document(document)
        except SettingsError as error:
            raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
        if _stays(book) != _stays(self.book):
            self._store.follow(book.of, self._clock.now)
        self.adopt(book, document, BEGINNING if self.document is None else since)
        for question_id in sorted(self._store.live):
            self._apply_settings(self._store.live[question_id], record, effects)

    def change_expert(self, event: ExpertControl, record: Record, effects: Effects) -> None:
        """Rename or erase an expert. The feed stage handles all other controls of experts."""
        _check_sender(record, effects, is_for_questions=event.forget or event.rename is not None)
        effects.counts["event", "expert"] += 1
        if event.rename is None:
            self.erase({event.feed: (event.expert_id,)}, record, effects)
        else:
            self.rename(event.feed, event.expert_id, event.rename, record, effects)

    def rename(self, feed: str, expert_id: str, name: str, record: Record, effects: Effects) -> None:
        """From here on an event that names an expert's new id counts for the expert.

        Raises
        ------
        RejectedEvent
            If one of the ids is erased, or another expert was renamed from or to the new one.
        """
        if self.erased.among(feed, (expert_id, name)):
            raise erased_rejection(1, 1)
        names = self.names.get(feed, Names())
        names.give(expert_id, name)
        self.names[feed] = names
        for question_id in sorted(self._store.live):
            question = self._store.live[question_id]
            if question.feed == feed and self.unite(question):
                self._reconciler.attend(question, record, effects)

    def erase(self, experts: Mapping[str, Collection[str]], record: Record, effects: Effects) -> None:
        """Erase experts, feed by feed."""
        experts = {feed: [one for name in gone for one in self._all_ids(feed, name)] for feed, gone in experts.items()}
        for feed, gone in experts.items():
            for expert_id in gone:
                self.erased.add(feed, expert_id)
                self._let_names_go(feed, expert_id)
        for question_id in sorted(self._store.live):
            question = self._store.live[question_id]
            found = [expert for expert in experts.get(question.feed, ()) if expert in question.history.experts]
            if found:
                self._drop_experts(question, found)
                refresh_emitted(question, question.plan())
                self._reconciler.attend(question, record, effects, unchanged_before=NEVER)

    def change_feed(self, event: FeedControl, record: Record, effects: Effects) -> None:
        """Delete a feed. The feed stage handles all other controls of feeds."""
        _check_sender(record, effects, is_for_questions=event.delete)
        effects.counts["event", "feed"] += 1
        self.drop({event.feed: NEVER})
        self.note_deletions({event.feed: event.since or 0})
        self.transfers.drop(event.feed)

    def note_deletions(self, feeds: Mapping[str, Milliseconds]) -> None:
        """From here on records of these feeds say when they were deleted; 0: an earlier release did not say it."""
        deleted = self._routes.deleted
        deleted.update((feed, at) for feed, at in feeds.items() if at > deleted.get(feed, 0))

    def drop(self, feeds: Mapping[str, Milliseconds]) -> None:
        """Drop questions of some feeds whose last event is not later than a moment, feed by feed."""
        live = list(self._store.live.values())
        for question in [one for one in live if one.touched <= feeds.get(one.feed, -1)]:
            self._reconciler.discard(question, wholly=True)
        for feed, until in feeds.items():
            self.names.pop(feed, None)
            self._store.drop_stubs(self._store.stubs.of_feed(feed, until))

    def take_in(self, event: FeedImport, record: Record, effects: Effects) -> None:
        """A part of an imported feed's questions. They are added when the last part is there."""
        _check_sender(record, effects, ": write them with `stream-peer import`")
        if event.partition != self._routes.partition:
            msg = f"its questions are for partition {event.partition}, this is {self._routes.partition}"
            raise RejectedEvent(Reason.IMPORT_REFUSED, field="partition", message=msg)
        effects.counts["event", "feed-import"] += 1
        whole = self.transfers.add(event)
        if whole is None:
            return
        imported = MovedQuestions(whole, event.feed, self.book.of(event.feed))
        # Not later than the record: deadlines of other feeds must not pass early.
        self._clock.hear(min(imported.clock, record.timestamp), record.timestamp)
        self.erased.digests.update(imported.forgotten)
        self._take_names(event.feed, imported.names)
        for question in imported.take_up(self._store, self._reconciler, self._routes.is_foreign):
            question.settings = self.book.of(question.feed)
            question.history.redate(self.periods.of(question.feed))
            self.unite(question)
            if self.drop_erased(question):
                refresh_emitted(question, question.plan())
            self._reconciler.attend(question, record, effects)
        self._reconciler.attend_due(record, effects)

    # Questions of the rest of the stage.

    def adopt(self, book: FeedSettingsBook, document: dict[str, Any] | None, since: Milliseconds) -> None:
        """Settings for what arrives from ``since`` on; questions alive keep theirs."""
        self.book = book
        self.document = document
        self.periods.begin(book, since)
        self._clock.skew = book.default.skew

    def first_id(self, feed: str, expert_id: str) -> str:
        """The first id of an expert, found by any of its ids."""
        names = self.names.get(feed)
        return expert_id if names is None else names.first(expert_id)

    def _all_ids(self, feed: str, expert_id: str) -> list[str]:
        names = self.names.get(feed)
        return [expert_id] if names is None else names.all_of(expert_id)

    def _let_names_go(self, feed: str, expert_id: str) -> None:
        names = self.names.get(feed, Names())
        names.drop(expert_id)
        if not names.given:  # every forecast asks whether there are any
            self.names.pop(feed, None)

    def _take_names(self, feed: str, given: Given) -> None:
        """Add names of an imported feed. An expert that is erased here under one id is erased under all."""
        if given:
            self.names[feed] = self.names.get(feed, Names()).joined(given)
        for first, names in given.items():
            if self.erased.among(feed, (first, *names)):
                for expert_id in self._all_ids(feed, first):
                    self.erased.add(feed, expert_id)
                self._let_names_go(feed, first)

    def unite(self, question: QuestionState) -> bool:
        """Replace later ids of experts in a question by the first ones; return whether there were any."""
        names = self.names.get(question.feed)
        if names is None or all(names.first(expert) == expert for expert in question.history.experts):
            return False
        history = question.history
        history.unite(names.first)
        moments = sorted({*question.plan().boundaries, *question.emitted})
        for expert in history.surplus(list(history.experts)):
            history.trim(expert, moments)
        self._store.rewrite(question)
        return True

    def drop_erased(self, question: QuestionState) -> bool:
        """Drop erased experts from a question; return whether there were any."""
        forgotten = self.erased.among(question.feed, question.history.experts)
        if forgotten:
            self._drop_experts(question, forgotten)
        return bool(forgotten)

    def _apply_settings(self, question: QuestionState, record: Record, effects: Effects) -> None:
        """Give a question the state that it would have if the newest settings had applied since their beginning."""
        question.settings = self.book.of(question.feed)
        dated_anew = question.history.redate(self.periods.of(question.feed))
        terms, terms_at = question.terms, question.terms_at
        has_others = dated_anew > 0 or terms != Terms.of(question.settings)
        begins_anew = terms is not None and terms_at >= self.periods.since and has_others
        if begins_anew:
            question.terms = None
        effects.note(question.feed, "dated-anew", dated_anew)
        if dated_anew or begins_anew:
            self._store.touch(question)
        self._reconciler.attend(question, record, effects, 0 if dated_anew or begins_anew else NEVER)
        if begins_anew:
            question.terms_at = terms_at  # with these settings its first round would have come about then, not now

    def _drop_experts(self, question: QuestionState, experts: Collection[str]) -> None:
        """Drop all that a question holds of some experts."""
        question.history.drop(experts)
        if question.changed_experts is not None:
            question.changed_experts.difference_update(experts)
        self._store.purge(question)


def refuse_sender(effects: Effects, message: str) -> RejectedEvent:
    """The rejection of an unsigned record that only the service may write; it is counted."""
    effects.counts["unsigned", "control"] += 1
    return RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=message)


def _check_sender(record: Record, effects: Effects, how: str = "", *, is_for_questions: bool = True) -> None:
    """Whether the control stage wrote a record for the question stage."""
    message = f"this type belongs on control-events{how}"
    if not is_broadcast(record.headers):
        raise refuse_sender(effects, message)
    if not is_for_questions:
        raise RejectedEvent(Reason.UNEXPECTED_TYPE, field="type", message=message)


def _stays(book: FeedSettingsBook) -> tuple[object, ...]:
    """How long stubs stay, feed by feed."""
    spans = {feed: (settings.ledger_for, settings.retract_for) for feed, settings in book.feeds.items()}
    return (book.default.ledger_for, book.default.retract_for), spans

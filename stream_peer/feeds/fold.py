"""The fold of the feed-log: rounds, outcomes, settings and controls change feeds.

history → rounds → **facts → evidence → sums → weights**. What was said of a round (its facts) never changes; what is
known of a question (its evidence) can be replaced at will. A question's contribution is taken out of the sums, its
facts or evidence change, and it is put in again.

Where feeds cannot be corrected in place, an empty fold takes the log from its start and replaces them. It gives what
the log gives if its newest settings had been in force from the start, erased experts had never been there, and the
blocks that it names had been known, so a rebuild may be interrupted and begun again. Scored forecasts alone stay as
they were published.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from stream_peer.errors import RejectedEvent, SettingsError
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    BlockNamed,
    ExpertChanged,
    FeedChanged,
    FeedImported,
    FeedLogRecord,
    GroupChanged,
    HandedOver,
    OutcomeRevealed,
    ProvisionalOutcome,
    QuestionArrived,
    QuestionMoved,
    Round,
    RoundWithdrawn,
    SettingsChanged,
    Verdict,
    read_feed_log,
)
from stream_peer.events.groups import group_id_of
from stream_peer.events.rejections import Reason
from stream_peer.events.times import YEAR_1900, Milliseconds
from stream_peer.feeds.corrections import corrections
from stream_peer.feeds.deletions import Life
from stream_peer.feeds.facts import Facts, score
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read, scoring_inputs
from stream_peer.feeds.feeds import Feeds, RebuildPins
from stream_peer.feeds.former_imports import fresh, take_up
from stream_peer.feeds.group_outputs import group_outputs, group_tombstones
from stream_peer.feeds.hand_overs import HandOvers
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.outputs import feed_tombstones, question_outputs, question_tombstones
from stream_peer.feeds.postponed import CONCERN_ONE_FEED, Postponed
from stream_peer.feeds.reading.reading import Reading
from stream_peer.feeds.round_parts import Assembly
from stream_peer.feeds.scored import count_kind, fix_by_outcome, fix_by_round, note_withdrawal
from stream_peer.log.dead_letters import bare, refuse
from stream_peer.log.sources import DedupWatermarks
from stream_peer.log.stage import Blank, Effects, Output, Record, Warned
from stream_peer.log.transfers import Transfers
from stream_peer.numerics.arguments import unchecked
from stream_peer.numerics.dependence.in_pieces import Pieces, done_at_once
from stream_peer.numerics.outer_layer import safety_net_step
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.settings.feed.document import FeedSettingsBook, load_document


class QuestionChanged(NamedTuple):
    """A question has other rounds or another outcome. ``latest``: facts of its latest round."""

    feed: Feed
    reading: Reading
    question_id: str
    entry: Entry
    latest: Facts | None

    def outputs(self) -> list[Output]:
        """The question's records, as things stand now."""
        return question_outputs(self.feed, self.reading, self.question_id, self.entry, self.latest)


class FeedDeleted(NamedTuple):
    """A feed is no more. ``elsewhere``: its questions that other feeds publish."""

    feed: Feed
    elsewhere: Set[str]
    at: Milliseconds

    def outputs(self) -> list[Output]:
        """Tombstones of everything that was published of the feed."""
        of_questions = question_tombstones(self.feed, self.elsewhere, self.at)
        of_groups = group_tombstones(self.feed, self.elsewhere, self.at)
        return [*feed_tombstones(self.feed, self.at), *of_questions, *of_groups]


class GroupPublished(NamedTuple):
    """Questions of a group have changed, and the feed publishes all of them."""

    feed: Feed
    group: str

    def outputs(self) -> list[Output]:
        """The group's record, as things stand now."""
        return group_outputs(self.feed, self.group, self.feed.ledger.groups[self.group])


class QuestionGone(NamedTuple):
    """A question was handed over to a feed that was deleted before."""

    question_id: str
    at: Milliseconds

    def outputs(self) -> list[Output]:
        """Tombstones of the question's records, and of its group's."""
        keys = [(topic, self.question_id) for topic in topics.KEYED_BY_QUESTION]
        group = group_id_of(self.question_id)
        keys += [(topic, group) for topic in topics.KEYED_BY_GROUP if group is not None]
        return [Output(topic, key.encode(), None, self.at) for topic, key in keys]


Change: TypeAlias = QuestionChanged | GroupPublished | FeedDeleted | QuestionGone


class FeedFold:
    """The feeds of one partition of the feed-log, and how its records change them.

    Parameters
    ----------
    topic : str
        Physical name of the feed-log, for dead letters.
    partition : int
    secret : bytes
        The release's; coins and draws derive from it.
    settings : FeedSettingsBook, optional
        In force until the log holds a settings record; the built-in ones if left out.
    pins : mapping of str to RebuildPins, optional
        What of feeds is fixed during a rebuild.
    method_of : FeedSettings -> Method, optional
        How settings choose a method; a replay knows more methods than a worker serves.

    Attributes
    ----------
    feeds : Feeds
    seen : DedupWatermarks
        The highest source of each source partition.
    parts : Assembly
        Rounds that have come in part.
    former_imports : Transfers
        Feeds that an earlier release moved here, of which parts have come.
    hand_overs : HandOvers
        Questions that moved, and which feed publishes them.
    document : dict or None
        The settings in force, as they were applied.
    postponed : Postponed
        Records that wait for the end of a rebuild.
    """

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        secret: bytes = b"",
        settings: FeedSettingsBook | None = None,
        pins: Mapping[str, RebuildPins] | None = None,
        method_of: MethodOf = served_method,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._secret = secret
        self._first_book = settings if settings is not None else load_document({})
        self._rebuilds_all = False
        self._method_of = method_of
        self.feeds = Feeds(secret, self._first_book, pins or {}, method_of)
        self.document: dict[str, object] | None = None
        self._now: Milliseconds = YEAR_1900
        self.seen = DedupWatermarks()
        self.parts = Assembly()
        self.former_imports = Transfers()
        self.hand_overs = HandOvers(partition)
        self.postponed = Postponed()
        self._finished: dict[type[FeedLogRecord], Callable[..., Pieces[Change | None]]] = {
            Round: self._on_round,
            RoundWithdrawn: self._on_withdrawn,
            OutcomeRevealed: self._on_outcome,
        }
        self._handlers: dict[type[FeedLogRecord], Callable[..., Change | None]] = {
            ProvisionalOutcome: self._on_provisional,
            GroupChanged: self._on_group,
            QuestionMoved: self._on_moved,
            QuestionArrived: self._on_arrived,
            HandedOver: self._on_handed_over,
            BlockNamed: self._on_block_named,
            SettingsChanged: self._on_settings,
            ExpertChanged: self._on_expert,
            FeedChanged: self._on_feed,
            FeedImported: self._on_former_import,
        }

    @property
    def clock(self) -> Milliseconds:
        """The largest record time so far; 0 before the first. Only a replay folds records from before 1970."""
        return self._now if self._now > YEAR_1900 else 0

    def step(self, record: Record, effects: Effects) -> list[Change]:
        """Fold one record of the feed-log; return what it changed that is published under keys of questions.

        What cannot be read goes to dead letters and changes nothing.
        """
        return done_at_once(self.pieces(record, effects))

    def pieces(self, record: Record, effects: Effects) -> Pieces[list[Change]]:
        """The same in pieces, if it takes long: nothing else may be folded meanwhile."""
        self.pass_time(record)
        if self.postponed.feeds and self.hand_overs.is_overdue(self._now):
            self.postponed.put(record, None)
            return []
        overdue = self.hand_overs.overdue(self._revision(record), self._now)
        changes = list[Change]()
        for change in (self._taken_over(*place, record) for place in overdue):
            changes += self._with_group(change, record)
        try:
            event = read_feed_log(record.value)
        except RejectedEvent as rejection:
            self._refuse(record, rejection, effects)
            return changes
        if self.postponed.feeds and self._concerns_many(event, record):
            self.postponed.put(record, None)
            return changes
        if not self.seen.add(event.src):
            effects.counts["duplicate", ""] += 1
            return changes
        if event.feed in self.postponed.feeds:
            self.postponed.put(record, event)
            return changes
        return changes + (yield from self._fold(event, record, effects))

    def _concerns_many(self, event: FeedLogRecord, record: Record) -> bool:
        """Whether a record may concern more than its feed, or ends it."""
        is_next = self.feeds.deletions.life_of(event, record.timestamp) is Life.NEXT
        return is_next or not isinstance(event, CONCERN_ONE_FEED)

    def _fold(self, event: FeedLogRecord, record: Record, effects: Effects) -> Pieces[list[Change]]:
        """What a record changes whose source is new."""
        changes: list[Change] = []
        effects.counts["event", str(event.__struct_config__.tag)] += 1
        try:
            life = self.feeds.deletions.life_of(event, record.timestamp)
            if life is Life.NEXT and (deleted := self._delete(event, record)):
                changes.append(deleted)
            if life is Life.FORMER:
                change = self._of_former_life(event, record, effects)
            elif finished := self._finished.get(type(event)):
                change = yield from finished(event, record, effects)
            else:
                change = self._handlers[type(event)](event, record, effects)
        except RejectedEvent as rejection:
            self._refuse(record, rejection, effects)
            return changes
        for feed, questions, blocks in self.feeds.namings:
            self.hand_overs.name_blocks(feed, questions, blocks, self._revision(record), record.timestamp)
        self.feeds.namings.clear()
        if change is None or self._is_published(change):
            changes += self._with_group(change, record)
        return changes

    def _with_group(self, change: Change | None, record: Record) -> Iterator[Change]:
        """A change, and that of the group that waited for it."""
        if change is not None:
            yield change
        if isinstance(change, QuestionChanged):
            group = self.hand_overs.awaited_group(change.feed.name, change.question_id)
            if group is not None and (changed := self._group_changed(change.feed, group, record)):
                yield changed

    def _refuse(self, record: Record, rejection: RejectedEvent, effects: Effects) -> None:
        refused = bare(record) if rejection.reason == Reason.FORGOTTEN else record
        refuse(refused, self._topic, self._partition, rejection, effects)

    def _is_published(self, change: Change) -> bool:
        """Whether it is this feed that publishes the question."""
        return not isinstance(change, QuestionChanged) or self.hand_overs.publishes(
            change.feed.name, change.question_id
        )

    def _revision(self, record: Record) -> int:
        return self.feeds.base + record.offset

    def pass_time(self, record: Record) -> None:
        """Move the clock by a record, and fold nothing of it."""
        self._now = max(self._now, record.timestamp)

    def _on_round(self, event: Round, record: Record, effects: Effects) -> Pieces[Change | None]:
        whole = self.parts.add(event)
        if whole is None:
            return None
        self.hand_overs.has_round(event.feed, event.question_id, record.timestamp)
        feed = self.feeds.feed(event.feed)
        whole = feed.roster.admitted(whole)
        empty = not whole.experts
        if empty and event.question_id not in feed.ledger:
            return None
        entry = self.feeds.entry(feed, event.question_id, record.timestamp, effects, known=empty)
        if entry is None:
            return None
        if empty:
            return (yield from self._drop(feed, event, entry, record))
        feed.take_out(entry)
        facts = self._facts(feed, whole, record, effects)
        entry.weight = event.weight
        entry.put(facts)
        if fix_by_round(entry, whole, feed.path_state.base + record.offset):
            self.feeds.carry_over(feed, event.question_id, entry)
        feed.put_in(entry)
        if feed.learner_path is not None:
            now = read(feed)
            seen = now.extent(feed.roster.n_seen(facts.experts, now.sums))
            feed.learner_path.learn(facts, entry, seen, feed.method)
        reading = yield from self.feeds.finish(feed, event.question_id, entry, record)
        counts = facts.votes.counts
        effects.counts["round", "counts" if counts else "low-evidence"] += 1
        effects.of_feeds[feed.name, "scored" if counts else "low-evidence"] += 1
        return QuestionChanged(feed, reading, event.question_id, entry, entry.latest())

    def _meet(self, feed: Feed, known: int, record: Record, effects: Effects) -> None:
        """Name the experts that have a place from ``known`` on, and those of them that look like another one."""
        effects.new_experts += [(feed.name, expert, record.timestamp) for expert in feed.roster.experts[known:]]
        for expert, earlier in feed.roster.look_alikes(known):
            message = f"{expert!r} looks like {earlier!r}: two experts, or one that is misspelt?"
            effects.warnings.append(Warned("look-alike-experts", feed.name, "", message))
            effects.look_alikes.append((feed.name, expert, earlier))

    def _facts(self, feed: Feed, event: Round, record: Record, effects: Effects) -> Facts:
        """Facts of a round, under the weights of a moment at which its question was not known."""
        known = len(feed.roster.experts)
        experts = feed.places(event.experts)
        if len(feed.roster.experts) > known:
            self._meet(feed, known, record, effects)
        under = scoring_inputs(feed, read(feed), experts, event.question_id, event.boundary)
        forecasts = np.array(event.probabilities, dtype=np.float64)
        return score(event.boundary, experts, forecasts, under, feed.method, final=event.final)

    def _on_withdrawn(self, event: RoundWithdrawn, record: Record, effects: Effects) -> Pieces[Change | None]:
        feed = self.feeds.by_name.get(event.feed)
        known = feed is not None and event.question_id in feed.ledger
        entry = (
            self.feeds.entry(feed, event.question_id, record.timestamp, effects, known=True) if feed and known else None
        )
        if feed is None or entry is None:
            return None
        change = yield from self._drop(feed, event, entry, record)
        return self._end_if_left(event.feed, event.question_id, record) or change

    def _drop(self, feed: Feed, event: Round | RoundWithdrawn, entry: Entry, record: Record) -> Pieces[Change | None]:
        """A boundary has no round any more."""
        feed.take_out(entry)
        found = entry.drop(event.boundary)
        feed.put_in(entry)
        reading = yield from self.feeds.finish(feed, event.question_id, entry, record)
        if not found:
            return None
        note_withdrawal(entry, feed.path_state.base + record.offset)
        return QuestionChanged(feed, reading, event.question_id, entry, entry.latest())

    def _end_if_left(self, name: str, question_id: str, record: Record) -> Change | None:
        """A feed ends when its last question leaves it: it was perhaps named by mistake, before its question was known.

        Its first revision lies behind it; else nothing was published of it.
        """
        feed, hand_overs = self.feeds.by_name.get(name), self.hand_overs
        has_left = feed is not None and hand_overs.has_left(name, question_id)
        if feed is None or not has_left or not feed.is_bare() or not hand_overs.have_left(name, feed.ledger.entries):
            return None
        self.feeds.end(name)
        return FeedDeleted(feed, set(feed.ledger.entries), record.timestamp)

    def _on_outcome(self, event: OutcomeRevealed, record: Record, effects: Effects) -> Pieces[Change | None]:
        taken_back = event.outcome == "open"
        known = self.feeds.by_name.get(event.feed)
        if taken_back and (known is None or event.question_id not in known.ledger):
            return None
        feed = self.feeds.feed(event.feed)
        entry = self.feeds.entry(feed, event.question_id, record.timestamp, effects, known=taken_back)
        if entry is None or entry.evidence == event.outcome:
            return None
        kind = _kind_of_outcome(entry.evidence, event.outcome)
        effects.of_feeds[feed.name, kind] += 1
        feed.take_out(entry)
        entry.evidence = event.outcome
        if not taken_back:
            entry.provisional = "open"
        if fix_by_outcome(entry, event.outcome):
            self.feeds.carry_over(feed, event.question_id, entry)
        if kind == "revealed" and (scored := count_kind(entry)):
            effects.of_feeds[feed.name, scored] += 1
        feed.put_in(entry)
        path_state = feed.path_state
        path_state.outcomes += 1
        if feed.method.mixes:
            path_state.net_share = unchecked(safety_net_step)(path_state.net_share, *read(feed).net_sums())
        reading = yield from self.feeds.finish(feed, event.question_id, entry, record)
        return QuestionChanged(feed, reading, event.question_id, entry, entry.latest()) if entry.rounds else None

    def _on_provisional(self, event: ProvisionalOutcome, record: Record, _effects: Effects) -> Change | None:
        """Show it with the question. It teaches nothing, and is no news by which an entry stays longer."""
        feed = self.feeds.by_name.get(event.feed)
        entry = None if feed is None else feed.ledger.entries.get(event.question_id)
        is_shown = entry is not None and (event.outcome == "open" or entry.evidence == "open")
        if feed is None or entry is None or not is_shown or entry.provisional == event.outcome:
            return None
        entry.provisional = event.outcome
        self.feeds.shown(feed, record, event.question_id)
        return QuestionChanged(feed, read(feed), event.question_id, entry, entry.latest()) if entry.rounds else None

    def _on_group(self, event: GroupChanged, record: Record, _effects: Effects) -> Change | None:
        feed = self.feeds.by_name.get(event.feed)
        if feed is None:
            return None
        for part in feed.ledger.note_options(event.group_id, event.options):
            self.feeds.store.touch(feed.name, part)
        return self._group_changed(feed, event.group_id, record)

    def _group_changed(self, feed: Feed, group: str, record: Record) -> Change | None:
        parts = feed.ledger.groups.get(group, ())
        if not parts or not self.hand_overs.publishes_all(feed.name, group, parts):
            return None
        self.feeds.shown(feed, record)
        return GroupPublished(feed, group)

    def _on_moved(self, event: QuestionMoved, record: Record, _effects: Effects) -> Change | None:
        self.hand_overs.leave(event, self._revision(record), record.timestamp)
        return self._end_if_left(event.feed, event.question_id, record)

    def _on_arrived(self, event: QuestionArrived, record: Record, _effects: Effects) -> Change | None:
        if event.feed in self.feeds.ended:
            self.feeds.feed(event.feed)  # it ended before the question came, so it begins again
        is_handed_over = self.hand_overs.arrive(event, record.timestamp)
        return self._taken_over(event.feed, event.question_id, record) if is_handed_over else None

    def _on_handed_over(self, event: HandedOver, record: Record, _effects: Effects) -> Change | None:
        is_published = self.hand_overs.take_over(event, self._revision(record), record.timestamp)
        return self._taken_over(event.feed, event.question_id, record) if is_published else None

    def _on_block_named(self, event: BlockNamed, record: Record, _effects: Effects) -> None:
        self.feeds.name_blocks(event, record)

    def _taken_over(self, name: str, question_id: str, record: Record) -> Change | None:
        """A feed publishes a question from here on: what it knows of it, be it that it has no round."""
        known = self.feeds.by_name.get(name)
        if known is None or question_id not in known.ledger.entries:
            # Earlier releases left no note of questions that went with their feed.
            has_ended = known is None and name in self.feeds.ended
            if has_ended or self.hand_overs.is_gone(name, question_id):
                return QuestionGone(question_id, record.timestamp)
        feed = self.feeds.feed(name)
        if question_id in feed.ledger.expired:
            return None
        entry = feed.ledger.entries.get(question_id, Entry())
        self.feeds.shown(feed, record, question_id)
        return QuestionChanged(feed, read(feed), question_id, entry, entry.latest())

    def _on_settings(self, event: SettingsChanged, record: Record, _effects: Effects) -> None:
        try:
            book = self._first_book.of_document(event.document)
        except SettingsError as error:
            raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
        self.document = event.document
        self.feeds.settle(book, record)

    def _on_expert(self, event: ExpertChanged, record: Record, _effects: Effects) -> None:
        for expert in self.feeds.change_expert(event, record):
            self.parts.discard(event.feed, expert)

    def _on_feed(self, event: FeedChanged, record: Record, _effects: Effects) -> Change | None:
        if event.reset:
            self.feeds.reset(event.feed, record)
        return self._delete(event, record) if event.delete else None

    def _delete(self, event: FeedLogRecord, record: Record) -> Change | None:
        """A feed is deleted, as a control says, or a record of a feed that has begun again after it."""
        if not self.feeds.deletions.delete(event):
            return None
        self.former_imports.drop(event.feed)
        feed = self.feeds.end(event.feed)
        elsewhere = self.hand_overs.elsewhere(event.feed)
        self.hand_overs.delete(event.feed)
        return None if feed is None else FeedDeleted(feed, elsewhere, record.timestamp)

    def _of_former_life(self, event: FeedLogRecord, record: Record, effects: Effects) -> Change | None:
        """A record that was written for the feed before it was deleted. It teaches nothing; a question moves on."""
        effects.counts["deleted-feed", ""] += 1
        if isinstance(event, QuestionMoved):
            return self._on_moved(event, record, effects)
        if isinstance(event, QuestionArrived):
            is_handed_over = self.hand_overs.arrive(event, record.timestamp, is_gone=True)
            return self._taken_over(event.feed, event.question_id, record) if is_handed_over else None
        return None

    def _on_former_import(self, event: FeedImported, record: Record, _effects: Effects) -> None:
        """A part of a feed that an earlier release moved here. Its questions are the question stage's."""
        if event.partition is not None:
            return
        try:
            if event.part == 0:
                fresh(self.feeds, event.feed)
            whole = self.former_imports.add(event)
        except RejectedEvent:
            self.former_imports.drop(event.feed)
            raise
        if whole is not None:
            for waiting in take_up(self.feeds, event, whole, record):
                self.parts.put(waiting)

    # --- rebuilds ---

    @property
    def needs_rebuild(self) -> bool:
        """Whether feeds can only be corrected by folding their log from its start. Nothing may be folded before."""
        return self._rebuilds_all or bool(self.feeds.due)

    def rebuild_all(self) -> None:
        """The state was lost; the log holds it all."""
        self._rebuilds_all = True

    def blank(self) -> "Blank[FeedFold]":
        """An empty fold for the rebuild that is due: of all feeds, or of those that need it."""
        pins = {} if self._rebuilds_all else self.feeds.pins()
        if pins:
            self.postponed.begin(pins)
        fold = FeedFold(
            topic=self._topic,
            partition=self._partition,
            secret=self._secret,
            settings=self._first_book,
            pins=pins,
            method_of=self._method_of,
        )
        fold.feeds.base = self.feeds.base
        return Blank(fold, None if self._rebuilds_all else keys_of(*pins))

    def adopt(self, rebuilt: "FeedFold") -> Iterator[Output]:
        """Replace what was rebuilt; return what published records of questions must be corrected."""
        if self._rebuilds_all:
            stale = self.feeds.store.stale
            self.feeds, self.document, self._now = rebuilt.feeds, rebuilt.document, rebuilt.clock
            self.seen, self.parts, self.former_imports = rebuilt.seen, rebuilt.parts, rebuilt.former_imports
            self.hand_overs = rebuilt.hand_overs
            self.feeds.store.stale.update(stale)
            self._rebuilds_all = False
            return iter(())
        self.postponed.end()
        pairs = self.feeds.replace(rebuilt.feeds, sorted(self.feeds.due))
        return chain.from_iterable(
            corrections(before, after, self.hand_overs.elsewhere(after.name)) for before, after in pairs
        )


def keys_of(*feeds: str) -> Set[bytes]:
    """Keys of the records of the feed-log that concern feeds."""
    return {SETTINGS_KEY, *(name.encode() for name in feeds)}


def _kind_of_outcome(before: Verdict, now: Verdict) -> str:
    """As what an outcome is counted."""
    if now == "annulled":
        return "annulled"
    return "revealed" if before == "open" else "revised"

"""The feed stage: rounds, outcomes and settings in, facts, weights and error rates out.

history → rounds → **facts → evidence → sums → weights**. What was said of a round (its facts) never changes; what is
known of a question (its evidence) can be replaced at will. A question's contribution is taken out of the sums, its
facts or evidence change, and it is put in again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

import numpy as np

from stream_peer.errors import ForeignSecretError, RejectedEvent, SettingsError
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    ExpertChanged,
    FeedChanged,
    FeedImported,
    FeedLogRecord,
    OutcomeRevealed,
    ProvisionalOutcome,
    Round,
    RoundWithdrawn,
    SettingsChanged,
    Verdict,
    read_feed_log,
)
from stream_peer.events.rejections import Reason
from stream_peer.events.times import YEAR_1900, Milliseconds
from stream_peer.feeds.contributions import contribution, contribution_of
from stream_peer.feeds.facts import Facts
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_import import goes_on, handed_on, tells_time
from stream_peer.feeds.feeds import Feeds, Firm
from stream_peer.feeds.imports import Imports
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.output_records import feed_tombstones
from stream_peer.feeds.question_outputs import question_outputs, question_tombstones, read_question
from stream_peer.feeds.rebuild import FeedRefold, said_without
from stream_peer.feeds.round_parts import Assembly
from stream_peer.feeds.scored import fix_by_outcome, fix_by_round, note_withdrawal
from stream_peer.feeds.scoring import score
from stream_peer.feeds.store import (
    SCHEMA,
    Head,
    decode_head,
    encode_head,
    schema_and_secret,
    stored_feeds,
    stored_ledgers,
)
from stream_peer.feeds.views import FeedView
from stream_peer.log.dead_letters import bare, refuse
from stream_peer.log.draws import fingerprint
from stream_peer.log.origins import Seen
from stream_peer.log.owners import QuestionReading
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Effects, Output, Record, Refolding, Snapshot, Warned
from stream_peer.numerics.arguments import unchecked
from stream_peer.numerics.outer_layer import safety_net_step
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.settings.feed.document import FeedSettingsBook, load_document


class FeedStage:
    """The fold of one partition of the feed-log. See ``Stage`` for the methods that drive it.

    Parameters
    ----------
    topic : str
        Physical name of the feed-log, for dead letters.
    partition : int
    secret : bytes
        The release's; coins and draws derive from it.
    settings : FeedSettingsBook, optional
        In force until the log holds a settings record; the built-in ones if left out.
    firm : mapping of str to Firm, optional
        It folds only these feeds, for a refold; None: all.
    only : str, optional
        It folds only this feed; records of others move its clock.
    counts_later : bool
        ``load`` leaves to ``recount`` what takes long.
    signatures : Signatures, optional
        Sign what goes to ``forecast-events``.

    Attributes
    ----------
    feeds : Feeds
    seen : Seen
        The highest source of each source partition.
    parts : Assembly
        Rounds that have come in part.
    imports : Imports
        Feeds that have come in part.
    document : dict or None
        The settings in force, as they were applied.
    silent : bool
        It says nothing of questions.
    """

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        secret: bytes = b"",
        settings: FeedSettingsBook | None = None,
        firm: Mapping[str, Firm] | None = None,
        only: str | None = None,
        counts_later: bool = False,
        signatures: Signatures | None = None,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._secret = secret
        self._fingerprint = fingerprint(secret)
        self._first_book = settings if settings is not None else load_document({})
        self._only = _keys(firm if only is None else (only,))
        self.silent = self._owes = self._begins_anew = False
        self._counts_later = counts_later
        self._signatures = signatures or Signatures()
        self._uncounted: list[str] = []
        self.feeds = Feeds(secret, self._first_book, firm or {})
        self.document: dict[str, object] | None = None
        self._now: Milliseconds = YEAR_1900
        self.seen = Seen()
        self.parts = Assembly()
        self.imports = Imports()
        self._owed: Iterator[Output] = iter(())
        self._loaded: Iterable[bytes] = ()
        self._handlers: dict[type[FeedLogRecord], Callable[..., None]] = {
            Round: self._on_round,
            RoundWithdrawn: self._on_withdrawn,
            OutcomeRevealed: self._on_outcome,
            ProvisionalOutcome: self._on_provisional,
            SettingsChanged: self._on_settings,
            ExpertChanged: self._on_expert,
            FeedChanged: self._on_feed,
            FeedImported: self._on_import,
        }

    needs_marker = False

    def is_marker(self, record: Record) -> bool:  # noqa: ARG002 - its log is the worker's own
        """Never asked for."""
        return False

    @property
    def clock(self) -> Milliseconds:
        """The largest record time so far; 0 before the first. Only a replay folds records from before 1970."""
        return self._now if self._now > YEAR_1900 else 0

    def deadline(self) -> Milliseconds | None:
        """Nothing here waits for the clock."""
        return None

    # --- folding ---

    def step(self, record: Record, effects: Effects) -> None:
        """Fold one record of the feed-log. What cannot be read goes to dead letters and changes nothing."""
        if self._owes:  # it is to be said as things stand now
            self._owed, self._owes = iter([*self._owed]), False
        if tells_time(record):
            self._now = max(self._now, record.timestamp)
        if self._only is not None and record.key not in self._only:
            return
        try:
            event = read_feed_log(record.value)
            if not self.seen.add(event.src):
                effects.counts["duplicate", ""] += 1
                return
            effects.counts["event", str(event.__struct_config__.tag)] += 1
            self._handlers[type(event)](event, record, effects)
        except RejectedEvent as rejection:
            told = bare(record) if rejection.reason == Reason.FORGOTTEN else record
            refuse(told, self._topic, self._partition, rejection, effects)

    def _on_round(self, event: Round, record: Record, effects: Effects) -> None:
        whole = self.parts.add(event)
        if whole is None:
            return
        feed = self.feeds.feed(event.feed)
        whole = feed.roster.admitted(whole)
        empty = not whole.experts
        if empty and event.question_id not in feed.accounts.ledger:
            return
        entry = self.feeds.entry(feed, event.question_id, self._now, effects, known=empty)
        if entry is None:
            return
        if empty:
            self._drop(feed, event, entry, record, effects)
            return
        feed.take_out(entry)
        known = len(feed.roster)
        facts = self._facts(feed, whole)
        if len(feed.roster) > known:
            self._meet(feed, known, record, effects)
        entry.weight = event.weight
        entry.put(facts)
        if fix_by_round(entry, whole, feed.standing.base + record.offset):
            self.feeds.carry_over(feed, event.question_id, entry)
        alone = len(entry.rounds) == 1 and entry.evidence != "annulled"
        if alone:
            feed.put_in(contribution_of((facts,), entry, feed.method), entry)
        else:
            feed.put_in(contribution(entry, feed.method), entry)
        feed.learn(facts, entry)
        self.feeds.finish(feed, event.question_id, entry, record)
        self._say(feed, event.question_id, entry, effects, facts if alone else None)
        counts = facts.votes.counts
        effects.counts["round", "counts" if counts else "low-evidence"] += 1
        effects.of_feeds[feed.name, "scored" if counts else "low-evidence"] += 1

    def _meet(self, feed: Feed, known: int, record: Record, effects: Effects) -> None:
        """Name the experts that have a place from ``known`` on, and those of them that look like another one."""
        effects.new_experts += [(feed.name, expert, record.timestamp) for expert in feed.roster.experts[known:]]
        for expert, earlier in feed.roster.look_alikes(known):
            message = f"{expert!r} looks like {earlier!r}: two experts, or one that is misspelt?"
            effects.warnings.append(Warned("look-alike-experts", feed.name, "", message))
            effects.look_alikes.append((feed.name, expert, earlier))

    def _facts(self, feed: Feed, event: Round) -> Facts:
        """Facts of a round, under the weights of a moment at which its question was not known."""
        experts = feed.places(event.experts)
        under = feed.circumstances(experts, event.question_id, event.boundary)
        forecasts = np.array(event.probabilities, dtype=np.float64)
        return score(event.boundary, experts, forecasts, under, feed.method, final=event.final)

    def _on_withdrawn(self, event: RoundWithdrawn, record: Record, effects: Effects) -> None:
        feed = self.feeds.by_name.get(event.feed)
        known = feed is not None and event.question_id in feed.accounts.ledger
        entry = self.feeds.entry(feed, event.question_id, self._now, effects, known=True) if feed and known else None
        if feed is not None and entry is not None:
            self._drop(feed, event, entry, record, effects)

    def _drop(self, feed: Feed, event: Round | RoundWithdrawn, entry: Entry, record: Record, effects: Effects) -> None:
        """A boundary has no round any more."""
        feed.take_out(entry)
        found = entry.drop(event.boundary)
        feed.put_in(contribution(entry, feed.method), entry)
        self.feeds.finish(feed, event.question_id, entry, record)
        if found:
            note_withdrawal(entry, feed.standing.base + record.offset)
            self._say(feed, event.question_id, entry, effects)

    def _on_outcome(self, event: OutcomeRevealed, record: Record, effects: Effects) -> None:
        feed = self.feeds.feed(event.feed)
        taken_back = event.outcome == "open"
        if taken_back and event.question_id not in feed.accounts.ledger:
            return
        entry = self.feeds.entry(feed, event.question_id, self._now, effects, known=taken_back)
        if entry is None or entry.evidence == event.outcome:
            return
        effects.of_feeds[feed.name, _kind_of_outcome(entry.evidence, event.outcome)] += 1
        feed.take_out(entry)
        entry.evidence = event.outcome
        if not taken_back:
            entry.provisional = "open"
        if fix_by_outcome(entry, event.outcome):
            self.feeds.carry_over(feed, event.question_id, entry)
        feed.put_in(contribution(entry, feed.method), entry)
        standing = feed.standing
        standing.outcomes += 1
        if feed.method.mixes:
            standing.net_share = unchecked(safety_net_step)(standing.net_share, *feed.read().net_sums())
        self.feeds.finish(feed, event.question_id, entry, record)
        if entry.rounds:
            self._say(feed, event.question_id, entry, effects)

    def _on_provisional(self, event: ProvisionalOutcome, record: Record, effects: Effects) -> None:
        """Show it with the question. It teaches nothing, and is no news by which an entry stays longer."""
        feed = self.feeds.by_name.get(event.feed)
        entry = None if feed is None else feed.entries.get(event.question_id)
        is_shown = entry is not None and (event.outcome == "open" or entry.evidence == "open")
        if feed is None or entry is None or not is_shown or entry.provisional == event.outcome:
            return
        entry.provisional = event.outcome
        self.feeds.shown(feed, event.question_id, record)
        if entry.rounds:
            self._say(feed, event.question_id, entry, effects)

    def _say(self, feed: Feed, question_id: str, entry: Entry, effects: Effects, latest: Facts | None = None) -> None:
        """Publish what is to be said of a question now."""
        if not self.silent:
            facts = entry.latest() if latest is None else latest
            effects.outputs += question_outputs(feed, question_id, entry, facts)

    def _on_settings(self, event: SettingsChanged, record: Record, _effects: Effects) -> None:
        try:
            book = self._first_book.of_document(event.document)
        except SettingsError as error:
            raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
        self.document = event.document
        self.feeds.settle(book, record)

    def _on_expert(self, event: ExpertChanged, record: Record, _effects: Effects) -> None:
        for expert in self.feeds.change_expert(event, record):
            self.parts.let_go(event.feed, expert)

    def _on_feed(self, event: FeedChanged, record: Record, effects: Effects) -> None:
        if event.reset:
            self.feeds.reset(event.feed, record)
        if event.delete:
            self.imports.drop(event.feed)
            feed = self.feeds.end(event.feed)
            if feed is not None and not self.silent:
                effects.outputs += feed_tombstones(feed, record.timestamp)
                effects.outputs += question_tombstones(feed, record.timestamp)

    def _on_import(self, event: FeedImported, record: Record, effects: Effects) -> None:
        """A part of a feed; or of its questions, which are handed on when the feed itself has been taken up."""
        if event.partition is not None:
            goes_on(self.feeds.by_name.get(event.feed), event, record)
            if not self.silent:
                effects.outputs.append(handed_on(event, record, self._signatures))
            return
        for waiting in self.imports.add(event, record, self.feeds):
            self.parts.put(waiting)

    # --- publishing ---

    def changed_feeds(self) -> Mapping[str, Milliseconds]:
        """Feeds changed since they were last published, each with its ``publish_every``."""
        feeds = self.feeds.by_name
        return {name: feeds[name].settings.publish_every for name in self.feeds.board.unpublished()}

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        """Add ``weights`` and ``error-rates`` of changed feeds: of all (None), or of those given that have news."""
        effects.outputs += self._owed
        board = self.feeds.board
        for name in board.unpublished(feeds):
            outputs = board.publish(self.feeds.by_name[name], only_news=feeds is not None)
            effects.outputs += outputs
            effects.counts["published" if outputs else "unmoved", ""] += 1

    def views(self) -> Mapping[str, FeedView]:
        """The newest outputs of each feed."""
        return {name: self.feeds.board.view(feed) for name, feed in self._spoken()}

    def latest_views(self) -> Mapping[str, FeedView]:
        """The outputs of each feed as they were last published, for metrics."""
        return {name: self.feeds.board.latest(feed) for name, feed in self._spoken()}

    def _spoken(self) -> Iterator[tuple[str, Feed]]:
        """Feeds of which there is something to say, by name."""
        return ((name, feed) for name, feed in sorted(self.feeds.by_name.items()) if feed.standing.revision >= 0)

    def has_feed(self, feed: str) -> bool:
        """Whether there is such a feed."""
        return feed in self.feeds.by_name

    def reading(self, feed: str, question_id: str) -> QuestionReading | None:
        """What can be said of a question; None if no round of it was scored, or it has left the ledger."""
        found = self.feeds.by_name.get(feed)
        entry = None if found is None else found.entries.get(question_id)
        if found is None or entry is None or not entry.rounds:
            return None
        return read_question(found, question_id, entry, entry.latest())

    @property
    def settings_hash(self) -> str:
        """Names the feed settings in force."""
        return self.feeds.book.hash

    # --- checking and folding anew ---

    def agrees(self) -> bool:
        """Whether the sums of all feeds equal those that follow from their ledgers."""
        return all(feed.accounts.blocks.equals(feed.recomputed()) for feed in self.feeds.by_name.values())

    def audit(self) -> Iterator[None]:
        """Compare sums and ledgers, a bounded piece an item; afterwards ``must_refold`` says whether they agree."""
        yield from self.feeds.audit()

    @property
    def must_refold(self) -> bool:
        """Whether nothing may be stepped before a refold."""
        return self._begins_anew or bool(self.feeds.due)

    def refolding(self, applied: int) -> Refolding:
        """The refold that is due, of the log up to ``applied``."""
        firm = None if self._begins_anew else self.feeds.firm()
        shadow = FeedStage(
            topic=self._topic,
            partition=self._partition,
            secret=self._secret,
            settings=self._first_book,
            firm=firm,
        )
        shadow.silent = True
        shadow.rebase(self.feeds.base)
        return FeedRefold(self, shadow, applied)

    def take_up(self, shadow: "FeedStage") -> None:
        """The end of a refold: what was folded is the state from here on."""
        if self._begins_anew:
            stale = self.feeds.store
            self.feeds, self.document, self._now = shadow.feeds, shadow.document, shadow.clock
            self.seen, self.parts, self.imports = shadow.seen, shadow.parts, shadow.imports
            self.feeds.store.give_up(stale.stale)
            self._begins_anew = False
            return
        pairs = self.feeds.replace(shadow.feeds, sorted(self.feeds.due))
        self._owed = chain(self._owed, *(said_without(before, after) for before, after in pairs))
        self._owes = True

    def owed(self) -> Iterator[Output]:
        """What a refold has left to be said of questions; what is not taken comes with the next ``publish``."""
        return self._owed

    def lost(self, records: int) -> None:
        """Records of the log were gone before they were read: every feed says so from its next revision on."""
        for feed in self.feeds.by_name.values():
            feed.standing.lost += records

    # --- another log ---

    @property
    def revision(self) -> int:
        """The highest that any feed has."""
        of_feeds = (feed.standing.revision for feed in self.feeds.by_name.values())
        return max((-1, *of_feeds, *(ended.revision for ended in self.feeds.ended.values())))

    def incarnations(self) -> Mapping[int, int]:
        """Of each partition of control-events, the topic whose records were met last."""
        return self.seen.incarnations(topics.CONTROL_EVENTS)

    def begin_anew(self) -> None:
        """The state was lost: the log holds it all."""
        self._begins_anew = True

    def rebase(self, base: int) -> None:
        """What revisions of new feeds are ahead of offsets."""
        self.feeds.base = base

    def reincarnate(self, incarnation: int, base: int, *, keep: bool) -> None:  # noqa: ARG002 - sources name inputs
        """The feed-log was made anew: revisions go on above all former ones; without ``keep`` feeds begin anew."""
        self.feeds.base = base
        self.feeds.ended.clear()
        for feed in self.feeds.by_name.values():
            feed.standing.base = base
        if not keep:
            former, self.feeds = self.feeds, self.feeds.emptied()
            self.feeds.store.give_up([*former.store.stale, *self._loaded])
            self._now, self.seen, self.parts, self._begins_anew = YEAR_1900, Seen(), Assembly(), False
            self.imports.clear()

    # --- state ---

    def snapshot(self) -> Snapshot:
        """State changed since the last call."""
        rows = {**self.feeds.store.rows(self.feeds.by_name), **self.parts.snapshot(), **self.imports.snapshot()}
        standings = {name: feed.standing for name, feed in sorted(self.feeds.by_name.items())}
        head = Head(SCHEMA, self.clock, list(self.seen), standings, self.document, self._fingerprint, self.feeds.ended)
        return Snapshot(rows, encode_head(head))

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Take up the state that an earlier owner left. That of another schema is folded anew from the log.

        Raises
        ------
        StateError
            If it cannot be read at all; as ForeignSecretError, if the owner had another secret.
        """
        if head is None:
            return
        self._loaded = entries.keys()
        schema, secret = schema_and_secret(head)
        if secret is not None and secret != self._fingerprint:
            raise ForeignSecretError(expected=secret, given=self._fingerprint)
        if schema != SCHEMA:
            self._begins_anew = True
            self.feeds.store.give_up(entries)
            return
        stored = decode_head(head)
        self._now = stored.clock
        self.seen = Seen(stored.seen)
        self.feeds.ended = stored.ended
        if stored.settings is not None:
            self.document, self.feeds.book = stored.settings, self._first_book.of_document(stored.settings)
        self.parts.load(entries)
        self.imports.load(entries)
        ledgers = stored_ledgers(entries)
        for name, (data, pieces) in stored_feeds(entries).items():
            feed = self.feeds.feed(name)
            feed.take_up(data, stored.standings[name], ledgers.get(name, {}))
            feed.pieces = pieces
            self._uncounted.append(name)
        if not self._counts_later:
            for _ in self.recount():
                pass

    def recount(self) -> Iterator[None]:
        """Compute the sums of feeds that were loaded, a bounded piece an item."""
        while self._uncounted:
            feed = self.feeds.by_name.get(self._uncounted.pop())
            if feed is not None:
                yield from feed.recount()
                self.feeds.board.latest(feed)  # else the first to look would compute those of all feeds at once
                yield
        yield from self.imports.recount(self.feeds)


def _kind_of_outcome(before: Verdict, now: Verdict) -> str:
    """As what an outcome is counted."""
    if now == "annulled":
        return "annulled"
    return "revealed" if before == "open" else "revised"


def _keys(feeds: Iterable[str] | None) -> set[bytes] | None:
    """Keys of the records that only these feeds fold; None: all."""
    return None if feeds is None else {SETTINGS_KEY, *(name.encode() for name in feeds)}

"""The feed stage: the fold of the feed-log, and what is published and stored of it."""

from collections.abc import Iterable, Iterator, Mapping

from stream_peer.errors import ForeignSecretError
from stream_peer.events import topics
from stream_peer.events.outputs import MixedGroup
from stream_peer.events.times import YEAR_1900, Milliseconds
from stream_peer.feeds.deletions import Deletions
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.fold import Change, FeedFold
from stream_peer.feeds.group_outputs import group_record
from stream_peer.feeds.hand_overs import HandOvers
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.outputs import question_records
from stream_peer.feeds.round_parts import Assembly
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
from stream_peer.log.draws import fingerprint
from stream_peer.log.owners import QuestionRecords
from stream_peer.log.sources import DedupWatermarks
from stream_peer.log.stage import Effects, Output, Record, Snapshot
from stream_peer.numerics.dependence.in_pieces import Pieces
from stream_peer.settings.feed.document import FeedSettingsBook


class FeedStage(FeedFold):
    """One partition of the feed-log as a worker owns it. Parameters as of ``FeedFold``."""

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        secret: bytes = b"",
        settings: FeedSettingsBook | None = None,
        method_of: MethodOf = served_method,
    ) -> None:
        super().__init__(topic=topic, partition=partition, secret=secret, settings=settings, method_of=method_of)
        self._fingerprint = fingerprint(secret)
        self._begun: Iterator[None] | None = None
        self._uncounted: list[str] = []
        self._loaded: Iterable[bytes] = ()

    def pieces(self, record: Record, effects: Effects) -> Pieces[list[Change]]:
        """Fold one record, and publish what it changed of questions."""
        return self._say(super().pieces(record, effects), effects)

    def _say(self, pieces: Pieces[list[Change]], effects: Effects) -> Pieces[list[Change]]:
        changes = yield from pieces
        for change in changes:
            effects.outputs += change.outputs()
        return changes

    def begin(self, record: Record, effects: Effects) -> None:
        """Fold one record up to the end of its first piece."""
        self._begin(self.pieces(record, effects))

    def _begin(self, pieces: Iterator[None]) -> None:
        self._begun = pieces
        self.go_on()

    def go_on(self) -> bool:
        """Do one more piece of the record that was begun; False: it is folded."""
        if self._begun is None:
            return False
        try:
            next(self._begun)
        except StopIteration:
            self._begun = None
        return self._begun is not None

    @property
    def may_step(self) -> bool:
        """Whether a record may be stepped; while a feed is rebuilt, until one comes for which all others must wait."""
        if self._begun is not None:
            return False
        return self.postponed.may_follow if self.needs_rebuild else not self.postponed

    def step_postponed(self, effects: Effects) -> bool:
        """Begin with the first record that waited for the end of a rebuild; False: none waits, or one is begun."""
        if self._begun is not None or not self.postponed:
            return False
        record, event = self.postponed.waiting.popleft()
        if event is None:
            self.begin(record, effects)
        else:
            self._begin(self._say(self._fold(event, record, effects), effects))
        return True

    # --- publishing ---

    def changed_feeds(self) -> Mapping[str, Milliseconds]:
        """Feeds changed since they were last published that need no rebuild, each with its ``publish_every``."""
        feeds, due = self.feeds.by_name, self.feeds.by_name if self._rebuilds_all else self.feeds.due
        changed = self.feeds.publisher.unpublished()
        return {name: feeds[name].settings.publish_every for name in changed if name not in due}

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        """Add ``weights`` and ``error-rates`` of changed feeds: of all (None), or of those given that have news."""
        publisher = self.feeds.publisher
        for name in publisher.unpublished(feeds):
            outputs = publisher.publish(self.feeds.by_name[name], only_news=feeds is not None)
            effects.outputs += outputs
            effects.counts["published" if outputs else "unmoved", ""] += 1

    def views(self) -> Mapping[str, FeedView]:
        """The newest outputs of each feed."""
        return {name: self.feeds.publisher.view(feed) for name, feed in self._spoken()}

    def latest_views(self) -> Mapping[str, FeedView]:
        """The outputs of each feed as they were last published, for metrics."""
        return {name: self.feeds.publisher.latest(feed) for name, feed in self._spoken()}

    def _spoken(self) -> Iterator[tuple[str, Feed]]:
        """Feeds of which there is something to say, by name."""
        return ((name, feed) for name, feed in sorted(self.feeds.by_name.items()) if feed.path_state.revision >= 0)

    def has_feed(self, feed: str) -> bool:
        """Whether there is such a feed."""
        return feed in self.feeds.by_name

    def question_records(self, feed: str, question_id: str) -> QuestionRecords | None:
        """What can be said of a question; None if no round of it was scored, or it has left the ledger."""
        while self.go_on():
            pass  # else it would be said of a feed of which half has changed
        found = self.feeds.by_name.get(feed)
        entry = None if found is None else found.ledger.entries.get(question_id)
        if found is None or entry is None or not entry.rounds:
            return None
        return question_records(found, read(found), question_id, entry, entry.latest())

    def groups(self, feed: str) -> list[str]:
        """Groups of questions that the feed publishes, by name."""
        found = self.feeds.by_name.get(feed)
        return [] if found is None else sorted(name for name in found.ledger.groups if self._is_whole(found, name))

    def group_record(self, feed: str, group: str) -> MixedGroup | None:
        """What can be said of a group; None if the feed has no such group, or does not publish all its parts."""
        found = self.feeds.by_name.get(feed)
        if found is None or group not in found.ledger.groups or not self._is_whole(found, group):
            return None
        return group_record(found, group, found.ledger.groups[group])

    def _is_whole(self, feed: Feed, group: str) -> bool:
        parts = feed.ledger.groups[group]
        is_there = feed.ledger.expired.keys().isdisjoint(parts)
        return is_there and all(self.hand_overs.publishes(feed.name, part) for part in parts)

    @property
    def settings_hash(self) -> str:
        """Names the feed settings in force."""
        return self.feeds.book.hash

    # --- audits ---

    def agrees(self) -> bool:
        """Whether the sums of all feeds equal those that follow from their ledgers."""
        return all(feed.buckets.equals(feed.recomputed()) for feed in self.feeds.by_name.values())

    def audit(self) -> Iterator[None]:
        """Compare sums and ledgers, a bounded piece an item; afterwards ``needs_rebuild`` says whether they agree."""
        feeds = self.feeds
        for name in sorted(feeds.by_name):
            feed = feeds.by_name.get(name)
            if feed is not None and not (yield from feed.audit()) and feeds.by_name.get(name) is feed:
                feeds.due.add(name)

    def lost(self, records: int) -> None:
        """Records of the log were gone before they were read: every feed says so from its next revision on."""
        for feed in self.feeds.by_name.values():
            feed.path_state.lost += records

    # --- another log ---

    @property
    def revision(self) -> int:
        """The highest that any feed has."""
        of_feeds = (feed.path_state.revision for feed in self.feeds.by_name.values())
        return max((-1, *of_feeds, *(ended.revision for ended in self.feeds.ended.values())))

    def generations(self) -> Mapping[int, int]:
        """Of each partition of control-events, the topic whose records were met last."""
        return self.seen.generations(topics.CONTROL_EVENTS)

    def rebase(self, base: int) -> None:
        """What revisions of new feeds are ahead of offsets."""
        self.feeds.base = base

    def begin_topic(self, generation: int, base: int, *, keep: bool) -> None:  # noqa: ARG002 - sources name inputs
        """The feed-log was recreated: revisions go on above all former ones; without ``keep`` feeds are empty."""
        self.feeds.base = base
        self.feeds.ended.clear()
        for feed in self.feeds.by_name.values():
            feed.path_state.base = base
        if not keep:
            former, self.feeds = self.feeds, self.feeds.emptied()
            self.feeds.store.stale.update(former.store.stale, self._loaded)
            self._now, self.seen, self.parts, self._rebuilds_all = YEAR_1900, DedupWatermarks(), Assembly(), False
            self.former_imports.clear()
            self.hand_overs = HandOvers(self._partition)

    # --- hand-overs ---

    def hand_overs_due(self) -> list[Output]:
        """Records for the feed-log that may be written once the durable state covers what was folded so far."""
        return self.hand_overs.due()

    def handed_over(self) -> None:
        """They are in the log."""
        self.hand_overs.written()

    # --- state ---

    def snapshot(self) -> Snapshot:
        """State changed since the last call."""
        rows = self.feeds.store.rows(self.feeds.by_name)
        rows.update({**self.parts.snapshot(), **self.former_imports.snapshot(), **self.hand_overs.snapshot()})
        path_states = {name: feed.path_state for name, feed in sorted(self.feeds.by_name.items())}
        ended, deleted = self.feeds.ended, dict(sorted(self.feeds.deletions.at.items()))
        head = Head(SCHEMA, self.clock, list(self.seen), path_states, self.document, self._fingerprint, ended, deleted)
        return Snapshot(rows, encode_head(head))

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Load the state of an earlier owner. A state of another schema is rebuilt from the log.

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
            self._rebuilds_all = True
            self.feeds.store.stale.update(entries)
            return
        stored = decode_head(head)
        self._now = stored.clock
        self.seen = DedupWatermarks(stored.seen)
        self.feeds.ended, self.feeds.deletions = stored.ended, Deletions(stored.deleted.items())
        if stored.settings is not None:
            self.document, self.feeds.book = stored.settings, self._first_book.of_document(stored.settings)
        self.parts.load(entries)
        self.former_imports.load(entries)
        self.hand_overs.load(entries)
        ledgers = stored_ledgers(entries)
        for name, (data, pieces) in stored_feeds(entries).items():
            feed = self.feeds.feed(name)
            feed.take_up(data, stored.path_states[name], ledgers.get(name, {}))
            feed.pieces = pieces
            self._uncounted.append(name)

    def recount(self) -> Iterator[None]:
        """Compute the sums of feeds that were loaded, a bounded piece an item."""
        while self._uncounted:
            feed = self.feeds.by_name.get(self._uncounted.pop())
            if feed is not None:
                yield from feed.recount()
                self.feeds.publisher.latest(feed)  # else the first to look would compute those of all feeds at once
                yield

"""The feeds of one partition: which there are, what controls and settings do to them, and what must be rebuilt."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import BlockNamed, ExpertChanged, NamedBlock
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.alarm_checks import check_alarms
from stream_peer.feeds.deletions import Deletions
from stream_peer.feeds.feed import Ended, Feed, with_meaning
from stream_peer.feeds.feed_reading import read, trust_of
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.publisher import Publisher
from stream_peer.feeds.reading.reading import Reading
from stream_peer.feeds.reading.trust import next_peer_trust, next_shrink
from stream_peer.feeds.scored import scored_with_places
from stream_peer.feeds.store import FeedStore
from stream_peer.log.stage import Effects, Record
from stream_peer.numerics.arguments import IndexArray
from stream_peer.numerics.dependence.in_pieces import Pieces
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.settings.feed.model import MEANING, FeedSettings


class RebuildPins(NamedTuple):
    """What of a feed is fixed during a rebuild: the settings that change meaning, and the digests of erased experts.

    ``before``: the feed as it was, whose scored forecasts stay as they were published. ``blocks``: experts who are held
    together from the first question on, until ``held_until`` were taken in.
    """

    meaning: Mapping[str, Any]
    erased: frozenset[bytes]
    before: Feed
    blocks: Sequence[NamedBlock]
    held_until: int


class Naming(NamedTuple):
    """Blocks that a feed names in the log, and how many questions it had."""

    feed: str
    questions: int
    blocks: Sequence[NamedBlock]


def _meaning(settings: FeedSettings) -> Mapping[str, Any]:
    """Settings that give what was scored another meaning, by name."""
    return {name: getattr(settings, name) for name in MEANING}


class Feeds:
    """The feeds of one partition of the feed-log.

    Parameters
    ----------
    secret : bytes
        The release's; coins and draws derive from it.
    book : FeedSettingsBook
        In force until the log says otherwise.
    pins : mapping of str to RebuildPins
        Of the feeds that are being rebuilt.
    method_of : FeedSettings -> Method
        How settings choose a method; a replay knows more methods than a worker serves.

    Attributes
    ----------
    by_name : dict of str to Feed
    store : FeedStore
        What must be written.
    publisher : Publisher
        What must be published.
    due : set of str
        Feeds that must be rebuilt.
    base : int
        What revisions of feeds that are new are ahead of offsets.
    ended : dict of str to Ended
        Feeds that were deleted.
    deletions : Deletions
        When they were deleted last.
    namings : list of Naming
        Blocks that feeds have found, until they are on their way to the log.
    """

    def __init__(
        self,
        secret: bytes,
        book: FeedSettingsBook,
        pins: Mapping[str, RebuildPins],
        method_of: MethodOf = served_method,
    ) -> None:
        self.book = book
        self.by_name: dict[str, Feed] = {}
        self.store = FeedStore()
        self.publisher = Publisher()
        self.due: set[str] = set()
        self.base = 0
        self.ended: dict[str, Ended] = {}
        self.deletions = Deletions()
        self.namings: list[Naming] = []
        self._secret = secret
        self._pins = pins
        self._method_of = method_of

    def feed(self, name: str) -> Feed:
        """The feed, a new one if need be."""
        feed = self.by_name.get(name)
        if feed is None:
            feed = self.by_name[name] = Feed(name, self._settings(name), self.book.hash, self._secret, self._method_of)
            feed.path_state.base = max(self.base, self.ended.get(name, Ended()).base)
            self._pin(feed)
        return feed

    def _pin(self, feed: Feed) -> None:
        """In a rebuild: let a feed that begins know what is fixed of it."""
        pins = self._pins.get(feed.name)
        if pins is not None:
            feed.roster.erased.update(pins.erased)
            feed.begin_with_blocks(pins.blocks, pins.held_until)

    def _settings(self, name: str) -> FeedSettings:
        settings, feed = self.book.of(name), self.by_name.get(name)
        if feed is not None and feed.path_state.imported is not None:
            return with_meaning(settings, _meaning(feed.settings))
        return with_meaning(settings, self._pins[name].meaning) if name in self._pins else settings

    def emptied(self) -> "Feeds":
        """The same settings in force, the same ids refused and the same renamed, and nothing else of any feed.

        The question stage keeps names as well, and what was deleted: it goes on to say first ids, and deletions.
        """
        empty = Feeds(self._secret, self.book, self._pins, self._method_of)
        empty.base, empty.deletions = self.base, self.deletions
        for name, feed in self.by_name.items():
            if feed.roster.erased:
                empty.feed(name).roster.erased.update(feed.roster.erased)
            if feed.roster.names.given:
                empty.feed(name).roster.know(feed.roster.names)
        return empty

    # --- questions ---

    def entry(
        self, feed: Feed, question_id: str, now: Milliseconds, effects: Effects, *, known: bool = False
    ) -> Entry | None:
        """The ledger's entry of a question; a new one if it has none. None if the question has left the ledger.

        ``known``: no new entry is made, None is returned: for records that only take something back.
        """
        expired = feed.expire(now) if feed.ledger.is_due(now) else []
        for expired_id, entry in expired:
            self.store.leave(feed.name, expired_id, entry)
        for expired_id in feed.ledger.forget_expired() if expired else ():
            self.store.leave(feed.name, expired_id, None)
        if expired:
            effects.counts["expired", ""] += len(expired)
        if question_id in feed.ledger.expired:
            effects.counts["too-late", ""] += 1
            return None
        if known and question_id not in feed.ledger.entries:
            return None
        return feed.take_in(question_id)

    def finish(self, feed: Feed, question_id: str, entry: Entry, record: Record) -> Pieces[Reading]:
        """A question of the feed has changed; the reading that follows."""
        if feed.learner_path is not None:
            feed.learner_path.put_in(entry, len(feed.roster))
        entry.touched = record.timestamp
        feed.path_state.ordinals = feed.ledger.ordinals
        if blocks := (yield from check_alarms(feed)):
            self.namings.append(Naming(feed.name, feed.path_state.named_at, feed.as_named(blocks)))
        feed.ledger.keep(question_id, entry)
        self.store.touch(feed.name, question_id)
        reading = self.changed(feed, record)
        path_state = feed.path_state
        path_state.shrink = next_shrink(path_state.shrink, path_state.trust, feed.method)
        if not feed.method.trust_prior:
            return reading
        state = trust_of(feed, reading, guarded=True).state if path_state.groups else path_state.trust
        path_state.peer_prior, path_state.peer_stretch = next_peer_trust(
            path_state.peer_trust, state, reading.agreement, feed.settings.mixer.prior_peer, reading.resolved
        )
        return read(feed)

    def shown(self, feed: Feed, record: Record, question_id: str | None = None) -> None:
        """What is shown of a question or of a group has changed, and nothing that is learnt.

        The feed has another revision, under which its weights may be published: so a replay must publish them, too.
        """
        feed.path_state.revision, feed.path_state.at = feed.path_state.base + record.offset, record.timestamp
        if question_id is not None:
            self.store.touch(feed.name, question_id)
        self.publisher.changed(feed)

    def changed(self, feed: Feed, record: Record) -> Reading:
        """A record has changed the feed; the reading that follows."""
        path_state = feed.path_state
        path_state.revision, path_state.at = path_state.base + record.offset, record.timestamp
        reading = read(feed)
        if reading.next_vote_rule != path_state.vote_rule:
            path_state.vote_rule = reading.next_vote_rule
            path_state.switches += 1
            reading = read(feed)
        path_state.trusted(trust_of(feed, reading).state, path_state.acknowledged)
        self.publisher.changed(feed)
        return reading

    # --- settings and controls ---

    def settle(self, book: FeedSettingsBook, record: Record) -> None:
        """Settings from here on. Where they give what was scored another meaning, the feed must be rebuilt.

        Raises
        ------
        RejectedEvent
            If that is so of feeds that were imported: theirs stay as they were, all else of the settings counts.
        """
        if book.hash == self.book.hash:
            return
        self.book = book
        for feed in self.by_name.values():
            settings, before = self._settings(feed.name), feed.settings
            if settings.meaning() != before.meaning() and feed.path_state.ordinals:
                settings = with_meaning(settings, _meaning(before))
                self.due.add(feed.name)
            feed.adopt(settings, book.hash)
            if settings.trust.acknowledged != before.trust.acknowledged:
                feed.path_state.acknowledged = settings.trust.acknowledged
            self.changed(feed, record)
        kept = [name for name, feed in sorted(self.by_name.items()) if self._keeps_its_meaning(feed)]
        if kept:
            message = f"{', '.join(MEANING)} stay as they are in feeds that were imported: {', '.join(kept)}"
            raise RejectedEvent(Reason.IMPORTED_MEANING, field="feeds", message=message)

    def _keeps_its_meaning(self, feed: Feed) -> bool:
        """Whether the settings ask in vain for another meaning of a feed."""
        return feed.path_state.imported is not None and self.book.of(feed.name).meaning() != feed.settings.meaning()

    def change_expert(self, event: ExpertChanged, record: Record) -> list[str]:
        """Apply a change of an expert: name, team, exclusion or erasure. Return ids of which nothing may be kept.

        Raises
        ------
        RejectedEvent
            If the expert was erased before, or another expert has the new name.
        """
        feed = self.feed(event.feed)
        roster, gone = feed.roster, list[str]()
        if event.digest is not None:
            return self._forget_digest(feed, event.digest, record)
        expert = roster.names.first(event.expert_id)
        if event.forget:
            gone = self._erase(feed, expert)
        elif any(map(roster.is_erased, filter(None, (expert, event.rename)))):
            message = "the expert asked to be forgotten; no control brings it back"
            raise RejectedEvent(Reason.FORGOTTEN, field="expert_id", message=message)
        if event.rename is not None:
            roster.rename(expert, event.rename)
        if event.team is not msgspec.UNSET and not event.forget:
            roster.put_in_team(expert, event.team)
        if event.excluded is not msgspec.UNSET and not event.forget:
            roster.exclude(expert, excluded=event.excluded)
        feed.stored = False
        self.changed(feed, record)
        return gone

    def _erase(self, feed: Feed, expert: str) -> list[str]:
        """Refuse an expert from here on; its ids."""
        if feed.roster.place(expert) is not None:
            self.due.add(feed.name)
        self.store.purge(feed)
        return feed.roster.erase(expert)

    def _forget_digest(self, feed: Feed, digest: bytes, record: Record) -> list[str]:
        """Refuse an expert that was erased before the feed moved here; return its ids, if the feed knows any."""
        feed.roster.erased.add(digest)
        known = [expert for expert in feed.roster.ids() if feed.roster.is_erased(expert)]
        gone = [one for expert in known for one in self._erase(feed, expert)]
        feed.stored = False
        self.changed(feed, record)
        return gone

    def name_blocks(self, event: BlockNamed, record: Record) -> None:
        """The log names experts who say the same: the feed must be rebuilt, unless it is built with them already."""
        feed, pins = self.by_name.get(event.feed), self._pins.get(event.feed)
        is_earlier = pins is not None and event.questions <= pins.held_until
        if feed is not None and event.questions >= feed.path_state.named_at:
            feed.path_state.is_naming = False
        if feed is None or is_earlier or not feed.names_blocks or not feed.hold_blocks(event.blocks, event.questions):
            return
        self.due.add(feed.name)
        self.changed(feed, record)

    def reset(self, name: str, record: Record) -> None:
        """New sums from here on."""
        feed = self.by_name.get(name)
        if feed is not None:
            self.store.leave_all(feed)
            feed.reset()
            feed.adopt(self._settings(name), self.book.hash)  # a former import kept its own, which is no more
            self._pin(feed)
            if not any(map(feed.roster.is_erased, feed.roster.experts)):  # else they have places still
                self.due.discard(name)
            self.changed(feed, record)

    def end(self, name: str) -> Feed | None:
        """Delete a feed; what it was, None if there was none."""
        feed = self.by_name.pop(name, None)
        if feed is not None:
            self.store.end(feed)
            self.publisher.end(name)
            self.due.discard(name)
            self.ended[name] = Ended(feed.path_state.base, self.highest(feed))
        return feed

    def highest(self, feed: Feed) -> int:
        """The highest revision of a feed, or of one of its name that was deleted; -1: none."""
        return max(feed.path_state.revision, self.ended.get(feed.name, Ended()).revision)

    # --- rebuilds ---

    def pins(self) -> Mapping[str, RebuildPins]:
        """What is fixed during a rebuild of the feeds that need it."""
        feeds = ((name, self.by_name[name]) for name in sorted(self.due))
        return {
            name: RebuildPins(
                _meaning(self.book.of(name)),
                frozenset(feed.roster.erased),
                feed,
                feed.as_named(feed.path_state.blocks),
                feed.path_state.held_until,
            )
            for name, feed in feeds
        }

    def carry_over(self, feed: Feed, question_id: str, entry: Entry) -> None:
        """In a rebuild: the scored forecast of a question is the one that was published, not what it would be now."""
        before = self._pins[feed.name].before if feed.name in self._pins else None
        former = before.ledger.entries.get(question_id) if before else None
        if before is not None and former is not None and former.first_final is not None:
            entry.hold()
            entry.first_final = scored_with_places(former.first_final, _places_in(feed, before))
            entry.revision = former.revision

    def replace(self, rebuilt: "Feeds", names: Iterable[str]) -> list[tuple[Feed, Feed]]:
        """Put rebuilt feeds in place of these; (before, after) of each."""
        pairs = []
        for name in names:
            before = self.by_name[name]
            after = rebuilt.feed(name)  # a new one, if its log has been purged
            after.pieces = before.pieces
            after.path_state.go_on_from(before.path_state)
            for question_id, entry in after.ledger.entries.items():
                if entry.first_final is None:  # nobody else stood in its final round
                    rebuilt.carry_over(after, question_id, entry)
            after.keep_evaluations(before, _places_in(after, before))
            self.store.leave_all(before)
            self.by_name[name] = after
            self.store.touch_all(after)
            self.publisher.changed(after)
            if name not in rebuilt.due:  # else the log names blocks that it was not built with
                self.due.discard(name)
            pairs.append((before, after))
        return pairs


def _places_in(feed: Feed, before: Feed) -> IndexArray:
    """By the places of a feed's experts before a rebuild: their places after it, -1 of those who are not there."""
    found = map(feed.roster.place, before.roster.experts)
    return np.array([-1 if place is None else place for place in found], dtype=np.int32)

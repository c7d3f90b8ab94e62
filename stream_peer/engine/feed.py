"""The feed stage: rounds, outcomes and settings in, facts, weights and error rates out.

history → rounds → **facts → evidence → sums → weights**. What was said of a round (its facts) never changes; what is
known of a question (its evidence) can be replaced at will. A question's contribution is taken out of the sums, its
facts or evidence change, and it is put in again.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from stream_peer.engine.board import Board
from stream_peer.engine.contributions import contribution, contribution_of
from stream_peer.engine.dead_letters import refuse
from stream_peer.engine.draws import fingerprint
from stream_peer.engine.facts import Facts, score
from stream_peer.engine.feed_state import Feed, Standing, with_meaning
from stream_peer.engine.ledger import Entry
from stream_peer.engine.parts import Assembly
from stream_peer.engine.pieces import cut, joined
from stream_peer.engine.question_outputs import question_outputs
from stream_peer.engine.sources import Seen
from stream_peer.engine.stage import Effects, NeverRefolds, Record, Snapshot
from stream_peer.engine.views import FeedView
from stream_peer.errors import ForeignSecretError, RejectedEvent, SettingsError, StateError
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    FeedLogRecord,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    SettingsChanged,
    Source,
    decode_feed_log,
)
from stream_peer.events.feed_settings import MEANING, FeedSettingsBook, load_document
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds
from stream_peer.numerics.mixers import safety_net_step

SCHEMA = 3
"""Of the stored form. Other ones are refused: a feed-log holds all that is needed to fold it again."""


class Head(msgspec.Struct, array_like=True):
    """What is stored once a partition. ``secret`` is the fingerprint of the secret that its draws derive from."""

    schema: int
    clock: Milliseconds
    seen: list[Source]
    standings: dict[str, Standing]
    settings: dict[str, object] | None
    secret: str


_encode_head = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(Head).decode


class FeedStage(NeverRefolds):
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
    """

    def __init__(
        self, *, topic: str, partition: int, secret: bytes = b"", settings: FeedSettingsBook | None = None
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._secret = secret
        self._fingerprint = fingerprint(secret)
        self._book = settings if settings is not None else load_document({})
        self._document: dict[str, object] | None = None
        self._clock: Milliseconds = 0
        self._seen = Seen()
        self._feeds: dict[str, Feed] = {}
        self._parts = Assembly()
        self._touched: set[tuple[str, str]] = set()
        self._board = Board()
        self._handlers: dict[type[FeedLogRecord], Callable[..., None]] = {
            Round: self._on_round,
            RoundWithdrawn: self._on_withdrawn,
            OutcomeRevealed: self._on_outcome,
            SettingsChanged: self._on_settings,
        }

    @property
    def clock(self) -> Milliseconds:
        """The largest record time so far."""
        return self._clock

    def deadline(self) -> Milliseconds | None:
        """Nothing here waits for the clock."""
        return None

    # --- folding ---

    def step(self, record: Record, effects: Effects) -> None:
        """Fold one record of the feed-log. What cannot be read goes to dead letters and changes nothing."""
        self._clock = max(self._clock, record.timestamp)
        try:
            event = _decoded(record)
            if not self._seen.add(event.src):
                effects.counts["duplicate", ""] += 1
                return
            effects.counts["event", str(event.__struct_config__.tag)] += 1
            self._handlers.get(type(event), _not_supported)(event, record, effects)
        except RejectedEvent as rejection:
            refuse(record, self._topic, self._partition, rejection, effects)

    def _feed(self, name: str) -> Feed:
        feed = self._feeds.get(name)
        if feed is None:
            feed = Feed(name, self._book.of(name), self._book.hash, self._secret)
            self._feeds[name] = feed
        return feed

    def _on_round(self, event: Round, record: Record, effects: Effects) -> None:
        whole = self._parts.add(event)
        if whole is None:
            return
        feed = self._feed(event.feed)
        entry = feed.entries.setdefault(event.question_id, Entry())
        feed.take_out(entry)
        facts = self._facts(feed, whole)
        entry.weight = event.weight
        entry.put(facts)
        alone = len(entry.rounds) == 1 and entry.evidence != "annulled"
        if alone:
            feed.put_in(contribution_of(facts.alone(), entry.evidence, entry.weight, feed.method))
        else:
            feed.put_in(contribution(entry, feed.method))
        feed.learn(facts, entry)
        self._finish(feed, event.question_id, entry, record)
        latest = facts if alone else entry.latest()
        effects.outputs += question_outputs(feed, event.question_id, entry, latest)
        effects.counts["round", "counts" if facts.head.counts else "low-evidence"] += 1

    def _facts(self, feed: Feed, event: Round) -> Facts:
        """Facts of a round, under the weights of a moment at which its question was not known."""
        experts = feed.places(event.experts)
        under = feed.circumstances(experts, event.question_id, event.boundary)
        forecasts = np.array(event.probabilities, dtype=np.float64)
        return score(event.boundary, experts, forecasts, under, feed.method)

    def _on_withdrawn(self, event: RoundWithdrawn, record: Record, effects: Effects) -> None:
        feed = self._feeds.get(event.feed)
        entry = feed.entries.get(event.question_id) if feed else None
        if feed is None or entry is None:
            return
        feed.take_out(entry)
        found = entry.drop(event.boundary)
        feed.put_in(contribution(entry, feed.method))
        if found:
            self._finish(feed, event.question_id, entry, record)
            effects.outputs += question_outputs(feed, event.question_id, entry, entry.latest())

    def _on_outcome(self, event: OutcomeRevealed, record: Record, effects: Effects) -> None:
        feed = self._feed(event.feed)
        entry = feed.entries.setdefault(event.question_id, Entry())
        if entry.evidence == event.outcome:
            return
        feed.take_out(entry)
        entry.evidence = event.outcome
        feed.put_in(contribution(entry, feed.method))
        standing = feed.standing
        standing.outcomes += 1
        if feed.method.mixes:
            standing.net_share = safety_net_step(standing.net_share, *feed.net_sums())
        self._finish(feed, event.question_id, entry, record)
        if entry.rounds:
            effects.outputs += question_outputs(feed, event.question_id, entry, entry.latest())

    def _finish(self, feed: Feed, question_id: str, entry: Entry, record: Record) -> None:
        """A question of the feed has changed."""
        feed.follow(entry)
        entry.touched = record.timestamp
        self._touched.add((feed.name, question_id))
        self._changed(feed, record)

    def _changed(self, feed: Feed, record: Record) -> None:
        standing = feed.standing
        standing.revision, standing.at = record.offset, record.timestamp
        vote_rule = feed.vote_rule()
        if vote_rule != standing.vote_rule:
            standing.vote_rule = vote_rule
            standing.switches += 1
        standing.trust = feed.trust().state
        self._board.changed(feed)

    def _on_settings(self, event: SettingsChanged, record: Record, effects: Effects) -> None:
        try:
            book = load_document(event.document)
        except SettingsError as error:
            raise RejectedEvent(Reason.SETTINGS_INVALID, field="document", message=str(error)) from error
        self._document = event.document
        if book.hash == self._book.hash:
            return
        self._book = book
        refused = [name for name in sorted(self._feeds) if self._adopt(self._feeds[name])]
        for feed in self._feeds.values():
            self._changed(feed, record)
        if refused:
            message = f"feeds {', '.join(refused)} have rounds: {', '.join(MEANING)} stay as they are there"
            rejection = RejectedEvent(Reason.MEANING_FIXED, field="feeds", message=message)
            refuse(record, self._topic, self._partition, rejection, effects)

    def _adopt(self, feed: Feed) -> bool:
        """Give a feed the settings of the book; True if what changes meaning had to stay as it was."""
        settings, before = self._book.of(feed.name), feed.settings
        refused = settings.meaning() != before.meaning() and feed.has_rounds()
        if refused:
            settings = with_meaning(settings, {name: getattr(before, name) for name in MEANING})
        feed.adopt(settings, self._book.hash)
        return refused

    # --- publishing ---

    def changed_feeds(self) -> Mapping[str, Milliseconds]:
        """Feeds changed since they were last published, each with its ``publish_every``."""
        return {name: self._feeds[name].settings.publish_every for name in self._board.unpublished()}

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        """Add ``weights`` and ``error-rates`` of changed feeds: of all (None), or of those given that have news."""
        for name in self._board.unpublished(feeds):
            outputs = self._board.publish(self._feeds[name], only_news=feeds is not None)
            effects.outputs += outputs
            effects.counts["published" if outputs else "unmoved", ""] += 1

    def views(self) -> Mapping[str, FeedView]:
        """The newest outputs of each feed, for metrics and HTTP."""
        changed = (feed for _, feed in sorted(self._feeds.items()) if feed.standing.revision >= 0)
        return {feed.name: self._board.view(feed) for feed in changed}

    # --- state ---

    def agrees(self) -> bool:
        """Whether the sums of all feeds equal those that follow from their ledgers."""
        return all(feed.sums.equals(feed.recomputed()) for feed in self._feeds.values())

    def snapshot(self) -> Snapshot:
        """State changed since the last call."""
        rows: dict[bytes, bytes | None] = self._parts.snapshot()
        for name, question_id in sorted(self._touched):
            entry = self._feeds[name].entries[question_id]
            cuts = cut(b"e", b"%b/%b" % (name.encode(), question_id.encode()), entry.encode(), entry.pieces)
            entry.pieces = sum(value is not None for value in cuts.values())
            rows.update(cuts)
        self._touched.clear()
        for name, feed in sorted(self._feeds.items()):
            if not feed.stored:
                cuts = cut(b"f", name.encode(), feed.encode(), feed.pieces)
                feed.pieces = sum(value is not None for value in cuts.values())
                feed.stored = True
                rows.update(cuts)
        return Snapshot(rows, self._head())

    def _head(self) -> bytes:
        standings = {name: feed.standing for name, feed in sorted(self._feeds.items())}
        return _encode_head(Head(SCHEMA, self._clock, list(self._seen), standings, self._document, self._fingerprint))

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Take up the state that an earlier owner left.

        Raises
        ------
        StateError
            If this release cannot read it; as ForeignSecretError, if the owner had another secret.
        """
        if head is None:
            return
        schema = msgspec.msgpack.decode(head)[0]
        if schema != SCHEMA:
            raise StateError(f"feed state has schema {schema}, this release reads {SCHEMA}")
        stored = _decode_head(head)
        if stored.secret != self._fingerprint:
            raise ForeignSecretError(expected=stored.secret, given=self._fingerprint)
        self._clock = stored.clock
        self._seen = Seen(stored.seen)
        if stored.settings is not None:
            self._document, self._book = stored.settings, load_document(stored.settings)
        self._parts.load(entries)
        ledgers = _ledgers(entries)
        for name, (data, pieces) in joined(b"f", entries).items():
            feed = self._feed(name.decode())
            feed.restore(data, stored.standings[feed.name], ledgers.get(feed.name, {}))
            feed.pieces = pieces


def _ledgers(entries: Mapping[bytes, bytes]) -> dict[str, dict[str, Entry]]:
    ledgers: dict[str, dict[str, Entry]] = {}
    for key, (data, pieces) in joined(b"e", entries).items():
        feed, _, question_id = key.decode().partition("/")
        entry = Entry.decode(data)
        entry.pieces = pieces
        ledgers.setdefault(feed, {})[question_id] = entry
    return ledgers


def _decoded(record: Record) -> AnyFeedLogRecord:
    """The record, or RejectedEvent: something else wrote to the feed-log."""
    if not record.value:
        raise RejectedEvent(Reason.EMPTY, message="the feed-log holds no empty records of ours")
    try:
        event: AnyFeedLogRecord = decode_feed_log(record.value)
    except msgspec.ValidationError as error:
        raise RejectedEvent(Reason.WRONG_TYPE, message=str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RejectedEvent(Reason.NOT_JSON, message=str(error)) from error
    if isinstance(event, Round):
        _check(event)
    return event


def _check(event: Round) -> None:
    experts, probabilities = event.experts, event.probabilities
    if not experts or len(experts) != len(probabilities) or sorted(set(experts)) != experts:
        raise RejectedEvent(Reason.WRONG_TYPE, field="experts", message="must be sorted, each with a probability")
    if not 0.0 <= min(probabilities) <= max(probabilities) <= 1.0:
        raise RejectedEvent(Reason.PROBABILITY_RANGE, field="probabilities", message="must be within 0..1")


def _not_supported(event: FeedLogRecord, _record: Record, _effects: Effects) -> None:
    raise RejectedEvent(Reason.NOT_SUPPORTED, message=f"this release knows no {event.__struct_config__.tag} controls")

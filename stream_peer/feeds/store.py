"""What a partition of the feed stage stores: its head, a record a feed, and one a question of each ledger.

==========  ==========================================================================
key         value
==========  ==========================================================================
``f/FEED``  experts, meaning, and the sums of questions that have left the ledger
``e/F/Q``   the ledger's entry of a question; of one that has left it, only when
``p/F/Q``   the parts of a round that are there so far
``h/F/Q``   of a question that moved, whether the feed publishes it
``g/F/G``   empty: a group is to be published once all its parts were handed over
``o/R/N``   a hand-over, or named blocks, that may not be in the feed-log yet
``i/F/N``   a part of a feed that a former release's import brings, until all are there
==========  ==========================================================================

Large values are cut into several records, see ``pieces``.
"""

from collections.abc import Mapping

import msgspec

from stream_peer.errors import UnreadableStateError
from stream_peer.events.feed_log import Source
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.feed import Ended, Feed, PathState
from stream_peer.feeds.ledger import Entry, decode_entry, encode_expired
from stream_peer.log.pieces import cut, join_chunks, removed

SCHEMA = 7
"""Of the stored form. Any other one leads to a rebuild: the feed-log holds all that is needed."""

Rows = dict[bytes, bytes | None]


class Head(msgspec.Struct, array_like=True):
    """What is stored once a partition. ``secret`` is the fingerprint of the secret that its draws derive from.

    ``ended``: of feeds that were deleted, what revisions of a feed of the same name must lie above. ``deleted``: when
    they were deleted last.

    The places of ``schema`` and ``secret`` are the same in all schemas, and for good.
    """

    schema: int
    clock: Milliseconds
    seen: list[Source]
    path_states: dict[str, PathState]
    settings: dict[str, object] | None
    secret: str
    ended: dict[str, Ended] = {}
    deleted: dict[str, Milliseconds] = {}


encode_head = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(Head).decode
_SECRET = Head.__struct_fields__.index("secret")


def schema_and_secret(head: bytes) -> tuple[int, str | None]:
    """The schema of a stored head, of whatever release, and the fingerprint in it, if there is one.

    Raises
    ------
    UnreadableStateError
        If it is none at all.
    """
    try:
        fields = msgspec.msgpack.decode(head, type=list)
        secret = fields[_SECRET] if len(fields) > _SECRET else None
        return int(fields[0]), secret if isinstance(secret, str) else None
    except (msgspec.MsgspecError, IndexError, TypeError, ValueError) as error:
        msg = f"the stored head of a feed partition cannot be read: {error}"
        raise UnreadableStateError(msg) from error


def decode_head(head: bytes) -> Head:
    """A head of this schema.

    Raises
    ------
    UnreadableStateError
        If it cannot be read.
    """
    try:
        return _decode_head(head)
    except msgspec.MsgspecError as error:
        msg = f"the stored head of a feed partition cannot be read: {error}"
        raise UnreadableStateError(msg) from error


class FeedStore:
    """Notes what must be written again, and makes the records of it.

    ``stale``: keys that another schema or another log wrote; those that are not written again are deleted.
    """

    def __init__(self) -> None:
        self._touched: set[tuple[str, str]] = set()
        self._gone: dict[tuple[str, str], int] = {}
        self._gone_feeds: dict[str, int] = {}
        self._once_more: set[str] = set()
        self.stale: set[bytes] = set()

    def touch(self, feed: str, question_id: str) -> None:
        """A question's entry has changed."""
        self._touched.add((feed, question_id))

    def leave(self, feed: str, question_id: str, entry: Entry | None) -> None:
        """A question's entry has gone, or of an expired one the name."""
        place = feed, question_id
        self._touched.add(place)
        self._gone[place] = max(self._gone.get(place, 0), entry.pieces if entry else 1)

    def leave_all(self, feed: Feed) -> None:
        """All of a feed's ledger has gone."""
        ledger = feed.ledger
        for question_id, entry in ledger.entries.items():
            self.leave(feed.name, question_id, entry)
        for question_id in ledger.expired:
            self.leave(feed.name, question_id, None)

    def end(self, feed: Feed) -> None:
        """A feed has gone."""
        self.leave_all(feed)
        self._gone_feeds[feed.name] = max(self._gone_feeds.get(feed.name, 0), feed.pieces)

    def touch_all(self, feed: Feed) -> None:
        """All of a feed must be written."""
        ledger = feed.ledger
        self._touched.update((feed.name, question_id) for question_id in (*ledger.entries, *ledger.expired))
        feed.stored = False
        if feed.roster.erased:
            self.purge(feed)

    def purge(self, feed: Feed) -> None:
        """A feed's record must be written twice: with the first stands the version before, which names who is gone."""
        feed.stored = False
        self._once_more.add(feed.name)

    def rows(self, feeds: Mapping[str, Feed]) -> Rows:
        """Records of all that has changed since the last call."""
        rows: Rows = dict.fromkeys(sorted(self.stale))
        for name, pieces in self._gone_feeds.items():
            rows.update(removed(b"f", name.encode(), pieces))
        for place, pieces in self._gone.items():
            rows.update(removed(b"e", _name(*place), pieces))
        for name, question_id in sorted(self._touched):
            if name in feeds:
                rows.update(_entry_rows(feeds[name], question_id))
        for _, feed in sorted(feeds.items()):
            if not feed.stored:
                cuts = cut(b"f", feed.name.encode(), feed.encode(), feed.pieces)
                feed.pieces = _count(cuts)
                feed.stored = feed.name not in self._once_more
                self._once_more.discard(feed.name)
                rows.update(cuts)
        for noted in (self.stale, self._gone, self._gone_feeds, self._touched):
            noted.clear()
        return rows


def stored_feeds(entries: Mapping[bytes, bytes]) -> Mapping[str, tuple[bytes, int]]:
    """Stored form of each feed, with the number of its records."""
    return {name.decode(): stored for name, stored in join_chunks(b"f", entries).items()}


def stored_ledgers(entries: Mapping[bytes, bytes]) -> dict[str, dict[str, Entry | Milliseconds]]:
    """By feed and question: the ledger's entry, or when it left the ledger."""
    ledgers: dict[str, dict[str, Entry | Milliseconds]] = {}
    for key, (data, pieces) in join_chunks(b"e", entries).items():
        feed, _, question_id = key.decode().partition("/")
        entry = decode_entry(data)
        if isinstance(entry, Entry):
            entry.pieces = pieces
            _share(entry, entries[b"e/" + key])
        ledgers.setdefault(feed, {})[question_id] = entry
    return ledgers


def _entry_rows(feed: Feed, question_id: str) -> Rows:
    ledger = feed.ledger
    entry, name = ledger.entries.get(question_id), _name(feed.name, question_id)
    if entry is not None:
        cuts = cut(b"e", name, entry.encode(), entry.pieces)
        entry.pieces = _count(cuts)
        _share(entry, cuts[b"e/" + name])
        return cuts
    when = ledger.expired.get(question_id)
    return {} if when is None else cut(b"e", name, encode_expired(when))


def _share(entry: Entry, record: bytes | None) -> None:
    """Let an entry read its rounds in its state record, which the writer of the state keeps anyway."""
    if entry.pieces == 1 and record is not None:
        entry.rest_on(record)


def _name(feed: str, question_id: str) -> bytes:
    return b"%b/%b" % (feed.encode(), question_id.encode())


def _count(rows: Rows) -> int:
    return sum(value is not None for value in rows.values())

"""State as records of a changelog: what to append for a snapshot, and how to read it all back.

One changelog partition belongs to one input partition ``p``. Its records:

``p/claim/ID``
    A new owner's *fencing token*: a fresh id, appended before the owner recovers. Later records with another token are
    ignored, so the order of the log fences whatever a former owner still writes. The token is part of the key:
    otherwise compaction would remove earlier tokens, and every record written under them would be ignored.
``p/head``
    The commit point: the last input offset that the state covers. Written last.
``p/...``
    State, each record with the version before it: of the two, recovery takes the newest that the head covers.

A state record without a value says that its key is gone. Once a head covers it, a tombstone follows, so that compaction
removes the key wholly. Its header has the token. Recovery needs it: compaction may remove the record without a value
while recovery is under way, behind an earlier value that was read already. What an earlier release or a former owner
appended has not the right token, and recovery concludes nothing from it.

Offsets start from 0 again when the input topic is recreated; versions must never become smaller. So records hold
*positions*: an offset plus the ``base`` of the log that it is an offset of. As long as no topic was recreated, the
base is 0 and a position equals the offset.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from stream_peer.errors import ForeignWriterError, NewerStateError, StateError, UnreadableStateError
from stream_peer.log.stage import Headers, Snapshot

SCHEMA = 1
"""Version of the layout of state records; the stages version what is inside ``value`` themselves."""

SHIFTED_SCHEMA = 2
"""Version of heads with a base. Releases that know no base refuse it: they would take positions for offsets."""

NOTHING_APPLIED = -1
OUTLIVES = -1
"""``whole_at`` of a state that was kept although its log was recreated."""

MOST_SHORTENED = 10_000
"""At most so many records are written again in one snapshot only to remove the longer version before."""

_HEAD = b"head"
_TOKEN = b"claim/"
_HEADER = "stream-peer-claim"

Version = tuple[int, bytes | None]
"""(as_of, value): the value after the input record at position ``as_of``; None: gone."""


class LogOrigin(NamedTuple):
    """Which log a state is folded from.

    Attributes
    ----------
    topic_id : str
        The broker's id of the topic; empty if the broker gives none.
    base : int
        Position of the log's offset 0.
    whole_at : int
        After the state was dropped or lost: the offset up to which the log must be folded for a complete state.
        ``OUTLIVES`` if the state was kept: then it holds what no log holds any more.
    """

    topic_id: str = ""
    base: int = 0
    whole_at: int = 0

    def successor(self, topic_id: str, applied: int, *, whole_at: int = 0) -> "LogOrigin":
        """The log that replaces this one, of which ``applied`` was the last offset covered.

        One position stays free between the two logs. The state is dropped at that position: if the owner is killed
        halfway, recovery still finds the versions before it.
        """
        return LogOrigin(topic_id, self.base + applied + 2, whole_at)


class StateRecord(msgspec.Struct, frozen=True):
    """One key's value as of an input position, and the version before it."""

    token: str = msgspec.field(name="claim")
    as_of: int
    value: bytes | None
    prev: Version | None = None


class TokenRecord(msgspec.Struct, frozen=True):
    """The fencing token of the owner whose records count from here on."""

    token: str = msgspec.field(name="claim")


class HeadRecord(msgspec.Struct, frozen=True):
    """The commit point of a partition: the last input position that the state covers, and the log it belongs to."""

    schema: int
    token: str = msgspec.field(name="claim")
    applied: int
    value: bytes
    topic_id: str = msgspec.field(name="source", default="")
    base: int = 0
    whole_at: int = 0

    @property
    def origin(self) -> LogOrigin:
        """The log that the state is folded from."""
        return LogOrigin(self.topic_id, self.base, self.whole_at)


class _Schema(msgspec.Struct, frozen=True):
    schema: int


class LateTokenError(ForeignWriterError):
    """A fencing token lies behind this owner's: another one has taken over, or a former one's came late."""


class ChangelogRow(NamedTuple):
    """A changelog record to append; without a value a tombstone."""

    key: bytes
    value: bytes | None
    headers: Headers = ()


class Recovered(NamedTuple):
    """What a changelog partition says: the state after the input record at offset ``applied`` of its log."""

    applied: int
    head: bytes | None
    entries: Mapping[bytes, bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(StateRecord).decode
_decode_token = msgspec.msgpack.Decoder(TokenRecord).decode
_decode_head = msgspec.msgpack.Decoder(HeadRecord).decode
_decode_schema = msgspec.msgpack.Decoder(_Schema).decode


def token_row(partition: int, token: str) -> ChangelogRow:
    """The record by which a new owner takes over the changelog partition."""
    return ChangelogRow(b"%d/%b%b" % (partition, _TOKEN, token.encode()), _encode(TokenRecord(token)))


def _head(value: bytes) -> HeadRecord:
    """Decode a head. ``schema`` is read first: a head of a later release may lack any other field."""
    try:
        schema = _decode_schema(value).schema
        if schema > SHIFTED_SCHEMA:
            raise NewerStateError(what="the changelog", schema=schema, readable=SHIFTED_SCHEMA)
        return _decode_head(value)
    except msgspec.MsgspecError as error:
        msg = f"the head of a partition's state cannot be read: {error}"
        raise UnreadableStateError(msg) from error


class ChangelogReader:
    """One changelog partition, read in log order: only records with the newest fencing token count.

    Attributes
    ----------
    next : int
        The offset that is read next; records below it are known already.
    token : str or None
        The last fencing token read.
    applied : int
        The last input position that the head covers.
    origin : LogOrigin
        The log that the head belongs to.
    fenced_out : int
        Records ignored so far because they have another fencing token.
    """

    def __init__(self) -> None:
        self.next = 0
        self.token: str | None = None
        self.applied = NOTHING_APPLIED
        self.origin = LogOrigin()
        self.head: bytes | None = None
        self.fenced_out = 0
        self._values: dict[bytes, bytes] = {}  # values that the head covers
        self._bytes = 0  # of these values
        self._ahead: dict[bytes, tuple[Version, Version | None]] = {}  # not yet covered, with the version before
        self._outdated: set[bytes] = set()  # keys whose last record in the log is not the version that counts
        self._gone: set[bytes] = set()  # keys whose last record, covered by the head, says that they are gone
        self._oversized: dict[bytes, None] = {}  # keys whose last record holds a longer version before

    def add(self, offset: int, key: bytes, value: bytes | None, headers: Headers = ()) -> None:
        """Read one record. Compaction leaves gaps between offsets."""
        if offset < self.next:
            return
        self.next = offset + 1
        kind = key.partition(b"/")[2]
        if kind.startswith(_TOKEN):
            self.token = _decode_token(value).token if value else None
        elif value is None:
            self._add_tombstone(kind, is_ours=(_HEADER, (self.token or "").encode()) in headers)
        elif kind == _HEAD:
            self._add_head(_head(value))
        else:
            self._add_state(kind, _decode_state(value))

    def _ignore(self, kind: bytes) -> None:
        self._outdated.add(kind)
        self.fenced_out += 1

    def _add_tombstone(self, kind: bytes, *, is_ours: bool) -> None:
        if is_ours:
            self.accept_state(kind, (self.applied, None), None)
        if kind in self._gone:
            self._gone.discard(kind)
        elif kind == _HEAD or kind in self._values or kind in self._ahead:
            self._ignore(kind)

    def _add_head(self, record: HeadRecord) -> None:
        if record.token != self.token:
            self._ignore(_HEAD)
        else:
            self.accept_head(record.applied, record.value, record.origin)

    def _add_state(self, kind: bytes, record: StateRecord) -> None:
        if record.token != self.token:
            self._ignore(kind)
        else:
            self.accept_state(kind, (record.as_of, record.value), record.prev)

    def accept_head(self, applied: int, value: bytes, origin: LogOrigin = LogOrigin()) -> None:  # noqa: B008 - a value
        """Take a head with the right token. Versions before those that it covers are dropped."""
        if applied < self.applied:
            msg = f"the head fell back from {self.applied} to {applied}"
            raise StateError(msg)
        self.applied, self.head, self.origin = applied, value, origin
        self._outdated.discard(_HEAD)
        covered = [kind for kind, (version, _) in self._ahead.items() if version[0] <= applied]
        for kind in covered:
            version, prev = self._ahead.pop(kind)
            self._cover(kind, version[1], prev)

    def accept_state(self, kind: bytes, version: Version, prev: Version | None) -> None:
        """Take a state record with the right token."""
        self._outdated.discard(kind)
        self._gone.discard(kind)
        self._oversized.pop(kind, None)
        if version[0] > self.applied:
            self._ahead[kind] = version, prev
        else:
            self._ahead.pop(kind, None)
            self._cover(kind, version[1], prev)

    def outdate(self, kind: bytes) -> None:
        """Take note that the last record of a key is perhaps a former owner's, which counts for nothing."""
        self._ignore(kind)

    def accept_tombstone(self, kind: bytes) -> None:
        """Take a tombstone that this owner wrote: the key needs no further tombstone."""
        self._gone.discard(kind)

    def _cover(self, kind: bytes, value: bytes | None, prev: Version | None) -> None:
        """Note a value that the head covers."""
        self._keep(kind, value)
        if value is not None:
            if prev is not None and prev[1] is not None and len(prev[1]) > len(value):
                self._oversized[kind] = None
        else:
            self._gone.add(kind)

    def _keep(self, kind: bytes, value: bytes | None) -> None:
        self._bytes += len(value or b"") - len(self._values.get(kind, b""))
        if value is None:
            self._values.pop(kind, None)
        else:
            self._values[kind] = value

    @property
    def size(self) -> tuple[int, int]:
        """How many records the state is, and the bytes of their values."""
        return len(self._values) + (self.head is not None), self._bytes + len(self.head or b"")

    def recovered(self) -> Recovered:
        """State at the head: of each key the newest version that the head covers.

        Newer versions are dropped; their keys count as outdated, like those of ignored records. ``entries``
        is a view of the reader's own values: use it before the next record is added.
        """
        for kind, (_, prev) in self._ahead.items():
            if prev is not None and prev[0] > self.applied:
                msg = f"{kind!r} has no version at or below {self.applied}, only {prev[0]} and newer"
                raise StateError(msg)
            self._outdated.add(kind)
            self._keep(kind, None if prev is None else prev[1])
        self._ahead.clear()
        return Recovered(self.applied - self.origin.base, self.head, MappingProxyType(self._values))

    def version(self, kind: bytes) -> Version | None:
        """The version that counts, if any, as of the head.

        The position at which it was written is not kept. The head's serves as well: no later head is lower.
        """
        value = self._values.get(kind)
        return None if value is None else (self.applied, value)

    def is_known(self, kind: bytes) -> bool:
        """Whether the log may hold a value of a key."""
        return kind in self._values or kind in self._outdated

    def without_tombstone(self) -> Iterator[bytes]:
        """Keys that are gone and have no tombstone yet."""
        return iter(sorted(self._gone - self._outdated))

    @property
    def must_rewrite(self) -> bool:
        """Whether some keys are outdated: compaction would keep their last record, which is not the one that counts."""
        return bool(self._outdated)

    def rewrites(self) -> Iterator[tuple[bytes, Version]]:
        """(kind, version) of records to write again. The head covers them, so they need no version before.

        These are the outdated ones, and some that hold a longer version before: otherwise a question's history would
        stay on disk for as long as the stub that replaced it.
        """
        for kind in sorted(self._outdated - {_HEAD}):
            yield kind, (self.applied, self._values.get(kind))
        for kind in [kind for kind in islice(self._oversized, MOST_SHORTENED) if kind not in self._outdated]:
            yield kind, (self.applied, self._values.get(kind))


class Writer:
    """Turns snapshots into changelog rows with one fencing token, and updates the reader when they were acknowledged.

    Parameters
    ----------
    partition : int
        The input partition; keys begin with it.
    token : str
        This owner's fencing token, the last that ``reader`` has read.
    expected : int
        The offset that the next append must get: only the owner writes to its changelog partition.
    origin : LogOrigin, optional
        The log that is folded from here on. Default: the one that the head belongs to.

    Attributes
    ----------
    is_fenced_again : bool
        Whether it has taken another fencing token since.
    """

    def __init__(
        self, reader: ChangelogReader, partition: int, token: str, expected: int, origin: LogOrigin | None = None
    ) -> None:
        self.origin = reader.origin if origin is None else origin
        self._reader = reader
        self._token = token
        self._expected = expected
        self._prefix = b"%d/" % partition
        self._pending: list[tuple[bytes, Version, Version | None]] = []
        self._tombstones: list[bytes] = []
        self._late: dict[bytes, None] = {}  # each key once, in the order in which they came
        self.is_fenced_again = False

    @property
    def expected(self) -> int:
        """The offset that the next append gets, unless records of a former owner come late."""
        return self._expected

    @property
    def size(self) -> tuple[int, int]:
        """How many records the durable state is, and the bytes of their values."""
        return self._reader.size

    @property
    def must_rewrite(self) -> bool:
        """Whether a snapshot is due even without new input: some outdated records must be written again."""
        return self._reader.must_rewrite or bool(self._late)

    def entry_rows(self, snapshot: Snapshot, applied: int) -> Iterator[ChangelogRow]:
        """Rows of everything that changed up to input offset ``applied``. They are made one by one: they may be many.

        Append all of them before ``head_row``.
        """
        self._outdate_late()
        self._pending, written = [], set[bytes]()
        for kind, version, prev in self._changes(snapshot, self.origin.base + applied):
            written.add(kind)
            self._pending.append((kind, version, prev))
            yield ChangelogRow(self._prefix + kind, _encode(StateRecord(self._token, version[0], version[1], prev)))
        self._tombstones = [kind for kind in self._reader.without_tombstone() if kind not in written]
        headers = ((_HEADER, self._token.encode()),)
        yield from (ChangelogRow(self._prefix + kind, None, headers) for kind in self._tombstones)

    def _changes(self, snapshot: Snapshot, position: int) -> Iterator[tuple[bytes, Version, Version | None]]:
        """(kind, version, version before) of each key once: what changed, then what must be written again."""
        seen: set[bytes] = set()
        for kind, value in snapshot.entries.items():
            if kind == _HEAD or kind.startswith(_TOKEN):
                msg = f"a stage may not name its state {kind!r}"
                raise StateError(msg)
            seen.add(kind)
            if value is not None or self._reader.is_known(kind):
                yield kind, (position, value), self._reader.version(kind)
        for kind, version in self._reader.rewrites():
            if kind not in seen:
                yield kind, version, None

    def head_row(self, snapshot: Snapshot, applied: int) -> ChangelogRow:
        """The commit point. Append it when every entry row was acknowledged."""
        topic_id, base, whole_at = self.origin
        schema = SHIFTED_SCHEMA if base else SCHEMA
        head = HeadRecord(schema, self._token, base + applied, snapshot.head, topic_id, base, whole_at)
        return ChangelogRow(self._prefix + _HEAD, _encode(head))

    def passed(self, keys: Iterable[bytes], end: int) -> None:
        """Take note of the keys of records before ``end`` that are not ours.

        A former owner sent them before it was fenced, and they came late. They have no valid token, so recovery ignores
        them. The next snapshot writes their keys again: compaction keeps the last record of a key, which may be theirs.

        Raises
        ------
        LateTokenError
            If one of them is a fencing token: what this owner writes behind it counts for nothing.
        """
        kinds = [key.partition(b"/")[2] for key in keys]
        self._late.update(dict.fromkeys(kind for kind in kinds if not kind.startswith(_TOKEN)))
        self._expected = end
        if any(kind.startswith(_TOKEN) for kind in kinds):
            msg = f"another fencing token came to the changelog before offset {end}: another writer is at work"
            raise LateTokenError(msg)

    def fence_again(self, token: str, offset: int) -> None:
        """Take another fencing token, which was appended at ``offset``. Write the snapshot under way again."""
        self._token, self._expected, self.is_fenced_again = token, offset + 1, True

    def appended(self, base: int, rows: int) -> None:
        """Check that ``rows`` acknowledged rows directly follow the previous ones: nobody else has written in between.

        ``base`` is the offset of the first, -1 if the broker did not say.

        Raises
        ------
        ForeignWriterError
            Somebody else writes to this changelog, perhaps with a newer fencing token. What was written since may be
            ignored by recovery. Stop without acknowledging the input, and recover.
        """
        if base >= 0 and base != self._expected:
            msg = f"changelog offset {self._expected} was expected and {base} came: another writer is at work"
            raise ForeignWriterError(msg)
        self._expected += rows

    def committed(self, snapshot: Snapshot, applied: int) -> None:
        """Note that the broker acknowledged all rows of the snapshot and its head: they are the versions that count."""
        for kind, version, prev in self._pending:
            self._reader.accept_state(kind, version, prev)
        for kind in self._tombstones:
            self._reader.accept_tombstone(kind)
        self._reader.accept_head(self.origin.base + applied, snapshot.head, self.origin)
        self._outdate_late()  # after what was written, which may lie before them
        self._pending, self._tombstones = [], []
        self._reader.next, self._reader.token = self._expected, self._token

    def _outdate_late(self) -> None:
        for kind in self._late:
            self._reader.outdate(kind)
        self._late.clear()

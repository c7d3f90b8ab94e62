"""State as records of a changelog: what to append for a snapshot, and how to read it all back.

One changelog partition belongs to one input partition ``p``. Its records:

``p/claim/ID``
    A new owner's fresh id, appended before it recovers. Records that follow and bear another id are ignored, so the
    order of the log fences whatever a former owner still writes. The id is part of the key: compaction would remove
    the earlier claims of one key, and with them the right of every record that was written under them.
``p/head``
    The commit point: the last input offset that the state covers. Written last.
``p/...``
    State, each record with the version before it: of the two, recovery takes the newest that the head covers.

A key is gone when a record with a claim says so, by having no value. A tombstone could bear no claim and is never
believed: one is written only for a key that is gone in a version which the head covers, so that compaction need not
keep anything of it.

Input offsets start from 0 again when the input's topic is recreated; versions must not. So records tell
*positions*, which only grow: an offset plus the ``base`` of the log that it is an offset of. While no topic was
recreated the base is 0, and both are the same.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from stream_peer.errors import ForeignWriterError, NewerStateError, StateError, UnreadableStateError
from stream_peer.log.stage import Snapshot

SCHEMA = 1
"""Version of the layout of state records; the stages version what is inside ``value`` themselves."""

SHIFTED_SCHEMA = 2
"""That of heads with a base: a release that knows no bases would take their positions for offsets."""

NOTHING_APPLIED = -1
OUTLIVES = -1

LOOSENED_AT_ONCE = 10_000
"""So many records at most are written again in one snapshot to be rid of the longer version before."""

_HEAD = b"head"
_CLAIM = b"claim/"

Version = tuple[int, bytes | None]
"""(as_of, value): the value after the input record at position ``as_of``; None: gone."""


class LogOrigin(NamedTuple):
    """Which log a state is folded from.

    Attributes
    ----------
    topic_id : str
        The broker's id of the topic; empty if it gives none.
    base : int
        Position of the log's offset 0.
    whole_at : int
        Up to this offset the state is rebuilt, after it was dropped or lost: until then it is not whole.
        ``OUTLIVES`` if it was kept: then it holds what no log holds any more.
    """

    topic_id: str = ""
    base: int = 0
    whole_at: int = 0

    def successor(self, topic_id: str, applied: int, *, whole_at: int = 0) -> "LogOrigin":
        """The log that takes the place of this one, of which ``applied`` was the last offset covered.

        One position lies between the two logs: at it state can be dropped, without touching what an owner who
        dies in the middle of that leaves behind.
        """
        return LogOrigin(topic_id, self.base + applied + 2, whole_at)


class StateRecord(msgspec.Struct, frozen=True):
    """One key's value as of an input position, and the version before it."""

    claim: str
    as_of: int
    value: bytes | None
    prev: Version | None = None


class ClaimRecord(msgspec.Struct, frozen=True):
    """The id of the owner whose records count from here on."""

    claim: str


class HeadRecord(msgspec.Struct, frozen=True):
    """The commit point of a partition: the last input position covered, and which log that is a position of."""

    schema: int
    claim: str
    applied: int
    value: bytes
    source: str = ""
    base: int = 0
    whole_at: int = 0

    @property
    def origin(self) -> LogOrigin:
        """The log that the state is folded from."""
        return LogOrigin(self.source, self.base, self.whole_at)


class _Schema(msgspec.Struct, frozen=True):
    schema: int


class ChangelogRow(NamedTuple):
    """A changelog record to append; without a value a tombstone."""

    key: bytes
    value: bytes | None


class Recovered(NamedTuple):
    """What a changelog partition says: the state after the input record at offset ``applied`` of its log."""

    applied: int
    head: bytes | None
    entries: Mapping[bytes, bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(StateRecord).decode
_decode_claim = msgspec.msgpack.Decoder(ClaimRecord).decode
_decode_head = msgspec.msgpack.Decoder(HeadRecord).decode
_decode_schema = msgspec.msgpack.Decoder(_Schema).decode


def claim_row(partition: int, claim: str) -> ChangelogRow:
    """The record by which a new owner takes over the changelog partition."""
    return ChangelogRow(b"%d/%b%b" % (partition, _CLAIM, claim.encode()), _encode(ClaimRecord(claim)))


def _head(value: bytes) -> HeadRecord:
    """A head, if this release reads its layout; one that only a later release reads may lack any other field."""
    try:
        schema = _decode_schema(value).schema
        if schema > SHIFTED_SCHEMA:
            raise NewerStateError(what="the changelog", schema=schema, readable=SHIFTED_SCHEMA)
        return _decode_head(value)
    except msgspec.MsgspecError as error:
        msg = f"the head of a partition's state cannot be read: {error}"
        raise UnreadableStateError(msg) from error


class ChangelogReader:
    """One changelog partition, read in log order by the rule of claims.

    Attributes
    ----------
    next : int
        The offset that is read next; records below it are known already.
    claim : str or None
        The last claim read.
    applied : int
        The last input position that the head covers.
    origin : LogOrigin
        The log that the head speaks of.
    fenced_out : int
        Records ignored so far because they bear another claim.
    """

    def __init__(self) -> None:
        self.next = 0
        self.claim: str | None = None
        self.applied = NOTHING_APPLIED
        self.origin = LogOrigin()
        self.head: bytes | None = None
        self.fenced_out = 0
        self._values: dict[bytes, bytes] = {}  # what the head covers; as of when matters no more
        self._bytes = 0  # of these values
        self._ahead: dict[bytes, tuple[Version, Version | None]] = {}  # what it does not, with the version before
        self._stale: set[bytes] = set()  # keys whose last record in the log is not what counts
        self._gone: set[bytes] = set()  # keys whose last record says, under the head, that they are gone
        self._loose: dict[bytes, None] = {}  # keys whose last record holds a longer version before: something went

    def add(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Read one record. Offsets may have holes: compaction makes them."""
        if offset < self.next:
            return
        self.next = offset + 1
        kind = key.partition(b"/")[2]
        if kind.startswith(_CLAIM):
            self.claim = _decode_claim(value).claim if value else None
        elif value is None:
            self._add_tombstone(kind)
        elif kind == _HEAD:
            self._add_head(_head(value))
        else:
            self._add_state(kind, _decode_state(value))

    def _ignore(self, kind: bytes) -> None:
        self._stale.add(kind)
        self.fenced_out += 1

    def _add_tombstone(self, kind: bytes) -> None:
        if kind in self._gone:
            self._gone.discard(kind)
        elif kind == _HEAD or kind in self._values or kind in self._ahead:
            self._ignore(kind)

    def _add_head(self, record: HeadRecord) -> None:
        if record.claim != self.claim:
            self._ignore(_HEAD)
        else:
            self.accept_head(record.applied, record.value, record.origin)

    def _add_state(self, kind: bytes, record: StateRecord) -> None:
        if record.claim != self.claim:
            self._ignore(kind)
        else:
            self.accept_state(kind, (record.as_of, record.value), record.prev)

    def accept_head(self, applied: int, value: bytes, origin: LogOrigin = LogOrigin()) -> None:  # noqa: B008 - a value
        """Take a head that bears the right claim: whatever it covers needs its older version no more."""
        if applied < self.applied:
            msg = f"the head fell back from {self.applied} to {applied}"
            raise StateError(msg)
        self.applied, self.head, self.origin = applied, value, origin
        self._stale.discard(_HEAD)
        covered = [kind for kind, (version, _) in self._ahead.items() if version[0] <= applied]
        for kind in covered:
            version, prev = self._ahead.pop(kind)
            self._settle(kind, version[1], prev)

    def accept_state(self, kind: bytes, version: Version, prev: Version | None) -> None:
        """Take a state record that bears the right claim."""
        self._stale.discard(kind)
        self._gone.discard(kind)
        self._loose.pop(kind, None)
        if version[0] > self.applied:
            self._ahead[kind] = version, prev
        else:
            self._ahead.pop(kind, None)
            self._settle(kind, version[1], prev)

    def accept_tombstone(self, kind: bytes) -> None:
        """Take a tombstone of our own: nothing of the key is left that anybody would have to know."""
        self._gone.discard(kind)

    def _settle(self, kind: bytes, value: bytes | None, prev: Version | None) -> None:
        """The head covers this value."""
        self._keep(kind, value)
        if value is not None:
            if prev is not None and prev[1] is not None and len(prev[1]) > len(value):
                self._loose[kind] = None
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

        Afterwards the reader knows no other versions; keys rolled back count as stale, like ignored ones. ``entries``
        shows what the reader holds, without a copy: read it before the next record is added.
        """
        for kind, (_, prev) in self._ahead.items():
            if prev is not None and prev[0] > self.applied:
                msg = f"{kind!r} has no version at or below {self.applied}, only {prev[0]} and newer"
                raise StateError(msg)
            self._stale.add(kind)
            self._keep(kind, None if prev is None else prev[1])
        self._ahead.clear()
        return Recovered(self.applied - self.origin.base, self.head, MappingProxyType(self._values))

    def version(self, kind: bytes) -> Version | None:
        """The version that counts, if any.

        The head's offset stands for the one as of which it was written: no later head falls below it.
        """
        value = self._values.get(kind)
        return None if value is None else (self.applied, value)

    def is_known(self, kind: bytes) -> bool:
        """Whether the log may hold something of a key that is not said to be gone."""
        return kind in self._values or kind in self._stale

    def buried(self) -> Iterator[bytes]:
        """Keys of which nothing need be kept."""
        return iter(sorted(self._gone - self._stale))

    @property
    def must_rewrite(self) -> bool:
        """Whether some key's last record in the log is not what counts: compaction would keep the wrong one."""
        return bool(self._stale)

    def rewrites(self) -> Iterator[tuple[bytes, Version]]:
        """(kind, version) of records to write again; covered by the head, they need no version before.

        Stale ones, and some of those that hold a longer version before: a question's history, where only a stub of it
        is left, would stay on disk for as long as the stub.
        """
        for kind in sorted(self._stale - {_HEAD}):
            yield kind, (self.applied, self._values.get(kind))
        for kind in [kind for kind in islice(self._loose, LOOSENED_AT_ONCE) if kind not in self._stale]:
            yield kind, (self.applied, self._values.get(kind))


class Writer:
    """Turns snapshots into changelog rows under one claim, and keeps the reader abreast of what was acknowledged.

    Parameters
    ----------
    partition : int
        The input partition; keys begin with it.
    claim : str
        This owner's id, the last that ``reader`` has read.
    expected : int
        The offset that the next append must get: only the owner writes to its changelog partition.
    origin : LogOrigin, optional
        The log that is folded from here on; the one that the head names if left out.
    """

    def __init__(
        self, reader: ChangelogReader, partition: int, claim: str, expected: int, origin: LogOrigin | None = None
    ) -> None:
        self.origin = reader.origin if origin is None else origin
        self._reader = reader
        self._claim = claim
        self._expected = expected
        self._prefix = b"%d/" % partition
        self._pending: list[tuple[bytes, Version, Version | None]] = []
        self._tombstones: list[bytes] = []

    @property
    def size(self) -> tuple[int, int]:
        """How many records the durable state is, and the bytes of their values."""
        return self._reader.size

    @property
    def must_rewrite(self) -> bool:
        """Whether a snapshot is due although no input came: records of others are the last of their key."""
        return self._reader.must_rewrite

    def entry_rows(self, snapshot: Snapshot, applied: int) -> Iterator[ChangelogRow]:
        """Rows of everything that changed up to input offset ``applied``; made as they are asked for, being many.

        Append all of them before ``head_row``.
        """
        self._pending, written = [], set[bytes]()
        for kind, version, prev in self._changes(snapshot, self.origin.base + applied):
            written.add(kind)
            self._pending.append((kind, version, prev))
            yield ChangelogRow(self._prefix + kind, _encode(StateRecord(self._claim, version[0], version[1], prev)))
        self._tombstones = [kind for kind in self._reader.buried() if kind not in written]
        yield from (ChangelogRow(self._prefix + kind, None) for kind in self._tombstones)

    def _changes(self, snapshot: Snapshot, position: int) -> Iterator[tuple[bytes, Version, Version | None]]:
        """(kind, version, version before) of each key once: what changed, then what must be written again."""
        seen: set[bytes] = set()
        for kind, value in snapshot.entries.items():
            if kind == _HEAD or kind.startswith(_CLAIM):
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
        head = HeadRecord(schema, self._claim, base + applied, snapshot.head, topic_id, base, whole_at)
        return ChangelogRow(self._prefix + _HEAD, _encode(head))

    def appended(self, base: int, rows: int) -> None:
        """Check that ``rows`` acknowledged rows stand where only we can have put them.

        ``base`` is the offset of the first, -1 if the broker did not say.

        Raises
        ------
        ForeignWriterError
            Somebody else writes to this changelog, perhaps with a later claim than ours: nothing that was
            written since may be relied on. Leave without acknowledging, and recover.
        """
        if base >= 0 and base != self._expected:
            msg = f"changelog offset {self._expected} was expected and {base} came: another writer is at work"
            raise ForeignWriterError(msg)
        self._expected += rows

    def committed(self, snapshot: Snapshot, applied: int) -> None:
        """All rows of the snapshot and its head were acknowledged: from now on they are the versions that count."""
        for kind, version, prev in self._pending:
            self._reader.accept_state(kind, version, prev)
        for kind in self._tombstones:
            self._reader.accept_tombstone(kind)
        self._pending, self._tombstones = [], []
        self._reader.accept_head(self.origin.base + applied, snapshot.head, self.origin)
        self._reader.next = self._expected

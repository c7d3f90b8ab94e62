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

Nothing is ever deleted by a tombstone, which could bear no claim: a record without a value says that the key is gone.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from stream_peer.engine.stage import Snapshot
from stream_peer.errors import ForeignWriterError, StateError

SCHEMA = 1
"""Version of the layout of state records; the stages version what is inside ``value`` themselves."""

NOTHING_APPLIED = -1

_HEAD = b"head"
_CLAIM = b"claim/"

Version = tuple[int, bytes | None]
"""(as_of, value): the value after the input record at offset ``as_of``; None: gone."""


class StateRecord(msgspec.Struct, frozen=True):
    """One key's value as of an input offset, and the version before it."""

    claim: str
    as_of: int
    value: bytes | None
    prev: Version | None = None


class ClaimRecord(msgspec.Struct, frozen=True):
    """The id of the owner whose records count from here on."""

    claim: str


class HeadRecord(msgspec.Struct, frozen=True):
    """The commit point of a partition."""

    schema: int
    claim: str
    applied: int
    value: bytes


class Row(NamedTuple):
    """A changelog record to append."""

    key: bytes
    value: bytes


class Recovered(NamedTuple):
    """What a changelog partition says: the state after the input record at ``applied``."""

    applied: int
    head: bytes | None
    entries: dict[bytes, bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(StateRecord).decode
_decode_claim = msgspec.msgpack.Decoder(ClaimRecord).decode
_decode_head = msgspec.msgpack.Decoder(HeadRecord).decode


def claim_row(partition: int, claim: str) -> Row:
    """The record by which a new owner takes over the changelog partition."""
    return Row(b"%d/%b%b" % (partition, _CLAIM, claim.encode()), _encode(ClaimRecord(claim)))


class Fold:
    """One changelog partition, read in log order by the rule of claims.

    Attributes
    ----------
    next : int
        The offset that is read next; records below it are known already.
    claim : str or None
        The last claim read.
    applied : int
        The last input offset that the head covers.
    foreign : int
        Records ignored so far because they bore another claim.
    """

    def __init__(self) -> None:
        self.next = 0
        self.claim: str | None = None
        self.applied = NOTHING_APPLIED
        self.head: bytes | None = None
        self.foreign = 0
        self._entries: dict[bytes, Version] = {}
        self._older: dict[bytes, Version | None] = {}  # the version before, where the head does not cover the newest
        self._stale: set[bytes] = set()  # keys whose last record in the log is not what counts
        self._gone: set[bytes] = set()  # keys that are gone, but whose record still holds the value before

    def add(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Read one record. Offsets may have holes: compaction makes them."""
        if offset < self.next:
            return
        self.next = offset + 1
        kind = key.partition(b"/")[2]
        if kind.startswith(_CLAIM):
            self.claim = _decode_claim(value).claim if value else None
        elif value is None:
            self._ignore(kind)
        elif kind == _HEAD:
            self._add_head(_decode_head(value))
        else:
            self._add_state(kind, _decode_state(value))

    def _ignore(self, kind: bytes) -> None:
        self._stale.add(kind)
        self.foreign += 1

    def _add_head(self, record: HeadRecord) -> None:
        if record.claim != self.claim:
            self._ignore(_HEAD)
        elif record.schema != SCHEMA:
            msg = f"state records have schema {record.schema}, this release reads {SCHEMA}"
            raise StateError(msg)
        else:
            self.accept_head(record.applied, record.value)

    def _add_state(self, kind: bytes, record: StateRecord) -> None:
        if record.claim != self.claim:
            self._ignore(kind)
        else:
            self.accept_state(kind, (record.as_of, record.value), record.prev)

    def accept_head(self, applied: int, value: bytes) -> None:
        """Take a head that bears the right claim: whatever it covers needs its older version no more."""
        if applied < self.applied:
            msg = f"the head fell back from {self.applied} to {applied}"
            raise StateError(msg)
        self.applied, self.head = applied, value
        self._stale.discard(_HEAD)
        covered = [kind for kind in self._older if self._entries[kind][0] <= applied]
        for kind in covered:
            had_value = self._older.pop(kind) is not None
            if self._entries[kind][1] is None:
                del self._entries[kind]
                if had_value:
                    self._gone.add(kind)

    def accept_state(self, kind: bytes, version: Version, prev: Version | None) -> None:
        """Take a state record that bears the right claim."""
        self._stale.discard(kind)
        self._gone.discard(kind)
        if version[0] > self.applied:
            self._entries[kind] = version
            self._older[kind] = prev
            return
        self._older.pop(kind, None)
        if version[1] is not None:
            self._entries[kind] = version
        else:
            self._entries.pop(kind, None)
            if prev is not None:
                self._gone.add(kind)

    def recovered(self) -> Recovered:
        """State at the head: of each key the newest version that the head covers.

        Afterwards the fold knows no other versions; keys rolled back count as stale, like ignored ones.
        """
        for kind, prev in self._older.items():
            if prev is not None and prev[0] > self.applied:
                msg = f"{kind!r} has no version at or below {self.applied}, only {prev[0]} and newer"
                raise StateError(msg)
            self._stale.add(kind)
            if prev is None or prev[1] is None:
                del self._entries[kind]
            else:
                self._entries[kind] = prev
        self._older.clear()
        entries = {kind: value for kind, (_, value) in self._entries.items() if value is not None}
        return Recovered(self.applied, self.head, entries)

    def version(self, kind: bytes) -> Version | None:
        """The version that counts, if any."""
        return self._entries.get(kind)

    @property
    def must_rewrite(self) -> bool:
        """Whether some key's last record in the log is not what counts: compaction would keep the wrong one."""
        return bool(self._stale)

    def rewrites(self) -> Iterator[tuple[bytes, Version]]:
        """(kind, version) of records to write again: stale ones, and gone ones that still hold their last value.

        The head covers these versions, so the records need no version before.
        """
        gone = (self.applied, None)
        for kind in (self._stale | self._gone) - {_HEAD}:
            yield kind, self._entries.get(kind, gone)


class Writer:
    """Turns snapshots into changelog rows under one claim, and keeps the fold abreast of what was acknowledged.

    Parameters
    ----------
    partition : int
        The input partition; keys begin with it.
    claim : str
        This owner's id, the last that ``fold`` has read.
    expected : int
        The offset that the next append must get: only the owner writes to its changelog partition.
    """

    def __init__(self, fold: Fold, partition: int, claim: str, expected: int) -> None:
        self._fold = fold
        self._claim = claim
        self._expected = expected
        self._prefix = b"%d/" % partition
        self._pending: list[tuple[bytes, Version, Version | None]] = []

    @property
    def must_rewrite(self) -> bool:
        """Whether a snapshot is due although no input came: records of others are the last of their key."""
        return self._fold.must_rewrite

    def entry_rows(self, snapshot: Snapshot, applied: int) -> list[Row]:
        """Rows of everything that changed up to input offset ``applied``. Append them before ``head_row``."""
        pending: dict[bytes, tuple[Version, Version | None]] = {}
        for kind, version in self._fold.rewrites():
            pending[kind] = (version, None)
        for kind, value in snapshot.entries.items():
            if kind == _HEAD or kind.startswith(_CLAIM):
                msg = f"a stage may not name its state {kind!r}"
                raise StateError(msg)
            pending[kind] = ((applied, value), self._fold.version(kind))
        self._pending = [(kind, *versions) for kind, versions in pending.items()]
        return [
            Row(self._prefix + kind, _encode(StateRecord(self._claim, version[0], version[1], prev)))
            for kind, version, prev in self._pending
        ]

    def head_row(self, snapshot: Snapshot, applied: int) -> Row:
        """The commit point. Append it when every entry row was acknowledged."""
        return Row(self._prefix + _HEAD, _encode(HeadRecord(SCHEMA, self._claim, applied, snapshot.head)))

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
            self._fold.accept_state(kind, version, prev)
        self._pending = []
        self._fold.accept_head(applied, snapshot.head)
        self._fold.next = self._expected

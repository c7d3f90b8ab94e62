"""Questions of a feed that arrive in parts."""

import hashlib
from collections.abc import Mapping

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import FeedImported
from stream_peer.events.incoming import FeedImport
from stream_peer.events.rejections import Reason
from stream_peer.log.pieces import cut, join_chunks, removed

PART_BYTES = 640_000
"""Of data in a part: as text in a record, with all that is around it, it stays below 900 KB."""

_DIGEST_BYTES = 16

Part = FeedImport | FeedImported
"""A part of a transfer, as events and records of the feed-log carry it."""


def import_refusal(message: str) -> RejectedEvent:
    """The rejection of a part or its transfer."""
    return RejectedEvent(Reason.IMPORT_REFUSED, message=message)


def parts_of(data: bytes) -> tuple[str, list[bytes]]:
    """The digest of a transfer, and its parts."""
    return _digest_of(data), [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]


def _digest_of(data: bytes) -> str:
    """A digest that proves that all parts are there and unchanged."""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


class _Waiting(msgspec.Struct):
    """The parts of one transfer that have arrived."""

    import_id: str
    parts: int
    digest: str
    data: list[bytes]


class _StoredPart(msgspec.Struct, array_like=True):
    import_id: str
    parts: int
    digest: str
    data: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_StoredPart).decode


class Transfers:
    """The incomplete transfers, at most one a feed: a first part drops an earlier one."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._rows: dict[bytes, bytes | None] = {}
        self._stored: dict[bytes, int] = {}

    def add(self, event: Part) -> bytes | None:
        """The joined parts, when the last has arrived; None while parts are missing.

        Raises
        ------
        RejectedEvent
            If the part before this one is missing, or the parts are not what was sent.
        """
        if event.part == 0:
            self.drop(event.feed)
            self._waiting[event.feed] = _Waiting(event.import_id, event.parts, event.digest, [])
        waiting = self._waiting.get(event.feed)
        named = event.import_id, event.parts, event.digest
        if waiting is None or (waiting.import_id, waiting.parts, waiting.digest) != named:
            raise import_refusal(f"part {event.part + 1} of {event.parts} belongs to nothing that has begun")
        if event.part == len(waiting.data) - 1 and waiting.data[event.part] == event.data:
            return None  # sent twice
        if event.part != len(waiting.data):
            raise import_refusal(f"part {event.part + 1} of {event.parts} comes without the one before it")
        waiting.data.append(event.data)
        if len(waiting.data) < waiting.parts:
            self._keep(event)
            return None
        self.drop(event.feed)
        whole = b"".join(waiting.data)
        if _digest_of(whole) != waiting.digest:
            raise import_refusal(f"the {waiting.parts} parts together are not what was sent: their hash is another")
        return whole

    def drop(self, feed: str) -> None:
        """Drop the incomplete transfer of a feed."""
        waiting = self._waiting.pop(feed, None)
        for part in range(len(waiting.data) if waiting else 0):
            name = _name(feed, part)
            self._rows.update(removed(b"i", name, self._stored.pop(name, 0)))

    def clear(self) -> None:
        """Drop all incomplete transfers."""
        for feed in list(self._waiting):
            self.drop(feed)

    def _keep(self, event: Part) -> None:
        name = _name(event.feed, event.part)
        rows = cut(b"i", name, _encode(_StoredPart(event.import_id, event.parts, event.digest, event.data)))
        self._stored[name] = len(rows)
        self._rows.update(rows)

    def snapshot(self) -> dict[bytes, bytes | None]:
        """State records changed since the last call."""
        rows, self._rows = self._rows, {}
        return rows

    def load(self, entries: Mapping[bytes, bytes]) -> None:
        """Load the state of an earlier owner."""
        found: dict[str, dict[int, _StoredPart]] = {}
        for name, (data, pieces) in join_chunks(b"i", entries).items():
            feed, _, part = name.decode().rpartition("/")
            found.setdefault(feed, {})[int(part)] = _decode(data)
            self._stored[name] = pieces
        for feed, parts in found.items():
            first = parts[0]
            there = [parts[number].data for number in sorted(parts)]
            self._waiting[feed] = _Waiting(first.import_id, first.parts, first.digest, there)


def _name(feed: str, part: int) -> bytes:
    return b"%b/%d" % (feed.encode(), part)

"""The newest record of each feed, from the records of a compacted topic in any order between its partitions."""

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from stream_peer_client.errors import UnknownSchemaError
from stream_peer_client.outputs import SCHEMA, Weights, joined_parts


class _Head(msgspec.Struct):
    """What says where a record belongs."""

    feed: str
    revision: int
    schema: int
    part: int = 0
    parts: int = 1


class _Kept(NamedTuple):
    revision: int
    part: int
    parts: int
    value: bytes


_head_of = msgspec.json.Decoder(_Head).decode
_weights_of = msgspec.json.Decoder(Weights).decode


class Newest:
    """Keeps the last record of each key. The records of a feed's highest revision, once all are there, are its newest.

    Parameters
    ----------
    feeds : collection of str, optional
        Of which records are kept; default: of all.
    """

    def __init__(self, feeds: Collection[str] | None = None) -> None:
        self._feeds = feeds
        self._feed_of: dict[bytes, str] = {}
        self._kept: dict[str, dict[bytes, _Kept]] = {}
        self._highest: dict[str, int] = {}

    def __contains__(self, feed: str) -> bool:
        """Whether anything of the feed is there."""
        return feed in self._kept

    def add(self, key: bytes, value: bytes | None) -> str | None:
        """Take a record, or a tombstone (None). Returns the feed, if anything may have changed.

        Raises
        ------
        msgspec.DecodeError
            If it is no record of weights.
        UnknownSchemaError
            If it is of a later major version.
        """
        if value is None:
            return self._end(key)
        head = _head_of(value)
        if self._feeds is not None and head.feed not in self._feeds:
            return None
        if head.schema > SCHEMA:
            msg = f"weights of {head.feed} have schema {head.schema}, and this client reads {SCHEMA}: upgrade it"
            raise UnknownSchemaError(msg)
        records = self._kept.setdefault(head.feed, {})
        known = records.get(key)
        if known is not None and known.revision > head.revision:
            return None  # a worker that restarted repeats what it wrote last
        self._feed_of[key] = head.feed
        records[key] = _Kept(head.revision, head.part, head.parts, value)
        self._highest[head.feed] = max(head.revision, self._highest.get(head.feed, head.revision))
        return head.feed

    def _end(self, key: bytes) -> str | None:
        feed = self._feed_of.pop(key, None)
        if feed is None:
            return None
        del self._kept[feed][key]
        if not self._kept[feed]:
            del self._kept[feed], self._highest[feed]
        return feed

    def weights(self, feed: str) -> Weights | None:
        """The newest weights of a feed; None if there are none, or a part is missing.

        Raises
        ------
        msgspec.DecodeError
            If they are none.
        """
        highest = self._highest.get(feed)
        parts = sorted(
            (kept for kept in self._kept.get(feed, {}).values() if kept.revision == highest), key=lambda kept: kept.part
        )
        if not parts or len(parts) < parts[0].parts:
            return None
        return joined_parts([_weights_of(kept.value) for kept in parts])

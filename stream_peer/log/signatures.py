"""Which records of ``forecast-events`` the service wrote itself: those with a signature by its key.

Everybody who sends forecasts may write to that topic, headers included. So a header of ours counts only if a second one
signs it; a record without a valid signature is folded as if it had neither.
"""

import hmac
from collections.abc import Iterable, Sequence

from stream_peer.events.feed_log import Source
from stream_peer.log.sources import SOURCE_HEADER, source_header
from stream_peer.log.stage import Headers, LogRecord, Output, Record

MAC_HEADER = "stream-peer-mac"
UNSIGNED_KINDS = ("event", "control", "tick")
"""Kinds by which records without a valid signature are counted. An ``event`` is used; the others are refused."""

_OURS = frozenset((SOURCE_HEADER, MAC_HEADER))
_LENGTH_BYTES = 8
_NO_BYTES = b"\xff" * _LENGTH_BYTES  # no field is so long: null differs from an empty field


class Signatures:
    """Signs records for ``forecast-events``, and checks signatures of what is read there.

    A signature is HMAC-SHA256 over the ids of cluster and topic, the partition, the header that names the source, the
    key and the value, each after its length: a copy at another place, or with other content, has no valid one.

    Parameters
    ----------
    keys : sequence of bytes
        The first signs, each verifies: so a key is replaced without a gap.
    cluster_id, topic_id : str
        Of the broker, and of its ``forecast-events``; empty if the broker tells none.
    """

    __slots__ = ("_keys", "_place")

    def __init__(self, keys: Sequence[bytes] = (b"",), cluster_id: str = "", topic_id: str = "") -> None:
        self._keys = tuple(keys)
        self.bind(cluster_id, topic_id)

    def bind(self, cluster_id: str, topic_id: str) -> None:
        """Sign for a topic with these ids; a recreated topic has a new one."""
        self._place = prefixed((cluster_id.encode(), topic_id.encode()))

    def signed(self, output: Output, source: Source | None = None) -> Output:
        """A record for a partition of ``forecast-events``, with source and signature; former ones are removed."""
        headers = others(output.headers)
        named = b""
        if source is not None:
            header = source_header(source)
            headers, named = (*headers, header), header[1]
        partition = output.partition or 0
        mac = self._mac(self._keys[0], partition, (named, output.key, output.value))
        return output._replace(partition=partition, headers=(*headers, (MAC_HEADER, mac)))

    def believed(self, record: Record, partition: int) -> Record:
        """The record if the service's headers are signed for this partition, else the record without them."""
        macs = [value for name, value in record.headers if name == MAC_HEADER]
        named = [value for name, value in record.headers if name == SOURCE_HEADER]
        if len(macs) == 1 and len(named) <= 1:
            signed = (named[0] or b"" if named else b"", record.key, record.value)
            if any(hmac.compare_digest(self._mac(key, partition, signed), macs[0] or b"") for key in self._keys):
                return record
        return disbelieved(record)

    def _mac(self, key: bytes, partition: int, signed: tuple[bytes, bytes | None, bytes | None]) -> bytes:
        message = self._place + prefixed((b"%d" % partition, *signed))
        return hmac.digest(key, message, "sha256").hex().encode()


def names_ours(headers: Headers) -> bool:
    """Whether a record has a header that only the service writes."""
    for name, _ in headers:  # noqa: SIM110 - any() costs three times as much, and every record passes here
        if name in _OURS:
            return True
    return False


def is_signed(headers: Headers) -> bool:
    """Whether a record, after ``believed``, has a signature."""
    return any(name == MAC_HEADER for name, _ in headers)


def disbelieved(record: Record) -> LogRecord:
    """The record without the service's headers."""
    return LogRecord(record.offset, record.timestamp, record.key, record.value, others(record.headers))


def others(headers: Headers) -> tuple[tuple[str, bytes], ...]:
    """Headers that are not the service's."""
    return tuple(header for header in headers if header[0] not in _OURS)


def prefixed(fields: Iterable[bytes | None]) -> bytes:
    """Join fields, each after its length: different lists of fields never give the same bytes."""
    parts = list[bytes]()
    for field in fields:
        parts += (_NO_BYTES, b"") if field is None else (len(field).to_bytes(_LENGTH_BYTES, "big"), field)
    return b"".join(parts)

"""What kafka-python cannot read of records, though Kafka takes it from anybody.

That is compression for which it needs one more package each, and names of headers that are not UTF-8.
"""

from collections.abc import Callable
from typing import Any

import cramjam
from kafka.record import memory_records
from kafka.record.default_records import DefaultRecordBatch

_BLOCKS = b"\x82SNAPPY\x00"  # snappy as Java writes it: this, two versions, then blocks, each behind its length
_FIRST_BLOCK = 16
_LENGTH_BYTES = 4


def read_any_record() -> None:
    """From here on consumers of kafka-python read records whatever their compression and the names of their headers."""
    memory_records.DefaultRecordBatch = _Batch


class _Batch(DefaultRecordBatch):
    _buffer: Any
    _pos: int
    _decompressed: bool

    def _maybe_uncompress(self) -> None:
        decode = None if self._decompressed else _DECODERS.get(self.compression_type)
        if decode is not None:
            self._buffer = bytearray(decode(bytes(memoryview(self._buffer)[self._pos :])))
            self._pos, self._decompressed = 0, True
        super()._maybe_uncompress()

    def _read_msg(self, *args: Any) -> Any:
        """The next record. If a name fails, it is read again from its first byte, slowly."""
        try:
            return super()._read_msg(*args)
        except UnicodeDecodeError:
            self._buffer = AnyNames(self._buffer)
            return super()._read_msg(*args)


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_BLOCKS):
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks, at = [], _FIRST_BLOCK
    while at < len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "big")
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[start:at])))
    return b"".join(blocks)


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: cramjam.lz4.decompress,
    DefaultRecordBatch.CODEC_ZSTD: cramjam.zstd.decompress,
}


class AnyNames(bytearray):
    """The bytes of a batch, of which each part reads as text whatever it is."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _Name(found) if isinstance(place, slice) else found


class _Name(bytearray):
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002 - as it is asked for
        return super().decode(encoding, "backslashreplace")

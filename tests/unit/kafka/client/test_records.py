"""Records are read whatever their compression and the names of their headers: anybody may write such."""

import struct
from collections.abc import Callable
from typing import Any

import cramjam
import pytest
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from stream_peer.kafka.client.read import read_any_record

_HEADER = 61
_ATTRIBUTES = 21


def as_java_writes(payload: bytes) -> bytes:
    """Snappy in blocks."""
    block = bytes(cramjam.snappy.compress_raw(payload))
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(block)) + block


COMPRESSIONS: list[tuple[int, Callable[[bytes], Any]]] = [
    (0, bytes),
    (1, cramjam.gzip.compress),
    (2, cramjam.snappy.compress_raw),
    (2, as_java_writes),
    (3, cramjam.lz4.compress),
    (4, cramjam.zstd.compress),
]


def batch(names: list[bytes], code: int = 0, compress: Callable[[bytes], Any] = bytes) -> bytes:
    """A batch of one record a name, the bytes of which replace a name of the same length."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 900_000)
    for place, name in enumerate(names):
        builder.append(place, 1_000 + place, b"k", b"v%d" % place, [("#" * len(name), b"x"), ("trace", None)])
    plain = bytes(builder.build())
    for name in names:
        plain = plain.replace(b"#" * len(name), name, 1)
    made = bytearray(plain[:_HEADER] + bytes(compress(plain[_HEADER:])))
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">h", made, _ATTRIBUTES, code)
    return bytes(made)


def read(content: bytes) -> list[Any]:
    read_any_record()
    return [record for records in MemoryRecords(content) for record in records]


@pytest.mark.parametrize(("code", "compress"), COMPRESSIONS)
def test_a_name_that_is_no_utf_8_is_read_as_text_and_hides_no_other_record(
    code: int, compress: Callable[[bytes], Any]
) -> None:
    names = [b"good", b"\xff\xfe\xfd\xfc", b"also", b"stream\x80peer-src"]

    found = read(batch(names, code, compress))

    assert [(record.offset, record.timestamp, record.value) for record in found] == [
        (place, 1_000 + place, b"v%d" % place) for place in range(4)
    ]
    assert [record.headers[0][0] for record in found] == [
        "good",
        "\\xff\\xfe\\xfd\\xfc",
        "also",
        "stream\\x80peer-src",
    ]
    assert {record.headers[1] for record in found} == {("trace", None)}


def test_a_batch_that_was_cut_short_is_refused_as_before() -> None:
    content = bytearray(batch([b"a"]))[:-1]
    struct.pack_into(">i", content, 8, len(content) - 12)

    with pytest.raises(CorruptRecordError):
        read(bytes(content))

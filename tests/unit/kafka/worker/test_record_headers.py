"""Records are read whatever the names of their headers: anybody may write one, and no name may end a worker."""

import struct
from itertools import chain
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from stream_peer.kafka.worker.faust_bridge import read_any_names

_CRC, _CHECKED = 17, 21
NO_COMPRESSION, ZSTD = 0, 4


def batch(first: int, names: list[bytes], compression: int = NO_COMPRESSION) -> bytes:
    """A batch of one record a name, the bytes of which replace a name of the same length."""
    builder = DefaultRecordBatchBuilder(2, NO_COMPRESSION, 0, -1, -1, -1, 900_000)
    for place, name in enumerate(names):
        builder.append(place, 1_000 + place, b"k", b"v%d" % place, [("#" * len(name), b"x"), ("trace", None)])
    plain = builder.build()
    for name in names:
        plain = bytearray(bytes(plain).replace(b"#" * len(name), name, 1))
    if compression:
        import cramjam

        plain = plain[:61] + bytes(cramjam.zstd.compress(bytes(plain[61:])))
        struct.pack_into(">i", plain, 8, len(plain) - 12)
        struct.pack_into(">h", plain, 21, compression)
    struct.pack_into(">q", plain, 0, first)
    struct.pack_into(">I", plain, _CRC, calc_crc32c(bytes(plain[_CHECKED:])))
    return bytes(plain)


def read(content: bytes, start: int = 0) -> list[Any]:
    read_any_names()
    place = TopicPartition("forecast-events", 0)
    records = fetcher.MemoryRecords(content)
    return list(chain.from_iterable(fetcher.PartitionRecords(place, records, [], start, None, None, True, 1)))


@pytest.mark.parametrize("compression", [NO_COMPRESSION, ZSTD])
def test_a_name_that_is_no_utf_8_is_read_as_text_and_hides_no_other_record(compression: int) -> None:
    names = [b"good", b"\xff\xfe\xfd\xfc", b"also", b"stream\x80peer-src"]

    found = read(batch(0, names, compression) + batch(4, [b"next"], compression))

    assert [(record.offset, record.timestamp, record.value) for record in found] == [
        *((place, 1_000 + place, b"v%d" % place) for place in range(4)),
        (4, 1_000, b"v0"),
    ]
    assert [record.headers[0][0] for record in found] == [
        "good",
        "\\xff\\xfe\\xfd\\xfc",
        "also",
        "stream\\x80peer-src",
        "next",
    ]
    assert {record.headers[1] for record in found} == {("trace", None)}


def test_reading_goes_on_within_a_batch() -> None:
    assert [record.offset for record in read(batch(0, [b"a", b"\xff", b"b"]), start=2)] == [2]


def test_a_batch_that_was_damaged_is_refused_as_before() -> None:
    content = bytearray(batch(0, [b"a"]))
    content[-1] ^= 1

    with pytest.raises(fetcher.Errors.CorruptRecordException):
        read(bytes(content))

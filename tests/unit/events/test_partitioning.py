"""Keys go where all Kafka clients of the Java family put them."""

import pytest
from kafka.partitioner.default import murmur2 as their_murmur2

from stream_peer.events.partitioning import murmur2, partition_of

KEYS = [b"", b"a", b"ab", b"abc", b"abcd", b"21", b"foobar", bytes(range(256)), "größe".encode(), b"\xff" * 255]


@pytest.mark.parametrize("key", [*KEYS, *(f"question-{n}".encode() for n in range(200))])
def test_the_hash_is_that_of_kafka_python(key: bytes) -> None:
    assert murmur2(key) == their_murmur2(key) % 2**32


@pytest.mark.parametrize(
    ("key", "signed"),
    [  # test vectors of Kafka's own UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32


def test_text_and_its_bytes_have_one_partition() -> None:
    assert partition_of("größe", 16) == partition_of("größe".encode(), 16)


def test_partitions_are_within_range_and_all_used() -> None:
    used = {partition_of(f"q{n}", 16) for n in range(500)}

    assert used == set(range(16))

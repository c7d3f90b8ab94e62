"""Topic names are what operators write in ACLs, and keys go to the partition that clients of the Java family choose."""

import re

import pytest
from kafka.partitioner.default import murmur2 as their_murmur2

from stream_peer.events import topics
from stream_peer.events.partitioning import murmur2, partition_of


def test_names_are_lower_case_hyphenated_and_distinct() -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in topics.ALL)
    assert len(set(topics.ALL)) == len(topics.ALL)


def test_every_output_is_keyed_by_feed_question_or_group_or_is_a_dead_letter() -> None:
    keyed = {*topics.KEYED_BY_FEED, *topics.KEYED_BY_QUESTION, *topics.KEYED_BY_GROUP}
    assert set(topics.OUTPUTS) == {*keyed, topics.DEAD_LETTERS}


KEYS = [b"", b"a", b"ab", b"abc", b"abcd", b"21", b"foobar", bytes(range(256)), "größe".encode(), b"\xff" * 255]


def test_the_hash_is_that_of_kafka_python() -> None:
    for key in (*KEYS, *(f"question-{n}".encode() for n in range(200))):
        assert murmur2(key) == their_murmur2(key) % 2**32, key


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
